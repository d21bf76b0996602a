#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "native/codec/payload.h"
#include "native/codec/topk.h"
#include "runtime/role/quote_internal.h"
#include "runtime/round/plan_codec.h"
#include "runtime/round/seed.h"
#include "runtime/round/step_log.h"
#include "runtime/store/object.h"
#include "runtime/worker/inner.h"
#include "runtime/worker/plan.h"

/* Plans are asked for round by round; beyond so many the quote takes the last one for the rest. */
enum { PLANS_MOST = 1024, MEASURED_STEPS = 2, PAYLOAD_HEAD = 50 /* and the DID */ };

/* Of payloads that keep a part of each chunk: the numbers in the header, and what the last chunk of a tensor may round up. */
enum { KEPT_HEAD = 6, LAST_CHUNK = 11 };

/* --- plans -------------------------------------------------------------------------------------------------------------- */

/* `last`: the telemetry that the round before would have left. Takes its reference. */
static json_t *plan_of(struct quote *q, int64_t round, json_t *last, struct error *err)
{
    json_t *job = json_pack("{s:s, s:{s:I, s:I, s:o}}", "job", "plan", "request", "round", (json_int_t)round, "peers",
                            (json_int_t)(q->trainers / q->a.course.spec.trust.replicas), "last", last);
    json_t *answer = archive_job(&q->a, job, NULL, NULL, err), *plan = json_incref(json_object_get(answer, "plan"));

    q->sent_values = document_integer(answer, "values");
    q->sent_tensors = document_integer(answer, "tensors");
    json_decref(answer);
    if (plan && q->a.course.spec.trust.replicas > 1 && document_text(plan, "inner") &&
        strcmp(document_text(plan, "inner"), "keep") == 0) {
        json_decref(plan);
        error_set(err, ERROR_UNSUPPORTED, "let the schedule reset it",
                  "inner = \"keep\": machines of the replicated tier begin alike, and "
                  "what one ended with is its own");
        return NULL;
    }
    return plan;
}

/* The plan of a round, and whether it is the same whatever the rounds before gave. */
static json_t *plan_known(struct quote *q, int64_t round, bool *known, struct error *err)
{
    json_t *plan = plan_of(q, round, round == 1 ? json_null() : json_pack("{s:s}", "norm", "3f000000"), err), *other;

    *known = true;
    if (!plan || round == 1)
        return plan;
    other = plan_of(q, round, json_pack("{s:s}", "norm", "42c80000"), err);
    if (!other) {
        json_decref(plan);
        return NULL;
    }
    *known = json_equal(plan, other);
    json_decref(other);
    return plan;
}

/* Equal neighbours stand as one line: { from, to, plan, depends }. */
static void add_plan(struct quote *q, int64_t round, int64_t to, json_t *plan, bool known)
{
    json_t *last = json_array_get(q->plans, json_array_size(q->plans) - 1);

    if (last && json_equal(json_object_get(last, "plan"), plan) && json_is_true(json_object_get(last, "depends")) == !known)
        json_object_set_new(last, "to", json_integer((json_int_t)to));
    else
        json_array_append_new(q->plans, json_pack("{s:I, s:I, s:O, s:b}", "from", (json_int_t)round, "to", (json_int_t)to, "plan",
                                                  plan, "depends", !known));
}

/* Bytes of what one trainer sends; each tensor begins a new block of 256 values. */
static void size_plan(struct quote *q, const json_t *plan)
{
    int64_t steps = (int64_t)plan_number(plan, "steps", 0);
    struct plan_codec codec;
    struct topk topk;
    uint64_t kept = 0;

    if (!plan_codec_read(plan, &codec, NULL)) /* refused before */
        return;
    topk = (struct topk){ .keep = codec.keep, .of = codec.of, .bits = codec.bits };
    int64_t log = STEP_LOG_HEAD + 2 * STEP_LOG_ENDS + STEP_LOG_LEAF * steps;
    int64_t tensors = q->sent_tensors, blocks = (q->sent_values + 255) / 256 + tensors;
    int64_t payload =
        PAYLOAD_HEAD + DID_TEXT + (q->sent_values * (int64_t)codec.bits + 7) / 8 + (codec.bits < 16 ? 4 * blocks + tensors : 0);
    if (codec.keep && topk_size(&topk, (uint64_t)q->sent_values, &kept))
        payload = PAYLOAD_HEAD + DID_TEXT + KEPT_HEAD + (int64_t)kept + LAST_CHUNK * tensors;

    if (log > q->log_bytes)
        q->log_bytes = log;
    if (payload > q->payload_bytes)
        q->payload_bytes = payload;
}

/* More than a step log has room for no trainer begins, round after round. */
static bool steps_fit(int64_t steps, struct error *err)
{
    return steps <= STEP_LOG_STEPS ||
           error_set(err, ERROR_RANGE, "lower what the schedule's options give a round, as inner_steps",
                     "%lld steps in a round, which has at most %d", (long long)steps, STEP_LOG_STEPS) ||
           error_at(err, "schedule");
}

bool quote_plans(struct quote *q, struct error *err)
{
    int64_t rounds = (int64_t)q->a.course.spec.rounds, asked = rounds < PLANS_MOST ? rounds : PLANS_MOST;
    int64_t updates = document_integer(json_object_get(q->a.opened, "rollout"), "updates"), steps;

    for (int64_t round = 1; round <= asked; round++) {
        bool known;
        json_t *plan = plan_known(q, round, &known, err);
        int64_t to = round == asked ? rounds : round;

        steps = (int64_t)plan_number(plan, "steps", 0);
        if (!plan || !steps_fit(steps, err)) {
            json_decref(plan);
            return error_at(err, "plan of round %lld", (long long)round);
        }
        add_plan(q, round, to, plan, known);
        size_plan(q, plan);
        q->steps += steps * (to - round + 1);
        if (updates)
            q->batches += (steps + updates - 1) / updates * (to - round + 1);
        json_decref(plan);
    }
    if (asked < rounds)
        quote_warn(q, "only the plans of the first %lld rounds were asked for; the rest are taken to be as the last of them",
                   (long long)asked);
    return true;
}

/* --- a few steps -------------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The part of a trainer that has every `trainers`-th shard. */
static json_t *context_of(struct quote *q, const json_t *genesis, json_t *shards, int64_t steps)
{
    const char *run = q->a.course.run;
    struct hash seed = seed_of(run, 1, "quote", 5);
    json_t *plan = json_deep_copy(json_object_get(json_array_get(q->plans, 0), "plan")), *list = json_array();
    char hex[HASH_TEXT];

    json_object_set_new(plan, "steps", json_integer((json_int_t)steps));
    for (size_t i = 0; i < json_array_size(q->a.course.shards); i += (size_t)q->trainers) {
        json_array_append_new(list, json_integer((json_int_t)i));
        json_array_append(shards, json_array_get(q->a.course.shards, i));
    }
    return json_pack("{s:s, s:i, s:O, s:s, s:o, s:i, s:o, s:O, s:O, s:[]}", "run", run, "round", 1, "did",
                     json_object_get(q->a.course.spec.json, "sponsor"), /* anybody: a trainer's own draws take as long */
                     "seed", hash_hex(seed, hex), "shards", list, "weight", 1, "plan", plan, "outer",
                     json_object_get(genesis, "outer"), "state", json_object_get(genesis, "state"), "probes");
}

static bool train(struct quote *q, const json_t *genesis, int64_t steps, double *seconds, struct error *err)
{
    json_t *shards = json_array(), *context = context_of(q, genesis, shards, steps), *answer;
    double began = now();

    answer =
        archive_job(&q->a, json_pack("{s:s, s:o, s:o}", "job", "train", "context", context, "shards", shards), NULL, NULL, err);
    *seconds = (now() - began) / (double)steps;
    json_decref(answer);
    return answer != NULL || error_at(err, "a measured step");
}

/* Whether machines like this one are those that train. */
static bool judges_memory(const struct quote *q)
{
    return q->options->measure || q->options->strict;
}

/* A spec in whose disputes the honest could not take part is refused: silence convicts. What only this machine lacks is no fault of the spec
 * where nobody says that it is like those that train. */
static bool answerable(struct quote *q, const json_t *fit, struct error *err)
{
    const int64_t step = document_integer(fit, "step"), traced = document_integer(fit, "traced"),
                  allowed = document_integer(fit, "allowed"), limit = document_integer(fit, "limit"),
                  opening = document_integer(fit, "opening"), pick = document_integer(fit, "pick"),
                  rows = document_integer(fit, "rows");
    char hint[160];

    /* a batch has an example at least, however few tokens it is to have */
    snprintf(hint, sizeof hint,
             "lower %s: batches have up to %lld x %lld tokens; or trust.checkpoint_every = 2: a replay decides then",
             rows > 1 ? "batch_tokens" : "context", (long long)rows, (long long)document_integer(fit, "time"));
    q->traced = traced;
    if (opening > limit)
        return error_set(err, ERROR_LIMIT, hint,
                         "no trainer could answer for a step: its opening has %lld bytes, at most %lld are sent",
                         (long long)opening, (long long)limit);
    if (pick > limit)
        return error_set(err, ERROR_LIMIT, hint,
                         "nobody could show that a value of %s is wrong: its operands have %lld bytes, at most %lld are sent",
                         document_text(fit, "operator"), (long long)pick, (long long)limit);
    if (traced <= allowed)
        return true;
    if (judges_memory(q))
        return error_set(
            err, ERROR_LIMIT, hint,
            "a step traced for a dispute needs %lld bytes of memory, training alone %lld, and a trainer like this one has "
            "%lld (--memory): it would lose by silence",
            (long long)traced, (long long)step, (long long)allowed);
    quote_warn(
        q, "a step traced for a dispute needs %lld bytes of memory, training alone %lld: who has less loses a dispute by silence",
        (long long)traced, (long long)step);
    return true;
}

static bool look_at_disputes(struct quote *q, const json_t *genesis, struct error *err)
{
    const int64_t steps = (int64_t)plan_number(json_object_get(json_array_get(q->plans, 0), "plan"), "steps", 1);
    json_t *shards = json_array(), *context = context_of(q, genesis, shards, steps), *fit;
    struct error fault = { 0 };
    char text[1024];
    bool ok;

    fit =
        archive_job(&q->a, json_pack("{s:s, s:o, s:o}", "job", "fit", "context", context, "shards", shards), NULL, NULL, &fault);
    ok = fit && answerable(q, fit, &fault);
    json_decref(fit);
    if (!ok && fault.code == ERROR_MEMORY && !judges_memory(q)) {
        quote_warn(q, "what a dispute takes is not known, since this machine is too small: %s",
                   error_text(&fault, text, sizeof text));
        return true;
    }
    if (!ok)
        *err = fault;
    return ok;
}

bool quote_measure(struct quote *q, struct error *err)
{
    json_t *genesis = archive_job(&q->a, json_pack("{s:s}", "job", "genesis"), NULL, NULL, err);
    /* whole batches of rollouts: one that is drawn for half of its steps would count twice */
    int64_t updates = document_integer(json_object_get(q->a.opened, "rollout"), "updates"),
            steps = updates > MEASURED_STEPS ? updates : MEASURED_STEPS + (updates ? MEASURED_STEPS % updates : 0);
    struct hash outer;
    struct manifest m = { 0 };
    bool ok = genesis && cid_parse(document_text(genesis, "outer"), &outer, err) &&
              object_manifest(&q->a.auditor.blocks, outer, NULL, COURSE_OBJECT_LIMIT, &m, err);

    q->outer_bytes = (int64_t)m.size;
    manifest_free(&m);
    ok = ok && look_at_disputes(q, genesis, err);
    if (ok && q->options->measure)
        ok = train(q, genesis, 1, &q->first, err) && train(q, genesis, steps, &q->second, err);
    json_decref(genesis);
    return ok;
}
