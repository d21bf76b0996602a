/* order.h, gather.h and pool.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>

#include "native/kernel/class.h"
#include "native/kernel/gather.h"
#include "native/kernel/order.h"
#include "tests/unit/kernel_random.h"

/* Values with many ties and both zeros. */
static float draw_tied(void)
{
    return test_below(3) ? (float)test_below(5) - 2.0f : test_below(2) ? -0.0f : test_ordinary();
}

/* Position of x[i] among the column's n: by value, then by position. */
static size_t rank_of(const float *x, size_t n, size_t width, size_t i, int descending)
{
    size_t before = 0;

    for (size_t j = 0; j < n; j++) {
        float a = x[j * width], b = x[i * width];

        before += descending ? a > b || (a == b && j < i) : a < b || (a == b && j < i);
    }
    return before;
}

static void check(struct pool *pool, size_t n, size_t width)
{
    size_t count = n * width, k = 1 + test_below(n);
    float *x = test_floats(count, draw_tied), *weight = test_floats(count, draw_tied), *out = malloc((count + 1) * 4);
    float *top = malloc((count + 1) * 4), *median = malloc((width + 1) * 4);
    int32_t *rank = malloc((count + 1) * 4), *index = malloc((count + 1) * 4);

    order_sort(pool, n, width, x, out);
    order_rank(pool, n, width, x, rank);
    order_topk(pool, n, width, k, x, top, index);
    for (size_t c = 0; c < width; c++)
        for (size_t i = 0; i < n; i++) {
            size_t r = rank_of(x + c, n, width, i, 0), down = rank_of(x + c, n, width, i, 1);

            assert_int_equal(rank[i * width + c], r);
            assert_true(same_bits(&out[r * width + c], &x[i * width + c], 1));
            if (down < k) {
                assert_true(same_bits(&top[down * width + c], &x[i * width + c], 1));
                assert_int_equal(index[down * width + c], i);
            }
        }
    for (int weighted = 0; weighted < 2; weighted++) {
        order_median(pool, n, width, x, weighted ? weight : NULL, median);
        for (size_t c = 0; c < width; c++) {
            float kept[ORDER_MAX], want = 0;
            size_t m = 0;

            for (size_t r = 0; r < n; r++)
                for (size_t i = 0; i < n; i++)
                    if ((size_t)rank[i * width + c] == r && (!weighted || weight[i * width + c] != 0))
                        kept[m++] = x[i * width + c];
            if (m)
                want = m % 2 ? kept[m / 2] : (kept[m / 2 - 1] + kept[m / 2]) * 0.5f;
            assert_true(same_bits(&want, &median[c], 1));
        }
    }
    order_sort(pool, n, width, x, x); /* in place */
    assert_true(same_bits(x, out, count));
    free(x);
    free(weight);
    free(out);
    free(top);
    free(median);
    free(rank);
    free(index);
}

static void columns_are_ordered_with_ties_by_position(void **state)
{
    static const size_t peers[] = { 1, 2, 3, 4, 7, 16, 33, 64 }, widths[] = { 0, 1, 5, 63, 64, 65, 200 };

    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        struct pool *pool = pool_new(1 + (unsigned)isa);

        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < 7; j++)
                check(pool, peers[i], widths[j]);
        pool_free(pool);
    }
}

static void rows_of_any_length_are_ordered_stably(void **state)
{
    enum { ROWS = 3, N = 1000 };
    float *x = test_floats(ROWS * N, draw_tied), *out = malloc(ROWS * N * 4);
    int32_t *index = malloc(ROWS * N * 4);

    (void)state;
    assert_true(order_rows(NULL, ROWS, N, x, out, index));
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < N; i++) {
            int32_t at = index[r * N + i];

            assert_true(same_bits(&out[r * N + i], &x[r * N + at], 1));
            if (i)
                assert_true(out[r * N + i - 1] < out[r * N + i] ||
                            (out[r * N + i - 1] == out[r * N + i] && index[r * N + i - 1] < at));
        }
    free(x);
    free(out);
    free(index);
}

static void distances_have_the_bits_of_rule_four(void **state)
{
    enum { N = 3, M = 2, WIDTH = 9001 };
    float *x = test_floats(N * WIDTH, test_ordinary), *y = test_floats(M * WIDTH, test_ordinary);
    double out[N * M];

    (void)state;
    for (int isa = 0; isa < KERNEL_ISAS; isa++) {
        if (!kernel_isa_present((enum kernel_isa)isa))
            continue;
        assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
        order_dist2(NULL, N, M, WIDTH, x, y, out);
        for (int i = 0; i < N * M; i++) {
            double total = 0;

            for (int from = 0; from < WIDTH; from += 4096) {
                double lane[32] = { 0 };

                for (int c = from; c < WIDTH && c < from + 4096; c++) {
                    double d = (double)x[i / M * WIDTH + c] - (double)y[i % M * WIDTH + c];
                    lane[c % 32] += d * d;
                }
                for (int w = 16; w; w /= 2)
                    for (int j = 0; j < w; j++)
                        lane[j] += lane[j + w];
                total += lane[0];
            }
            assert_memory_equal(&total, &out[i], sizeof total);
        }
    }
    free(x);
    free(y);
}

static void rows_are_gathered_and_scattered_in_order(void **state)
{
    enum { ROWS = 50, COUNT = 300, WIDTH = 301 };
    float *table = test_floats(ROWS * WIDTH, test_ordinary), *out = malloc(COUNT * WIDTH * 4), *want = malloc(ROWS * WIDTH * 4);
    float *got = malloc(ROWS * WIDTH * 4);
    int32_t index[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        index[i] = (int32_t)test_below(ROWS);
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);

        gather_rows(pool, COUNT, WIDTH, table, index, out);
        memcpy(want, table, ROWS * WIDTH * 4);
        memcpy(got, table, ROWS * WIDTH * 4);
        gather_scatter_add(pool, COUNT, WIDTH, out, index, got);
        for (int i = 0; i < COUNT; i++)
            for (int c = 0; c < WIDTH; c++) {
                assert_true(same_bits(&out[i * WIDTH + c], &table[index[i] * WIDTH + c], 1));
                want[index[i] * WIDTH + c] += out[i * WIDTH + c];
            }
        assert_true(same_bits(want, got, ROWS * WIDTH));
        pool_free(pool);
    }
    assert_int_equal(gather_check(COUNT, index, ROWS), COUNT);
    index[17] = ROWS;
    assert_int_equal(gather_check(COUNT, index, ROWS), 17);
    index[3] = -1;
    assert_int_equal(gather_check(COUNT, index, ROWS), 3);
    free(table);
    free(out);
    free(want);
    free(got);
}

static void outer_products_are_added_in_order(void **state)
{
    enum { TABLES = 7, COUNT = 150, MOST = 131 };
    static const size_t shapes[][2] = { { 1, 1 }, { 3, 5 }, { 4, 16 }, { 65, 64 }, { 9, 67 }, { 31, 131 } };
    float *x = test_floats(COUNT * 2 * MOST, test_ordinary), *y = test_floats(COUNT * MOST, test_ordinary),
          *got = malloc(TABLES * MOST * MOST * 4);
    const float *a[COUNT], *b[COUNT];
    int32_t index[COUNT];
    uint32_t order[COUNT], starts[TABLES + 1];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        index[i] = (int32_t)test_below(TABLES - 1); /* the last one has none */
    gather_sorted(COUNT, index, TABLES, order, starts);
    assert_int_equal(starts[TABLES], COUNT);
    for (int k = 1; k < COUNT; k++)
        assert_true(index[order[k - 1]] < index[order[k]] || (index[order[k - 1]] == index[order[k]] && order[k - 1] < order[k]));
    for (unsigned s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int isa = 0; isa < KERNEL_ISAS; isa++) {
            const size_t rows = shapes[s][0], columns = shapes[s][1];
            struct pool *pool = pool_new(1 + s % 3);

            if (kernel_isa_present((enum kernel_isa)isa))
                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
            for (int i = 0; i < COUNT; i++) {
                a[i] = x + order[i] * 2 * rows;
                b[i] = y + order[i] * columns;
            }
            gather_outer_sums(pool, TABLES, starts, a, 2, rows, b, columns, got);
            for (size_t t = 0; t < TABLES; t++)
                for (size_t r = 0; r < rows; r++)
                    for (size_t c = 0; c < columns; c++) {
                        float want = 0;

                        for (size_t i = 0; i < COUNT; i++)
                            if (index[i] == (int32_t)t) {
                                volatile float product = x[i * 2 * rows + 2 * r] * y[i * columns + c];

                                want += product;
                            }
                        assert_true(same_bits(&want, &got[(t * rows + r) * columns + c], 1));
                    }
            pool_free(pool);
        }
    free(x);
    free(y);
    free(got);
}

static void count_once(void *context, size_t index)
{
    atomic_int *counts = context;

    atomic_fetch_add(&counts[index], 1);
}

static void a_pool_runs_every_task_once(void **state)
{
    enum { TASKS = 500 };

    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct pool *pool = pool_new(threads);

        assert_int_equal(pool_threads(pool), threads);
        for (int round = 0; round < 200; round++) {
            atomic_int counts[TASKS] = { 0 };
            size_t tasks = test_below(round % 2 ? TASKS : 4);

            pool_run(pool, tasks, count_once, counts);
            for (size_t i = 0; i < TASKS; i++)
                assert_int_equal(atomic_load(&counts[i]), i < tasks);
        }
        pool_free(pool);
    }
    pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_ordered_with_ties_by_position), cmocka_unit_test(rows_of_any_length_are_ordered_stably),
        cmocka_unit_test(distances_have_the_bits_of_rule_four),      cmocka_unit_test(rows_are_gathered_and_scattered_in_order),
        cmocka_unit_test(outer_products_are_added_in_order),         cmocka_unit_test(a_pool_runs_every_task_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
