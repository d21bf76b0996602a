/* ledger.h - where the money is: one interface for every ledger, asked without blocking.
 *
 *     create(ref, amount, panel, threshold, expiry)            sponsor's balance ── escrow
 *     release(record, payees, amounts, panel signatures)       escrow ── payees' credit      strictly before expiry
 *     refund                                                   escrow ── sponsor's credit    at or after expiry
 *     withdraw                                                 credit ── balance
 *
 * ref = release_round_ref(run, round) = keccak256(abi.encode(bytes32, uint256)).
 * id  = keccak256(abi.encode(chain, contract, sponsor, ref, 0)): a sponsor has one escrow for a ref.
 * Amounts are whole numbers of the smallest unit, `unsigned __int128` here and decimal strings on the wire. Only what is in a
 * final block is told; times are Unix seconds of blocks. Transactions are signed by the caller (transaction.h), who keeps
 * the bytes in a journal before sending them: sending the same bytes again is harmless on every ledger.
 */
#ifndef RONDO_LEDGER_LEDGER_H
#define RONDO_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "runtime/crypto/release.h"

#define LEDGER_PAYEES 64
#define LEDGER_PANEL  32
#define LEDGER_ROOM   64         /* of a panel in memory: the ledger of a simulated network takes that many (escrow_book_widen) */
#define LEDGER_EVENTS 256        /* in one answer */
#define LEDGER_FINAL  UINT64_MAX /* as a height: the newest final block */

struct ledger_status {
    uint64_t chain;
    struct address contract; /* the EIP-712 verifying contract */
    uint64_t height;         /* newest final block */
    uint64_t time;           /* its time */
    uint32_t block_ms;       /* about */
    bool test_entropy;       /* entropy follows from a seed: fit for tests only */
};

struct ledger_block {
    uint64_t height;
    uint64_t time;
    struct hash hash, previous, entropy;
};

enum ledger_escrow_status { LEDGER_FUNDED, LEDGER_RELEASED, LEDGER_REFUNDED };

struct ledger_escrow {
    struct hash id, ref, run;
    uint64_t round;
    struct address sponsor;
    unsigned __int128 amount, released; /* released: sum of what was paid; the rest goes back at expiry */
    struct address panel[LEDGER_ROOM];  /* ascending */
    uint32_t panel_count, threshold;
    uint64_t expiry, created; /* time; height of its block */
    enum ledger_escrow_status status;
    bool refunded;      /* also after a release: the rest went back */
    struct hash record; /* of the released record; zero before */
    struct hash payout; /* release_payout_root; zero before */
};

struct ledger_account {
    unsigned __int128 balance, credit; /* free; paid out and not yet withdrawn */
    uint64_t nonce;                    /* of the next transaction, those waiting counted */
};

enum ledger_event_kind {
    LEDGER_EVENT_CREATED,
    LEDGER_EVENT_RELEASED,
    LEDGER_EVENT_PAID,
    LEDGER_EVENT_REFUNDED,
    LEDGER_EVENT_WITHDRAWN
};

/* created: account = sponsor, amount. released: amount = total, record, payout. paid: account = payee, amount.
 * refunded: account = sponsor, amount. withdrawn: account, amount; ids zero. */
struct ledger_event {
    enum ledger_event_kind kind;
    uint64_t height;
    uint32_t index; /* within the block: (height, index) names the event */
    uint64_t round;
    struct hash id, ref, run, record, payout;
    struct address account;
    unsigned __int128 amount;
};

struct ledger_receipt {
    struct hash id;  /* in the CID of the transaction's payload */
    uint64_t height; /* of its block; 0: still waiting */
    bool final;
    enum error_code code; /* ERROR_NONE, or why it had no effect (conflict, refused, range, ...) */
    char message[160];
};

/* What an answer holds depends on the question; everything is borrowed until the callback returns. */
struct ledger_answer {
    const struct error *error; /* NULL when it worked: network, timeout, missing, syntax, refused, ... */
    const struct ledger_status *status;
    const struct ledger_block *block;
    const struct ledger_escrow *escrow; /* NULL without an error: there is none */
    const struct ledger_account *account;
    const struct ledger_receipt *receipt; /* NULL without an error: unknown transaction */
    const struct ledger_event *events;
    size_t event_count;
    uint64_t next; /* events: where to go on; equals `to` + 1 when all are told */
};

struct ledger_then {
    void (*done)(void *context, const struct ledger_answer *answer);
    void *context;
};

/* A ledger is whatever has these methods; the functions below call them. `done` runs once, from the loop, never from within. */
struct ledger;
struct ledger_methods {
    void (*status)(struct ledger *ledger, struct ledger_then then);
    void (*next)(struct ledger *ledger, uint64_t above, struct ledger_then then);
    void (*block)(struct ledger *ledger, uint64_t height, bool wait, struct ledger_then then);
    void (*escrow)(struct ledger *ledger, struct address sponsor, struct hash ref, struct ledger_then then);
    void (*account)(struct ledger *ledger, struct address address, struct ledger_then then);
    void (*events)(struct ledger *ledger, const struct hash *run, uint64_t from, uint64_t to, struct ledger_then then);
    void (*submit)(struct ledger *ledger, const void *bytes, size_t size, struct ledger_then then);
    void (*receipt)(struct ledger *ledger, struct hash id, struct ledger_then then);
    void (*free)(struct ledger *ledger);
};
struct ledger {
    const struct ledger_methods *methods;
};

void ledger_status(struct ledger *ledger, struct ledger_then then);

/* The status as soon as the newest final block is above this height: the ledger holds the answer back until then. Error `timeout`: not
 * within its patience, ask again. */
void ledger_next(struct ledger *ledger, uint64_t above, struct ledger_then then);

/* A final block by height; LEDGER_FINAL: the newest. Error `missing`: not made yet, ask again after a block's time. */
void ledger_block(struct ledger *ledger, uint64_t height, struct ledger_then then);

/* The block of this height as soon as it is final. Error `timeout`: as above. */
void ledger_await_block(struct ledger *ledger, uint64_t height, struct ledger_then then);

void ledger_escrow(struct ledger *ledger, struct address sponsor, struct hash ref, struct ledger_then then);
void ledger_account(struct ledger *ledger, struct address address, struct ledger_then then);

/* Events of final blocks from..to, LEDGER_FINAL for the newest; at most LEDGER_EVENTS, then `next` tells where to go on. `run`
 * NULL: of every run. */
void ledger_events(struct ledger *ledger, const struct hash *run, uint64_t from, uint64_t to, struct ledger_then then);

/* Sends signed transaction bytes and waits until the receipt is final. The answer's receipt may hold a code: the transaction
 * is in a block and had no effect. An error instead: it was refused (nonce, signature), or nobody answered in time: send the
 * same bytes again. */
void ledger_submit(struct ledger *ledger, const void *bytes, size_t size, struct ledger_then then);

void ledger_receipt(struct ledger *ledger, struct hash id, struct ledger_then then);

/* Drops what is asked and not yet answered. NULL is fine. */
void ledger_free(struct ledger *ledger);

/* The id of the escrow that `sponsor` made for `ref` (release_round_ref). */
struct hash ledger_escrow_id(const struct release_domain *domain, struct address sponsor, struct hash ref);

/* The EIP-712 domain a status tells. */
struct release_domain ledger_domain(const struct ledger_status *status);

/* "created", "released", "paid", "refunded", "withdrawn" */
const char *ledger_event_name(enum ledger_event_kind kind);

#endif
