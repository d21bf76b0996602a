#include "runtime/role/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/fold.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

struct asking {
    struct archive *a;
    struct books *books;
    const char *did, *role;
    const json_t *last; /* newest record */
    json_t *line;       /* of this round */
    int64_t round;
};

static void set(struct asking *q, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void set(struct asking *q, const char *code, const char *format, ...)
{
    char rule[300];
    va_list args;

    va_start(args, format);
    vsnprintf(rule, sizeof rule, format, args);
    va_end(args);
    json_object_set_new(q->line, "code", json_string(code));
    json_object_set_new(q->line, "rule", json_string(rule));
}

/* --- who it is --------------------------------------------------------------------------------------------------------- */

/* Of the panel, or enrolled at some time; NULL: no record knows it. */
static const char *role_of(const struct archive *a, const char *did)
{
    const char *role = value_find(a->course.rules.panel, "did", did) ? "syncer" : NULL;

    for (int64_t round = 0; !role && archive_record(a, round); round++) {
        const json_t *member = value_find(json_object_get(archive_record(a, round), "members"), "did", did);

        if (member)
            role = value_text(member, "role");
    }
    return role;
}

static const json_t *payout_in(const struct archive *a, int64_t round, int64_t *by)
{
    for (*by = round; archive_record(a, *by); ++*by) {
        json_t *each;
        size_t index;

        json_array_foreach(json_object_get(archive_record(a, *by), "settled"), index, each)
        {
            if (value_integer(each, "round") == round)
                return each;
        }
    }
    return NULL;
}

/* --- one round ---------------------------------------------------------------------------------------------------------- */

/* Whether one of the documents the record lists is this member's; damage is `err`. */
static bool was_heard(struct asking *q, const json_t *record, bool *heard, struct error *err)
{
    json_t *list = json_object_get(record, "received"), *each;
    size_t index;

    *heard = false;
    json_array_foreach(list, index, each)
    {
        struct buffer bytes = { 0 };
        struct document document = { 0 };
        struct hash id;
        bool ok = cid_parse(json_string_value(each), &id, err) && archive_document(q->a, id, &bytes, err) &&
                  document_read_as(DOCUMENT_RECEIVED, bytes.bytes, bytes.size, &document, err);

        *heard = *heard || (ok && value_is(document.json, "signer", q->did));
        document_free(&document);
        buffer_free(&bytes);
        if (!ok)
            return false;
    }
    return true;
}

static bool syncer_round(struct asking *q, const json_t *record, struct error *err)
{
    bool heard;

    if (!was_heard(q, record, &heard, err))
        return false;
    if (heard)
        set(q, "accepted", "its received document is one of %zu that record %lld lists: an even part of the syncers' share",
            json_array_size(json_object_get(record, "received")), (long long)q->round);
    else if (!value_lists(json_object_get(record, "committee"), q->did))
        set(q, "not_enrolled", "it was not in the committee of this round");
    else
        set(q, "absent", "record %lld lists the received documents of others; its own came too late or not at all",
            (long long)q->round);
    return true;
}

/* Σ of the weights that are paid. */
static int64_t paid_weights(const struct asking *q, const json_t *record)
{
    json_t *each;
    size_t index;
    int64_t sum = 0;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        if (value_is(each, "code", "ok") &&
            !fold_is_removed(json_object_get(q->last, "convicted"), value_text(each, "did"), q->round))
            sum += value_integer(each, "weight");
    }
    return sum;
}

/* What the record lists of this DID: the accepted contribution before any that was refused. */
static const json_t *contribution_of(const struct asking *q, const json_t *record)
{
    const json_t *found = NULL;
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        if (value_is(each, "did", q->did) && (!found || value_is(each, "code", "ok")))
            found = each;
    }
    return found;
}

/* What the codes of the replicated tier mean; NULL: a rule that the contribution broke. */
static const char *of_group(const char *code)
{
    static const char *const rules[][2] = {
        { "differs", "the machines of its group did not give the same: neither used nor paid, all of them are replayed" },
        { "alone", "no other machine of its group gave anything that is right: neither used nor paid" },
        { "uncommitted", "it had not committed to it before the round was closed for commitments" },
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(code, rules[i][0]) == 0)
            return rules[i][1];
    return NULL;
}

static void round_of_trainer(struct asking *q, const json_t *record)
{
    const json_t *listed = contribution_of(q, record),
                 *member = value_find(json_object_get(archive_record(q->a, q->round - 1), "members"), "did", q->did);

    if (listed && value_is(listed, "code", "ok")) {
        int64_t weight = value_integer(listed, "weight"), weights = paid_weights(q, record);

        json_object_set_new(q->line, "weight", json_integer((json_int_t)weight));
        json_object_set_new(q->line, "weights", json_integer((json_int_t)weights));
        set(q, "accepted", "accepted with weight %lld of %lld: as many %s", (long long)weight, (long long)weights,
            q->a->course.rules.batches ? "batches of each step" : "shards of the round's assignment");
    } else if (listed) {
        json_object_set(q->line, "reason", json_object_get(listed, "code"));
        if (of_group(value_text(listed, "code")))
            set(q, "refused", "%s: %s", value_text(listed, "code"), of_group(value_text(listed, "code")));
        else
            set(q, "refused", "its contribution was refused by the committee: %s", value_text(listed, "code"));
    } else if (member) {
        set(q, "absent", "no contribution of it reached enough of the committee in time");
    } else {
        set(q, "not_enrolled", "it was not among those counted in this round");
    }
}

static bool judge(struct asking *q, const json_t *record, struct error *err)
{
    const json_t *convicted = value_find(json_object_get(q->last, "convicted"), "did", q->did);

    if (!record) {
        set(q, "open", "no node here holds a decided record of this round");
    } else if (convicted && value_integer(convicted, "round") <= q->round) {
        set(q, "convicted", "convicted for round %lld: what it did from there on is removed and unpaid",
            (long long)value_integer(convicted, "round"));
    } else if (!value_is(record, "kind", "train")) {
        json_object_set(q->line, "reason", json_object_get(record, "reason"));
        set(q, "skipped", "the round was skipped (%s) and paid nobody; its escrow goes back at expiry",
            value_text(record, "reason"));
    } else if (strcmp(q->role, "trainer") == 0) {
        round_of_trainer(q, record);
    } else {
        return syncer_round(q, record, err);
    }
    return true;
}

/* --- money -------------------------------------------------------------------------------------------------------------- */

static unsigned __int128 amount_in(const json_t *payout, const struct asking *q)
{
    unsigned __int128 sum = 0;
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(payout, "paid"), index, each)
    {
        if (value_is(each, "did", q->did))
            sum += payout_parse(value_text(each, "amount"));
    }
    return sum;
}

static bool ask_ledger(struct asking *q, bool *released, struct error *err)
{
    static const char *const names[] = { "funded", "released", "refunded" };
    struct hash ref = release_round_ref(q->a->course.id, (uint64_t)q->round);
    struct ledger_escrow escrow;
    bool found;

    *released = false;
    if (!q->books) {
        json_object_set_new(q->line, "ledger", json_null());
        return true;
    }
    if (!books_escrow(q->books, q->a->course.spec.account, ref, &escrow, &found, err))
        return false;
    *released = found && escrow.status == LEDGER_RELEASED;
    json_object_set_new(q->line, "ledger", json_string(found ? names[escrow.status] : "none"));
    return true;
}

static bool one_round(struct asking *q, unsigned __int128 *total, unsigned __int128 *released, struct error *err)
{
    const json_t *record = archive_record(q->a, q->round), *payout;
    char text[40];
    int64_t by;
    bool out;

    q->line = json_pack("{s:I}", "round", (json_int_t)q->round);
    payout = payout_in(q->a, q->round, &by);
    if (!judge(q, record, err) || !ask_ledger(q, &out, err)) {
        json_decref(q->line);
        return false;
    }
    json_object_set_new(q->line, "settled", payout ? json_integer((json_int_t)by) : json_null());
    json_object_set_new(q->line, "amount", payout ? json_string(payout_text(amount_in(payout, q), text)) : json_null());
    if (payout)
        *total += amount_in(payout, q);
    if (payout && out)
        *released += amount_in(payout, q);
    return true;
}

json_t *why_of(struct archive *a, struct books *books, const char *did, struct error *err)
{
    struct asking q = { .a = a, .books = books, .did = did, .role = role_of(a, did) };
    json_t *rounds = json_array();
    unsigned __int128 total = 0, released = 0;
    char all[40], out[40];

    q.last = archive_record(a, (int64_t)json_array_size(a->finals) - 1);
    if (!q.role) {
        json_decref(rounds);
        error_set(err, ERROR_UNKNOWN,
                  "rondo run show lists who takes part; a name is of a node in this home, elsewhere give its DID",
                  "no record of this run names %s", did);
        return NULL;
    }
    for (q.round = 1; q.round <= (int64_t)a->course.spec.rounds; q.round++) {
        if (!one_round(&q, &total, &released, err)) {
            json_decref(rounds);
            return NULL;
        }
        json_array_append_new(rounds, q.line);
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s}", "run", a->course.run, "did", did, "role", q.role, "rounds", rounds,
                     "total", payout_text(total, all), "released", payout_text(released, out));
}
