/* seed.h - the seed of a round and the integer draws made from it.
 *
 *     seed_r  = H("rondo/seed", run as a part, u64 r, entropy as a part)
 *     block i = H("rondo/stream", seed (32), purpose as a part, u64 index, u64 i) = four u64, little-endian
 *
 * A stream is named by its purpose and an index (a shard, a step); streams never share numbers. A draw below n rejects what
 * would favour small numbers, so it is exactly uniform. What training draws inside a step comes from Philox (numerics.md,
 * rule 9) whose key is the first 8 bytes of the seed.
 */
#ifndef RONDO_ROUND_SEED_H
#define RONDO_ROUND_SEED_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/crypto/hash.h"

struct stream {
    struct hash seed;
    const char *purpose; /* borrowed: a literal */
    uint64_t index, block;
    uint64_t words[4];
    unsigned used;
};

/* `run` is the run id (text of the CID). */
struct hash seed_of(const char *run, uint64_t round, const void *entropy, size_t size);

void stream_start(struct stream *stream, struct hash seed, const char *purpose, uint64_t index);
uint64_t stream_next(struct stream *stream);
uint64_t stream_below(struct stream *stream, uint64_t n);                 /* uniform in [0, n); n > 0 */
void stream_shuffle(struct stream *stream, uint32_t *list, size_t count); /* Fisher and Yates, from the last down */

#endif
