/* conversation_turn.h - the text of one assistant turn, and which part of it the assistant said.
 *
 *     prompt:  messages [0, k) with the generation prompt      <user> hi <end> <assistant>
 *     full:    messages [0, k]                                 <user> hi <end> <assistant> yo <end>
 *                                                                                          ^start  ^end
 */
#ifndef RONDO_TEXT_CONVERSATION_TURN_H
#define RONDO_TEXT_CONVERSATION_TURN_H

#include "native/text/conversation.h"

struct turn {
    struct buffer text;
    struct text_range *data; /* texts of the row in it (template.h), owned */
    size_t data_count;
    size_t start, end;           /* bytes that the turn is; what follows the end token is still in it */
    bool whole;                  /* a token across the start is the turn's: the opening was found by comparing bytes */
    size_t own_end;              /* what is printed behind it is not of the message itself */
    struct template_span *parts; /* the template's generation blocks in it, in order: these alone are trained; or none */
    size_t part_count;
};

enum turn_result {
    TURN_OK,
    TURN_FAULT, /* `err` says what */
    TURN_RAISED,
    TURN_NO_PLACE,
    TURN_TOOLS_NOT_PRINTED,
    TURN_CALLS_NOT_PRINTED,
    TURN_REASONING_NOT_PRINTED,
    TURN_EMPTY,
    TURN_NO_END,
};

/* Message `index` of a row whose shape fits. `why` has the template's message if it raised. */
enum turn_result turn_render(const struct conversation_format *format, const json_t *row, size_t index, struct turn *turn,
                             struct error *why);
void turn_free(struct turn *turn);

/* What the template prints behind the message once the conversation goes on: with the row's next message, or a result for the
 * turn's first call, or a user's turn: bytes of `out` from *start on. false when it cannot be told. The caller frees `out`. */
bool turn_follow(const struct conversation_format *format, const json_t *row, size_t index, struct template_output *out,
                 size_t *start);

/* Messages [0, count) with the generation prompt. */
bool turn_prompt(const struct conversation_format *format, const json_t *row, size_t count, struct template_output *out,
                 struct error *err);

/* Whether it is white space only. */
bool text_is_blank(const uint8_t *bytes, size_t size);

#endif
