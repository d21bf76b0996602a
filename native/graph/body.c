#include "native/graph/body.h"

#include <stdlib.h>

/* The starts of the sums, which their outs are written over. */
static size_t starts_aliased(const struct body *b, struct executor_alias *aliases)
{
    size_t count = 0;
    for (uint32_t k = 0; k < b->input_count; k++)
        if (b->inputs[k].side == BODY_START)
            aliases[count++] = (struct executor_alias){ b->inputs[k].from, k };
    return count;
}

/* `head`: the node of p whose body it is. A value that lies in parts of a stored one is read out before. */
static bool body_planned(const struct plan *p, uint32_t head, struct body *b, struct error *err)
{
    struct executor_alias aliases[BODY_OUTS];
    const size_t alias_count = starts_aliased(b, aliases);
    uint8_t *stored = malloc(b->input_count + 1);
    bool ok = true;
    if (!stored)
        abort();
    for (uint32_t k = 0; k < b->input_count; k++) {
        const uint32_t node =
            b->inputs[k].side == BODY_START ? GRAPH_NONE : graph_inputs(p->g, &p->g->nodes[head])[b->inputs[k].from];
        const uint8_t type = b->g[0]->nodes[b->g[0]->bound[k]].type;
        stored[k] = b->inputs[k].side == BODY_SHARED && p->places[node].base == node ? p->stored[node] : type;
    }
    for (unsigned s = 0; ok && s < BODY_SIZES && b->tile[s]; s++) {
        struct graph *g = b->g[s];
        b->g[s] = NULL;
        ok = plan_make(&b->plan[s], g, NULL, 0,
                       &(struct executor_options){ .aliases = aliases, .alias_count = alias_count, .stored = stored }, err);
    }
    free(stored);
    return ok;
}

bool bodies_planned(struct plan *p, struct error *err)
{
    for (uint32_t i = 0; i < p->g->node_count; i++) {
        const struct graph_node *n = &p->g->nodes[i];
        if (n->op == OPERATOR_HEAD && !body_planned(p, i, &p->bodies[graph_integers(p->g, n)[0]], err))
            return false;
    }
    return true;
}

void bodies_free(struct body *bodies, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (unsigned s = 0; s < BODY_SIZES; s++) {
            graph_free(bodies[i].g[s]);
            plan_free(&bodies[i].plan[s]);
        }
    }
    free(bodies);
}
