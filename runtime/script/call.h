/* call.h - one request to one fresh child: spawn, frame, wait with a deadline, decode. host.h stands on it. */
#ifndef RONDO_SCRIPT_CALL_H
#define RONDO_SCRIPT_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

struct graph;
struct script_nursery;

/* One file. `name` is without folder and ".lua" ("chat_sft"). All borrowed. */
struct script_file {
    const char *name;
    const char *source;
    size_t size;
};

/* A script, what it may import, and its options. `files[0]` is the script; the others are candidates for import by name
 * (those that were not imported do not matter). `options`: borrowed JSON object or NULL; an option of an import is
 * "adamw.beta1"; values are integers, decimal strings ("0.7"), flags, text or lists, as in a spec. */
struct script_bundle {
    const struct script_file *files;
    size_t count;
    json_t *options;
};

/* What a child may use. Zero fields take the defaults. */
struct script_limits {
    double seconds;                 /* wall clock until the kill; 10 */
    uint64_t memory;                /* bytes of the child's arena; 256 MiB */
    uint64_t fuel;                  /* VM instructions; 200 million */
    uint64_t nodes;                 /* nodes of one graph; 1 << 18 */
    const char *program;            /* executable that answers `--script-child`; /proc/self/exe */
    struct script_nursery *nursery; /* nursery.h: borrowed, where many calls follow each other; NULL: each child is exec'd */
};

/* What came back: `meta` (owned) and the graphs it speaks of by index (owned). */
struct script_trace {
    json_t *meta;
    struct graph **graphs;
    size_t graph_count;
};
void script_trace_free(struct script_trace *t);

/* Asks `verb` ("describe", "model", ...) with `args` (an object; the reference is taken over; NULL: none) and fills `out`. */
bool script_call(const struct script_bundle *bundle, const char *verb, json_t *args, const struct script_limits *limits,
                 struct script_trace *out, struct error *err);

/* BLAKE2b-256 of a file as 64 hex digits. */
char *script_hash(const struct script_file *file, char hex[65]);

#endif
