/* conversation_shape.h - whether a row is a conversation in OpenAI's shape, and where it is not.
 *
 *     messages[] : role (system, developer, user, assistant, tool), content (text, or null beside calls)
 *                  at most one system or developer turn; a user's comes before the first of the assistant
 *                  assistant: weight (0 to 1), reasoning_content (text), tool_calls[] { type "function", function { name, arguments: a JSON object, or its text } }
 *                  tool: content, a result of a call of the assistant turn before
 *     tools[]    : { type "function", function { name, description, parameters } }, or absent or null
 */
#ifndef RONDO_TEXT_CONVERSATION_SHAPE_H
#define RONDO_TEXT_CONVERSATION_SHAPE_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"

/* false with `err`, the place a field: "messages[1].role". */
bool conversation_shape(const json_t *row, struct error *err);

#endif
