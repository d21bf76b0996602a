#include "runtime/worker/running.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/doc/documents.h"
#include "runtime/round/plan_codec.h"
#include "runtime/round/step_log.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/fragments.h"
#include "runtime/worker/plan.h"
#include "runtime/worker/reference.h"

void running_free(struct running *r)
{
    training_free(&r->training);
    batch_free(&r->batch);
    sampler_free(&r->sampler);
    rollouts_free(&r->rollouts);
    free(r->start);
    free(r->values);
    free(r->rest);
    free(r->moved);
}

/* Of batch_tokens in a step: what the trainer stated. */
static int64_t batches_of(const json_t *context)
{
    int64_t stated = document_integer(context, "batches");

    return stated > 1 ? stated : 1;
}

bool running_data(struct running *r, const json_t *shards, struct error *err)
{
    const struct hash seed = document_hash(r->context, "seed");
    size_t count = json_array_size(shards);
    const struct examples **lists = calloc(count + 1, sizeof *lists);
    struct batch_rules rules = r->s->rules;
    bool ok = true, group = document_text(r->context, "group") != NULL;

    rules.batch_tokens *= batches_of(r->context);

    if (r->s->rollout.samples) {
        free(lists);
        ok = rollouts_new(&r->rollouts, r->s, shards, seed, document_text(r->context, group ? "group" : "did"), r->round,
                          plan_number(r->plan, "clip", 0), err);
        r->rollouts.batch_tokens = rules.batch_tokens;
        return ok;
    }
    for (size_t i = 0; ok && i < count; i++) {
        struct hash id;
        const struct session_shard *shard = NULL;

        ok = cid_parse(json_string_value(json_array_get(shards, i)), &id, err) &&
             (shard = session_shard(r->s, id, SESSION_TRAIN, err));
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

bool running_rates(struct running *r, struct error *err)
{
    if (!r->rates)
        r->rates = session_rates(r->s, r->round, r->steps, err);
    return r->rates != NULL;
}

bool running_carry(struct running *r, const json_t *carry, struct error *err)
{
    const char *inner = document_text(r->plan, "inner");
    const bool keeps = inner && strcmp(inner, "keep") == 0;
    struct plan_codec codec;

    if (!plan_codec_read(r->plan, &codec, err))
        return false;
    if (codec.feedback > 0 && !(r->rest = layout_values(&r->s->layout, err)))
        return false;
    if (!fragments_of(r->s, r->plan, &r->fragment, err))
        return false;
    if (keeps && (!fragments_load(r->s, err) || (r->s->fragments && !(r->moved = layout_values(&r->s->layout, err)))))
        return false;
    if (carry && !carry_read(r->s, carry, &r->training.states, r->rest, r->moved, err))
        return false;
    for (uint64_t i = 0; r->moved && i < r->s->layout.values; i++)
        if (r->moved[i] != 0)
            r->values[i] += r->moved[i];
    return true;
}

/* What every draw of the steps follows from. */
static void seed_draws(struct running *r)
{
    const struct hash seed = document_hash(r->context, "seed");

    memcpy(r->training.random.seed, seed.bytes, sizeof r->training.random.seed);
    r->training.random.round = (uint64_t)r->round;
}

bool running_begin(struct running *r, struct session *s, const json_t *context, struct error *err)
{
    *r = (struct running){ .s = s, .context = context, .plan = json_object_get(context, "plan") };
    r->round = document_integer(context, "round");
    r->steps = document_integer(r->plan, "steps");
    if (r->steps < 1 || r->steps > STEP_LOG_STEPS)
        return error_set(err, ERROR_RANGE, "the schedule's options say how many, as inner_steps",
                         "a plan of %lld steps, a round has 1 to %d", (long long)r->steps, STEP_LOG_STEPS);
    r->training.clip = plan_number(r->plan, "clip", 0);
    seed_draws(r);
    return true;
}

bool running_load(struct running *r, struct error *err)
{
    const uint64_t step = r->training.random.step;

    if (!load_state(r, err) || !running_rates(r, err) || !training_new(&r->training, r->s, r->values, r->training.clip, err))
        return false;
    seed_draws(r);
    r->training.random.step = step;
    return true;
}

bool running_new(struct running *r, struct session *s, const json_t *context, const json_t *shards, const json_t *carry,
                 struct error *err)
{
    return running_begin(r, s, context, err) && running_data(r, shards, err) && running_load(r, err) &&
           running_carry(r, carry, err);
}

/* A batch of rollouts serves several steps. */
bool running_batch(struct running *r, int64_t step, struct error *err)
{
    if (!r->s->rollout.samples) {
        sampler_next(&r->sampler, &r->batch);
        return reference_add(r->s, &r->batch, SESSION_TRAIN, plan_number(r->plan, "clip", 0), err);
    }
    if (step % r->s->rollout.updates == 0)
        return rollouts_next(&r->rollouts, r->values, &r->batch, err);
    return true;
}

double running_progress(const struct running *r, int64_t step)
{
    int64_t rounds = json_integer_value(json_object_get(r->s->spec, "rounds"));

    return (double)((r->round - 1) * r->steps + step) / (double)(rounds * r->steps);
}
