#include "native/graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "native/graph/body.h"
#include "native/kernel/gemm.h"

/* ---- what makes the schedule ---- */

/* A chain that may still grow. */
struct group {
    uint32_t nodes[CHAIN_NODES];
    uint32_t count;
    uint32_t pending; /* readings of its nodes by operators that have not come yet */
    bool open;
};

struct scheduling {
    struct plan *p;
    struct group *groups;
    uint32_t group_count, group_room;
    uint32_t *group_of;  /* per node: open group + 1 */
    uint32_t *readings;  /* per base: by operators, through views */
    uint32_t *reader;    /* per base: the last of them */
    uint32_t *remaining; /* the same, less those scheduled */
    bool *output;
    uint32_t *onto;   /* per product: the one after which it follows in one step, + 1 */
    uint32_t *length; /* of such a run so far */
    uint32_t step_room;
    bool single; /* every node a step of its own */
};

static bool has_work(const struct plan *p, uint32_t i)
{
    const struct graph_node *n = &p->g->nodes[i];
    if (p->places[i].base != i || n->op == OPERATOR_RESULT || n->op == OPERATOR_PART || p->inside[i])
        return false;
    return !(operator_table[n->op].flags & OPERATOR_SOURCE) || n->op == OPERATOR_UNIFORM || n->op == OPERATOR_NORMAL;
}

/* The base of operand k of node i; a result node stands for itself. */
static uint32_t base_of(const struct plan *p, uint32_t i, uint32_t k)
{
    return p->places[graph_inputs(p->g, &p->g->nodes[i])[k]].base;
}

static struct plan_step *step_new(struct scheduling *s)
{
    struct plan *p = s->p;
    if (p->step_count == s->step_room) {
        s->step_room = s->step_room ? 2 * s->step_room : 64;
        p->steps = realloc(p->steps, s->step_room * sizeof *p->steps);
        if (!p->steps)
            abort();
    }
    memset(&p->steps[p->step_count], 0, sizeof *p->steps);
    return &p->steps[p->step_count++];
}

static void group_close(struct scheduling *s, struct group *g)
{
    struct plan *p = s->p;
    uint32_t inside[CHAIN_NODES] = { 0 };
    struct plan_step *step = step_new(s);
    step->node = g->nodes[g->count - 1];
    step->count = g->count;
    step->nodes = malloc(g->count * sizeof *step->nodes);
    step->kept = malloc(g->count * sizeof *step->kept);
    if (!step->nodes || !step->kept)
        abort();
    memcpy(step->nodes, g->nodes, g->count * sizeof *g->nodes);
    for (uint32_t i = 0; i < g->count; i++) {
        const struct graph_node *n = &p->g->nodes[g->nodes[i]];
        for (uint32_t k = 0; k < n->input_count; k++)
            for (uint32_t j = 0; j < i; j++)
                inside[j] += graph_inputs(p->g, n)[k] == g->nodes[j];
        s->group_of[g->nodes[i]] = 0;
    }
    for (uint32_t i = 0; i < g->count; i++)
        step->kept[i] = s->output[g->nodes[i]] || s->readings[g->nodes[i]] > inside[i];
    step->chain = chain_new(p->g, p->places, step->nodes, step->kept, step->count);
    g->open = false;
}

static struct group *group_of(struct scheduling *s, uint32_t node)
{
    return s->group_of[node] ? &s->groups[s->group_of[node] - 1] : NULL;
}

static uint32_t group_new(struct scheduling *s)
{
    for (uint32_t i = 0; i < s->group_count; i++)
        if (!s->groups[i].open) {
            s->groups[i] = (struct group){ .open = true };
            return i;
        }
    if (s->group_count == s->group_room) {
        s->group_room = s->group_room ? 2 * s->group_room : 16;
        s->groups = realloc(s->groups, s->group_room * sizeof *s->groups);
        if (!s->groups)
            abort();
    }
    s->groups[s->group_count] = (struct group){ .open = true };
    return s->group_count++;
}

static bool same_space(const struct graph_node *a, const struct graph_node *b)
{
    if (a->rank != b->rank)
        return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->axis[i].name != b->axis[i].name || a->axis[i].size != b->axis[i].size)
            return false;
    return true;
}

/* Moves the nodes of group `from` into `into`, ascending. */
static void groups_joined(struct scheduling *s, uint32_t into, uint32_t from)
{
    struct group *a = &s->groups[into], *b = &s->groups[from], joined = { .open = true, .pending = a->pending + b->pending };
    uint32_t i = 0, k = 0;
    while (i < a->count || k < b->count) {
        const bool left = k == b->count || (i < a->count && a->nodes[i] < b->nodes[k]);
        joined.nodes[joined.count++] = left ? a->nodes[i++] : b->nodes[k++];
    }
    for (i = 0; i < joined.count; i++)
        s->group_of[joined.nodes[i]] = into + 1;
    b->open = false;
    *a = joined;
}

/* The group that node i can join: those of its operands become one. GRAPH_NONE: none. Groups that cannot take it are closed. */
static uint32_t group_for(struct scheduling *s, uint32_t i)
{
    const struct graph_node *n = &s->p->g->nodes[i];
    uint32_t into = GRAPH_NONE;
    for (uint32_t k = 0; k < n->input_count; k++) {
        const uint32_t x = graph_inputs(s->p->g, n)[k], base = base_of(s->p, i, k);
        struct group *g = group_of(s, base);
        if (!g)
            continue;
        const uint32_t at = s->group_of[base] - 1;
        if (at == into)
            continue;
        const uint32_t have = into == GRAPH_NONE ? 0 : s->groups[into].count;
        if (base != x || !same_space(n, &s->p->g->nodes[x]) || g->count + have + 1 > CHAIN_NODES) {
            group_close(s, g);
        } else if (into == GRAPH_NONE) {
            into = at;
        } else {
            groups_joined(s, into, at);
        }
    }
    return into;
}

struct reading {
    struct scheduling *s;
    uint32_t reader;
};

static void reading_counted(void *context, uint32_t base)
{
    const struct reading *r = context;
    struct scheduling *s = r->s;
    struct group *g = group_of(s, base);
    s->remaining[base]--;
    if (g && --g->pending == 0 && s->group_of[r->reader] != s->group_of[base])
        group_close(s, g);
}

static void reads(struct scheduling *s, uint32_t i, void (*see)(void *context, uint32_t base))
{
    inside_reads(s->p->g, s->p->places, s->p->inside, i, see, &(struct reading){ s, i });
}

static void schedule_elementwise(struct scheduling *s, uint32_t i)
{
    uint32_t at = group_for(s, i);
    /* An operand seen as a view of a member was closed above, after `at` may have been found: look again. */
    if (at == GRAPH_NONE || !s->groups[at].open)
        at = group_new(s);
    struct group *g = &s->groups[at];
    g->nodes[g->count++] = i;
    g->pending += s->remaining[i];
    s->group_of[i] = at + 1;
    reads(s, i, reading_counted); /* groups that wait for nothing more are closed */
    g = &s->groups[at];
    if (s->single || g->pending == 0)
        group_close(s, g);
}

/* The product that goes on where product i ends, when nothing else reads i: they become one step. GRAPH_NONE: there is none. */
static uint32_t product_after(const struct scheduling *s, uint32_t i)
{
    const struct graph *g = s->p->g;
    if (s->single || !plan_is_product(&g->nodes[i]) || s->readings[i] != 1 || s->output[i] || s->length[i] + 1 >= GEMM_CHAIN)
        return GRAPH_NONE;
    const uint32_t reader = s->reader[i];
    const struct graph_node *n = &g->nodes[reader];
    if (inside_operand(g, s->p->inside, &g->nodes[i]) >= 0 || inside_operand(g, s->p->inside, n) >= 0)
        return GRAPH_NONE;
    return plan_is_product(n) && n->op != OPERATOR_DOT && graph_inputs(g, n)[0] == i && same_space(&g->nodes[i], n) ? reader
                                                                                                                    : GRAPH_NONE;
}

/* The step of product i and of those before it whose end it goes on from. */
static void products_step(struct scheduling *s, uint32_t i)
{
    const uint32_t count = s->length[i] + 1;
    struct plan_step *step = step_new(s);
    step->node = i;
    step->count = count;
    step->nodes = malloc(count * sizeof *step->nodes);
    step->kept = calloc(count, sizeof *step->kept);
    if (!step->nodes || !step->kept)
        abort();
    for (uint32_t k = count, at = i; k-- > 0; at = s->onto[at] - 1)
        step->nodes[k] = at;
}

static void reading_closed(void *context, uint32_t base)
{
    const struct reading *r = context;
    struct group *g = group_of(r->s, base);
    if (g)
        group_close(r->s, g);
}

static void schedule_operator(struct scheduling *s, uint32_t i)
{
    reads(s, i, reading_closed);
    reads(s, i, reading_counted);
    const uint32_t after = product_after(s, i);
    if (after != GRAPH_NONE) {
        s->onto[after] = i + 1;
        s->length[after] = s->length[i] + 1;
    } else if (s->length[i] > 0) {
        products_step(s, i);
    } else {
        step_new(s)->node = i;
    }
}

static void reading_found(void *context, uint32_t base)
{
    const struct reading *r = context;
    r->s->readings[base]++;
    r->s->reader[base] = r->reader;
}

static void readings_found(struct scheduling *s)
{
    struct plan *p = s->p;
    for (uint32_t i = 0; i < p->g->node_count; i++)
        if (has_work(p, i))
            reads(s, i, reading_found);
    memcpy(s->remaining, s->readings, p->g->node_count * sizeof *s->readings);
    for (uint32_t i = 0; i < p->g->output_count; i++)
        s->output[p->places[p->g->outputs[i].node].base] = true;
}

static void schedule(struct plan *p, bool single)
{
    const size_t count = p->g->node_count + 1;
    struct scheduling s = { .p = p,
                            .single = single,
                            .group_of = calloc(count, sizeof *s.group_of),
                            .readings = calloc(count, sizeof *s.readings),
                            .remaining = calloc(count, sizeof *s.remaining),
                            .reader = calloc(count, sizeof *s.reader),
                            .onto = calloc(count, sizeof *s.onto),
                            .length = calloc(count, sizeof *s.length),
                            .output = calloc(count, sizeof *s.output) };
    if (!s.group_of || !s.readings || !s.remaining || !s.reader || !s.onto || !s.length || !s.output)
        abort();
    readings_found(&s);
    for (uint32_t i = 0; i < p->g->node_count; i++) {
        if (!has_work(p, i))
            continue;
        if (operator_table[p->g->nodes[i].op].flags & OPERATOR_ELEMENTWISE)
            schedule_elementwise(&s, i);
        else
            schedule_operator(&s, i);
    }
    for (uint32_t i = 0; i < s.group_count; i++)
        if (s.groups[i].open)
            group_close(&s, &s.groups[i]);
    free(s.groups);
    free(s.group_of);
    free(s.readings);
    free(s.remaining);
    free(s.reader);
    free(s.onto);
    free(s.length);
    free(s.output);
}

/* ---- the plan ---- */

static void extras_found(struct plan *p)
{
    for (uint32_t i = 0; i < p->g->node_count; i++) {
        const struct graph_node *n = &p->g->nodes[i];
        if (n->op != OPERATOR_RESULT && n->op != OPERATOR_PART)
            continue;
        const uint32_t of = graph_inputs(p->g, n)[0];
        if (!p->extra[of]) {
            p->extra[of] = malloc(STEP_EXTRA * sizeof **p->extra);
            if (!p->extra[of])
                abort();
            memset(p->extra[of], 0xff, STEP_EXTRA * sizeof **p->extra);
        }
        p->extra[of][graph_integers(p->g, n)[0] - (n->op == OPERATOR_RESULT)] = i;
    }
}

static bool all_offered(const struct plan *p, struct error *err)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct graph_node *n = &p->g->nodes[p->steps[i].node];
        if (!p->steps[i].chain && !step_of((enum operator_code)n->op)) {
            error_set(err, ERROR_UNSUPPORTED, NULL, "operator %s is not offered by this executor", operator_table[n->op].name);
            return n->note == GRAPH_NONE ? false : error_at(err, "%s", p->g->names[n->note]);
        }
    }
    return true;
}

static bool aliases_good(const struct graph *g, const struct executor_options *o, struct error *err)
{
    for (size_t i = 0; i < o->alias_count; i++) {
        if (o->aliases[i].output >= g->output_count || o->aliases[i].bound >= g->bound_count)
            return error_set(err, ERROR_RANGE, NULL, "alias %zu names output %u and input %u, but there are %u and %u", i,
                             o->aliases[i].output, o->aliases[i].bound, g->output_count, g->bound_count);
        for (size_t k = 0; k < i; k++)
            if (o->aliases[k].output == o->aliases[i].output || o->aliases[k].bound == o->aliases[i].bound)
                return error_set(err, ERROR_DUPLICATE, NULL, "aliases %zu and %zu name the same output or input", k, i);
    }
    return true;
}

/* What will be made is within the graph's limit: shape inference left open whether it is. */
static bool sizes_good(const struct plan *p, struct error *err)
{
    for (uint32_t i = 0; i < p->g->node_count; i++) {
        const struct graph_node *n = &p->g->nodes[i];
        if (!has_work(p, i) || n->values * type_bytes(n->type) <= p->g->limits.node_bytes)
            continue;
        error_set(err, ERROR_LIMIT, "a smaller batch", "%s: a result larger than the limit of %llu bytes",
                  operator_table[n->op].name, (unsigned long long)p->g->limits.node_bytes);
        return n->note == GRAPH_NONE ? false : error_at(err, "%s", p->g->names[n->note]);
    }
    return true;
}

static bool stored_good(struct plan *p, const struct executor_options *o, struct error *err)
{
    for (uint32_t i = 0; i < p->g->node_count; i++)
        p->stored[i] = p->g->nodes[i].type;
    for (uint32_t i = 0; o->stored && i < p->g->bound_count; i++) {
        const enum tensor_type type = (enum tensor_type)o->stored[i];
        if (!executor_may_store(p->g, i, type))
            return error_set(err, ERROR_UNSUPPORTED, "convert it to f32 first",
                             "input \"%s\" as %s, which an operator that reads it does not take",
                             p->g->names[p->g->nodes[p->g->bound[i]].name], tensor_type_name(type));
        p->stored[p->g->bound[i]] = o->stored[i];
    }
    return true;
}

bool plan_make(struct plan *p, struct graph *g, struct body *bodies, uint32_t body_count, const struct executor_options *o,
               struct error *err)
{
    const size_t count = g->node_count + 1;
    *p = (struct plan){ .g = g,
                        .bodies = bodies,
                        .body_count = body_count,
                        .places = place_all(g),
                        .stored = calloc(count, 1),
                        .storage = calloc(count, 1),
                        .offset = calloc(count, sizeof *p->offset),
                        .written = calloc(count, sizeof *p->written),
                        .extra = calloc(count, sizeof *p->extra),
                        .first = calloc(count, sizeof *p->first),
                        .last = calloc(count, sizeof *p->last) };
    if (!p->stored || !p->storage || !p->offset || !p->written || !p->extra || !p->first || !p->last)
        abort();
    if (!aliases_good(g, o, err) || !stored_good(p, o, err) || !bodies_planned(p, err))
        return false;
    extras_found(p);
    p->inside = o->trace ? calloc(count, 1) : inside_found(g, p->places, p->stored);
    if (!p->inside)
        abort();
    if (!sizes_good(p, err))
        return false;
    schedule(p, o->trace != NULL);
    if (!all_offered(p, err))
        return false;
    plan_memory(p, o);
    if (!o->memory || (o->beside <= o->memory && p->arena <= o->memory - o->beside))
        return true;
    return error_set(err, ERROR_LIMIT, "a smaller batch, or a higher limit (--memory)",
                     "the graph needs %llu bytes, %llu of them weights and state; the limit is %llu",
                     (unsigned long long)(p->arena + o->beside), (unsigned long long)o->beside, (unsigned long long)o->memory);
}

void plan_free(struct plan *p)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        chain_free(p->steps[i].chain);
        free(p->steps[i].nodes);
        free(p->steps[i].kept);
    }
    for (uint32_t i = 0; p->g && p->extra && i < p->g->node_count; i++)
        free(p->extra[i]);
    bodies_free(p->bodies, p->body_count);
    free(p->steps);
    free(p->places);
    free(p->copies);
    free(p->stored);
    free(p->storage);
    free(p->offset);
    free(p->written);
    free(p->extra);
    free(p->inside);
    free(p->first);
    free(p->last);
    graph_free(p->g);
}
