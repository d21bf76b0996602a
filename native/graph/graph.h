/* graph.h - operator graphs with named axes.
 *
 *      node 0   input     "ids"     i32 [row=2 time=8]
 *      node 1   parameter "embed"   f32 [vocab=32 embed=4]        A node refers to earlier nodes only, so a graph has no cycle
 *      node 2   gather(1, 0; vocab) f32 [row=2 time=8 embed=4]    and ascending ids are an order of execution.
 *      outputs  "x" -> 2
 *
 * graph_add is the only way in: what a script calls, what a decoder reads, what a backward pass or a rewrite makes. It checks
 * the request, works out type and axes of the result, and appends the node. Memory order is row-major in the order of `axis`;
 * it has no meaning for a script, whose operations go by name.
 *
 * Names are interned: graph_name gives the id of a text, equal texts have equal ids within one graph.
 */
#ifndef RONDO_GRAPH_GRAPH_H
#define RONDO_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/graph/operator.h"
#include "native/tensor/tensor.h"

enum { GRAPH_AXES = 8, GRAPH_NAME = 191 /* bytes of a name at most */, GRAPH_ATTRIBUTE_AXES = 9 };
#define GRAPH_NONE UINT32_MAX /* no node, no name */

struct graph_axis {
    uint32_t name;
    uint64_t size; /* in an attribute 0 means: not given */
};

struct graph_limits {
    uint32_t nodes;      /* of the graph */
    uint32_t outputs;    /* of the graph */
    uint32_t inputs;     /* of one node (concat) */
    uint32_t names;      /* distinct names and notes */
    uint64_t numbers;    /* of all nodes (tables) */
    uint64_t node_bytes; /* of one result */
};
extern const struct graph_limits graph_limits_default; /* 262144 nodes, 16384 outputs, 4096, 65536, 1 Mi, 16 GiB */

struct graph_node {
    uint8_t op;   /* enum operator_code */
    uint8_t type; /* TENSOR_F32, TENSOR_I32 or TENSOR_F64 */
    uint8_t rank;
    struct graph_axis axis[GRAPH_AXES];
    uint64_t values; /* product of the sizes */
    /* attributes as asked, with sizes filled in; ranges of the graph's pools */
    uint32_t input_at, input_count;
    uint32_t axes_at, axes_count;
    uint32_t numbers_at, numbers_count;
    uint32_t integers_at, integers_count;
    uint32_t name; /* GRAPH_NONE: none */
    uint32_t note; /* the script's line, for errors; not hashed. GRAPH_NONE: none */
};

struct graph_output {
    uint32_t name, node;
};

/* Everything may be read; only the functions below write. */
struct graph {
    struct graph_limits limits;
    struct graph_node *nodes;
    uint32_t node_count;
    struct graph_output *outputs; /* in the order they were named */
    uint32_t output_count;
    uint32_t *bound; /* ids of the input and parameter nodes, ascending: what a run binds, in this order */
    uint32_t bound_count;
    uint32_t *inputs; /* pools */
    struct graph_axis *axes;
    double *numbers;
    int64_t *integers;
    char **names;
    uint32_t name_count;
    uint32_t input_total, axes_total, numbers_total, integers_total;
    struct graph_private *own;
};

struct graph_word {
    const char *name;
    uint64_t size; /* 0: not given */
};

/* What graph_add is asked for. All pointers are borrowed for the call; unused ones stay zero. */
struct graph_request {
    enum operator_code op;
    const uint32_t *inputs;
    size_t input_count;
    const struct graph_word *axes;
    size_t axes_count;
    const double *numbers;
    size_t numbers_count;
    const int64_t *integers;
    size_t integers_count;
    const char *name;      /* NULL: none */
    enum tensor_type type; /* of an OPERATOR_TYPED one; else ignored */
    const char *note;      /* "grpo.lua@1f2e3d4c:14"; NULL: none */
};

struct graph *graph_new(const struct graph_limits *limits); /* NULL: the default */
void graph_free(struct graph *g);

/* Appends a node. Errors: shape, type, range, limit, duplicate (a bound name or a label twice), unknown. The message starts with
 * the operator, names the shapes ("dot: axis dim must be in both [time=4 dim=8] and [time=4]"); the place is the request's note,
 * the hint names the notes of the operands when it has nothing better. On failure the graph is unchanged. */
bool graph_add(struct graph *g, const struct graph_request *r, uint32_t *node, struct error *err);

/* Short forms for builders in C: `axes` as in a script, "batch time" or "head=8 dim". */
bool graph_input(struct graph *g, const char *name, enum tensor_type type, const char *axes, uint32_t *node, struct error *err);
bool graph_constant(struct graph *g, enum tensor_type type, double value, uint32_t *node, struct error *err);
bool graph_unary(struct graph *g, enum operator_code op, uint32_t x, uint32_t *node, struct error *err);
bool graph_binary(struct graph *g, enum operator_code op, uint32_t x, uint32_t y, uint32_t *node, struct error *err);
/* Any operator with up to three inputs (GRAPH_NONE: absent) and axes. */
bool graph_over(struct graph *g, enum operator_code op, uint32_t x, uint32_t y, uint32_t z, const char *axes, uint32_t *node,
                struct error *err);

/* Names an output. Errors: duplicate, limit, range. */
bool graph_output(struct graph *g, const char *name, uint32_t node, struct error *err);
/* GRAPH_NONE when there is none of that name. */
uint32_t graph_output_find(const struct graph *g, const char *name);
/* The input or parameter of that name, as a node; and its place in `bound`. GRAPH_NONE when there is none. */
uint32_t graph_bound_find(const struct graph *g, const char *name, uint32_t *place);

/* The id of a name in this graph. graph_name adds it (GRAPH_NONE: limit, or not a name); graph_name_find only looks. */
uint32_t graph_name(struct graph *g, const char *text);
uint32_t graph_name_find(const struct graph *g, const char *text);

/* Position of an axis in a node, or -1. */
int graph_axis_find(const struct graph_node *n, uint32_t name);
/* Position by text, or -1. */
int graph_axis_of(const struct graph *g, uint32_t node, const char *name);

/* "[batch=8 time=512]"; "[]" for a scalar. Returns `text`. */
const char *graph_show(const struct graph *g, uint32_t node, char *text, size_t size);
enum { GRAPH_SHOW = 256 };

static inline const uint32_t *graph_inputs(const struct graph *g, const struct graph_node *n)
{
    return g->inputs + n->input_at;
}
static inline const struct graph_axis *graph_axes(const struct graph *g, const struct graph_node *n)
{
    return g->axes + n->axes_at;
}
static inline const double *graph_numbers(const struct graph *g, const struct graph_node *n)
{
    return g->numbers + n->numbers_at;
}
static inline const int64_t *graph_integers(const struct graph *g, const struct graph_node *n)
{
    return g->integers + n->integers_at;
}
static inline const char *graph_text(const struct graph *g, uint32_t name)
{
    return name == GRAPH_NONE ? "" : g->names[name];
}

/* Copies node `from` of `src` into `dst` with the given inputs (ids of dst), attributes and note kept. */
bool graph_copy_node(struct graph *dst, const struct graph *src, uint32_t from, const uint32_t *inputs, uint32_t *node,
                     struct error *err);

struct graph_binding {
    const char *name; /* of an input or parameter of src */
    uint32_t node;    /* of dst */
};

/* Copies all of src into dst. Inputs and parameters named in `bindings` become the given nodes (their type and axes must agree;
 * the order of the axes in memory may differ); the others are copied and keep their name, and one that dst already has by that name
 * with the same axes is shared. nodes[i] (src->node_count of them, may be NULL) gets the node of dst that stands for node i.
 * Outputs of src are not outputs of dst: take nodes[graph_output_find(src, name)]. Labels of random nodes must not repeat. */
bool graph_splice(struct graph *dst, const struct graph *src, const struct graph_binding *bindings, size_t binding_count,
                  uint32_t *nodes, struct error *err);

#endif
