/* probe.c - what the script tests drive: one verb of the script host from the command line.
 *
 *     probe VERB FOLDER FILE [ARGS] [OPTIONS]      ARGS, OPTIONS: JSON objects; VERB as in runtime/lua/trace.lua
 *     probe VERB FOLDER FILE ARGS OPTIONS I DATA   also runs graph I on DATA, { "b.mask": [ numbers ] }: adds "values" by output
 *
 * Prints { "ok": meta } with hashes and node counts of the graphs, or { "error": {...} }. PROBE_CHILD names another program for the child
 * (the same sources under PUC Lua 5.1), PROBE_SECONDS, PROBE_MEMORY, PROBE_FUEL and PROBE_NODES its limits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/graph/execute.h"
#include "native/graph/graph.h"
#include "native/graph/wire.h"
#include "runtime/script/call.h"
#include "runtime/script/host.h"

static double number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

static json_t *object_of(const char *text)
{
    struct error err;
    json_t *o = json_read(text, strlen(text), 1 << 24, &err);
    if (!o)
        fprintf(stderr, "%s\n", err.message);
    return o;
}

static json_t *graphs_of(const struct script_trace *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->graph_count; i++) {
        struct graph_hash h = graph_hash(t->graphs[i]);
        char hex[65];
        for (int k = 0; k < 32; k++)
            sprintf(hex + 2 * k, "%02x", h.bytes[k]);
        json_array_append_new(list, json_pack("{s:s,s:I}", "hash", hex, "nodes", (json_int_t)t->graphs[i]->node_count));
    }
    return list;
}

static void store(void *to, enum tensor_type type, uint64_t i, double x)
{
    if (type == TENSOR_F32)
        ((float *)to)[i] = (float)x;
    else if (type == TENSOR_I32)
        ((int32_t *)to)[i] = (int32_t)x;
    else
        ((double *)to)[i] = x;
}

static double load(const void *from, enum tensor_type type, uint64_t i)
{
    return type == TENSOR_F32   ? ((const float *)from)[i]
           : type == TENSOR_I32 ? ((const int32_t *)from)[i]
                                : ((const double *)from)[i];
}

static void *room(const struct graph_node *n)
{
    return aligned_alloc(64, (n->values * 8 + 63) / 64 * 64 + 64);
}

/* Memory of every bound node, filled from `data` by name. */
static bool fill(const struct graph *g, json_t *data, void **inputs, struct error *err)
{
    for (uint32_t i = 0; i < g->bound_count; i++) {
        const struct graph_node *n = &g->nodes[g->bound[i]];
        json_t *list = json_object_get(data, graph_text(g, n->name));
        if (json_array_size(list) != n->values)
            return error_set(err, ERROR_SHAPE, NULL, "%s: %zu values for %llu", graph_text(g, n->name), json_array_size(list),
                             (unsigned long long)n->values);
        inputs[i] = room(n);
        for (uint64_t k = 0; k < n->values; k++)
            store(inputs[i], (enum tensor_type)n->type, k, json_number_value(json_array_get(list, k)));
    }
    return true;
}

/* { output: { axes, values } } of one run; NULL with `err`. */
static json_t *run(const struct graph *g, json_t *data, struct error *err)
{
    static const struct executor_random random;
    void **inputs = calloc(g->bound_count + 1, sizeof *inputs), **outputs = calloc(g->output_count + 1, sizeof *outputs);
    struct executor *ex = executor_new(g, &(struct executor_options){ 0 }, err);
    for (uint32_t i = 0; i < g->output_count; i++)
        outputs[i] = room(&g->nodes[g->outputs[i].node]);
    if (!ex || !fill(g, data, inputs, err) || !executor_run(ex, (const void *const *)inputs, outputs, &random, err))
        return NULL;
    json_t *all = json_object();
    for (uint32_t i = 0; i < g->output_count; i++) {
        const struct graph_node *n = &g->nodes[g->outputs[i].node];
        char shape[GRAPH_SHOW];
        json_t *list = json_array();
        for (uint64_t k = 0; k < n->values; k++)
            json_array_append_new(list, json_sprintf("%.17g", load(outputs[i], (enum tensor_type)n->type, k)));
        json_object_set_new(
            all, graph_text(g, g->outputs[i].name),
            json_pack("{s:s,s:o}", "axes", graph_show(g, g->outputs[i].node, shape, sizeof shape), "values", list));
        free(outputs[i]);
    }
    for (uint32_t i = 0; i < g->bound_count; i++)
        free(inputs[i]);
    free(inputs);
    free(outputs);
    executor_free(ex);
    return all;
}

static int failed(const struct error *err)
{
    json_t *e = json_pack("{s:{s:s,s:s,s:s,s:s}}", "error", "code", error_name(err->code), "place", err->place, "message",
                          err->message, "hint", err->hint);
    json_dumpf(e, stdout, 0);
    json_decref(e);
    return 3;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--script-child"))
        return script_child_main();
    if (argc < 4)
        return 2;
    struct error err = { .code = ERROR_NONE };
    struct script_limits limits = { .seconds = number_of("PROBE_SECONDS"),
                                    .memory = (uint64_t)number_of("PROBE_MEMORY"),
                                    .fuel = (uint64_t)number_of("PROBE_FUEL"),
                                    .nodes = (uint64_t)number_of("PROBE_NODES"),
                                    .program = getenv("PROBE_CHILD") };
    json_t *args = argc > 4 ? object_of(argv[4]) : json_object(), *options = argc > 5 ? object_of(argv[5]) : NULL;
    struct script_set set;
    struct script_trace t;
    if (!args || !script_set_read(argv[2], argv[3], options, &set, &err))
        return failed(&err);
    bool ok = script_call(&set.bundle, argv[1], args, &limits, &t, &err);
    if (ok) {
        json_t *out = json_pack("{s:O,s:o}", "ok", t.meta, "graphs", graphs_of(&t));
        if (argc > 7) {
            json_t *data = object_of(argv[7]), *values = data ? run(t.graphs[atoi(argv[6])], data, &err) : NULL;
            if (!values)
                return failed(&err);
            json_object_set_new(out, "values", values);
            json_decref(data);
        }
        json_dumpf(out, stdout, JSON_SORT_KEYS);
        json_decref(out);
        script_trace_free(&t);
    }
    script_set_free(&set);
    json_decref(options);
    return ok ? 0 : failed(&err);
}
