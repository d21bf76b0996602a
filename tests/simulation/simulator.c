#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/value.h"
#include "tests/simulation/adversary.h"
#include "tests/simulation/simulator_parts.h"

/* ---- the network ---------------------------------------------------------------------------------------------------- */

/* Whether a message would let its reader decide: the ones whose loss makes views change after a certificate. */
static bool decides(const json_t *message)
{
    size_t i;
    json_t *envelope;
    if (json_array_size(json_object_get(message, "finals")))
        return true;
    json_array_foreach(json_object_get(message, "documents"), i, envelope)
    {
        if (value_is(json_object_get(envelope, "payload"), "phase", "commit"))
            return true;
    }
    return false;
}

static void deliver(struct sim *s, int node, json_t *message)
{
    if (sim_faulty(s, s->set->loss) || (s->set->hide && decides(message) && sim_faulty(s, s->set->hide)))
        return;
    int times = 1 + sim_faulty(s, s->set->repeat);
    for (int i = 0; i < times; i++) {
        int64_t delay = 2 + sim_below(s, 40);
        if (sim_faulty(s, s->set->slow))
            delay += sim_below(s, 4000);
        sim_push(s, (struct queued){ .at = s->now + delay,
                                     .what = WHAT_EVENT,
                                     .node = node,
                                     .life = -1,
                                     .kind = EVENT_MESSAGE,
                                     .body = json_incref(message) });
    }
}

/* ---- a node --------------------------------------------------------------------------------------------------------- */

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

static void start_node(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    struct error err = { 0 };
    struct signing signing = { .context = s, .sign = sim_sign, .open = sim_open };
    json_t *finals = disk_finals(n), *durable = json_object_get(n->disk, "round");
    n->cancelled = -1;
    if (n->syncer) {
        struct member_start start = { .rules = &s->rules,
                                      .did = n->did,
                                      .signing = signing,
                                      .enrolment = n->enrolment,
                                      .durable = durable,
                                      .finals = finals,
                                      .fresh = !durable };
        n->member = member_new(&start, &err);
    } else {
        struct trainer_start start = {
            .rules = &s->rules, .did = n->did, .signing = signing, .enrolment = n->enrolment, .durable = durable, .finals = finals
        };
        n->trainer = trainer_new(&start, &err);
    }
    json_decref(finals);
    n->alive = n->member || n->trainer;
    if (!n->alive)
        sim_fail(s, "%s cannot restart: %s", n->did, err.message);
    n->timer = 0;
    sim_later(s, i, 1, EVENT_HEAD, json_pack("{sIsI}", "height", (json_int_t)s->height, "time", (json_int_t)(s->now / 1000)));
    sim_later(s, i, 1 + sim_below(s, 500), EVENT_FUNDED, json_pack("{si}", "time", 1));
}

static void stop_node(struct sim *s, int i, bool wipe)
{
    struct node *n = &s->nodes[i];
    member_free(n->member);
    trainer_free(n->trainer);
    n->member = NULL;
    n->trainer = NULL;
    n->alive = false;
    n->life++;
    s->result->deaths++;
    if (wipe) {
        json_object_clear(n->disk);
        json_object_clear(n->documents);
        n->wiped = true;
    }
    sim_push(s, (struct queued){
                    .at = s->now + 100 + (wipe ? 0 : sim_below(s, 5000)), .what = WHAT_START, .node = i, .life = n->life });
}

static void store_message(struct node *n, const json_t *message)
{
    size_t i;
    json_t *envelope;
    json_array_foreach(json_object_get(message, "documents"), i, envelope)
    {
        char cid[CID_TEXT];
        if (value_cid(json_object_get(envelope, "payload"), cid))
            json_object_set(n->documents, cid, envelope);
    }
}

static void answer_fetch(struct sim *s, int from, const json_t *body)
{
    json_t *names = json_object_get(body, "documents"), *name;
    json_t *documents = json_array(), *finals = json_array();
    size_t k;
    for (int i = 0; i < s->count; i++) {
        const struct node *n = &s->nodes[i];
        json_array_foreach(names, k, name)
        {
            json_t *held = json_object_get(n->documents, json_string_value(name));
            if (!held && n->member)
                held = (json_t *)member_document(n->member, json_string_value(name));
            if (held)
                json_array_append(documents, held);
        }
        const json_t *all = n->member ? member_finals(n->member) : NULL;
        for (int64_t r = value_integer(body, "round");
             !names && n->alive && i != from && (size_t)r < json_array_size(all) && r < value_integer(body, "round") + 8; r++)
            json_array_append(finals, json_array_get(all, (size_t)r));
        if (json_array_size(finals))
            break;
    }
    if (json_array_size(documents) || json_array_size(finals)) {
        json_t *message = json_pack("{sOsO}", "documents", documents, "finals", finals);
        deliver(s, from, message);
        json_decref(message);
    }
    json_decref(documents);
    json_decref(finals);
}

static void send_message(struct sim *s, int from, const json_t *body)
{
    json_t *message = json_object_get(body, "message"), *did;
    struct node *n = &s->nodes[from];
    size_t i;
    store_message(n, message);
    json_array_foreach(json_object_get(message, "documents"), i, did) sim_check_statement(s, n, did);
    json_array_foreach(json_object_get(body, "to"), i, did)
    {
        int to = sim_find(s, json_string_value(did));
        json_t *told = n->liar
                           ? adversary_message(s->set->liar, n->did, json_string_value(did), message, s->records, sim_chance(s))
                           : json_incref(message);
        if (told && to >= 0) {
            deliver(s, to, told);
            json_t *first = json_array_get(json_object_get(told, "documents"), 0);
            if (value_is(first, "type", "contribution") && !sim_faulty(s, s->set->loss)) {
                char cid[CID_TEXT];
                value_cid(json_object_get(first, "payload"), cid);
                sim_later(s, from, 60, EVENT_ACKNOWLEDGED, json_pack("{ssss}", "cid", cid, "did", s->nodes[to].did));
            }
        }
        json_decref(told);
    }
}

static void wait_block(struct sim *s, int node, int64_t height)
{
    json_array_append_new(s->waiting,
                          json_pack("{sisisI}", "node", node, "life", s->nodes[node].life, "height", (json_int_t)height));
}

static void new_block(struct sim *s)
{
    s->height++;
    for (size_t i = json_array_size(s->waiting); i-- > 0;) {
        const json_t *one = json_array_get(s->waiting, i);
        int node = (int)value_integer(one, "node");
        int64_t height = value_integer(one, "height");
        if (height > s->height)
            continue;
        if (s->nodes[node].life == (int)value_integer(one, "life"))
            sim_later(s, node, 1 + sim_below(s, 150), EVENT_BLOCK, sim_block_at(s, height));
        json_array_remove(s->waiting, i);
    }
    for (int i = 0; i < s->count; i++)
        if (s->nodes[i].alive && s->nodes[i].syncer)
            sim_later(s, i, 1 + sim_below(s, 100), EVENT_HEAD,
                      json_pack("{sIsI}", "height", (json_int_t)s->height, "time", (json_int_t)(s->now / 1000)));
    sim_push(s, (struct queued){ .at = s->now + BLOCK_MS, .what = WHAT_BLOCK });
}

static bool answers_training(const struct sim *s, int node, int64_t round)
{
    if (s->set->absent_trainer && round >= 2 && round <= 4 && node == s->count - 1)
        return false;
    return !(s->set->late_trainers && round == 2 && node - s->set->syncers >= s->set->quorum - 1);
}

static void perform(struct sim *s, int i, const struct action *action)
{
    struct node *n = &s->nodes[i];
    json_t *body = action->body, *made;
    bool lies = n->liar && s->set->liar == LIAR_FOLD;
    switch (action->kind) {
    case ACTION_PERSIST:
        json_object_set_new(n->disk, value_text(body, "key"), json_deep_copy(json_object_get(body, "value")));
        break;
    case ACTION_SEND:
        send_message(s, i, body);
        break;
    case ACTION_TIMER:
        n->timer = value_integer(body, "at");
        sim_push(s, (struct queued){ .at = n->timer, .what = WHAT_TIMER, .node = i, .life = n->life });
        break;
    case ACTION_AWAIT_BLOCK:
        wait_block(s, i, value_integer(body, "height"));
        break;
    case ACTION_CHECK:
        sim_later(s, i, 5 + sim_below(s, 50), EVENT_CHECKED,
                  json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code",
                            sim_check(json_object_get(body, "document"), json_object_get(body, "context"))));
        break;
    case ACTION_REPLAY:
        sim_later(s, i, 200 + sim_below(s, 800), EVENT_REPLAYED,
                  json_pack("{sOsI}", "cid", json_object_get(body, "cid"), "index", (json_int_t)sim_replay(s, body)));
        break;
    case ACTION_JUDGE:
        sim_later(s, i, 50 + sim_below(s, 300), EVENT_CHECKED,
                  json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code", sim_judge(s, body)));
        break;
    case ACTION_MOVE:
        if ((made = sim_move(s, i, body)))
            sim_later(s, i, 200 + sim_below(s, 800), EVENT_MOVED,
                      json_pack("{sOso}", "key", json_object_get(body, "key"), "object", made));
        break;
    case ACTION_COMPUTE: /* now and then so late that others have decided meanwhile */
        sim_later(s, i, sim_faulty(s, 100) ? 5 + sim_below(s, 20000) : 5 + sim_below(s, 100), EVENT_COMPUTED,
                  json_pack("{sOssso}", "hash", json_object_get(body, "hash"), "code", "ok", "result",
                            sim_compute(json_object_get(body, "request"), lies)));
        json_object_set(s->computing, value_text(body, "hash"), json_object_get(body, "round"));
        break;
    case ACTION_CANCEL:
        n->cancelled = value_integer(body, "round");
        break;
    case ACTION_TRAIN:
        if (answers_training(s, i, value_integer(body, "round")))
            sim_later(s, i, 300 + sim_below(s, 900), EVENT_TRAINED,
                      json_pack("{sOso}", "round", json_object_get(body, "round"), "contribution",
                                sim_training(s, i, json_object_get(body, "context"))));
        break;
    case ACTION_FETCH:
        answer_fetch(s, i, body);
        break;
    case ACTION_FINAL:
        if (!n->liar)
            sim_check_final(s, i, json_object_get(body, "record"));
        break;
    case ACTION_HALT:
        if (!n->liar)
            sim_fail(s, "%s halted: %s, %s", n->did, value_text(body, "code"), value_text(body, "message"));
        break;
    case ACTION_DONE:
    case ACTION_RELEASE:
    case ACTION_STATE:
        break;
    }
}

static void step_node(struct sim *s, int i, enum event_kind kind, json_t *body)
{
    struct node *n = &s->nodes[i];
    struct event event = { .kind = kind, .now = s->now, .body = body };
    struct actions actions = { 0 };
    if (kind == EVENT_MESSAGE)
        store_message(n, body);
    if (n->syncer)
        member_step(n->member, &event, &actions);
    else
        trainer_step(n->trainer, &event, &actions);
    /* A crash falls between any two actions. */
    size_t until = actions.count;
    bool dies = (!n->syncer || json_object_size(n->disk)) && sim_faulty(s, s->set->crash);
    if (dies)
        until = (size_t)sim_below(s, (int64_t)actions.count + 1);
    for (size_t k = 0; k < until; k++) {
        if (s->trace && actions.list[k].kind != ACTION_TIMER) {
            char *text = json_dumps(actions.list[k].body, JSON_COMPACT);
            printf("%8lld %s %s %.400s\n", (long long)s->now, n->did, action_name(actions.list[k].kind), text ? text : "null");
            free(text);
        }
        perform(s, i, &actions.list[k]);
    }
    actions_free(&actions);
    if (dies)
        stop_node(s, i, false);
}

/* A liar adds what no machine would say. */
static void liar_adds(struct sim *s, int i, json_t *message)
{
    json_t *extra = adversary_extra(s->set->liar, s->nodes[i].did, s->rules.run, message, s->records);
    size_t k;
    json_t *item;
    if (!extra)
        return;
    json_array_foreach(s->rules.panel, k, item)
    {
        int to = sim_find(s, value_text(item, "did"));
        if (to >= 0 && to != i && sim_below(s, 2))
            deliver(s, to, extra);
    }
    json_decref(extra);
}

/* ---- the run -------------------------------------------------------------------------------------------------------- */

/* Every decided round was recomputed: without that a member releases nothing. */
static bool all_verified(const struct member *member)
{
    const json_t *finals = member_finals(member), *last = json_array_get(finals, json_array_size(finals) - 1);
    return json_is_true(json_object_get(last, "verified"));
}

static bool all_done(const struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        const struct node *n = &s->nodes[i];
        if (n->syncer && !n->liar && (!n->alive || strcmp(member_phase(n->member), "done") || !all_verified(n->member)))
            return false;
    }
    return true;
}

/* An answer to a job that the node has cancelled. */
static bool is_cancelled(const struct sim *s, const struct queued *q)
{
    json_t *round = json_object_get(s->computing, value_text(q->body, "hash"));
    return q->what == WHAT_EVENT && q->kind == EVENT_COMPUTED && round &&
           json_integer_value(round) <= s->nodes[q->node].cancelled;
}

static void next_event(struct sim *s)
{
    struct queued q = sim_pop(s);
    struct node *n = &s->nodes[q.node];
    s->now = q.at;
    s->result->events++;
    if (q.what == WHAT_BLOCK) {
        new_block(s);
    } else if (q.what == WHAT_START) {
        if (q.life == n->life)
            start_node(s, q.node);
    } else if (q.what == WHAT_WIPE) {
        if (n->alive && json_object_get(s->finals, "0"))
            stop_node(s, q.node, true);
        else
            sim_push(s, (struct queued){ .at = s->now + 100, .what = WHAT_WIPE, .node = q.node });
    } else if (n->alive && (q.life == n->life || q.life < 0)) {
        if (q.what == WHAT_TIMER && q.at == n->timer)
            step_node(s, q.node, EVENT_TIME, NULL);
        else if (q.what == WHAT_EVENT && !is_cancelled(s, &q)) {
            if (q.kind == EVENT_MESSAGE && n->liar)
                liar_adds(s, q.node, q.body);
            step_node(s, q.node, q.kind, q.body);
        }
    }
    json_decref(q.body);
}

/* ---- set-up --------------------------------------------------------------------------------------------------------- */

static json_t *make_spec(const struct simulation *set, const struct sim *s)
{
    json_t *panel = json_array();
    for (int i = 0; i < set->syncers; i++)
        json_array_append_new(panel, json_pack("{ssss}", "did", s->nodes[i].did, "account", s->nodes[i].account));
    return json_pack("{sis{si}s{sisisisis{sssisi}}s{sisisisisosi}s{sssisiss}sis{sss{ssss}si}s{si}}", "rounds", set->rounds,
                     "dataset", "shards", 3 * set->trainers + 1, "quorum", "trainers", set->quorum, "round_ms", 8000, "close_ms",
                     400, "drop_after", 3, "grace", "factor", "3", "min_ms", 300, "max_ms", 4000, "committee", "size",
                     set->syncers, "threshold", set->threshold, "view_ms", VIEW_MS, "settle_ms", 150, "panel", panel,
                     "release_threshold", set->threshold, "trust", "spot_check", set->spot_check, "challenge_rounds", 3,
                     "answer_rounds", 1, "correction", set->rollback ? "rollback" : "refold", "seed_lead", 15, "payment",
                     "per_round", "1000", "terms", "trainers", "0.8", "syncers", "0.2", "expiry_rounds", 20, "limits", "trainers",
                     60);
}

static void make_nodes(struct sim *s)
{
    const struct simulation *set = s->set;
    bool syncer_lies = set->liar >= LIAR_VOTES && set->liar <= LIAR_SILENT;
    s->count = set->syncers + set->trainers;
    assert(s->count <= SIM_NODES);
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        n->syncer = i < set->syncers;
        snprintf(n->did, sizeof n->did, "did:sim:%c%02d", n->syncer ? 's' : 't', i);
        snprintf(n->account, sizeof n->account, "0x%040d", i + 1);
        n->liar = set->liar != LIAR_NONE && i == (syncer_lies ? (int)(set->seed % (uint64_t)set->syncers) : set->syncers);
        n->disk = json_object();
        n->documents = json_object();
    }
}

static void make_enrolments(struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        json_t *payload = json_pack("{sisssssssssi}", "version", 1, "run", s->rules.run, "signer", n->did, "role",
                                    n->syncer ? "syncer" : "trainer", "account", n->account, "round", 0);
        n->enrolment = sim_sign(s, "enrolment", payload, NULL);
        json_decref(payload);
        sim_push(s, (struct queued){ .at = sim_below(s, 1500), .what = WHAT_START, .node = i, .life = 0 });
    }
}

static void sim_free(struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        member_free(n->member);
        trainer_free(n->trainer);
        json_decref(n->disk);
        json_decref(n->documents);
        json_decref(n->enrolment);
    }
    while (s->heap_size)
        json_decref(sim_pop(s).body);
    free(s->heap);
    rules_free(&s->rules);
    json_t *const owned[] = { s->waiting, s->computing, s->signed_by, s->finals, s->records, s->documents };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
}

void simulation_run(const struct simulation *set, struct simulation_result *result, bool trace)
{
    struct sim *s = calloc(1, sizeof *s);
    struct error err = { 0 };
    assert(s);
    *result = (struct simulation_result){ 0 };
    *s = (struct sim){ .set = set,
                       .result = result,
                       .trace = trace,
                       .random = set->seed,
                       .waiting = json_array(),
                       .signed_by = json_object(),
                       .computing = json_object(),
                       .finals = json_object(),
                       .records = json_object(),
                       .documents = json_object() };
    make_nodes(s);
    json_t *spec = make_spec(set, s);
    assert(spec);
    if (!rules_read(&s->rules, spec, "bafk2bzasimulationofarun", &err))
        sim_fail(s, "rules: %s", err.message);
    json_decref(spec);
    rules_set_genesis(&s->rules, "genesis-outer", "genesis-state");
    make_enrolments(s);
    if (set->wipe_at)
        sim_push(s, (struct queued){ .at = set->wipe_at, .what = WHAT_WIPE, .node = 0 });
    sim_push(s, (struct queued){ .at = BLOCK_MS, .what = WHAT_BLOCK });
    while (!*result->failure && s->heap_size && s->now < set->give_up && !all_done(s))
        next_event(s);
    if (!*result->failure && !all_done(s)) {
        size_t used =
            (size_t)snprintf(result->failure, sizeof result->failure, "not at its end after %lld ms:", (long long)s->now);
        for (int i = 0; i < s->count && used < sizeof result->failure; i++)
            used +=
                (size_t)snprintf(result->failure + used, sizeof result->failure - used, " %s %s %lld/%lld", s->nodes[i].did + 8,
                                 s->nodes[i].member    ? member_phase(s->nodes[i].member)
                                 : s->nodes[i].trainer ? trainer_phase(s->nodes[i].trainer)
                                                       : "down",
                                 (long long)(s->nodes[i].member    ? member_round(s->nodes[i].member)
                                             : s->nodes[i].trainer ? trainer_round(s->nodes[i].trainer)
                                                                   : -1),
                                 (long long)(s->nodes[i].member ? member_view(s->nodes[i].member) : -1));
    }
    if (!*result->failure)
        sim_check_state(s);
    if (!*result->failure)
        sim_check_history(s);
    result->ended = s->now;
    sim_free(s);
    free(s);
}

struct simulation simulation_from_seed(uint64_t seed)
{
    struct sim dice = { .random = seed * 977 + 5 };
    static const int committees[][2] = { { 4, 3 }, { 4, 3 }, { 3, 2 }, { 1, 1 }, { 7, 5 } };
    int size = (int)sim_below(&dice, 16);
    size = size < 12 ? 0 : size - 11;
    struct simulation set = { .seed = seed, .syncers = committees[size][0], .threshold = committees[size][1] };
    bool may_lie = set.syncers >= 4;
    set.trainers = 3 + (int)sim_below(&dice, 3);
    set.quorum = 2;
    set.rounds = 2 + (int)sim_below(&dice, 3);
    int liar = (int)sim_below(&dice, LIAR_KINDS);
    set.liar = liar <= LIAR_SILENT && !may_lie ? LIAR_NONE : (enum liar)liar;
    set.spot_check = sim_below(&dice, 2) ? "1" : "0.3";
    if (sim_below(&dice, 4)) {
        set.faults_until = 5000 + sim_below(&dice, 25000);
        set.loss = (int)sim_below(&dice, 400);
        set.slow = (int)sim_below(&dice, 500);
        set.hide = sim_below(&dice, 2) ? 600 + (int)sim_below(&dice, 380) : 0;
        set.repeat = (int)sim_below(&dice, 100);
        set.crash = (int)sim_below(&dice, 6);
    }
    set.wipe_at = set.liar == LIAR_NONE && may_lie && sim_below(&dice, 2) ? 1000 + sim_below(&dice, 12000) : 0;
    set.give_up = set.faults_until + 400000;
    set.late_trainers = sim_below(&dice, 6) == 0;
    set.rollback = sim_below(&dice, 6) == 0;
    return set;
}
