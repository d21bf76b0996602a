#include "runtime/worker/dispute_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/tile.h"
#include "runtime/worker/session_internal.h"

void dispute_shape_free(struct dispute_shape *shape)
{
    if (!shape)
        return;
    free(shape->places);
    free(shape->entries);
    free(shape->first);
    free(shape->entry_of);
    free(shape->tensors);
    free(shape->results);
    states_free(&shape->states);
    free(shape);
}

bool dispute_is_result(const char *output)
{
    return strcmp(output, "loss") == 0 || strncmp(output, "p.", 2) == 0 || strncmp(output, "s.", 2) == 0;
}

static void add_entry(struct dispute_shape *shape, uint32_t node)
{
    const struct graph_node *n = &shape->g->nodes[node];
    const uint64_t tiles = (n->values * type_bytes(n->type) + TILE_BYTES - 1) / TILE_BYTES;

    if (shape->entry_of[node] != GRAPH_NONE)
        return;
    shape->entry_of[node] = shape->entry_count;
    shape->entries[shape->entry_count++] = node;
    shape->first[shape->entry_count] = shape->first[shape->entry_count - 1] + tiles;
}

static void list_entries(struct dispute_shape *shape)
{
    const struct graph *g = shape->g;

    shape->entries = calloc(g->node_count + 1, sizeof *shape->entries);
    shape->first = calloc(g->node_count + 2, sizeof *shape->first);
    shape->entry_of = malloc((g->node_count + 1) * sizeof *shape->entry_of);
    if (!shape->entries || !shape->first || !shape->entry_of)
        abort();
    memset(shape->entry_of, 0xff, (g->node_count + 1) * sizeof *shape->entry_of);
    for (uint32_t i = 0; i < g->node_count; i++)
        if (tile_computed(g, shape->places, i))
            add_entry(shape, i);
    for (uint32_t i = 0; i < g->output_count; i++)
        if (dispute_is_result(graph_text(g, g->outputs[i].name)))
            add_entry(shape, g->outputs[i].node);
}

/* Outputs by name: as many as three a trained tensor. */
struct named_output {
    const char *name;
    uint32_t node;
};

static int by_output(const void *a, const void *b)
{
    return strcmp(((const struct named_output *)a)->name, ((const struct named_output *)b)->name);
}

/* Which value is each tensor after the step: results "p.NAME" and, of the optimiser, "s.NAME.SLOT". */
static bool find_results(struct dispute_shape *shape, struct error *err)
{
    const struct graph *g = shape->g;
    struct named_output *list = calloc(g->output_count + 1, sizeof *list);
    bool ok = true;

    for (uint32_t i = 0; i < g->output_count; i++)
        list[i] = (struct named_output){ graph_text(g, g->outputs[i].name), g->outputs[i].node };
    qsort(list, g->output_count, sizeof *list, by_output);
    for (size_t i = 0; ok && i < shape->tensor_count; i++) {
        char name[GRAPH_NAME + 3];
        const bool slot = states_find(&shape->states, shape->tensors[i].name) != NULL;
        const struct named_output key = { .name = name }, *found;

        snprintf(name, sizeof name, "%s%s", slot ? "" : "p.", shape->tensors[i].name);
        found = bsearch(&key, list, g->output_count, sizeof key, by_output);
        ok = found || error_set(err, ERROR_UNSUPPORTED, NULL, "the step does not give %s", shape->tensors[i].name);
        shape->results[i] = found ? shape->entry_of[found->node] : GRAPH_NONE;
    }
    free(list);
    return ok;
}

static struct dispute_shape *shape_new(const struct session *s, const struct graph *g, struct error *err)
{
    struct dispute_shape *shape = calloc(1, sizeof *shape);
    uint32_t loss;

    if (!shape)
        abort();
    shape->g = g;
    shape->places = place_all(g);
    list_entries(shape);
    loss = graph_output_find(g, "loss");
    shape->loss = loss == GRAPH_NONE ? GRAPH_NONE : shape->entry_of[loss];
    if (states_listed(&shape->states, s, &s->inner, err)) {
        shape->tensors = states_tensors(&shape->states, &s->layout, NULL, &shape->tensor_count);
        shape->results = calloc(shape->tensor_count + 1, sizeof *shape->results);
        if (find_results(shape, err))
            return shape;
    }
    dispute_shape_free(shape);
    return NULL;
}

const struct dispute_shape *dispute_shape_of(struct session *s, int64_t rows, int64_t time, double clip, struct error *err)
{
    struct session_step *step = session_shape_kept(s, rows, time, SESSION_TRAIN, clip, err);

    if (step && !step->dispute)
        step->dispute = shape_new(s, step->graph, err);
    return step ? step->dispute : NULL;
}

static int by_tensor(const void *a, const void *b)
{
    return strcmp(((const struct named_tensor *)a)->name, ((const struct named_tensor *)b)->name);
}

long dispute_tensor(const struct dispute_shape *shape, const char *name)
{
    const struct named_tensor key = { .name = name },
                              *found = bsearch(&key, shape->tensors, shape->tensor_count, sizeof key, by_tensor);

    return found ? (long)(found - shape->tensors) : -1;
}
