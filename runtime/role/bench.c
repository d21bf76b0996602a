#include "runtime/role/bench.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/base/file.h"
#include "native/model/adapter.h"
#include "native/model/source.h"
#include "runtime/role/run_file.h"
#include "runtime/script/host.h"

enum { ROUNDS = 2, TRAINERS = 7 };

/* The length up to which positions are as in pre-training, where the configuration stretches them by how long a sequence is; else 0. */
static int64_t unstretched(const json_t *config)
{
    const json_t *scaling = json_object_get(config, "rope_scaling"), *own;
    const char *kind;

    if (!json_is_object(scaling))
        scaling = json_object_get(config, "rope_parameters");
    kind = json_string_value(json_object_get(scaling, "rope_type"));
    kind = kind ? kind : json_string_value(json_object_get(scaling, "type"));
    if (!kind || (strcmp(kind, "dynamic") != 0 && strcmp(kind, "longrope") != 0 && strcmp(kind, "su") != 0))
        return 0;
    own = json_object_get(config, "original_max_position_embeddings");
    return json_integer_value(own ? own : json_object_get(scaling, "original_max_position_embeddings"));
}

int64_t bench_context(const json_t *config, int64_t most)
{
    const int64_t own = json_integer_value(json_object_get(config, "max_position_embeddings")), plain = unstretched(config);

    if (plain >= 8 && plain < most)
        most = plain;
    return own >= 8 && own < most ? own : most;
}

const char *bench_pocket(char path[4200])
{
    char scripts[4096];

    snprintf(path, 4200, "%s/../models/pocket", run_file_scripts(scripts));
    if (strcmp(path, "scripts/../models/pocket") == 0)
        snprintf(path, 4200, "models/pocket");
    return path;
}

size_t bench_trainers(const char *kind)
{
    return strcmp(kind, "aggregator") == 0 ? TRAINERS : 1;
}

/* --- a run around one script ---------------------------------------------------------------------------------------------- */

/* The parts of a run but the script's own, with plain settings: nothing here is paid or asked of a committee. */
static json_t *plain_spec(const struct bench_part *p)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:i, s:i}, s:{s:s}, s:{s:s, s:{s:i}}, s:{s:s}, s:[{s:s}],"
                     " s:{s:s, s:{s:I, s:i, s:s, s:s}}, s:i, s:I, s:I, s:{s:[s], s:i, s:[{s:s, s:s, s:s}]}}",
                     "name", "try", "base_model", p->model, "model", "script", "llama", "adapter", "kind", "lora", "rank", 8,
                     "alpha", 16, "objective", "script", "chat_sft", "inner", "script", "adamw", "options", "weight_decay", 0,
                     "outer", "script", "sgd", "aggregators", "script", "mean", "schedule", "script", "diloco", "options",
                     "inner_steps", (json_int_t)p->steps, "outer_lr", 1, "bits", "8", "rate.peak", "0.003", "rounds", (int)ROUNDS,
                     "batch_tokens", (json_int_t)p->context, "context", (json_int_t)p->context, "dataset", "files", p->data,
                     "shards", (int)bench_trainers(p->kind), "corpora", "name", "try", "licence", "unknown", "share", "1");
}

static json_t *plain_rules(void)
{
    return json_pack("{s:{s:s, s:{s:s}}, s:i, s:{s:i, s:i, s:{s:i, s:i}}, s:{s:i, s:i, s:i},"
                     " s:{s:s, s:i, s:s, s:s, s:s, s:{s:s, s:s}}, s:{s:i}}",
                     "trust", "tier", "known", "admission", "mode", "allow-list", "seed_lead", 1000, "quorum", "trainers", 1,
                     "round_ms", 60000, "grace", "min_ms", 1, "max_ms", 1, "committee", "size", 1, "threshold", 1,
                     "release_threshold", 1, "payment", "ledger", "local", "block_ms", 50, "asset", "TNZO", "budget", "1000",
                     "per_round", "100", "terms", "trainers", "0.8", "syncers", "0.2", "limits", "script_seconds", 60);
}

json_t *bench_draft(const struct bench_part *p, struct error *err)
{
    static const struct {
        const char *kind, *field;
    } parts[] = { { "objective", "objective" },
                  { "optimiser", "inner" },
                  { "schedule", "schedule" },
                  { "model", "model" },
                  { "reward", "reward" } };
    json_t *spec = plain_spec(p), *rules = plain_rules(),
           *entry =
               json_pack("{s:s, s:o}", "script", p->script, "options", p->options ? json_deep_copy(p->options) : json_object());
    bool placed = false;

    json_object_update(spec, rules);
    json_decref(rules);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(p->kind, parts[i].kind) == 0) {
            json_object_set(spec, parts[i].field, entry);
            placed = true;
        }
    if (strcmp(p->kind, "reward") == 0) {
        json_object_set_new(spec, "objective",
                            json_pack("{s:s, s:{s:i, s:i}}", "script", "grpo", "options", "samples", 4, "max_tokens", 32));
        json_object_set_new(spec, "batch_tokens", json_integer((json_int_t)(4 * p->context))); /* a few groups */
    }
    if (strcmp(p->kind, "aggregator") == 0) {
        json_t *chain = json_pack("[O]", entry);

        if (p->keeps_peer)
            json_array_append_new(chain, json_pack("{s:s}", "script", "mean"));
        json_object_set_new(spec, "aggregators", chain);
        placed = true;
    }
    json_decref(entry);
    if (placed)
        return json_pack("{s:o}", "spec", spec);
    json_decref(spec);
    error_set(err, ERROR_UNSUPPORTED, "objectives, rewards, optimisers, aggregators, schedules and models can be tried",
              "a script of kind %s plays no part in a training step", p->kind);
    error_at(err, "%s", p->script);
    return NULL;
}

/* --- a model alone -------------------------------------------------------------------------------------------------------- */

static json_t *script_text(const struct script_file *file)
{
    return json_pack("{s:s, s:s%}", "name", file->name, "source", file->source, file->size);
}

static bool has_architecture(const json_t *meta, const json_t *config)
{
    json_t *own = json_object_get(config, "architectures"), *each, *known;
    size_t i, j;

    json_array_foreach(own, i, each)
    {
        json_array_foreach(json_object_get(meta, "architectures"), j, known)
        {
            if (json_equal(each, known))
                return true;
        }
    }
    return false;
}

/* A script under `key` in the open job's `scripts`, and what it imports by name. */
static void add_set(const struct script_set *set, const char *key, const json_t *meta, json_t *scripts, json_t *imports)
{
    json_t *import;
    size_t index;

    json_object_set_new(scripts, key, script_text(&set->files[0]));
    json_array_foreach(json_object_get(meta, "imports"), index, import)
    {
        const char *wanted = json_string_value(json_object_get(import, "name"));

        for (size_t i = 1; i < set->count; i++)
            if (strcmp(set->files[i].name, wanted) == 0) {
                json_object_set_new(scripts, wanted, script_text(&set->files[i]));
                json_object_set_new(imports, wanted, json_string(wanted));
            }
    }
}

/* The shipped model script that knows the configuration's architecture, as "model". */
static bool add_model_script(const char *folder, const json_t *config, json_t *scripts, json_t *imports, struct error *err)
{
    const json_t *name = json_array_get(json_object_get(config, "architectures"), 0);
    struct script_set all;
    bool found = false, ok = true;

    if (!script_set_read(folder, "llama", NULL, &all, err))
        return false;
    for (size_t i = 0; ok && !found && i < all.count; i++) {
        struct script_set set;
        struct error none = { 0 };
        char path[PATH_MAX];
        json_t *meta;

        snprintf(path, sizeof path, "%s/models/%s.lua", folder, all.files[i].name);
        if (!file_exists(path) || !(ok = script_set_read(folder, path, NULL, &set, err)))
            continue;
        meta = script_describe(&set.bundle, NULL, &none);
        found = meta && has_architecture(meta, config);
        if (found)
            add_set(&set, "model", meta, scripts, imports);
        json_decref(meta);
        script_set_free(&set);
    }
    script_set_free(&all);
    if (ok && !found)
        error_set(err, ERROR_UNSUPPORTED, "scripts/models has what can be run", "no model script knows the architecture %s",
                  json_is_string(name) ? json_string_value(name) : "that config.json does not name");
    return ok && found;
}

/* A session traces the parts of training too, although nothing is trained here. */
static bool add_part(const char *folder, const char *name, json_t *scripts, json_t *imports, struct error *err)
{
    struct script_set set;
    json_t *meta;

    if (!script_set_read(folder, name, NULL, &set, err))
        return false;
    meta = script_describe(&set.bundle, NULL, err);
    if (meta)
        add_set(&set, name, meta, scripts, imports);
    script_set_free(&set);
    json_decref(meta);
    return meta != NULL;
}

static json_t *open_job(const char *path, const json_t *config, const char *adapter, const char *template, struct error *err)
{
    char folder[4096];
    json_t *scripts = json_object(), *imports = json_object(), *spec, *job = NULL;
    json_t *told = adapter ? adapter_describe(adapter, err) : json_pack("{s:s}", "kind", "none");

    run_file_scripts(folder);
    if (told && add_model_script(folder, config, scripts, imports, err) && add_part(folder, "chat_sft", scripts, imports, err) &&
        add_part(folder, "sgd", scripts, imports, err) && add_part(folder, "diloco", scripts, imports, err)) {
        spec = json_pack("{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:[], s:O, s:O, s:I, s:I, s:{s:i}}", "model", "script",
                         "model", "objective", "script", "chat_sft", "inner", "script", "sgd", "outer", "script", "sgd",
                         "schedule", "script", "diloco", "aggregators", "imports", imports, "adapter", told, "batch_tokens",
                         (json_int_t)bench_context(config, 8192), "context", (json_int_t)bench_context(config, 8192), "limits",
                         "script_seconds", 60);
        job = json_pack("{s:s, s:s, s:s, s:s?, s:O, s:o}", "job", "open", "run", "bench", "model", path, "template", template,
                        "scripts", scripts, "spec", spec);
    }
    json_decref(scripts);
    json_decref(imports);
    json_decref(told);
    return job;
}

bool bench_open(struct archive *a, const char *model, const char *adapter, const char *template, unsigned threads,
                struct error *err)
{
    struct model_source *source = model_open(model, err);
    char path[PATH_MAX];
    json_t *job = NULL;

    if (source && !realpath(model, path))
        error_set(err, ERROR_IO, NULL, "%s cannot be read", model);
    else if (source)
        job = open_job(path, model_config(source), adapter, template, err);
    model_close(source);
    return job && archive_start(a, job, threads, err);
}
