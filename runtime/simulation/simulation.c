#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/committee.h"
#include "runtime/round/value.h"
#include "runtime/simulation/simulation_parts.h"

/* ---- mischief: what happens to machines, disks, clocks and links on its own --------------------------------------------- */

static int any_node(struct sim *s)
{
    return (int)sim_below(s, s->count);
}

/* What one honest member alone still holds is not taken from it: nobody could give it back. */
static bool held_elsewhere(const struct sim *s, const struct node *but, const char *cid)
{
    for (int i = 0; i < s->set->syncers; i++)
        if (&s->nodes[i] != but && s->nodes[i].lie == FAULT_KINDS && json_object_get(s->nodes[i].documents, cid))
            return true;
    return false;
}

/* Documents that decided rounds name, which nobody else could give: without them no machine can compute those again. */
static bool holds_alone(const struct sim *s, const struct node *n)
{
    static const char *const lists[] = { "received", "items", "contributions" };
    size_t r, i;
    json_t *final, *one;
    json_array_foreach(s->finals, r, final)
    {
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
            json_array_foreach(json_object_get(json_object_get(final, "record"), lists[k]), i, one)
            {
                const char *cid = json_is_string(one) ? json_string_value(one) : value_text(one, "cid");
                if (json_object_get(n->documents, cid) && !held_elsewhere(s, n, cid))
                    return true;
            }
        }
    }
    return false;
}

/* How many of the committee that decides now may be missing. While an honest one is still in round 0 a lost disk counts as a liar there. */
static int64_t to_spare(const struct sim *s)
{
    const json_t *last = check_record(s, (int64_t)json_array_size(s->finals) - 1);
    json_t *open = committee_draw(&s->rules, last, value_integer(last, "round") + 1, NULL);
    struct quorum quorum = committee_quorum(&s->rules, open);
    int64_t spare = quorum.n - quorum.q, liars = 2 * (int64_t)s->set->threshold - s->set->syncers - 1;
    json_decref(open);
    for (int i = 0; i < s->set->syncers; i++)
        if (s->nodes[i].lie == FAULT_KINDS && !json_object_get(s->nodes[i].disk, "final/0") && liars < spare)
            spare = liars;
    return spare;
}

/* A disk may be lost when the committee can spare its member, and no other is still abstaining. */
static bool may_lose_disk(const struct sim *s, int i)
{
    int out = s->set->lying_syncers;
    if (!json_array_size(s->finals) || !s->nodes[i].alive)
        return false;
    if (!s->nodes[i].syncer)
        return true;
    for (int k = 0; k < s->set->syncers; k++)
        out += s->nodes[k].wiped;
    return s->nodes[i].lie == FAULT_KINDS && out < to_spare(s) && !holds_alone(s, &s->nodes[i]);
}

static void cut(struct sim *s)
{
    s->partition_until = s->now + 200 + sim_below(s, 5000);
    s->sides = sim_chance(s);
    s->both_ways = sim_below(s, 2);
}

static void jump(struct sim *s, int i)
{
    struct node *n = &s->nodes[i];
    n->offset += 1 + sim_below(s, 20000);
    n->jumped = sim_round(n);
    if (n->alive && n->timer)
        sim_timer(s, i);
}

static void power_cut(struct sim *s)
{
    for (int i = 0; i < s->set->syncers; i++)
        if (s->nodes[i].alive)
            sim_stop(s, i, false);
}

static void flip(struct sim *s, struct node *n)
{
    int64_t at = sim_below(s, (int64_t)json_object_size(n->documents));
    const char *cid;
    json_t *envelope;
    void *next;
    json_object_foreach_safe(n->documents, next, cid, envelope)
    {
        if (!at-- && held_elsewhere(s, n, cid))
            json_object_del(n->documents, cid);
    }
}

static void mischief(struct sim *s)
{
    int i = any_node(s);
    if (s->now >= s->partition_until && sim_fault(s, FAULT_PARTITION, -1))
        cut(s);
    if (s->now >= s->outage_until && sim_fault(s, FAULT_OUTAGE, -1))
        s->outage_until = s->now + sim_below(s, 6000);
    if (sim_fault(s, FAULT_REORG, -1))
        chain_reorg(s);
    if (sim_fault(s, FAULT_JUMP, i))
        jump(s, i);
    if (sim_fault(s, FAULT_FULL, i))
        s->nodes[i].full_until = s->now + sim_below(s, 5000);
    if (sim_fault(s, FAULT_POWER, -1))
        power_cut(s);
    i = any_node(s);
    if (json_object_size(s->nodes[i].documents) && sim_fault(s, FAULT_FLIP, i))
        flip(s, &s->nodes[i]);
    i = any_node(s);
    if (may_lose_disk(s, i) && sim_fault(s, FAULT_ROT, i))
        sim_stop(s, i, true);
    if (s->now < s->set->faults_until)
        sim_push(s, (struct queued){ .at = s->now + TICK_MS, .what = WHAT_TICK });
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------ */

/* A liar adds what no machine would say. */
static void liar_adds(struct sim *s, int i, json_t *message, int heard)
{
    json_t *extra = heard < HEARSAY ? liar_extra(s, &s->nodes[i], message) : NULL;
    s->adding = heard + 1;
    for (int to = 0; extra && to < s->count; to++)
        if (to != i && sim_below(s, 2))
            network_deliver(s, i, to, extra);
    s->adding = 0;
    json_decref(extra);
}

/* An answer to a job that the node has cancelled. */
static bool is_cancelled(const struct sim *s, const struct queued *q)
{
    return q->kind == EVENT_COMPUTED && value_integer(q->body, "round") <= s->nodes[q->node].cancelled;
}

static void feed(struct sim *s, const struct queued *q)
{
    struct node *n = &s->nodes[q->node];
    if (!n->alive || (q->life != n->life && q->life >= 0))
        return;
    if (q->what == WHAT_TIMER) {
        if (q->at == n->timer)
            sim_step(s, q->node, EVENT_TIME, NULL);
        return;
    }
    if (q->kind == EVENT_REPLAYED)
        sim_replayed(s, q->node);
    if (is_cancelled(s, q))
        return;
    if (q->kind == EVENT_HEAD)
        n->head = value_integer(q->body, "height");
    if (q->kind == EVENT_MESSAGE && n->lie != FAULT_KINDS)
        liar_adds(s, q->node, q->body, q->heard);
    sim_step(s, q->node, q->kind, q->body);
}

static void next_event(struct sim *s)
{
    struct queued q = sim_pop(s);
    struct node *n = &s->nodes[q.node];
    s->now = q.at;
    s->result->events++;
    switch (q.what) {
    case WHAT_BLOCK:
        if (s->now >= s->outage_until)
            chain_tick(s);
        sponsor_amends(s);
        check_deadline(s);
        sim_push(s, (struct queued){ .at = s->now + BLOCK_MS, .what = WHAT_BLOCK });
        break;
    case WHAT_TICK:
        sim_shown(s);
        mischief(s);
        break;
    case WHAT_START:
        if (q.life == n->life)
            sim_start(s, q.node);
        break;
    case WHAT_WIPE:
        if (n->alive && json_array_size(s->finals))
            sim_stop(s, q.node, true);
        else
            sim_push(s, (struct queued){ .at = s->now + 100, .what = WHAT_WIPE, .node = q.node });
        break;
    case WHAT_EVENT:
    case WHAT_TIMER:
        feed(s, &q);
        break;
    }
    json_decref(q.body);
}

/* Every decided round was recomputed: without that a member releases nothing. */
static bool all_verified(const struct member *member)
{
    const json_t *finals = member_finals(member);
    for (size_t i = json_array_size(finals); i-- > 0;)
        if (!json_is_true(json_object_get(json_array_get(finals, i), "verified")))
            return false;
    return true;
}

static bool all_done(const struct sim *s)
{
    for (int i = s->count - 1; i >= 0; i--) {
        const struct node *n = &s->nodes[i];
        if (n->lie != FAULT_KINDS)
            continue;
        if (!n->alive || strcmp(n->member ? member_phase(n->member) : trainer_phase(n->trainer), "done") ||
            (n->member && !all_verified(n->member)))
            return false;
    }
    return chain_quiet(s);
}

/* ---- set-up --------------------------------------------------------------------------------------------------------------- */

static json_t *make_spec(const struct sim *s)
{
    const struct simulation *set = s->set;
    bool some = set->seats && set->seats < set->syncers && !set->lying_syncers;
    int seats = some ? set->seats : set->syncers;
    char account[ADDRESS_TEXT];
    json_t *panel = json_array();
    for (int i = 0; i < set->syncers; i++)
        json_array_append_new(panel, json_pack("{ssss}", "did", s->nodes[i].did, "account", s->nodes[i].account));
    for (int i = 0; some && i < set->syncers; i++)
        json_object_set_new(json_array_get(panel, (size_t)i), "weight", json_integer(1 + i));
    char pay[24];
    snprintf(pay, sizeof pay, "%lld", (long long)s->pay);
    json_t *spec = json_pack(
        "{sis{si}s{sisisisis{sssisi}}s{sisisisisosi}s{sssisiss}sis{sss{ssss}si}s{si}}", "rounds", set->rounds, "dataset",
        "shards", 3 * set->trainers + 1, "quorum", "trainers", set->quorum, "round_ms", ROUND_MS, "close_ms", 400, "drop_after",
        3, "grace", "factor", "3", "min_ms", 300, "max_ms", 4000, "committee", "size", seats, "threshold",
        some ? seats - (seats - 1) / 3 : set->threshold, "view_ms", VIEW_MS, "settle_ms", 150, "panel", panel,
        "release_threshold", set->threshold, "trust", "spot_check", set->spot_check, "challenge_rounds", 3, "answer_rounds", 1,
        "correction", set->rollback ? "rollback" : "refold", "seed_lead", SEED_LEAD, "payment", "per_round", pay, "terms",
        "trainers", "0.8", "syncers", "0.2", "expiry_rounds", EXPIRY_ROUNDS, "limits", "trainers", set->trainers + 60);
    json_object_set_new(spec, "sponsor", json_string("did:sim:sponsor"));
    json_object_set_new(spec, "account", json_string(chain_sponsor(s->chain, account)));
    if (set->besieged)
        json_object_set_new(json_object_get(spec, "trust"), "checkpoint_every", json_integer(2));
    if (set->replicas)
        json_object_set_new(json_object_get(spec, "trust"), "replicas", json_integer(set->replicas));
    if (set->deposits)
        json_object_set_new(json_object_get(spec, "trust"), "stake", json_string("101"));
    if (set->capacities)
        json_object_set_new(json_object_get(spec, "limits"), "batches", json_integer(MOST_BATCHES));
    if (set->regions)
        json_object_set_new(json_object_get(spec, "dataset"), "regions",
                            json_pack("[{sss[[ii]]}{sss[[ii]]}]", "name", "eu", "only", 0, 1, "name", "us", "prefer", 2, 4));
    if (set->amends) {
        json_object_set_new(spec, "amendable", json_pack("[ssss]", "end", "pause", "quorum.trainers", "trust.spot_check"));
    }
    return spec;
}

static enum fault any_lie(struct sim *s, enum fault first, enum fault end)
{
    enum fault allowed[FAULT_KINDS];
    int count = 0;
    for (enum fault f = first; f < end; f++)
        if (s->set->faults >> f & 1)
            allowed[count++] = f;
    return count ? allowed[sim_below(s, count)] : FAULT_KINDS;
}

/* Of a besieged run: one who lies, and those that are to keep everybody too busy to find it out. */
static enum fault besieger(const struct sim *s, int k)
{
    const enum fault lie = k ? LIE_ACCUSE : LIE_BODY;
    return s->set->faults >> lie & 1 ? lie : FAULT_KINDS;
}

static void make_nodes(struct sim *s)
{
    const struct simulation *set = s->set;
    s->count = set->syncers + set->trainers;
    s->nodes = calloc((size_t)s->count, sizeof *s->nodes);
    if (!s->nodes)
        abort();
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        n->syncer = i < set->syncers;
        snprintf(n->did, sizeof n->did, "did:sim:%c%03d", n->syncer ? 's' : 't', i);
        n->lie = FAULT_KINDS;
        n->rate = 1000;
        n->cancelled = n->closing_round = n->jumped = -1;
        n->disk = json_object();
        n->documents = json_object();
        n->enrolled = json_object();
    }
    int first = (int)(set->seed % (uint64_t)set->syncers);
    for (int k = 0; k < set->lying_syncers; k++)
        s->nodes[(first + k) % set->syncers].lie = any_lie(s, LIE_FIRST, LIE_TRAINER + 1);
    for (int k = 0; k < set->lying_trainers; k++) {
        enum fault lie = any_lie(s, LIE_TRAINER, FAULT_KINDS), before = k ? s->nodes[set->syncers].lie : FAULT_KINDS;
        lie = before == LIE_ACCUSE ? before : lie; /* who accuses has accomplices */
        s->nodes[set->syncers + k].lie = set->besieged ? besieger(s, k) : lie;
    }
}

static void start_nodes(struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        n->offset = sim_below(s, 100000);
        if (sim_fault(s, FAULT_SKEW, i))
            n->rate = 800 + sim_below(s, 400);
        sim_push(s, (struct queued){ .at = sim_below(s, 1500), .what = WHAT_START, .node = i, .life = 0 });
    }
}

static struct sim *sim_new(const struct simulation *set, struct simulation_result *result)
{
    struct sim *s = calloc(1, sizeof *s);
    struct error err = { 0 };
    if (!s)
        abort();
    *result = (struct simulation_result){ 0 };
    *s = (struct sim){
        .set = set, .result = result, .random = set->seed, .waiting = json_array(), .unlocked = json_array(), .old = json_array()
    };
    json_t **const maps[] = { &s->signed_by, &s->items_of,  &s->timely,  &s->prepared, &s->documents, &s->settled,
                              &s->results,   &s->overheard, &s->schemes, &s->views,    &s->closed_of };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        *maps[i] = json_object();
    s->finals = json_array();
    make_nodes(s);
    s->pay = 1000 * (1 + s->count / 200); /* each gets some of it */
    s->chain = sim_chain_new(s);
    json_t *spec = make_spec(s);
    if (!spec || !rules_read(&s->rules, spec, "bafk2bzasimulationofarun", &err))
        sim_fail(s, ENDS, "rules: %s", err.message);
    json_decref(spec);
    rules_set_genesis(&s->rules, "genesis-outer", "genesis-state");
    return s;
}

static void sim_free(struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        member_free(n->member);
        trainer_free(n->trainer);
        json_t *const owned[] = {
            n->disk, n->documents, n->enrolled, n->enrolment, n->heard, n->closing, n->wanting, n->replays
        };
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            json_decref(owned[k]);
    }
    while (s->heap_size)
        json_decref(sim_pop(s).body);
    free(s->heap);
    for (size_t i = 0; i < NAMES; i++)
        json_decref(s->named[i].record);
    json_decref(s->weighed);
    json_decref(s->drawn.parts);
    record_memory_clear(&s->memory);
    rules_free(&s->rules);
    sim_chain_free(s->chain);
    json_t *const owned[] = { s->waiting, s->unlocked, s->old,    s->signed_by, s->items_of, s->timely, s->prepared, s->documents,
                              s->settled, s->results,  s->finals, s->overheard, s->schemes,  s->views,  s->closed_of };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    free(s->nodes);
    free(s);
}

void simulation_run(const struct simulation *set, struct simulation_result *result)
{
    struct sim *s = sim_new(set, result);
    start_nodes(s);
    if (set->wipe_at)
        sim_push(s, (struct queued){ .at = set->wipe_at, .what = WHAT_WIPE, .node = 0 });
    sim_push(s, (struct queued){ .at = BLOCK_MS, .what = WHAT_BLOCK });
    sim_push(s, (struct queued){ .at = TICK_MS, .what = WHAT_TICK });
    while (!result->broken && !result->overcome && s->heap_size && !all_done(s))
        next_event(s);
    if (!result->broken && !result->overcome)
        check_end(s);
    result->ended = s->now;
    for (int i = 0; i < s->count; i++) {
        if (s->nodes[i].messages > result->most_messages)
            result->most_messages = s->nodes[i].messages;
        if (s->nodes[i].bytes > result->most_bytes)
            result->most_bytes = s->nodes[i].bytes;
    }
    sim_free(s);
}
