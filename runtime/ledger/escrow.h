/* escrow.h - the books of one ledger as a pure state machine: accounts, credits, escrows. No clock, no file, no network.
 *
 *     issued = Σ balance + Σ credit + Σ (amount - released - refunded)       after every call, whatever it returns
 *
 *     FUNDED ──release (now < expiry, threshold of the panel)──> RELEASED    the same again: no effect; another: conflict
 *        └──────refund (now ≥ expiry)──> REFUNDED     RELEASED ──refund──> RELEASED, refunded    once each
 *
 * Every rule is checked before the first change, so a refused call leaves no trace. Times are Unix seconds of the block that
 * holds the call. The rules are those of a contract on an EVM chain (EIP-712 signatures, low s, v 27 or 28), so that the two can be
 * compared call by call.
 */
#ifndef RONDO_LEDGER_ESCROW_H
#define RONDO_LEDGER_ESCROW_H

#include "native/base/buffer.h"
#include "runtime/ledger/ledger.h"
#include "runtime/ledger/transaction.h"

#define ESCROW_EXPIRY_MAX (400ull * 86400) /* seconds from now: later is refused as a mistake */

struct escrow_book;

struct escrow_book *escrow_book_new(const struct release_domain *domain);
void escrow_book_free(struct escrow_book *book);

/* From now on a panel may have LEDGER_ROOM members and a release any number of payees (transaction_many): for networks in a simulator. */
void escrow_book_widen(struct escrow_book *book);

/* Issues money; only before the first block. Errors: range (more than 2^128 in all). */
bool escrow_book_endow(struct escrow_book *book, struct address account, unsigned __int128 amount, struct error *err);

/* One transaction at (height, now). The nonce must be the account's next; it is used up also when the transaction has no effect.
 * False with `err` = why it has no effect: stale (nonce: then nothing at all changes), refused, range, duplicate, missing, conflict,
 * signature, limit. Events are appended to the book's list. */
bool escrow_book_apply(struct escrow_book *book, const struct transaction *t, uint64_t height, uint64_t now, struct error *err);

/* Would `escrow_book_apply` accept the nonce (with `waiting` of this account's before it)? Errors: stale. */
bool escrow_book_admits(const struct escrow_book *book, const struct transaction *t, uint64_t waiting, struct error *err);

struct ledger_account escrow_book_account(const struct escrow_book *book, struct address address); /* zeros when new */
const struct ledger_escrow *escrow_book_find(const struct escrow_book *book, struct hash id); /* borrowed until apply; NULL */

size_t escrow_book_event_count(const struct escrow_book *book);
const struct ledger_event *escrow_book_event(const struct escrow_book *book, size_t index); /* in the order of (height, index) */

/* True when the equation above holds; checked by the ledger after every transaction. */
bool escrow_book_conserves(const struct escrow_book *book);

/* H("rondo/books", ..) over all accounts in address order and all escrows in id order. Kept until the next change. */
struct hash escrow_book_root(struct escrow_book *book);

#endif
