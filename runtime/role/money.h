/* money.h - what a key's owner does with money on a ledger between runs: take back what expired, and draw what was paid.
 *
 *     refund     escrow past its expiry ──> the sponsor's credit       anybody may send it
 *     withdraw   credit ──> balance                                    the owner alone
 */
#ifndef RONDO_ROLE_MONEY_H
#define RONDO_ROLE_MONEY_H

#include <jansson.h>

#include "runtime/crypto/keyfile.h"
#include "runtime/doc/run_spec.h"
#include "runtime/role/books.h"

/* Sends a refund for every escrow of the run that is past its expiry and not yet refunded, paid for with `key`'s nonces.
 * { run, refunded: [ round ], amount, waiting: [ { round, expiry } ] }; waiting: not expired yet. New reference; NULL with `err`. */
json_t *money_refund(struct books *books, const struct run_spec *spec, const struct account_key *key, struct error *err);

/* { account, withdrawn, balance }; nothing is sent when there is no credit. New reference; NULL with `err`. */
json_t *money_withdraw(struct books *books, const struct account_key *key, struct error *err);

#endif
