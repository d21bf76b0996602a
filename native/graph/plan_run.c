/* plan_run.c - a plan at work; see plan.h. */
#include "native/graph/plan.h"

void plan_fixed_filled(const struct plan *p, char *fixed, void **data)
{
    for (uint32_t i = 0; i < p->g->node_count; i++)
        if (p->storage[i] == STORAGE_FIXED) {
            data[i] = fixed + p->offset[i];
            place_fill(p->g, i, data[i]);
        }
}

void plan_arena_given(const struct plan *p, char *arena, void **data)
{
    for (uint32_t i = 0; i < p->g->node_count; i++)
        if (p->storage[i] == STORAGE_ARENA)
            data[i] = arena + p->offset[i];
}

bool plan_step_at(const struct plan *p, const struct plan_step *s, const struct plan_run *run, struct error *err)
{
    if (s->chain) {
        chain_run(s->chain, run->pool, run->data);
        return true;
    }
    struct work w = { .g = p->g,
                      .places = p->places,
                      .stored = p->stored,
                      .data = run->data,
                      .extra = (const uint32_t *const *)p->extra,
                      .bodies = p->bodies,
                      .inside = p->inside,
                      .random = run->random,
                      .cache = run->cache,
                      .layer = run->layer,
                      .pool = run->pool,
                      .err = err,
                      .id = s->node,
                      .n = &p->g->nodes[s->node],
                      .scratch = run->arena + s->scratch };
    return plan_step_run(s, &w);
}

void plan_copied(const struct plan *p, const struct plan_copy *c, const struct plan_run *run, void *to)
{
    const struct graph_node *n = &p->g->nodes[c->node];
    const struct place *at = &p->places[c->node];
    const enum tensor_type type = (enum tensor_type)n->type;
    struct walk walk = { .rank = n->rank };
    ptrdiff_t step = 1;
    for (unsigned i = n->rank; i-- > 0;) {
        walk.size[i] = n->axis[i].size;
        walk.from[i] = at->stride[i];
        walk.to[i] = step;
        step *= (ptrdiff_t)n->axis[i].size;
    }
    walk_copy(run->pool, walk, type, (const char *)run->data[at->base] + at->offset * (ptrdiff_t)type_bytes(type), type, to);
}
