/* probe.c - what the script tests drive: one verb of the script host from the command line.
 *
 *     probe VERB FOLDER FILE [ARGS] [OPTIONS]      ARGS, OPTIONS: JSON objects; VERB as in runtime/lua/trace.lua
 *
 * Prints { "ok": meta } with hashes and node counts of the graphs, or { "error": {...} }. PROBE_CHILD names another program for the child
 * (the same sources under PUC Lua 5.1), PROBE_SECONDS, PROBE_MEMORY, PROBE_FUEL and PROBE_NODES its limits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
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
        json_dumpf(out, stdout, JSON_SORT_KEYS);
        json_decref(out);
        script_trace_free(&t);
    }
    script_set_free(&set);
    json_decref(options);
    return ok ? 0 : failed(&err);
}
