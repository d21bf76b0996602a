/* deal.h - which trainer gets which shard, where trainers state what they take or shards belong to regions.
 *
 *     shards in the order of the seed ── classes: who may take them ──> each class by capacity ──> in turn to its takers
 *
 * Shares go by largest remainder: of N shards a taker with capacity c of C in all gets floor(N c / C), and the rest go one each to the
 * largest remainders, equal ones in the order of the takers. A class that only some may take is dealt first, those with the fewest takers
 * before others, and brings its takers as near to their shares of all that was dealt to them as it can; what is dealt later makes up for
 * it. Where all capacities are equal and no shard is bound, it is the deal in turn of assignment.h.
 */
#ifndef RONDO_ROUND_DEAL_H
#define RONDO_ROUND_DEAL_H

#include <stddef.h>
#include <stdint.h>

#define DEAL_NOBODY UINT32_MAX

struct deal_taker {
    int64_t capacity; /* from 1 */
    uint32_t region;  /* one bit; 0: none that the spec names */
};

struct deal_shard {
    uint32_t only;   /* bits of the regions that it may not leave; 0: anyone may have it */
    uint32_t prefer; /* bits of those whose takers get it first, up to their share */
};

/* `takers` in the order of turns. owner[k] is the taker of shards[k], DEAL_NOBODY where none may have it. */
void deal_shards(const struct deal_taker *takers, size_t taker_count, const struct deal_shard *shards, size_t shard_count,
                 uint32_t *owner);

/* shares[i] of `whole` by largest remainder; weights are not negative and have a sum above 0, `whole` and the weights are below 2^31. */
void deal_shares(int64_t whole, const int64_t *weights, size_t count, int64_t *shares);

#endif
