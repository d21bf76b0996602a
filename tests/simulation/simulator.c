#include "tests/simulation/simulator.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/fold.h"
#include "runtime/round/history.h"
#include "runtime/round/member.h"
#include "runtime/round/payout.h"
#include "runtime/round/record.h"
#include "runtime/round/trainer.h"
#include "runtime/round/value.h"
#include "tests/simulation/adversary.h"

enum { NODES = 24, BLOCK_MS = 200, VIEW_MS = 1000 };

enum what { WHAT_EVENT, WHAT_TIMER, WHAT_BLOCK, WHAT_START, WHAT_WIPE };

struct queued {
    int64_t at;
    uint64_t order;
    enum what what;
    int node, life; /* life: of which incarnation; -1 any */
    enum event_kind kind;
    json_t *body;
};

struct node {
    char did[96], account[48];
    bool syncer, liar, alive, wiped, started;
    int life;
    struct member *member;
    struct trainer *trainer;
    json_t *disk;      /* key -> value: what was persisted */
    json_t *documents; /* cid -> envelope: what the node's store holds */
    json_t *enrolment;
    int64_t timer, cancelled; /* jobs of rounds up to `cancelled` are never answered */
};

struct sim {
    const struct simulation *set;
    struct simulation_result *result;
    bool trace;
    uint64_t random;
    int64_t now;
    uint64_t order;
    struct queued *heap;
    size_t heap_size, heap_capacity;
    struct rules rules;
    struct node nodes[NODES];
    int count;
    int64_t height;
    json_t *waiting;   /* [ { node, life, height } ] for blocks */
    json_t *computing; /* request hash -> round */
    json_t *signed_by; /* "did/type/round/view/phase" -> cid */
    json_t *finals;    /* round -> CID of the record */
    json_t *records;   /* round -> record */
    json_t *documents; /* cid -> payload of everything ever signed */
    int done;
};

/* ---- chance --------------------------------------------------------------------------------------------------------- */

static uint64_t chance(struct sim *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t below(struct sim *s, int64_t n)
{
    return (int64_t)(chance(s) % (uint64_t)n);
}

static bool faulty(struct sim *s, int per_mille)
{
    return s->now < s->set->faults_until && below(s, 1000) < per_mille;
}

__attribute__((format(printf, 2, 3))) static void fail(struct sim *s, const char *format, ...)
{
    va_list list;
    if (*s->result->failure)
        return;
    va_start(list, format);
    vsnprintf(s->result->failure, sizeof s->result->failure, format, list);
    va_end(list);
}

/* ---- events by time ------------------------------------------------------------------------------------------------- */

static bool before(const struct queued *a, const struct queued *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void queue_push(struct sim *s, struct queued q)
{
    q.order = s->order++;
    if (s->heap_size == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? 2 * s->heap_capacity : 256;
        s->heap = realloc(s->heap, s->heap_capacity * sizeof *s->heap);
        assert(s->heap);
    }
    size_t i = s->heap_size++;
    for (; i > 0 && before(&q, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = q;
}

static struct queued queue_pop(struct sim *s)
{
    struct queued top = s->heap[0], last = s->heap[--s->heap_size];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->heap_size)
            break;
        if (child + 1 < s->heap_size && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

/* An answer to this incarnation of the node. */
static void later(struct sim *s, int node, int64_t ms, enum event_kind kind, json_t *body)
{
    queue_push(
        s, (struct queued){
               .at = s->now + ms, .what = WHAT_EVENT, .node = node, .life = s->nodes[node].life, .kind = kind, .body = body });
}

static int find_node(const struct sim *s, const char *did)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->nodes[i].did, did))
            return i;
    return -1;
}

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
    if (faulty(s, s->set->loss) || (s->set->hide && decides(message) && faulty(s, s->set->hide)))
        return;
    int times = 1 + faulty(s, s->set->repeat);
    for (int i = 0; i < times; i++) {
        int64_t delay = 2 + below(s, 40);
        if (faulty(s, s->set->slow))
            delay += below(s, 4000);
        queue_push(s, (struct queued){ .at = s->now + delay,
                                       .what = WHAT_EVENT,
                                       .node = node,
                                       .life = -1,
                                       .kind = EVENT_MESSAGE,
                                       .body = json_incref(message) });
    }
}

/* ---- keys that cost nothing: nobody here forges; the tests of the document layer do ---------------------------------- */

static json_t *sim_sign(void *context, const char *type, json_t *payload, struct error *err)
{
    struct sim *s = context;
    char cid[CID_TEXT];
    (void)err;
    value_cid(payload, cid);
    json_object_set(s->documents, cid, payload);
    return json_pack("{sssO}", "type", type, "payload", payload);
}

/* A statement that leaves its signer: what a crash kept from being sent was never said. */
static void note_statement(struct sim *s, const struct node *from, const json_t *envelope)
{
    const json_t *payload = json_object_get(envelope, "payload");
    const char *type = value_text(envelope, "type");
    char key[256], cid[CID_TEXT];
    if (from->liar || !value_is(payload, "signer", from->did) || !strcmp(type, "challenge") || !strcmp(type, "equivocation"))
        return;
    if (from->wiped && !value_integer(payload, "round"))
        return; /* a disk lost in round 0 makes a new machine: docs/protocol.md */
    value_cid(payload, cid);
    snprintf(key, sizeof key, "%s/%s/%lld/%lld/%s", from->did, type, (long long)value_integer(payload, "round"),
             (long long)value_integer(payload, "view"), value_text(payload, "phase"));
    const json_t *known = json_object_get(s->signed_by, key);
    if (known && strcmp(json_string_value(known), cid))
        fail(s, "%s signed two statements: %s", from->did, key);
    json_object_set_new(s->signed_by, key, json_string(cid));
}

static json_t *sim_open(void *context, const json_t *envelope, char type[32], struct error *err)
{
    (void)context;
    (void)err;
    snprintf(type, 32, "%s", value_text(envelope, "type"));
    return json_incref(json_object_get(envelope, "payload"));
}

/* ---- the worker: hashes instead of training ------------------------------------------------------------------------- */

static json_t *text_hash(const char *type, const json_t *value)
{
    char hex[HASH_TEXT];
    value_hash(value, type, hex);
    return json_string(hex);
}

static json_t *honest_body(const json_t *context)
{
    json_t *key = json_pack("{sOsOsO}", "seed", json_object_get(context, "seed"), "did", json_object_get(context, "did"), "state",
                            json_object_get(context, "state"));
    json_t *body = text_hash("sim/body", key);
    json_decref(key);
    return body;
}

/* outer' = H(outer, round, contributions) */
static json_t *fold_step(const json_t *outer, const json_t *round, const json_t *contributions)
{
    json_t *key = json_pack("[OOO]", outer, round, contributions), *next = text_hash("sim/outer", key);
    json_decref(key);
    return next;
}

static json_t *sim_compute(const json_t *request, bool wrong)
{
    if (value_is(request, "kind", "plan"))
        return json_pack("{s{sisO}}", "plan", "steps", 20, "round", json_object_get(request, "round"));
    json_t *outer = json_incref(json_object_get(request, "from")), *steps = json_array(), *round;
    size_t i;
    json_array_foreach(json_object_get(request, "rounds"), i, round)
    {
        json_t *next = fold_step(outer, json_object_get(round, "round"), json_object_get(round, "contributions"));
        json_decref(outer);
        outer = wrong ? text_hash("sim/wrong", next) : json_incref(next);
        json_decref(next);
        json_array_append_new(steps, json_pack("{sOsOso}", "round", json_object_get(round, "round"), "outer", outer, "state",
                                               text_hash("sim/state", outer)));
    }
    return json_pack("{sososo}", "aggregate", text_hash("sim/aggregate", outer), "steps", steps, "telemetry",
                     json_pack("{so}", "norm", outer));
}

static json_t *sim_training(struct sim *s, int node, const json_t *context)
{
    enum liar liar = s->nodes[node].liar ? s->set->liar : LIAR_NONE;
    json_t *body = honest_body(context), *contribution;
    if (liar == LIAR_BODY && value_integer(context, "round") >= 2) {
        json_t *lie = text_hash("sim/lie", body);
        json_decref(body);
        body = lie;
    }
    contribution = json_pack("{soss}", "body", body, "start", value_text(context, "state"));
    if (liar == LIAR_BROKEN)
        json_object_set_new(contribution, "broken", json_true());
    if (liar == LIAR_WITHHELD)
        json_object_set_new(contribution, "withheld", json_true());
    return contribution;
}

static const char *sim_check(const json_t *document, const json_t *context)
{
    if (json_object_get(document, "withheld"))
        return "missing";
    if (json_object_get(document, "broken"))
        return "truncated";
    return value_is(document, "start", value_text(context, "state")) ? "ok" : "start";
}

static int64_t sim_replay(const struct sim *s, const json_t *body)
{
    const json_t *document = json_object_get(s->documents, value_text(body, "cid"));
    json_t *honest = honest_body(json_object_get(body, "context"));
    bool equal = value_is(document, "body", json_string_value(honest));
    json_decref(honest);
    return equal ? -1 : 3;
}

/* ---- invariants ----------------------------------------------------------------------------------------------------- */

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
            fail(s, "round %s: %s is %s", key, value_text(line, "did"), kept ? "accepted and not paid" : "paid and not accepted");
    }
    json_array_foreach(json_object_get(payout, "paid"), i, line)
    {
        bool trainer = value_is(line, "role", "trainer");
        paid += trainer;
        *(trainer ? &trainers : &syncers) += payout_parse(value_text(line, "amount"));
    }
    if (paid != accepted || (paid && trainers != 800) || syncers > 200)
        fail(s, "round %s: %zu paid of %zu accepted, pools of %d and %d", key, paid, accepted, (int)trainers, (int)syncers);
}

static void check_final(struct sim *s, int node, json_t *record)
{
    char cid[CID_TEXT], key[32];
    int64_t round = value_integer(record, "round");
    value_cid(record, cid);
    snprintf(key, sizeof key, "%lld", (long long)round);
    const json_t *known = json_object_get(s->finals, key);
    if (known) {
        if (strcmp(json_string_value(known), cid))
            fail(s, "round %s has two final records (%s)", key, s->nodes[node].did);
        return;
    }
    json_object_set_new(s->finals, key, json_string(cid));
    json_object_set(s->records, key, record);
    snprintf(key, sizeof key, "%lld", (long long)round - 1);
    if (round && strcmp(value_text(record, "previous"), json_string_value(json_object_get(s->finals, key)) ?: ""))
        fail(s, "round %lld does not follow round %s", (long long)round, key);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(record, "convicted"), i, item)
    {
        int who = find_node(s, value_text(item, "did"));
        if (who < 0 || !s->nodes[who].liar)
            fail(s, "round %lld: %s is honest and convicted", (long long)round, value_text(item, "did"));
        s->result->liar_convicted = true;
    }
    json_array_foreach(json_object_get(record, "settled"), i, item) check_paid(s, record, item);
    s->result->train += value_is(record, "kind", "train");
    s->result->skip += value_is(record, "kind", "skip");
    snprintf(s->result->state, sizeof s->result->state, "%s", value_text(record, "state"));
}

/* Whether what `did` gave to round `of` stands in the last state: convictions reach back over rounds open at the time. */
static bool stands(const struct sim *s, const json_t *last, const char *did, int64_t of)
{
    const json_t *entry = value_find(json_object_get(last, "convicted"), "did", did);
    return !entry || value_integer(entry, "round") > of || of + s->rules.challenge_rounds < value_integer(entry, "record");
}

/* Folds again, plainly, what was kept. */
static void check_state(struct sim *s)
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
            json_t *next = fold_step(outer, number, kept);
            json_decref(outer);
            outer = next;
        }
        json_decref(kept);
        json_decref(number);
    }
    if (!s->set->rollback && strcmp(json_string_value(outer), value_text(last, "outer")))
        fail(s, "the last state is not the fold of what was kept");
    json_decref(outer);
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
        fail(s, "%s cannot restart: %s", n->did, err.message);
    n->timer = 0;
    later(s, i, 1, EVENT_HEAD, json_pack("{sIsI}", "height", (json_int_t)s->height, "time", (json_int_t)(s->now / 1000)));
    later(s, i, 1 + below(s, 500), EVENT_FUNDED, json_pack("{si}", "time", 1));
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
    queue_push(
        s, (struct queued){ .at = s->now + 100 + (wipe ? 0 : below(s, 5000)), .what = WHAT_START, .node = i, .life = n->life });
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
    json_array_foreach(json_object_get(message, "documents"), i, did) note_statement(s, n, did);
    json_array_foreach(json_object_get(body, "to"), i, did)
    {
        int to = find_node(s, json_string_value(did));
        json_t *told = n->liar ? adversary_message(s->set->liar, n->did, json_string_value(did), message, s->records, chance(s))
                               : json_incref(message);
        if (told && to >= 0) {
            deliver(s, to, told);
            json_t *first = json_array_get(json_object_get(told, "documents"), 0);
            if (value_is(first, "type", "contribution") && !faulty(s, s->set->loss)) {
                char cid[CID_TEXT];
                value_cid(json_object_get(first, "payload"), cid);
                later(s, from, 60, EVENT_ACKNOWLEDGED, json_pack("{ssss}", "cid", cid, "did", s->nodes[to].did));
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

static json_t *block_at(const struct sim *s, int64_t height)
{
    json_t *key = json_pack("[II]", (json_int_t)s->set->seed, (json_int_t)height);
    char hex[HASH_TEXT];
    json_array_set_new(key, 0, json_integer((json_int_t)(s->set->seed & 0xffffffffffff)));
    value_hash(key, "sim/entropy", hex);
    json_decref(key);
    return json_pack("{sIssss}", "height", (json_int_t)height, "hash", hex, "entropy", hex);
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
            later(s, node, 1 + below(s, 150), EVENT_BLOCK, block_at(s, height));
        json_array_remove(s->waiting, i);
    }
    for (int i = 0; i < s->count; i++)
        if (s->nodes[i].alive && s->nodes[i].syncer)
            later(s, i, 1 + below(s, 100), EVENT_HEAD,
                  json_pack("{sIsI}", "height", (json_int_t)s->height, "time", (json_int_t)(s->now / 1000)));
    queue_push(s, (struct queued){ .at = s->now + BLOCK_MS, .what = WHAT_BLOCK });
}

/* The round that a request belongs to: a fold's is the last it folds. */
static int64_t request_round(const json_t *request)
{
    const json_t *rounds = json_object_get(request, "rounds");
    return value_integer(json_array_size(rounds) ? json_array_get(rounds, json_array_size(rounds) - 1) : request, "round");
}

static bool answers_training(const struct sim *s, int node, int64_t round)
{
    return !(s->set->late_trainers && round == 2 && node - s->set->syncers >= s->set->quorum - 1);
}

static void perform(struct sim *s, int i, const struct action *action)
{
    struct node *n = &s->nodes[i];
    json_t *body = action->body;
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
        queue_push(s, (struct queued){ .at = n->timer, .what = WHAT_TIMER, .node = i, .life = n->life });
        break;
    case ACTION_AWAIT_BLOCK:
        wait_block(s, i, value_integer(body, "height"));
        break;
    case ACTION_CHECK:
        later(s, i, 5 + below(s, 50), EVENT_CHECKED,
              json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code",
                        sim_check(json_object_get(body, "document"), json_object_get(body, "context"))));
        break;
    case ACTION_REPLAY:
        later(s, i, 200 + below(s, 800), EVENT_REPLAYED,
              json_pack("{sOsI}", "cid", json_object_get(body, "cid"), "index", (json_int_t)sim_replay(s, body)));
        break;
    case ACTION_COMPUTE: /* now and then so late that others have decided meanwhile */
        later(s, i, faulty(s, 100) ? 5 + below(s, 20000) : 5 + below(s, 100), EVENT_COMPUTED,
              json_pack("{sOssso}", "hash", json_object_get(body, "hash"), "code", "ok", "result",
                        sim_compute(json_object_get(body, "request"), lies)));
        json_object_set_new(s->computing, value_text(body, "hash"),
                            json_integer(request_round(json_object_get(body, "request"))));
        break;
    case ACTION_CANCEL:
        n->cancelled = value_integer(body, "round");
        break;
    case ACTION_TRAIN:
        if (answers_training(s, i, value_integer(body, "round")))
            later(s, i, 300 + below(s, 900), EVENT_TRAINED,
                  json_pack("{sOso}", "round", json_object_get(body, "round"), "contribution",
                            sim_training(s, i, json_object_get(body, "context"))));
        break;
    case ACTION_FETCH:
        answer_fetch(s, i, body);
        break;
    case ACTION_FINAL:
        if (!n->liar)
            check_final(s, i, json_object_get(body, "record"));
        break;
    case ACTION_HALT:
        if (!n->liar)
            fail(s, "%s halted: %s, %s", n->did, value_text(body, "code"), value_text(body, "message"));
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
    bool dies = (!n->syncer || json_object_size(n->disk)) && faulty(s, s->set->crash);
    if (dies)
        until = (size_t)below(s, (int64_t)actions.count + 1);
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
        int to = find_node(s, value_text(item, "did"));
        if (to >= 0 && to != i && below(s, 2))
            deliver(s, to, extra);
    }
    json_decref(extra);
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
    return block_at(context, height);
}

static json_t *source_result(void *context, const json_t *request)
{
    (void)context;
    return json_pack("{ssso}", "code", "ok", "result", sim_compute(request, false));
}

/* The run as an honest member keeps it passes; with any one record changed it does not. */
static void check_history(struct sim *s)
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
            fail(s, "audit: %s: %s", err.place, err.message);
        source.result = NULL;
        if (!history_check(&s->rules, finals, &signing, &source, &checked, &err))
            fail(s, "audit of claims: %s: %s", err.place, err.message);
        json_t *changed = json_deep_copy(finals);
        size_t at = (size_t)below(s, (int64_t)json_array_size(changed));
        json_object_set_new(json_object_get(json_array_get(changed, at), "record"), "state", json_string("another"));
        if (history_check(&s->rules, changed, &signing, &source, &checked, &err) || checked != (int64_t)at)
            fail(s, "audit: a changed record %zu passes", at);
        json_decref(changed);
        return;
    }
}

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
    struct queued q = queue_pop(s);
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
            queue_push(s, (struct queued){ .at = s->now + 100, .what = WHAT_WIPE, .node = q.node });
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
    assert(s->count <= NODES);
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
        queue_push(s, (struct queued){ .at = below(s, 1500), .what = WHAT_START, .node = i, .life = 0 });
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
        json_decref(queue_pop(s).body);
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
        fail(s, "rules: %s", err.message);
    json_decref(spec);
    rules_set_genesis(&s->rules, "genesis-outer", "genesis-state");
    make_enrolments(s);
    if (set->wipe_at)
        queue_push(s, (struct queued){ .at = set->wipe_at, .what = WHAT_WIPE, .node = 0 });
    queue_push(s, (struct queued){ .at = BLOCK_MS, .what = WHAT_BLOCK });
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
        check_state(s);
    if (!*result->failure)
        check_history(s);
    result->ended = s->now;
    sim_free(s);
    free(s);
}

struct simulation simulation_from_seed(uint64_t seed)
{
    struct sim dice = { .random = seed * 977 + 5 };
    static const int committees[][2] = { { 4, 3 }, { 4, 3 }, { 3, 2 }, { 1, 1 }, { 7, 5 } };
    int size = (int)below(&dice, 16);
    size = size < 12 ? 0 : size - 11;
    struct simulation set = { .seed = seed, .syncers = committees[size][0], .threshold = committees[size][1] };
    bool may_lie = set.syncers >= 4;
    set.trainers = 3 + (int)below(&dice, 3);
    set.quorum = 2;
    set.rounds = 2 + (int)below(&dice, 3);
    int liar = (int)below(&dice, LIAR_KINDS);
    set.liar = liar <= LIAR_SILENT && !may_lie ? LIAR_NONE : (enum liar)liar;
    set.spot_check = below(&dice, 2) ? "1" : "0.3";
    if (below(&dice, 4)) {
        set.faults_until = 5000 + below(&dice, 25000);
        set.loss = (int)below(&dice, 400);
        set.slow = (int)below(&dice, 500);
        set.hide = below(&dice, 2) ? 600 + (int)below(&dice, 380) : 0;
        set.repeat = (int)below(&dice, 100);
        set.crash = (int)below(&dice, 6);
    }
    set.wipe_at = set.liar == LIAR_NONE && may_lie && below(&dice, 2) ? 1000 + below(&dice, 12000) : 0;
    set.give_up = set.faults_until + 400000;
    set.late_trainers = below(&dice, 6) == 0;
    set.rollback = below(&dice, 6) == 0;
    return set;
}
