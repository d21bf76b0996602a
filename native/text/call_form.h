/* call_form.h - how a chat template prints tool calls, learned from what it prints.
 *
 *     the conversation ── and a turn that calls NAME with {"PROBE": 1} ──> the turn's trained text (conversation.h)
 *         <tool_call>{"name": "NAME", "arguments": {"PROBE": 1}}</tool_call><|im_end|>
 *         └── head ──────────┘    └─── middle ────┘└──────────┘└─── tail ──────────┘
 *     a turn of two calls: between the first one's arguments and the second one's name stands `again`
 *     a turn of text and a call: between the two stands `later`, where the call is printed as above
 *
 * The last token, which ends the turn, is left out of the tail: whoever draws tokens knows it. Where the template writes two calls
 * otherwise than one, or refuses to, `again` is empty.
 */
#ifndef RONDO_TEXT_CALL_FORM_H
#define RONDO_TEXT_CALL_FORM_H

#include "native/text/call_automaton.h"
#include "native/text/conversation.h"

/* `conversation` is what an assistant's turn may follow: messages and tools. Free with call_form_free, after a failure too. Errors: unsupported (no
 * calls, calls whose arguments are no JSON, or that tool_calls_read does not read back), those of the template. */
bool call_form_read(struct call_form *form, const struct conversation_format *format, const json_t *conversation,
                    struct error *err);
void call_form_free(struct call_form *form);

#endif
