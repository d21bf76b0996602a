#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "runtime/ledger/client.h"
#include "runtime/ledger/transaction.h"
#include "runtime/role/sponsor.h"
#include "runtime/role/terms.h"

/* Status, then for each round its escrow, and where there is none the nonce and a creation. The next creation follows as soon as the ledger
 * has taken the one before, which the account's next nonce tells: many are on their way into one block. */
struct creation {
    struct funding *funding;
    uint32_t round;
    bool over;
    struct error fault;
    struct creation *next;
};

struct funding {
    const struct run_spec *spec;
    const struct key_pair *keys;
    struct journal *journal;
    uv_loop_t loop;
    struct http_client *http;
    struct ledger *ledger;
    struct ledger_status status;
    uint32_t round;                /* that is looked at */
    uint64_t nonce;                /* of the last creation */
    bool creating;                 /* there was one */
    struct creation *creating_now; /* on their way, the newest first */
    struct error *err;
    bool ok;
};

static void next_round(struct funding *f);

static const char *note_of(struct hash run, char note[128])
{
    char cid[CID_TEXT];

    snprintf(note, 128, "funded/%s", cid_text(run, cid));
    return note;
}

static bool put_funded(struct journal *journal, struct hash run, uint32_t rounds, struct error *err)
{
    char note[128], text[16];

    snprintf(text, sizeof text, "%u", rounds);
    return journal_put_note(journal, note_of(run, note), text, strlen(text), err);
}

bool sponsor_funded(struct journal *journal, struct hash run, uint32_t *rounds)
{
    struct buffer text = { 0 };
    struct error none = { 0 };
    char note[128];
    bool found = journal_get_note(journal, note_of(run, note), &text, &none);

    *rounds = found ? (uint32_t)strtoul(buffer_text(&text), NULL, 10) : 0;
    buffer_free(&text);
    return found;
}

static void stop(struct funding *f, const struct error *fault)
{
    f->ok = fault == NULL;
    if (fault)
        *f->err = *fault;
    ledger_free(f->ledger);
    http_client_free(f->http);
    f->ledger = NULL;
}

/* The newest block of a ledger that has just been started is as old as its last stop, or has no time at all. */
static uint64_t now(const struct funding *f)
{
    uint64_t here = (uint64_t)time(NULL);

    return here > f->status.time ? here : f->status.time;
}

static bool create_transaction(struct funding *f, uint64_t nonce, struct buffer *bytes, struct error *err)
{
    const struct run_spec *spec = f->spec;
    struct transaction t = { .chain = f->status.chain, .nonce = nonce, .method = TRANSACTION_CREATE };
    char note[128];

    t.create.run = spec->id;
    t.create.round = f->round;
    t.create.amount = spec->payment.per_round;
    t.create.threshold = spec->committee.release_threshold;
    t.create.panel_count = (uint32_t)terms_panel(spec, t.create.panel);
    t.create.expiry =
        now(f) + ((uint64_t)f->round + spec->payment.expiry_rounds) * (uint64_t)((spec->quorum.round_ms + 999) / 1000);
    snprintf(note, sizeof note, "create/%u", f->round);
    return transaction_sign(&t, &f->keys->account, bytes, err) &&
           journal_put_note(f->journal, note, bytes->bytes, bytes->size, err);
}

/* Rounds below the least one on its way are funded; all, when none is left and the last was looked at. */
static void note_funded(struct funding *f)
{
    const struct creation *least = f->creating_now;
    struct error err = { 0 };

    for (const struct creation *c = least; c; c = c->next)
        least = c->round < least->round ? c : least;

    const uint32_t funded = (least ? least->round : f->round) - 1;

    if (!put_funded(f->journal, f->spec->id, funded, &err))
        stop(f, &err);
    else if (least && least->over && least->fault.code != ERROR_NONE)
        stop(f, &least->fault);
    else if (funded >= f->spec->rounds)
        stop(f, NULL);
}

/* Receipts of one block come in any order. */
static void drop_done(struct funding *f)
{
    for (struct creation **at = &f->creating_now; *at;) {
        struct creation *c = *at;

        if (c->over && c->fault.code == ERROR_NONE) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}

static void created(void *context, const struct ledger_answer *answer)
{
    struct creation *c = context;
    struct funding *f = c->funding;

    if (answer->error) {
        stop(f, answer->error);
        return;
    }
    c->over = true;
    if (answer->receipt && answer->receipt->code != ERROR_NONE)
        error_set(&c->fault, answer->receipt->code,
                  answer->receipt->code == ERROR_REFUSED ? "the sponsor's account needs the whole budget" : NULL,
                  "escrow of round %u: %s", c->round, answer->receipt->message);
    drop_done(f);
    note_funded(f);
}

static void ask_account(struct funding *f);

static void submit(struct funding *f, uint64_t nonce)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };

    if (create_transaction(f, nonce, &bytes, &err)) {
        struct creation *c = calloc(1, sizeof *c);

        *c = (struct creation){ .funding = f, .round = f->round, .next = f->creating_now };
        f->creating_now = c;
        f->nonce = nonce;
        f->creating = true;
        ledger_submit(f->ledger, bytes.bytes, bytes.size, (struct ledger_then){ created, c });
        f->round++;
        next_round(f);
    } else {
        stop(f, &err);
    }
    buffer_free(&bytes);
}

static void account_told(void *context, const struct ledger_answer *answer)
{
    struct funding *f = context;

    if (answer->error)
        stop(f, answer->error);
    else if (f->creating && f->creating_now && answer->account->nonce <= f->nonce)
        ask_account(f); /* the one before is not there yet */
    else
        submit(f, answer->account->nonce);
}

static void ask_account(struct funding *f)
{
    ledger_account(f->ledger, f->spec->account, (struct ledger_then){ account_told, f });
}

static void escrow_told(void *context, const struct ledger_answer *answer)
{
    struct funding *f = context;

    if (answer->error) {
        stop(f, answer->error);
    } else if (answer->escrow) {
        f->round++;
        next_round(f);
    } else {
        ask_account(f);
    }
}

static void next_round(struct funding *f)
{
    if (f->round > f->spec->rounds)
        note_funded(f);
    else
        ledger_escrow(f->ledger, f->spec->account, release_round_ref(f->spec->id, f->round),
                      (struct ledger_then){ escrow_told, f });
}

static void status_told(void *context, const struct ledger_answer *answer)
{
    struct funding *f = context;
    struct error err = { 0 };

    if (answer->error) {
        stop(f, answer->error);
        return;
    }
    f->status = *answer->status;
    if (f->status.chain != f->spec->payment.chain || !address_equal(f->status.contract, f->spec->payment.contract)) {
        error_set(&err, ERROR_MISMATCH, "give the run's own ledger", "the ledger is chain %llu, the spec names %llu",
                  (unsigned long long)f->status.chain, (unsigned long long)f->spec->payment.chain);
        stop(f, &err);
        return;
    }
    if (put_funded(f->journal, f->spec->id, 0, &err))
        next_round(f);
    else
        stop(f, &err);
}

bool sponsor_fund(const struct run_spec *spec, const struct key_pair *keys, const char *ledger, bool plain,
                  struct journal *journal, struct error *err)
{
    struct funding f = { .spec = spec, .keys = keys, .journal = journal, .round = 1, .err = err };

    uv_loop_init(&f.loop);
    f.http = http_client_new(&f.loop, &(struct http_client_options){ .plain = plain }, err);
    f.ledger = f.http ? ledger_client_new(&f.loop, f.http, ledger, 0, err) : NULL;
    if (f.ledger)
        ledger_status(f.ledger, (struct ledger_then){ status_told, &f });
    else
        http_client_free(f.http);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    uv_loop_close(&f.loop);
    for (struct creation *c = f.creating_now, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    return f.ok || error_at(err, "funding");
}
