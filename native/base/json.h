/* json.h - the one JSON reader: documents, data, templates, configs.
 *
 * Values are jansson's `json_t`: members keep their order, integers (64 bits) and reals are told apart. What the library
 * would let pass and we do not: duplicate names, depth above the limit, bytes after the value, sizes above the limit.
 */
#ifndef RONDO_BASE_JSON_H
#define RONDO_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

/* Parses one JSON text of any type. The caller owns the result (json_decref). NULL with `err` (code syntax, duplicate or
 * limit; place "line 3, column 7"). `limit` is the greatest size in bytes that is read at all. */
json_t *json_read(const char *bytes, size_t size, size_t limit, struct error *err);

/* The whole file, as json_read; the place starts with the path. */
json_t *json_read_file(const char *path, size_t limit, struct error *err);

/* The text as a name that C compares: NULL where it is no text or holds a zero byte ("a\u0000b"), which would cut it short. */
const char *json_name(const json_t *value);

/* A JSON number, or a decimal as text ("0.5": documents hold no reals). `otherwise` when it is neither. */
double json_decimal(const json_t *value, double otherwise);

#endif
