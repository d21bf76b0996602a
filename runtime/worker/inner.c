#include "runtime/worker/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/round/plan_codec.h"
#include "runtime/store/object.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/fragments.h"
#include "runtime/worker/running.h"

void inner_free(struct inner *inner)
{
    step_log_free(&inner->log);
    buffer_free(&inner->payload);
    buffer_free(&inner->carry);
    json_decref(inner->probes);
    *inner = (struct inner){ 0 };
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

static bool run_steps(struct running *r, const struct job_reporter *to, struct inner *out, struct error *err)
{
    json_t *probes = json_object_get(r->context, "probes");
    double began = seconds(), told = began;
    size_t probe = 0;

    out->log.steps = (uint32_t)r->steps;
    out->log.leaves = calloc((size_t)r->steps, sizeof *out->log.leaves);
    out->probes = json_array();
    for (int64_t i = 0; i < r->steps; i++) {
        struct step_leaf *leaf = &out->log.leaves[i];

        out->failed = i + 1;
        if (!running_batch(r, i, err))
            return false;
        leaf->batch = batch_root(&r->batch);
        if (!training_step(&r->training, &r->batch, r->rates[i], running_progress(r, i), err))
            return false;
        leaf->loss = r->training.loss;
        if (step_is_shown(r->context, i, r->steps))
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

/* With feedback the payload says update + decay * rest, and what it leaves of that is the rest (native/codec/feedback.h). */
static bool feed_back(struct running *r, const struct payload_header *header, const struct inner *out, struct error *err)
{
    float *said = layout_values(&r->s->layout, err);
    size_t body, count;
    struct tensor *tensors = folding_payload(r->s, r->plan, header, said, &count);
    bool ok = said && payload_decode(out->payload.bytes, out->payload.size, header, tensors, count, &body, err);

    for (size_t k = 0; ok && k < r->s->layout.count; k++) {
        const struct layout_parameter *p = &r->s->layout.parameters[k];

        for (uint64_t i = p->offset; fragment_has(r->fragment, p) && i < p->offset + p->values; i++)
            r->rest[i] = r->values[i] - said[i];
    }
    free(tensors);
    free(said);
    return ok;
}

/* What goes on to the next round. */
static bool keep(struct running *r, struct inner *out, struct error *err)
{
    const char *inner = document_text(r->plan, "inner");

    out->log.carry_out = root_empty();
    return !inner || strcmp(inner, "keep") != 0 ||
           carry_encode(r->s, &r->training.states, r->rest, r->moved, &out->carry, &out->log.carry_out, err);
}

/* Values become start less end; with `decay` the rest is added to what is sent. What is not sent goes on from where it stands. */
static void make_update(struct running *r, float decay)
{
    for (size_t k = 0; k < r->s->layout.count; k++) {
        const struct layout_parameter *p = &r->s->layout.parameters[k];
        const bool sent = fragment_has(r->fragment, p);

        for (uint64_t i = p->offset; i < p->offset + p->values; i++) {
            r->values[i] = r->start[i] - r->values[i];
            if (r->moved)
                r->moved[i] = sent ? 0 : -r->values[i];
            if (r->rest && sent)
                r->values[i] = fmaf(decay, r->rest[i], r->values[i]);
        }
    }
}

static bool encode(struct running *r, struct inner *out, struct error *err)
{
    const char *did = document_text(r->context, "did");
    struct payload_header header;
    struct plan_codec codec;

    out->failed = r->steps + 1;

    bool ok = folding_header(r->s, r->plan, r->round, did, &header, err) && plan_codec_read(r->plan, &codec, err);

    if (ok)
        make_update(r, codec.feedback);

    size_t count = 0;
    struct tensor *tensors = ok ? folding_payload(r->s, r->plan, &header, r->values, &count) : NULL;

    ok = ok && payload_encode(&header, tensors, count, &out->payload, &out->body, err);
    free(tensors);
    ok = ok && (!r->rest || feed_back(r, &header, out, err));
    if (!ok)
        return error_at(err, "payload");
    out->log.body = merkle_of(out->payload.bytes + out->body, out->payload.size - out->body);
    return keep(r, out, err);
}

bool inner_run(struct session *s, const json_t *context, const json_t *shards, const json_t *carry, const struct job_reporter *to,
               struct inner *out, struct error *err)
{
    struct running r;
    bool ok;

    *out = (struct inner){ .failed = 1 };
    out->log.start = document_hash(context, "state");
    out->log.carry_in = carry ? document_hash(carry, "root") : root_empty();
    ok = running_begin(&r, s, context, err) && running_data(&r, shards, err) && running_load(&r, err);
    if (ok && !running_carry(&r, carry, err)) {
        out->failed = 0;
        ok = false;
    }
    ok = ok && run_steps(&r, to, out, err) && encode(&r, out, err);
    running_free(&r);
    return ok;
}

bool inner_rollouts(struct session *s, const json_t *context, const json_t *shards, const json_t *carry, int64_t most,
                    inner_show *show, void *to, struct error *err)
{
    struct running r;
    int64_t shown = 0;
    bool ok, more = true;

    if (!s->rollout.samples)
        return error_set(err, ERROR_UNSUPPORTED, "only a run with a reward draws rollouts", "the run trains on given text");
    ok = running_new(&r, s, context, shards, carry, err);
    for (int64_t i = 0; ok && more && i < r.steps; i++) {
        ok = running_batch(&r, i, err);
        if (ok && i % s->rollout.updates == 0) {
            ok = show(to, i, &r.batch, r.rollouts.taken, err);
            more = ++shown != most;
        }
        ok = ok && (!more || training_step(&r.training, &r.batch, r.rates[i], running_progress(&r, i), err));
    }
    running_free(&r);
    return ok;
}
