/* lock.h - the deposit of one machine for one run (runtime/round/deposit.h): locked once, taken back when nobody else did.
 *
 *     the run's last escrow ── panel, threshold, expiry ──> an escrow of the machine's own account, of trust.stake or trust.deposit
 */
#ifndef RONDO_ROLE_LOCK_H
#define RONDO_ROLE_LOCK_H

#include <jansson.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/role/books.h"
#include "runtime/role/course.h"

/* Locks what the spec asks of this role, unless it is locked already. { run, did, role, account, amount ("0": nothing is asked), expiry, locked: whether
 * this call did it, status }; new reference. NULL with `err`: refused (too small a balance, an escrow that is spent), missing (the run is not funded yet). */
json_t *lock_deposit(struct books *books, const struct course *course, const struct key_pair *keys, const char *role,
                     struct error *err);

/* Takes back what the panel gave to nobody, once it has expired: { run, did, amount, refunded }. */
json_t *lock_refund(struct books *books, const struct course *course, const struct key_pair *keys, struct error *err);

#endif
