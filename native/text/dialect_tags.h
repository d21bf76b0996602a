/* dialect_tags.h - tool calls and tools written into text, as Hermes has them. */
#ifndef RONDO_TEXT_DIALECT_TAGS_H
#define RONDO_TEXT_DIALECT_TAGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

/* What stands between the next <tag> and </tag> from *at on; *at moves behind it. false: there is none, or it is not closed, which
 * `err` tells. What stands before the tag is appended to `outside` (may be NULL). */
bool tag_next(const char **at, const char *tag, const char **start, size_t *size, struct buffer *outside, struct error *err);

/* JSON, or the same in Python's notation (single quotes, True, False, None). A new reference. */
json_t *loose_json(const char *text, size_t size, struct error *err);

/* A list of values, one value, or values one a line: a list, a new reference. */
json_t *loose_list(const char *text, size_t size, struct error *err);

/* {"name": ..., "arguments": ...} or a list of these to tool_calls; definitions of functions to tools. Appended to `out`. */
bool calls_add(json_t *out, json_t *value, struct error *err);
bool tools_add(json_t *out, json_t *value, struct error *err);

#endif
