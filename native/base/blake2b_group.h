/* blake2b_group.h - one group of inputs, as many as there are lanes; internal to native/base. */
#ifndef RONDO_BASE_BLAKE2B_GROUP_H
#define RONDO_BASE_BLAKE2B_GROUP_H

#include "native/base/blake2b.h"

/* Digests of the inputs at bytes[0], bytes[1], ..., of `size` bytes each. Everything is read before `out` is written. The next group's
 * inputs lie `ahead` bytes further: they are fetched while this group is hashed. */
typedef void blake2b_group(const uint8_t *personal, const uint8_t *const *bytes, size_t size, size_t ahead,
                           uint8_t (*out)[BLAKE2B_SIZE]);

blake2b_group blake2b_group_2, blake2b_group_avx2, blake2b_group_avx512;

#endif
