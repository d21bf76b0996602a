#include "runtime/worker/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/adapter.h"
#include "runtime/worker/training.h"

void reference_free(struct session_reference *r)
{
    if (!r)
        return;
    session_free(r->other);
    free(r->values);
    free(r);
}

/* A session on the adapter at `path`; or on the model there, with the least that a session can train, which starts as nothing. */
static json_t *open_job(const struct session *s, const char *path, struct error *err)
{
    char config[4400];
    json_t *job, *spec, *adapter;

    snprintf(config, sizeof config, "%.4300s/adapter_config.json", path);

    const bool adapted = file_exists(config);

    adapter = adapted ? adapter_describe(path, err)
                      : json_pack("{s:s, s:i, s:i, s:s}", "kind", "lora", "rank", 1, "alpha", 1, "targets", "all-linear");
    if (!adapter)
        return NULL;
    job = json_copy(s->job);
    spec = json_copy(s->spec);
    json_object_del(job, "reference");
    json_object_del(job, "adapter");
    json_object_set_new(job, adapted ? "adapter" : "model", json_string(path));
    json_object_set_new(spec, "adapter", adapter);
    json_object_set_new(job, "spec", spec);
    return job;
}

/* Ids mean the same to both as far as their texts' lengths tell. */
static bool same_vocabulary(const struct session *a, const struct session *b, struct error *err)
{
    uint32_t size = tokenizer_size(a->tokenizer);

    if (size == tokenizer_size(b->tokenizer) && memcmp(a->token_bytes, b->token_bytes, size * sizeof *a->token_bytes) == 0)
        return true;
    return error_set(err, ERROR_MISMATCH, "take a reference with the base model's tokenizer",
                     "the reference's vocabulary is another one");
}

static bool open_other(struct session *s, struct session_reference *r, const char *path, struct error *err)
{
    json_t *job = open_job(s, path, err);

    if (!job)
        return false;
    r->other = session_new(job, &s->blocks, s->pool, err);
    json_decref(job);
    if (!r->other || !same_vocabulary(s, r->other, err))
        return false;
    r->values = layout_values(&r->other->layout, err);
    return r->values && session_genesis(r->other, r->values, err);
}

static bool reference_open(struct session *s, struct error *err)
{
    const char *path = json_string_value(json_object_get(s->job, "reference"));
    struct session_reference *r = calloc(1, sizeof *r);
    bool ok;

    if (path) {
        ok = open_other(s, r, path, err);
    } else {
        r->values = layout_values(&s->layout, err);
        ok = r->values && session_genesis(s, r->values, err);
    }
    if (!ok) {
        reference_free(r);
        return error_at(err, "reference");
    }
    s->reference = r;
    return true;
}

bool reference_logprobs(struct session *s, const struct batch *b, float *logprobs, float *best, struct error *err)
{
    if (!s->reference && !reference_open(s, err))
        return false;
    return training_logprobs(s->reference->other ? s->reference->other : s, s->reference->values, b, logprobs, best, err);
}

static bool reads_reference(const struct script_trace *objective)
{
    json_t *list = json_object_get(objective->meta, "fields"), *name;
    size_t index;

    json_array_foreach(list, index, name)
    {
        const char *text = json_string_value(name);

        if (text && (strcmp(text, "b.ref_logprobs") == 0 || strcmp(text, "b.chosen.ref_logprobs") == 0 ||
                     strcmp(text, "b.rejected.ref_logprobs") == 0))
            return true;
    }
    return false;
}

/* What it reads does not depend on the sizes. */
bool reference_check(const struct session *s, struct error *err)
{
    json_t *axes = json_object_get(s->layout.meta, "axes");
    struct script_objective_request request = {
        .batch = s->rollout.samples ? s->rollout.samples : 2,
        .pair = 1,
        .time = BATCH_BUCKET,
        .vocab = json_integer_value(json_object_get(axes, "vocab")),
        .embed = json_integer_value(json_object_get(axes, "embed")),
        .prompt = s->rollout.samples ? 1 : 0,
        .sample = s->rollout.samples,
        .classes = json_integer_value(json_object_get(axes, "class")),
        .horizon = json_integer_value(json_object_get(axes, "horizon")),
        .quantile = json_integer_value(json_object_get(axes, "quantile")),
    };
    struct script_trace objective;
    bool reads;

    if (!json_object_get(s->job, "reference"))
        return true;
    if (!script_trace_objective(&s->scripts[SESSION_OBJECTIVE].bundle, &request, &s->limits, &objective, err))
        return error_at(err, "objective");
    reads = reads_reference(&objective);
    script_trace_free(&objective);
    return reads ||
           error_set(err, ERROR_UNSUPPORTED,
                     "leave reference out, or take an objective that reads it: dpo, ipo, grpo with kl above 0",
                     "the objective reads no reference") ||
           error_at(err, "objective");
}

bool reference_add(struct session *s, struct batch *b, enum session_use use, double clip, struct error *err)
{
    const struct session_step *step = s->rules.pairs ? session_step(s, b->rows, b->time, use, clip, err) : NULL;
    size_t count = (size_t)(b->rows * b->time);
    float *out, *best;
    bool ok;

    if (!step)
        return !s->rules.pairs;
    if (!reads_reference(&step->objective))
        return true;
    out = batch_extra(b, "ref_logprobs", count);
    best = malloc(count * sizeof *best);
    ok = best && reference_logprobs(s, b, out, best, err);
    for (size_t i = 0; i < count; i++)
        if (b->mask[i] == 0)
            out[i] = 0;
    free(best);
    return ok || error_at(err, "ref_logprobs");
}
