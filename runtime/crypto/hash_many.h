/* hash_many.h - BLAKE2b-256 of several inputs of one size at once: four lanes of a vector register, one input each.
 *
 * A state is hashed after every training step, leaf by leaf; leaves are independent, so four of them share the work of one.
 * The results are those of hash_typed, on every machine.
 */
#ifndef RONDO_CRYPTO_HASH_MANY_H
#define RONDO_CRYPTO_HASH_MANY_H

#include "runtime/crypto/hash.h"

/* out[i] = hash_typed(type, bytes + i * size, size) for i below count. `out` and `bytes` may not overlap, unless
 * out[i] lies where input i / 2 was, as when a level of a tree is made of the level below. */
void hash_many(const char *type, const void *bytes, size_t size, size_t count, struct hash *out);

#endif
