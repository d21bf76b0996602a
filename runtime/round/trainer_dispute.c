#include <stdio.h>
#include <string.h>

#include "native/base/decimal.h"
#include "runtime/round/assignment.h"
#include "runtime/round/dispute.h"
#include "runtime/round/fold.h"
#include "runtime/round/record.h"
#include "runtime/round/trainer_state.h"

static json_t *context_of(const struct trainer *t, int64_t round, const char *did)
{
    const json_t *record = json_object_get(json_array_get(t->finals, (size_t)round), "record");
    const json_t *before = json_object_get(json_array_get(t->finals, (size_t)round - 1), "record");
    return assignment_context_of(t->rules, before, record, did);
}

static json_t *sign(struct trainer *t, const char *type, json_t *payload)
{
    struct error err = { 0 };
    json_object_set_new(payload, "run", json_string(t->rules->run));
    json_object_set_new(payload, "signer", json_string(t->did));
    json_object_set_new(payload, "version", json_integer(1));
    json_t *envelope = t->signing.sign(t->signing.context, type, payload, &err);
    json_decref(payload);
    if (!envelope)
        trainer_halt(t, "sign", err.message);
    return envelope;
}

/* ---- disputes about earlier contributions ---------------------------------------------------------------------------- */

/* Whether this dispute waits for this trainer's opening; then `key` names it in t->moves. */
static bool waits_for(const struct trainer *t, const json_t *dispute, char key[DISPUTE_KEY])
{
    disputes_key(dispute, key);
    return value_is(dispute, "did", t->did) && json_is_null(json_object_get(dispute, "trace"));
}

static void ask_trace(struct trainer *t, const json_t *dispute, const char *key)
{
    json_t *context = context_of(t, value_integer(dispute, "round"), t->did);
    json_object_set_new(t->moves, key, json_null());
    if (context)
        trainer_act(t, ACTION_MOVE,
                    json_pack("{sssssOsOso}", "key", key, "move", "opening", "contribution",
                              json_object_get(dispute, "contribution"), "index", json_object_get(dispute, "index"), "context",
                              context));
}

static void sign_opening(struct trainer *t, const json_t *dispute, const char *key, json_t *trace)
{
    json_t *envelope =
        sign(t, "opening",
             json_pack("{sOsOsOsO}", "round", json_object_get(dispute, "round"), "contribution",
                       json_object_get(dispute, "contribution"), "index", json_object_get(dispute, "index"), "trace", trace));
    if (envelope)
        json_object_set_new(t->moves, key, envelope);
}

/* Traces the step once, signs the opening, and sends it until a record has it. */
void trainer_rule_answer(struct trainer *t)
{
    const json_t *disputes = json_object_get(t->previous, "disputes");
    bool ready = false;
    char key[DISPUTE_KEY];
    size_t i;
    json_t *one;
    if (t->phase >= DONE)
        return;
    json_array_foreach((json_t *)disputes, i, one)
    {
        if (!waits_for(t, one, key))
            continue;
        json_t *move = json_object_get(t->moves, key);
        if (!move)
            ask_trace(t, one, key);
        else if (json_is_string(move))
            sign_opening(t, one, key, move);
        ready = ready || json_is_object(json_object_get(t->moves, key));
    }
    if (!ready || t->phase == HALTED || !trainer_due(t, &t->answered_at))
        return;
    json_array_foreach((json_t *)disputes, i, one)
    {
        json_t *move = waits_for(t, one, key) ? json_object_get(t->moves, key) : NULL;
        if (json_is_object(move))
            trainer_push(t, move, NULL);
    }
}

/* ---- auditing ---------------------------------------------------------------------------------------------------------- */

/* Whether this contribution is one of those that are replayed here: a share of all, which nobody else can foresee to the last, or the one
 * that was named. */
static bool is_audited(const struct trainer *t, const json_t *entry, const json_t *contribution)
{
    const struct trainer_audit *a = &t->audit;
    char hex[HASH_TEXT];
    if (!value_is(entry, "kind", "train") || value_is(contribution, "did", t->did))
        return false;
    if (a->did[0])
        return value_integer(entry, "round") == a->round && value_is(contribution, "did", a->did);
    json_t *key = json_pack("[sO]", t->did, json_object_get(contribution, "cid"));
    value_hash(key, "rondo/audit", hex);
    json_decref(key);
    unsigned draw = 0;
    sscanf(hex, "%8x", &draw);
    return (int64_t)draw % DECIMAL_ONE < a->share;
}

static void replay(struct trainer *t, const json_t *entry, const json_t *contribution)
{
    const char *cid = value_text(contribution, "cid");
    json_t *context = context_of(t, value_integer(entry, "round"), value_text(contribution, "did"));
    if (!context)
        return;
    json_object_set_new(t->replays, cid, json_null());
    trainer_act(t, ACTION_FETCH, json_pack("{s[s]}", "documents", cid));
    trainer_act(t, ACTION_REPLAY, json_pack("{ssso}", "cid", cid, "context", context));
}

/* Tells once what became of the contribution that was named. */
static void tell(struct trainer *t, const char *verdict, int64_t leaf)
{
    if (!t->told)
        trainer_act(t, ACTION_STATE,
                    json_pack("{sssIsisssI}", "phase", "verdict", "round", (json_int_t)t->round, "view", -1, "verdict", verdict,
                              "leaf", (json_int_t)leaf));
    t->told = true;
}

/* Whether a record has this auditor's challenge of the contribution as open. */
static bool is_open(const struct trainer *t, const json_t *contribution)
{
    const json_t *disputes = json_object_get(t->previous, "disputes");
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)disputes, i, one)
    {
        if (value_is(one, "challenger", t->did) && value_is(one, "contribution", value_text(contribution, "cid")))
            return true;
    }
    return false;
}

static void challenge(struct trainer *t, const json_t *entry, const json_t *contribution, int64_t index)
{
    const char *cid = value_text(contribution, "cid");
    if (!json_object_get(t->challenges, cid)) {
        json_t *envelope = sign(t, "challenge",
                                json_pack("{sOsOsI}", "round", json_object_get(entry, "round"), "contribution",
                                          json_object_get(contribution, "cid"), "index", (json_int_t)index));
        if (!envelope)
            return;
        json_object_set_new(t->challenges, cid, envelope);
    }
    trainer_push(t, json_object_get(t->challenges, cid), NULL);
}

/* Replays what is audited while it can still be disputed, and challenges what is wrong, again and again until a record has it. */
void trainer_rule_audit(struct trainer *t)
{
    json_t *entry, *one;
    size_t i, k;
    bool speaks = false, named = false;
    if (t->phase >= DONE || !t->previous || (!t->audit.share && !t->audit.did[0]))
        return;
    if (t->audit.did[0] && fold_is_removed(json_object_get(t->previous, "convicted"), t->audit.did, t->audit.round))
        tell(t, "convicted", -1);
    if (value_lists(json_object_get(t->previous, "barred"), t->did)) {
        tell(t, "rejected", -1);
        return;
    }
    json_array_foreach(json_object_get(t->previous, "unsettled"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "contributions"), k, one)
        {
            const json_t *index = json_object_get(t->replays, value_text(one, "cid"));
            if (fold_is_removed(json_object_get(t->previous, "convicted"), value_text(one, "did"),
                                value_integer(entry, "round")) ||
                !is_audited(t, entry, one))
                continue;
            named = true;
            if (!index) {
                replay(t, entry, one);
            } else if (json_is_integer(index) && json_integer_value(index) < 0 && t->audit.did[0]) {
                tell(t, "equal", -1);
            } else if (json_is_integer(index) && json_integer_value(index) >= 0 && !is_open(t, one)) {
                speaks = speaks || trainer_due(t, &t->challenged_at);
                if (speaks)
                    challenge(t, entry, one, json_integer_value(index));
            }
        }
    }
    if (t->audit.did[0] && !named && value_integer(t->previous, "round") >= t->audit.round)
        tell(t, "settled", -1); /* or no record took it: there is nothing to dispute */
}

/* Own challenges that have been answered: evidence is made once, the pick sent until the dispute is over. */
void trainer_rule_pick(struct trainer *t)
{
    bool speaks = false;
    size_t i;
    json_t *one;
    if (t->phase >= DONE)
        return;
    json_array_foreach(json_object_get(t->previous, "disputes"), i, one)
    {
        char key[DISPUTE_KEY];
        if (!value_is(one, "challenger", t->did) || !json_is_string(json_object_get(one, "trace")))
            continue;
        disputes_key(one, key);
        json_t *move = json_object_get(t->moves, key);
        if (!move) {
            json_t *context = context_of(t, value_integer(one, "round"), value_text(one, "did"));
            json_object_set_new(t->moves, key, json_null());
            if (context)
                trainer_act(t, ACTION_MOVE,
                            json_pack("{sssssOsOsOso}", "key", key, "move", "pick", "contribution",
                                      json_object_get(one, "contribution"), "index", json_object_get(one, "index"), "trace",
                                      json_object_get(one, "trace"), "context", context));
            continue;
        }
        if (json_is_string(move)) {
            move = sign(t, "pick",
                        json_pack("{sOsOsOsOsO}", "round", json_object_get(one, "round"), "contribution",
                                  json_object_get(one, "contribution"), "index", json_object_get(one, "index"), "trace",
                                  json_object_get(one, "trace"), "evidence", move));
            if (!move)
                return;
            json_object_set_new(t->moves, key, move);
        }
        speaks = json_is_object(move) && (speaks || trainer_due(t, &t->picked_at));
        if (speaks)
            trainer_push(t, move, NULL);
    }
}
