#include "native/graph/execute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "native/graph/arrange.h"
#include "native/graph/body.h"
#include "native/graph/cost.h"
#include "native/graph/plan.h"
#include "native/graph/rewrite.h"
#include "native/kernel/class.h"

struct executor {
    struct plan plan;
    struct pool *pool;
    char *arena, *fixed;
    void **data; /* per node of the compact graph */
    graph_trace trace;
    void *trace_context;
    uint32_t *finite; /* outputs that must be */
    size_t finite_count;
    graph_tiles tiles;
    void *tiles_context;
    struct trace_tiles *hashes; /* of a run that is shown by tiles */
    executor_profile profile;
    void *profile_context;
    const struct cache *cache;
    struct cache_step step; /* of the next run; rows 0: none */
    uint32_t *layer;        /* per node of the compact graph: an attention's number */
    uint32_t *original;     /* per node of the compact graph: a node of the graph that was given */
};

/* ---- making ---- */

static void *mapped(uint64_t size)
{
    void *at = mmap(NULL, size + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size + 64, MADV_HUGEPAGE);
    return at;
}

static bool memory_made(struct executor *ex, struct error *err)
{
    struct plan *p = &ex->plan;
    uint64_t tiles = 0;
    ex->arena = mapped(p->arena);
    ex->fixed = aligned_alloc(64, p->fixed + 64);
    ex->data = calloc(p->g->node_count + 1, sizeof *ex->data);
    if (!ex->arena || !ex->fixed || !ex->data)
        return error_set(err, ERROR_MEMORY, "a smaller batch", "no memory for an arena of %llu bytes",
                         (unsigned long long)p->arena);
    for (uint32_t i = 0; i < p->g->node_count; i++)
        tiles += p->inside[i] ? 0 : trace_tile_count(plan_bytes(p, i));
    plan_arena_given(p, ex->arena, ex->data);
    plan_fixed_filled(p, ex->fixed, ex->data);
    ex->hashes = ex->tiles ? trace_tiles_new(p->g->node_count, tiles) : NULL;
    return !ex->tiles || ex->hashes || error_set(err, ERROR_MEMORY, NULL, "no memory for the hashes of tiles");
}

/* Replaces *g by `next`, whose nodes have the values of those of *g in `from`. */
static bool replaced(struct graph **g, uint32_t **origin, struct graph *next, uint32_t *from)
{
    for (uint32_t i = 0; next && i < next->node_count; i++)
        from[i] = from[i] == GRAPH_NONE ? GRAPH_NONE : (*origin)[from[i]];
    free(*origin);
    *origin = from;
    graph_free(*g);
    *g = next;
    return next != NULL;
}

/* The graph as it will run, with up to `products` products computed again; *origin: of each node the one of `g` that has its value. */
static struct graph *arranged(const struct graph *g, bool plain, uint32_t products, uint32_t **origin, struct body **bodies,
                              uint32_t *body_count, struct error *err)
{
    uint32_t *map = malloc((g->node_count + 1) * sizeof *map), *from = NULL;
    *origin = malloc((g->node_count + 1) * sizeof **origin);
    if (!map || !*origin)
        abort();
    struct graph *at = graph_compact(g, map, err);
    for (uint32_t i = g->node_count; at && i-- > 0;)
        if (map[i] != GRAPH_NONE)
            (*origin)[map[i]] = i;
    free(map);
    if (!at || plain)
        return at;
    struct graph *next = arrange_heads(at, &from, bodies, body_count, err);
    if (!replaced(&at, origin, next, from))
        return NULL;
    from = NULL;
    next = arrange_again(at, products, &from, err);
    replaced(&at, origin, next, from);
    return at;
}

/* Arranges and plans; with an error of code limit the plan needs more memory than the options allow. */
static bool planned(struct executor *ex, const struct graph *g, const struct executor_options *o, uint32_t products,
                    struct error *err)
{
    struct body *bodies = NULL;
    uint32_t count = 0;
    plan_free(&ex->plan);
    ex->plan = (struct plan){ 0 };
    free(ex->original);
    ex->original = NULL;
    error_clear(err);
    struct graph *at = arranged(g, o->trace != NULL, products, &ex->original, &bodies, &count, err);
    if (at)
        return plan_make(&ex->plan, at, bodies, count, o, err);
    bodies_free(bodies, count);
    return false;
}

/* As little computed again as the limit of memory asks for. */
static bool planned_within(struct executor *ex, const struct graph *g, const struct executor_options *o, struct error *err)
{
    if (planned(ex, g, o, 0, err))
        return true;
    if (err->code != ERROR_LIMIT || !o->memory || o->trace)
        return false;
    uint32_t low = 0, high = g->node_count; /* low does not fit */
    if (!planned(ex, g, o, high, err))
        return false;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (planned(ex, g, o, middle, err))
            high = middle;
        else
            low = middle;
    }
    return planned(ex, g, o, high, err);
}

static bool layers_numbered(struct executor *ex, struct error *err)
{
    const struct graph *g = ex->plan.g;
    uint32_t layer = 0;
    if (!ex->cache)
        return true;
    ex->layer = calloc(g->node_count + 1, sizeof *ex->layer);
    if (!ex->layer)
        abort();
    for (uint32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op == OPERATOR_ATTENTION)
            ex->layer[i] = layer++;
    return cache_fits(ex->cache, g, err);
}

struct executor *executor_new(const struct graph *g, const struct executor_options *options, struct error *err)
{
    static const struct executor_options plain = { 0 };
    const struct executor_options *o = options ? options : &plain;
    struct error ignored = { 0 };
    struct executor *ex = calloc(1, sizeof *ex);
    if (!ex)
        abort();
    ex->pool = o->pool;
    ex->trace = o->trace;
    ex->trace_context = o->trace_context;
    ex->finite = o->finite_count ? malloc(o->finite_count * sizeof *ex->finite) : NULL;
    for (size_t i = 0; ex->finite && i < o->finite_count; i++)
        if (o->finite[i] < g->output_count)
            ex->finite[ex->finite_count++] = o->finite[i];
    ex->tiles = o->tiles;
    ex->tiles_context = o->tiles_context;
    ex->profile = o->profile;
    ex->profile_context = o->profile_context;
    ex->cache = o->cache;
    err = err ? err : &ignored;
    if (planned_within(ex, g, o, err) && memory_made(ex, err) && layers_numbered(ex, err))
        return ex;
    executor_free(ex);
    return NULL;
}

void executor_free(struct executor *ex)
{
    if (!ex)
        return;
    if (ex->arena)
        munmap(ex->arena, ex->plan.arena + 64);
    free(ex->fixed);
    free(ex->data);
    trace_tiles_free(ex->hashes);
    free(ex->finite);
    free(ex->original);
    free(ex->layer);
    plan_free(&ex->plan);
    free(ex);
}

/* ---- running ---- */

static bool memory_bound(struct executor *ex, const void *const *inputs, void *const *outputs, struct error *err)
{
    const struct plan *p = &ex->plan;
    for (uint32_t i = 0; i < p->g->bound_count; i++) {
        ex->data[p->g->bound[i]] = (void *)(uintptr_t)inputs[i];
        if (!inputs[i] && p->first[p->g->bound[i]])
            return error_set(err, ERROR_MISSING, NULL, "input \"%s\" has no data", p->g->names[p->g->nodes[p->g->bound[i]].name]);
    }
    for (uint32_t i = 0; i < p->g->output_count; i++) {
        const uint32_t node = p->g->outputs[i].node;
        if (!outputs[i])
            return error_set(err, ERROR_MISSING, NULL, "output \"%s\" has no memory", p->g->names[p->g->outputs[i].name]);
        if (p->storage[node] == STORAGE_OUTPUT && p->written[node] == i)
            ex->data[node] = outputs[i];
    }
    return true;
}

static void traced(const struct executor *ex, uint32_t node)
{
    const struct graph_node *n = &ex->plan.g->nodes[node];
    const uint64_t size = n->values * type_bytes(n->type);
    if (ex->original[node] == GRAPH_NONE) /* computed a second time: seen before */
        return;
    if (ex->trace)
        ex->trace(ex->trace_context, ex->original[node], ex->data[node], size);
    if (ex->tiles)
        trace_tiles_add(ex->hashes, ex->pool, ex->original[node], ex->data[node], size);
}

static void step_traced(const struct executor *ex, const struct plan_step *s)
{
    for (uint32_t i = 0; s->chain && i < s->count; i++)
        if (s->kept[i])
            traced(ex, s->nodes[i]);
    if (s->chain)
        return;
    traced(ex, s->node);
    for (unsigned k = 0; ex->plan.extra[s->node] && k < STEP_EXTRA; k++)
        if (ex->plan.extra[s->node][k] != GRAPH_NONE)
            traced(ex, ex->plan.extra[s->node][k]);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void step_profiled(const struct executor *ex, const struct plan_step *s, double began)
{
    struct executor_pass pass = cost_of_step(&ex->plan, s);
    pass.seconds = seconds_now() - began;
    ex->profile(ex->profile_context, &pass);
}

/* The outputs that step t made and that must be finite. */
static bool step_finite(const struct executor *ex, uint32_t t, void *const *outputs, struct error *err)
{
    const struct plan *p = &ex->plan;
    uint64_t at;
    for (size_t i = 0; i < ex->finite_count; i++) {
        const struct graph_output *o = &p->g->outputs[ex->finite[i]];
        const struct graph_node *n = &p->g->nodes[o->node];
        if (p->storage[o->node] == STORAGE_OUTPUT && p->first[o->node] == t && n->type == TENSOR_F32 &&
            !tensor_finite_f32(outputs[p->written[o->node]], n->values, &at))
            return error_set(err, ERROR_NON_FINITE, NULL, "the %s is not finite", p->g->names[o->name]);
    }
    return true;
}

bool executor_run(struct executor *ex, const void *const *inputs, void *const *outputs, const struct executor_random *random,
                  struct error *err)
{
    const struct plan *p = &ex->plan;
    if (!kernel_arithmetic(err) || !memory_bound(ex, inputs, outputs, err))
        return false;
    if (ex->cache && !ex->step.rows)
        return error_set(err, ERROR_MISSING, NULL, "no sequence to go on with");
    if (ex->tiles)
        trace_tiles_end(ex->hashes, ex->pool, NULL, NULL); /* of a run that failed */
    const struct plan_run run = { .pool = ex->pool,
                                  .data = ex->data,
                                  .arena = ex->arena,
                                  .random = random,
                                  .cache = ex->step.rows ? &ex->step : NULL,
                                  .layer = ex->layer };
    for (uint32_t t = 0; t < p->step_count; t++) {
        const double began = ex->profile ? seconds_now() : 0;
        if (!plan_step_at(p, &p->steps[t], &run, err))
            return false;
        if (ex->finite_count && !step_finite(ex, t, outputs, err))
            return false;
        if (ex->profile)
            step_profiled(ex, &p->steps[t], began);
        if (ex->trace || ex->tiles)
            step_traced(ex, &p->steps[t]);
    }
    for (uint32_t i = 0; i < p->copy_count; i++)
        plan_copied(p, &p->copies[i], &run, outputs[p->copies[i].output]);
    if (ex->tiles)
        trace_tiles_end(ex->hashes, ex->pool, ex->tiles, ex->tiles_context);
    cache_end(&ex->step);
    ex->step = (struct cache_step){ 0 };
    return true;
}

bool executor_continue(struct executor *ex, const struct cache_step *step, struct error *err)
{
    const struct graph *g = ex->plan.g;
    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i], *k = n->op == OPERATOR_ATTENTION ? &g->nodes[graph_inputs(g, n)[1]] : NULL;
        for (size_t r = 0; k && r < step->rows; r++)
            if (k->axis[0].size != step->rows || step->counts[r] > k->axis[1].size)
                return error_set(err, ERROR_SHAPE, NULL, "%u tokens in %zu rows, the graph has %llu in %llu", step->counts[r],
                                 step->rows, (unsigned long long)k->axis[1].size, (unsigned long long)k->axis[0].size);
    }
    ex->step = *step;
    return cache_begin(step, err);
}

/* ---- what it costs ---- */

uint64_t executor_bytes(const struct executor *ex)
{
    return ex->plan.arena;
}
uint32_t executor_steps(const struct executor *ex)
{
    return ex->plan.step_count;
}

uint64_t executor_operations(const struct executor *ex)
{
    uint64_t total = 0;
    for (uint32_t t = 0; t < ex->plan.step_count; t++)
        total += cost_of_step(&ex->plan, &ex->plan.steps[t]).operations;
    return total;
}

static bool is_read_as_stored(enum tensor_type type)
{
    return (type >= TENSOR_F16 && type <= TENSOR_Q4_1) || type == TENSOR_NF4 || type == TENSOR_NF4_DQ;
}

bool executor_may_store(const struct graph *g, uint32_t bound, enum tensor_type type)
{
    const uint32_t node = g->bound[bound];
    bool products = g->nodes[node].type == TENSOR_F32 && is_read_as_stored(type);
    for (uint32_t i = 0; i < g->output_count; i++)
        products = products && g->outputs[i].node != node;
    for (uint32_t i = 0; products && i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->input_count; k++) {
            const bool factor = n->op == OPERATOR_DOT || ((n->op == OPERATOR_DOT_ONTO || n->op == OPERATOR_LOW_RANK) && k > 0);
            if (graph_inputs(g, n)[k] == node && !factor && !(n->op == OPERATOR_GATHER && k == 0) && n->op != OPERATOR_HEAD)
                products = false;
        }
    }
    return products || type == g->nodes[node].type;
}

bool tensor_finite_f32(const float *x, uint64_t count, uint64_t *at)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) {
            *at = i;
            return false;
        }
    return true;
}
