/* Every round's escrow and what was released from it, against the record that settled the round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/role/audit_internal.h"
#include "runtime/role/terms.h"
#include "runtime/round/deposit.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

struct paying {
    struct audit *u;
    struct ledger_event *events;
    size_t count;
    int64_t round;
    struct ledger_escrow escrow;
    const json_t *payout; /* of the record that settled the round; NULL: not settled yet */
    struct error *err;
};

static bool find(struct paying *p, struct error *fault)
{
    error_at(fault, "round %lld: escrow", (long long)p->round);
    if (audit_find(p->u->findings, fault))
        return true;
    *p->err = *fault;
    return false;
}

static const json_t *payout_in(const struct audit *u, int64_t round)
{
    for (int64_t later = round; archive_record(&u->a, later); later++) {
        json_t *each;
        size_t index;

        json_array_foreach(json_object_get(archive_record(&u->a, later), "settled"), index, each)
        {
            if (value_integer(each, "round") == round)
                return each;
        }
    }
    return NULL;
}

/* The release names record r, the payout's root and total. */
static bool release_fits(struct paying *p)
{
    const char *root = value_text(p->payout, "root");
    struct hash record, payout;
    char cid[CID_TEXT];

    return value_cid(archive_record(&p->u->a, p->round), cid) && cid_parse(cid, &record, NULL) &&
           hash_equal(record, p->escrow.record) && strlen(root) == 66 && hash_parse(root + 2, &payout) &&
           hash_equal(payout, p->escrow.payout) && p->escrow.released == payout_parse(value_text(p->payout, "total"));
}

/* Σ of what the ledger's events paid from this escrow to an account. */
static unsigned __int128 paid_to(const struct paying *p, struct address account, size_t *times)
{
    unsigned __int128 sum = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->events[i].kind == LEDGER_EVENT_PAID && hash_equal(p->events[i].id, p->escrow.id) &&
            address_equal(p->events[i].account, account)) {
            sum += p->events[i].amount;
            ++*times;
        }
    return sum;
}

static size_t payments(const struct paying *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->count; i++)
        count += p->events[i].kind == LEDGER_EVENT_PAID && hash_equal(p->events[i].id, p->escrow.id);
    return count;
}

static bool payees_fit(struct paying *p, struct error *fault)
{
    json_t *payees = json_object_get(p->payout, "payees"), *payee;
    size_t index;
    unsigned __int128 sum = 0;

    json_array_foreach(payees, index, payee)
    {
        const char *text = value_text(payee, "account");
        struct address account;
        unsigned __int128 due = payout_parse(value_text(payee, "amount"));
        size_t times = 0;

        if (!address_parse(text, &account) || paid_to(p, account, &times) != due || times != 1)
            return error_set(fault, ERROR_MISMATCH, NULL, "%s is due %s, the ledger's events say otherwise", text,
                             value_text(payee, "amount"));
        sum += due;
    }
    if (sum != p->escrow.released || sum > p->escrow.amount)
        return error_set(fault, ERROR_MISMATCH, NULL, "the payees' sum is not what was released");
    if (payments(p) != json_array_size(payees))
        return error_set(fault, ERROR_MISMATCH, NULL, "the ledger paid %zu accounts, the record names %zu", payments(p),
                         json_array_size(payees));
    return true;
}

static bool check_released(struct paying *p)
{
    struct error fault = { 0 };

    if (!p->payout)
        error_set(&fault, ERROR_MISMATCH, NULL, "it is released, but no record settles the round");
    else if (!release_fits(p))
        error_set(&fault, ERROR_MISMATCH, NULL,
                  "what was released is not what the record settles: record, payout or total differ");
    else if (payees_fit(p, &fault)) {
        audit_count(p->u->checked, "payouts", 1);
        return true;
    }
    return find(p, &fault);
}

static bool check_escrow(struct paying *p)
{
    struct error fault = { 0 };
    bool due = p->payout && json_array_size(json_object_get(p->payout, "payees")) > 0;

    if (!terms_met(&p->u->a.course.spec, &p->escrow)) {
        error_set(&fault, ERROR_MISMATCH, NULL, "amount, panel or threshold are not those of the spec");
        return find(p, &fault);
    }
    if (p->escrow.status == LEDGER_RELEASED)
        return check_released(p);
    if (p->escrow.status == LEDGER_REFUNDED && due) {
        error_set(&fault, ERROR_MISMATCH, NULL, "it went back to the sponsor, though a record settles the round for %zu payees",
                  json_array_size(json_object_get(p->payout, "payees")));
        return find(p, &fault);
    }
    audit_count(p->u->checked, due ? "waiting" : "unpaid", 1);
    return true;
}

static bool check_round(struct paying *p)
{
    const struct audit *u = p->u;
    struct hash ref = release_round_ref(u->a.course.id, (uint64_t)p->round);
    struct error fault = { 0 };
    bool found;

    if (!books_escrow(u->books, u->a.course.spec.account, ref, &p->escrow, &found, p->err))
        return false;
    audit_count(u->checked, "escrows", 1);
    if (found)
        return check_escrow(p);
    error_set(&fault, ERROR_MISMATCH, NULL, "the ledger has no escrow for this round");
    return find(p, &fault);
}

/* What became of a deposit that a record returns: on the ledger it is released just so, or still waits. */
static bool check_deposit(struct paying *p, const json_t *record, const json_t *payout)
{
    struct audit *u = p->u;
    const char *did = value_text(payout, "did"), *root = value_text(payout, "root");
    struct error fault = { 0 };
    struct address owner;
    struct hash id, wanted;
    char cid[CID_TEXT];
    bool found = false, good;

    value_cid(record, cid);
    if (!address_parse(value_text(payout, "account"), &owner) || !cid_parse(cid, &id, p->err) || strlen(root) != 66 ||
        !hash_parse(root + 2, &wanted))
        return error_set(p->err, ERROR_MISMATCH, NULL, "a returned deposit has no account or root");
    if (!books_escrow(u->books, owner, release_round_ref(deposit_run(u->a.course.run, did), 0), &p->escrow, &found, p->err))
        return false;
    audit_count(u->checked, "deposits", 1);
    good = found &&
           (p->escrow.status == LEDGER_FUNDED ||
            (p->escrow.status == LEDGER_RELEASED && hash_equal(p->escrow.record, id) && hash_equal(p->escrow.payout, wanted)));
    if (good)
        return true;
    error_set(&fault, ERROR_MISMATCH, NULL, "the deposit of %s is not released as record %lld returns it (%s)", did,
              (long long)value_integer(record, "round"), value_text(payout, "cause"));
    return find(p, &fault);
}

static bool check_deposits(struct paying *p)
{
    const json_t *record;
    json_t *payout;
    size_t i;

    for (int64_t round = 1; (record = archive_record(&p->u->a, round)); round++)
        json_array_foreach(json_object_get(record, "returned"), i, payout)
        {
            p->round = round;
            if (!check_deposit(p, record, payout))
                return false;
        }
    return true;
}

bool audit_money(struct audit *u, struct error *err)
{
    struct paying p = { .u = u, .err = err };
    bool ok = books_events(u->books, u->a.course.id, &p.events, &p.count, err);

    audit_count(u->checked, "payouts", 0);
    for (p.round = 1; ok && p.round <= (int64_t)u->a.course.spec.rounds; p.round++) {
        audit_tell(u, "payouts", p.round, (int64_t)u->a.course.spec.rounds);
        p.payout = payout_in(u, p.round);
        ok = check_round(&p);
    }
    ok = ok && check_deposits(&p);
    free(p.events);
    return ok;
}
