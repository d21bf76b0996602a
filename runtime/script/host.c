#include "runtime/script/host.h"

#include <stdlib.h>
#include <string.h>

#include "native/graph/wire.h"
#include "runtime/script/call.h"

static json_t *graph_hex(const struct graph *g)
{
    static const char digits[] = "0123456789abcdef";
    struct graph_hash hash = graph_hash(g);
    char hex[65];
    for (size_t i = 0; i < 32; i++) {
        hex[2 * i] = digits[hash.bytes[i] >> 4];
        hex[2 * i + 1] = digits[hash.bytes[i] & 15];
    }
    hex[64] = 0;
    return json_string(hex);
}

/* Hashes of all graphs, taken here from what was decoded, never from what the child says. */
static void add_hashes(struct script_trace *t)
{
    json_t *hashes = json_array();
    for (size_t i = 0; i < t->graph_count; i++)
        json_array_append_new(hashes, graph_hex(t->graphs[i]));
    json_object_set_new(t->meta, "hashes", hashes);
}

static bool trace(const struct script_bundle *bundle, const char *verb, json_t *args, const struct script_limits *limits,
                  struct script_trace *out, struct error *err)
{
    if (!script_call(bundle, verb, args, limits, out, err))
        return false;
    if (!json_is_object(out->meta)) {
        script_trace_free(out);
        return error_set(err, ERROR_TYPE, NULL, "script reply: no table");
    }
    add_hashes(out);
    return true;
}

/* A verb that answers with a value alone. */
static json_t *value_of(const struct script_bundle *bundle, const char *verb, json_t *args, const struct script_limits *limits,
                        struct error *err)
{
    struct script_trace t;
    if (!script_call(bundle, verb, args, limits, &t, err))
        return NULL;
    json_t *value = json_incref(t.meta);
    script_trace_free(&t);
    return value;
}

static void put(json_t *args, const char *name, json_t *borrowed)
{
    if (borrowed)
        json_object_set(args, name, borrowed);
}

static void put_size(json_t *args, const char *name, int64_t value)
{
    if (value > 0)
        json_object_set_new(args, name, json_integer(value));
}

json_t *script_describe(const struct script_bundle *bundle, const struct script_limits *limits, struct error *err)
{
    return value_of(bundle, "describe", NULL, limits, err);
}

bool script_trace_model(const struct script_bundle *bundle, const struct script_model_request *r,
                        const struct script_limits *limits, struct script_trace *out, struct error *err)
{
    json_t *args = json_object(), *sizes = r->sizes ? json_deep_copy(r->sizes) : json_object();
    put_size(sizes, "row", r->rows);
    put_size(sizes, "time", r->time);
    put(args, "config", r->config);
    json_object_set_new(args, "sizes", sizes);
    put_size(args, "length", r->length);
    json_object_set_new(args, "train_all", json_boolean(r->train_all || !r->rank));
    json_object_set_new(args, "training", json_boolean(r->training));
    if (r->rank > 0) {
        json_t *targets = json_array();
        for (size_t i = 0; i < r->target_count; i++)
            json_array_append_new(targets, json_string(r->targets[i]));
        json_t *lora = json_pack("{s:I,s:f,s:b,s:o}", "rank", (json_int_t)r->rank, "scale", r->scale, "dora", (int)r->dora,
                                 "targets", targets);
        put(lora, "patterns", r->patterns);
        put(lora, "whole", (json_t *)(uintptr_t)r->whole);
        json_object_set_new(args, "lora", lora);
    }
    return trace(bundle, "model", args, limits, out, err);
}

bool script_trace_objective(const struct script_bundle *bundle, const struct script_objective_request *r,
                            const struct script_limits *limits, struct script_trace *out, struct error *err)
{
    json_t *sizes = json_object();
    put_size(sizes, "batch", r->batch);
    put_size(sizes, "time", r->time);
    put_size(sizes, "vocab", r->vocab);
    put_size(sizes, "embed", r->embed);
    put_size(sizes, "pair", r->pair);
    put_size(sizes, "rejected_time", r->rejected_time);
    put_size(sizes, "prompt", r->prompt);
    put_size(sizes, "sample", r->sample);
    put_size(sizes, "class", r->classes);
    put_size(sizes, "horizon", r->horizon);
    put_size(sizes, "quantile", r->quantile);
    put_size(sizes, "k", r->k);
    put_size(sizes, "whole_batch", r->whole_batch);
    return trace(bundle, "objective", json_pack("{s:o}", "sizes", sizes), limits, out, err);
}

/* Keeps one of each set of equal graphs; place[i] is where graph i is now. */
static void merge_equal(struct script_trace *t, size_t *place)
{
    json_t *all = json_object_get(t->meta, "hashes"), *kept = json_array(), *seen = json_object();
    size_t count = 0;
    for (size_t i = 0; i < t->graph_count; i++) {
        const char *hash = json_string_value(json_array_get(all, i));
        json_t *old = json_object_get(seen, hash);
        if (old) {
            place[i] = (size_t)json_integer_value(old);
            graph_free(t->graphs[i]);
            continue;
        }
        place[i] = count;
        json_object_set_new(seen, hash, json_integer((json_int_t)count));
        json_array_append_new(kept, json_string(hash));
        t->graphs[count++] = t->graphs[i];
    }
    t->graph_count = count;
    json_decref(seen);
    json_object_set_new(t->meta, "hashes", kept);
}

static bool move(json_t *call, const char *name, const size_t *place, size_t count, struct error *err)
{
    json_t *at = json_object_get(call, name);
    if (!at)
        return true;
    if (!json_is_integer(at) || json_integer_value(at) < 0 || (size_t)json_integer_value(at) >= count)
        return error_set(err, ERROR_RANGE, NULL, "script reply: %s names no graph", name);
    return !json_integer_set(at, (json_int_t)place[json_integer_value(at)]);
}

/* Parameters of one shape and role mostly have one graph: it is kept once. */
static bool share_graphs(struct script_trace *t, struct error *err)
{
    size_t count = t->graph_count, *place = calloc(count + 1, sizeof *place), i;
    json_t *call;
    bool ok = place || error_set(err, ERROR_MEMORY, NULL, "no memory for %zu graphs", count);
    if (ok)
        merge_equal(t, place);
    json_array_foreach(json_object_get(t->meta, "params"), i, call)
    {
        ok = ok && move(call, "init", place, count, err) && move(call, "step", place, count, err);
    }
    free(place);
    return ok;
}

bool script_trace_optimiser(const struct script_bundle *bundle, json_t *params, bool outer, const struct script_limits *limits,
                            struct script_trace *out, struct error *err)
{
    json_t *args = json_pack("{s:O,s:b}", "params", params, "outer", outer);
    if (!trace(bundle, "optimiser", args, limits, out, err))
        return false;
    if (share_graphs(out, err))
        return true;
    script_trace_free(out);
    return false;
}

bool script_trace_aggregator(const struct script_bundle *bundle, const struct script_aggregator_request *r,
                             const struct script_limits *limits, struct script_trace *out, struct error *err)
{
    json_t *args = json_pack("{s:I,s:I}", "peers", (json_int_t)r->peers, "round", (json_int_t)r->round);
    put(args, "params", r->params);
    put_size(args, "n", r->n);
    return trace(bundle, "aggregator", args, limits, out, err);
}

json_t *script_plan(const struct script_bundle *bundle, json_t *context, json_t *state, json_t *params,
                    const struct script_limits *limits, struct error *err)
{
    json_t *args = json_pack("{s:O}", "context", context);
    if (!json_is_null(state))
        put(args, "state", state);
    put(args, "params", params);
    return value_of(bundle, "plan", args, limits, err);
}

bool script_rates(const struct script_bundle *bundle, json_t *context, uint64_t first, size_t count, double *lr,
                  const struct script_limits *limits, struct error *err)
{
    json_t *args = json_pack("{s:O,s:I,s:I}", "context", context, "first", (json_int_t)first, "count", (json_int_t)count);
    json_t *rates = value_of(bundle, "rates", args, limits, err);
    if (!rates)
        return false;
    bool ok = json_array_size(rates) == count;
    for (size_t i = 0; ok && i < count; i++) {
        const json_t *x = json_array_get(rates, i);
        ok = json_is_string(x) || json_is_integer(x);
        lr[i] = json_is_string(x) ? strtod(json_string_value(x), NULL) : (double)json_integer_value(x);
    }
    json_decref(rates);
    return ok || error_set(err, ERROR_TYPE, NULL, "script reply: no list of rates");
}

json_t *script_score(const struct script_bundle *bundle, json_t *completions, const struct script_limits *limits,
                     struct error *err)
{
    json_t *list = value_of(bundle, "score", json_pack("{s:O}", "completions", completions), limits, err);

    if (list && !json_is_array(list)) {
        json_decref(list);
        list = NULL;
        error_set(err, ERROR_FAULT, NULL, "script reply: no list of rewards");
    }
    return list;
}

json_t *script_run_file(const struct script_bundle *bundle, const struct script_limits *limits, struct error *err)
{
    return value_of(bundle, "run", NULL, limits, err);
}
