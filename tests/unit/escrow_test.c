/* escrow_test.c - the rules of the escrow one by one, then at random against a short reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/ledger/escrow.h"
#include "runtime/ledger/local.h"
#include "tests/fixture/fixture.h"

#define MEMBERS 4
#define NOW     1000

struct world {
    struct release_domain domain;
    struct escrow_book *book;
    struct account_key keys[MEMBERS]; /* ascending by address */
    struct address members[MEMBERS];
    struct address sponsor, worker, other;
    struct error err;
};

static struct address name(uint8_t number)
{
    return (struct address){ { [0] = 0xaa, [19] = number } };
}

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->domain = ledger_local_domain(31337);
    w->book = escrow_book_new(&w->domain);
    for (int i = 0; i < MEMBERS; i++) {
        w->keys[i] = fixture_account((uint8_t)(i + 1));
        for (int j = i; j > 0; j--) {
            struct account_key swap = w->keys[j];

            if (address_compare(account_address(&w->keys[j - 1]), account_address(&swap)) < 0)
                break;
            w->keys[j] = w->keys[j - 1];
            w->keys[j - 1] = swap;
        }
    }
    for (int i = 0; i < MEMBERS; i++)
        w->members[i] = account_address(&w->keys[i]);
    w->sponsor = name(1);
    w->worker = name(2);
    w->other = name(3);
    assert_true(escrow_book_endow(w->book, w->sponsor, 10000, &w->err));
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    bool sound = escrow_book_conserves(w->book);

    escrow_book_free(w->book);
    free(w);
    return !sound;
}

/* ---- making transactions ---- */

static struct transaction by(struct world *w, struct address from, enum transaction_method method)
{
    return (
        struct transaction){ .chain = 31337, .nonce = escrow_book_account(w->book, from).nonce, .from = from, .method = method };
}

static struct transaction creation(struct world *w, uint64_t round)
{
    struct transaction t = by(w, w->sponsor, TRANSACTION_CREATE);

    t.create = (struct transaction_create){
        .run = { { 7 } }, .round = round, .amount = 1000, .panel_count = MEMBERS, .threshold = 3, .expiry = NOW + 100
    };
    memcpy(t.create.panel, w->members, sizeof w->members);
    return t;
}

static struct hash id_of(struct world *w, uint64_t round)
{
    return ledger_escrow_id(&w->domain, w->sponsor, release_round_ref((struct hash){ { 7 } }, round));
}

/* Signed by the members whose bits are set, in ascending order. */
static void sign(struct world *w, struct transaction *t, unsigned members)
{
    struct hash digest;

    t->release.signature_count = 0;
    if (!transaction_release_digest(&w->domain, &t->release, &digest, NULL))
        return;
    for (int i = 0; i < MEMBERS; i++)
        if (members >> i & 1)
            t->release.signatures[t->release.signature_count++] = account_sign(&w->keys[i], digest);
}

static struct transaction paying(struct world *w, uint64_t round, unsigned members)
{
    struct transaction t = by(w, w->other, TRANSACTION_RELEASE);

    t.release = (struct transaction_release){ .id = id_of(w, round),
                                              .record = { { 9 } },
                                              .payee_count = 2,
                                              .deadline = NOW + 100,
                                              .payees = { w->worker, w->other },
                                              .amounts = { 600, 300 } };
    sign(w, &t, members);
    return t;
}

static struct transaction refunding(struct world *w, uint64_t round)
{
    struct transaction t = by(w, w->other, TRANSACTION_REFUND);

    t.refund = id_of(w, round);
    return t;
}

static bool apply(struct world *w, struct transaction t, uint64_t now)
{
    bool done;

    t.nonce = escrow_book_account(w->book, t.from).nonce;
    done = escrow_book_apply(w->book, &t, now - NOW + 1, now, &w->err);
    assert_true(escrow_book_conserves(w->book));
    return done;
}

static void assert_refused(struct world *w, struct transaction t, uint64_t now, enum error_code code)
{
    struct ledger_account before = escrow_book_account(w->book, w->sponsor), worker = escrow_book_account(w->book, w->worker);
    size_t events = escrow_book_event_count(w->book);

    assert_false(apply(w, t, now));
    assert_int_equal(w->err.code, code);
    assert_int_equal(escrow_book_event_count(w->book), events);
    assert_true(escrow_book_account(w->book, w->sponsor).balance == before.balance);
    assert_true(escrow_book_account(w->book, w->sponsor).credit == before.credit);
    assert_true(escrow_book_account(w->book, w->worker).credit == worker.credit);
}

/* ---- the rules ---- */

static void money_goes_from_balance_to_escrow_to_credit_to_balance(void **state)
{
    struct world *w = *state;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_true(escrow_book_account(w->book, w->sponsor).balance == 9000);
    assert_true(apply(w, paying(w, 1, 7), NOW + 1));
    assert_true(escrow_book_account(w->book, w->worker).credit == 600);
    assert_true(apply(w, by(w, w->worker, TRANSACTION_WITHDRAW), NOW + 2));
    assert_true(escrow_book_account(w->book, w->worker).balance == 600);
    assert_true(apply(w, refunding(w, 1), NOW + 100));
    assert_true(escrow_book_account(w->book, w->sponsor).credit == 100);

    const struct ledger_escrow *e = escrow_book_find(w->book, id_of(w, 1));

    assert_int_equal(e->status, LEDGER_RELEASED);
    assert_true(e->refunded);
    assert_int_equal(escrow_book_event_count(w->book), 6);
    assert_int_equal(escrow_book_event(w->book, 3)->index, 2);
}

static void creating_needs_money_a_sorted_panel_a_threshold_and_a_future_expiry(void **state)
{
    struct world *w = *state;
    struct transaction t = creation(w, 1);

    t.create.amount = 10001;
    assert_refused(w, t, NOW, ERROR_REFUSED);
    t = creation(w, 1), t.create.amount = 0;
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.panel[1] = t.create.panel[0];
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.panel[0] = (struct address){ 0 };
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.threshold = 5;
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.threshold = 0;
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.expiry = NOW;
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = creation(w, 1), t.create.expiry = UINT64_MAX;
    assert_refused(w, t, NOW, ERROR_RANGE);
}

static void a_sponsor_has_one_escrow_for_a_round(void **state)
{
    struct world *w = *state;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_refused(w, creation(w, 1), NOW, ERROR_DUPLICATE);
    assert_true(apply(w, creation(w, 2), NOW));
}

static void a_release_needs_enough_panel_signatures_in_order_and_over_exactly_this(void **state)
{
    struct world *w = *state;
    struct transaction t;
    struct account_signature swap;
    struct account_key stranger = fixture_account(99);
    struct hash digest;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_refused(w, paying(w, 1, 3), NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), swap = t.release.signatures[0], t.release.signatures[0] = t.release.signatures[1],
    t.release.signatures[1] = swap;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), t.release.signatures[2] = t.release.signatures[1];
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), transaction_release_digest(&w->domain, &t.release, &digest, NULL),
    t.release.signatures[2] = account_sign(&stranger, digest);
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), t.release.amounts[0]++;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), t.release.record.bytes[0]++;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), t.release.deadline++;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 7), t.release.payees[0] = name(77);
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    assert_true(apply(w, paying(w, 1, 14), NOW));
}

static void signatures_of_another_escrow_chain_or_contract_do_not_fit(void **state)
{
    struct world *w = *state;
    struct release_domain own = w->domain;
    struct transaction t;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_true(apply(w, creation(w, 2), NOW));
    t = paying(w, 2, 7), t.release.id = id_of(w, 1);
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 0), w->domain.chain++, sign(w, &t, 7), w->domain = own;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
    t = paying(w, 1, 0), w->domain.contract.bytes[0]++, sign(w, &t, 7), w->domain = own;
    assert_refused(w, t, NOW, ERROR_SIGNATURE);
}

static void payees_are_distinct_real_and_within_the_amount(void **state)
{
    struct world *w = *state;
    struct transaction t;

    assert_true(apply(w, creation(w, 1), NOW));
    t = paying(w, 1, 0), t.release.payees[1] = t.release.payees[0], sign(w, &t, 7);
    assert_refused(w, t, NOW, ERROR_DUPLICATE);
    t = paying(w, 1, 0), t.release.payees[1] = (struct address){ 0 }, sign(w, &t, 7);
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = paying(w, 1, 0), t.release.payees[1] = w->domain.contract, sign(w, &t, 7);
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = paying(w, 1, 0), t.release.amounts[1] = 401, sign(w, &t, 7);
    assert_refused(w, t, NOW, ERROR_RANGE);
    t = paying(w, 1, 0), t.release.amounts[1] = -(unsigned __int128)1, sign(w, &t, 7);
    assert_refused(w, t, NOW, ERROR_RANGE);
}

static void the_same_release_again_changes_nothing_and_another_is_a_conflict(void **state)
{
    struct world *w = *state;
    struct transaction t;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_true(apply(w, paying(w, 1, 7), NOW));

    size_t events = escrow_book_event_count(w->book);

    assert_true(apply(w, paying(w, 1, 14), NOW + 1));
    assert_int_equal(escrow_book_event_count(w->book), events);
    assert_true(escrow_book_account(w->book, w->worker).credit == 600);
    t = paying(w, 1, 0), t.release.amounts[0]--, sign(w, &t, 15);
    assert_refused(w, t, NOW, ERROR_CONFLICT);
    t = paying(w, 1, 0), t.release.record.bytes[31] = 1, sign(w, &t, 15);
    assert_refused(w, t, NOW, ERROR_CONFLICT);
}

static void release_is_strictly_before_expiry_and_refund_at_or_after(void **state)
{
    struct world *w = *state;
    struct transaction t;

    assert_true(apply(w, creation(w, 1), NOW));
    assert_true(apply(w, creation(w, 2), NOW));
    assert_refused(w, refunding(w, 1), NOW + 99, ERROR_REFUSED);
    assert_true(apply(w, paying(w, 2, 7), NOW + 99));
    assert_refused(w, paying(w, 1, 15), NOW + 100, ERROR_REFUSED);
    assert_true(apply(w, refunding(w, 1), NOW + 100));
    assert_refused(w, refunding(w, 1), NOW + 101, ERROR_REFUSED);
    assert_refused(w, paying(w, 1, 15), NOW + 101, ERROR_REFUSED);
    assert_true(apply(w, refunding(w, 2), NOW + 101));
    assert_true(escrow_book_account(w->book, w->sponsor).credit == 1100);
    assert_true(apply(w, creation(w, 3), NOW - 1));
    t = paying(w, 3, 0), t.release.deadline = NOW - 2, sign(w, &t, 7);
    assert_refused(w, t, NOW - 1, ERROR_REFUSED);
}

static void nonces_are_strict_and_used_up_by_failures_too(void **state)
{
    struct world *w = *state;
    struct transaction t = creation(w, 1);

    t.nonce = 1;
    assert_false(escrow_book_apply(w->book, &t, 1, NOW, &w->err));
    assert_int_equal(w->err.code, ERROR_STALE);
    assert_true(apply(w, creation(w, 1), NOW));
    assert_refused(w, creation(w, 1), NOW, ERROR_DUPLICATE);
    assert_int_equal(escrow_book_account(w->book, w->sponsor).nonce, 2);
    t.nonce = 0;
    assert_false(escrow_book_apply(w->book, &t, 1, NOW, &w->err));
    assert_int_equal(w->err.code, ERROR_STALE);
    assert_refused(w, by(w, w->worker, TRANSACTION_WITHDRAW), NOW, ERROR_REFUSED);
    assert_int_equal(escrow_book_account(w->book, w->worker).nonce, 1);
}

static void more_money_than_fits_is_not_issued(void **state)
{
    struct world *w = *state;

    assert_false(escrow_book_endow(w->book, w->worker, -(unsigned __int128)1, &w->err));
    assert_true(escrow_book_account(w->book, w->worker).balance == 0);
}

static void the_root_follows_every_change(void **state)
{
    struct world *w = *state;
    struct hash last = escrow_book_root(w->book), next;

    assert_true(hash_equal(last, escrow_book_root(w->book)));
    assert_true(apply(w, creation(w, 1), NOW));
    next = escrow_book_root(w->book), assert_false(hash_equal(last, next)), last = next;
    assert_true(apply(w, paying(w, 1, 7), NOW));
    next = escrow_book_root(w->book), assert_false(hash_equal(last, next)), last = next;
    assert_true(apply(w, refunding(w, 1), NOW + 100));
    next = escrow_book_root(w->book), assert_false(hash_equal(last, next));
}

/* ---- at random ---- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) % below);
}

/* What must come of a round's escrow, told without any book: the first step that can happen happens. */
struct expectation {
    bool made, released, refunded;
    unsigned __int128 paid;
};

static void random_transactions_conserve_money_and_follow_the_reference(void **state)
{
    struct world *w = *state;
    uint64_t seed = 20260101, now = NOW;
    struct expectation rounds[8] = { 0 };
    unsigned __int128 balance = 10000;

    for (int step = 0; step < 1500; step++) {
        uint64_t round = draw(&seed, 8);
        struct expectation *x = &rounds[round];
        struct transaction t;
        bool done;

        now += draw(&seed, 12) == 0;
        switch (draw(&seed, 4)) {
        case 0:
            t = creation(w, round);
            t.create.amount = 1 + draw(&seed, 3000);
            t.create.expiry = now + 1 + draw(&seed, 60);
            done = !x->made && t.create.amount <= balance;
            assert_int_equal(apply(w, t, now), done);
            if (done)
                x->made = true, balance -= t.create.amount;
            break;
        case 1: {
            const struct ledger_escrow *e = escrow_book_find(w->book, id_of(w, round));
            unsigned members = draw(&seed, 16);
            bool same = x->released && draw(&seed, 2);

            t = paying(w, round, 0);
            t.release.deadline = e ? e->expiry : now;
            t.release.amounts[0] = same ? x->paid : draw(&seed, 2000);
            t.release.amounts[1] = 0;
            sign(w, &t, members);
            done = e && (x->released ? t.release.amounts[0] == x->paid
                                     : !x->refunded && now < e->expiry && t.release.amounts[0] <= e->amount &&
                                           __builtin_popcount(members) >= 3);
            assert_int_equal(apply(w, t, now), done);
            if (done)
                x->released = true, x->paid = t.release.amounts[0];
            break;
        }
        case 2: {
            const struct ledger_escrow *e = escrow_book_find(w->book, id_of(w, round));

            done = e && now >= e->expiry && !x->refunded && x->paid < e->amount;
            assert_int_equal(apply(w, refunding(w, round), now), done);
            x->refunded |= done;
            break;
        }
        default:
            t = by(w, draw(&seed, 2) ? w->sponsor : w->worker, TRANSACTION_WITHDRAW);
            if (address_equal(t.from, w->sponsor))
                balance += escrow_book_account(w->book, w->sponsor).credit;
            apply(w, t, now);
        }
        assert_true(escrow_book_account(w->book, w->sponsor).balance == balance);
    }
}

/* As the ledger of a simulated network does it; what comes as bytes has the limits of a real one. */
static void a_widened_book_takes_a_large_panel_and_pays_many(void **state)
{
    enum { PAID = 1000 };
    struct world *w = *state;
    static struct address payees[PAID];
    static unsigned __int128 amounts[PAID];
    struct transaction c = creation(w, 1), r = paying(w, 1, 7);
    struct buffer bytes = { 0 };

    for (uint8_t i = MEMBERS; i < LEDGER_ROOM; i++)
        c.create.panel[i] = (struct address){ { 0xff, [19] = i } };
    c.create.panel_count = LEDGER_ROOM;
    for (int i = 0; i < PAID; i++) {
        payees[i] = (struct address){ { 0xbb, [18] = (uint8_t)(i >> 8), [19] = (uint8_t)i } };
        amounts[i] = 1;
    }
    r.release.payee_count = PAID;
    r.release.many = &(struct transaction_many){ payees, amounts, r.release.signatures };
    sign(w, &r, 7);
    assert_false(apply(w, c, NOW));
    escrow_book_widen(w->book);
    assert_true(apply(w, c, NOW));
    assert_true(apply(w, r, NOW + 1));
    assert_true(escrow_book_account(w->book, payees[PAID - 1]).credit == 1);
    assert_false(transaction_sign(&c, &w->keys[0], &bytes, &w->err));
    assert_false(transaction_sign(&r, &w->keys[0], &bytes, &w->err));
    buffer_free(&bytes);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(money_goes_from_balance_to_escrow_to_credit_to_balance),
        T(creating_needs_money_a_sorted_panel_a_threshold_and_a_future_expiry),
        T(a_sponsor_has_one_escrow_for_a_round),
        T(a_release_needs_enough_panel_signatures_in_order_and_over_exactly_this),
        T(signatures_of_another_escrow_chain_or_contract_do_not_fit),
        T(payees_are_distinct_real_and_within_the_amount),
        T(the_same_release_again_changes_nothing_and_another_is_a_conflict),
        T(release_is_strictly_before_expiry_and_refund_at_or_after),
        T(nonces_are_strict_and_used_up_by_failures_too),
        T(more_money_than_fits_is_not_issued),
        T(the_root_follows_every_change),
        T(a_widened_book_takes_a_large_panel_and_pays_many),
        T(random_transactions_conserve_money_and_follow_the_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
