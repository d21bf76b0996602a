/* A two-layer decoder with adapters is built, differentiated, rewritten, optimised and run: the path of a real training step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/graph/plan.h"
#include "native/graph/rewrite.h"
#include "native/graph/wire.h"
#include "native/kernel/pool.h"

struct shape {
    unsigned rows, time, embed, ffn, kv, group, dim, vocab, layers, rank;
};

static struct graph *g;
static struct error err;

static void ok(bool good)
{
    if (!good)
        fail_msg("%s: %s", err.place, err.message);
}

static uint32_t over(enum operator_code op, uint32_t x, uint32_t y, uint32_t z, const char *axes)
{
    uint32_t node;
    ok(graph_over(g, op, x, y, z, axes, &node, &err));
    return node;
}

static uint32_t binary(enum operator_code op, uint32_t x, uint32_t y)
{
    return over(op, x, y, GRAPH_NONE, "");
}
static uint32_t unary(enum operator_code op, uint32_t x)
{
    return over(op, x, GRAPH_NONE, GRAPH_NONE, "");
}

static uint32_t number(double v)
{
    uint32_t node;
    ok(graph_constant(g, TENSOR_F32, v, &node, &err));
    return node;
}

static uint32_t add(enum operator_code op, const uint32_t *in, size_t count, const char *a, const char *b, const double *v,
                    size_t vs, const int64_t *k, size_t ks)
{
    uint32_t node;
    const struct graph_word axes[2] = { { a, 0 }, { b, 0 } };
    ok(graph_add(g,
                 &(struct graph_request){ .op = op,
                                          .inputs = in,
                                          .input_count = count,
                                          .axes = axes,
                                          .axes_count = b ? 2 : 1,
                                          .numbers = v,
                                          .numbers_count = vs,
                                          .integers = k,
                                          .integers_count = ks },
                 &node, &err));
    return node;
}

/* ---- the model ---- */

struct model {
    struct shape s;
    uint32_t trained[64], trained_count;
    bool all; /* train everything; else adapters only */
};

static uint32_t weight(struct model *m, unsigned layer, const char *name, const char *axes, bool trained)
{
    char full[96];
    uint32_t node;
    snprintf(full, sizeof full, "layers.%u.%s", layer, name);
    ok(graph_input(g, full, TENSOR_F32, axes, &node, &err));
    if (trained)
        m->trained[m->trained_count++] = node;
    return node;
}

/* y = x W^T + s (x A^T) B^T over `inp`; out and inp are sized lists, `names` the plain ones. */
static uint32_t linear(struct model *m, unsigned layer, const char *name, uint32_t x, const char *out, const char *inp,
                       const char *inp_names)
{
    char axes[128], full[64];
    snprintf(axes, sizeof axes, "%s %s", out, inp);
    const uint32_t w = weight(m, layer, name, axes, m->all);
    const uint32_t y = over(OPERATOR_DOT, x, w, GRAPH_NONE, inp_names);
    if (m->all)
        return y;
    snprintf(full, sizeof full, "%s.lora_A", name);
    snprintf(axes, sizeof axes, "rank=%u %s", m->s.rank, inp);
    const uint32_t a = weight(m, layer, full, axes, true);
    snprintf(full, sizeof full, "%s.lora_B", name);
    snprintf(axes, sizeof axes, "%s rank=%u", out, m->s.rank);
    const uint32_t b = weight(m, layer, full, axes, true);
    const uint32_t z = over(OPERATOR_DOT, x, a, GRAPH_NONE, inp_names);
    return binary(OPERATOR_ADD, y, binary(OPERATOR_MUL, over(OPERATOR_DOT, z, b, GRAPH_NONE, "rank"), number(2)));
}

static uint32_t norm(struct model *m, unsigned layer, const char *name, uint32_t x)
{
    char axes[32];
    snprintf(axes, sizeof axes, "embed=%u", m->s.embed);
    const uint32_t w = weight(m, layer, name, axes, m->all);
    return add(OPERATOR_RMSNORM, (uint32_t[]){ x, w }, 2, "embed", NULL, (double[]){ 1e-5, 0 }, 2, NULL, 0);
}

static uint32_t block(struct model *m, unsigned l, uint32_t x, uint32_t position, uint32_t segment)
{
    char embed[32], out[32], heads[64], keys[64], ffn[32];
    const struct shape *s = &m->s;
    snprintf(embed, sizeof embed, "embed=%u", s->embed);
    snprintf(out, sizeof out, "embed_out=%u", s->embed);
    snprintf(heads, sizeof heads, "kv=%u group=%u dim=%u", s->kv, s->group, s->dim);
    snprintf(keys, sizeof keys, "kv=%u dim=%u", s->kv, s->dim);
    snprintf(ffn, sizeof ffn, "ffn=%u", s->ffn);
    const uint32_t h = norm(m, l, "n1", x);
    const int64_t rope[4] = { 0 };
    const double base[5] = { 10000 };
    const uint32_t q0 = linear(m, l, "q", h, heads, embed, "embed"), k0 = linear(m, l, "k", h, keys, embed, "embed"),
                   v = linear(m, l, "v", h, keys, embed, "embed");
    const uint32_t q = add(OPERATOR_ROPE, (uint32_t[]){ q0, position }, 2, "dim", NULL, base, 5, rope, 4),
                   k = add(OPERATOR_ROPE, (uint32_t[]){ k0, position }, 2, "dim", NULL, base, 5, rope, 4);
    const uint32_t y = add(OPERATOR_ATTENTION, (uint32_t[]){ q, k, v, segment }, 4, "time", "dim", (double[]){ 0.25, 0 }, 2,
                           (int64_t[]){ 1, 0 }, 2);
    const uint32_t o = linear(m, l, "o", y, embed, heads, "kv group dim");
    x = binary(OPERATOR_ADD, x, o);
    const uint32_t h2 = norm(m, l, "n2", x);
    const uint32_t gate = linear(m, l, "gate", h2, ffn, embed, "embed"), up = linear(m, l, "up", h2, ffn, embed, "embed");
    (void)out;
    return binary(OPERATOR_ADD, x, linear(m, l, "down", binary(OPERATOR_MUL, unary(OPERATOR_SILU, gate), up), embed, ffn, "ffn"));
}

/* Average loss over the tokens, AdamW on what is trained; outputs "loss" and one "name'" a trained tensor. */
static void build(struct model *m)
{
    char axes[64];
    uint32_t ids, targets, position, segment, mask, gradients[64];
    snprintf(axes, sizeof axes, "row=%u time=%u", m->s.rows, m->s.time);
    ok(graph_input(g, "ids", TENSOR_I32, axes, &ids, &err));
    ok(graph_input(g, "targets", TENSOR_I32, axes, &targets, &err));
    ok(graph_input(g, "position", TENSOR_I32, axes, &position, &err));
    ok(graph_input(g, "segment", TENSOR_I32, axes, &segment, &err));
    ok(graph_input(g, "mask", TENSOR_F32, axes, &mask, &err));
    snprintf(axes, sizeof axes, "vocab=%u embed=%u", m->s.vocab, m->s.embed);
    const uint32_t table = weight(m, 99, "embed", axes, m->all);
    uint32_t x = over(OPERATOR_GATHER, table, ids, GRAPH_NONE, "vocab");
    for (unsigned l = 0; l < m->s.layers; l++)
        x = block(m, l, x, position, segment);
    const uint32_t logits = over(OPERATOR_DOT, norm(m, 99, "norm", x), table, GRAPH_NONE, "embed");
    const uint32_t nll = unary(OPERATOR_NEG, over(OPERATOR_TOKEN_LOGPROB, logits, targets, GRAPH_NONE, "vocab"));
    const uint32_t loss = over(OPERATOR_MEAN, nll, mask, GRAPH_NONE, "row time");
    ok(graph_output(g, "loss", loss, &err));
    ok(graph_backward(g, loss, m->trained, m->trained_count, gradients, &err));
    for (uint32_t i = 0; i < m->trained_count; i++) {
        char name[112];
        uint32_t v;
        const struct graph_node n = g->nodes[m->trained[i]];
        struct graph_word words[GRAPH_AXES];
        for (unsigned k = 0; k < n.rank; k++)
            words[k] = (struct graph_word){ g->names[n.axis[k].name], n.axis[k].size };
        snprintf(name, sizeof name, "%s.v", g->names[n.name]);
        ok(graph_add(g,
                     &(struct graph_request){
                         .op = OPERATOR_INPUT, .name = name, .axes = words, .axes_count = n.rank, .type = TENSOR_F32 },
                     &v, &err));
        const uint32_t v2 = binary(OPERATOR_ADD, binary(OPERATOR_MUL, v, number(0.9)),
                                   binary(OPERATOR_MUL, unary(OPERATOR_SQUARE, gradients[i]), number(0.1)));
        const uint32_t step = binary(OPERATOR_DIV, gradients[i], binary(OPERATOR_ADD, unary(OPERATOR_SQRT, v2), number(1e-8)));
        const uint32_t p = binary(OPERATOR_SUB, m->trained[i], binary(OPERATOR_MUL, step, number(2e-3)));
        snprintf(name, sizeof name, "%s'", g->names[n.name]);
        ok(graph_output(g, name, p, &err));
        snprintf(name, sizeof name, "%s.v'", g->names[n.name]);
        ok(graph_output(g, name, v2, &err));
    }
}

/* ---- running ---- */

static double drawn(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*seed >> 40) / (double)(1 << 24);
}

struct run {
    void *bound[256], *outputs[256];
    struct executor_alias aliases[256];
    size_t alias_count;
};

/* Outputs "name'" share the memory of their inputs when `aliased`. */
static void run_init(struct run *r, const struct graph *h, const struct shape *s, bool aliased)
{
    uint64_t seed = 5;
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < h->bound_count; i++) {
        const struct graph_node *n = &h->nodes[h->bound[i]];
        const char *name = h->names[n->name];
        const size_t length = strlen(name);
        r->bound[i] = aligned_alloc(64, (n->values * 4 + 63) / 64 * 64);
        for (uint64_t k = 0; k < n->values; k++) {
            const double u = drawn(&seed);
            if (n->type == TENSOR_I32)
                ((int32_t *)r->bound[i])[k] = strcmp(name, "position") == 0  ? (int32_t)(k % s->time)
                                              : strcmp(name, "segment") == 0 ? 1
                                                                             : (int32_t)(k * 7 % 13 % s->vocab);
            else
                ((float *)r->bound[i])[k] = strcmp(name, "mask") == 0              ? 1
                                            : strcmp(name + length - 2, ".v") == 0 ? 0
                                            : strstr(name, "lora_B")               ? 0
                                            : n->rank == 1                         ? 1
                                                                                   : (float)(u - 0.5);
        }
    }
    for (uint32_t i = 0; i < h->output_count; i++) {
        char name[128];
        uint32_t place;
        snprintf(name, sizeof name, "%s", h->names[h->outputs[i].name]);
        char *mark = strchr(name, '\'');
        if (mark)
            *mark = 0;
        if (mark && aliased) {
            assert_int_not_equal(graph_bound_find(h, name, &place), GRAPH_NONE);
            r->outputs[i] = r->bound[place];
            r->aliases[r->alias_count++] = (struct executor_alias){ i, place };
        } else {
            r->outputs[i] = calloc(h->nodes[h->outputs[i].node].values, 4);
        }
    }
}

static void run_free(struct run *r, const struct graph *h)
{
    for (uint32_t i = 0; i < h->output_count; i++) {
        bool shared = false;
        for (uint32_t k = 0; k < h->bound_count; k++)
            shared = shared || r->bound[k] == r->outputs[i];
        if (!shared)
            free(r->outputs[i]);
    }
    for (uint32_t k = 0; k < h->bound_count; k++)
        free(r->bound[k]);
}

static const struct shape tiny = { 2, 12, 16, 24, 2, 2, 4, 13, 2, 4 };

/* The loss after `steps` steps; it must have fallen to `share` of the first. */
static float trained_loss(const struct graph *h, const struct shape *s, unsigned threads, unsigned steps, float share,
                          struct graph_hash *state)
{
    struct run r;
    struct pool *pool = pool_new(threads);
    run_init(&r, h, s, true);
    struct executor *ex =
        executor_new(h, &(struct executor_options){ .pool = pool, .aliases = r.aliases, .alias_count = r.alias_count }, &err);
    ok(ex != NULL);
    float first = 0;
    for (unsigned i = 0; i < steps; i++) {
        ok(executor_run(ex, (const void *const *)r.bound, r.outputs, NULL, &err));
        if (i == 0)
            first = *(float *)r.outputs[0];
    }
    const float last = *(float *)r.outputs[0];
    memset(state, 0, sizeof *state);
    for (uint32_t k = 0; k < h->bound_count; k++)
        for (uint64_t j = 0; j < h->nodes[h->bound[k]].values; j++)
            for (unsigned b = 0; b < 4; b++)
                state->bytes[(j * 4 + b) % 32] ^= ((uint8_t *)r.bound[k])[j * 4 + b];
    if (!(last < share * first))
        fail_msg("the loss went from %g to %g", first, last);
    executor_free(ex);
    run_free(&r, h);
    pool_free(pool);
    return last;
}

static void trains(bool all)
{
    struct model m = { .s = tiny, .all = all };
    g = graph_new(NULL);
    build(&m);
    struct graph *h = graph_rewrite(g, NULL, &err);
    ok(h != NULL);
    struct graph_hash one, other;
    const float share = all ? 0.5f : 0.95f; /* adapters of a random base can do little */
    const float loss = trained_loss(h, &tiny, 1, 60, share, &one);
    for (unsigned threads = 2; threads <= 3; threads++) {
        assert_true(trained_loss(h, &tiny, threads, 60, share, &other) == loss);
        assert_memory_equal(one.bytes, other.bytes, sizeof one.bytes);
    }
    graph_free(h);
    graph_free(g);
}

static void test_a_decoder_trains_and_threads_change_no_bit(void **state)
{
    (void)state;
    trains(true);
}

static void test_its_adapters_train_with_the_base_frozen(void **state)
{
    (void)state;
    trains(false);
}

static unsigned count_of(const struct graph *h, enum operator_code op)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < h->node_count; i++)
        count += h->nodes[i].op == op;
    return count;
}

static void test_rewriting_makes_chained_products_and_is_idempotent(void **state)
{
    (void)state;
    struct model m = { .s = tiny };
    g = graph_new(NULL);
    build(&m);
    struct graph *h = graph_rewrite(g, NULL, &err), *again = graph_rewrite(h, NULL, &err);
    ok(h && again);
    assert_int_equal(count_of(h, OPERATOR_LOW_RANK), 2 * 7);
    assert_true(count_of(h, OPERATOR_DOT_ONTO) >= 2 * 2); /* both residuals of a layer, and input gradients that meet */
    const struct graph_hash a = graph_hash(h), b = graph_hash(again);
    assert_memory_equal(a.bytes, b.bytes, sizeof a.bytes);
    graph_free(again);
    graph_free(h);
    graph_free(g);
}

/* With memory of its own for every output, and without sharing: the same bits as in place. */
static void test_updating_in_place_changes_no_bit(void **state)
{
    (void)state;
    struct model m = { .s = tiny, .all = true };
    struct run a, b;
    g = graph_new(NULL);
    build(&m);
    run_init(&a, g, &tiny, true);
    run_init(&b, g, &tiny, false);
    struct executor *x = executor_new(g, &(struct executor_options){ .aliases = a.aliases, .alias_count = a.alias_count }, &err);
    struct executor *y = executor_new(g, NULL, &err);
    ok(x && y);
    ok(executor_run(x, (const void *const *)a.bound, a.outputs, NULL, &err));
    ok(executor_run(y, (const void *const *)b.bound, b.outputs, NULL, &err));
    for (uint32_t i = 0; i < g->output_count; i++)
        assert_memory_equal(a.outputs[i], b.outputs[i], g->nodes[g->outputs[i].node].values * 4);
    executor_free(x);
    executor_free(y);
    run_free(&a, g);
    run_free(&b, g);
    graph_free(g);
}

static void test_a_trace_names_the_first_operator_that_differs(void **state)
{
    (void)state;
    struct model m = { .s = tiny };
    struct run r;
    struct trace_hashes t[2];
    uint32_t place;
    g = graph_new(NULL);
    build(&m);
    run_init(&r, g, &tiny, false);
    for (unsigned i = 0; i < 2; i++) {
        trace_hashes_init(&t[i], g);
        struct executor *ex =
            executor_new(g, &(struct executor_options){ .trace = trace_hashes_see, .trace_context = &t[i] }, &err);
        ok(ex != NULL);
        ok(executor_run(ex, (const void *const *)r.bound, r.outputs, NULL, &err));
        executor_free(ex);
        assert_int_not_equal(graph_bound_find(g, "layers.1.n2", &place), GRAPH_NONE);
        ((float *)r.bound[place])[3] += 0.5f;
    }
    const uint32_t first = trace_first_difference(&t[0], &t[1]);
    assert_int_not_equal(first, GRAPH_NONE);
    assert_int_equal(g->nodes[first].op, OPERATOR_RMSNORM);
    for (unsigned i = 0; i < 2; i++)
        trace_hashes_free(&t[i]);
    run_free(&r, g);
    graph_free(g);
}

/* Two values that live at one step share no byte; only one that is made may take the very place of one that is read for the last
 * time. Nor does working memory lie over a value that lives. */
static void test_the_memory_plan_never_overlaps_what_lives(void **state)
{
    (void)state;
    struct model m = { .s = tiny, .all = true };
    struct plan p;
    unsigned shared = 0;
    g = graph_new(NULL);
    build(&m);
    ok(plan_make(&p, graph_compact(g, NULL, &err), NULL, 0, &(struct executor_options){ 0 }, &err));
    for (uint32_t a = 0; a < p.g->node_count; a++)
        for (uint32_t b = 0; b < p.g->node_count && p.storage[a] == STORAGE_ARENA; b++) {
            if (b == a || p.storage[b] != STORAGE_ARENA || p.first[a] > p.last[b] || p.first[b] > p.last[a])
                continue;
            const bool apart = p.offset[a] + plan_bytes(&p, a) <= p.offset[b] || p.offset[b] + plan_bytes(&p, b) <= p.offset[a];
            const bool taken = p.offset[a] == p.offset[b] && plan_bytes(&p, a) == plan_bytes(&p, b) &&
                               (p.last[a] == p.first[b] || p.last[b] == p.first[a]) && p.first[a] != p.first[b];
            shared += taken;
            assert_true(apart || taken);
        }
    for (uint32_t t = 0; t < p.step_count; t++)
        for (uint32_t a = 0; a < p.g->node_count; a++)
            if (p.storage[a] == STORAGE_ARENA && p.first[a] <= t && t <= p.last[a] && p.steps[t].scratch_bytes)
                assert_true(p.offset[a] + plan_bytes(&p, a) <= p.steps[t].scratch ||
                            p.steps[t].scratch + p.steps[t].scratch_bytes <= p.offset[a]);
    assert_true(shared > 0);
    plan_free(&p);
    graph_free(g);
}

/* Timed by hand: RONDO_TIMES=1 training_test. */
static void time_one(const char *what, struct shape s, bool all, unsigned steps)
{
    struct model m = { .s = s, .all = all };
    struct run r;
    struct pool *pool = pool_new(2);
    g = graph_new(NULL);
    build(&m);
    struct graph *h = graph_rewrite(g, NULL, &err);
    ok(h != NULL);
    run_init(&r, h, &s, true);
    struct executor *ex =
        executor_new(h, &(struct executor_options){ .pool = pool, .aliases = r.aliases, .alias_count = r.alias_count }, &err);
    ok(ex != NULL);
    struct timespec a, b;
    ok(executor_run(ex, (const void *const *)r.bound, r.outputs, NULL, &err));
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (unsigned i = 0; i < steps; i++)
        ok(executor_run(ex, (const void *const *)r.bound, r.outputs, NULL, &err));
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double t = ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec)) / steps;
    print_message("%s: %.2f ms a step, %.0f tokens/s, %u nodes, %u steps, %.1f MB, %.2f GFLOP/s\n", what, 1e3 * t,
                  s.rows * s.time / t, h->node_count, executor_steps(ex), 1e-6 * (double)executor_bytes(ex),
                  1e-9 * (double)executor_operations(ex) / t);
    executor_free(ex);
    run_free(&r, h);
    graph_free(h);
    graph_free(g);
    pool_free(pool);
}

static void test_times_of_a_step_are_printed_when_asked(void **state)
{
    (void)state;
    if (!getenv("RONDO_TIMES"))
        skip();
    time_one("tiny, adapters", tiny, false, 200);
    time_one("pocket, adapters", (struct shape){ 2, 256, 128, 384, 2, 2, 32, 512, 4, 16 }, false, 10);
    time_one("pocket, all", (struct shape){ 8, 128, 128, 384, 2, 2, 32, 512, 4, 16 }, true, 10);
    time_one("two layers of SmolLM2", (struct shape){ 1, 256, 576, 1536, 3, 3, 64, 49152, 2, 16 }, false, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_decoder_trains_and_threads_change_no_bit),
        cmocka_unit_test(test_its_adapters_train_with_the_base_frozen),
        cmocka_unit_test(test_rewriting_makes_chained_products_and_is_idempotent),
        cmocka_unit_test(test_updating_in_place_changes_no_bit),
        cmocka_unit_test(test_a_trace_names_the_first_operator_that_differs),
        cmocka_unit_test(test_the_memory_plan_never_overlaps_what_lives),
        cmocka_unit_test(test_times_of_a_step_are_printed_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
