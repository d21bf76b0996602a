#include "runtime/worker/session_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/json.h"
#include "native/base/memory_limit.h"
#include "native/kernel/pool.h"
#include "native/model/match.h"
#include "runtime/doc/documents.h"
#include "runtime/script/nursery.h"
#include "runtime/store/object.h"
#include "runtime/worker/reference.h"
#include "runtime/worker/rows_fit.h"

#define SHARD_LIMIT (UINT64_C(1) << 30)
#define SHARD_MEDIA "application/vnd.rondo.shard+jsonl"

static const char *const role_fields[SESSION_ROLES] = { "model", "objective", "inner", "outer", "schedule", "reward" };

/* Collects the script and every import of the spec as candidates. */
static bool read_script(struct session *s, json_t *entry, const char *field, struct session_script *out, struct error *err)
{
    json_t *texts = json_object_get(s->job, "scripts"), *imports = json_object_get(s->spec, "imports"), *cid;
    json_t *own = json_object_get(texts, json_string_value(json_object_get(entry, "script")));
    const char *name;
    size_t count = 0;

    if (!own)
        return error_set(err, ERROR_MISSING, NULL, "the script of %s is not here", field);
    out->files = calloc(json_object_size(imports) + 1, sizeof *out->files);
    out->files[count++] =
        (struct script_file){ json_string_value(json_object_get(own, "name")), json_string_value(json_object_get(own, "source")),
                              json_string_length(json_object_get(own, "source")) };
    json_object_foreach(imports, name, cid)
    {
        json_t *text = json_object_get(texts, json_string_value(cid));

        if (!text)
            return error_set(err, ERROR_MISSING, NULL, "the import %s is not here", name);
        out->files[count++] = (struct script_file){ name, json_string_value(json_object_get(text, "source")),
                                                    json_string_length(json_object_get(text, "source")) };
    }
    out->bundle = (struct script_bundle){ out->files, count, json_object_get(entry, "options") };
    return true;
}

static bool read_scripts(struct session *s, struct error *err)
{
    json_t *list = json_object_get(s->spec, "aggregators"), *entry;
    size_t index;

    for (size_t i = 0; i < SESSION_ROLES; i++)
        if ((i != SESSION_REWARD || json_object_get(s->spec, "reward")) &&
            !read_script(s, json_object_get(s->spec, role_fields[i]), role_fields[i], &s->scripts[i], err))
            return false;
    json_array_foreach(list, index, entry)
    {
        if (index == sizeof s->aggregators / sizeof *s->aggregators)
            return error_set(err, ERROR_LIMIT, NULL, "more than %zu aggregators", index);
        if (!read_script(s, entry, "aggregators", &s->aggregators[index], err))
            return false;
        s->aggregator_count++;
    }
    return true;
}

/* What a row of a batch is, by the data that the objective reads. */
static void read_rules(struct session *s, const char *data)
{
    s->rules = (struct batch_rules){ .batch_tokens = json_integer_value(json_object_get(s->spec, "batch_tokens")),
                                     .context = json_integer_value(json_object_get(s->spec, "context")),
                                     .packed = json_object_get(s->spec, "packing") != NULL,
                                     .pairs = data && strcmp(data, "pairs") == 0,
                                     .kind = data && strcmp(data, "images") == 0   ? BATCH_IMAGES
                                             : data && strcmp(data, "series") == 0 ? BATCH_SERIES
                                                                                   : BATCH_TOKENS };
}

static double rollout_number(const json_t *rollout, const char *name, double otherwise)
{
    return json_decimal(json_object_get(rollout, name), otherwise);
}

/* The data of the objective. One on rollouts and a reward belong together. */
static bool read_data(struct session *s, struct error *err)
{
    json_t *meta = script_describe(&s->scripts[SESSION_OBJECTIVE].bundle, &s->limits, err);
    const json_t *rollout = json_object_get(meta, "rollout");
    const char *data = json_string_value(json_object_get(meta, "data"));
    bool wanted = data && strcmp(data, "rollouts") == 0, given = s->scripts[SESSION_REWARD].files != NULL, ok = meta != NULL;

    read_rules(s, data);
    if (ok && wanted && !given)
        ok = error_set(err, ERROR_MISSING, "reward = { script = \"exact_match\" }", "an objective on rollouts needs a reward");
    else if (ok && given && !wanted)
        ok = error_set(err, ERROR_UNSUPPORTED, "leave reward out, or take grpo as objective", "the objective reads no rollouts");
    if (ok && wanted) {
        s->rollout = (struct session_rollout){ .samples = (int64_t)rollout_number(rollout, "samples", 8),
                                               .updates = (int64_t)rollout_number(rollout, "updates", 1),
                                               .max_tokens = (int64_t)rollout_number(rollout, "max_tokens", 256),
                                               .temperature = rollout_number(rollout, "temperature", 1) };
        if (s->rollout.samples < 1 || s->rollout.samples > 4096 || s->rollout.updates < 1 || s->rollout.max_tokens < 1 ||
            s->rollout.max_tokens > 1 << 20 || !(s->rollout.temperature > 0))
            ok = error_set(err, ERROR_RANGE, "samples 1 to 4096, updates and max_tokens from 1, temperature above 0",
                           "the objective's rollout cannot be");
    }
    json_decref(meta);
    return ok || error_at(err, "objective");
}

static bool read_text(struct session *s, struct error *err)
{
    const char *given = json_string_value(json_object_get(s->job, "template")), *own = model_chat_template(s->model);
    const char *source = given ? given : own, *date = json_string_value(json_object_get(s->spec, "template_date"));

    s->tokenizer = model_tokenizer(s->model, err);
    if (!s->tokenizer)
        return false;
    if (source) {
        s->template = template_new(source, strlen(source), err);
        if (!s->template)
            return error_at(err, "chat template");
    }
    s->variables = json_deep_copy(model_template_variables(s->model));
    s->date = TEMPLATE_DATE;
    if (date && !date_parse(date, &s->date, err))
        return error_at(err, "template_date");

    uint32_t size = tokenizer_size(s->tokenizer);
    struct buffer text = { 0 };

    s->token_bytes = calloc(size, sizeof *s->token_bytes);
    for (uint32_t id = 0; id < size; id++) {
        struct error ignored = { 0 };

        buffer_clear(&text);
        if (tokenizer_decode(s->tokenizer, &id, 1, true, &text, &ignored)) /* ids without a token stay 0 */
            s->token_bytes[id] = (float)text.size;
    }
    buffer_free(&text);
    s->rules.token_bytes = s->token_bytes;
    return true;
}

/* [ [name, number] ] */
static json_t *pattern_list(json_t *pattern)
{
    json_t *list = json_array(), *number;
    const char *name;

    json_object_foreach(pattern, name, number)
    {
        json_array_append_new(list, json_pack("[s, O]", name, number));
    }
    return list;
}

static bool read_patterns(struct session_adapter *out, const json_t *adapter, struct error *err)
{
    if (!adapter_patterns(&out->kind, json_object_get(adapter, "rank_pattern"), json_object_get(adapter, "alpha_pattern"), false,
                          err))
        return error_at(err, "adapter");
    if (out->kind.ranks || out->kind.alphas)
        out->patterns = json_pack("{s:o, s:o, s:f, s:b}", "ranks", pattern_list(out->kind.ranks), "alphas",
                                  pattern_list(out->kind.alphas), "alpha", out->kind.alpha, "root", (int)out->kind.root);
    return true;
}

/* The spec was checked (run_spec.h); alpha may be any number in the job of a model that is looked at outside of a run. */
static bool read_adapter(struct session *s, struct error *err)
{
    json_t *adapter = json_object_get(s->spec, "adapter"), *targets = json_object_get(adapter, "targets"), *target;
    const char *kind = document_text(adapter, "kind"), *scaling = document_text(adapter, "scaling");
    struct session_adapter *out = &s->adapter;
    size_t index;

    if (!kind || strcmp(kind, "none") == 0)
        return true;
    out->kind = (struct adapter_kind){ .rank = (unsigned)document_integer(adapter, "rank"),
                                       .alpha = json_number_value(json_object_get(adapter, "alpha")),
                                       .root = scaling && strcmp(scaling, "root") == 0,
                                       .dora = strcmp(kind, "dora") == 0 };
    out->kind.whole = json_incref(json_object_get(adapter, "modules_to_save"));
    out->start = document_text(s->job, "adapter");
    out->plus = json_decimal(json_object_get(adapter, "loraplus_lr_ratio"), 0);
    out->targets = calloc(json_array_size(targets) + 1, sizeof *out->targets);
    json_array_foreach(targets, index, target)
    {
        out->targets[out->target_count++] = json_string_value(target);
    }
    return read_patterns(out, adapter, err);
}

bool session_trace_model(struct session *s, int64_t rows, int64_t time, bool training, struct script_trace *out,
                         struct error *err)
{
    const struct session_adapter *adapter = &s->adapter;
    struct script_model_request request = {
        .config = (json_t *)(uintptr_t)model_config(s->model),
        .rows = rows,
        .time = time,
        .length = s->rules.context,
        .rank = adapter->kind.rank,
        .scale = adapter->kind.rank ? adapter_scale(&adapter->kind) : 0,
        .dora = adapter->kind.dora,
        .patterns = adapter->patterns,
        .targets = adapter->targets,
        .target_count = adapter->target_count,
        .whole = adapter->kind.whole,
        .train_all = adapter->kind.rank == 0,
        .training = training,
    };
    json_t *side = json_object_get(model_config(s->model), "image_size");
    bool ok;

    if (s->rules.kind == BATCH_IMAGES) {
        if (!json_is_integer(side))
            return error_set(err, ERROR_UNSUPPORTED, "images of one size, as high as wide",
                             "config.json has no whole image_size");
        request.time = 0;
        request.sizes = json_pack("{s:O, s:O}", "height", side, "width", side);
    }
    ok = script_trace_model(&s->scripts[SESSION_MODEL].bundle, &request, &s->limits, out, err);
    json_decref(request.sizes);
    return ok;
}

static bool read_layout(struct session *s, struct error *err)
{
    struct script_trace trace;

    if (!session_trace_model(s, 1, s->rules.kind == BATCH_SERIES ? s->rules.context : BATCH_BUCKET, true, &trace, err))
        return error_at(err, "model");

    bool ok = (model_match(s->model, json_object_get(trace.meta, "params"), err) ||
               error_at(err, "%s", json_string_value(json_object_get(s->job, "model")))) &&
              layout_new(&s->layout, trace.meta, err);

    script_trace_free(&trace);
    if (!ok)
        return false;

    json_t *metas = layout_metas(&s->layout);

    ok = (script_trace_optimiser(&s->scripts[SESSION_INNER].bundle, metas, false, &s->limits, &s->inner, err) ||
          error_at(err, "inner")) &&
         (script_trace_optimiser(&s->scripts[SESSION_OUTER].bundle, metas, true, &s->limits, &s->outer, err) ||
          error_at(err, "outer"));
    json_decref(metas);
    s->frozen = calloc(json_array_size(json_object_get(s->layout.meta, "params")) + 1, sizeof *s->frozen);
    s->stored = calloc(json_array_size(json_object_get(s->layout.meta, "params")) + 1, sizeof *s->stored);
    return ok;
}

struct session *session_new(json_t *job, const struct block_store *blocks, struct pool *pool, struct error *err)
{
    struct session *s = calloc(1, sizeof *s);
    json_t *limits;

    s->job = json_incref(job);
    s->spec = json_object_get(job, "spec");
    s->run = json_string_value(json_object_get(job, "run"));
    s->blocks = *blocks;
    s->pool = pool;
    s->arenas = SESSION_ARENAS;
    s->memory = memory_allowance(1);
    s->shown = SESSION_SHOWN;
    limits = json_object_get(s->spec, "limits");
    s->limits.memory = (uint64_t)json_integer_value(json_object_get(limits, "script_memory"));
    s->limits.seconds = (double)json_integer_value(json_object_get(limits, "script_seconds"));
    s->limits.nursery = script_nursery_new();
    s->model = model_open(json_string_value(json_object_get(job, "model")), err);
    if (s->model && read_adapter(s, err) && read_scripts(s, err) && read_data(s, err) &&
        (s->rules.kind != BATCH_TOKENS || read_text(s, err)) && read_layout(s, err) && reference_check(s, err))
        return s;
    session_free(s);
    return NULL;
}

static void shard_free(struct session_shard *shard)
{
    examples_free(&shard->examples);
    prompts_free(&shard->prompts);
    rows_free(&shard->rows);
    buffer_free(&shard->bytes);
    free(shard);
}

static void script_free(struct session_script *script)
{
    free(script->files);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    script_nursery_free(s->limits.nursery);
    for (size_t i = 0; i < s->step_count; i++)
        session_step_free(s->steps[i]);
    free(s->steps);
    free(s->rates.rates);
    batch_free(&s->disputed.batch);
    for (size_t i = 0; i < SESSION_REPLAYS; i++)
        json_decref(s->replays[i].result);
    cache_free(s->cache);
    for (size_t i = 0; i < s->shard_count; i++)
        shard_free(s->shards[i]);
    free(s->shards);
    if (s->frozen)
        for (size_t i = 0; i < json_array_size(json_object_get(s->layout.meta, "params")); i++) {
            free(s->frozen[i]);
            free(s->stored[i].owned);
        }
    free(s->frozen);
    free(s->stored);
    script_trace_free(&s->inner);
    script_trace_free(&s->outer);
    layout_free(&s->layout);
    for (size_t i = 0; i < sizeof s->scripts / sizeof *s->scripts; i++)
        script_free(&s->scripts[i]);
    for (size_t i = 0; i < sizeof s->aggregators / sizeof *s->aggregators; i++)
        script_free(&s->aggregators[i]);
    free(s->adapter.targets);
    json_decref(s->adapter.patterns);
    adapter_kind_free(&s->adapter.kind);
    free(s->token_bytes);
    json_decref(s->variables);
    template_free(s->template);
    tokenizer_free(s->tokenizer);
    model_close(s->model);
    reference_free(s->reference);
    json_decref(s->job);
    free(s);
}

struct conversation_format session_format(const struct session *s)
{
    return (struct conversation_format){ .tokenizer = s->tokenizer,
                                         .template = s->template,
                                         .variables = s->variables,
                                         .options = { .date = s->date },
                                         .context = (size_t)s->rules.context,
                                         .surround = json_is_true(json_object_get(s->spec, "surround")),
                                         .parse_special = json_is_true(json_object_get(s->spec, "parse_special")) };
}

static bool read_rows(struct session *s, struct session_shard *shard, struct error *err)
{
    struct conversation_format format = session_format(s);
    char name[CID_TEXT];

    format.coalesce = shard->coalesced;

    if (!rows_of(&shard->rows, cid_text(shard->id, name), (const char *)shard->bytes.bytes, shard->bytes.size, err))
        return false;
    if (s->rollout.samples)
        return prompts_read(&format, &shard->rows, &shard->prompts, err);
    for (size_t i = 0; i < shard->rows.count; i++) {
        json_t *row = i == 0 ? rows_read(&shard->rows, 0, err) : NULL;

        if (i == 0 && !row)
            return false;
        if (i == 0)
            shard->stream = row_kind(row) == ROW_TEXT;
        json_decref(row);
        /* a stream is cut into rows of the context later: its documents may be longer */
        format.context = shard->stream ? SIZE_MAX : (size_t)s->rules.context;
        if (!conversation_examples(&format, &shard->rows, i, &shard->examples, &shard->counts, err))
            return false;
    }
    return rows_fit(s, shard, err);
}

/* Rows that cannot be used are so on every machine (failure.h), whatever is wrong with them. */
static bool read_shard(struct session *s, struct session_shard *shard, struct error *err)
{
    if (!object_get(&s->blocks, shard->id, SHARD_MEDIA, SHARD_LIMIT, &shard->bytes, err))
        return false;
    if (read_rows(s, shard, err))
        return true;
    if (!error_is_local(err->code))
        err->code = ERROR_RANGE;
    return false;
}

const struct session_shard *session_shard(struct session *s, struct hash id, enum session_use use, struct error *err)
{
    bool coalesced = use == SESSION_TRAIN && json_is_true(json_object_get(s->spec, "coalesce"));

    for (size_t i = 0; i < s->shard_count; i++)
        if (hash_equal(s->shards[i]->id, id) && s->shards[i]->coalesced == coalesced)
            return s->shards[i];

    struct session_shard *shard = calloc(1, sizeof *shard);

    shard->id = id;
    shard->coalesced = coalesced;
    if (!read_shard(s, shard, err)) {
        shard_free(shard);
        return NULL;
    }
    s->shards = realloc(s->shards, (s->shard_count + 1) * sizeof *s->shards);
    s->shards[s->shard_count++] = shard;
    return shard;
}

const double *session_rates(struct session *s, int64_t round, int64_t steps, struct error *err)
{
    const int64_t rounds = json_integer_value(json_object_get(s->spec, "rounds"));
    double *rates;
    json_t *context;

    if (s->rates.rates && s->rates.round == round && s->rates.steps == steps)
        return s->rates.rates;
    rates = calloc((size_t)steps, sizeof *rates);
    context = json_pack("{s:I, s:I, s:i, s:O, s:b}", "round", (json_int_t)round, "rounds", (json_int_t)rounds, "peers", 1,
                        "layers", json_object_get(s->layout.meta, "layers"), "last", 0);
    if (!script_rates(&s->scripts[SESSION_SCHEDULE].bundle, context, (uint64_t)((round - 1) * steps), (size_t)steps, rates,
                      &s->limits, err)) {
        free(rates);
        rates = NULL;
        error_at(err, "schedule");
    } else {
        free(s->rates.rates);
        s->rates = (struct session_rates){ round, steps, rates };
    }
    json_decref(context);
    return rates;
}
