#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/claim.h"
#include "runtime/round/value.h"

/* ---- the own clock --------------------------------------------------------------------------------------------------- */

int64_t sim_clock(const struct sim *s, const struct node *n)
{
    return s->now * n->rate / 1000 + n->offset;
}

void sim_timer(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    int64_t at = ((n->timer_local - n->offset) * 1000 + n->rate - 1) / n->rate;
    n->timer = at > s->now ? at : s->now + 1;
    sim_push(s, (struct queued){ .at = n->timer, .what = WHAT_TIMER, .node = i, .life = n->life });
}

int64_t sim_round(const struct node *n)
{
    return n->member ? member_round(n->member) : n->trainer ? trainer_round(n->trainer) : -1;
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static json_t *disk_finals(const struct node *n)
{
    json_t *finals = json_array(), *value;
    char key[32];
    for (int r = 0;; r++) {
        snprintf(key, sizeof key, "final/%d", r);
        if (!(value = json_object_get(n->disk, key)))
            return finals;
        json_array_append(finals, value);
    }
}

/* What lies in the store and may matter for the open round is handed to a member that has just started, before anything else. */
static void take_up(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    json_t *documents = json_array(), *envelope;
    const char *cid;
    json_object_foreach(n->documents, cid, envelope)
    {
        const json_t *payload = json_object_get(envelope, "payload");
        if (!value_is(envelope, "type", "received") && value_integer(payload, "round") + 2 >= member_round(n->member))
            json_array_append(documents, envelope);
    }
    json_t *message = json_pack("{so}", "documents", documents);
    if (json_array_size(documents))
        sim_step(s, i, EVENT_MESSAGE, message);
    json_decref(message);
}

/* Whose enrolments lie in its store. */
static void read_enrolments(struct node *n)
{
    const char *cid;
    json_t *envelope;
    json_object_clear(n->enrolled);
    json_object_foreach(n->documents, cid, envelope)
    {
        if (value_is(envelope, "type", "enrolment"))
            json_object_set_new(n->enrolled, value_text(json_object_get(envelope, "payload"), "signer"), json_true());
    }
}

/* What an enrolment says of a trainer; who lies says whatever gets it most. */
static void say_capacity(const struct sim *s, const struct node *n, json_t *payload)
{
    static const char *const places[] = { "eu", "us", NULL };
    int64_t i = n - s->nodes;
    const char *place = n->lie != FAULT_KINDS ? "eu" : places[((uint64_t)i + s->set->seed / 16) % 3];
    if (n->syncer)
        return;
    if (s->set->capacities)
        json_object_set_new(payload, "capacity",
                            json_pack("{si}", "batches", n->lie != FAULT_KINDS ? MOST_BATCHES : (int)(1 + i % 3)));
    if (s->set->regions && place)
        json_object_set_new(payload, "region", json_string(place));
}

void sim_claim(const struct sim *s, const struct node *n, json_t *enrolment)
{
    char text[CLAIM_TEXT];
    if (s->set->replicas && !n->syncer)
        json_object_set_new(enrolment, "account_signature",
                            json_string(claim_sign(&n->key, s->rules.run, value_text(enrolment, "signer"), text)));
}

/* A member that begins without a disk begins with an enrolment of its own. */
static void enrol(struct sim *s, struct node *n)
{
    if (n->enrolment && (!n->syncer || json_object_get(n->disk, "round")))
        return;
    json_t *payload = json_pack("{sisssssssssi}", "version", 1, "run", s->rules.run, "signer", n->did, "role",
                                n->syncer ? "syncer" : "trainer", "account", n->account, "round", 0);
    if (n->syncer)
        json_object_set_new(payload, "nonce", json_integer(n->life));
    json_decref(n->enrolment);
    say_capacity(s, n, payload);
    sim_claim(s, n, payload);
    n->enrolment = sim_sign(s, "enrolment", payload, NULL);
    json_decref(payload);
}

static bool machine_new(struct sim *s, struct node *n, struct error *err)
{
    struct signing signing = sim_signing(s);
    struct record_memory *memory = s->count > LARGE ? &s->memory : NULL;
    json_t *finals = disk_finals(n), *durable = json_object_get(n->disk, "round");
    if (n->syncer) {
        struct member_start start = { .rules = &s->rules,
                                      .did = n->did,
                                      .signing = signing,
                                      .enrolment = n->enrolment,
                                      .durable = durable,
                                      .finals = finals,
                                      .fresh = !durable,
                                      .memory = memory };
        n->member = member_new(&start, err);
    } else {
        struct trainer_start start = { .rules = &s->rules,
                                       .did = n->did,
                                       .signing = signing,
                                       .enrolment = n->enrolment,
                                       .durable = durable,
                                       .finals = finals,
                                       .memory = memory };
        n->trainer = trainer_new(&start, err);
    }
    json_decref(finals);
    return n->member || n->trainer;
}

void sim_start(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    struct error err = { 0 };
    int64_t time;
    n->cancelled = -1;
    n->timer = 0;
    n->heard = json_object();
    n->wanting = json_array();
    n->wiped |= n->syncer && !json_object_get(n->disk, "round");
    enrol(s, n);
    read_enrolments(n);
    n->alive = machine_new(s, n, &err);
    if (!n->alive) {
        sim_fail(s, RESTART, "%s cannot restart: %s", n->did, err.message);
        return;
    }
    check_restart(s, i);
    if (n->syncer)
        take_up(s, i);
    if (!n->alive)
        return; /* it stopped again */
    n->head = chain_final(s->chain);
    sim_later(s, i, 1, EVENT_HEAD, json_pack("{sIsI}", "height", (json_int_t)n->head, "time", (json_int_t)(s->now / 1000)));
    if (chain_funded(s->chain, &time))
        sim_later(s, i, 1 + sim_below(s, 100), EVENT_FUNDED, json_pack("{sI}", "time", (json_int_t)time));
}

void sim_stop(struct sim *s, int i, bool wipe)
{
    struct node *n = &s->nodes[i];
    if (wipe) {
        n->lost_disk = true;
        json_object_clear(n->disk);
        json_object_clear(n->documents);
        json_object_clear(n->enrolled);
    }
    member_free(n->member);
    trainer_free(n->trainer);
    n->member = NULL;
    n->trainer = NULL;
    n->alive = false;
    n->life++;
    json_decref(n->heard);
    json_decref(n->closing);
    json_decref(n->wanting);
    json_decref(n->replays);
    n->heard = n->closing = n->wanting = n->replays = NULL;
    n->replaying = false;
    sim_push(s, (struct queued){
                    .at = s->now + 100 + (wipe ? 0 : sim_below(s, 5000)), .what = WHAT_START, .node = i, .life = n->life });
}

/* ---- replays ---------------------------------------------------------------------------------------------------------- */

static void replay_for(struct sim *s, int i, const json_t *body, int64_t ms)
{
    sim_later(s, i, ms, EVENT_REPLAYED,
              json_pack("{sOsI}", "cid", json_object_get(body, "cid"), "index", (json_int_t)sim_replay(s, body)));
}

/* In a besieged run each takes a third of a round, and a machine does one at a time. */
static void replay_next(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    if (n->replaying || !json_array_size(n->replays))
        return;
    n->replaying = true;
    replay_for(s, i, json_array_get(n->replays, 0), ROUND_MS / 3);
    json_array_remove(n->replays, 0);
}

void sim_replayed(struct sim *s, int i)
{
    s->nodes[i].replaying = false;
    replay_next(s, i);
}

static void replay(struct sim *s, int i, json_t *body)
{
    struct node *n = &s->nodes[i];
    if (!s->set->besieged) {
        replay_for(s, i, body, 200 + sim_below(s, 800));
        return;
    }
    if (!n->replays)
        n->replays = json_array();
    size_t at = 0;
    while (at < json_array_size(n->replays) &&
           (!json_object_get(body, "first") || json_object_get(json_array_get(n->replays, at), "first")))
        at++;
    json_array_insert(n->replays, at, body);
    replay_next(s, i);
}

/* Whose openings nobody gets the object of: a mute trainer either says nothing or names what it does not hand out. */
static bool is_mute(const struct sim *s, const char *did)
{
    int node = sim_find(s, did);
    return node >= 0 && s->nodes[node].lie == LIE_MUTE;
}

bool sim_shows_nothing(const struct sim *s)
{
    return s->set->keeps && s->set->seed % 2 == 0;
}

/* Whether the trainer has shown this node what the contribution begins with, if it begins with anything. */
static bool has_carry(const struct sim *s, const struct node *n, const json_t *body)
{
    const json_t *carry = json_object_get(json_object_get(body, "context"), "carry");
    const json_t *made = json_object_get(s->documents, value_text(body, "cid"));
    const char *cid;
    json_t *envelope;
    if (!carry || !json_is_string(json_object_get(json_object_get(made, "payload"), "carry_in")))
        return true;
    if (is_mute(s, value_text(json_object_get(body, "context"), "did")))
        return false;
    json_object_foreach(n->documents, cid, envelope)
    {
        const json_t *payload = json_object_get(envelope, "payload");
        if (value_is(envelope, "type", "opening") && value_is(payload, "contribution", value_text(body, "cid")) &&
            value_is(payload, "trace", value_text(carry, "object")))
            return true;
    }
    return false;
}

void sim_shown(struct sim *s)
{
    for (int i = 0; i < s->count; i++)
        for (size_t k = json_array_size(s->nodes[i].wanting); k-- > 0;) {
            json_t *body = json_array_get(s->nodes[i].wanting, k);
            if (!has_carry(s, &s->nodes[i], body))
                continue;
            replay(s, i, body);
            json_array_remove(s->nodes[i].wanting, k);
        }
}

/* ---- actions --------------------------------------------------------------------------------------------------------- */

/* The machine goes on changing the lists it holds, not what stands in them. */
static void write_disk(struct node *n, const json_t *body)
{
    json_t *value = json_copy(json_object_get(body, "value")), *part;
    const char *name;
    json_object_foreach(value, name, part) json_object_set_new(value, name, json_copy(part));
    json_object_set_new(n->disk, value_text(body, "key"), value);
}

/* The newest head that an honest member knew when it first voted for a record in a view. */
static void prepares(struct sim *s, const struct node *n, const json_t *vote)
{
    char key[CID_TEXT + 24], who[CID_TEXT + 48];
    snprintf(key, sizeof key, "%s/%lld", value_text(vote, "record"), (long long)value_integer(vote, "view"));
    snprintf(who, sizeof who, "%s/%s", key, n->did);
    if (json_object_get(s->prepared, who))
        return;
    json_object_set_new(s->prepared, who, json_true());
    if (value_integer(s->prepared, key) < n->head)
        json_object_set_new(s->prepared, key, json_integer(n->head));
}

/* False: the machine stops. Who writes in vain must not go on. */
static bool persist(struct sim *s, int i, const json_t *body)
{
    struct node *n = &s->nodes[i];
    const json_t *own = json_object_get(json_object_get(body, "value"), "own");
    if (json_object_get(own, "prepare") && n->lie == FAULT_KINDS)
        prepares(s, n, json_object_get(own, "prepare"));
    bool full = s->now < n->full_until, stops = full || sim_fault(s, FAULT_FSYNC, i) || sim_fault(s, FAULT_TORN, i);
    if (!full && (!stops || sim_below(s, 2))) /* what failed may have got there all the same */
        write_disk(n, body);
    return !stops;
}

static void compute(struct sim *s, int i, const json_t *body)
{
    struct node *n = &s->nodes[i];
    const json_t *request = json_object_get(body, "request");
    const char *hash = value_text(body, "hash");
    bool fold = value_is(request, "kind", "fold"), wrong = fold && n->lie == LIE_ROOTS;
    json_t *result = json_object_get(s->results, hash);
    if (!result)
        json_object_set_new(s->results, hash, result = sim_compute(s, request, false));
    if (wrong)
        sim_lie(s, LIE_ROOTS);
    sim_later(s, i, fold && sim_fault(s, FAULT_LATE, i) ? 5 + sim_below(s, 20000) : 5 + sim_below(s, 100), EVENT_COMPUTED,
              json_pack("{sssssosO}", "hash", hash, "code", "ok", "result",
                        wrong ? sim_compute(s, request, true) : json_incref(result), "round", json_object_get(body, "round")));
}

static bool answers_training(struct sim *s, int i, int64_t round)
{
    if (s->set->late_trainers && round == 2 && i - s->set->syncers >= s->set->quorum - 1)
        return false;
    if (s->set->absent_trainer && round >= 2 && round <= 4 && i == s->count - 1)
        return false;
    return i - s->set->syncers < s->set->quorum + s->set->lying_trainers || !sim_fault(s, FAULT_ABSENT, i);
}

/* What a member had taken in when it closed its round must be listed, and then stand in the record. */
static void closes(struct node *n, const json_t *body)
{
    if (!n->syncer || !value_is(body, "phase", "collecting") || value_integer(body, "round") == n->closing_round)
        return;
    const char *cid;
    json_t *envelope;
    json_decref(n->closing);
    n->closing = json_object();
    n->closing_round = value_integer(body, "round");
    json_object_foreach(n->heard, cid, envelope)
    {
        if (value_integer(json_object_get(envelope, "payload"), "round") == n->closing_round)
            json_object_set(n->closing, cid, envelope);
    }
}

static bool perform(struct sim *s, int i, const struct action *action)
{
    struct node *n = &s->nodes[i];
    json_t *body = action->body, *made;
    switch (action->kind) {
    case ACTION_PERSIST:
        return persist(s, i, body);
    case ACTION_SEND:
        network_send(s, i, body);
        break;
    case ACTION_TIMER:
        n->timer_local = value_integer(body, "at");
        sim_timer(s, i);
        break;
    case ACTION_AWAIT_BLOCK:
        json_array_append_new(
            s->waiting, json_pack("{sisisI}", "node", i, "life", n->life, "height", (json_int_t)value_integer(body, "height")));
        break;
    case ACTION_CHECK: /* blocks that were damaged in the store are fetched again, from another */
        sim_later(s, i, (sim_fault(s, FAULT_FLIP, i) ? 300 + sim_below(s, 1200) : 5) + sim_below(s, 50), EVENT_CHECKED,
                  json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code",
                            sim_check(json_object_get(body, "document"), json_object_get(body, "context"))));
        break;
    case ACTION_REPLAY:
        if (has_carry(s, n, body))
            replay(s, i, body);
        else
            json_array_append(n->wanting, body);
        break;
    case ACTION_DEPOSIT: /* in round 0 those that come before the run is funded are waited for */
        if (chain_deposit(s, value_text(body, "did")) || value_integer(body, "round"))
            sim_later(s, i, 50 + sim_below(s, 200), EVENT_CHECKED,
                      json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code",
                                chain_deposit(s, value_text(body, "did")) ? "ok" : "deposit"));
        else
            json_array_append_new(s->unlocked, json_pack("{sisisO}", "node", i, "life", n->life, "body", body));
        break;
    case ACTION_JUDGE:
        if (value_is(body, "move", "opening") && is_mute(s, value_text(json_object_get(body, "context"), "did")))
            break;
        sim_later(s, i, 50 + sim_below(s, 300), EVENT_CHECKED,
                  json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code", sim_judge(s, body)));
        break;
    case ACTION_MOVE:
        if ((made = sim_move(s, i, body)))
            sim_later(s, i, 200 + sim_below(s, 800), EVENT_MOVED,
                      json_pack("{sOso}", "key", json_object_get(body, "key"), "object", made));
        break;
    case ACTION_COMPUTE:
        compute(s, i, body);
        break;
    case ACTION_CANCEL:
        n->cancelled = value_integer(body, "round");
        break;
    case ACTION_TRAIN:
        check_told(s, i, json_object_get(body, "context"));
        if (answers_training(s, i, value_integer(body, "round")))
            sim_later(s, i, 300 + sim_below(s, 900), EVENT_TRAINED,
                      json_pack("{sOso}", "round", json_object_get(body, "round"), "contribution",
                                sim_training(s, i, json_object_get(body, "context"))));
        break;
    case ACTION_FETCH:
        network_fetch(s, i, body);
        break;
    case ACTION_FINAL:
        if (n->lie == FAULT_KINDS)
            check_final(s, i, json_object_get(body, "record"), json_object_get(body, "certificate"));
        break;
    case ACTION_HALT:
        if (n->lie == FAULT_KINDS)
            sim_fail(s, FORK, "%s halted: %s, %s", n->did, value_text(body, "code"), value_text(body, "message"));
        break;
    case ACTION_RELEASE:
        chain_release(s, i, body);
        break;
    case ACTION_STATE:
        closes(n, body);
        check_leads(s, n, body);
        break;
    case ACTION_DONE:
        break;
    }
    return true;
}

static void tell_action(struct sim *s, const struct node *n, const struct action *action)
{
    char *text = json_dumps(action->body, JSON_COMPACT);
    sim_tell(s, 2, n->did, "%s %.400s", action_name(action->kind), text ? text : "null");
    free(text);
}

void sim_step(struct sim *s, int i, enum event_kind kind, json_t *body)
{
    struct node *n = &s->nodes[i];
    struct event event = { .kind = kind, .now = sim_clock(s, n), .body = body };
    struct actions actions = { 0 };
    if (kind == EVENT_MESSAGE)
        network_store(n, body);
    if (n->syncer)
        member_step(n->member, &event, &actions);
    else
        trainer_step(n->trainer, &event, &actions);
    /* A crash falls between any two actions. */
    size_t until = actions.count;
    bool stops = sim_fault(s, FAULT_CRASH, i);
    if (stops)
        until = (size_t)sim_below(s, (int64_t)actions.count + 1);
    for (size_t k = 0; k < until && !s->result->broken; k++) {
        if (s->set->trace >= 2 && actions.list[k].kind != ACTION_TIMER)
            tell_action(s, n, &actions.list[k]);
        if (!perform(s, i, &actions.list[k])) {
            stops = true;
            break;
        }
    }
    actions_free(&actions);
    if (stops)
        sim_stop(s, i, false);
}
