/* unpack.h - a compressed data file to its bytes.
 *
 *     1f 8b ...        gzip (RFC 1952), one member after another
 *     28 b5 2f fd ...  Zstandard (RFC 8878), one frame after another, skippable frames too
 *
 * The first bytes tell, never the name. A small file may say that it holds terabytes: what comes out is bounded before it is kept, by
 * the limit given and by UNPACK_RATIO times what went in (UNPACK_FREE bytes are always allowed: small files may repeat themselves).
 */
#ifndef RONDO_TEXT_UNPACK_H
#define RONDO_TEXT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum { UNPACK_RATIO = 256, UNPACK_FREE = 64 << 20 };

enum unpack_form { UNPACK_PLAIN, UNPACK_GZIP, UNPACK_ZSTD };

enum unpack_form unpack_form_of(const void *bytes, size_t size);

/* Appends what the file holds, at most `limit` bytes of it. Errors: syntax (damaged), truncated, limit, memory; UNPACK_PLAIN is not
 * taken. */
bool unpack(const void *bytes, size_t size, size_t limit, struct buffer *out, struct error *err);

#endif
