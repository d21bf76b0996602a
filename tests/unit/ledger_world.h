/* ledger_world.h - an embedded ledger of one chain in a folder of its own, a sponsor who has money, a worker, a panel of one, and the transactions of a
 * round between them. */
#ifndef RONDO_TESTS_LEDGER_WORLD_H
#define RONDO_TESTS_LEDGER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "runtime/ledger/local.h"
#include "tests/fixture/fixture.h"

#define CHAIN 31337
#define NOW   1900000000

struct world {
    char folder[64], path[96];
    struct account_key sponsor, worker, member;
    struct ledger_allocation allocation;
    struct ledger_genesis genesis;
    struct ledger_local *ledger;
    struct error err;
};

static inline int begin(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    fixture_folder(w->folder);
    snprintf(w->path, sizeof w->path, "%s/ledger.db", w->folder);
    w->sponsor = fixture_account(1), w->worker = fixture_account(2), w->member = fixture_account(3);
    w->allocation = (struct ledger_allocation){ account_address(&w->sponsor), 1000000 };
    w->genesis = (struct ledger_genesis){ .chain = CHAIN, .block_ms = 100, .allocations = &w->allocation, .allocation_count = 1 };
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
    *state = w;
    return 0;
}

static inline int end(void **state)
{
    struct world *w = *state;

    ledger_local_close(w->ledger);
    fixture_remove(w->folder);
    free(w);
    return 0;
}

/* ---- transactions ---- */

static inline void sign(struct world *w, struct transaction t, const struct account_key *key, struct buffer *out)
{
    t.chain = CHAIN;
    t.nonce = ledger_local_account(w->ledger, account_address(key)).nonce;
    if (!transaction_sign(&t, key, out, &w->err))
        fail_msg("%s: %s", w->err.place, w->err.message);
}

static inline void creation(struct world *w, uint64_t round, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_CREATE };

    t.create = (struct transaction_create){ .run = { { 7 } },
                                            .round = round,
                                            .amount = 100,
                                            .panel = { account_address(&w->member) },
                                            .panel_count = 1,
                                            .threshold = 1,
                                            .expiry = NOW + 1000 };
    sign(w, t, &w->sponsor, out);
}

static inline void payment(struct world *w, uint64_t round, uint32_t payees, struct buffer *out)
{
    struct transaction t = { .method = TRANSACTION_RELEASE };
    struct release_domain domain = ledger_local_domain(CHAIN);
    struct hash digest;

    t.release =
        (struct transaction_release){ .record = { { 9 } }, .payee_count = payees, .signature_count = 1, .deadline = NOW + 1000 };
    t.release.id = ledger_escrow_id(&domain, account_address(&w->sponsor), release_round_ref((struct hash){ { 7 } }, round));
    for (uint32_t i = 0; i < payees; i++) {
        t.release.payees[i] = (struct address){ { 0xee, (uint8_t)i } };
        t.release.amounts[i] = 1;
    }
    t.release.payees[0] = account_address(&w->worker);
    assert_true(transaction_release_digest(&domain, &t.release, &digest, &w->err));
    t.release.signatures[0] = account_sign(&w->member, digest);
    sign(w, t, &w->worker, out);
}

static inline struct hash add(struct world *w, struct buffer *bytes)
{
    struct hash id;

    assert_true(ledger_local_add(w->ledger, bytes->bytes, bytes->size, &id, &w->err));
    buffer_free(bytes);
    return id;
}

static inline struct hash create(struct world *w, uint64_t round)
{
    struct buffer bytes = { 0 };

    creation(w, round, &bytes);
    return add(w, &bytes);
}

static inline struct hash pay(struct world *w, uint64_t round, uint32_t payees)
{
    struct buffer bytes = { 0 };

    payment(w, round, payees, &bytes);
    return add(w, &bytes);
}

static inline void make(struct world *w)
{
    assert_true(ledger_local_make_block(w->ledger, NOW, &w->err));
}

static inline void reopen(struct world *w)
{
    ledger_local_close(w->ledger);
    w->ledger = ledger_local_open(w->path, &w->genesis, &w->err);
    assert_non_null(w->ledger);
}

static inline unsigned __int128 balance(struct world *w, const struct account_key *key)
{
    return ledger_local_account(w->ledger, account_address(key)).balance;
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
