#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "native/kernel/attention.h"
#include "native/kernel/class.h"
#include "tests/unit/kernel_random.h"

struct problem {
    struct attention at;
    float *q, *k, *v, *dy;
    int32_t *segment;
    size_t q_count, k_count, rows;
};

struct answer {
    float *y, *lse, *delta, *dq, *dk, *dv;
};

static struct problem problem_draw(void)
{
    static const size_t lengths[] = { 1, 2, 17, 63, 64, 65, 127, 130, 257 }, widths[] = { 1, 3, 8, 17, 24, 32, 64, 80 };
    struct problem p = { .at = { .batch = 1 + test_below(2), .heads = 1 + test_below(2), .group = 1 + test_below(5) } };
    struct attention *at = &p.at;

    at->width = widths[test_below(8)];
    at->queries = lengths[test_below(9)];
    at->keys = test_below(3) ? at->queries : lengths[test_below(9)];
    at->scale = 1.0f / f32_sqrt((float)at->width);
    at->softcap = test_below(3) ? 0.0f : 2.0f;
    at->causal = test_below(2);
    at->window = test_below(2) ? 0 : 1 + test_below(70);
    at->q_group = (ptrdiff_t)at->width;
    at->q_head = at->q_group * (ptrdiff_t)at->group;
    at->q_time = at->q_head * (ptrdiff_t)at->heads;
    at->q_batch = at->q_time * (ptrdiff_t)at->queries;
    at->k_head = (ptrdiff_t)at->width;
    at->k_time = at->k_head * (ptrdiff_t)at->heads;
    at->k_batch = at->k_time * (ptrdiff_t)at->keys;
    p.q_count = at->batch * (size_t)at->q_batch;
    p.k_count = at->batch * (size_t)at->k_batch;
    p.rows = at->batch * at->heads * at->group * at->queries;
    p.q = test_floats(p.q_count, test_ordinary);
    p.k = test_floats(p.k_count, test_ordinary);
    p.v = test_floats(p.k_count, test_ordinary);
    p.dy = test_floats(p.q_count, test_ordinary);
    p.segment = calloc(at->batch * (at->queries + at->keys) + 1, sizeof *p.segment);
    for (size_t i = 0; i < at->batch * (at->queries + at->keys); i++)
        p.segment[i] = i == 0 ? 1 : p.segment[i - 1] + (test_below(20) == 0);
    if (test_below(3) == 0) {
        at->segment_q = p.segment;
        at->segment_k = at->keys == at->queries ? p.segment : p.segment + at->batch * at->queries;
    }
    return p;
}

static void problem_free(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->dy);
    free(p->segment);
}

static struct answer answer_make(const struct problem *p, struct pool *pool)
{
    struct answer a = { malloc(p->q_count * 4), malloc(p->rows * 4),    malloc(p->rows * 4),
                        malloc(p->q_count * 4), malloc(p->k_count * 4), malloc(p->k_count * 4) };

    attention_run(pool, &p->at, p->q, p->k, p->v, a.y, a.lse);
    attention_backward(pool, &p->at, p->q, p->k, p->v, a.y, a.lse, p->dy, a.delta, a.dq, a.dk, a.dv);
    return a;
}

static void answer_free(struct answer *a)
{
    free(a->y);
    free(a->lse);
    free(a->delta);
    free(a->dq);
    free(a->dk);
    free(a->dv);
}

static void every_version_has_the_bits_of_the_definition(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 7; threads += threads < 3 ? 1 : 4) {
        struct pool *pool = pool_new(threads);

        for (int i = 0; i < 15; i++) {
            struct problem p = problem_draw();

            assert_true(kernel_isa_use(KERNEL_SCALAR, NULL));
            struct answer want = answer_make(&p, pool);

            for (int isa = KERNEL_AVX2; isa < KERNEL_ISAS; isa++) {
                if (!kernel_isa_present((enum kernel_isa)isa))
                    continue;
                assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
                struct answer got = answer_make(&p, pool);

                assert_true(same_bits(want.y, got.y, p.q_count));
                assert_true(same_bits(want.lse, got.lse, p.rows));
                assert_true(same_bits(want.delta, got.delta, p.rows));
                assert_true(same_bits(want.dq, got.dq, p.q_count));
                assert_true(same_bits(want.dk, got.dk, p.k_count));
                assert_true(same_bits(want.dv, got.dv, p.k_count));
                answer_free(&got);
            }
            answer_free(&want);
            problem_free(&p);
        }
        pool_free(pool);
    }
}

/* Softmax attention in binary64, one query; NULL-safe for rows that see nothing. */
static double plain_attention(const struct problem *p, size_t b, size_t h, size_t g, size_t i, size_t d)
{
    const struct attention *at = &p->at;
    double weights = 0, sum = 0;

    for (size_t j = 0; j < at->keys; j++) {
        ptrdiff_t position = (ptrdiff_t)(i + at->keys) - (ptrdiff_t)at->queries, distance = position - (ptrdiff_t)j;
        double s = 0;

        if ((at->causal && distance < 0) || (at->window && llabs(distance) >= (ptrdiff_t)at->window))
            continue;
        if (at->segment_q && at->segment_q[b * at->queries + i] != at->segment_k[b * at->keys + j])
            continue;
        for (size_t c = 0; c < at->width; c++)
            s += (double)p->q[b * (size_t)at->q_batch + i * (size_t)at->q_time + h * (size_t)at->q_head + g * at->width + c] *
                 (double)p->k[b * (size_t)at->k_batch + j * (size_t)at->k_time + h * at->width + c];
        s *= (double)at->scale;
        if (at->softcap != 0)
            s = (double)at->softcap * tanh(s / (double)at->softcap);
        weights += exp(s);
        sum += exp(s) * (double)p->v[b * (size_t)at->k_batch + j * (size_t)at->k_time + h * at->width + d];
    }
    return weights == 0 ? 0 : sum / weights;
}

static void the_definition_is_softmax_attention(void **state)
{
    (void)state;
    assert_true(kernel_isa_use(KERNEL_SCALAR, NULL));
    for (int n = 0; n < 10; n++) {
        struct problem p = problem_draw();
        struct answer a = answer_make(&p, NULL);

        for (int sample = 0; sample < 50; sample++) {
            size_t b = test_below(p.at.batch), h = test_below(p.at.heads), g = test_below(p.at.group),
                   i = test_below(p.at.queries);
            size_t d = test_below(p.at.width);
            float y = a.y[b * (size_t)p.at.q_batch + i * (size_t)p.at.q_time + h * (size_t)p.at.q_head + g * p.at.width + d];

            assert_true(fabs(plain_attention(&p, b, h, g, i, d) - (double)y) < 1e-5);
        }
        answer_free(&a);
        problem_free(&p);
    }
}

static double objective(const struct problem *p)
{
    struct answer a = answer_make(p, NULL);
    double sum = 0;

    for (size_t i = 0; i < p->q_count; i++)
        sum += (double)a.y[i] * (double)p->dy[i];
    answer_free(&a);
    return sum;
}

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    for (int n = 0; n < 8; n++) {
        struct problem p = problem_draw();
        struct answer a = answer_make(&p, NULL);
        float *inputs[3] = { p.q, p.k, p.v }, *gradients[3] = { a.dq, a.dk, a.dv };

        for (int sample = 0; sample < 6; sample++) {
            int which = sample % 3;
            size_t i = test_below(which == 0 ? p.q_count : p.k_count);
            float kept = inputs[which][i], step = 0.02f;

            inputs[which][i] = kept + step;
            double high = objective(&p);
            inputs[which][i] = kept - step;
            double low = objective(&p);
            inputs[which][i] = kept;
            assert_true(fabs((high - low) / (2 * (double)step) - (double)gradients[which][i]) < 0.02);
        }
        answer_free(&a);
        problem_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_is_softmax_attention),
        cmocka_unit_test(gradients_agree_with_differences),
        cmocka_unit_test(every_version_has_the_bits_of_the_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
