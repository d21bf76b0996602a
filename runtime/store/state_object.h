/* state_object.h - a state as bytes: named tensors and their data.
 *
 *     "RNDS" | u32 version 1 | u64 header size | header: canonical JSON | zeros to 64 | data
 *     header { "tensors": [ { "name", "offset", "shape": [..], "type": "f32" }, ... ], "version": 1 }
 *
 * Tensors stand in ascending order of their names. Offsets count from the start of the data; each tensor starts at the next
 * multiple of 64, zeros between. So one state has one text, and the data can be used where it lies.
 */
#ifndef RONDO_STORE_STATE_OBJECT_H
#define RONDO_STORE_STATE_OBJECT_H

#include "native/base/buffer.h"
#include "runtime/crypto/root.h"

#define STATE_MEDIA "application/vnd.rondo.state"
enum { STATE_TENSORS = 65536, STATE_NAME = 256 };

struct state_object {
    struct named_tensor *tensors; /* owned; names and bytes inside it are borrowed, see state_decode */
    size_t count;
    void *header; /* owned: holds the names */
};

/* Appends the bytes. Tensors must ascend by name. */
bool state_encode(const struct named_tensor *tensors, size_t count, struct buffer *out, struct error *err);

/* From hostile bytes. Tensor bytes point into `bytes`, which must outlive `out`. */
bool state_decode(const void *bytes, size_t size, struct state_object *out, struct error *err);
void state_object_free(struct state_object *state);

/* NULL when there is none. */
const struct named_tensor *state_find(const struct state_object *state, const char *name);

#endif
