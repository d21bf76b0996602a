/* conversation_row.h - what conversation.c and preference.c share; not for other files. */
#ifndef RONDO_TEXT_CONVERSATION_ROW_H
#define RONDO_TEXT_CONVERSATION_ROW_H

#include "native/text/conversation.h"

/* A new example, all zeros. */
struct example *examples_add(struct examples *list);

/* Drops what was added after `count`. */
void examples_cut(struct examples *list, size_t count);

/* Counts a drop, and keeps the first of its kind. */
void conversation_drop(struct conversation_counts *counts, enum conversation_drop reason, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One example of [text, weight] parts, each tokenised alone. */
bool parts_example(const struct conversation_format *format, const json_t *parts, uint32_t line, struct examples *out,
                   struct error *err);

/* The examples of a conversation's assistant turns, its shape unchecked. */
bool conversation_row(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                      struct conversation_counts *counts, struct error *err);

#endif
