/* transaction.h - what moves money: a document signed by an account.
 *
 *     envelope (DSSE), payloadType application/vnd.rondo.transaction+json, keyid eip155:0x...
 *     payload  { "arguments": {..}, "chain": 31337, "method": "create", "nonce": 4,
 *                "signer": "eip155:0x...", "version": 1 }
 *
 *     create    { "amount": "1000", "asset": "native", "expiry": 1900000000, "panel": ["0x..", ..], "round": 3, "run": "<64 hex>",
 *                 "threshold": 3 }
 *     release   { "amounts": ["10", ..], "deadline": 1900000000, "id": "<64 hex>", "payees": ["0x..", ..], "record": "<64 hex>",
 *                 "signatures": ["<130 hex>", ..] }
 *     refund    { "id": "<64 hex>" }
 *     withdraw  { }
 *
 * Its id is the CID of the payload: the same payload signed twice is the same transaction. The nonce is the number of transactions
 * of this account before it, no gaps. The bytes made here go into the caller's journal first, then to ledger_submit.
 */
#ifndef RONDO_LEDGER_TRANSACTION_H
#define RONDO_LEDGER_TRANSACTION_H

#include <jansson.h>

#include "native/base/buffer.h"
#include "runtime/ledger/ledger.h"

#define TRANSACTION_LIMIT (64u << 10) /* bytes of an envelope */

enum transaction_method {
    TRANSACTION_CREATE,
    TRANSACTION_RELEASE,
    TRANSACTION_REFUND,
    TRANSACTION_WITHDRAW,
    TRANSACTION_METHODS
};

struct transaction_create {
    struct hash run;
    uint64_t round;
    unsigned __int128 amount;
    struct address panel[LEDGER_ROOM]; /* strictly ascending */
    uint32_t panel_count, threshold;
    uint64_t expiry; /* Unix seconds */
};

/* A release beyond the limits, for a book that was widened: it has no form as bytes. */
struct transaction_many {
    const struct address *payees;
    const unsigned __int128 *amounts;
    const struct account_signature *signatures;
};

struct transaction_release {
    struct hash id, record;
    struct address payees[LEDGER_PAYEES];
    unsigned __int128 amounts[LEDGER_PAYEES];
    uint32_t payee_count;
    uint64_t deadline;
    struct account_signature signatures[LEDGER_PANEL]; /* in ascending order of their signers */
    uint32_t signature_count;
    const struct transaction_many *many; /* borrowed, in place of the three lists; NULL: as it is read from bytes */
};

struct transaction {
    uint64_t chain, nonce;
    struct address from; /* set by transaction_read from the verified signature */
    enum transaction_method method;
    union {
        struct transaction_create create;
        struct transaction_release release;
        struct hash refund; /* escrow id */
    };
};

const char *transaction_method_name(enum transaction_method method);

/* Signs `t` (all but `from`) with the account's key and appends the envelope's bytes. Errors: range, limit, signature. */
bool transaction_sign(const struct transaction *t, const struct account_key *key, struct buffer *out, struct error *err);

/* Reads and verifies an envelope: shape, canonical form, signature. Not the rules of the escrow: those are the ledger's. `id` gets
 * the hash in its CID. Errors: syntax, type, missing, unknown, range, limit, signature. */
bool transaction_read(const void *bytes, size_t size, struct transaction *t, struct hash *id, struct error *err);

/* What the panel signs for this release. False with `err` (range) when the sum of the amounts passes 2^128. */
bool transaction_release_digest(const struct release_domain *domain, const struct transaction_release *release,
                                struct hash *digest, struct error *err);

#endif
