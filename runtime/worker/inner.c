#include "runtime/worker/inner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/json.h"
#include "native/codec/payload.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/rollouts.h"

double plan_number(const json_t *plan, const char *name, double otherwise)
{
    return json_decimal(json_object_get(plan, name), otherwise);
}

void inner_free(struct inner *inner)
{
    step_log_free(&inner->log);
    buffer_free(&inner->payload);
    json_decref(inner->probes);
    *inner = (struct inner){ 0 };
}

/* Everything one run of inner steps holds. */
struct running {
    struct session *s;
    const json_t *context, *plan;
    int64_t round, steps;
    float *start, *values;
    double *rates;
    struct sampler sampler;   /* of a run on given text */
    struct rollouts rollouts; /* else */
    struct batch batch;
    struct training training;
};

static void running_free(struct running *r)
{
    training_free(&r->training);
    batch_free(&r->batch);
    sampler_free(&r->sampler);
    rollouts_free(&r->rollouts);
    free(r->start);
    free(r->values);
    free(r->rates);
}

static bool load_data(struct running *r, const json_t *shards, struct hash seed, struct error *err)
{
    size_t count = json_array_size(shards);
    const struct examples **lists = calloc(count + 1, sizeof *lists);
    struct batch_rules rules = r->s->rules;
    bool ok = true;

    if (r->s->rollout.samples) {
        free(lists);
        return rollouts_new(&r->rollouts, r->s, shards, seed, document_text(r->context, "did"), r->round,
                            plan_number(r->plan, "clip", 0), err);
    }
    for (size_t i = 0; ok && i < count; i++) {
        struct hash id;
        const struct session_shard *shard = NULL;

        ok = cid_parse(json_string_value(json_array_get(shards, i)), &id, err) && (shard = session_shard(r->s, id, err));
        if (ok) {
            lists[i] = &shard->examples;
            rules.stream = shard->stream;
        }
    }
    ok = ok && sampler_new(&r->sampler, &rules, lists, count, seed, err);
    free(lists);
    return ok;
}

static bool load_state(struct running *r, struct error *err)
{
    struct hash outer, root;
    size_t n = (size_t)r->s->layout.values;

    r->start = layout_values(&r->s->layout, err);
    r->values = layout_values(&r->s->layout, err);
    if (!r->start || !r->values)
        return false;
    if (!cid_parse(document_text(r->context, "outer"), &outer, err) || !folding_values(r->s, outer, r->start, err))
        return error_at(err, "start state");
    root = layout_root(&r->s->layout, r->start);
    if (!hash_equal(root, document_hash(r->context, "state")))
        return error_set(err, ERROR_MISMATCH, "fetch it again", "the start state has another root than the record says");
    memcpy(r->values, r->start, n * sizeof *r->values);
    return true;
}

static bool load_rates(struct running *r, struct error *err)
{
    int64_t rounds = json_integer_value(json_object_get(r->s->spec, "rounds"));
    json_t *context = json_pack("{s:I, s:I, s:i, s:O, s:b}", "round", (json_int_t)r->round, "rounds", (json_int_t)rounds, "peers",
                                1, "layers", json_object_get(r->s->layout.meta, "layers"), "last", 0);
    bool ok;

    r->rates = calloc((size_t)r->steps, sizeof *r->rates);
    ok = script_rates(&r->s->scripts[SESSION_SCHEDULE].bundle, context, (uint64_t)((r->round - 1) * r->steps), (size_t)r->steps,
                      r->rates, &r->s->limits, err);
    json_decref(context);
    return ok || error_at(err, "schedule");
}

static bool running_new(struct running *r, struct session *s, const json_t *context, const json_t *shards, struct error *err)
{
    struct hash seed = document_hash(context, "seed");

    *r = (struct running){ .s = s, .context = context, .plan = json_object_get(context, "plan") };
    r->round = document_integer(context, "round");
    r->steps = document_integer(r->plan, "steps");
    if (r->steps < 1 || r->steps > STEP_LOG_STEPS)
        return error_set(err, ERROR_RANGE, NULL, "a plan of %lld steps", (long long)r->steps);
    if (!load_data(r, shards, seed, err) || !load_state(r, err) || !load_rates(r, err) ||
        !training_new(&r->training, s, r->values, plan_number(r->plan, "clip", 0), err))
        return false;
    memcpy(r->training.random.seed, seed.bytes, sizeof r->training.random.seed);
    r->training.random.round = (uint64_t)r->round;
    return true;
}

static json_t *probe_make(struct running *r, int64_t step, float loss)
{
    json_t *positions = probe_positions(r->context, step, r->s->layout.values), *values = json_array(), *position;
    size_t index;

    json_array_foreach(positions, index, position)
    {
        json_array_append_new(values, document_json_float(r->values[json_integer_value(position)]));
    }
    json_decref(positions);
    return json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "loss", document_json_float(loss), "values", values);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A batch of rollouts serves several steps. */
static bool next_batch(struct running *r, int64_t step, struct error *err)
{
    if (!r->s->rollout.samples)
        sampler_next(&r->sampler, &r->batch);
    else if (step % r->s->rollout.updates == 0)
        return rollouts_next(&r->rollouts, r->values, &r->batch, err);
    return true;
}

static bool run_steps(struct running *r, const struct job_reporter *to, struct inner *out, struct error *err)
{
    json_t *probes = json_object_get(r->context, "probes");
    int64_t rounds = json_integer_value(json_object_get(r->s->spec, "rounds"));
    double began = seconds(), told = began;
    size_t probe = 0;

    out->log.steps = (uint32_t)r->steps;
    out->log.leaves = calloc((size_t)r->steps, sizeof *out->log.leaves);
    out->probes = json_array();
    for (int64_t i = 0; i < r->steps; i++) {
        struct step_leaf *leaf = &out->log.leaves[i];
        double progress = (double)((r->round - 1) * r->steps + i) / (double)(rounds * r->steps);

        if (!next_batch(r, i, err))
            return false;
        leaf->batch = batch_root(&r->batch);
        if (!training_step(&r->training, &r->batch, r->rates[i], progress, err))
            return false;
        leaf->loss = r->training.loss;
        leaf->state = training_root(&r->training);
        out->tokens += r->batch.tokens;
        if (json_integer_value(json_array_get(probes, probe)) == i && probe < json_array_size(probes)) {
            json_array_append_new(out->probes, probe_make(r, i, leaf->loss));
            probe++;
        }
        if (to && (to->every || seconds() - told > 0.25 || i + 1 == r->steps)) {
            told = seconds();
            json_t *report = json_pack("{s:I, s:I, s:f, s:f, s:o}", "step", (json_int_t)(i + 1), "steps", (json_int_t)r->steps,
                                       "loss", (double)leaf->loss, "tokens_per_second",
                                       (double)out->tokens / (told - began + 1e-9), "metrics", training_metrics(&r->training));

            to->report(to->context, report);
            json_decref(report);
        }
    }
    return true;
}

static bool encode(struct running *r, struct inner *out, struct error *err)
{
    const char *did = document_text(r->context, "did");
    struct payload_header header = { .bits = (unsigned)plan_number(json_object_get(r->plan, "codec"), "bits", 32),
                                     .round = (uint32_t)r->round };
    struct hash run;
    bool ok = cid_parse(r->s->run, &run, err);

    memcpy(header.run, run.bytes, sizeof header.run);
    strncpy(header.did, did, PAYLOAD_DID);
    for (uint64_t i = 0; i < r->s->layout.values; i++)
        r->values[i] = r->start[i] - r->values[i];

    struct tensor *tensors = folding_tensors(&r->s->layout, r->values);

    ok = ok && payload_encode(&header, tensors, r->s->layout.count, &out->payload, &out->body, err);
    free(tensors);
    if (!ok)
        return error_at(err, "payload");
    out->log.start = document_hash(r->context, "state");
    out->log.carry_in = out->log.carry_out = root_empty();
    out->log.body = merkle_of(out->payload.bytes + out->body, out->payload.size - out->body);
    return true;
}

bool inner_run(struct session *s, const json_t *context, const json_t *shards, const struct job_reporter *to, struct inner *out,
               struct error *err)
{
    struct running r;
    bool ok;

    *out = (struct inner){ 0 };
    ok = running_new(&r, s, context, shards, err) && run_steps(&r, to, out, err) && encode(&r, out, err);
    running_free(&r);
    return ok;
}
