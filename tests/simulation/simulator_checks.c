#include "tests/simulation/simulator_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/fold.h"
#include "runtime/round/history.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

/* A statement that leaves its signer: what a crash kept from being sent was never said. */
void sim_check_statement(struct sim *s, const struct node *from, const json_t *envelope)
{
    const json_t *payload = json_object_get(envelope, "payload");
    const char *type = value_text(envelope, "type");
    char key[256], cid[CID_TEXT];
    if (from->liar || !value_is(payload, "signer", from->did) || !strcmp(type, "challenge") || !strcmp(type, "equivocation") ||
        !strcmp(type, "enrolment"))
        return;
    if (from->wiped && !value_integer(payload, "round"))
        return; /* a disk lost in round 0 makes a new machine: docs/protocol.md */
    value_cid(payload, cid);
    snprintf(key, sizeof key, "%s/%s/%lld/%lld/%s", from->did, type, (long long)value_integer(payload, "round"),
             (long long)value_integer(payload, "view"), value_text(payload, "phase"));
    const json_t *known = json_object_get(s->signed_by, key);
    if (known && strcmp(json_string_value(known), cid))
        sim_fail(s, "%s signed two statements: %s", from->did, key);
    json_object_set_new(s->signed_by, key, json_string(cid));
}

static void check_paid(struct sim *s, const json_t *record, const json_t *payout)
{
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)value_integer(payout, "round"));
    const json_t *of = json_object_get(s->records, key);
    unsigned __int128 trainers = 0, syncers = 0;
    size_t i, accepted = 0, paid = 0;
    json_t *line;
    json_array_foreach(json_object_get(of, "contributions"), i, line)
    {
        bool kept =
            value_is(of, "kind", "train") && value_is(line, "code", "ok") &&
            !fold_is_removed(json_object_get(record, "convicted"), value_text(line, "did"), value_integer(payout, "round"));
        accepted += kept;
        bool found = false;
        size_t k;
        json_t *to;
        json_array_foreach(json_object_get(payout, "paid"), k, to) found |=
            value_is(to, "did", value_text(line, "did")) && value_is(to, "role", "trainer");
        if (found != kept)
            sim_fail(s, "round %s: %s is %s", key, value_text(line, "did"),
                     kept ? "accepted and not paid" : "paid and not accepted");
    }
    json_array_foreach(json_object_get(payout, "paid"), i, line)
    {
        bool trainer = value_is(line, "role", "trainer");
        paid += trainer;
        *(trainer ? &trainers : &syncers) += payout_parse(value_text(line, "amount"));
    }
    if (paid != accepted || (paid && trainers != 800) || syncers > 200)
        sim_fail(s, "round %s: %zu paid of %zu accepted, pools of %d and %d", key, paid, accepted, (int)trainers, (int)syncers);
}

void sim_check_final(struct sim *s, int node, json_t *record)
{
    char cid[CID_TEXT], key[32];
    int64_t round = value_integer(record, "round");
    value_cid(record, cid);
    snprintf(key, sizeof key, "%lld", (long long)round);
    const json_t *known = json_object_get(s->finals, key);
    if (known) {
        if (strcmp(json_string_value(known), cid))
            sim_fail(s, "round %s has two final records (%s)", key, s->nodes[node].did);
        return;
    }
    json_object_set_new(s->finals, key, json_string(cid));
    json_object_set(s->records, key, record);
    snprintf(key, sizeof key, "%lld", (long long)round - 1);
    if (round && strcmp(value_text(record, "previous"), json_string_value(json_object_get(s->finals, key)) ?: ""))
        sim_fail(s, "round %lld does not follow round %s", (long long)round, key);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(record, "convicted"), i, item)
    {
        int who = sim_find(s, value_text(item, "did"));
        if (who < 0 || !s->nodes[who].liar)
            sim_fail(s, "round %lld: %s is honest and convicted", (long long)round, value_text(item, "did"));
        s->result->liar_convicted = true;
    }
    json_array_foreach(json_object_get(record, "settled"), i, item) check_paid(s, record, item);
    s->result->train += value_is(record, "kind", "train");
    if (value_is(value_find(json_object_get(record, "contributions"), "did", s->nodes[s->count - 1].did), "code", "ok"))
        s->result->last_trainer_at = round;
    s->result->skip += value_is(record, "kind", "skip");
    snprintf(s->result->state, sizeof s->result->state, "%s", value_text(record, "state"));
}

/* Whether what `did` gave to round `of` stands in the last state: convictions reach back over rounds open at the time. */
static bool stands(const struct sim *s, const json_t *last, const char *did, int64_t of)
{
    const json_t *entry = value_find(json_object_get(last, "convicted"), "did", did);
    char key[32];
    size_t i;
    json_t *open;
    if (!entry || value_integer(entry, "round") > of)
        return true;
    if (of >= value_integer(entry, "record"))
        return false;
    snprintf(key, sizeof key, "%lld", (long long)value_integer(entry, "record") - 1);
    json_array_foreach(json_object_get(json_object_get(s->records, key), "unsettled"), i, open)
    {
        if (value_integer(open, "round") == of)
            return false;
    }
    return true;
}

/* Folds again, plainly, what was kept. */
void sim_check_state(struct sim *s)
{
    size_t rounds = json_object_size(s->records);
    char key[32];
    snprintf(key, sizeof key, "%zu", rounds - 1);
    const json_t *last = json_object_get(s->records, key);
    json_t *outer = json_string("genesis-outer");
    for (size_t r = 1; r < rounds && !s->set->rollback; r++) {
        snprintf(key, sizeof key, "%zu", r);
        const json_t *record = json_object_get(s->records, key);
        json_t *kept = json_array(), *item, *number = json_integer((json_int_t)r);
        size_t i;
        json_array_foreach(json_object_get(record, "contributions"), i, item)
        {
            if (value_is(item, "code", "ok") && stands(s, last, value_text(item, "did"), (int64_t)r))
                json_array_append_new(kept, json_pack("{sOsOsO}", "cid", json_object_get(item, "cid"), "did",
                                                      json_object_get(item, "did"), "weight", json_object_get(item, "weight")));
        }
        if (value_is(record, "kind", "train") && (int)json_array_size(kept) >= s->set->quorum) {
            json_t *next = sim_fold_step(outer, number, kept);
            json_decref(outer);
            outer = next;
        }
        json_decref(kept);
        json_decref(number);
    }
    if (!s->set->rollback && strcmp(json_string_value(outer), value_text(last, "outer")))
        sim_fail(s, "the last state is not the fold of what was kept");
    json_decref(outer);
}

/* ---- the audit of a finished run ------------------------------------------------------------------------------------- */

static json_t *source_document(void *context, const char *cid)
{
    struct sim *s = context;
    for (int i = 0; i < s->count; i++) {
        json_t *held = json_object_get(s->nodes[i].documents, cid);
        if (held)
            return json_incref(held);
    }
    return NULL;
}

static json_t *source_block(void *context, int64_t height)
{
    return sim_block_at(context, height);
}

static json_t *source_result(void *context, const json_t *request)
{
    (void)context;
    return json_pack("{ssso}", "code", "ok", "result", sim_compute(request, false));
}

/* The run as an honest member keeps it passes; with any one record changed it does not. */
void sim_check_history(struct sim *s)
{
    struct signing signing = { .context = s, .sign = sim_sign, .open = sim_open };
    struct history_source source = { s, source_document, source_block, source_result };
    struct error err = { 0 };
    int64_t checked;
    for (int i = 0; i < s->count; i++) {
        if (!s->nodes[i].syncer || s->nodes[i].liar)
            continue;
        const json_t *finals = member_finals(s->nodes[i].member);
        if (!history_check(&s->rules, finals, &signing, &source, &checked, &err))
            sim_fail(s, "audit: %s: %s", err.place, err.message);
        source.result = NULL;
        if (!history_check(&s->rules, finals, &signing, &source, &checked, &err))
            sim_fail(s, "audit of claims: %s: %s", err.place, err.message);
        json_t *changed = json_deep_copy(finals);
        size_t at = (size_t)sim_below(s, (int64_t)json_array_size(changed));
        json_object_set_new(json_object_get(json_array_get(changed, at), "record"), "state", json_string("another"));
        if (history_check(&s->rules, changed, &signing, &source, &checked, &err) || checked != (int64_t)at)
            sim_fail(s, "audit: a changed record %zu passes", at);
        json_decref(changed);
        return;
    }
}
