/* payout.h - who is paid what for one round: a pure function of its open entry in a record, the convicted and the terms.
 *
 *     trainers' pool = floor(per_round * share)     by weight among those accepted in r and not removed
 *     syncers' pool  = floor(per_round * share)     evenly among those whose `received` record r lists and who are not removed
 *     a pool's remainder: one unit each in ascending DID order
 *
 * A DID convicted for round c is removed from every round >= c. A skipped round pays nobody. What nobody earned stays in the
 * escrow and goes back at expiry. Amounts are below 10^28, sums and products in 128 bits.
 */
#ifndef RONDO_ROUND_PAYOUT_H
#define RONDO_ROUND_PAYOUT_H

#include "runtime/round/rules.h"

/* `entry` is one of record.unsettled (record.h). Gives
 *   { round, root, total, paid: [ { did, role, account, amount } ], payees: [ { account, amount } ] }
 * `paid` ascending by DID (a DID once a role), `payees` ascending by account, one line an account: what the release names.
 * root = keccak256(abi.encode(address[], uint256[])) over `payees`, 0x and 64 digits. New reference. */
json_t *payout_of(const struct rules *rules, const json_t *entry, const json_t *convicted);

/* What becomes of a deposit: { did, cause, account, root, total, paid, payees }, of a list as `paid`, whose reference is taken. New reference. */
json_t *payout_line(const char *did, const char *cause, const char *account, json_t *paid);

/* floor(amount * units / 10^9) of a decimal text; the decimal text of an amount (at most 39 digits). */
unsigned __int128 payout_share(const char *amount, int64_t units);
const char *payout_text(unsigned __int128 amount, char text[40]);
unsigned __int128 payout_parse(const char *text);

#endif
