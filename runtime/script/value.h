/* value.h - how a value crosses the pipe between host and child: a tag, then its bytes, nothing optional.
 *
 *     nil 0 | false 1 | true 2 | number 3 f64 | text 4 u32 bytes | list 5 u32 values | map 6 u32 (text value)...
 *
 * Little-endian. The child's answer is hostile: depth and counts are limited before anything is allocated. There is no integer
 * type because Lua 5.1 has none; an integer is a number without a fraction below 2^53, on both sides.
 */
#ifndef RONDO_SCRIPT_VALUE_H
#define RONDO_SCRIPT_VALUE_H

#include <jansson.h>
#include <stdbool.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum value_tag { VALUE_NIL, VALUE_FALSE, VALUE_TRUE, VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_MAP };
enum { VALUE_DEPTH = 64 };

/* Appends `json`. Errors: range (an integer beyond 2^53), limit (depth). */
bool value_write(struct buffer *out, const json_t *json, struct error *err);

/* Reads one value; the caller owns it. Numbers become JSON integers, or decimal strings where they have a fraction or are
 * beyond 2^53 ("inf", "-inf"). NULL with `err`: truncated, limit, syntax (an unknown tag), non_finite (NaN), script (what a script can
 * bring about: text that is not UTF-8, a name that stands twice or holds a zero). */
json_t *value_read(struct reader *in, struct error *err);

/* The shortest decimal text that reads back to the same binary64: "0.7", "1e-9", "-0", "inf", "nan". Needs 32 bytes; returns `text`.
 * Plain notation between 1e-6 and 1e21, as ECMAScript writes numbers. */
char *value_number_text(double x, char text[32]);

#endif
