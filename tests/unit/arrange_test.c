/* The executor's own form of a graph gives the bits of the plain one, in less memory. A traced run computes every node as it stands. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/graph/arrange.h"
#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/graph/finite.h"
#include "native/graph/rewrite.h"
#include "native/graph/wire.h"
#include "native/kernel/pool.h"

static struct graph *g;
static struct error err;

static int fresh(void **state)
{
    (void)state;
    g = graph_new(NULL);
    err = (struct error){ 0 };
    return 0;
}

static int done(void **state)
{
    (void)state;
    graph_free(g);
    return 0;
}

static void ok(bool good)
{
    if (!good)
        fail_msg("%s: %s", err.place, err.message);
}

static uint32_t input(const char *name, enum tensor_type type, const char *axes)
{
    uint32_t node;
    ok(graph_input(g, name, type, axes, &node, &err));
    return node;
}

static uint32_t over(enum operator_code op, uint32_t x, uint32_t y, const char *axes)
{
    uint32_t node;
    ok(graph_over(g, op, x, y, GRAPH_NONE, axes, &node, &err));
    return node;
}

static uint32_t shifted(uint32_t x, int64_t by)
{
    uint32_t node;
    ok(graph_add(g,
                 &(struct graph_request){ .op = OPERATOR_SHIFT,
                                          .inputs = &x,
                                          .input_count = 1,
                                          .axes = &(struct graph_word){ "time", 0 },
                                          .axes_count = 1,
                                          .integers = &by,
                                          .integers_count = 1 },
                 &node, &err));
    return node;
}

static void ignored(void *context, uint32_t node, const void *bytes, size_t size)
{
    (void)context, (void)node, (void)bytes, (void)size;
}

/* Runs g over `inputs`, plainly (traced) or arranged; outputs are owned by the caller. */
static float **run(const void *const *inputs, bool plain, unsigned threads, uint64_t *bytes)
{
    struct pool *pool = pool_new(threads);
    struct executor *ex = executor_new(g, &(struct executor_options){ .pool = pool, .trace = plain ? ignored : NULL }, &err);
    float **outputs = calloc(g->output_count, sizeof *outputs);
    ok(ex != NULL);
    for (uint32_t i = 0; i < g->output_count; i++)
        outputs[i] = calloc(g->nodes[g->outputs[i].node].values, sizeof(float));
    ok(executor_run(ex, inputs, (void *const *)outputs, NULL, &err));
    *bytes = executor_bytes(ex);
    executor_free(ex);
    pool_free(pool);
    return outputs;
}

static void same_bits(const void *const *inputs, bool less)
{
    uint64_t plain_bytes, bytes;
    float **plain = run(inputs, true, 1, &plain_bytes);
    for (unsigned threads = 1; threads <= 2; threads++) {
        float **arranged = run(inputs, false, threads, &bytes);
        for (uint32_t i = 0; i < g->output_count; i++) {
            assert_memory_equal(plain[i], arranged[i], g->nodes[g->outputs[i].node].values * sizeof(float));
            free(arranged[i]);
        }
        free(arranged);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        free(plain[i]);
    free(plain);
    if (less)
        assert_true(bytes < plain_bytes);
}

static float number(uint32_t i)
{
    i = (i ^ 61) ^ i >> 16;
    i *= 9;
    i ^= i >> 4;
    i *= 0x27d4eb2d;
    return (float)(int32_t)(i ^ i >> 15) * 0x1p-31f;
}

static float *numbers(size_t count, uint32_t seed)
{
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = number(seed + (uint32_t)i);
    return x;
}

static bool has(const struct graph *in, unsigned op)
{
    for (uint32_t i = 0; i < in->node_count; i++)
        if (in->nodes[i].op == op)
            return true;
    return false;
}

enum { ROWS = 3, TIME = 150, EMBED = 20, VOCAB = 70 };

/* -sum of weighted log-probabilities of the next token, and its gradient by h. `seen`: the log-probabilities are an output too. */
static void head_built(bool seen, bool weighted)
{
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logits = over(OPERATOR_DOT, h, table, "embed");
    const uint32_t logprob = shifted(over(OPERATOR_TOKEN_LOGPROB, logits, shifted(ids, -1), "vocab"), 1);
    const uint32_t minus = over(OPERATOR_NEG, logprob, GRAPH_NONE, "");
    const uint32_t loss = weighted ? over(OPERATOR_SUM, minus, weight, "row time")
                                   : over(OPERATOR_SUM, over(OPERATOR_MUL, minus, weight, ""), GRAPH_NONE, "row time");
    uint32_t gradient;
    ok(graph_backward(g, loss, &h, 1, &gradient, &err));
    ok(graph_output(g, "loss", loss, &err));
    ok(graph_output(g, "dh", gradient, &err));
    if (seen)
        ok(graph_output(g, "logprob", logprob, &err));
}

static void head_compared(float share)
{
    float *h = numbers(ROWS * TIME * EMBED, 1), *table = numbers(VOCAB * EMBED, 99), *weight = numbers(ROWS * TIME, 7);
    int32_t *ids = malloc(ROWS * TIME * sizeof *ids);
    for (uint32_t i = 0; i < ROWS * TIME; i++) {
        ids[i] = (int32_t)((i * 2654435761u) >> 8) % VOCAB;
        ids[i] = ids[i] < 0 ? -ids[i] : ids[i];
        if (number(1000 + i) >= share)
            weight[i] = i % 2 ? 0.0f : -0.0f;
    }
    same_bits((const void *[]){ h, table, ids, weight }, true);
    free(h);
    free(table);
    free(weight);
    free(ids);
}

static void a_head_in_tiles_gives_the_bits_of_whole_logits(void **state)
{
    (void)state;
    uint32_t *from;
    head_built(false, true);
    struct graph *arranged = arrange_heads(g, false, &from, &err);
    ok(arranged != NULL);
    assert_true(has(arranged, OPERATOR_HEAD));
    assert_false(has(arranged, OPERATOR_TOKEN_LOGPROB));
    graph_free(arranged);
    free(from);
    for (int i = 0; i < 5; i++)
        head_compared((float[]){ 2.0f, 0.5f, -0.5f, -0.98f, -2.0f }[i]);
}

static void log_probabilities_that_are_read_otherwise_are_all_there(void **state)
{
    (void)state;
    head_built(true, true);
    head_compared(-0.5f);
}

static void a_product_with_weights_reads_every_log_probability(void **state)
{
    (void)state;
    head_built(false, false);
    head_compared(-0.5f);
}

/* Whether arranging leaves no whole logits, and how many heads there are. */
static void heads_counted(bool tied, uint32_t heads)
{
    uint32_t *from, count = 0;
    struct graph *arranged = arrange_heads(g, tied, &from, &err);
    ok(arranged != NULL);
    for (uint32_t i = 0; i < arranged->node_count; i++)
        count += arranged->nodes[i].op == OPERATOR_HEAD;
    assert_int_equal(count, heads);
    assert_true(has(arranged, OPERATOR_TOKEN_LOGPROB) == (heads == 0));
    graph_free(arranged);
    free(from);
}

static void a_gradient_that_depends_on_the_log_probabilities_has_a_head_of_its_own(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        uint32_t gradients[2];
        if (trained) {
            graph_free(g);
            fresh(NULL);
        }
        const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"),
                       table = input("table", TENSOR_F32, "vocab=70 embed=20");
        const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
        const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, over(OPERATOR_DOT, h, table, "embed"), ids, "vocab");
        const uint32_t square = over(OPERATOR_MUL, over(OPERATOR_SQUARE, logprob, GRAPH_NONE, ""), weight, "");
        const uint32_t loss = over(OPERATOR_SUM, square, GRAPH_NONE, "row time");
        ok(graph_backward(g, loss, (const uint32_t[]){ h, table }, trained ? 2 : 1, gradients, &err));
        ok(graph_output(g, "dh", gradients[0], &err) && graph_output(g, "loss", loss, &err));
        if (trained)
            ok(graph_output(g, "dE", gradients[1], &err));
        heads_counted(false, 2);
        head_compared(2.0f);
        head_compared(-0.5f);
        head_compared(-2.0f);
    }
}

static void the_gradient_of_a_trained_table_is_summed_in_tiles(void **state)
{
    (void)state;
    uint32_t gradients[2];
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150"), weight = input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, over(OPERATOR_DOT, h, table, "embed"), ids, "vocab");
    const uint32_t loss = over(OPERATOR_SUM, logprob, weight, "row time");
    ok(graph_backward(g, loss, (const uint32_t[]){ h, table }, 2, gradients, &err));
    ok(graph_output(g, "dh", gradients[0], &err) && graph_output(g, "dE", gradients[1], &err));
    ok(graph_output(g, "loss", loss, &err));
    heads_counted(false, 1);
    for (int i = 0; i < 5; i++)
        head_compared((float[]){ 2.0f, 0.5f, -0.5f, -0.98f, -2.0f }[i]);
}

static void a_head_without_gradient_gives_log_probabilities_and_the_likeliest_token(void **state)
{
    (void)state;
    const uint32_t h = input("h", TENSOR_F32, "row=3 time=150 embed=20"), table = input("table", TENSOR_F32, "vocab=70 embed=20");
    const uint32_t ids = input("ids", TENSOR_I32, "row=3 time=150");
    input("weight", TENSOR_F32, "row=3 time=150");
    const uint32_t logits = over(OPERATOR_DOT, h, table, "embed");
    ok(graph_output(g, "logprob", over(OPERATOR_TOKEN_LOGPROB, logits, ids, "vocab"), &err));
    ok(graph_output(g, "best", over(OPERATOR_ARGMAX, logits, GRAPH_NONE, "vocab"), &err));
    heads_counted(false, 1);
    head_compared(2.0f);
}

/* A table that is looked up, too: the gradient of the head goes on from that of the lookup, which comes last. */
static void a_tied_head_is_computed_again_under_a_limit_of_memory(void **state)
{
    (void)state;
    uint32_t gradient, looked;
    const uint32_t table = input("table", TENSOR_F32, "vocab=700 embed=20"), ids = input("ids", TENSOR_I32, "time=300");
    ok(graph_over(g, OPERATOR_GATHER, table, ids, GRAPH_NONE, "vocab", &looked, &err));
    const uint32_t h = over(OPERATOR_SILU, looked, GRAPH_NONE, "");
    const uint32_t logprob = over(OPERATOR_TOKEN_LOGPROB, over(OPERATOR_DOT, h, table, "embed"), ids, "vocab");
    const uint32_t loss = over(OPERATOR_SUM, logprob, GRAPH_NONE, "time");
    ok(graph_backward(g, loss, &table, 1, &gradient, &err));
    ok(graph_output(g, "dE", gradient, &err));
    struct graph *canonical = graph_rewrite(g, NULL, &err);
    ok(canonical != NULL);
    graph_free(g);
    g = canonical;
    heads_counted(false, 0);
    heads_counted(true, 2);
    float *values = numbers(700 * 20, 3), *whole = calloc(700 * 20, sizeof *whole), *tiled = calloc(700 * 20, sizeof *tiled);
    int32_t *tokens = malloc(300 * sizeof *tokens);
    for (int32_t i = 0; i < 300; i++)
        tokens[i] = i * 37 % 700;
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex && executor_run(ex, (const void *[]){ values, tokens }, (void *[]){ whole }, NULL, &err));
    const uint64_t bytes = executor_bytes(ex);
    executor_free(ex);
    ex = executor_new(g, &(struct executor_options){ .memory = bytes - 4096 }, &err);
    ok(ex && executor_run(ex, (const void *[]){ values, tokens }, (void *[]){ tiled }, NULL, &err));
    assert_true(executor_bytes(ex) <= bytes - 4096);
    executor_free(ex);
    assert_memory_equal(whole, tiled, 700 * 20 * sizeof *whole);
    free(values);
    free(whole);
    free(tiled);
    free(tokens);
}

static void what_is_cheap_and_read_again_much_later_is_computed_again(void **state)
{
    (void)state;
    const uint32_t x = input("x", TENSOR_F32, "row=64 time=512"), y = over(OPERATOR_SILU, x, GRAPH_NONE, "");
    uint32_t total = over(OPERATOR_SUM, y, GRAPH_NONE, "row");
    for (int i = 0; i < 150; i++)
        total = over(OPERATOR_SUM, over(OPERATOR_MUL, x, total, ""), GRAPH_NONE, "row");
    const uint32_t late = over(OPERATOR_MUL, y, total, "");
    ok(graph_output(g, "total", over(OPERATOR_SUM, late, GRAPH_NONE, "row"), &err));
    float *a = numbers(64 * 512, 5);
    same_bits((const void *[]){ a }, true);
    free(a);
}

/* ---- tiles ---- */

struct tiles {
    struct graph_hash *hash;
    uint32_t *node;
    size_t count;
};

static void tiles_kept(void *context, uint32_t node, const struct graph_hash *tiles, uint64_t count)
{
    struct tiles *t = context;
    t->hash = realloc(t->hash, (t->count + count) * sizeof *t->hash);
    t->node = realloc(t->node, (t->count + count) * sizeof *t->node);
    for (uint64_t i = 0; i < count; i++) {
        t->hash[t->count] = tiles[i];
        t->node[t->count++] = node;
    }
}

static struct tiles tiles_of(const void *const *inputs, unsigned threads)
{
    struct pool *pool = pool_new(threads);
    struct tiles t = { 0 };
    struct executor *ex =
        executor_new(g, &(struct executor_options){ .pool = pool, .tiles = tiles_kept, .tiles_context = &t }, &err);
    float *out[2] = { malloc(300 * 400 * sizeof(float)), malloc(300 * 400 * sizeof(float)) };
    ok(ex != NULL);
    ok(executor_run(ex, inputs, (void *const *)out, NULL, &err));
    executor_free(ex);
    pool_free(pool);
    free(out[0]);
    free(out[1]);
    return t;
}

static void tiles_tell_where_two_runs_part(void **state)
{
    (void)state;
    enum { PART = 230 * 400 + 7 }; /* an element of the last but one tile */
    const uint32_t x = input("x", TENSOR_F32, "row=300 time=400"), y = over(OPERATOR_SUM, x, GRAPH_NONE, "time");
    const uint32_t z = over(OPERATOR_MUL, x, y, "");
    ok(graph_output(g, "z", z, &err));
    ok(graph_output(g, "y", y, &err));
    float *a = numbers(300 * 400, 9);
    struct tiles first = tiles_of((const void *[]){ a }, 1), second = tiles_of((const void *[]){ a }, 2);
    assert_int_equal(first.count, 1 + 8); /* 1200 and 480000 bytes */
    assert_int_equal(second.count, first.count);
    assert_memory_equal(first.hash, second.hash, first.count * sizeof *first.hash);
    a[PART] = -a[PART];
    a[PART + 1] = -a[PART + 1];
    struct tiles other = tiles_of((const void *[]){ a }, 2);
    size_t differ = 0;
    for (size_t i = 0; i < first.count; i++)
        if (first.node[i] == z && memcmp(&first.hash[i], &other.hash[i], sizeof *first.hash) != 0) {
            assert_int_equal(i, 1 + PART * sizeof(float) / TRACE_TILE);
            differ++;
        }
    assert_int_equal(differ, 1);
    free(a);
    for (int i = 0; i < 3; i++) {
        struct tiles *t = (struct tiles *[]){ &first, &second, &other }[i];
        free(t->hash);
        free(t->node);
    }
}

static void a_run_ends_before_it_writes_where_an_output_is_not_finite_and_the_fault_is_found(void **state)
{
    (void)state;
    uint32_t weight, loss, next, place;
    const uint32_t x = input("x", TENSOR_F32, "n=50");
    ok(graph_add(g,
                 &(struct graph_request){ .op = OPERATOR_PARAMETER,
                                          .axes = &(struct graph_word){ "n", 50 },
                                          .axes_count = 1,
                                          .numbers = (double[]){ 0 },
                                          .numbers_count = 1,
                                          .integers = (int64_t[]){ PARAMETER_VECTOR, -1, PARAMETER_PLAIN, 0, PARAMETER_FILL },
                                          .integers_count = 5,
                                          .name = "weight" },
                 &weight, &err));
    const uint32_t product = over(OPERATOR_MUL, x, weight, ""), root = over(OPERATOR_SQRT, product, GRAPH_NONE, "");
    loss = over(OPERATOR_SUM, root, GRAPH_NONE, "n");
    next = over(OPERATOR_SUB, weight, loss, "");
    ok(graph_output(g, "loss", loss, &err) && graph_output(g, "p.weight", next, &err));
    assert_int_equal(graph_bound_find(g, "weight", &place), weight);
    float *values = numbers(50, 3), *weights = numbers(50, 4), before[50], got;
    for (int i = 0; i < 50; i++) {
        values[i] = values[i] < 0 ? -values[i] : values[i];
        weights[i] = weights[i] < 0 ? -weights[i] : weights[i];
    }
    weights[17] = -0.5f;
    memcpy(before, weights, sizeof before);
    struct executor *ex = executor_new(
        g,
        &(struct executor_options){
            .aliases = &(struct executor_alias){ 1, place }, .alias_count = 1, .finite = (uint32_t[]){ 0 }, .finite_count = 1 },
        &err);
    ok(ex != NULL);
    assert_false(executor_run(ex, (const void *[]){ values, weights }, (void *[]){ &got, weights }, NULL, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);
    assert_memory_equal(before, weights, sizeof before);
    assert_int_equal(finite_first_fault(g, NULL, NULL, (const void *[]){ values, weights }, NULL), root);
    assert_int_equal(finite_nearest_parameter(g, root), weight);
    weights[17] = 0.5f;
    assert_true(executor_run(ex, (const void *[]){ values, weights }, (void *[]){ &got, weights }, NULL, &err));
    assert_int_equal(finite_first_fault(g, NULL, NULL, (const void *[]){ values, before }, NULL), root);
    executor_free(ex);
    free(values);
    free(weights);
}

/* Six layers, each a product that the other end of the graph reads again. */
static void products_built(void)
{
    uint32_t x = input("x", TENSOR_F32, "row=256 time=64"), last[6], total = GRAPH_NONE;
    const uint32_t weight = input("weight", TENSOR_F32, "out=64 time=64"), small = input("small", TENSOR_F32, "time=64");
    for (int layer = 0; layer < 6; layer++) {
        const uint32_t y = over(OPERATOR_DOT, x, weight, "time");
        last[layer] = y;
        uint32_t sum = over(OPERATOR_SUM, y, GRAPH_NONE, "row out");
        for (int i = 0; i < 60; i++)
            sum = over(OPERATOR_SUM, over(OPERATOR_MUL, small, sum, ""), GRAPH_NONE, "time");
        x = over(OPERATOR_ADD, x, sum, "");
    }
    for (int layer = 6; layer-- > 0;) {
        const uint32_t part = over(OPERATOR_SUM, over(OPERATOR_DOT, last[layer], weight, "out"), GRAPH_NONE, "row");
        total = total == GRAPH_NONE ? part : over(OPERATOR_ADD, total, part, "");
    }
    ok(graph_output(g, "total", total, &err));
}

static void a_limit_of_memory_is_kept_by_computing_again_or_refused_with_both_numbers(void **state)
{
    (void)state;
    float *x = numbers(256 * 64, 1), *weight = numbers(64 * 64, 2), *small = numbers(64, 3), want[64], got[64];
    const void *inputs[] = { x, weight, small };
    uint64_t unlimited, least = 0;
    products_built();
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex != NULL);
    ok(executor_run(ex, inputs, (void *[]){ want }, NULL, &err));
    unlimited = executor_bytes(ex);
    executor_free(ex);
    for (uint64_t limit = unlimited; limit > 0; limit -= limit < 40000 ? limit : 40000) {
        err = (struct error){ 0 };
        ex = executor_new(g, &(struct executor_options){ .memory = limit }, &err);
        if (!ex)
            break;
        assert_true(executor_bytes(ex) <= limit);
        least = executor_bytes(ex);
        ok(executor_run(ex, inputs, (void *[]){ got }, NULL, &err));
        assert_memory_equal(want, got, sizeof want);
        executor_free(ex);
    }
    assert_int_equal(err.code, ERROR_LIMIT);
    assert_non_null(strstr(err.message, "bytes, the limit is"));
    assert_true(least < unlimited * 2 / 3);
    free(x);
    free(weight);
    free(small);
}

/* Bytes of all mappings of this process, and those that malloc has. */
static uint64_t mapped_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &pages), 1);
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t allocated_bytes(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.arena + m.hblkhd;
}

static void memory_is_what_the_plan_says_and_a_run_allocates_nothing(void **state)
{
    (void)state;
    if (allocated_bytes() == 0)
        skip(); /* another allocator: the sanitizer's */
    float *x = numbers(256 * 64, 1), *weight = numbers(64 * 64, 2), *small = numbers(64, 3), got[64];
    products_built();
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    mapped_bytes(); /* the first reads a file's buffer into being */
    const uint64_t mapped = mapped_bytes(), allocated = allocated_bytes();
    struct executor *ex = executor_new(g, NULL, &err);
    ok(ex != NULL);
    const uint64_t plan = (executor_bytes(ex) + 64 + page - 1) / page * page;
    assert_int_equal(mapped_bytes() - mapped - (allocated_bytes() - allocated), plan);
    ok(executor_run(ex, (const void *[]){ x, weight, small }, (void *[]){ got }, NULL, &err)); /* a thread's scratch comes once */
    const struct mallinfo2 before = mallinfo2();
    const uint64_t full = mapped_bytes();
    ok(executor_run(ex, (const void *[]){ x, weight, small }, (void *[]){ got }, NULL, &err));
    const struct mallinfo2 after = mallinfo2();
    assert_int_equal(before.uordblks, after.uordblks);
    assert_int_equal(mapped_bytes(), full);
    executor_free(ex);
    free(x);
    free(weight);
    free(small);
}

static void an_internal_operator_is_not_taken_from_the_wire(void **state)
{
    (void)state;
    enum operator_code code;
    struct buffer bytes = { 0 };
    uint32_t *from;
    assert_false(operator_find("head", &code));
    head_built(false, true);
    struct graph *arranged = arrange_heads(g, false, &from, &err);
    ok(arranged != NULL);
    graph_encode(arranged, false, &bytes);
    assert_null(graph_decode(bytes.bytes, bytes.size, NULL, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    buffer_free(&bytes);
    graph_free(arranged);
    free(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_head_in_tiles_gives_the_bits_of_whole_logits, fresh, done),
        cmocka_unit_test_setup_teardown(log_probabilities_that_are_read_otherwise_are_all_there, fresh, done),
        cmocka_unit_test_setup_teardown(a_product_with_weights_reads_every_log_probability, fresh, done),
        cmocka_unit_test_setup_teardown(a_gradient_that_depends_on_the_log_probabilities_has_a_head_of_its_own, fresh, done),
        cmocka_unit_test_setup_teardown(the_gradient_of_a_trained_table_is_summed_in_tiles, fresh, done),
        cmocka_unit_test_setup_teardown(a_head_without_gradient_gives_log_probabilities_and_the_likeliest_token, fresh, done),
        cmocka_unit_test_setup_teardown(a_tied_head_is_computed_again_under_a_limit_of_memory, fresh, done),
        cmocka_unit_test_setup_teardown(what_is_cheap_and_read_again_much_later_is_computed_again, fresh, done),
        cmocka_unit_test_setup_teardown(tiles_tell_where_two_runs_part, fresh, done),
        cmocka_unit_test_setup_teardown(a_run_ends_before_it_writes_where_an_output_is_not_finite_and_the_fault_is_found, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(a_limit_of_memory_is_kept_by_computing_again_or_refused_with_both_numbers, fresh, done),
        cmocka_unit_test_setup_teardown(memory_is_what_the_plan_says_and_a_run_allocates_nothing, fresh, done),
        cmocka_unit_test_setup_teardown(an_internal_operator_is_not_taken_from_the_wire, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
