/* preference.h - a row of preferences to two examples: the completion that was preferred, then the one that was refused.
 *
 *     {"prompt": "text", "chosen": "text", "rejected": "text"}              as they stand; prompt and completion are tokenised alone
 *     {"messages": [...], "tools": [...], "chosen": M, "rejected": M}       M: the assistant's turn: a message, or its text
 *
 * `prompt` may be the list of messages, and M a list of one message, as TRL writes them. A turn is rendered and trained as conversation.h
 * says; earlier turns of the assistant are not trained. A pair of which one side gives no example is dropped whole.
 */
#ifndef RONDO_TEXT_PREFERENCE_H
#define RONDO_TEXT_PREFERENCE_H

#include "native/text/conversation.h"

/* Appends both sides, or none and counts why. false with `err` on a fault: "chosen", "messages[1].role". */
bool preference_examples(const struct conversation_format *format, const json_t *row, uint32_t line, struct examples *out,
                         struct conversation_counts *counts, struct error *err);

#endif
