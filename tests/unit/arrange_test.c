/* The executor's own form of a graph gives the bits of the plain one, in less memory. A traced run computes every node as it stands. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/graph/backward.h"
#include "native/graph/execute.h"
#include "native/graph/finite.h"
#include "native/graph/rewrite.h"
#include "native/graph/wire.h"
#include "native/kernel/pool.h"
#include "tests/unit/arranged.h"

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
    assert_non_null(strstr(err.message, "the limit is"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_cheap_and_read_again_much_later_is_computed_again, fresh, done),
        cmocka_unit_test_setup_teardown(tiles_tell_where_two_runs_part, fresh, done),
        cmocka_unit_test_setup_teardown(a_run_ends_before_it_writes_where_an_output_is_not_finite_and_the_fault_is_found, fresh,
                                        done),
        cmocka_unit_test_setup_teardown(a_limit_of_memory_is_kept_by_computing_again_or_refused_with_both_numbers, fresh, done),
        cmocka_unit_test_setup_teardown(memory_is_what_the_plan_says_and_a_run_allocates_nothing, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
