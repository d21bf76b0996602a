/* committee.h - who decides a round, how many of them, and who leads.
 *
 *     n members, threshold q > n/2;  f = min(2q-n-1, n-q) liars tolerated in every respect;  t = f+1 <= q-f
 *
 * Round 0 and the rounds after the last: the spec's panel less the convicted. Rounds 1..N: `size` of the panel that are
 * enrolled and not convicted, drawn by the seed without replacement, each seat among those left by their weights (1 where the panel gives
 * none); all where there are no more. With exactly `size` members the spec's threshold holds, else n - floor((n-1)/3).
 */
#ifndef RONDO_ROUND_COMMITTEE_H
#define RONDO_ROUND_COMMITTEE_H

#include "runtime/crypto/hash.h"
#include "runtime/round/rules.h"

struct quorum {
    int64_t n, q, f, t;
};

struct quorum quorum_of(int64_t n, int64_t q);

/* The members' DIDs in leader order: shuffled by the seed, in spec order in round 0 (`previous` and `seed` NULL). New
 * reference. leader(v) = committee[v mod n]. */
json_t *committee_draw(const struct rules *rules, const json_t *previous, int64_t round, const struct hash *seed);
struct quorum committee_quorum(const struct rules *rules, const json_t *committee);
const char *committee_leader(const json_t *committee, int64_t view); /* borrowed */

#endif
