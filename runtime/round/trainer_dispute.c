#include <stdio.h>
#include <string.h>

#include "native/base/decimal.h"
#include "runtime/round/assignment.h"
#include "runtime/round/committee.h"
#include "runtime/round/dispute.h"
#include "runtime/round/fold.h"
#include "runtime/round/record.h"
#include "runtime/round/seed.h"
#include "runtime/round/trainer_state.h"

static json_t *context_of(const struct trainer *t, int64_t round, const char *did)
{
    const json_t *record = json_object_get(json_array_get(t->finals, (size_t)round), "record");
    const json_t *before = json_object_get(json_array_get(t->finals, (size_t)round - 1), "record");
    return record_memory_context(t->memory, t->rules, before, record, did);
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
    if (!value_integer(dispute, "index")) { /* the carry is asked for */
        json_object_set(t->moves, key, json_object_get(json_object_get(context, "carry"), "object"));
        json_decref(context);
        return;
    }
    t->traced_in = t->round;
    if (context)
        trainer_act(t, ACTION_MOVE,
                    json_pack("{sssssOsOso}", "key", key, "move", "opening", "contribution",
                              json_object_get(dispute, "contribution"), "index", json_object_get(dispute, "index"), "context",
                              context));
}

static json_t *opening_of(const json_t *dispute, json_t *trace)
{
    return json_pack("{sOsOsOsO}", "round", json_object_get(dispute, "round"), "contribution",
                     json_object_get(dispute, "contribution"), "index", json_object_get(dispute, "index"), "trace", trace);
}

/* Tracing a step takes up to as long as training: many that ask falsely must not keep a trainer from its work. One trace is made at a time, and
 * until the round's own work is done one a round; whom it leaves out of time the members' replay of a silent accused answers. */
static bool may_trace(const struct trainer *t, bool made)
{
    return t->traced_in != t->round || (made && (t->contribution || !t->asked_training));
}

static void sign_opening(struct trainer *t, const json_t *dispute, const char *key, json_t *trace)
{
    json_t *envelope = sign(t, "opening", opening_of(dispute, trace));
    if (envelope)
        json_object_set_new(t->moves, key, envelope);
}

/* What pushes blocks goes to a member one after another (runtime/role/driver_send.c): were the order always the same, the others would wait
 * for ever behind the first. Takes the reference. */
static void push_in_turn(struct trainer *t, json_t *envelopes)
{
    size_t count = json_array_size(envelopes);
    for (size_t i = 0; i < count; i++)
        trainer_push(t, json_array_get(envelopes, (t->turn + i) % count), NULL);
    t->turn++;
    json_decref(envelopes);
}

/* Traces the step once, signs the opening, and sends it until a record has it. */
void trainer_rule_answer(struct trainer *t)
{
    const json_t *disputes = json_object_get(t->previous, "disputes");
    bool ready = false, made = true;
    char key[DISPUTE_KEY];
    size_t i;
    json_t *one;
    if (t->phase >= DONE)
        return;
    json_array_foreach((json_t *)disputes, i, one)
    {
        if (waits_for(t, one, key))
            made = made && !json_is_null(json_object_get(t->moves, key));
    }
    json_array_foreach((json_t *)disputes, i, one)
    {
        if (!waits_for(t, one, key))
            continue;
        if (!json_object_get(t->moves, key) && (!value_integer(one, "index") || may_trace(t, made))) {
            made = made && !value_integer(one, "index");
            ask_trace(t, one, key);
        }
        if (json_is_string(json_object_get(t->moves, key)))
            sign_opening(t, one, key, json_object_get(t->moves, key));
        ready = ready || json_is_object(json_object_get(t->moves, key));
    }
    if (!ready || t->phase == HALTED || !trainer_due(t, &t->answered_at))
        return;
    json_t *openings = json_array();
    json_array_foreach((json_t *)disputes, i, one)
    {
        json_t *move = waits_for(t, one, key) ? json_object_get(t->moves, key) : NULL;
        if (json_is_object(move))
            json_array_append(openings, move);
    }
    push_in_turn(t, openings);
}

/* ---- the carry ---------------------------------------------------------------------------------------------------------- */

/* What this trainer must show of the round before because the seed draws it for a replay: an opening of leaf 0, not signed; null: nothing. */
static json_t *drawn_carry(const struct trainer *t, const json_t *listed, json_t *object, struct hash seed)
{
    json_t *committee = committee_draw(t->rules, t->previous, t->round, &seed);
    json_t *spots = assignment_spots(t->rules, t->previous, seed, committee);
    json_t *shown = json_null();
    if (value_find(spots, "cid", value_text(listed, "cid"))) {
        json_t *about =
            json_pack("{sIsOsi}", "round", (json_int_t)t->round - 1, "contribution", json_object_get(listed, "cid"), "index", 0);
        shown = opening_of(about, object);
        json_decref(about);
    }
    json_decref(committee);
    json_decref(spots);
    return shown;
}

/* Shows a carry to the panel before anybody asks for it, until all have it or the round is over. */
void trainer_rule_show(struct trainer *t)
{
    const json_t *listed = value_find(json_object_get(t->previous, "contributions"), "did", t->did);
    struct hash entropy;
    if (t->phase >= DONE || json_is_null(t->shown) || !value_is(t->previous, "kind", "train") || !value_is(listed, "code", "ok"))
        return;
    if (!value_is(json_object_get(t->previous, "plan"), "inner", "keep")) {
        t->shown = json_null(); /* nobody begins with a carry */
        return;
    }
    if (!t->shown) {
        json_t *context = context_of(t, t->round - 1, t->did),
               *object = json_object_get(json_object_get(context, "carry"), "object");
        if (object)
            trainer_ask_block(t);
        if (!object || (t->block && hash_parse(value_text(t->block, "entropy"), &entropy)))
            t->shown = object
                           ? drawn_carry(t, listed, object, seed_of(t->rules->run, (uint64_t)t->round, entropy.bytes, HASH_SIZE))
                           : json_null();
        json_decref(context);
        if (!json_is_object(t->shown))
            return;
        json_t *payload = json_incref(t->shown); /* signing completes it */
        t->shown = sign(t, "opening", payload);
        value_cid(payload, t->shown_cid);
        json_decref(payload);
        if (!t->shown)
            return;
    }
    if (trainer_due(t, &t->shown_at))
        trainer_push(t, t->shown, t->shown_to);
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
    json_object_set_new(t->waits, cid, json_integer((json_int_t)t->now));
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

/* Whether a record has this auditor's challenge of the contribution, or its demand for the carry, as open. */
static bool is_open(const struct trainer *t, const json_t *contribution, bool demand)
{
    const json_t *disputes = json_object_get(t->previous, "disputes");
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)disputes, i, one)
    {
        if (value_is(one, "challenger", t->did) && value_is(one, "contribution", value_text(contribution, "cid")) &&
            (value_integer(one, "index") == 0) == demand)
            return true;
    }
    return false;
}

/* Whether its replay waits for a carry that must be asked for, while it may be. */
static bool lacks_carry(const struct trainer *t, const json_t *entry, const json_t *contribution)
{
    const char *cid = value_text(contribution, "cid");
    if (!json_is_null(json_object_get(t->replays, cid)) || t->now < value_integer(t->waits, cid) + 2 * t->rules->view_ms ||
        is_open(t, contribution, true) || t->round > value_integer(entry, "round") + t->rules->challenge_rounds)
        return false;
    json_t *context = context_of(t, value_integer(entry, "round"), value_text(contribution, "did"));
    bool carries = json_object_get(context, "carry");
    json_decref(context);
    return carries;
}

static void challenge(struct trainer *t, const json_t *entry, const json_t *contribution, int64_t index)
{
    char cid[CID_TEXT + 4];
    snprintf(cid, sizeof cid, "%s%s", value_text(contribution, "cid"), index ? "" : "/0");
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

/* The run is over: whether what was replayed was right, and if not, whether everybody who was wrong is convicted. */
static void sum_up(struct trainer *t)
{
    const char *cid, *verdict = "settled";
    json_t *index, *final, *entry;
    size_t i, k;
    json_array_foreach(t->finals, i, final)
    {
        json_array_foreach(json_object_get(json_object_get(final, "record"), "contributions"), k, entry)
        {
            cid = value_text(entry, "cid");
            index = json_object_get(t->replays, cid);
            if (!json_is_integer(index))
                continue;
            bool right = json_integer_value(index) < 0;
            if (!right && !fold_is_removed(json_object_get(t->previous, "convicted"), value_text(entry, "did"), (int64_t)i))
                verdict = "rejected";
            else if (!right && strcmp(verdict, "rejected"))
                verdict = "convicted";
            else if (right && !strcmp(verdict, "settled"))
                verdict = "equal";
        }
    }
    tell(t, verdict, -1);
}

/* Replays what is audited while it can still be disputed, and challenges what is wrong, again and again until a record has it. */
void trainer_rule_audit(struct trainer *t)
{
    json_t *entry, *one;
    size_t i, k;
    bool speaks = false, demands = false, named = false;
    if (t->phase == DONE && t->audit.sums_up)
        sum_up(t);
    if (t->phase > DONE || (t->phase == DONE && !t->audit.did[0]) || !t->previous || (!t->audit.share && !t->audit.did[0]))
        return;
    if (t->audit.did[0] && fold_is_removed(json_object_get(t->previous, "convicted"), t->audit.did, t->audit.round))
        tell(t, "convicted", -1);
    if (value_lists(json_object_get(t->previous, "barred"), t->did)) {
        tell(t, "rejected", -1);
        return;
    }
    if (t->phase == DONE) { /* nothing of a run that is over can be disputed */
        tell(t, "settled", -1);
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
            } else if (lacks_carry(t, entry, one)) {
                demands = demands || trainer_due(t, &t->demanded_at);
                if (demands)
                    challenge(t, entry, one, 0);
            } else if (json_is_integer(index) && json_integer_value(index) < 0 && t->audit.did[0]) {
                tell(t, "equal", -1);
            } else if (json_is_integer(index) && json_integer_value(index) >= 0 && !is_open(t, one, false) &&
                       (t->round <= value_integer(entry, "round") + t->rules->challenge_rounds || is_open(t, one, true))) {
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
    json_t *picks, *one;
    size_t i;
    if (t->phase >= DONE)
        return;
    picks = json_array();
    json_array_foreach(json_object_get(t->previous, "disputes"), i, one)
    {
        char key[DISPUTE_KEY];
        if (!value_is(one, "challenger", t->did) || !json_is_string(json_object_get(one, "trace")) ||
            !value_integer(one, "index"))
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
                break;
            json_object_set_new(t->moves, key, move);
        }
        if (json_is_object(move))
            json_array_append(picks, move);
    }
    if (json_array_size(picks) && t->phase != HALTED && trainer_due(t, &t->picked_at))
        push_in_turn(t, json_incref(picks));
    json_decref(picks);
}
