/* build.c - short forms of graph_add for C, and the copying of nodes between graphs. */
#include <stdlib.h>
#include <string.h>

#include "native/graph/graph.h"

/* "batch time=8" to words; the text is cut up in place. Returns how many, or SIZE_MAX for a bad list. */
static size_t words_of(char *list, struct graph_word *words, size_t most)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(list, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == most)
            return SIZE_MAX;
        char *equals = strchr(word, '='), *end = NULL;
        words[count] = (struct graph_word){ word, 0 };
        if (equals) {
            *equals = 0;
            words[count].size = strtoull(equals + 1, &end, 10);
            if (end == equals + 1 || *end || words[count].size == 0)
                return SIZE_MAX;
        }
        count++;
    }
    return count;
}

static bool add_over(struct graph *g, struct graph_request *r, const char *axes, uint32_t *node, struct error *err)
{
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    char list[GRAPH_ATTRIBUTE_AXES * 96];
    if (strlen(axes) >= sizeof list)
        return error_set(err, ERROR_SYNTAX, NULL, "%s: an axis list that is too long", operator_table[r->op].name);
    strcpy(list, axes);
    r->axes = words;
    r->axes_count = words_of(list, words, GRAPH_ATTRIBUTE_AXES);
    if (r->axes_count == SIZE_MAX)
        return error_set(err, ERROR_SYNTAX, NULL, "%s: bad axis list \"%s\"", operator_table[r->op].name, axes);
    return graph_add(g, r, node, err);
}

bool graph_input(struct graph *g, const char *name, enum tensor_type type, const char *axes, uint32_t *node, struct error *err)
{
    struct graph_request r = { .op = OPERATOR_INPUT, .name = name, .type = type };
    return add_over(g, &r, axes, node, err);
}

bool graph_constant(struct graph *g, enum tensor_type type, double value, uint32_t *node, struct error *err)
{
    return graph_add(g, &(struct graph_request){ .op = OPERATOR_CONSTANT, .type = type, .numbers = &value, .numbers_count = 1 },
                     node, err);
}

bool graph_unary(struct graph *g, enum operator_code op, uint32_t x, uint32_t *node, struct error *err)
{
    return graph_add(g, &(struct graph_request){ .op = op, .inputs = &x, .input_count = 1 }, node, err);
}

bool graph_binary(struct graph *g, enum operator_code op, uint32_t x, uint32_t y, uint32_t *node, struct error *err)
{
    return graph_add(g, &(struct graph_request){ .op = op, .inputs = (uint32_t[]){ x, y }, .input_count = 2 }, node, err);
}

bool graph_over(struct graph *g, enum operator_code op, uint32_t x, uint32_t y, uint32_t z, const char *axes, uint32_t *node,
                struct error *err)
{
    const uint32_t inputs[3] = { x, y, z };
    struct graph_request r = { .op = op, .inputs = inputs };
    while (r.input_count < 3 && inputs[r.input_count] != GRAPH_NONE)
        r.input_count++;
    return add_over(g, &r, axes, node, err);
}

bool graph_copy_node(struct graph *dst, const struct graph *src, uint32_t from, const uint32_t *inputs, uint32_t *node,
                     struct error *err)
{
    const struct graph_node *n = &src->nodes[from];
    struct graph_word words[GRAPH_ATTRIBUTE_AXES];
    for (uint32_t i = 0; i < n->axes_count; i++)
        words[i] = (struct graph_word){ src->names[graph_axes(src, n)[i].name], graph_axes(src, n)[i].size };
    const struct graph_request r = {
        .op = (enum operator_code)n->op,
        .inputs = inputs,
        .input_count = n->input_count,
        .axes = words,
        .axes_count = n->axes_count,
        .numbers = graph_numbers(src, n),
        .numbers_count = n->numbers_count,
        .integers = graph_integers(src, n),
        .integers_count = n->integers_count,
        .name = n->name == GRAPH_NONE ? NULL : src->names[n->name],
        .type = (enum tensor_type)n->type,
        .note = n->note == GRAPH_NONE ? NULL : src->names[n->note],
    };
    return graph_add(dst, &r, node, err);
}

/* Whether two nodes of two graphs have equal type and axes, whatever their order in memory. */
static bool same_axes(const struct graph *a, uint32_t x, const struct graph *b, uint32_t y)
{
    const struct graph_node *m = &a->nodes[x], *n = &b->nodes[y];
    if (m->type != n->type || m->rank != n->rank)
        return false;
    for (unsigned i = 0; i < m->rank; i++) {
        const int at = graph_axis_of(b, y, a->names[m->axis[i].name]);
        if (at < 0 || n->axis[at].size != m->axis[i].size)
            return false;
    }
    return true;
}

static bool bind(struct graph *dst, const struct graph *src, uint32_t from, const char *name, uint32_t to, uint32_t *node,
                 struct error *err)
{
    char a[GRAPH_SHOW], b[GRAPH_SHOW];
    if (to >= dst->node_count)
        return error_set(err, ERROR_RANGE, NULL, "input \"%s\" is bound to node %u, but there are %u", name, to, dst->node_count);
    if (!same_axes(src, from, dst, to))
        return error_set(err, ERROR_SHAPE, NULL, "input \"%s\" is %s %s, but what is bound to it is %s %s", name,
                         tensor_type_name((enum tensor_type)src->nodes[from].type), graph_show(src, from, a, sizeof a),
                         tensor_type_name((enum tensor_type)dst->nodes[to].type), graph_show(dst, to, b, sizeof b));
    /* The same order in memory, so that what is copied keeps the shapes that src worked out. */
    struct graph_word words[GRAPH_AXES];
    const struct graph_node *n = &src->nodes[from];
    bool same = true;
    for (unsigned i = 0; i < n->rank; i++) {
        words[i] = (struct graph_word){ src->names[n->axis[i].name], 0 };
        same = same && graph_axis_of(dst, to, words[i].name) == (int)i;
    }
    *node = to;
    return same ||
           graph_add(dst,
                     &(struct graph_request){
                         .op = OPERATOR_TRANSPOSE, .inputs = &to, .input_count = 1, .axes = words, .axes_count = n->rank },
                     node, err);
}

static const struct graph_binding *binding_of(const struct graph_binding *bindings, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(bindings[i].name, name) == 0)
            return &bindings[i];
    return NULL;
}

static bool splice_node(struct graph *dst, const struct graph *src, uint32_t i, const struct graph_binding *bindings,
                        size_t count, uint32_t *map, struct error *err)
{
    const struct graph_node *n = &src->nodes[i];
    if (n->op == OPERATOR_INPUT || n->op == OPERATOR_PARAMETER) {
        const char *name = src->names[n->name];
        const struct graph_binding *b = binding_of(bindings, count, name);
        const uint32_t there = b ? b->node : graph_bound_find(dst, name, NULL);
        if (there != GRAPH_NONE)
            return bind(dst, src, i, name, there, &map[i], err);
    }
    uint32_t few[8], *inputs = few;
    if (n->input_count > 8 && !(inputs = malloc(n->input_count * sizeof *inputs)))
        abort();
    for (uint32_t k = 0; k < n->input_count; k++)
        inputs[k] = map[graph_inputs(src, n)[k]];
    const bool ok = graph_copy_node(dst, src, i, inputs, &map[i], err);
    if (inputs != few)
        free(inputs);
    return ok;
}

bool graph_splice(struct graph *dst, const struct graph *src, const struct graph_binding *bindings, size_t binding_count,
                  uint32_t *nodes, struct error *err)
{
    for (size_t i = 0; i < binding_count; i++)
        if (graph_bound_find(src, bindings[i].name, NULL) == GRAPH_NONE)
            return error_set(err, ERROR_UNKNOWN, NULL, "the graph has no input \"%s\"", bindings[i].name);
    uint32_t *map = malloc((src->node_count + 1) * sizeof *map);
    if (!map)
        abort();
    bool ok = true;
    for (uint32_t i = 0; ok && i < src->node_count; i++)
        ok = splice_node(dst, src, i, bindings, binding_count, map, err);
    if (ok && nodes)
        memcpy(nodes, map, src->node_count * sizeof *map);
    free(map);
    return ok;
}
