#include "runtime/worker/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/adapter.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/training.h"

void reference_free(struct session_reference *r)
{
    if (!r)
        return;
    session_free(r->other);
    free(r->values);
    free(r);
}

/* Where the folder is an adapter's, its rank and alpha; else the least that a session can train, which starts as nothing. */
static bool read_shape(const char *path, bool *adapter, unsigned *rank, unsigned *alpha, struct error *err)
{
    char config[4400];

    snprintf(config, sizeof config, "%.4300s/adapter_config.json", path);
    *adapter = file_exists(config);
    *rank = *alpha = 1;
    return !*adapter || adapter_read_config(path, rank, alpha, err);
}

static json_t *open_job(const struct session *s, const char *path, bool adapter, unsigned rank, unsigned alpha)
{
    json_t *job = json_copy(s->job), *spec = json_copy(s->spec);

    json_object_del(job, "reference");
    if (!adapter)
        json_object_set_new(job, "model", json_string(path));
    json_object_set_new(
        spec, "adapter",
        json_pack("{s:s, s:i, s:i, s:s}", "kind", "lora", "rank", (int)rank, "alpha", (int)alpha, "targets", "all-linear"));
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
    unsigned rank, alpha;
    bool adapter;
    json_t *job;

    if (!read_shape(path, &adapter, &rank, &alpha, err))
        return false;
    job = open_job(s, path, adapter, rank, alpha);
    r->other = session_new(job, &s->blocks, s->pool, err);
    json_decref(job);
    if (!r->other || !same_vocabulary(s, r->other, err))
        return false;
    r->values = layout_values(&r->other->layout, err);
    if (!r->values || !session_genesis(r->other, r->values, err))
        return false;
    if (!adapter)
        return true;

    struct tensor *tensors = folding_tensors(&r->other->layout, r->values);
    bool ok = adapter_read(path, tensors, r->other->layout.count, err);

    free(tensors);
    return ok;
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
