#include "native/graph/graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/shape.h"

const struct graph_limits graph_limits_default = {
    .nodes = 262144,
    .outputs = 16384,
    .inputs = 4096,
    .names = 65536,
    .numbers = 1 << 20,
    .node_bytes = UINT64_C(16) << 30,
};

/* Capacities of the pools, and the hash table of names: slots hold id + 1. */
struct graph_private {
    size_t nodes, outputs, bound, inputs, axes, numbers, integers, names;
    uint32_t *slots;
    uint32_t slot_count; /* a power of two above twice the names */
    uint32_t *labels;    /* random nodes, to find a label drawn twice */
    size_t label_count, label_room;
};

/* ---- memory ---- */

static void *grown(void *array, size_t *room, size_t need, size_t each)
{
    if (need <= *room)
        return array;
    size_t more = *room < 16 ? 16 : *room;
    while (more < need)
        more += more / 2 + 1;
    array = realloc(array, more * each);
    if (!array)
        abort();
    *room = more;
    return array;
}
#define GROW(g, array, room, need) ((g)->array = grown((g)->array, &(g)->own->room, need, sizeof *(g)->array))

/* Puts `count` items at the end of a pool (its total is raised by the caller). They may lie in that very pool, which moves. */
#define APPEND(g, array, room, total, from, count)                                                                               \
    do {                                                                                                                         \
        const bool inside = (g)->array && (from) >= (g)->array && (from) < (g)->array + (g)->total;                              \
        const ptrdiff_t at = inside ? (from) - (g)->array : 0;                                                                   \
        GROW(g, array, room, (g)->total + (count));                                                                              \
        if (count)                                                                                                               \
            memmove((g)->array + (g)->total, inside ? (g)->array + at : (from), (count) * sizeof *(g)->array);                   \
    } while (0)

struct graph *graph_new(const struct graph_limits *limits)
{
    struct graph *g = calloc(1, sizeof *g);
    if (!g || !(g->own = calloc(1, sizeof *g->own)))
        abort();
    g->limits = limits ? *limits : graph_limits_default;
    GROW(g, inputs, inputs, 1); /* pools are never NULL: a node without attributes points into them too */
    GROW(g, axes, axes, 1);
    GROW(g, numbers, numbers, 1);
    GROW(g, integers, integers, 1);
    return g;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->name_count; i++)
        free(g->names[i]);
    free(g->names);
    free(g->nodes);
    free(g->outputs);
    free(g->bound);
    free(g->inputs);
    free(g->axes);
    free(g->numbers);
    free(g->integers);
    free(g->own->slots);
    free(g->own->labels);
    free(g->own);
    free(g);
}

/* ---- names ---- */

static uint32_t text_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 16777619u;
    return h ^ h >> 15;
}

static uint32_t *name_slot(const struct graph *g, const char *text)
{
    const uint32_t mask = g->own->slot_count - 1;
    for (uint32_t i = text_hash(text) & mask;; i = (i + 1) & mask)
        if (g->own->slots[i] == 0 || strcmp(g->names[g->own->slots[i] - 1], text) == 0)
            return &g->own->slots[i];
}

uint32_t graph_name_find(const struct graph *g, const char *text)
{
    return g->own->slot_count ? *name_slot(g, text) - 1 : GRAPH_NONE;
}

static void slots_grow(struct graph *g)
{
    free(g->own->slots);
    g->own->slot_count = g->own->slot_count ? 2 * g->own->slot_count : 64;
    g->own->slots = calloc(g->own->slot_count, sizeof *g->own->slots);
    if (!g->own->slots)
        abort();
    for (uint32_t i = 0; i < g->name_count; i++)
        *name_slot(g, g->names[i]) = i + 1;
}

uint32_t graph_name(struct graph *g, const char *text)
{
    const uint32_t found = graph_name_find(g, text);
    if (found != GRAPH_NONE)
        return found;
    const size_t size = strlen(text);
    if (size == 0 || size > GRAPH_NAME || g->name_count >= g->limits.names)
        return GRAPH_NONE;
    for (size_t i = 0; i < size; i++)
        if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
            return GRAPH_NONE;
    if (2 * (g->name_count + 1) > g->own->slot_count)
        slots_grow(g);
    GROW(g, names, names, g->name_count + 1);
    g->names[g->name_count] = strdup(text);
    if (!g->names[g->name_count])
        abort();
    *name_slot(g, text) = g->name_count + 1;
    return g->name_count++;
}

static bool axis_name_good(const char *name)
{
    if (!name || strlen(name) > 63 || !*name || (*name >= '0' && *name <= '9'))
        return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9') || *name == '_'))
            return false;
    return true;
}

int graph_axis_find(const struct graph_node *n, uint32_t name)
{
    for (int i = 0; i < n->rank; i++)
        if (n->axis[i].name == name)
            return i;
    return -1;
}

int graph_axis_of(const struct graph *g, uint32_t node, const char *name)
{
    const uint32_t id = graph_name_find(g, name);
    return id == GRAPH_NONE ? -1 : graph_axis_find(&g->nodes[node], id);
}

const char *graph_show(const struct graph *g, uint32_t node, char *text, size_t size)
{
    const struct graph_node *n = &g->nodes[node];
    size_t at = 0;
    text[0] = 0;
    at += (size_t)snprintf(text, size, "[");
    for (unsigned i = 0; i < n->rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s=%llu", i ? " " : "", g->names[n->axis[i].name],
                               (unsigned long long)n->axis[i].size);
    if (at < size)
        snprintf(text + at, size - at, "]");
    return text;
}

/* ---- adding a node ---- */

static bool count_checked(const struct graph_request *r, const char *what, size_t count, unsigned from, unsigned to,
                          struct error *err)
{
    if (count >= from && (to == OPERATOR_MANY || count <= to))
        return true;
    if (from == to)
        return error_set(err, ERROR_SHAPE, NULL, "%s takes %u %s, got %zu", operator_table[r->op].name, from, what, count);
    return error_set(err, ERROR_SHAPE, NULL, "%s takes %u to %u %s, got %zu", operator_table[r->op].name, from, to, what, count);
}

static bool arity_checked(const struct graph *g, const struct graph_request *r, struct error *err)
{
    const struct operator_info *o = &operator_table[r->op];
    const unsigned many = OPERATOR_MANY;
    if (!count_checked(r, "tensors", r->input_count, o->inputs_from, o->inputs_to, err) ||
        !count_checked(r, "axes", r->axes_count, o->axes_from, o->axes_to, err) ||
        !count_checked(r, "numbers", r->numbers_count, o->numbers == many ? 0 : o->numbers, o->numbers, err) ||
        !count_checked(r, "integers", r->integers_count, o->integers, o->integers, err))
        return false;
    if (!!r->name != !!o->named)
        return error_set(err, ERROR_MISSING, NULL, "%s %s", o->name, o->named ? "needs a name" : "takes no name");
    if ((o->flags & OPERATOR_TYPED) && r->type != TENSOR_F32 && r->type != TENSOR_I32 && r->type != TENSOR_F64)
        return error_set(err, ERROR_TYPE, "f32, i32 or f64", "%s: no such type", o->name);
    if (r->input_count > g->limits.inputs || r->numbers_count > g->limits.numbers - g->numbers_total)
        return error_set(err, ERROR_LIMIT, NULL, "%s: more operands or numbers than the limits allow", o->name);
    for (size_t i = 0; i < r->input_count; i++)
        if (r->inputs[i] >= g->node_count)
            return error_set(err, ERROR_RANGE, NULL, "%s: operand %zu is node %u, but there are %u", o->name, i, r->inputs[i],
                             g->node_count);
    return true;
}

static bool axes_interned(struct graph *g, const struct graph_request *r, struct shape_request *s, struct error *err)
{
    const char *op = operator_table[r->op].name;
    for (size_t i = 0; i < r->axes_count; i++) {
        const char *name = r->axes[i].name;
        if (!axis_name_good(name))
            return error_set(err, ERROR_SYNTAX, "letters, digits and _, at most 63", "%s: bad axis name \"%.64s\"", op,
                             name ? name : "");
        s->axes[i].name = graph_name(g, name);
        s->axes[i].size = r->axes[i].size;
        if (s->axes[i].name == GRAPH_NONE)
            return error_set(err, ERROR_LIMIT, NULL, "%s: too many names in one graph", op);
    }
    s->axes_count = (unsigned)r->axes_count;
    return true;
}

static bool label_new(struct graph *g, uint32_t name, int64_t layer, uint32_t node, const char *op, struct error *err)
{
    for (size_t i = 0; i < g->own->label_count; i++) {
        const struct graph_node *n = &g->nodes[g->own->labels[i]];
        if (n->name == name && graph_integers(g, n)[0] == layer)
            return error_set(err, ERROR_DUPLICATE, "give each random tensor a label of its own",
                             "%s: label \"%s\" is drawn twice", op, g->names[name]);
    }
    g->own->labels = grown(g->own->labels, &g->own->label_room, g->own->label_count + 1, sizeof *g->own->labels);
    g->own->labels[g->own->label_count++] = node;
    return true;
}

static bool name_checked(struct graph *g, const struct graph_request *r, struct graph_node *n, struct error *err)
{
    const char *op = operator_table[r->op].name;
    n->name = GRAPH_NONE;
    if (!r->name)
        return true;
    n->name = graph_name(g, r->name);
    if (n->name == GRAPH_NONE)
        return error_set(err, ERROR_SYNTAX, "1 to 191 printable bytes", "%s: bad name \"%.64s\", or too many names", op, r->name);
    if (r->op == OPERATOR_INPUT || r->op == OPERATOR_PARAMETER) {
        for (uint32_t i = 0; i < g->bound_count; i++)
            if (g->nodes[g->bound[i]].name == n->name)
                return error_set(err, ERROR_DUPLICATE, NULL, "%s: \"%s\" exists already", op, r->name);
        return true;
    }
    if (r->op == OPERATOR_DROPOUT && r->integers[1] == 1)
        return true;
    return label_new(g, n->name, r->integers[0], g->node_count, op, err);
}

static void operands_noted(const struct graph *g, const struct graph_request *r, struct error *err)
{
    if (!err || err->hint[0] || r->input_count == 0 || r->input_count > 4)
        return;
    size_t at = 0;
    for (size_t i = 0; i < r->input_count && at < sizeof err->hint; i++) {
        if (r->inputs[i] >= g->node_count || g->nodes[r->inputs[i]].note == GRAPH_NONE)
            continue;
        at += (size_t)snprintf(err->hint + at, sizeof err->hint - at, "%s%s", at ? ", " : "operands made at ",
                               g->names[g->nodes[r->inputs[i]].note]);
    }
}

static bool request_worked_out(struct graph *g, const struct graph_request *r, struct shape_request *s, struct error *err)
{
    if ((unsigned)r->op >= OPERATOR_CODES)
        return error_set(err, ERROR_UNKNOWN, NULL, "operator %u is not known", (unsigned)r->op);
    if (g->node_count >= g->limits.nodes)
        return error_set(err, ERROR_LIMIT, NULL, "the graph has more than %u nodes", g->limits.nodes);
    if (!arity_checked(g, r, err) || !axes_interned(g, r, s, err))
        return false;
    const struct graph_node **in[4] = { &s->x, &s->y, &s->z, &s->t };
    for (size_t i = 0; i < r->input_count && i < 4; i++)
        *in[i] = &g->nodes[r->inputs[i]];
    return shape_infer(s) && name_checked(g, r, s->out, err);
}

bool graph_add(struct graph *g, const struct graph_request *r, uint32_t *node, struct error *err)
{
    struct graph_node n = { .op = (uint8_t)r->op, .note = GRAPH_NONE };
    struct shape_request s = { .g = g, .r = r, .out = &n, .err = err };
    if (!request_worked_out(g, r, &s, err)) {
        operands_noted(g, r, err);
        return r->note ? error_at(err, "%s", r->note) : false;
    }
    if (r->note)
        n.note = graph_name(g, r->note);
    n.input_at = g->input_total;
    n.input_count = (uint32_t)r->input_count;
    n.axes_at = g->axes_total;
    n.axes_count = s.axes_count;
    n.numbers_at = g->numbers_total;
    n.numbers_count = (uint32_t)r->numbers_count;
    n.integers_at = g->integers_total;
    n.integers_count = (uint32_t)r->integers_count;
    APPEND(g, inputs, inputs, input_total, r->inputs, r->input_count);
    APPEND(g, axes, axes, axes_total, s.axes, s.axes_count);
    APPEND(g, numbers, numbers, numbers_total, r->numbers, r->numbers_count);
    APPEND(g, integers, integers, integers_total, r->integers, r->integers_count);
    GROW(g, nodes, nodes, g->node_count + 1);
    g->input_total += n.input_count;
    g->axes_total += n.axes_count;
    g->numbers_total += n.numbers_count;
    g->integers_total += n.integers_count;
    if (r->op == OPERATOR_INPUT || r->op == OPERATOR_PARAMETER) {
        GROW(g, bound, bound, g->bound_count + 1);
        g->bound[g->bound_count++] = g->node_count;
    }
    g->nodes[g->node_count] = n;
    *node = g->node_count++;
    return true;
}

/* ---- outputs ---- */

bool graph_output(struct graph *g, const char *name, uint32_t node, struct error *err)
{
    if (node >= g->node_count)
        return error_set(err, ERROR_RANGE, NULL, "output \"%.64s\" is node %u, but there are %u", name, node, g->node_count);
    if (g->output_count >= g->limits.outputs)
        return error_set(err, ERROR_LIMIT, NULL, "the graph has more than %u outputs", g->limits.outputs);
    const uint32_t id = graph_name(g, name);
    if (id == GRAPH_NONE)
        return error_set(err, ERROR_SYNTAX, NULL, "bad name of an output: \"%.64s\"", name);
    if (graph_output_find(g, name) != GRAPH_NONE)
        return error_set(err, ERROR_DUPLICATE, NULL, "output \"%s\" exists already", name);
    GROW(g, outputs, outputs, g->output_count + 1);
    g->outputs[g->output_count++] = (struct graph_output){ id, node };
    return true;
}

uint32_t graph_output_find(const struct graph *g, const char *name)
{
    const uint32_t id = graph_name_find(g, name);
    for (uint32_t i = 0; id != GRAPH_NONE && i < g->output_count; i++)
        if (g->outputs[i].name == id)
            return g->outputs[i].node;
    return GRAPH_NONE;
}

uint32_t graph_bound_find(const struct graph *g, const char *name, uint32_t *place)
{
    const uint32_t id = graph_name_find(g, name);
    for (uint32_t i = 0; id != GRAPH_NONE && i < g->bound_count; i++)
        if (g->nodes[g->bound[i]].name == id) {
            if (place)
                *place = i;
            return g->bound[i];
        }
    return GRAPH_NONE;
}
