#include "runtime/role/lock.h"

#include <string.h>

#include "runtime/role/terms.h"
#include "runtime/round/deposit.h"
#include "runtime/round/payout.h"

static const char *status_word(const struct ledger_escrow *e)
{
    return e->status == LEDGER_FUNDED ? "locked" : e->status == LEDGER_RELEASED ? "released" : "refunded";
}

static bool find(struct books *books, const struct course *c, const struct key_pair *keys, char did[DID_TEXT],
                 struct ledger_escrow *e, bool *found, struct error *err)
{
    struct public_key key = public_key_of(&keys->identity);

    return books_escrow(books, account_address(&keys->account), release_round_ref(deposit_run(c->run, did_text(&key, did)), 0), e,
                        found, err);
}

/* The run's last escrow says until when a deposit must be open. */
static bool last_escrow(struct books *books, const struct course *c, struct ledger_escrow *e, struct error *err)
{
    bool found;

    return books_escrow(books, c->spec.account, release_round_ref(c->id, c->spec.rounds), e, &found, err) &&
           ((found && terms_met(&c->spec, e)) ||
            error_set(err, ERROR_MISSING, "wait until its sponsor has funded it", "the run's last round has no escrow"));
}

static bool create(struct books *books, const struct course *c, const struct key_pair *keys, const char *did,
                   unsigned __int128 amount, const struct ledger_escrow *last, struct error *err)
{
    struct transaction t = { .method = TRANSACTION_CREATE };

    t.create.run = deposit_run(c->run, did);
    t.create.amount = amount;
    t.create.threshold = last->threshold;
    t.create.panel_count = last->panel_count;
    memcpy(t.create.panel, last->panel, last->panel_count * sizeof *last->panel);
    t.create.expiry = last->expiry;
    return books_send(books, &t, &keys->account, err) || error_at(err, "deposit");
}

json_t *lock_deposit(struct books *books, const struct course *c, const struct key_pair *keys, const char *role,
                     struct error *err)
{
    struct ledger_escrow e = { 0 }, last;
    char did[DID_TEXT], account[ADDRESS_TEXT];
    bool found, locked = false;

    if (!find(books, c, keys, did, &e, &found, err))
        return NULL;

    const char *due = deposit_due(&c->rules, did, role);

    if (due && !found) {
        if (!last_escrow(books, c, &last, err) || !create(books, c, keys, did, payout_parse(due), &last, err) ||
            !find(books, c, keys, did, &e, &found, err))
            return NULL;
        locked = true;
    } else if (due && e.status != LEDGER_FUNDED) {
        error_set(err, ERROR_REFUSED, "take part under another key", "the deposit of this machine is %s", status_word(&e));
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:s}", "run", c->run, "did", did, "role", role, "account",
                     address_text(account_address(&keys->account), account), "amount", due ? due : "0", "expiry",
                     (json_int_t)e.expiry, "locked", locked, "status", found ? status_word(&e) : "none");
}

json_t *lock_refund(struct books *books, const struct course *c, const struct key_pair *keys, struct error *err)
{
    struct transaction t = { .method = TRANSACTION_REFUND };
    struct ledger_escrow e;
    char did[DID_TEXT], amount[40];
    bool found;

    if (!find(books, c, keys, did, &e, &found, err))
        return NULL;
    if (found && e.status == LEDGER_FUNDED) {
        t.refund = e.id;
        if (!books_send(books, &t, &keys->account, err)) {
            error_at(err, "refund of the deposit");
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:s, s:b}", "run", c->run, "did", did, "amount",
                     payout_text(found && e.status == LEDGER_FUNDED ? e.amount : 0, amount), "refunded",
                     found && e.status == LEDGER_FUNDED);
}
