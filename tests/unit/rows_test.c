/* softmax.h, norm.h and rope.h: every version against the scalar one, the scalar one against plain mathematics in binary64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "native/kernel/class.h"
#include "native/kernel/norm.h"
#include "native/kernel/rope.h"
#include "native/kernel/softmax.h"
#include "tests/unit/kernel_random.h"

enum { OUTPUTS = 20 };

struct inputs {
    size_t rows, n;
    float *x, *dy, *mask, *weight, *bias, *g;
    int32_t *target, *position;
};

static struct inputs inputs_draw(size_t rows, size_t n)
{
    struct inputs in = { rows,
                         n,
                         test_floats(rows * n, test_ordinary),
                         test_floats(rows * n, test_odd),
                         test_floats(rows * n, test_odd),
                         test_floats(n, test_odd),
                         test_floats(n, test_odd),
                         test_floats(rows, test_ordinary),
                         malloc((rows + 1) * 4),
                         malloc((rows + 1) * 4) };

    for (size_t i = 0; i < rows; i++) {
        in.target[i] = (int32_t)test_below(n + 1) - 1;
        in.position[i] = (int32_t)test_below(100000);
    }
    for (size_t i = 0; i < rows * n; i++) {
        in.mask[i] = test_below(3) ? 1.0f : 0.0f;
        in.dy[i] = in.dy[i] * 0x1p-30f; /* no overflow from the large ones */
    }
    return in;
}

static void inputs_free(struct inputs *in)
{
    free(in->x);
    free(in->dy);
    free(in->mask);
    free(in->weight);
    free(in->bias);
    free(in->g);
    free(in->target);
    free(in->position);
}

/* Every function once; all outputs one after the other, each with room for rows * n floats. */
static float *run_all(struct pool *pool, const struct inputs *in)
{
    size_t rows = in->rows, n = in->n, size = rows * n;
    float *all = calloc(OUTPUTS * size + 1, sizeof *all), *o[OUTPUTS];
    float *stat = calloc(6 * rows + 1, sizeof *stat);
    struct rope rope = { .width = n / 2 * 2 > 1024 ? 1024 : n / 2 * 2,
                         .base = 10000,
                         .scaling = ROPE_LLAMA3,
                         .factor = 8,
                         .low_factor = 1,
                         .high_factor = 4,
                         .original_length = 8192 };

    for (int i = 0; i < OUTPUTS; i++)
        o[i] = all + (size_t)i * size;
    softmax_run(pool, rows, n, in->x, NULL, 0, o[0]);
    softmax_run(pool, rows, n, in->x, in->mask, (ptrdiff_t)n, o[1]);
    softmax_log_run(pool, rows, n, in->x, NULL, 0, o[2]);
    softmax_log_run(pool, rows, n, in->x, in->mask, 0, o[3]);
    softmax_backward(pool, rows, n, o[0], in->dy, o[4]);
    softmax_log_backward(pool, rows, n, o[2], in->dy, NULL, 0, o[5]);
    softmax_log_backward(pool, rows, n, o[3], in->dy, in->mask, 0, o[6]);
    softmax_logprob(pool, rows, n, in->x, in->target, stat, stat + rows);
    softmax_logprob_backward(pool, rows, n, in->x, in->target, stat + rows, in->g, o[7]);
    softmax_entropy(pool, rows, n, in->x, stat + rows, stat + 2 * rows);
    softmax_entropy_backward(pool, rows, n, in->x, stat + rows, stat + 2 * rows, in->g, o[8]);
    norm_rms(pool, rows, n, in->x, in->weight, 1e-5f, 1.0f, o[9], stat + 3 * rows);
    norm_rms_backward(pool, rows, n, in->x, in->weight, 1.0f, stat + 3 * rows, in->dy, o[10], o[11]);
    norm_rms(pool, rows, n, in->x, NULL, 1e-5f, 0.0f, o[12], NULL);
    norm_rms_backward(pool, rows, n, in->x, NULL, 0.0f, stat + 3 * rows, in->dy, o[13], NULL);
    norm_layer(pool, rows, n, in->x, in->weight, in->bias, 1e-5f, o[14], stat + 4 * rows, stat + 5 * rows);
    norm_layer_backward(pool, rows, n, in->x, in->weight, stat + 4 * rows, stat + 5 * rows, in->dy, o[15], o[16],
                        o[16] + (rows > 1 ? n : 0));
    rope_run(pool, &rope, rows, 1, n, in->position, false, in->x, o[17]);
    rope.interleaved = true;
    rope_run(pool, &rope, rows, 1, n, in->position, true, in->x, o[18]);
    for (size_t i = 0; i < 6 * rows && i < size; i++)
        o[19][i] = stat[i];
    free(stat);
    return all;
}

static void every_version_has_the_bits_of_the_scalar_one(void **state)
{
    static const size_t lengths[] = { 1, 2, 7, 31, 32, 33, 64, 100, 127, 255, 256, 257, 509, 576, 1021, 4096, 4097, 5000 };

    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        struct inputs in = inputs_draw(1 + test_below(9), lengths[l]);

        assert_true(kernel_isa_use(KERNEL_SCALAR, NULL));
        float *want = run_all(NULL, &in);

        for (int isa = 0; isa < KERNEL_ISAS; isa++)
            for (unsigned threads = 1; threads <= 3 && kernel_isa_present((enum kernel_isa)isa); threads++) {
                struct pool *pool = pool_new(threads);

                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                float *got = run_all(pool, &in);

                for (size_t i = 0; i < OUTPUTS; i++)
                    if (!same_bits(want + i * in.rows * in.n, got + i * in.rows * in.n, in.rows * in.n))
                        fail_msg("output %zu differs, n = %zu, %s", i, in.n, kernel_isa_name((enum kernel_isa)isa));
                free(got);
                pool_free(pool);
            }
        free(want);
        inputs_free(&in);
    }
}

static void the_scalar_one_is_the_mathematics(void **state)
{
    enum { ROWS = 4, N = 50 };
    struct inputs in = inputs_draw(ROWS, N);

    (void)state;
    assert_true(kernel_isa_use(KERNEL_SCALAR, NULL));
    for (int i = 0; i < ROWS * N; i++)
        in.dy[i] = test_ordinary();
    for (int i = 0; i < N; i++)
        in.weight[i] = test_ordinary();

    float *all = run_all(NULL, &in);

    for (int r = 0; r < ROWS; r++) {
        const float *x = in.x + r * N, *dy = in.dy + r * N;
        double sum = 0, square = 0, inner = 0, entropy = 0, dot = 0, g = 0;

        for (int i = 0; i < N; i++) {
            sum += exp((double)x[i]);
            square += (double)x[i] * (double)x[i];
        }
        double rms = 1 / sqrt(square / N + 1e-5);
        for (int i = 0; i < N; i++) {
            double p = exp((double)x[i]) / sum;

            inner += p * (double)dy[i];
            dot += (double)dy[i];
            entropy -= p * log(p);
            g += (double)dy[i] * (1 + (double)in.weight[i]) * (double)x[i];
        }
        for (int i = 0; i < N; i++) {
            double p = exp((double)x[i]) / sum, at = i == in.target[r] ? 1.0 : 0.0;
            size_t j = (size_t)(r * N + i);
            const float *o = all + j;
            size_t step = ROWS * N;

            assert_true(fabs(o[0] - p) < 1e-6);
            assert_true(fabs(o[2 * step] - log(p)) < 1e-5);
            assert_true(fabs(o[4 * step] - p * (dy[i] - inner)) < 1e-6);
            assert_true(fabs(o[5 * step] - (dy[i] - p * dot)) < 1e-5);
            assert_true(fabs(o[7 * step] - (in.target[r] < 0 ? 0 : in.g[r] * (at - p))) < 1e-5);
            assert_true(fabs(o[8 * step] + in.g[r] * p * (log(p) + entropy)) < 1e-5);
            assert_true(fabs(o[9 * step] - x[i] * rms * (1 + (double)in.weight[i])) < 1e-5);
            assert_true(fabs(o[10 * step] - rms * (dy[i] * (1 + (double)in.weight[i]) - x[i] * rms * rms * g / N)) < 1e-4);
        }
    }
    free(all);
    inputs_free(&in);
}

static void a_fully_masked_row_gives_zeros(void **state)
{
    const float x[3] = { 1, 2, NAN }, none[3] = { 0, 0, -0.0f }, zero[3] = { 0, 0, 0 };
    float out[3];

    (void)state;
    softmax_run(NULL, 1, 3, x, none, 0, out);
    assert_true(same_bits(out, zero, 3));
    softmax_log_run(NULL, 1, 3, x, none, 0, out);
    assert_true(same_bits(out, zero, 3));
}

static void rotation_turns_by_the_angle_and_back(void **state)
{
    struct rope rope = { .width = 8, .base = 10000 };
    float x[10], y[10], z[10];
    int32_t position = 12345;

    (void)state;
    for (int i = 0; i < 10; i++)
        x[i] = test_ordinary();
    rope_run(NULL, &rope, 1, 1, 10, &position, false, x, y);
    rope_run(NULL, &rope, 1, 1, 10, &position, true, y, z);
    for (int i = 0; i < 4; i++) {
        double angle = 12345.0 * (double)(float)pow(10000, -i / 4.0);

        assert_true(fabs(y[i] - (x[i] * cos(angle) - x[i + 4] * sin(angle))) < 1e-3);
        assert_true(fabs(y[i + 4] - (x[i + 4] * cos(angle) + x[i] * sin(angle))) < 1e-3);
    }
    for (int i = 0; i < 10; i++)
        assert_true(fabsf(x[i] - z[i]) < 1e-6f);
    assert_true(y[8] == x[8] && y[9] == x[9]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_has_the_bits_of_the_scalar_one),
        cmocka_unit_test(the_scalar_one_is_the_mathematics),
        cmocka_unit_test(a_fully_masked_row_gives_zeros),
        cmocka_unit_test(rotation_turns_by_the_angle_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
