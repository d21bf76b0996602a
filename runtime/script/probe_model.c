#include "runtime/script/probe_model.h"

#include <stdlib.h>
#include <string.h>

#include "native/graph/execute.h"

struct probe {
    const struct graph *g;
    struct executor *ex;
    void **inputs;  /* owned, one a bound node */
    void **outputs; /* owned, one an output */
    uint64_t rows, time, width;
};

static void fill_parameter(float *x, uint64_t count, uint32_t salt)
{
    uint32_t seed = salt * 2654435761u + 1;
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* Two documents a row, of the first and the second half of the positions; positions start anew. */
static void fill_input(const struct probe *p, const char *name, void *to, uint64_t count)
{
    const uint64_t half = p->time / 2;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t t = i % p->time;
        if (!strcmp(name, "ids"))
            ((int32_t *)to)[i] = (int32_t)(i % 3);
        else if (!strcmp(name, "position"))
            ((int32_t *)to)[i] = (int32_t)(t < half ? t : t - half);
        else if (!strcmp(name, "segment"))
            ((int32_t *)to)[i] = t < half ? 1 : 2;
        else
            ((float *)to)[i] = 1;
    }
}

static void *room(const struct graph_node *n)
{
    return aligned_alloc(64, (n->values * 4 + 63) / 64 * 64 + 64);
}

static bool make_room(struct probe *p, struct error *err)
{
    bool ok = p->inputs && p->outputs;
    for (uint32_t i = 0; ok && i < p->g->bound_count; i++) {
        const struct graph_node *n = &p->g->nodes[p->g->bound[i]];
        p->inputs[i] = room(n);
        ok = p->inputs[i] != NULL;
        if (ok && n->op == OPERATOR_PARAMETER)
            fill_parameter(p->inputs[i], n->values, i);
        else if (ok)
            fill_input(p, graph_text(p->g, n->name), p->inputs[i], n->values);
    }
    for (uint32_t i = 0; ok && i < p->g->output_count; i++)
        ok = (p->outputs[i] = room(&p->g->nodes[p->g->outputs[i].node])) != NULL;
    return ok || error_set(err, ERROR_MEMORY, NULL, "no memory for a small model");
}

static void probe_free(struct probe *p)
{
    for (uint32_t i = 0; p->inputs && i < p->g->bound_count; i++)
        free(p->inputs[i]);
    for (uint32_t i = 0; p->outputs && i < p->g->output_count; i++)
        free(p->outputs[i]);
    free(p->inputs);
    free(p->outputs);
    executor_free(p->ex);
}

/* Logits [row time vocab] with the token at position `at` of every row changed; UINT64_MAX: none. */
static bool logits(struct probe *p, int32_t *ids, uint64_t at, float *out, size_t size, struct error *err)
{
    static const struct executor_random random;
    uint32_t which = 0;
    while (strcmp(graph_text(p->g, p->g->outputs[which].name), "logits"))
        which++;
    for (uint64_t r = 0; r < p->rows && at < p->time; r++)
        ids[r * p->time + at] += 1;
    bool ok = executor_run(p->ex, (const void *const *)p->inputs, p->outputs, &random, err);
    for (uint64_t r = 0; r < p->rows && at < p->time; r++)
        ids[r * p->time + at] -= 1;
    memcpy(out, p->outputs[which], size);
    return ok;
}

/* Whether the logits of positions first .. end - 1 are bit for bit the same. */
static bool equal(const struct probe *p, const float *a, const float *b, uint64_t first, uint64_t end)
{
    for (uint64_t r = 0; r < p->rows; r++) {
        const size_t from = (r * p->time + first) * p->width;
        if (memcmp(a + from, b + from, (end - first) * p->width * sizeof *a))
            return false;
    }
    return true;
}

static bool compare(struct probe *p, int32_t *ids, uint64_t count, bool *causal, bool *apart, struct error *err)
{
    const size_t size = count * sizeof(float);
    float *base = malloc(size), *other = malloc(size);
    bool ok = base && other && logits(p, ids, UINT64_MAX, base, size, err) && logits(p, ids, p->time - 1, other, size, err);
    if (ok)
        *causal = equal(p, base, other, 0, p->time - 1);
    ok = ok && logits(p, ids, 0, other, size, err);
    if (ok)
        *apart = equal(p, base, other, p->time / 2, p->time);
    free(base);
    free(other);
    return ok;
}

bool script_probe_model(const struct graph *g, bool *causal, bool *apart, struct error *err)
{
    uint32_t place, ids = graph_bound_find(g, "ids", &place), out = graph_output_find(g, "logits");
    if (ids == GRAPH_NONE || out == GRAPH_NONE || g->nodes[out].rank != 3 || g->nodes[ids].axis[1].size < 4)
        return error_set(err, ERROR_MISSING, NULL, "a text model reads ids [row time] and gives logits [row time vocab]");
    struct probe p = { .g = g, .ex = executor_new(g, &(struct executor_options){ 0 }, err) };
    p.inputs = calloc(g->bound_count + 1, sizeof *p.inputs);
    p.outputs = calloc(g->output_count + 1, sizeof *p.outputs);
    p.rows = g->nodes[ids].axis[0].size;
    p.time = g->nodes[ids].axis[1].size;
    p.width = g->nodes[out].axis[2].size;
    bool ok = p.ex && make_room(&p, err) && compare(&p, p.inputs[place], g->nodes[out].values, causal, apart, err);
    probe_free(&p);
    return ok;
}
