/* bitsandbytes.h - weights of 4 bits as bitsandbytes lays them into safetensors files: read as hostile input, and written.
 *
 *     X                                       u8 [ceil(n / 2), 1]    two codes a byte, the first in the high half (any dtype of these bytes)
 *     X.absmax                                f32 scales of 64 values each; with double quantisation u8 codes of them
 *     X.quant_map                             f32 [16]  the values of codes: those of NF4
 *     X.nested_absmax, X.nested_quant_map     f32 a scale for each 256 scales, f32 [256] the values of their codes
 *     X.quant_state.bitsandbytes__nf4         u8, JSON: { "quant_type": "nf4", "blocksize": 64, "dtype", "shape": [...],
 *                                             "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset" }, the last three when nested
 *
 * "dtype" is what bitsandbytes would read them to; here values are binary32 (native/model/nf4.h). Other block sizes and FP4 are refused.
 */
#ifndef RONDO_MODEL_BITSANDBYTES_H
#define RONDO_MODEL_BITSANDBYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"
#include "native/tensor/tensor.h"

/* One such weight. Its parts are borrowed from the file. */
struct bitsandbytes {
    struct tensor
        view; /* nf4 or nf4_dq (nf4 where the values of the codes of scales are others than the table's); no data; the name is borrowed */
    const uint8_t *codes, *absmax, *nested, *map; /* nested, map: NULL without double quantisation */
    float offset;
};

struct bitsandbytes_set {
    struct bitsandbytes *items; /* owned, `count` */
    size_t count;
};

/* Among `tensors` (*count of them, names borrowed), the parts of each weight become that one weight, without data; the rest stay. Free the set
 * with bitsandbytes_free, after a failure too. Errors (place: the weight): missing (a part), shape, type, syntax, unsupported, non_finite. */
bool bitsandbytes_fold(struct tensor *tensors, size_t *count, struct bitsandbytes_set *set, struct error *err);
void bitsandbytes_free(struct bitsandbytes_set *set);

/* The weight of that name; NULL when it is none of the set. */
const struct bitsandbytes *bitsandbytes_find(const struct bitsandbytes_set *set, const char *name);

/* The weight as blocks: of its own type, or of nf4 whatever its own, in tensor_measure's bytes. */
void bitsandbytes_pack(const struct bitsandbytes *b, enum tensor_type type, void *out);

enum { BITSANDBYTES_PARTS = 6 };

/* The parts of a weight `t` of type nf4 or nf4_dq, with data: new tensors (tensor_free) in parts[0 .. *count). */
bool bitsandbytes_split(const struct tensor *t, struct tensor parts[BITSANDBYTES_PARTS], size_t *count, struct error *err);

#endif
