#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/hex.h"
#include "runtime/ledger/transaction.h"
#include "runtime/role/driver_internal.h"
#include "runtime/role/terms.h"
#include "runtime/round/deposit.h"
#include "runtime/round/payout.h"

enum { RELEASE_RETRY_MS = 2000, RELEASE_TURN_MS = 300 };

/* Others' signatures are taken before this member has worked a release out itself, for the newest rounds. */
enum { EARLY_ROUNDS = 64 };

/* --- head and blocks ---------------------------------------------------------------------------------------------------- */

/* Both questions are held by the ledger until there is something to tell. A member is told of every block while heads are what it says and
 * holds against what others say, that is from the moment when a round closes; of few before. */
enum { HEAD_REST_MS = 250 };

static void ask_head(struct driver *d);

static bool follows_heads(const struct driver *d)
{
    const char *phase = d->member ? member_phase(d->member) : "";

    return d->is_member && (strcmp(phase, "collecting") == 0 || strcmp(phase, "voting") == 0);
}

static void feed_head(struct driver *d, const struct ledger_status *status)
{
    if (d->is_member)
        driver_feed(d, EVENT_HEAD,
                    json_pack("{s:I, s:I}", "height", (json_int_t)status->height, "time", (json_int_t)status->time));
}

/* Whoever follows heads again asks for the present one first: the held question tells only of the next. */
static void closing_told(void *context, const struct ledger_answer *answer)
{
    struct driver *d = context;

    d->head_now = false;
    if (answer->error || answer->status->height <= d->ledger.height)
        return;
    d->ledger = *answer->status;
    feed_head(d, answer->status);
}

static void head_told(void *context, const struct ledger_answer *answer)
{
    struct driver *d = context;

    d->head_busy = false;
    if (answer->error)
        return; /* an outage delays, never decides anything */
    if (answer->status->chain != d->course->spec.payment.chain ||
        !address_equal(answer->status->contract, d->course->spec.payment.contract)) {
        struct error err = { 0 };

        error_set(&err, ERROR_MISMATCH, "give the run's own ledger by --ledger",
                  "the ledger is not the one of the run (chain %llu)", (unsigned long long)answer->status->chain);
        driver_fail(d, &err);
        return;
    }
    d->ledger = *answer->status;
    d->ledger_known = true;
    d->head_next = uv_now(&d->node->loop) + HEAD_REST_MS;
    ask_head(d);
    feed_head(d, answer->status);
}

static void ask_head(struct driver *d)
{
    if (d->head_busy || (d->ledger_known && !d->is_member) ||
        (d->ledger_known && !follows_heads(d) && uv_now(&d->node->loop) < d->head_next))
        return;
    d->head_busy = true;
    if (d->ledger_known)
        ledger_next(d->node->ledger, d->ledger.height, (struct ledger_then){ head_told, d });
    else
        ledger_status(d->node->ledger, (struct ledger_then){ head_told, d });
}

void driver_closing(struct driver *d)
{
    if (!d->ledger_known || d->head_now)
        return;
    d->head_now = true;
    ledger_status(d->node->ledger, (struct ledger_then){ closing_told, d });
}

static void block_told(void *context, const struct ledger_answer *answer)
{
    struct driver *d = context;
    char hash[HASH_TEXT], entropy[HASH_TEXT];

    d->await_busy = false;
    if (answer->error || d->await_height < 0)
        return;
    if (answer->block->height != (uint64_t)d->await_height) {
        driver_await_block(d); /* another round is open by now */
        return;
    }
    d->await_height = -1;
    driver_feed(d, EVENT_BLOCK,
                json_pack("{s:I, s:s, s:s}", "height", (json_int_t)answer->block->height, "hash",
                          hash_hex(answer->block->hash, hash), "entropy", hash_hex(answer->block->entropy, entropy)));
}

void driver_await_block(struct driver *d)
{
    if (d->await_busy || d->await_height < 0)
        return;
    d->await_busy = true;
    ledger_await_block(d->node->ledger, (uint64_t)d->await_height, (struct ledger_then){ block_told, d });
}

/* --- funding ------------------------------------------------------------------------------------------------------------- */

/* Asks for the escrow of every round, one after another; all good means funded. */
struct funding {
    struct driver *driver;
    uint32_t round;
    uint64_t latest; /* greatest height of a funding block */
};

static void funding_ask(struct funding *f);

/* Whatever became of it, the escrow must be the run's. That of a decided round may be released by now, or gone back. */
static bool escrow_fits(const struct driver *d, uint32_t round, const struct ledger_escrow *e)
{
    return terms_met(&d->course->spec, e) && (e->status == LEDGER_FUNDED || (int64_t)round < driver_round(d));
}

static void funding_end(struct funding *f)
{
    f->driver->funding = NULL;
    free(f);
}

static void funded_block(void *context, const struct ledger_answer *answer)
{
    struct funding *f = context;
    struct driver *d = f->driver;

    if (!answer->error) {
        d->funded = true;
        driver_feed(d, EVENT_FUNDED, json_pack("{s:I}", "time", (json_int_t)answer->block->time));
    }
    funding_end(f);
}

static void funding_told(void *context, const struct ledger_answer *answer)
{
    struct funding *f = context;
    struct driver *d = f->driver;

    if (answer->error || !answer->escrow || !escrow_fits(d, f->round, answer->escrow)) {
        funding_end(f);
        return;
    }
    if (answer->escrow->created > f->latest)
        f->latest = answer->escrow->created;
    if (f->round == d->course->spec.rounds)
        d->last_expiry = answer->escrow->expiry;
    if (f->round++ < d->course->spec.rounds)
        funding_ask(f);
    else
        ledger_block(d->node->ledger, f->latest, (struct ledger_then){ funded_block, f });
}

static void funding_ask(struct funding *f)
{
    struct driver *d = f->driver;
    struct hash ref = release_round_ref(d->course->id, f->round);

    ledger_escrow(d->node->ledger, d->course->spec.account, ref, (struct ledger_then){ funding_told, f });
}

/* --- deposits ------------------------------------------------------------------------------------------------------------ */

void driver_deposit(struct driver *d, const json_t *body)
{
    struct driver_deposit *one = calloc(1, sizeof *one);

    *one = (struct driver_deposit){ .body = json_incref((json_t *)(uintptr_t)body), .driver = d, .next = d->deposits };
    d->deposits = one;
}

static void deposit_drop(struct driver_deposit *one)
{
    struct driver_deposit **at = &one->driver->deposits;

    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    json_decref(one->body);
    free(one);
}

static void deposit_told(void *context, const struct ledger_answer *answer)
{
    struct driver_deposit *one = context;
    struct driver *d = one->driver;
    const bool stands =
        !answer->error && answer->escrow &&
        terms_deposit(&d->course->spec, answer->escrow, payout_parse(document_text(one->body, "amount")), d->last_expiry);

    one->busy = false;
    /* Before the run is funded nobody can have locked anything; in round 0 all are waited for. */
    if (!stands && (answer->error || !d->last_expiry || document_integer(one->body, "round") == 0))
        return;
    json_t *told = json_pack("{s:O, s:s}", "cid", json_object_get(one->body, "cid"), "code", stands ? "ok" : "deposit");

    deposit_drop(one);
    driver_feed(d, EVENT_CHECKED, told);
}

/* Asks for each again until it is answered, its round is over, or the machine has dropped the enrolment for others. */
static void deposits_ask(struct driver *d)
{
    for (struct driver_deposit *one = d->deposits, *next; one; one = next) {
        const char *did = document_text(one->body, "did");
        struct address account;

        next = one->next;
        if (one->busy)
            continue;
        if (document_integer(one->body, "round") < driver_round(d) || !driver_holds(d, document_text(one->body, "cid")) ||
            !address_parse(document_text(one->body, "account"), &account)) {
            deposit_drop(one);
            continue;
        }
        one->busy = true;
        ledger_escrow(d->node->ledger, account, release_round_ref(deposit_run(d->course->run, did), 0),
                      (struct ledger_then){ deposit_told, one });
    }
}

/* --- releases ------------------------------------------------------------------------------------------------------------ */

static struct driver_release *release_find(struct driver *d, int64_t round)
{
    struct driver_release *r = d->releases;

    while (r && r->round != round)
        r = r->next;
    return r;
}

void driver_ledger_free(struct driver *d)
{
    free(d->funding);
    while (d->deposits)
        deposit_drop(d->deposits);
    for (struct driver_release *r = d->releases, *next; r; r = next) {
        next = r->next;
        json_decref(r->body);
        free(r);
    }
}

bool driver_releases_done(const struct driver *d)
{
    for (const struct driver_release *r = d->releases; r; r = r->next)
        if (!r->done)
            return false;
    return true;
}

static bool panel_has(const struct driver *d, struct address account)
{
    for (size_t i = 0; i < d->course->spec.committee.panel_count; i++)
        if (address_equal(d->course->spec.committee.panel[i].account, account))
            return true;
    return false;
}

static void add_signature(struct driver_release *r, const struct account_signature *signature)
{
    struct address signer;

    if (!account_recover(signature, r->digest, &signer) || !panel_has(r->driver, signer))
        return;
    for (size_t i = 0; i < r->signature_count; i++)
        if (address_equal(r->signatures[i].signer, signer))
            return;
    r->signatures[r->signature_count].signer = signer;
    r->signatures[r->signature_count++].signature = *signature;
}

static bool read_signature(const json_t *body, struct account_signature *out)
{
    const char *text = document_text(body, "signature");

    return text && hex_decode(text, strlen(text), out->bytes, sizeof out->bytes);
}

void driver_release_signature(struct driver *d, int64_t round, const json_t *body)
{
    struct account_signature signature;

    const bool deposit = round >= DEPOSIT_FIRST && round < deposit_number(driver_round(d), 0);
    const int64_t of = deposit ? (round - DEPOSIT_FIRST) / DEPOSIT_NUMBERS : round;

    /* Nobody need be anybody to send one: it may cost no memory for rounds that are not decided, or long over. */
    if (!d->is_member || of < 1 || (!deposit && of > d->course->spec.rounds) || of >= driver_round(d) ||
        of + EARLY_ROUNDS < driver_round(d) || !read_signature(body, &signature))
        return;
    struct driver_release *r = release_find(d, round);

    if (r && r->known)
        add_signature(r, &signature);
    else if (!r || !r->done)
        d->early[d->early_next++ % DRIVER_EARLY] = (struct driver_early){ round, signature };
}

static void ignore_answer(void *context, struct http_answer *answer)
{
    (void)context;
    (void)answer; /* sent again with every try until the release is on the ledger */
}

static void share_signature(struct driver_release *r)
{
    struct driver *d = r->driver;
    char hex[2 * ACCOUNT_SIGNATURE_SIZE + 1], path[160], body[256];
    const struct account_signature *own = NULL;

    for (size_t i = 0; i < r->signature_count; i++)
        if (address_equal(r->signatures[i].signer, d->node->account))
            own = &r->signatures[i].signature;
    if (!own)
        return;
    hex_encode(own->bytes, sizeof own->bytes, hex);
    snprintf(path, sizeof path, "/v1/runs/%s/releases/%lld", d->course->run, (long long)r->round);
    snprintf(body, sizeof body, "{\"signature\":\"%s\"}", hex);
    for (size_t i = 0; i < d->course->spec.committee.panel_count; i++) {
        char did[DID_TEXT];
        struct error err = { 0 };
        const char *endpoint = course_endpoint(d->course, did_text(&d->course->spec.committee.panel[i].did, did));

        if (!endpoint || strcmp(did, d->node->did) == 0)
            continue;
        char *url = http_url_join(endpoint, path);

        http_client_send(
            d->node->client,
            &(struct http_call){ .method = "POST", .url = url, .body = body, .size = strlen(body), .type = "application/json" },
            ignore_answer, d, &err);
        free(url);
    }
}

/* Works out what is signed from the payout and the escrow as it stands on the ledger, and signs it, once. */
static bool work_out(struct driver_release *r, const struct ledger_escrow *escrow, struct error *err)
{
    struct driver *d = r->driver;
    const json_t *payout = json_object_get(r->body, "payout");
    struct release_domain domain = { .chain = d->course->spec.payment.chain, .contract = d->course->spec.payment.contract };
    const char *root = document_text(payout, "root");
    struct account_signature own;

    r->release = (struct release){ .escrow = escrow->id, .deadline = escrow->expiry };
    if (!cid_parse(document_text(r->body, "record"), &r->release.record, err))
        return false;
    if (!root || strlen(root) != 66 || !hash_parse(root + 2, &r->release.payout_root))
        return error_set(err, ERROR_SYNTAX, NULL, "the payout of round %lld has no root", (long long)r->round);
    r->release.total = payout_parse(document_text(payout, "total"));
    r->digest = release_digest(&domain, &r->release);
    if (!journal_release_once(d->node->journal, escrow->id, r->digest, err))
        return false;
    r->known = true;
    own = account_sign(&d->node->keys.account, r->digest);
    add_signature(r, &own);
    for (size_t i = 0; i < DRIVER_EARLY; i++) {
        if (d->early[i].round != r->round)
            continue;
        d->early[i].round = 0;
        add_signature(r, &d->early[i].signature);
    }
    return true;
}

static void released(struct driver_release *r)
{
    struct driver *d = r->driver;

    if (r->done)
        return;
    r->done = true;
    if (json_object_get(r->body, "deposit")) {
        const json_t *payout = json_object_get(r->body, "payout");

        node_tell(d->node, "deposit_released",
                  json_pack("{s:O, s:O, s:O, s:O}", "did", json_object_get(payout, "did"), "cause",
                            json_object_get(payout, "cause"), "total", json_object_get(payout, "total"), "paid",
                            json_object_get(payout, "paid")));
        return;
    }
    node_tell(d->node, "released",
              json_pack("{s:I, s:O, s:O}", "round", (json_int_t)r->round, "total",
                        json_object_get(json_object_get(r->body, "payout"), "total"), "paid",
                        json_object_get(json_object_get(r->body, "payout"), "paid")));
    driver_feed(d, EVENT_RELEASED, json_pack("{s:I}", "round", (json_int_t)r->round));
}

static void submitted(void *context, const struct ledger_answer *answer)
{
    struct driver_release *r = context;

    (void)answer; /* whoever's submission it was: the escrow says whether it is released */
    r->submitting = false;
}

static int by_signer(const void *a, const void *b)
{
    const struct address *left = a, *right = b; /* the signer is the first member */

    return address_compare(*left, *right);
}

static void nonce_told(void *context, const struct ledger_answer *answer)
{
    struct driver_release *r = context;
    struct driver *d = r->driver;
    const json_t *payees = json_object_get(json_object_get(r->body, "payout"), "payees");
    struct transaction t = { .chain = d->course->spec.payment.chain, .method = TRANSACTION_RELEASE };
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    json_t *payee;
    size_t index;
    bool ok = !answer->error;

    if (ok)
        t.nonce = answer->account->nonce;
    t.release.id = r->release.escrow;
    t.release.record = r->release.record;
    t.release.deadline = r->release.deadline;
    json_array_foreach(payees, index, payee)
    {
        ok = ok && index < LEDGER_PAYEES && address_parse(document_text(payee, "account"), &t.release.payees[index]);
        if (ok)
            t.release.amounts[t.release.payee_count++] = payout_parse(document_text(payee, "amount"));
    }
    qsort(r->signatures, r->signature_count, sizeof *r->signatures, by_signer);
    for (size_t i = 0; i < r->signature_count && i < d->course->spec.committee.release_threshold; i++)
        t.release.signatures[t.release.signature_count++] = r->signatures[i].signature;
    if (ok && transaction_sign(&t, &d->node->keys.account, &bytes, &err))
        ledger_submit(d->node->ledger, bytes.bytes, bytes.size, (struct ledger_then){ submitted, r });
    else
        r->submitting = false;
    buffer_free(&bytes);
}

static void escrow_told(void *context, const struct ledger_answer *answer)
{
    struct driver_release *r = context;
    struct driver *d = r->driver;
    struct error err = { 0 };

    r->submitting = false;
    if (answer->error || !answer->escrow)
        return;
    if (answer->escrow->status != LEDGER_FUNDED) {
        if (answer->escrow->status == LEDGER_RELEASED)
            released(r);
        r->done = true; /* refunded: nothing is left to release */
        return;
    }
    if (!r->known && !work_out(r, answer->escrow, &err)) {
        driver_fail(d, &err);
        return;
    }
    share_signature(r);
    if (r->signature_count >= d->course->spec.committee.release_threshold) {
        r->submitting = true;
        ledger_account(d->node->ledger, d->node->account, (struct ledger_then){ nonce_told, r });
    }
}

/* The panel takes turns: the first submits at once, the others only when that did not help. */
static uint64_t own_turn(const struct driver *d)
{
    for (size_t i = 0; i < d->course->spec.committee.panel_count; i++)
        if (public_key_equal(&d->course->spec.committee.panel[i].did, &d->node->key))
            return i * RELEASE_TURN_MS;
    return 0;
}

static void release_try(struct driver_release *r, uint64_t now)
{
    struct driver *d = r->driver;
    const json_t *deposit = json_object_get(r->body, "deposit");
    struct address owner = d->course->spec.account;
    struct hash ref = deposit ? release_round_ref(deposit_run(d->course->run, document_text(deposit, "did")), 0)
                              : release_round_ref(d->course->id, (uint64_t)r->round);

    if (r->done || r->submitting || now < r->next_try)
        return;
    r->submitting = true;
    r->next_try =
        now + (r->known && r->signature_count >= d->course->spec.committee.release_threshold ? RELEASE_RETRY_MS
                                                                                             : RELEASE_TURN_MS + own_turn(d));
    if (deposit)
        address_parse(document_text(deposit, "account"), &owner);
    ledger_escrow(d->node->ledger, owner, ref, (struct ledger_then){ escrow_told, r });
}

void driver_release(struct driver *d, const json_t *body)
{
    const int64_t round = json_integer_value(json_object_get(body, "round"));
    struct driver_release *r = release_find(d, round);

    if (!r) {
        r = calloc(1, sizeof *r);
        *r = (struct driver_release){
            .round = round, .body = json_incref((json_t *)(uintptr_t)body), .driver = d, .next = d->releases
        };
        d->releases = r;
    }
    if (json_array_size(json_object_get(json_object_get(body, "payout"), "payees")) == 0)
        r->done = true; /* a skipped round pays nobody: its escrow goes back at expiry */
}

/* --- each tick ------------------------------------------------------------------------------------------------------------ */

void driver_ledger_tick(struct driver *d)
{
    uint64_t now = uv_now(&d->node->loop);

    ask_head(d);
    driver_await_block(d);
    if (!d->funded && !d->funding) {
        struct funding *f = calloc(1, sizeof *f);

        *f = (struct funding){ .driver = d, .round = 1 };
        d->funding = f;
        funding_ask(f);
    }
    deposits_ask(d);
    for (struct driver_release *r = d->releases; r; r = r->next)
        release_try(r, now);
    driver_dues_tick(d, now);
}
