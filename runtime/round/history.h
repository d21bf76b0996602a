/* history.h - a whole run, verified from its records, documents and the ledger's blocks: what `audit` and `sync` rest on.
 *
 *     for each round: certificate and signatures, link, seed block, committee, received documents, items, and the record itself,
 *     recomputed by record_of: assignment, weights, membership, convictions, settlement and payouts with it
 *
 * The first thing that does not fit is told with its round and document.
 */
#ifndef RONDO_ROUND_HISTORY_H
#define RONDO_ROUND_HISTORY_H

#include "runtime/round/machine.h"
#include "runtime/round/rules.h"

/* Where the evidence is. Each gives a new reference, or NULL when it is not there.
 *   document  { type, payload } of a document whose signature the source verified and whose payload has this CID
 *   block     { height, hash, entropy } of the ledger at this height
 *   result    { code, result } of a plan or fold request, computed anew; the function may be NULL: then what the records claim is
 *             taken, and states and plans are not checked */
struct history_source {
    void *context;
    json_t *(*document)(void *context, const char *cid);
    json_t *(*block)(void *context, int64_t height);
    json_t *(*result)(void *context, const json_t *request);
};

/* One decided round after `previous` (NULL for round 0). Errors: those of final_check; missing and mismatch with the document or
 * member of the record. */
bool history_check_round(const struct rules *rules, const json_t *previous, const json_t *final, const struct signing *signing,
                         const struct history_source *source, struct error *err);

/* The record alone, computed again from what it names; signatures and the block are not looked at, `source->block` is not called. */
bool history_recompute(const struct rules *rules, const json_t *previous, const json_t *record,
                       const struct history_source *source, struct error *err);

/* `finals`: [ { record, certificate } ] from round 0 on. `*checked` counts the rounds that hold. */
bool history_check(const struct rules *rules, const json_t *finals, const struct signing *signing,
                   const struct history_source *source, int64_t *checked, struct error *err);

#endif
