/* check.c - `rondo script check`: a script described and traced with small sizes, twice in fresh processes. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/execute.h"
#include "runtime/script/host.h"
#include "runtime/script/probe_model.h"

/* A decoder of two layers, for models that nobody gave a config. The last lines serve the other shipped architectures. */
static const char small_config[] =
    "{\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"hidden_size\":16,\"intermediate_size\":24,"
    "\"vocab_size\":32,\"rms_norm_eps\":1e-6,\"head_dim\":4,\"rope_theta\":10000,\"tie_word_embeddings\":true,"
    "\"model_type\":\"gemma3_text\",\"query_pre_attn_scalar\":4,\"sliding_window\":4,\"num_experts\":4,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":8,\"norm_topk_prob\":true,\"decoder_sparse_step\":1,\"image_size\":4,\"patch_size\":2,\"num_"
    "labels\":5,"
    "\"layer_norm_eps\":1e-12,\"patch\":2,\"horizon\":5,\"quantiles\":3,\"n_embd\":16,\"n_head\":4,\"n_layer\":2,\"n_positions\":"
    "64}";
static const char small_sizes[] = "{\"height\":4,\"width\":4}";

/* One matrix, one vector and the two factors of an adapter. */
static const char small_params[] =
    "[{\"name\":\"layers.0.proj.weight\",\"kind\":\"matrix\",\"layer\":0,\"axes\":\"out=4 "
    "embed=6\",\"out\":\"out=4\",\"inp\":\"embed=6\","
    "\"module\":\"layers.0.proj\"},{\"name\":\"norm.weight\",\"kind\":\"vector\",\"axes\":\"embed=6\"},"
    "{\"name\":\"layers.0.proj.lora_A.weight\",\"kind\":\"matrix\",\"role\":\"lora_a\",\"module\":\"layers.0.proj\",\"layer\":0,"
    "\"axes\":\"rank=2 "
    "embed=6\",\"out\":\"rank=2\",\"inp\":\"embed=6\"},{\"name\":\"layers.0.proj.lora_B.weight\",\"kind\":\"matrix\","
    "\"role\":\"lora_b\",\"module\":\"layers.0.proj\",\"layer\":0,\"axes\":\"out=4 "
    "rank=2\",\"out\":\"out=4\",\"inp\":\"rank=2\"}]";

static const struct script_objective_request small_objective = { .batch = 6,
                                                                 .time = 6,
                                                                 .vocab = 7,
                                                                 .embed = 4,
                                                                 .pair = 4,
                                                                 .rejected_time = 5,
                                                                 .prompt = 2,
                                                                 .sample = 3,
                                                                 .classes = 5,
                                                                 .horizon = 5,
                                                                 .quantile = 3,
                                                                 .k = 3 };

static json_t *constant(const char *text)
{
    return json_loads(text, 0, NULL);
}

static bool trace_model(const struct script_bundle *b, json_t *config, const struct script_limits *l, struct script_trace *t,
                        struct error *err)
{
    json_t *c = config ? json_incref(config) : constant(small_config), *sizes = constant(small_sizes);
    const struct script_model_request request = {
        .config = c, .rows = 2, .time = 6, .sizes = sizes, .rank = 2, .scale = 2, .train_all = true
    };
    bool ok = script_trace_model(b, &request, l, t, err);
    json_decref(c);
    json_decref(sizes);
    return ok;
}

static bool trace_schedule(const struct script_bundle *b, const struct script_limits *l, struct script_trace *t,
                           struct error *err)
{
    json_t *context = constant("{\"round\":0,\"rounds\":4,\"peers\":5,\"layers\":8,\"last\":false}"),
           *params = constant(small_params);
    double rates[16];
    *t = (struct script_trace){ 0 };
    bool ok = script_rates(b, context, 0, 16, rates, l, err) && (t->meta = script_plan(b, context, NULL, params, l, err)) != NULL;
    json_decref(context);
    json_decref(params);
    return ok;
}

static bool trace_any(const char *kind, const struct script_bundle *b, json_t *config, const struct script_limits *l,
                      struct script_trace *t, struct error *err)
{
    *t = (struct script_trace){ 0 };
    if (!strcmp(kind, "objective"))
        return script_trace_objective(b, &small_objective, l, t, err);
    if (!strcmp(kind, "model"))
        return trace_model(b, config, l, t, err);
    if (!strcmp(kind, "schedule"))
        return trace_schedule(b, l, t, err);
    if (!strcmp(kind, "optimiser") || !strcmp(kind, "aggregator")) {
        json_t *params = constant(small_params);
        const struct script_aggregator_request request = { .peers = 7, .params = params };
        bool ok =
            *kind == 'o' ? script_trace_optimiser(b, params, true, l, t, err) : script_trace_aggregator(b, &request, l, t, err);
        json_decref(params);
        return ok;
    }
    if (!strcmp(kind, "run"))
        return (t->meta = script_run_file(b, l, err)) != NULL;
    t->meta = json_object();
    return true;
}

/* The graphs by what they are for: { name, graph } in the order of the trace. */
static void name_graphs(json_t *meta, json_t **names)
{
    json_t *call, *at;
    size_t i;
    if ((at = json_object_get(json_object_get(meta, "loss"), "graph")))
        json_object_set_new(*names, "loss", json_incref(at));
    if ((at = json_object_get(json_object_get(meta, "prepare"), "graph")))
        json_object_set_new(*names, "prepare", json_incref(at));
    if ((at = json_object_get(meta, "graph")))
        json_object_set_new(*names, "model", json_incref(at));
    static const char *const parts[] = { "init", "step", "combine" };
    json_t *calls = json_object_get(meta, "calls") ? json_object_get(meta, "calls") : json_object_get(meta, "params");
    json_array_foreach(calls, i, call)
    {
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            if (json_is_integer(at = json_object_get(call, parts[k])) && json_object_size(*names) < 64) {
                json_t *of = json_object_get(call, "params");
                const char *who =
                    of ? json_string_value(json_array_get(of, 0)) : json_string_value(json_object_get(call, "name"));
                json_t *name = json_sprintf("%s %s", parts[k], json_array_size(calls) > 1 && who ? who : "");
                json_object_set_new(*names, json_string_value(name), json_incref(at));
                json_decref(name);
            }
    }
}

/* { name, nodes, hash, bytes, operations }; the last two are left out for a graph that has no executor here. */
static json_t *graph_facts(const struct graph *g, const char *name, json_t *hash)
{
    json_t *facts = json_pack("{s:s,s:I,s:O}", "name", name, "nodes", (json_int_t)g->node_count, "hash", hash);
    struct executor *ex = executor_new(g, &(struct executor_options){ 0 }, NULL);
    if (ex) {
        json_object_set_new(facts, "bytes", json_integer((json_int_t)executor_bytes(ex)));
        json_object_set_new(facts, "operations", json_integer((json_int_t)executor_operations(ex)));
    }
    executor_free(ex);
    return facts;
}

static void add_graphs(json_t *out, const struct script_trace *t)
{
    json_t *names = json_object(), *list = json_array(), *at;
    const char *name;
    name_graphs(t->meta, &names);
    json_object_foreach(names, name, at)
    {
        json_int_t i = json_integer_value(at);
        if (i < 0 || (size_t)i >= t->graph_count)
            continue;
        json_array_append_new(list,
                              graph_facts(t->graphs[i], name, json_array_get(json_object_get(t->meta, "hashes"), (size_t)i)));
    }
    json_decref(names);
    json_object_set_new(out, "graphs", list);
}

static void keep(json_t *out, const json_t *meta, const char *name)
{
    json_t *v = json_object_get(meta, name);
    if (v)
        json_object_set(out, name, v);
}

static void blame(json_t *out, const char *message, const char *hint)
{
    json_object_set_new(out, "fault", json_pack("{s:s, s:s}", "message", message, "hint", hint));
}

/* A text model must not see what comes later, nor the document packed before. */
static bool look_around(const struct script_trace *t, json_t *out, struct error *err)
{
    bool causal = false, apart = false;
    if (strcmp(json_string_value(json_object_get(t->meta, "data")), "text") || t->graph_count != 1)
        return true;
    if (!script_probe_model(t->graphs[0], &causal, &apart, err))
        return false;
    json_object_set_new(out, "causal", json_boolean(causal));
    json_object_set_new(out, "packed_apart", json_boolean(apart));
    if (!causal)
        blame(out, "logits depend on a later token", "give attention causal = true");
    else if (!apart)
        blame(out, "logits of a document depend on the one packed before it", "give attention segment = b.segment");
    return true;
}

json_t *script_check(const struct script_bundle *bundle, json_t *config, const struct script_limits *limits, struct error *err)
{
    json_t *out = script_describe(bundle, limits, err);
    if (!out)
        return NULL;
    const char *kind = json_string_value(json_object_get(out, "kind"));
    struct script_trace first = { 0 }, second = { 0 };
    bool ok =
        kind && trace_any(kind, bundle, config, limits, &first, err) && trace_any(kind, bundle, config, limits, &second, err);
    if (ok && !json_equal(first.meta, second.meta))
        ok = error_set(err, ERROR_MISMATCH, "report this: the sandbox lets something through that differs from run to run",
                       "two traces of %s differ", bundle->files[0].name);
    if (ok && !strcmp(kind, "model"))
        ok = look_around(&first, out, err) ||
             error_at(err, "%s.lua@%.8s", bundle->files[0].name, json_string_value(json_object_get(out, "hash")));
    if (ok) {
        static const char *const kept[] = { "fields", "gradients", "warnings", "unread", "plan", "keeps_peer", "nodes", NULL };
        for (size_t i = 0; kept[i]; i++)
            keep(out, first.meta, kept[i]);
        add_graphs(out, &first);
    }
    script_trace_free(&first);
    script_trace_free(&second);
    if (ok)
        return out;
    json_decref(out);
    return NULL;
}
