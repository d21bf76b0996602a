/* canonical.h - the one text of a JSON value (RFC 8785), restricted.
 *
 * Allowed are objects with ASCII names, lists, text, integers with |n| <= 2^53 - 1, true, false, null. Other numbers stand as
 * decimal strings, binary32 values as 8 hex digits. So nothing depends on how a library prints a real number.
 */
#ifndef RONDO_DOC_CANONICAL_H
#define RONDO_DOC_CANONICAL_H

#include <jansson.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum { CANONICAL_DEPTH = 32, CANONICAL_SIZE = 1 << 20 };
#define CANONICAL_INTEGER ((int64_t)9007199254740991) /* 2^53 - 1 */

/* Appends the text. Errors: type (a real number, a name that is not ASCII; with the path), range, limit. */
bool canonical_write(const json_t *value, struct buffer *out, struct error *err);

/* The same for a text of at most `most` bytes in place of CANONICAL_SIZE: a record of many machines (runtime/round/rules.h). */
bool canonical_write_most(const json_t *value, size_t most, struct buffer *out, struct error *err);

/* Parses bytes that must be canonical already, byte for byte. The caller owns the result; NULL with `err`. */
json_t *canonical_read(const void *bytes, size_t size, struct error *err);

#endif
