#include <stdlib.h>
#include <string.h>

#include "native/graph/plan.h"

uint64_t plan_bytes(const struct plan *p, uint32_t node)
{
    const struct graph_node *n = &p->g->nodes[node];
    return (n->values * type_bytes(n->type) + 63) / 64 * 64;
}

/* ---- a first-fit allocator of offsets ---- */

struct hole {
    uint64_t at, size;
};

struct space_map {
    struct hole *holes; /* ascending, none touching another; the last one has no end */
    size_t count, room;
};

static void hole_put(struct space_map *m, size_t i, struct hole h)
{
    if (m->count == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        m->holes = realloc(m->holes, m->room * sizeof *m->holes);
        if (!m->holes)
            abort();
    }
    memmove(m->holes + i + 1, m->holes + i, (m->count - i) * sizeof *m->holes);
    m->holes[i] = h;
    m->count++;
}

static void hole_drop(struct space_map *m, size_t i)
{
    m->count--;
    memmove(m->holes + i, m->holes + i + 1, (m->count - i) * sizeof *m->holes);
}

/* The smallest hole that is large enough; ties by address. */
static uint64_t space_take(struct space_map *m, uint64_t size)
{
    size_t best = m->count - 1;
    if (size == 0)
        return 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->holes[i].size >= size && m->holes[i].size < m->holes[best].size)
            best = i;
    const uint64_t at = m->holes[best].at;
    m->holes[best].at += size;
    m->holes[best].size -= size;
    if (m->holes[best].size == 0)
        hole_drop(m, best);
    return at;
}

static void space_give(struct space_map *m, uint64_t at, uint64_t size)
{
    size_t i = 0;
    if (size == 0)
        return;
    while (i < m->count && m->holes[i].at < at)
        i++;
    const bool left = i > 0 && m->holes[i - 1].at + m->holes[i - 1].size == at;
    const bool right = i < m->count && at + size == m->holes[i].at;
    if (left && right) {
        m->holes[i - 1].size += size + m->holes[i].size;
        hole_drop(m, i);
    } else if (left) {
        m->holes[i - 1].size += size;
    } else if (right) {
        m->holes[i].at = at;
        m->holes[i].size += size;
    } else {
        hole_put(m, i, (struct hole){ at, size });
    }
}

/* ---- storage and lives ---- */

/* Calls `see` for each value that step t makes. */
static void made_by(struct plan *p, uint32_t t, void (*see)(struct plan *p, uint32_t node, uint32_t t, void *context),
                    void *context)
{
    const struct plan_step *s = &p->steps[t];
    for (uint32_t i = 0; s->chain && i < s->count; i++)
        if (s->kept[i])
            see(p, s->nodes[i], t, context);
    if (s->chain)
        return;
    see(p, s->node, t, context);
    for (unsigned k = 0; p->extra[s->node] && k < STEP_EXTRA; k++)
        if (p->extra[s->node][k] != GRAPH_NONE)
            see(p, p->extra[s->node][k], t, context);
}

static void see_made(struct plan *p, uint32_t node, uint32_t t, void *context)
{
    (void)context;
    p->storage[node] = STORAGE_ARENA;
    p->first[node] = p->last[node] = t;
}

static void read_at(struct plan *p, uint32_t base, uint32_t t)
{
    if (p->storage[base] == STORAGE_BOUND)
        p->first[base] = 1;
    if (p->last[base] < t)
        p->last[base] = t;
}

struct reading {
    struct plan *p;
    uint32_t step;
};

static void see_read(void *context, uint32_t base)
{
    const struct reading *r = context;
    read_at(r->p, base, r->step);
}

static void lives_found(struct plan *p)
{
    for (uint32_t i = 0; i < p->g->node_count; i++) {
        const unsigned op = p->g->nodes[i].op;
        p->storage[i] = op == OPERATOR_INPUT || op == OPERATOR_PARAMETER                         ? STORAGE_BOUND
                        : op == OPERATOR_CONSTANT || op == OPERATOR_TABLE || op == OPERATOR_IOTA ? STORAGE_FIXED
                                                                                                 : STORAGE_NONE;
    }
    for (uint32_t t = 0; t < p->step_count; t++)
        made_by(p, t, see_made, NULL);
    for (uint32_t t = 0; t < p->step_count; t++) {
        const struct plan_step *s = &p->steps[t];
        for (uint32_t i = 0; s->chain && i < chain_slots(s->chain); i++)
            if (chain_read(s->chain, i) != GRAPH_NONE)
                read_at(p, chain_read(s->chain, i), t);
        for (uint32_t i = 0; !s->chain && (i < s->count || i < 1); i++)
            inside_reads(p->g, p->places, p->inside, s->count ? s->nodes[i] : s->node, see_read, &(struct reading){ p, t });
    }
}

/* Whether one may be written over the other element by element: as many values of the same width. */
static bool same_room(const struct plan *p, uint32_t a, uint32_t b)
{
    const struct graph_node *x = &p->g->nodes[a], *y = &p->g->nodes[b];
    return x->values == y->values && type_bytes(x->type) == type_bytes(y->type);
}

/* ---- writing in place ---- */

/* Operand over which an operator may write its result: its kernel allows it. */
static int replaceable(unsigned op)
{
    switch (op) {
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
    case OPERATOR_ROPE:
    case OPERATOR_TOKEN_LOGPROB_GRAD:
    case OPERATOR_SOFTMAX:
    case OPERATOR_LOG_SOFTMAX:
    case OPERATOR_TIED:
        return 0;
    case OPERATOR_RMSNORM_GRAD:
        return 3;
    default:
        return -1;
    }
}

struct rereading {
    uint32_t base, count;
};

static void see_again(void *context, uint32_t base)
{
    struct rereading *r = context;
    r->count += base == r->base;
}

/* The value over which a step that is no chain may write its result, which it reads nowhere else; GRAPH_NONE: there is none. */
static uint32_t base_replaceable(const struct plan *p, const struct plan_step *s)
{
    const uint32_t first = s->count ? s->nodes[0] : s->node;
    const int k = replaceable(p->g->nodes[first].op);
    if (k < 0)
        return GRAPH_NONE;
    const uint32_t x = graph_inputs(p->g, &p->g->nodes[first])[k], base = p->places[x].base;
    struct rereading readings = { base, 0 };
    for (uint32_t i = 0; i < s->count || i < 1; i++)
        inside_reads(p->g, p->places, p->inside, s->count ? s->nodes[i] : s->node, see_again, &readings);
    if (readings.count > 1)
        return GRAPH_NONE;
    return p->places[x].offset == 0 && place_contiguous(&p->g->nodes[x], &p->places[x]) ? base : GRAPH_NONE;
}

/* ---- outputs ---- */

/* Whether node may be written over bound node `bound` as soon as it is made. */
static bool alias_safe(const struct plan *p, uint32_t node, uint32_t bound)
{
    const uint32_t t = p->first[node];
    if (p->last[bound] < t)
        return true;
    const struct plan_step *s = &p->steps[t];
    if (p->last[bound] != t || !same_room(p, node, bound))
        return false;
    return s->chain ? chain_may_replace(s->chain, node, bound) : node == s->node && base_replaceable(p, s) == bound;
}

static uint32_t alias_of(const struct plan *p, const struct executor_options *o, uint32_t output)
{
    for (size_t i = 0; i < o->alias_count; i++)
        if (o->aliases[i].output == output)
            return p->g->bound[o->aliases[i].bound];
    return GRAPH_NONE;
}

/* Outputs are written where they are made when that is possible; the others are copied after the last step. */
static void outputs_placed(struct plan *p, const struct executor_options *o)
{
    struct graph *g = p->g;
    p->copies = calloc(g->output_count + 1, sizeof *p->copies);
    if (!p->copies)
        abort();
    for (uint32_t i = 0; i < g->output_count; i++) { /* what copies read stays to the end */
        const uint32_t node = g->outputs[i].node, base = p->places[node].base;
        if (base != node || p->storage[base] != STORAGE_ARENA)
            read_at(p, base, p->step_count);
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t node = g->outputs[i].node, bound = alias_of(p, o, i);
        if (p->places[node].base == node && p->storage[node] == STORAGE_ARENA &&
            (bound == GRAPH_NONE || alias_safe(p, node, bound))) {
            p->storage[node] = STORAGE_OUTPUT;
            p->written[node] = i;
            continue;
        }
        read_at(p, p->places[node].base, p->step_count);
        p->copies[p->copy_count++] = (struct plan_copy){ i, node };
    }
    /* A copy to an aliased input comes after those that read inputs. */
    struct plan_copy *sorted = calloc(p->copy_count + 1, sizeof *sorted);
    uint32_t at = 0;
    if (!sorted)
        abort();
    for (unsigned late = 0; late < 2; late++)
        for (uint32_t i = 0; i < p->copy_count; i++)
            if ((alias_of(p, o, p->copies[i].output) != GRAPH_NONE) == (late == 1))
                sorted[at++] = p->copies[i];
    free(p->copies);
    p->copies = sorted;
}

/* ---- offsets ---- */

static bool dies_here(const struct plan *p, uint32_t base, uint32_t node, uint32_t t)
{
    return p->storage[base] == STORAGE_ARENA && p->last[base] == t && p->first[base] < t && same_room(p, base, node);
}

/* A value that dies at step t whose memory `node` can take, or GRAPH_NONE. */
static uint32_t predecessor(const struct plan *p, uint32_t node, uint32_t t, const bool *taken)
{
    const struct plan_step *s = &p->steps[t];
    if (s->chain) {
        for (uint32_t i = 0; i < chain_slots(s->chain); i++) {
            const uint32_t base = chain_read(s->chain, i);
            if (base != GRAPH_NONE && !taken[base] && dies_here(p, base, node, t) && chain_may_replace(s->chain, node, base))
                return base;
        }
        return GRAPH_NONE;
    }
    const uint32_t base = node == s->node ? base_replaceable(p, s) : GRAPH_NONE;
    return base != GRAPH_NONE && !taken[base] && dies_here(p, base, node, t) ? base : GRAPH_NONE;
}

struct placing {
    struct space_map map;
    bool *taken; /* its memory went to another value */
};

static void see_placed(struct plan *p, uint32_t node, uint32_t t, void *context)
{
    struct placing *c = context;
    if (p->storage[node] != STORAGE_ARENA)
        return;
    const uint32_t before = predecessor(p, node, t, c->taken);
    if (before == GRAPH_NONE) {
        p->offset[node] = space_take(&c->map, plan_bytes(p, node));
    } else {
        p->offset[node] = p->offset[before];
        c->taken[before] = true;
    }
    if (p->offset[node] + plan_bytes(p, node) > p->arena)
        p->arena = p->offset[node] + plan_bytes(p, node);
}

static void see_unread(struct plan *p, uint32_t node, uint32_t t, void *context)
{
    struct placing *c = context;
    if (p->storage[node] == STORAGE_ARENA && p->last[node] == t && !c->taken[node])
        space_give(&c->map, p->offset[node], plan_bytes(p, node));
}

bool plan_step_run(const struct plan_step *s, struct work *w)
{
    if (s->count)
        return step_products(w, s->nodes, s->count);
    return inside_operand(w->g, w->inside, w->n) < 0 ? step_of((enum operator_code)w->n->op)(w) : step_inside(w);
}

/* Working memory of step t, measured by the step itself. */
static uint64_t scratch_of(const struct plan *p, uint32_t t)
{
    const struct graph_node *n = &p->g->nodes[p->steps[t].node];
    struct work w = { .g = p->g,
                      .places = p->places,
                      .stored = p->stored,
                      .extra = (const uint32_t *const *)p->extra,
                      .bodies = p->bodies,
                      .inside = p->inside,
                      .id = p->steps[t].node,
                      .n = n,
                      .measure = true };
    if (p->steps[t].chain)
        return 0;
    plan_step_run(&p->steps[t], &w);
    return w.used;
}

void plan_memory(struct plan *p, const struct executor_options *o)
{
    const size_t count = p->g->node_count + 1;
    struct placing c = { .taken = calloc(count, sizeof *c.taken) };
    uint32_t *next = malloc(count * sizeof *next);
    uint32_t *head = malloc((p->step_count + 1) * sizeof *head);
    if (!c.taken || !next || !head)
        abort();
    lives_found(p);
    outputs_placed(p, o);
    memset(head, 0xff, (p->step_count + 1) * sizeof *head);
    for (uint32_t i = 0; i < p->g->node_count; i++)
        if (p->storage[i] == STORAGE_ARENA && p->last[i] > p->first[i]) {
            next[i] = head[p->last[i]];
            head[p->last[i]] = i;
        } else if (p->storage[i] == STORAGE_FIXED) {
            p->offset[i] = p->fixed;
            p->fixed += plan_bytes(p, i);
        }
    hole_put(&c.map, 0, (struct hole){ 0, UINT64_MAX / 2 });
    for (uint32_t t = 0; t < p->step_count; t++) {
        struct plan_step *s = &p->steps[t];
        made_by(p, t, see_placed, &c);
        s->scratch_bytes = (scratch_of(p, t) + 63) / 64 * 64;
        s->scratch = space_take(&c.map, s->scratch_bytes);
        if (s->scratch + s->scratch_bytes > p->arena)
            p->arena = s->scratch + s->scratch_bytes;
        space_give(&c.map, s->scratch, s->scratch_bytes);
        made_by(p, t, see_unread, &c);
        for (uint32_t i = head[t]; i != GRAPH_NONE; i = next[i])
            if (!c.taken[i])
                space_give(&c.map, p->offset[i], plan_bytes(p, i));
    }
    free(c.map.holes);
    free(c.taken);
    free(next);
    free(head);
}
