/* frame.h - what node and worker say to each other: one JSON value and some bytes at a time.
 *
 *     u32 size of JSON | u64 size of bytes | JSON | bytes         little-endian, over a pipe
 *
 * The node is trusted by the worker; the worker works on hostile models, data and scripts, so the node reads its frames with limits.
 */
#ifndef RONDO_WORKER_FRAME_H
#define RONDO_WORKER_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum { FRAME_HEAD = 12, FRAME_JSON_MOST = 64 << 20 };
#define FRAME_BYTES_MOST (UINT64_C(8) << 30)

/* Appends one frame. `value` is borrowed; `bytes` may be NULL with size 0. */
void frame_add(struct buffer *out, const json_t *value, const void *bytes, size_t size);

/* Takes the first whole frame out of `in` (bytes after it stay). Returns false with err->code NONE when more bytes are needed, with a
 * code when they are no frame. On true the caller owns *value and *bytes. */
bool frame_take(struct buffer *in, json_t **value, struct buffer *bytes, struct error *err);

/* Blocking, on descriptors; false at the end of the input (code none) or on a fault. */
bool frame_read(int fd, json_t **value, struct buffer *bytes, struct error *err);
bool frame_write(int fd, const json_t *value, const void *bytes, size_t size, struct error *err);

#endif
