#include "runtime/role/money.h"

/* The part of an escrow that nobody was paid. */
static unsigned __int128 rest_of(const struct ledger_escrow *e)
{
    return e->refunded || e->status == LEDGER_REFUNDED ? 0 : e->amount - e->released;
}

struct refunding {
    struct books *books;
    const struct run_spec *spec;
    const struct account_key *key;
    uint64_t now;
    json_t *refunded, *waiting;
    unsigned __int128 amount;
};

static bool refund_round(struct refunding *r, uint32_t round, struct error *err)
{
    struct hash ref = release_round_ref(r->spec->id, round);
    struct transaction t = { .method = TRANSACTION_REFUND };
    struct ledger_escrow escrow;
    unsigned __int128 rest;
    bool found;

    if (!books_escrow(r->books, r->spec->account, ref, &escrow, &found, err))
        return false;
    rest = found ? rest_of(&escrow) : 0;
    if (rest == 0)
        return true;
    if (escrow.expiry > r->now) {
        json_array_append_new(r->waiting,
                              json_pack("{s:I, s:I}", "round", (json_int_t)round, "expiry", (json_int_t)escrow.expiry));
        return true;
    }
    t.refund = escrow.id;
    if (!books_send(r->books, &t, r->key, err))
        return error_at(err, "refund of round %u", round);
    r->amount += rest;
    json_array_append_new(r->refunded, json_integer((json_int_t)round));
    return true;
}

json_t *money_refund(struct books *books, const struct run_spec *spec, const struct account_key *key, struct error *err)
{
    struct refunding r = { .books = books, .spec = spec, .key = key, .refunded = json_array(), .waiting = json_array() };
    struct ledger_status status;
    char cid[CID_TEXT], amount[AMOUNT_TEXT];
    json_t *result = NULL;
    bool ok = books_status(books, &status, err);

    r.now = ok ? status.time : 0;
    for (uint32_t round = 1; ok && round <= spec->rounds; round++)
        ok = refund_round(&r, round, err);
    if (ok)
        result = json_pack("{s:s, s:O, s:s, s:O}", "run", cid_text(spec->id, cid), "refunded", r.refunded, "amount",
                           amount_text(r.amount, amount), "waiting", r.waiting);
    json_decref(r.refunded);
    json_decref(r.waiting);
    return result;
}

json_t *money_withdraw(struct books *books, const struct account_key *key, struct error *err)
{
    struct address address = account_address(key);
    struct transaction t = { .method = TRANSACTION_WITHDRAW };
    struct ledger_account account;
    char text[ADDRESS_TEXT], credit[AMOUNT_TEXT], balance[AMOUNT_TEXT];

    if (!books_account(books, address, &account, err))
        return NULL;
    amount_text(account.credit, credit);
    if (account.credit > 0 && (!books_send(books, &t, key, err) || !books_account(books, address, &account, err))) {
        error_at(err, "withdraw");
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s}", "account", address_text(address, text), "withdrawn", credit, "balance",
                     amount_text(account.balance, balance));
}
