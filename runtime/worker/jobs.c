#include "runtime/worker/jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/model/adapter.h"
#include "native/model/safetensors.h"
#include "runtime/doc/documents.h"
#include "runtime/round/plan_codec.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/failure.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/fragments.h"
#include "runtime/worker/inner.h"
#include "runtime/worker/measuring.h"
#include "runtime/worker/plan.h"
#include "runtime/worker/rollouts.h"
#include "runtime/worker/spoiled.h"
#include "runtime/worker/values.h"

#define PAYLOAD_MEDIA "application/vnd.rondo.payload"
#define LOG_MEDIA     "application/vnd.rondo.step-log"

/* --- plan ---------------------------------------------------------------------------------------------------------------- */

static bool plan_offered(const json_t *plan, struct error *err)
{
    static const char *const later[] = { "delay",      "apply_at", "merge",         "eager",      "exchange",
                                         "redundancy", "among",    "micro_batches", "activations" };
    const char *inner = json_string_value(json_object_get(plan, "inner"));
    struct plan_codec codec;

    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (json_object_get(plan, later[i]))
            return error_set(err, ERROR_UNSUPPORTED, "leave it out", "a plan with `%s`: not offered by this version", later[i]);
    if (inner && strcmp(inner, "reset") != 0 && strcmp(inner, "keep") != 0)
        return error_set(err, ERROR_UNSUPPORTED, "inner is \"reset\" or \"keep\"", "a plan with inner = \"%s\"", inner);
    if (!plan_codec_read(plan, &codec, err))
        return false;
    if (plan_number(plan, "steps", 0) < 1)
        return error_set(err, ERROR_RANGE, NULL, "a plan without steps");
    return true;
}

json_t *job_plan(struct session *s, const json_t *job, struct error *err)
{
    const json_t *request = json_object_get(job, "request"), *last = json_object_get(request, "last");
    json_t *context = json_pack("{s:O, s:O, s:O, s:O, s:o}", "round", json_object_get(request, "round"), "rounds",
                                json_object_get(s->spec, "rounds"), "peers", json_object_get(request, "peers"), "layers",
                                json_object_get(s->layout.meta, "layers"), "last",
                                json_is_object(last) ? json_incref((json_t *)(uintptr_t)last) : json_false());
    json_t *made = script_plan(&s->scripts[SESSION_SCHEDULE].bundle, context, NULL, NULL, &s->limits, err), *plan, *result = NULL;
    uint32_t fragment;
    uint64_t values;
    size_t tensors;

    json_decref(context);
    if (!made) {
        error_at(err, "schedule");
        return NULL;
    }
    plan = json_object_get(made, "plan");
    if (json_is_object(json_object_get(made, "state")) && json_object_size(json_object_get(made, "state")))
        error_set(err, ERROR_UNSUPPORTED, NULL, "a schedule that keeps state");
    else if (plan_offered(plan, err) && fragments_of(s, plan, &fragment, err)) {
        fragment_measure(&s->layout, fragment, &values, &tensors);
        result = json_pack("{s:O, s:I, s:I}", "plan", plan, "values", (json_int_t)values, "tensors", (json_int_t)tensors);
    }
    if (!result)
        error_at(err, "schedule");
    json_decref(made);
    return result;
}

/* --- train and replay ------------------------------------------------------------------------------------------------------ */

static bool inner_store(struct session *s, struct inner *inner, struct error *err)
{
    struct buffer log = { 0 };
    bool ok;

    step_log_encode(&inner->log, &log);
    ok = object_put(&s->blocks, PAYLOAD_MEDIA, inner->payload.bytes, inner->payload.size, &inner->payload_id, err) &&
         object_put(&s->blocks, LOG_MEDIA, log.bytes, log.size, &inner->log_id, err) &&
         (inner->carry.size == 0 ||
          object_put(&s->blocks, STATE_MEDIA, inner->carry.bytes, inner->carry.size, &inner->carry_id, err));
    buffer_free(&log);
    return ok;
}

json_t *job_train(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    const json_t *context = json_object_get(job, "context"), *plan = json_object_get(context, "plan");
    struct plan_codec codec;
    struct inner inner;
    json_t *result = NULL;

    if (!plan_codec_read(plan, &codec, err))
        return NULL;
    if (inner_run(s, context, json_object_get(job, "shards"), carry_of(context, NULL), to, &inner, err) &&
        inner_store(s, &inner, err))
        result =
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:o, s:O, s:o}", "start",
                      document_json_hash(inner.log.start), "end", document_json_hash(inner.log.leaves[inner.log.steps - 1].state),
                      "carry_in", document_json_hash(inner.log.carry_in), "carry_out", document_json_hash(inner.log.carry_out),
                      "body", document_json_hash(inner.log.body), "payload", document_json_cid(inner.payload_id), "payload_bytes",
                      (json_int_t)inner.payload.size, "codec", plan_codec_document(&codec), "tokens", (json_int_t)inner.tokens,
                      "steps", (json_int_t)inner.log.steps, "loss", document_json_float(step_log_loss(&inner.log)), "probes",
                      inner.probes, "step_log", document_json_cid(inner.log_id));
    if (result && json_object_get(plan, "fragment"))
        json_object_set_new(result, "fragment", json_integer((json_int_t)plan_number(plan, "fragment", 0)));
    if (result && inner.carry.size)
        json_object_set_new(result, "carry", document_json_cid(inner.carry_id));
    inner_free(&inner);
    return result;
}

bool job_step_log(struct session *s, const json_t *document, struct step_log *log, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = cid_parse(document_text(document, "step_log"), &id, err) &&
              object_get(&s->blocks, id, LOG_MEDIA, step_log_size(document_integer(document, "steps")), &bytes, err) &&
              step_log_decode(bytes.bytes, bytes.size, log, err);

    buffer_free(&bytes);
    return ok || error_at(err, "step_log");
}

/* Where two runs part, in words. */
static json_t *difference(const struct step_log *theirs, const struct step_log *ours, int64_t index)
{
    if (index < 0)
        return json_string("equal");
    if (index == 0)
        return json_string("start");
    if (index > (int64_t)ours->steps || index > (int64_t)theirs->steps)
        return json_string("payload");

    const struct step_leaf *a = &theirs->leaves[index - 1], *b = &ours->leaves[index - 1];

    return json_string(!hash_equal(a->batch, b->batch)                   ? "batch"
                       : memcmp(&a->loss, &b->loss, sizeof a->loss) != 0 ? "loss"
                                                                         : "state");
}

/* The first leaf that differs where ours end before leaf `failed`: that one at the latest, since nobody can compute it. */
static int64_t difference_before(const struct step_log *theirs, struct step_log ours, int64_t failed)
{
    const int64_t left = failed > 0 ? failed - 1 : 0;
    struct step_log some = *theirs;

    ours.steps = (uint32_t)left;
    some.steps = theirs->steps < left ? theirs->steps : (uint32_t)left;
    some.body = ours.body;
    some.carry_out = ours.carry_out;

    const int64_t index = step_log_difference(&some, &ours);

    return index >= 0 && index < failed ? index : failed;
}

/* The work cannot be done: a verdict about whoever says that it did it, and no fault of this machine. */
static json_t *failed_replay(const struct step_log *theirs, const struct inner *inner, const struct error *fault)
{
    const int64_t index = difference_before(theirs, inner->log, inner->failed);

    return json_pack(
        "{s:I, s:I, s:o, s:b, s:{s:s, s:I, s:s, s:s}}", "index", (json_int_t)index, "steps", (json_int_t)theirs->steps, "where",
        index < inner->failed ? difference(theirs, &inner->log, index) : json_string("failure"), "probes", 0, "failure", "code",
        error_name(fault->code), "leaf", (json_int_t)inner->failed, "place", fault->place, "message", fault->message);
}

static json_t *replay(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    const json_t *context = json_object_get(job, "context"), *document = json_object_get(job, "document");
    struct step_log theirs = { 0 };
    struct inner inner = { 0 };
    json_t *result = NULL;

    if (!job_step_log(s, document, &theirs, err))
        return NULL;
    if (inner_run(s, context, json_object_get(job, "shards"), carry_of(context, document), to, &inner, err)) {
        int64_t index = step_log_difference(&theirs, &inner.log);

        result = json_pack("{s:I, s:I, s:o, s:b}", "index", (json_int_t)index, "steps", (json_int_t)inner.log.steps, "where",
                           difference(&theirs, &inner.log, index), "probes",
                           json_equal(inner.probes, json_object_get(document, "probes")));
    } else if (failure_is_everywhere(err) || (inner.failed == 0 && err->code == ERROR_MISMATCH)) {
        result = failed_replay(&theirs, &inner, err);
        error_clear(err);
    }
    step_log_free(&theirs);
    inner_free(&inner);
    if (result && document_integer(result, "index") >= 0 && !spoiled_none(s, err)) {
        json_decref(result);
        return NULL;
    }
    return result;
}

/* Which contribution, under which context: the work is the same, and so is its result. */
static struct hash replay_key(const json_t *job)
{
    json_t *key =
        json_pack("[O, O, O]", json_object_get(job, "context"), json_object_get(job, "shards"), json_object_get(job, "document"));
    char *text = json_dumps(key, JSON_SORT_KEYS | JSON_COMPACT);
    const struct hash hash = hash_typed("rondo/replay", text, strlen(text));

    free(text);
    json_decref(key);
    return hash;
}

json_t *job_replay(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    const struct hash key = replay_key(job);
    json_t *result;

    for (size_t i = 0; i < SESSION_REPLAYS; i++)
        if (s->replays[i].result && hash_equal(s->replays[i].key, key))
            return json_incref(s->replays[i].result);
    result = replay(s, job, to, err);
    if (result) {
        struct session_replay *place = &s->replays[s->replay_next++ % SESSION_REPLAYS];

        json_decref(place->result);
        *place = (struct session_replay){ key, json_incref(result) };
    }
    return result;
}

/* --- check ---------------------------------------------------------------------------------------------------------------- */

/* Whether each probe shows as many values as the seed draws. */
static bool probes_whole(const json_t *document, uint64_t values)
{
    json_t *probe;
    size_t index;

    json_array_foreach(json_object_get(document, "probes"), index, probe)
    {
        if (json_array_size(json_object_get(probe, "values")) != (values < PROBE_VALUES ? values : PROBE_VALUES))
            return false;
    }
    return true;
}

/* A code that refuses the contribution; NULL with `err` where the fault is this machine's. */
static const char *code_of(const struct error *fault, struct error *err)
{
    if (!failure_is_here(fault))
        return error_name(fault->code);
    *err = *fault;
    return NULL;
}

/* The code of a contribution whose log could be read: that of its payload, else of its fields. NULL with `err` as above. */
static const char *check_payload(struct session *s, const json_t *context, const json_t *document, const struct step_log *log,
                                 float *values, struct error *err)
{
    uint64_t most = (uint64_t)document_integer(json_object_get(s->spec, "limits"), "payload_bytes");
    const json_t *plan = json_object_get(context, "plan");
    struct payload_header expected;
    struct tensor *tensors = NULL;
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    struct hash id;
    const char *code;
    size_t body, count;

    if (!folding_header(s, plan, document_integer(context, "round"), document_text(document, "signer"), &expected, &fault) ||
        !(tensors = folding_payload(s, plan, &expected, values, &count)) ||
        !cid_parse(document_text(document, "payload"), &id, &fault) ||
        !object_get(&s->blocks, id, PAYLOAD_MEDIA, most, &bytes, &fault))
        code = code_of(&fault, err);
    else if ((int64_t)bytes.size != document_integer(document, "payload_bytes"))
        code = "payload_bytes";
    else if (!payload_decode(bytes.bytes, bytes.size, &expected, tensors, count, &body, &fault))
        code = code_of(&fault, err);
    else if (!probes_whole(document, s->layout.values))
        code = "probes";
    else
        code = contribution_code(document, context, log, merkle_of(bytes.bytes + body, bytes.size - body));
    buffer_free(&bytes);
    free(tensors);
    return code;
}

json_t *job_check(struct session *s, const json_t *job, struct error *err)
{
    const json_t *document = json_object_get(job, "document");
    float *values = layout_values(&s->layout, err);
    struct step_log log = { 0 };
    struct error fault = { 0 };
    json_t *result = NULL;

    if (values) {
        const json_t *context = json_object_get(job, "context");
        const char *code = document_integer(document, "steps") != document_integer(json_object_get(context, "plan"), "steps")
                               ? "steps"
                           : job_step_log(s, document, &log, &fault) ? check_payload(s, context, document, &log, values, err)
                           : code_of(&fault, err)                    ? "step_log"
                                                                     : NULL;

        result = code ? json_pack("{s:s}", "code", code) : NULL;
    }
    step_log_free(&log);
    free(values);
    return result;
}

/* --- evaluate ------------------------------------------------------------------------------------------------------------- */

/* Rows with a tool call count for accuracy; all rows count for the loss. */
static bool evaluate_shard(struct session *s, const struct session_shard *shard, const float *values, int64_t most,
                           struct evaluation *all, uint64_t *calls, uint64_t *exact, const struct job_reporter *to,
                           struct error *err)
{
    enum { AT_ONCE = 4 };
    struct batch batch = { 0 };
    bool ok = true;

    for (size_t at = 0; ok && at < shard->examples.count && (most <= 0 || (int64_t)all->rows < most);) {
        const struct example *rows[AT_ONCE];
        bool right[AT_ONCE];
        size_t count = 0;

        while (count < AT_ONCE && at < shard->examples.count && (most <= 0 || (int64_t)(all->rows + count) < most))
            rows[count++] = &shard->examples.items[at++];
        batch_of(&batch, &s->rules, rows, count);
        ok = evaluate_batch(s, values, &batch, all, right, err);
        for (size_t i = 0; ok && i < count; i++)
            if (rows[i]->call) {
                ++*calls;
                *exact += right[i];
            }
        if (ok && to && all->rows % 64 < AT_ONCE) {
            json_t *report = json_pack("{s:I}", "evaluated", (json_int_t)all->rows);

            to->report(to->context, report);
            json_decref(report);
        }
    }
    batch_free(&batch);
    return ok;
}

/* Mean reward of one completion a prompt, drawn as the run draws, by seeds that are the same for every state. */
static json_t *measure(struct session *s, const json_t *job, const float *values, const struct job_reporter *to,
                       struct error *err)
{
    enum { AT_ONCE = 64 };
    json_t *shards = json_object_get(job, "shards"), *shard;
    int64_t most = document_integer(job, "rows");
    struct rollout_measure sum = { 0 };
    size_t index;

    json_array_foreach(shards, index, shard)
    {
        const struct session_shard *rows = NULL;
        struct hash id;

        if (!cid_parse(json_string_value(shard), &id, err) || !(rows = session_shard(s, id, SESSION_EVALUATE, err)))
            return NULL;
        for (size_t at = 0; at < rows->prompts.count && (most <= 0 || (int64_t)sum.rows < most);) {
            const struct prompt *list[AT_ONCE];
            size_t count = 0;

            while (count < AT_ONCE && at < rows->prompts.count && (most <= 0 || (int64_t)(sum.rows + count) < most))
                list[count++] = &rows->prompts.items[at++];
            if (!rollouts_measure(s, values, list, count, &sum, err))
                return NULL;
            if (to) {
                json_t *report = json_pack("{s:I}", "evaluated", (json_int_t)sum.rows);

                to->report(to->context, report);
                json_decref(report);
            }
        }
    }
    if (sum.valid == 0) {
        error_set(err, ERROR_MISSING, "does the reward fit the rows' references?", "no held-out completion has a reward");
        return NULL;
    }
    return json_pack("{s:f, s:I, s:I, s:f, s:f}", "reward", sum.reward / (double)sum.valid, "rows", (json_int_t)sum.rows,
                     "declined", (json_int_t)(sum.rows - sum.valid), "truncated", (double)sum.truncated / (double)sum.rows,
                     "tokens_per_completion", (double)sum.tokens / (double)sum.rows);
}

json_t *job_evaluate(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    float *values = values_read(s, job, err);
    json_t *shards = json_object_get(job, "shards"), *shard, *result = NULL;
    struct evaluation all = { 0 };
    uint64_t calls = 0, exact = 0, dropped = 0;
    size_t index;
    bool ok = values != NULL;

    if (s->rollout.samples || s->rules.pairs || s->rules.kind != BATCH_TOKENS) {
        result = !ok ? NULL : s->rollout.samples ? measure(s, job, values, to, err) : measuring_run(s, job, values, to, err);
        free(values);
        return result;
    }
    json_array_foreach(shards, index, shard)
    {
        struct hash id;
        const struct session_shard *rows = NULL;

        ok = ok && cid_parse(json_string_value(shard), &id, err) && (rows = session_shard(s, id, SESSION_EVALUATE, err)) &&
             evaluate_shard(s, rows, values, document_integer(job, "rows"), &all, &calls, &exact, to, err);
        for (size_t i = 0; ok && i < CONVERSATION_DROPS; i++)
            dropped += rows->counts.dropped[i];
    }
    if (ok && !isfinite(all.loss))
        ok = error_set(err, ERROR_NON_FINITE, NULL, "the loss of the held-out rows is not finite");
    if (ok && all.weight == 0)
        ok = error_set(err, ERROR_MISSING, "rondo data check FILE tells why", "no held-out row can be evaluated");
    if (ok)
        result = json_pack("{s:f, s:o, s:I, s:I, s:I, s:I}", "loss", all.loss / all.weight, "tool_call_accuracy",
                           calls ? json_real((double)exact / (double)calls) : json_null(), "calls", (json_int_t)calls, "exact",
                           (json_int_t)exact, "rows", (json_int_t)all.rows, "dropped", (json_int_t)dropped);
    free(values);
    return result;
}

/* --- adapter -------------------------------------------------------------------------------------------------------------- */

/* Tensors in the shapes that the base's files have them in. Of a base without weights matrices become [out, in], or the reverse where the script
 * has the input's axes first, whatever axes it gives the two sides. */
static bool flatten(const struct session *s, struct tensor *tensors, struct error *err)
{
    const struct layout *l = &s->layout;

    for (size_t i = 0; i < l->count; i++) {
        const struct tensor *base = model_find(s->model, tensors[i].name);

        if (base && tensor_values(base) == l->parameters[i].values) {
            tensors[i].rank = base->rank;
            memcpy(tensors[i].dims, base->dims, sizeof base->dims);
            continue;
        }

        const char *out = document_text(l->parameters[i].meta, "out"), *inp = document_text(l->parameters[i].meta, "inp"),
                   *axes = document_text(l->parameters[i].meta, "axes");
        const bool turned = out && inp && strncmp(axes, out, strlen(out)) != 0;
        const char *sides[2] = { turned ? inp : out, turned ? out : inp };
        uint64_t dims[8], sizes[2] = { 0 };
        unsigned rank;

        if (!sides[0] || !sides[1])
            continue;
        for (int side = 0; side < 2; side++)
            if (!axes_measure(sides[side], &rank, dims, &sizes[side], err))
                return error_at(err, "%s", tensors[i].name);
        if (sizes[0] * sizes[1] != l->parameters[i].values)
            continue; /* a stack of experts stays as it is */
        tensors[i].rank = 2;
        tensors[i].dims[0] = sizes[0];
        tensors[i].dims[1] = sizes[1];
    }
    return true;
}

json_t *job_adapter(struct session *s, const json_t *job, struct error *err)
{
    const char *folder = document_text(job, "folder"), *base = document_text(job, "base");
    float *values = layout_values(&s->layout, err);
    struct tensor *tensors = folding_tensors(&s->layout, values);
    struct hash outer;
    char path[4200];
    bool ok = values && cid_parse(document_text(job, "outer"), &outer, err) && folding_values(s, outer, values, err);

    snprintf(path, sizeof path, "%.4000s/model.safetensors", folder);
    ok = ok && flatten(s, tensors, err);
    if (ok && s->adapter.kind.rank)
        ok = adapter_write(folder,
                           &(struct adapter){ .kind = s->adapter.kind,
                                              .base = base,
                                              .tensors = tensors,
                                              .count = s->layout.count,
                                              .head = layout_head(&s->layout) },
                           err);
    else if (ok)
        ok = safetensors_write(path, tensors, s->layout.count, NULL, err);
    free(tensors);
    free(values);
    return ok ? json_pack("{s:s}", "folder", folder) : NULL;
}
