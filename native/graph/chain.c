#include "native/graph/chain.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/elementwise.h"

enum { BLOCK = 1024, SHARE = 16384, SLOT_BYTES = BLOCK * 8 };

/* A value that instructions use: a register, or memory. */
enum slot_kind { SLOT_REGISTER, SLOT_SCALAR, SLOT_DIRECT, SLOT_STRIDED, SLOT_WRITTEN };

struct slot {
    enum slot_kind kind;
    uint8_t type;
    uint32_t reg;  /* register, scalar, strided */
    uint32_t base; /* node whose memory it is */
    ptrdiff_t offset;
    ptrdiff_t stride[GRAPH_AXES];
};

struct instruction {
    uint8_t op;     /* enum operator_code */
    uint8_t type;   /* of the operands */
    uint8_t result; /* type */
    uint8_t count;
    uint32_t in[3], out; /* slots */
    double low, high;
};

struct chain {
    unsigned rank;
    uint64_t size[GRAPH_AXES], values;
    struct slot *slots;
    uint32_t slot_count;
    struct instruction *code;
    uint32_t code_count;
    uint32_t registers;
};

/* ---- compiling ---- */

struct compiling {
    const struct graph *g;
    const struct place *places;
    struct chain *c;
    uint32_t *slot_of; /* per position in the chain */
    const uint32_t *nodes;
    uint32_t count;
    uint32_t slot_room, code_room;
};

static uint32_t slot_new(struct compiling *k, struct slot s)
{
    struct chain *c = k->c;
    if (c->slot_count == k->slot_room) {
        k->slot_room = k->slot_room ? 2 * k->slot_room : 32;
        c->slots = realloc(c->slots, k->slot_room * sizeof *c->slots);
        if (!c->slots)
            abort();
    }
    c->slots[c->slot_count] = s;
    return c->slot_count++;
}

static uint32_t emit(struct compiling *k, struct instruction i)
{
    struct chain *c = k->c;
    if (c->code_count == k->code_room) {
        k->code_room = k->code_room ? 2 * k->code_room : 32;
        c->code = realloc(c->code, k->code_room * sizeof *c->code);
        if (!c->code)
            abort();
    }
    c->code[c->code_count++] = i;
    return i.out;
}

/* A node outside the chain, seen with the axes of the chain. */
static uint32_t operand(struct compiling *k, uint32_t id)
{
    const struct graph_node *n = &k->g->nodes[id], *like = &k->g->nodes[k->nodes[0]];
    const struct place *p = &k->places[id];
    struct slot s = { .kind = SLOT_SCALAR, .type = n->type, .base = p->base, .offset = p->offset };
    bool direct = true;
    ptrdiff_t step = 1;
    for (unsigned i = like->rank; i-- > 0;) {
        const int at = graph_axis_find(n, like->axis[i].name);
        s.stride[i] = at < 0 || like->axis[i].size == 1 ? 0 : p->stride[at];
        if (s.stride[i])
            s.kind = SLOT_STRIDED;
        if (like->axis[i].size != 1 && s.stride[i] != step)
            direct = false;
        step *= (ptrdiff_t)like->axis[i].size;
    }
    if (direct)
        s.kind = SLOT_DIRECT;
    for (uint32_t i = 0; i < k->c->slot_count; i++) {
        const struct slot *o = &k->c->slots[i];
        if (o->kind == s.kind && o->kind != SLOT_REGISTER && o->kind != SLOT_WRITTEN && o->base == s.base &&
            o->offset == s.offset && memcmp(o->stride, s.stride, sizeof s.stride) == 0)
            return i;
    }
    return slot_new(k, s);
}

static uint32_t value_of(struct compiling *k, uint32_t id, unsigned type)
{
    uint32_t slot = GRAPH_NONE;
    for (uint32_t i = 0; i < k->count; i++)
        if (k->nodes[i] == id)
            slot = k->slot_of[i];
    if (slot == GRAPH_NONE)
        slot = operand(k, id);
    if (k->c->slots[slot].type == type)
        return slot;
    const uint32_t wide = slot_new(k, (struct slot){ .kind = SLOT_REGISTER, .type = (uint8_t)type });
    return emit(k, (struct instruction){ .op = OPERATOR_CAST,
                                         .type = k->c->slots[slot].type,
                                         .result = (uint8_t)type,
                                         .count = 1,
                                         .in = { slot },
                                         .out = wide });
}

/* The type in which node n computes: that of its result, but for comparisons and casts. */
static unsigned compute_type(const struct graph *g, const struct graph_node *n)
{
    const uint32_t *in = graph_inputs(g, n);
    if (n->op == OPERATOR_CAST)
        return g->nodes[in[0]].type;
    if (operator_table[n->op].flags & OPERATOR_COMPARE)
        return g->nodes[in[0]].type == g->nodes[in[1]].type ? g->nodes[in[0]].type : TENSOR_F64;
    return n->type;
}

static void compile_node(struct compiling *k, uint32_t at, bool kept)
{
    const uint32_t id = k->nodes[at];
    const struct graph_node *n = &k->g->nodes[id];
    const unsigned type = compute_type(k->g, n);
    struct instruction i = { .op = n->op, .type = (uint8_t)type, .result = n->type, .count = (uint8_t)n->input_count };
    for (unsigned j = 0; j < n->input_count; j++)
        i.in[j] = value_of(k, graph_inputs(k->g, n)[j], n->op == OPERATOR_WHERE && j == 0 ? TENSOR_F32 : type);
    if (n->op == OPERATOR_CLAMP) {
        i.low = graph_numbers(k->g, n)[0];
        i.high = graph_numbers(k->g, n)[1];
    }
    i.out = slot_new(k, (struct slot){ .kind = kept ? SLOT_WRITTEN : SLOT_REGISTER, .type = n->type, .base = id });
    k->slot_of[at] = emit(k, i);
}

/* Registers are given by first and last use, so that a long chain keeps few blocks warm. Scalars keep theirs. */
static void registers_given(struct chain *c)
{
    uint32_t *last = calloc(c->slot_count + 1, sizeof *last), *spare = calloc(c->slot_count + 1, sizeof *spare), spares = 0;
    if (!last || !spare)
        abort();
    for (uint32_t i = 0; i < c->code_count; i++)
        for (unsigned j = 0; j < c->code[i].count; j++)
            last[c->code[i].in[j]] = i + 1;
    for (uint32_t s = 0; s < c->slot_count; s++)
        if (c->slots[s].kind == SLOT_SCALAR || c->slots[s].kind == SLOT_STRIDED)
            c->slots[s].reg = c->registers++;
    for (uint32_t i = 0; i < c->code_count; i++) {
        struct slot *out = &c->slots[c->code[i].out];
        if (out->kind == SLOT_REGISTER)
            out->reg = spares ? spare[--spares] : c->registers++;
        for (unsigned j = 0; j < c->code[i].count; j++) {
            const uint32_t s = c->code[i].in[j];
            if (c->slots[s].kind == SLOT_REGISTER && last[s] == i + 1) {
                spare[spares++] = c->slots[s].reg;
                last[s] = 0;
            }
        }
    }
    free(last);
    free(spare);
}

/* Joins axes that every strided operand steps through as one. */
static void axes_joined(struct chain *c)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < c->rank; i++) {
        if (c->size[i] == 1)
            continue;
        bool join = rank > 0;
        for (uint32_t s = 0; s < c->slot_count && join; s++)
            if (c->slots[s].kind == SLOT_STRIDED)
                join = c->slots[s].stride[rank - 1] == c->slots[s].stride[i] * (ptrdiff_t)c->size[i];
        if (!join)
            rank++;
        c->size[rank - 1] = join ? c->size[rank - 1] * c->size[i] : c->size[i];
        for (uint32_t s = 0; s < c->slot_count; s++)
            c->slots[s].stride[rank - 1] = c->slots[s].stride[i];
    }
    c->rank = rank;
}

struct chain *chain_new(const struct graph *g, const struct place *places, const uint32_t *nodes, const bool *kept,
                        uint32_t count)
{
    struct chain *c = calloc(1, sizeof *c);
    uint32_t slot_of[CHAIN_NODES];
    if (!c)
        abort();
    const struct graph_node *like = &g->nodes[nodes[0]];
    c->rank = like->rank;
    c->values = like->values;
    for (unsigned i = 0; i < like->rank; i++)
        c->size[i] = like->axis[i].size;
    memset(slot_of, 0xff, sizeof slot_of);
    struct compiling k = { .g = g, .places = places, .c = c, .slot_of = slot_of, .nodes = nodes, .count = count };
    for (uint32_t i = 0; i < count; i++)
        compile_node(&k, i, kept[i]);
    registers_given(c);
    axes_joined(c);
    return c;
}

void chain_free(struct chain *c)
{
    if (!c)
        return;
    free(c->slots);
    free(c->code);
    free(c);
}

uint32_t chain_slots(const struct chain *c)
{
    return c->slot_count;
}

uint32_t chain_read(const struct chain *c, uint32_t i)
{
    const struct slot *s = &c->slots[i];
    return s->kind == SLOT_REGISTER || s->kind == SLOT_WRITTEN ? GRAPH_NONE : s->base;
}

bool chain_may_replace(const struct chain *c, uint32_t written, uint32_t base)
{
    bool done = false;
    for (uint32_t s = 0; s < c->slot_count; s++)
        if (chain_read(c, s) == base && (c->slots[s].kind != SLOT_DIRECT || c->slots[s].offset != 0))
            return false;
    for (uint32_t i = 0; i < c->code_count; i++) {
        for (unsigned k = 0; k < c->code[i].count; k++)
            if (done && chain_read(c, c->code[i].in[k]) == base)
                return false;
        const struct slot *out = &c->slots[c->code[i].out];
        if (out->kind == SLOT_WRITTEN && out->base == written)
            done = true;
    }
    return true;
}

/* ---- running ---- */

static const uint8_t kernel_op[OPERATOR_CODES] = {
    [OPERATOR_ADD] = ELEMENTWISE_ADD,
    [OPERATOR_SUB] = ELEMENTWISE_SUB,
    [OPERATOR_MUL] = ELEMENTWISE_MUL,
    [OPERATOR_DIV] = ELEMENTWISE_DIV,
    [OPERATOR_POW] = ELEMENTWISE_POW,
    [OPERATOR_MINIMUM] = ELEMENTWISE_MIN,
    [OPERATOR_MAXIMUM] = ELEMENTWISE_MAX,
    [OPERATOR_LT] = ELEMENTWISE_LT,
    [OPERATOR_LE] = ELEMENTWISE_LE,
    [OPERATOR_GT] = ELEMENTWISE_GT,
    [OPERATOR_GE] = ELEMENTWISE_GE,
    [OPERATOR_EQ] = ELEMENTWISE_EQ,
    [OPERATOR_NE] = ELEMENTWISE_NE,
    [OPERATOR_NEG] = ELEMENTWISE_NEG,
    [OPERATOR_ABS] = ELEMENTWISE_ABS,
    [OPERATOR_SIGN] = ELEMENTWISE_SIGN,
    [OPERATOR_SQUARE] = ELEMENTWISE_SQUARE,
    [OPERATOR_SQRT] = ELEMENTWISE_SQRT,
    [OPERATOR_RSQRT] = ELEMENTWISE_RSQRT,
    [OPERATOR_EXP] = ELEMENTWISE_EXP,
    [OPERATOR_LOG] = ELEMENTWISE_LOG,
    [OPERATOR_LOG1P] = ELEMENTWISE_LOG1P,
    [OPERATOR_LOG1MEXP] = ELEMENTWISE_LOG1MEXP,
    [OPERATOR_TANH] = ELEMENTWISE_TANH,
    [OPERATOR_SIGMOID] = ELEMENTWISE_SIGMOID,
    [OPERATOR_LOGSIGMOID] = ELEMENTWISE_LOGSIGMOID,
    [OPERATOR_SOFTPLUS] = ELEMENTWISE_SOFTPLUS,
    [OPERATOR_RELU] = ELEMENTWISE_RELU,
    [OPERATOR_SILU] = ELEMENTWISE_SILU,
    [OPERATOR_GELU] = ELEMENTWISE_GELU,
    [OPERATOR_GELU_TANH] = ELEMENTWISE_GELU_TANH,
    [OPERATOR_SILU_SLOPE] = ELEMENTWISE_SILU_SLOPE,
    [OPERATOR_GELU_SLOPE] = ELEMENTWISE_GELU_SLOPE,
    [OPERATOR_GELU_TANH_SLOPE] = ELEMENTWISE_GELU_TANH_SLOPE,
    [OPERATOR_WHERE] = ELEMENTWISE_WHERE,
};

/* What the kernels offer for f32 only, in binary64 and for integers: same formulas. */
static void run_wide(const struct instruction *i, size_t n, const void *in, void *out)
{
    const double *x = in;
    double *y = out;
    for (size_t k = 0; k < n; k++)
        switch (i->op) {
        case OPERATOR_SIGN:
            y[k] = x[k] > 0 ? 1 : x[k] < 0 ? -1 : 0;
            break;
        case OPERATOR_RSQRT:
            y[k] = 1 / __builtin_sqrt(x[k]);
            break;
        case OPERATOR_RELU:
            y[k] = x[k] > 0 ? x[k] : 0;
            break;
        default: /* clamp */
            y[k] = x[k] < i->low ? i->low : x[k] > i->high ? i->high : x[k];
        }
}

static void run_instruction(const struct instruction *i, size_t n, void *const *at)
{
    const void *x = at[i->in[0]];
    void *out = at[i->out];
    if (i->op == OPERATOR_CAST) {
        elementwise_cast(NULL, (enum kernel_type)i->type, (enum kernel_type)i->result, n, x, out);
    } else if (i->op == OPERATOR_CLAMP && i->type == TENSOR_F32) {
        elementwise_clamp(NULL, n, x, (float)i->low, (float)i->high, out);
    } else if (i->type == TENSOR_F64 &&
               (i->op == OPERATOR_CLAMP || i->op == OPERATOR_SIGN || i->op == OPERATOR_RSQRT || i->op == OPERATOR_RELU)) {
        run_wide(i, n, x, out);
    } else {
        struct view in[3];
        for (unsigned k = 0; k < i->count; k++)
            in[k] = (struct view){ at[i->in[k]], { 1 } };
        const struct space space = { 1, { n } };
        elementwise_run(NULL, (enum elementwise_op)kernel_op[i->op], (enum kernel_type)i->type, &space, in, out);
    }
}

/* Elements `start` to `start + n` of a strided operand into a register. */
static void load(const struct chain *c, const struct slot *s, const void *from, uint64_t start, uint64_t n, void *to)
{
    const size_t bytes = type_bytes(s->type);
    const uint64_t row = c->size[c->rank - 1];
    const ptrdiff_t step = s->stride[c->rank - 1];
    for (uint64_t done = 0; done < n;) {
        uint64_t rest = (start + done) / row;
        const uint64_t column = (start + done) % row, count = row - column < n - done ? row - column : n - done;
        ptrdiff_t at = s->offset + (ptrdiff_t)column * step;
        for (unsigned d = c->rank - 1; d-- > 0;) {
            at += (ptrdiff_t)(rest % c->size[d]) * s->stride[d];
            rest /= c->size[d];
        }
        if (step == 1)
            memcpy((char *)to + done * bytes, (const char *)from + at * (ptrdiff_t)bytes, count * bytes);
        else if (bytes == 4)
            for (uint64_t i = 0; i < count; i++)
                ((uint32_t *)to)[done + i] = ((const uint32_t *)from)[at + (ptrdiff_t)i * step];
        else
            for (uint64_t i = 0; i < count; i++)
                ((uint64_t *)to)[done + i] = ((const uint64_t *)from)[at + (ptrdiff_t)i * step];
        done += count;
    }
}

struct chain_job {
    const struct chain *c;
    void *const *data;
};

static void *slot_at(const struct chain_job *job, const struct slot *s, uint64_t start, char *scratch)
{
    switch (s->kind) {
    case SLOT_DIRECT:
    case SLOT_WRITTEN:
        return (char *)job->data[s->base] + (s->offset + (ptrdiff_t)start) * (ptrdiff_t)type_bytes(s->type);
    default:
        return scratch + (size_t)s->reg * SLOT_BYTES;
    }
}

static void scalar_spread(const struct slot *s, const void *from, uint64_t n, void *to)
{
    if (s->type == TENSOR_F64)
        for (uint64_t i = 0; i < n; i++)
            ((uint64_t *)to)[i] = ((const uint64_t *)from)[s->offset];
    else
        for (uint64_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[s->offset];
}

static void chain_share(void *context, size_t task)
{
    const struct chain_job *job = context;
    const struct chain *c = job->c;
    char *scratch = pool_scratch();
    void *at[8 * CHAIN_NODES];
    const uint64_t begin = task * SHARE, end = c->values - begin < SHARE ? c->values : begin + SHARE;
    for (uint32_t s = 0; s < c->slot_count; s++) {
        at[s] = slot_at(job, &c->slots[s], begin, scratch);
        if (c->slots[s].kind == SLOT_SCALAR)
            scalar_spread(&c->slots[s], job->data[c->slots[s].base], end - begin < BLOCK ? end - begin : BLOCK, at[s]);
    }
    for (uint64_t start = begin; start < end; start += BLOCK) {
        const uint64_t n = end - start < BLOCK ? end - start : BLOCK;
        for (uint32_t s = 0; s < c->slot_count; s++) {
            if (c->slots[s].kind == SLOT_STRIDED)
                load(c, &c->slots[s], job->data[c->slots[s].base], start, n, at[s]);
            else if (c->slots[s].kind != SLOT_SCALAR)
                at[s] = slot_at(job, &c->slots[s], start, scratch);
        }
        for (uint32_t i = 0; i < c->code_count; i++)
            run_instruction(&c->code[i], n, at);
    }
}

void chain_run(const struct chain *c, struct pool *pool, void *const *data)
{
    struct chain_job job = { c, data };
    pool_run(pool, (c->values + SHARE - 1) / SHARE, chain_share, &job);
}
