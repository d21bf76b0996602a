#include "runtime/round/trainer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/assignment.h"
#include "runtime/round/certificate.h"
#include "runtime/round/fold.h"
#include "runtime/round/hardware.h"
#include "runtime/round/record.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

void trainer_act(struct trainer *t, enum action_kind kind, json_t *body)
{
    actions_add(t->out, kind, body);
}

static int64_t interval(const struct trainer *t)
{
    int64_t quarter = t->rules->view_ms / 4;
    return quarter < 20 ? 20 : quarter > 5000 ? 5000 : quarter;
}

bool trainer_due(struct trainer *t, int64_t *last)
{
    if (*last && t->now < *last + interval(t)) {
        if (*last + interval(t) < t->wake)
            t->wake = *last + interval(t);
        return false;
    }
    *last = t->now ? t->now : 1;
    if (*last + interval(t) < t->wake)
        t->wake = *last + interval(t);
    return true;
}

static json_t *panel(const struct trainer *t, const json_t *but)
{
    json_t *to = json_array(), *item;
    size_t i;
    json_array_foreach(t->rules->panel, i, item)
    {
        if (!json_object_get(but, value_text(item, "did")))
            json_array_append(to, json_object_get(item, "did"));
    }
    return to;
}

/* Takes the reference of `documents`. */
static void push_all(struct trainer *t, json_t *documents, const json_t *but)
{
    json_t *to = panel(t, but);
    if (json_array_size(to))
        trainer_act(t, ACTION_SEND, json_pack("{sOs{sO}}", "to", to, "message", "documents", documents));
    json_decref(to);
    json_decref(documents);
}

void trainer_push(struct trainer *t, json_t *envelope, const json_t *but)
{
    push_all(t, json_pack("[O]", envelope), but);
}

void trainer_tell_state(struct trainer *t)
{
    trainer_act(t, ACTION_STATE, json_pack("{sssIsi}", "phase", trainer_phase(t), "round", (json_int_t)t->round, "view", -1));
}

void trainer_halt(struct trainer *t, const char *code, const char *message)
{
    t->phase = HALTED;
    trainer_act(t, ACTION_HALT, json_pack("{ssss}", "code", code, "message", message));
}

static void clear(json_t **slot)
{
    json_decref(*slot);
    *slot = NULL;
}

static void open_round(struct trainer *t)
{
    t->round = (int64_t)json_array_size(t->finals);
    t->previous = t->round ? json_object_get(json_array_get(t->finals, (size_t)t->round - 1), "record") : NULL;
    t->phase = FOLLOWING;
    t->asked_block = t->asked_plan = t->asked_training = false;
    t->pushed_at = t->fetched_at = t->shown_at = t->committed_at = 0;
    t->plan_hash[0] = 0;
    clear(&t->block);
    clear(&t->plan);
    clear(&t->contribution);
    clear(&t->envelope);
    clear(&t->shown);
    clear(&t->committee);
    clear(&t->commitment);
    json_object_clear(t->acknowledged);
    json_object_clear(t->shown_to);
    json_object_clear(t->committed_to);
    json_object_clear(t->closed);
    if (t->previous && record_is_last(t->rules, t->previous))
        t->phase = DONE;
}

static void take_final(struct trainer *t, json_t *final)
{
    json_t *record = json_object_get(final, "record"), *certificate = json_object_get(final, "certificate");
    char key[32];
    if (value_integer(record, "round") != t->round || t->phase >= DONE ||
        !final_check(t->rules, t->previous, record, certificate, &t->signing, NULL))
        return;
    json_t *kept = json_pack("{sOsO}", "record", record, "certificate", certificate);
    json_array_append(t->finals, kept);
    snprintf(key, sizeof key, "final/%lld", (long long)t->round);
    trainer_act(t, ACTION_PERSIST, json_pack("{sssO}", "key", key, "value", kept));
    trainer_act(t, ACTION_FINAL,
                json_pack("{sIsOsO}", "round", (json_int_t)t->round, "record", record, "certificate", certificate));
    trainer_act(t, ACTION_CANCEL, json_pack("{sI}", "round", (json_int_t)t->round));
    json_decref(kept);
    open_round(t);
    if (t->phase == DONE)
        trainer_act(t, ACTION_DONE, json_pack("{sI}", "round", (json_int_t)t->round - 1));
    trainer_tell_state(t);
}

/* ---- rules: each does at most one thing ----------------------------------------------------------------------------- */

static void rule_follow(struct trainer *t)
{
    if (t->phase < DONE && trainer_due(t, &t->fetched_at))
        trainer_act(t, ACTION_FETCH, json_pack("{sI}", "round", (json_int_t)t->round));
}

static bool is_enrolled(const struct trainer *t)
{
    return value_find(json_object_get(t->previous, "members"), "did", t->did);
}

/* Whether a decided record has taken this enrolment, or listed it while its hardware had a seat: members pass over it from then on. */
static bool was_taken(const struct trainer *t, const json_t *enrolment, const char *cid)
{
    char root[HASH_TEXT];
    size_t i;
    json_t *final;
    hardware_root(enrolment, root);
    json_array_foreach(t->finals, i, final)
    {
        const json_t *record = json_object_get(final, "record"), *members = json_object_get(record, "members");
        if (value_is(value_find(members, "did", t->did), "enrolment", cid) ||
            (hardware_held(members, root, t->did) && value_find(json_object_get(record, "items"), "cid", cid)))
            return true;
    }
    return false;
}

/* Enrolled once and a member no more, or never one: the same fields again under the next serial that no record has taken. */
static void renew_enrolment(struct trainer *t)
{
    struct error err = { 0 };
    char type[32], cid[CID_TEXT];
    bool renewed = false;
    json_t *payload = t->signing.open(t->signing.context, t->enrolment, type, cid, &err), *fields = json_deep_copy(payload);
    while (fields && value_cid(fields, cid) && was_taken(t, fields, cid)) {
        json_object_set_new(fields, "serial", json_integer((json_int_t)value_integer(fields, "serial") + 1));
        renewed = true;
    }
    json_t *envelope = renewed ? t->signing.sign(t->signing.context, "enrolment", fields, &err) : NULL;
    if (envelope) {
        json_decref(t->enrolment);
        t->enrolment = envelope;
    } else if (!fields || renewed) {
        trainer_halt(t, "sign", err.message);
    }
    json_decref(payload);
    json_decref(fields);
}

static void rule_enrol(struct trainer *t)
{
    bool out = value_find(json_object_get(t->previous, "convicted"), "did", t->did);
    if (t->phase >= DONE || !t->enrolment || is_enrolled(t) || out || t->leaving ||
        t->round > amendment_rounds(t->rules, t->previous) || !trainer_due(t, &t->enrolled_at))
        return;
    renew_enrolment(t);
    if (t->phase != HALTED)
        trainer_push(t, t->enrolment, NULL);
}

/* Whether a round that is not settled lists something of this trainer's. */
static bool is_owed(const struct trainer *t)
{
    size_t i;
    json_t *round;
    json_array_foreach(json_object_get(t->previous, "unsettled"), i, round)
    {
        if (!json_is_true(json_object_get(round, "settled")) &&
            value_find(json_object_get(round, "contributions"), "did", t->did))
            return true;
    }
    return false;
}

static json_t *sign_leave(struct trainer *t)
{
    struct error err = { 0 };
    json_t *payload =
        json_pack("{sisssssI}", "version", 1, "run", t->rules->run, "signer", t->did, "round", (json_int_t)t->round);
    json_t *envelope = t->signing.sign(t->signing.context, "leave", payload, &err);
    json_decref(payload);
    if (!envelope)
        trainer_halt(t, "sign", err.message);
    return envelope;
}

static void rule_leave(struct trainer *t)
{
    if (!t->leaving || t->phase >= DONE)
        return;
    if (is_enrolled(t)) {
        if (!t->leave)
            t->leave = sign_leave(t);
        if (t->leave && trainer_due(t, &t->left_at))
            trainer_push(t, t->leave, NULL);
    } else if (!is_owed(t)) {
        t->phase = DONE;
        trainer_act(t, ACTION_DONE, json_pack("{sI}", "round", (json_int_t)t->round - 1));
        trainer_tell_state(t);
    }
}

void trainer_ask_block(struct trainer *t)
{
    if (t->block || t->asked_block)
        return;
    t->asked_block = true;
    trainer_act(t, ACTION_AWAIT_BLOCK, json_pack("{sI}", "height", (json_int_t)value_integer(t->previous, "next_height")));
}

/* Seed and plan of the open round; true when both are known. */
static bool rule_prepare(struct trainer *t)
{
    struct hash entropy;
    if (t->phase != FOLLOWING || !amendment_trains(t->rules, t->previous, t->round) || !is_enrolled(t) || !t->funded)
        return false;
    trainer_ask_block(t);
    if (!t->asked_plan) {
        t->asked_plan = true;
        json_t *request = fold_plan_request(t->rules, t->previous, t->round);
        fold_hash(request, t->plan_hash);
        trainer_act(t, ACTION_COMPUTE,
                    json_pack("{sssOsI}", "hash", t->plan_hash, "request", request, "round", (json_int_t)t->round));
        json_decref(request);
    }
    if (!t->block || !t->plan || !hash_parse(value_text(t->block, "entropy"), &entropy))
        return false;
    t->seed = seed_of(t->rules->run, (uint64_t)t->round, entropy.bytes, HASH_SIZE);
    return true;
}

static void rule_train(struct trainer *t)
{
    if (t->contribution || t->asked_training || !rule_prepare(t))
        return;
    t->asked_training = true;
    const json_t *certificate = json_object_get(json_array_get(t->finals, (size_t)t->round - 1), "certificate");
    json_t *parts = record_memory_parts(t->memory, t->rules, value_text(certificate, "record"), t->previous, t->seed);
    json_t *context = assignment_context_in(t->rules, t->previous, parts, t->round, t->seed, t->plan, t->did);
    json_decref(parts);
    if (!context)
        return;
    trainer_act(t, ACTION_TRAIN, json_pack("{sIso}", "round", (json_int_t)t->round, "context", context));
    t->phase = TRAINING;
    trainer_tell_state(t);
}

static void rule_push(struct trainer *t)
{
    struct error err = { 0 };
    if (!t->contribution || t->phase >= DONE || !trainer_may_show(t))
        return;
    if (!t->envelope) {
        t->envelope = t->signing.sign(t->signing.context, "contribution", t->contribution, &err);
        if (!t->envelope) {
            trainer_halt(t, "sign", err.message);
            return;
        }
        value_cid(t->contribution, t->cid);
        t->phase = PUSHING;
        trainer_tell_state(t);
    }
    if (trainer_due(t, &t->pushed_at))
        push_all(t, trainer_shown(t), t->acknowledged);
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

static void take_trained(struct trainer *t, const json_t *body)
{
    if (value_integer(body, "round") != t->round || t->contribution || t->phase != TRAINING)
        return;
    t->contribution = json_deep_copy(json_object_get(body, "contribution"));
    json_object_set_new(t->contribution, "version", json_integer(1));
    json_object_set_new(t->contribution, "run", json_string(t->rules->run));
    json_object_set_new(t->contribution, "round", json_integer(t->round));
    json_object_set_new(t->contribution, "signer", json_string(t->did));
    trainer_act(t, ACTION_PERSIST,
                json_pack("{sss{sssIsO}}", "key", "round", "value", "run", t->rules->run, "round", (json_int_t)t->round,
                          "contribution", t->contribution));
}

static void take_event(struct trainer *t, const struct event *event)
{
    json_t *body = event->body, *item;
    size_t i;
    switch (event->kind) {
    case EVENT_MESSAGE:
        json_array_foreach(json_object_get(body, "finals"), i, item) take_final(t, item);
        json_array_foreach(json_object_get(body, "documents"), i, item) trainer_take_closed(t, item);
        break;
    case EVENT_BLOCK:
        if (t->previous && value_integer(body, "height") >= value_integer(t->previous, "next_height") && !t->block)
            t->block = json_incref(body);
        break;
    case EVENT_FUNDED:
        t->funded = true;
        break;
    case EVENT_COMPUTED:
        if (*t->plan_hash && value_is(body, "hash", t->plan_hash) && !t->plan)
            t->plan = json_incref((json_t *)fold_plan_in(t->rules, body));
        break;
    case EVENT_TRAINED:
        take_trained(t, body);
        break;
    case EVENT_REPLAYED:
        json_object_set(t->replays, value_text(body, "cid"), json_object_get(body, "index"));
        break;
    case EVENT_MOVED:
        if (json_is_null(json_object_get(t->moves, value_text(body, "key"))))
            json_object_set(t->moves, value_text(body, "key"), json_object_get(body, "object"));
        break;
    case EVENT_ACKNOWLEDGED:
        if (value_is(body, "cid", t->cid))
            json_object_set_new(t->acknowledged, value_text(body, "did"), json_true());
        else if (t->commitment && value_is(body, "cid", t->committed))
            json_object_set_new(t->committed_to, value_text(body, "did"), json_true());
        else if (json_is_object(t->shown) && value_is(body, "cid", t->shown_cid))
            json_object_set_new(t->shown_to, value_text(body, "did"), json_true());
        break;
    case EVENT_LEAVE:
        t->leaving = true;
        break;
    default:
        break;
    }
}

void trainer_step(struct trainer *t, const struct event *event, struct actions *out)
{
    t->out = out;
    t->now = event->now;
    t->wake = INT64_MAX;
    if (t->phase == HALTED)
        return;
    take_event(t, event);
    rule_enrol(t);
    rule_leave(t);
    rule_train(t);
    rule_push(t);
    trainer_rule_answer(t);
    trainer_rule_show(t);
    trainer_rule_audit(t);
    trainer_rule_pick(t);
    rule_follow(t);
    if (t->wake != INT64_MAX && t->phase < DONE && (t->wake != t->timer || event->kind == EVENT_TIME)) {
        t->timer = t->wake;
        trainer_act(t, ACTION_TIMER, json_pack("{sI}", "at", (json_int_t)t->wake));
    }
    t->out = NULL;
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static bool restore(struct trainer *t, const struct trainer_start *start, struct error *err)
{
    size_t i;
    json_t *final;
    json_array_foreach(start->finals, i, final)
    {
        const json_t *record = json_object_get(final, "record");
        if (value_integer(record, "round") != (int64_t)i || !value_is(record, "run", t->rules->run))
            return error_set(err, ERROR_CONFLICT, "use the folder of this run",
                             "trainer: the records of this folder are not those of the run");
        json_array_append(t->finals, final);
    }
    open_round(t);
    if (start->durable && !value_is(start->durable, "run", t->rules->run))
        return error_set(err, ERROR_CONFLICT, "use the folder of this run", "trainer: the durable state belongs to another run");
    if (start->durable && value_integer(start->durable, "round") == t->round)
        t->contribution = json_deep_copy(json_object_get(start->durable, "contribution"));
    return true;
}

struct trainer *trainer_new(const struct trainer_start *start, struct error *err)
{
    struct trainer *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->rules = start->rules;
    t->signing = start->signing;
    t->memory = start->memory ? start->memory : &t->own_memory;
    t->enrolment = json_incref(start->enrolment);
    t->finals = json_array();
    t->acknowledged = json_object();
    t->moves = json_object();
    t->replays = json_object();
    t->challenges = json_object();
    t->waits = json_object();
    t->shown_to = json_object();
    t->committed_to = json_object();
    t->closed = json_object();
    t->audit = start->audit;
    snprintf(t->did, sizeof t->did, "%s", start->did);
    if (!restore(t, start, err)) {
        trainer_free(t);
        return NULL;
    }
    return t;
}

void trainer_free(struct trainer *t)
{
    if (!t)
        return;
    clear(&t->enrolment);
    clear(&t->finals);
    clear(&t->block);
    clear(&t->plan);
    clear(&t->contribution);
    clear(&t->envelope);
    clear(&t->acknowledged);
    clear(&t->moves);
    clear(&t->replays);
    clear(&t->challenges);
    clear(&t->leave);
    clear(&t->waits);
    clear(&t->shown);
    clear(&t->shown_to);
    clear(&t->committee);
    clear(&t->commitment);
    clear(&t->committed_to);
    clear(&t->closed);
    record_memory_clear(&t->own_memory);
    free(t);
}

int64_t trainer_round(const struct trainer *t)
{
    return t->round;
}

const char *trainer_phase(const struct trainer *t)
{
    static const char *const names[] = { "following", "training", "committing", "pushing", "done", "halted" };
    return names[t->phase];
}

const json_t *trainer_finals(const struct trainer *t)
{
    return t->finals;
}
