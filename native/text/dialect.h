/* dialect.h - rows of other shapes to ours ({"messages": [...], "tools": [...]}, conversation.h).
 *
 *     openai     messages as the fine-tuning files have them: content in parts, functions and function_call of before, tools as text
 *     sharegpt   {"conversations": [{"from": "human", "value": "..."}, ...], "system": "...", "tools": "[...]"}; function_call and
 *                observation turns, too
 *     hermes     sharegpt with tags in the text: <tools> in the system's turn, <tool_call> in the assistant's, <tool_response> in the
 *                tool's; JSON, or Python's notation of the same ({'name': 'f', 'arguments': {}})
 *
 * What has no place in ours is dropped: ids, scores, images' descriptions. A system turn with <tools> is Hermes' own preamble: the tools
 * are taken from it and the rest is left out, since the run's chat template prints one.
 */
#ifndef RONDO_TEXT_DIALECT_H
#define RONDO_TEXT_DIALECT_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/error.h"

enum dialect { DIALECT_AUTO, DIALECT_OPENAI, DIALECT_SHAREGPT, DIALECT_HERMES, DIALECTS };

const char *dialect_name(enum dialect shape); /* "openai" */
bool dialect_parse(const char *name, enum dialect *shape);

/* A row in our shape, checked as `data check` checks it; a new reference. NULL with `err`: the field as the source calls it
 * ("conversations[2].value"), or as it is called after the conversion ("messages[2].role"). DIALECT_AUTO looks at the row's own fields. */
json_t *dialect_convert(const json_t *row, enum dialect shape, struct error *err);

#endif
