/* why.h - what each round paid a machine, or why it paid nothing, from records and ledger alone.
 *
 *     accepted      trainer: a listed contribution with weight w of W     syncer: its `received` is among those the record lists
 *     refused       with the code most members gave
 *     absent        nothing of it is in the record          not_enrolled    it was not counted in this round
 *     skipped       the round paid nobody, with its reason  convicted       in round r: unpaid from there on
 *     open          the round is not decided here
 */
#ifndef RONDO_ROLE_WHY_H
#define RONDO_ROLE_WHY_H

#include "runtime/role/archive.h"
#include "runtime/role/books.h"

/* { run, did, role, rounds: [ { round, code, reason?, weight?, weights?, amount | null, settled, ledger, rule } ], total, released };
 * amounts are decimal strings, `amount` null until the round is settled; `ledger`: funded, released, refunded, none. `books` NULL:
 * the ledger is not asked, `ledger` is null. New reference; NULL with `err` (unknown: no record names the DID). */
json_t *why_of(struct archive *a, struct books *books, const char *did, struct error *err);

#endif
