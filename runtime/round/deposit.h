/* deposit.h - what trainers (`trust.stake`) and challengers (`trust.deposit`) lock for a run, and who gets it.
 *
 *     lock       an escrow of the machine's own account: its amount, the run's panel and threshold, open until the run's last escrow ends
 *     enrol      members list an enrolment "ok" only while that escrow stands
 *     record:    deposits: [ { did, account, amount } ]                         locked, ascending by DID
 *                returned: [ { did, cause, root, total, paid, payees } ]        by this record, ascending by DID
 *
 *       convicted     half, evenly, to those whose disputes it was; the rest to the sponsor: catching oneself never pays
 *       rejected      of whoever challenged for nothing: all to the accused
 *       over          to its owner, by the run's last record
 *
 * An entry of `returned` is released by the panel like a round's payout, under a number beyond all rounds. Who left before the end is given
 * back by the refund when the escrow expires. Without stake and deposit a record has neither list.
 */
#ifndef RONDO_ROUND_DEPOSIT_H
#define RONDO_ROUND_DEPOSIT_H

#include <jansson.h>

#include "runtime/crypto/hash.h"
#include "runtime/round/rules.h"

/* What an enrolment in this role needs, decimal text; NULL: nothing. */
const char *deposit_due(const struct rules *rules, const char *did, const char *role);

/* The `run` under which the DID's escrow is created, for its round 0: no other machine's escrow has it. */
struct hash deposit_run(const char *run, const char *did);

/* Of entry `index` of record `record`'s `returned`. */
enum { DEPOSIT_NUMBERS = 128 };
#define DEPOSIT_FIRST (INT64_C(1) << 32)
static inline int64_t deposit_number(int64_t record, size_t index)
{
    return DEPOSIT_FIRST + record * DEPOSIT_NUMBERS + (int64_t)index;
}

struct deposits_input {
    const struct rules *rules;
    const json_t *previous, *members, *convicted; /* members and convicted: of the record that is made */
    const json_t *upheld, *rejected;              /* struct verdicts (dispute.h) */
    bool over;                                    /* it is the run's last record */
};

/* New references. */
struct deposits {
    json_t *held, *returned;
};
struct deposits deposits_after(const struct deposits_input *in);

#endif
