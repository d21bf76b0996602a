/* books.h - a ledger as a reader asks it, one question after another: the file of a home, or a URL.
 *
 *     struct books *books = books_of_url("http://127.0.0.1:8645", false, err);
 *     books_block(books, height, &block, err);
 *
 * Each call waits for its answer. Of a file everything was verified when it was opened (runtime/ledger/local.h); a URL is believed
 * as far as its owner is.
 */
#ifndef RONDO_ROLE_BOOKS_H
#define RONDO_ROLE_BOOKS_H

#include "runtime/ledger/local.h"
#include "runtime/ledger/transaction.h"

struct books;

struct books *books_of_file(struct ledger_local *ledger); /* borrowed */
/* NULL with `err` (syntax, refused: plain HTTP to another machine). */
struct books *books_of_url(const char *url, bool plain, struct error *err);
void books_free(struct books *books);

bool books_status(struct books *books, struct ledger_status *status, struct error *err);
bool books_block(struct books *books, uint64_t height, struct ledger_block *block, struct error *err);

/* `*found` false: nobody funded it. */
bool books_escrow(struct books *books, struct address sponsor, struct hash ref, struct ledger_escrow *escrow, bool *found,
                  struct error *err);

/* Every event of a run so far; the caller frees `*events`. */
bool books_events(struct books *books, struct hash run, struct ledger_event **events, size_t *count, struct error *err);

/* By URL only: signs `t` with the account's next nonce, sends it, and waits until it is final. Error when it had no effect: the ledger's
 * reason. `t`: all but chain, nonce and from. */
bool books_send(struct books *books, struct transaction *t, const struct account_key *key, struct error *err);
bool books_account(struct books *books, struct address address, struct ledger_account *account, struct error *err);

#endif
