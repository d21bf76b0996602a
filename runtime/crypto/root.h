/* root.h - roots of tensors and of states.
 *
 *     state root = Merkle root over the entries, tensors in ascending order of their names (bytewise)
 *     entry      = H("rondo/tensor", name as a part, u8 type, u8 rank, u64 dims..., u64 count, tensor root)
 *     tensor root = Merkle root over 1 KiB leaves of the little-endian, row-major bytes (merkle.h)
 *
 * A state without tensors has the empty root, H("rondo/leaf", "").
 */
#ifndef RONDO_CRYPTO_ROOT_H
#define RONDO_CRYPTO_ROOT_H

#include "native/base/error.h"
#include "runtime/crypto/merkle.h"

enum { ROOT_RANK = 8 };

/* The u8 of the layout: never renumbered. */
enum tensor_code { CODE_F32, CODE_I32, CODE_F64, CODE_BF16, CODE_F16, CODE_I8, CODE_U8, CODES };

size_t tensor_code_size(enum tensor_code code);      /* bytes of one element */
const char *tensor_code_name(enum tensor_code code); /* "f32" ... */
bool tensor_code_parse(const char *name, enum tensor_code *out);

/* One named tensor; name and bytes are borrowed. A rank of 0 is a scalar: one element. */
struct named_tensor {
    const char *name;
    enum tensor_code code;
    size_t rank;
    uint64_t dims[ROOT_RANK];
    const void *bytes;
};

/* Elements and bytes; false when a product overflows or the rank is too large. */
bool named_tensor_size(const struct named_tensor *tensor, uint64_t *count, uint64_t *size);

struct hash root_empty(void);
struct hash root_entry(const struct named_tensor *tensor, struct hash tensor_root);

/* The state root of tensors whose roots are known; they stand in order. Aborts without memory. */
struct hash root_of_roots(const struct named_tensor *tensors, const struct hash *roots, size_t count);

/* The state root. Tensors must stand in ascending order of their names, none twice (range, duplicate). The second thread of
 * merkle_of_many takes its share. Errors besides: limit (a tensor too large), memory. */
bool root_of_state(const struct named_tensor *tensors, size_t count, struct hash *out, struct error *err);

#endif
