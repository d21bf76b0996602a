/* call_scalar.h - the texts and numbers of call_automaton.h, byte by byte; its state says how far they are. */
#ifndef RONDO_TEXT_CALL_SCALAR_H
#define RONDO_TEXT_CALL_SCALAR_H

#include "native/text/call_automaton.h"

/* Behind the quote that opens a text. `mode`: of the state. */
void call_text_begin(struct call_state *s, enum call_mode mode);
/* A byte of UTF-8, without escapes and with no end (RFC 3629); false: it may not come here. */
bool call_character(struct call_state *s, uint32_t byte);
/* A byte of a text of the state's node, which is `done` with its quote; and how many the shortest way there takes. */
bool call_text_feed(struct call_state *s, uint32_t byte, bool *done);
size_t call_text_rest(const struct call_state *s);

/* The first byte of a number of the state's node, and the next: false, and nothing changed, where it does not go on so. */
bool call_number_begin(struct call_state *s, uint32_t byte);
bool call_number_feed(struct call_state *s, uint32_t byte);
/* The number may end here, and how many bytes the shortest way there takes. */
bool call_number_whole(const struct call_state *s);
size_t call_number_rest(const struct call_state *s);

/* Bytes of a shortest whole number that goes on from `digits` digits of that value (0 digits: of any); SIZE_MAX: none does. */
size_t call_digits_left(const struct call_node *n, bool negative, unsigned digits, int64_t value);

#endif
