#include "runtime/worker/drawn.h"

#include <stdlib.h>

#include "runtime/doc/documents.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/generate.h"
#include "runtime/worker/inner.h"
#include "runtime/worker/jobs.h"
#include "runtime/worker/training.h"

struct drawn {
    struct session *session;
    struct step_log log; /* of the contribution */
    json_t *batches;
};

/* --- one completion --------------------------------------------------------------------------------------------------------- */

static json_t *number_or_null(const float *list, int64_t row)
{
    return list ? json_real((double)list[row]) : json_null();
}

static json_t *completion(const struct drawn *d, const struct batch *b, int64_t row, struct error *err)
{
    const float *reward = batch_field(b, "reward"), *valid = batch_field(b, "valid"), *truncated = batch_field(b, "truncated"),
                *sampler = batch_field(b, "sampler_logprobs"), *advantage = batch_field(b, "advantage");
    uint32_t *ids = calloc((size_t)b->time + 1, sizeof *ids);
    json_t *tokens = json_array(), *logprobs = json_array(), *made = NULL;
    struct buffer text = { 0 };
    size_t count = 0, spoken;

    for (int64_t i = row * b->time; i < (row + 1) * b->time; i++)
        if (b->mask[i] > 0) {
            ids[count++] = (uint32_t)b->ids[i];
            json_array_append_new(tokens, json_integer(b->ids[i]));
            json_array_append_new(logprobs, json_real((double)sampler[i]));
        }
    spoken = count > 0 && truncated[row] == 0 ? count - 1 : count; /* what ended the turn says nothing */
    if (generate_text(d->session, ids, spoken, true, &text, err))
        made = json_pack("{s:s%, s:O, s:O, s:o, s:b}", "text", text.bytes ? (const char *)text.bytes : "", text.size, "tokens",
                         tokens, "logprobs", logprobs, "reward", number_or_null(valid[row] > 0 ? reward : NULL, row), "truncated",
                         truncated[row] > 0);
    if (made && advantage && batch_field_count(b, "advantage") == (uint64_t)b->rows)
        json_object_set_new(made, "advantage", number_or_null(advantage, row));
    buffer_free(&text);
    json_decref(tokens);
    json_decref(logprobs);
    free(ids);
    return made;
}

/* --- groups and batches ------------------------------------------------------------------------------------------------------ */

static json_t *group(const struct drawn *d, const struct batch *b, int64_t first, const struct prompt *prompt, struct error *err)
{
    json_t *messages = json_object_get(prompt->row, "messages"), *list = json_array();

    for (int64_t row = first; list && row < first + d->session->rollout.samples; row++) {
        json_t *one = completion(d, b, row, err);

        if (!one) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, one);
    }
    return json_pack("{s:O, s:O?, s:o}", "prompt", messages ? messages : json_object_get(prompt->row, "prompt"), "reference",
                     json_object_get(prompt->row, "reference"), "completions", list);
}

static bool show(void *context, int64_t step, const struct batch *b, const struct prompt *const *prompts, struct error *err)
{
    struct drawn *d = context;
    json_t *groups = json_array();
    bool match = step < (int64_t)d->log.steps && hash_equal(batch_root(b), d->log.leaves[step].batch), ok = true;

    for (int64_t row = 0; ok && row < b->rows; row += d->session->rollout.samples) {
        json_t *one = group(d, b, row, prompts[row], err);

        ok = one != NULL;
        if (ok)
            json_array_append_new(groups, one);
    }
    json_array_append_new(d->batches, json_pack("{s:I, s:b, s:o}", "step", (json_int_t)step, "match", match, "groups", groups));
    return ok;
}

json_t *job_rollouts(struct session *s, const json_t *job, struct error *err)
{
    struct drawn d = { .session = s, .batches = json_array() };
    json_t *result = NULL;

    if (job_step_log(s, json_object_get(job, "document"), &d.log, err) &&
        inner_rollouts(s, json_object_get(job, "context"), json_object_get(job, "shards"),
                       carry_of(json_object_get(job, "context"), json_object_get(job, "document")),
                       document_integer(job, "batches"), show, &d, err))
        result = json_pack("{s:O}", "batches", d.batches);
    step_log_free(&d.log);
    json_decref(d.batches);
    return result;
}
