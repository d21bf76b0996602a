/* replica.h - the replicated tier: one part of a round is given to several machines, and counts by what they agree on.
 *
 *     seed r ──> groups of machines, no two of one account ──> each trains the same shards from the same draws
 *     each machine:   commitment (digest over all of its contribution, key and salt in it) ──> q `closed` that list it ──> contribution
 *     record r:       the result that at least two gave, and more than half of those that were right, is "ok": once in the fold, each of
 *                     them paid. Others "differs": neither used nor paid, and the whole group is replayed when seed r+1 is known. Who has no
 *                     partner is "alone": neither used nor paid.
 *
 * A commitment names a contribution that only its signer could sign, so nobody can commit to another's work before it is shown; and it is
 * shown only when no other commitment can count any more (docs/protocol.md, section 6).
 */
#ifndef RONDO_ROUND_REPLICA_H
#define RONDO_ROUND_REPLICA_H

#include <jansson.h>

#include "runtime/crypto/hash.h"
#include "runtime/doc/cid.h"
#include "runtime/round/rules.h"

/* Results that must be taken of a machine before a group may depend on it: of one that came when the run had begun, and of all of an
 * account of which one was away or is convicted (`trial` of members: membership.h). So an account that stays away can cost others one round in
 * REPLICA_TRIAL + 1 at most, whatever it has in every group. */
enum { REPLICA_TRIAL = 4 };

/* Deals the shards in `order` to groups of at least `replicas` of the trainers in `parts` ({ did, shards }), taken in the order `turns`.
 * The members of `previous` tell their accounts. Each part of a group gets the same `shards` and `group`, the smallest of its DIDs; who is left
 * over gets none. As many groups as can be of those whose trial is over, each with a shard at least; where that is fewer than the round's
 * quorum, of those that have least of it before them. All others come in beside them, in turn. */
void replica_deal(const struct rules *rules, const json_t *previous, json_t *parts, const uint32_t *turns, const uint32_t *order);

/* The commitment that belongs to a contribution: { version, run, round, signer, digest }. New reference; its content id. */
json_t *replica_commitment(const json_t *contribution);
bool replica_commitment_cid(const json_t *contribution, char cid[CID_TEXT]);

/* What machines of one group must agree on: just what a replay decides. Whoever differs in anything else, in its count of tokens or in a value
 * of a probe, could be convicted by nobody, and would cost its partner every round. */
bool replica_result(const json_t *contribution, char hex[HASH_TEXT]);

/* Sets the codes of a record's contributions ({ did, cid, code, group, ... }) that are "ok" by what their groups agree on: those that are
 * not on trial (`members` of the record before) among themselves, else all. So no number of newcomers outvotes whom they work beside. */
void replica_judge(json_t *list, const json_t *documents, const json_t *members);

/* How many parts are accepted: lines with code "ok", those of one group once. Of any tier. */
size_t replica_accepted(const json_t *list);

/* Whether this line is the first with its code of its group; of a line without a group always. */
bool replica_is_first(const json_t *list, size_t index);

/* Whether the line's group did not agree. */
bool replica_is_disputed(const json_t *list, const json_t *line);

/* The lines of an open entry that were not accepted, and can be disputed all the same. New reference. */
json_t *replica_unaccepted(const json_t *lines);

#endif
