/* The checks of every process's start: every kernel once, small. */
#include "native/kernel/self_test_part.h"
#include "native/numerics/random.h"

void self_test_run_elementwise(struct self_test *t, int op)
{
    struct space space = { 2, { 37, 40 } };
    struct view in[3] = { { t->x, { 40, 1 } }, { t->y, { 1, 37 } }, { t->z, { 0, 1 } } };

    elementwise_run(t->pool, (enum elementwise_op)op, KERNEL_F32, &space, in, t->out);
    self_test_keep(t, t->out, 37 * 40);
}

void self_test_run_gemm(struct self_test *t, int form)
{
    for (int turn = 0; turn < 4; turn++) {
        enum { M = 19, N = 53, K = 150 };
        struct gemm gemm = gemm_dense(M, N, K, t->x, turn & 1, t->y, turn >> 1, t->out);

        gemm.form = (enum gemm_form)form;
        gemm.onto = t->z;
        gemm.scale = 0.75f;
        gemm_run(t->pool, &gemm);
        self_test_keep(t, t->out, M * N);
    }
    struct gemm deep = gemm_dense(7, 11, 700, t->x, 0, t->y, 0, t->out);

    deep.form = (enum gemm_form)form;
    deep.onto = t->z;
    deep.scale = -1.5f;
    gemm_run(t->pool, &deep);
    self_test_keep(t, t->out, 7 * 11);
}

void self_test_run_reduce(struct self_test *t, int op)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        const float *weight = weighted ? t->mask : NULL;

        reduce_run(t->pool, (enum reduce_op)op, 7, 131, 1, t->x, weight, t->out);
        self_test_keep(t, t->out, 7);
        reduce_run(t->pool, (enum reduce_op)op, 1, 5000, 1, t->x, weight, t->out);
        self_test_keep(t, t->out, 1);
        reduce_run(t->pool, (enum reduce_op)op, 2, 45, 70, t->x, weight, t->out);
        self_test_keep(t, t->out, 140);
    }
    reduce_argmax(t->pool, 7, 13, 9, t->x, (int32_t *)t->more);
    self_test_keep_bits(t, (int32_t *)t->more, 63);
}

void self_test_run_dot(struct self_test *t, int unused)
{
    (void)unused;
    reduce_dot(t->pool, 5, 333, t->x, 333, t->y, 0, t->out);
    self_test_keep(t, t->out, 5);
}

void self_test_run_softmax(struct self_test *t, int masked)
{
    enum { ROWS = 9, N = 101 };
    const float *mask = masked ? t->mask : NULL;

    softmax_run(t->pool, ROWS, N, t->x, mask, N, t->out);
    self_test_keep(t, t->out, ROWS * N);
    softmax_backward(t->pool, ROWS, N, t->out, t->y, t->more);
    self_test_keep(t, t->more, ROWS * N);
    softmax_log_run(t->pool, ROWS, N, t->x, mask, N, t->out);
    self_test_keep(t, t->out, ROWS * N);
    softmax_log_backward(t->pool, ROWS, N, t->out, t->y, mask, N, t->more);
    self_test_keep(t, t->more, ROWS * N);
}

void self_test_run_logprob(struct self_test *t, int unused)
{
    enum { ROWS = 9, N = 101 };

    (void)unused;
    t->index[3] = -1;
    softmax_logprob(t->pool, ROWS, N, t->x, t->index, t->out, t->more);
    self_test_keep(t, t->out, ROWS);
    self_test_keep(t, t->more, ROWS);
    softmax_entropy(t->pool, ROWS, N, t->x, t->more, t->mask);
    self_test_keep(t, t->mask, ROWS);
    softmax_logprob_backward(t->pool, ROWS, N, t->x, t->index, t->more, t->y, t->out);
    self_test_keep(t, t->out, ROWS * N);
    softmax_entropy_backward(t->pool, ROWS, N, t->x, t->more, t->mask, t->y, t->out);
    self_test_keep(t, t->out, ROWS * N);
}

void self_test_run_norm(struct self_test *t, int layer)
{
    enum { ROWS = 9, N = 101 };

    if (layer) {
        norm_layer(t->pool, ROWS, N, t->x, t->y, t->z, 1e-5f, t->out, t->more, t->more + ROWS);
        self_test_keep(t, t->out, ROWS * N);
        norm_layer_backward(t->pool, ROWS, N, t->x, t->y, t->more, t->more + ROWS, t->z, t->out, t->mask, t->mask + N);
    } else {
        norm_rms(t->pool, ROWS, N, t->x, t->y, 1e-5f, 1.0f, t->out, t->more);
        self_test_keep(t, t->out, ROWS * N);
        norm_rms_backward(t->pool, ROWS, N, t->x, t->y, 1.0f, t->more, t->z, t->out, t->mask);
    }
    self_test_keep(t, t->out, ROWS * N);
    self_test_keep(t, t->mask, layer ? 2 * N : N);
}

void self_test_run_attention(struct self_test *t, int variant)
{
    struct attention at = {
        .batch = 1, .queries = 70, .keys = 70, .heads = 1, .group = 2, .width = 24, .scale = 0.2f, .causal = true
    };
    int32_t segment[70];
    float lse[140], delta[140], *dq = t->x + 4096, *dk = t->y + 4096, *dv = t->z + 4096;

    at.q_group = 24;
    at.q_time = 48;
    at.k_time = 24;
    for (int i = 0; i < 70; i++)
        segment[i] = i / 25;
    if (variant == 1) {
        at.softcap = 3.0f;
        at.window = 30;
    } else if (variant == 2) {
        at.segment_q = at.segment_k = segment;
        at.causal = false;
    }
    attention_run(t->pool, &at, t->x, t->y, t->y + 2000, t->out, lse);
    self_test_keep(t, t->out, 70 * 48);
    self_test_keep(t, lse, 140);
    attention_backward(t->pool, &at, t->x, t->y, t->y + 2000, t->out, lse, t->z, delta, dq, dk, dv);
    self_test_keep(t, dq, 70 * 48);
    self_test_keep(t, dk, 70 * 24);
    self_test_keep(t, dv, 70 * 24);
}

void self_test_run_rope(struct self_test *t, int scaling)
{
    float factors[16];

    for (int i = 0; i < 16; i++)
        factors[i] = 1.0f + 0.3f * (float)i;

    struct rope rope = { .width = 32,
                         .base = 10000.0f,
                         .scaling = (enum rope_scaling)scaling,
                         .factor = 8.0f,
                         .low_factor = 1.0f,
                         .high_factor = 4.0f,
                         .original_length = 64.0f,
                         .attention = 1.2f,
                         .factors = factors,
                         .interleaved = scaling == ROPE_LINEAR };

    rope_frequencies(&rope, t->out);
    self_test_keep(t, t->out, 16);
    for (int i = 0; i < 30; i++)
        t->index[i] *= 1000;
    rope_run(t->pool, &rope, 30, 3, 40, t->index, scaling >= ROPE_LLAMA3, t->x, t->out);
    self_test_keep(t, t->out, 30 * 3 * 40);
}

void self_test_run_gather(struct self_test *t, int unused)
{
    (void)unused;
    gather_rows(t->pool, 60, 33, t->x, t->index, t->out);
    self_test_keep(t, t->out, 60 * 33);
    gather_scatter_add(t->pool, 60, 33, t->y, t->index, t->x);
    self_test_keep(t, t->x, 37 * 33);
    gather_pick(t->pool, 3, 37, 5, t->x, t->index, t->out);
    self_test_keep(t, t->out, 15);
    gather_pick_backward(t->pool, 3, 37, 5, t->index, t->y, t->out);
    self_test_keep(t, t->out, 3 * 37 * 5);
}

void self_test_run_outer(struct self_test *t, int unused)
{
    (void)unused;
    self_test_outer(t, 60, 5, 33);
}

void self_test_run_order(struct self_test *t, int unused)
{
    enum { N = 9, WIDTH = 101 };
    double distance[N * N];

    (void)unused;
    for (size_t i = 0; i < N * WIDTH; i++)
        t->x[i] = i % 3 ? t->x[i] : t->mask[i];
    order_sort(t->pool, N, WIDTH, t->x, t->out);
    self_test_keep(t, t->out, N * WIDTH);
    order_rank(t->pool, N, WIDTH, t->x, (int32_t *)t->more);
    self_test_keep_bits(t, (int32_t *)t->more, N * WIDTH);
    order_median(t->pool, N, WIDTH, t->x, t->mask, t->out);
    self_test_keep(t, t->out, WIDTH);
    order_topk(t->pool, N, WIDTH, 3, t->x, t->out, (int32_t *)t->more);
    self_test_keep(t, t->out, 3 * WIDTH);
    self_test_keep_bits(t, (int32_t *)t->more, 3 * WIDTH);
    order_dist2(t->pool, N, N, WIDTH, t->x, t->y, distance);
    elementwise_cast(t->pool, KERNEL_F64, KERNEL_F32, N * N, distance, t->out);
    self_test_keep(t, t->out, N * N);
}

void self_test_run_storage(struct self_test *t, int unused)
{
    uint16_t *half = (uint16_t *)t->more;

    (void)unused;
    elementwise_to_bf16(t->pool, 2000, t->x, half);
    elementwise_from_bf16(t->pool, 2000, half, t->out);
    self_test_keep(t, t->out, 2000);
    elementwise_to_f16(t->pool, 2000, t->x, half);
    elementwise_from_f16(t->pool, 2000, half, t->out);
    self_test_keep(t, t->out, 2000);
    elementwise_clamp(t->pool, 2000, t->x, -0.5f, 1.5f, t->out);
    self_test_keep(t, t->out, 2000);
}

void self_test_run_random(struct self_test *t, int unused)
{
    (void)unused;
    self_test_keep(t, t->y, 8192);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t counter[4] = { i, 1, 2, 3 }, key[2] = { 4, 5 }, word[4];

        philox_block(counter, key, word);
        self_test_keep_bits(t, (int32_t *)word, 4);
        t->out[i] = random_uniform(word[0]);
    }
    self_test_keep(t, t->out, 1000);
}

void self_test_run_dct(struct self_test *t, int inverse)
{
    static const struct dct shapes[] = {
        { 1, 512, 1, 64, false }, { 48, 36, 12, 9, false }, { 40, 3, 8, 1, false }, { 2, 508, 2, 127, false }
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct dct dct = shapes[i];

        dct.inverse = inverse != 0;
        dct_run(t->pool, &dct, t->x, t->more, t->out);
        self_test_keep(t, t->out, dct.rows * dct.columns);
    }
}

void self_test_run_types(struct self_test *t, int type)
{
    double *wide = self_test_doubles(t->more), *out = self_test_doubles(t->out);
    struct space space = { 1, { 257 } };
    struct view in[2] = { { wide, { 1 } }, { wide, { 0 } } };

    elementwise_cast(t->pool, KERNEL_F32, (enum kernel_type)type, 257, t->x, wide);
    elementwise_run(t->pool, ELEMENTWISE_SUB, (enum kernel_type)type, &space, in, out);
    elementwise_cast(t->pool, (enum kernel_type)type, KERNEL_F32, 257, out, t->z);
    self_test_keep(t, t->z, 257);
}

void self_test_run_cast(struct self_test *t, int unused)
{
    (void)unused;
    elementwise_cast(t->pool, KERNEL_F32, KERNEL_I32, 257, t->x, t->out);
    self_test_keep_bits(t, t->out, 257);
}

void self_test_run_sum_f64(struct self_test *t, int unused)
{
    double *wide = self_test_doubles(t->more), sum;
    float rounded;

    (void)unused;
    elementwise_cast(t->pool, KERNEL_F32, KERNEL_F64, 4099, t->x, wide);
    reduce_sum_f64(t->pool, 1, 4099, wide, &sum);
    rounded = (float)sum;
    self_test_keep(t, &rounded, 1);
}

void self_test_run_rows(struct self_test *t, int unused)
{
    (void)unused;
    if (order_rows(t->pool, 2, 509, t->x, t->out, (int32_t *)t->more)) {
        self_test_keep(t, t->out, 2 * 509);
        self_test_keep_bits(t, t->more, 2 * 509);
    }
}

/* `count` bytes of which every scale (a half precision at each `step`) is finite. */
static const uint8_t *stored_bytes(struct self_test *t, size_t count, size_t step)
{
    uint8_t *bytes = (uint8_t *)t->more;

    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((uint32_t)t->index[i % SELF_TEST_DRAWN] * 7u + i * 13u);
    for (size_t i = 1; step && i < count; i += step)
        bytes[i] &= 0xbf;
    return bytes;
}

void self_test_run_stored(struct self_test *t, int type)
{
    static const size_t steps[STORED_TYPES] = { 2, 2, 34, 18, 20, 4, 33 };
    const uint8_t *bytes = stored_bytes(t, 4096, steps[type]);

    stored_reader((enum stored_type)type)(bytes, 5, 1021, t->out);
    self_test_keep(t, t->out, 1021);
    stored_reader((enum stored_type)type)(bytes, 64, 511, t->out);
    self_test_keep(t, t->out, 511);
}

void self_test_run_chain(struct self_test *t, int unused)
{
    struct gemm chain[3] = { gemm_dense(19, 31, 261, t->x, 0, t->y, 0, t->out), gemm_dense(19, 31, 40, t->y, 1, t->x, 1, t->out),
                             gemm_dense(19, 31, 16, t->z, 0, t->y, 1, t->out) };

    (void)unused;
    chain[0].form = chain[1].form = GEMM_ONTO;
    chain[2].form = GEMM_LOW_RANK;
    chain[0].onto = t->z + 4096;
    chain[2].scale = 0.3f;
    gemm_run_chain(t->pool, chain, 3);
    self_test_keep(t, t->out, 19 * 31);
}
