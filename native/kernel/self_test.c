#include "native/kernel/self_test.h"

#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "native/kernel/attention.h"
#include "native/kernel/dct.h"
#include "native/kernel/elementwise.h"
#include "native/kernel/gather.h"
#include "native/kernel/gemm.h"
#include "native/kernel/norm.h"
#include "native/kernel/order.h"
#include "native/kernel/reduce.h"
#include "native/kernel/rope.h"
#include "native/kernel/softmax.h"
#include "native/numerics/random.h"

/* A check's inputs and its running hash. */
struct trial {
    float x[8192], y[8192], z[8192], mask[8192], out[8192], more[8192];
    int32_t index[8192];
    crypto_generichash_state hash;
};

static void keep(struct trial *t, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = x[i] != x[i] ? 0x7fc00000u : f32_bits(x[i]);
        uint8_t bytes[4] = { (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24) };

        crypto_generichash_update(&t->hash, bytes, sizeof bytes);
    }
}

static void keep_index(struct trial *t, const int32_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i];
        uint8_t bytes[4] = { (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24) };

        crypto_generichash_update(&t->hash, bytes, sizeof bytes);
    }
}

/* Normals, scaled up and down, with zeros of both signs and subnormals among them; masks of 0 and 1; indices below 37. */
static void inputs(struct trial *t)
{
    static const uint32_t key[2] = { 0x524f4e44u, 0x4f000001u };

    for (uint32_t i = 0; i < 8192; i++) {
        uint32_t counter[4] = { i, 0, 0, 0 }, word[4];
        float scale = i % 11 == 0 ? 30.0f : i % 13 == 0 ? 0x1p-60f : 1.0f;

        philox_block(counter, key, word);
        t->x[i] = random_normal(word[0]) * scale;
        t->y[i] = random_normal(word[1]);
        t->z[i] = random_normal(word[2]) * scale;
        t->mask[i] = word[3] & 1 ? 1.0f : 0.0f;
        t->index[i] = (int32_t)(word[3] >> 8) % 37;
        t->x[i] = i % 97 == 5 ? 0.0f : i % 97 == 6 ? -0.0f : i % 97 == 7 ? f32_from_bits(word[0] & 0x807fffffu) : t->x[i];
    }
}

static void run_elementwise(struct trial *t, int op)
{
    struct space space = { 2, { 37, 40 } };
    struct view in[3] = { { t->x, { 40, 1 } }, { t->y, { 1, 37 } }, { t->z, { 0, 1 } } };

    elementwise_run(NULL, (enum elementwise_op)op, KERNEL_F32, &space, in, t->out);
    keep(t, t->out, 37 * 40);
}

static void run_gemm(struct trial *t, int form)
{
    for (int turn = 0; turn < 4; turn++) {
        enum { M = 19, N = 53, K = 150 };
        struct gemm gemm = gemm_dense(M, N, K, t->x, turn & 1, t->y, turn >> 1, t->out);

        gemm.form = (enum gemm_form)form;
        gemm.onto = t->z;
        gemm.scale = 0.75f;
        gemm_run(NULL, &gemm);
        keep(t, t->out, M * N);
    }
    struct gemm deep = gemm_dense(7, 11, 700, t->x, 0, t->y, 0, t->out);

    deep.form = (enum gemm_form)form;
    deep.onto = t->z;
    deep.scale = -1.5f;
    gemm_run(NULL, &deep);
    keep(t, t->out, 7 * 11);
}

static void run_reduce(struct trial *t, int op)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        const float *weight = weighted ? t->mask : NULL;

        reduce_run(NULL, (enum reduce_op)op, 7, 131, 1, t->x, weight, t->out);
        keep(t, t->out, 7);
        reduce_run(NULL, (enum reduce_op)op, 1, 5000, 1, t->x, weight, t->out);
        keep(t, t->out, 1);
        reduce_run(NULL, (enum reduce_op)op, 2, 45, 70, t->x, weight, t->out);
        keep(t, t->out, 140);
    }
    reduce_argmax(NULL, 7, 13, 9, t->x, (int32_t *)t->more);
    keep_index(t, (int32_t *)t->more, 63);
}

static void run_dot(struct trial *t, int unused)
{
    (void)unused;
    reduce_dot(NULL, 5, 333, t->x, 333, t->y, 0, t->out);
    keep(t, t->out, 5);
}

static void run_softmax(struct trial *t, int masked)
{
    enum { ROWS = 9, N = 101 };
    const float *mask = masked ? t->mask : NULL;

    softmax_run(NULL, ROWS, N, t->x, mask, N, t->out);
    keep(t, t->out, ROWS * N);
    softmax_backward(NULL, ROWS, N, t->out, t->y, t->more);
    keep(t, t->more, ROWS * N);
    softmax_log_run(NULL, ROWS, N, t->x, mask, N, t->out);
    keep(t, t->out, ROWS * N);
    softmax_log_backward(NULL, ROWS, N, t->out, t->y, mask, N, t->more);
    keep(t, t->more, ROWS * N);
}

static void run_logprob(struct trial *t, int unused)
{
    enum { ROWS = 9, N = 101 };

    (void)unused;
    t->index[3] = -1;
    softmax_logprob(NULL, ROWS, N, t->x, t->index, t->out, t->more);
    keep(t, t->out, ROWS);
    keep(t, t->more, ROWS);
    softmax_entropy(NULL, ROWS, N, t->x, t->more, t->mask);
    keep(t, t->mask, ROWS);
    softmax_logprob_backward(NULL, ROWS, N, t->x, t->index, t->more, t->y, t->out);
    keep(t, t->out, ROWS * N);
    softmax_entropy_backward(NULL, ROWS, N, t->x, t->more, t->mask, t->y, t->out);
    keep(t, t->out, ROWS * N);
}

static void run_norm(struct trial *t, int layer)
{
    enum { ROWS = 9, N = 101 };

    if (layer) {
        norm_layer(NULL, ROWS, N, t->x, t->y, t->z, 1e-5f, t->out, t->more, t->more + ROWS);
        keep(t, t->out, ROWS * N);
        norm_layer_backward(NULL, ROWS, N, t->x, t->y, t->more, t->more + ROWS, t->z, t->out, t->mask, t->mask + N);
    } else {
        norm_rms(NULL, ROWS, N, t->x, t->y, 1e-5f, 1.0f, t->out, t->more);
        keep(t, t->out, ROWS * N);
        norm_rms_backward(NULL, ROWS, N, t->x, t->y, 1.0f, t->more, t->z, t->out, t->mask);
    }
    keep(t, t->out, ROWS * N);
    keep(t, t->mask, layer ? 2 * N : N);
}

static void run_attention(struct trial *t, int variant)
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
    attention_run(NULL, &at, t->x, t->y, t->y + 2000, t->out, lse);
    keep(t, t->out, 70 * 48);
    keep(t, lse, 140);
    attention_backward(NULL, &at, t->x, t->y, t->y + 2000, t->out, lse, t->z, delta, dq, dk, dv);
    keep(t, dq, 70 * 48);
    keep(t, dk, 70 * 24);
    keep(t, dv, 70 * 24);
}

static void run_rope(struct trial *t, int scaling)
{
    struct rope rope = { .width = 32,
                         .base = 10000.0f,
                         .scaling = (enum rope_scaling)scaling,
                         .factor = 8.0f,
                         .low_factor = 1.0f,
                         .high_factor = 4.0f,
                         .original_length = 64.0f,
                         .attention = 1.2f,
                         .interleaved = scaling == ROPE_LINEAR };

    rope_frequencies(&rope, t->out);
    keep(t, t->out, 16);
    for (int i = 0; i < 30; i++)
        t->index[i] *= 1000;
    rope_run(NULL, &rope, 30, 3, 40, t->index, scaling >= ROPE_LLAMA3, t->x, t->out);
    keep(t, t->out, 30 * 3 * 40);
}

static void run_dct(struct trial *t, int inverse)
{
    static const struct dct shapes[] = {
        { 1, 512, 1, 64, false }, { 48, 36, 12, 9, false }, { 40, 3, 8, 1, false }, { 2, 508, 2, 127, false }
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct dct dct = shapes[i];

        dct.inverse = inverse != 0;
        dct_run(NULL, &dct, t->x, t->more, t->out);
        keep(t, t->out, dct.rows * dct.columns);
    }
}

static void run_gather(struct trial *t, int unused)
{
    (void)unused;
    gather_rows(NULL, 60, 33, t->x, t->index, t->out);
    keep(t, t->out, 60 * 33);
    gather_scatter_add(NULL, 60, 33, t->y, t->index, t->x);
    keep(t, t->x, 37 * 33);
    gather_pick(NULL, 3, 37, 5, t->x, t->index, t->out);
    keep(t, t->out, 15);
    gather_pick_backward(NULL, 3, 37, 5, t->index, t->y, t->out);
    keep(t, t->out, 3 * 37 * 5);
}

static void run_order(struct trial *t, int unused)
{
    enum { N = 9, WIDTH = 101 };
    double distance[N * N];

    (void)unused;
    for (size_t i = 0; i < N * WIDTH; i++)
        t->x[i] = i % 3 ? t->x[i] : t->mask[i];
    order_sort(NULL, N, WIDTH, t->x, t->out);
    keep(t, t->out, N * WIDTH);
    order_rank(NULL, N, WIDTH, t->x, (int32_t *)t->more);
    keep_index(t, (int32_t *)t->more, N * WIDTH);
    order_median(NULL, N, WIDTH, t->x, t->mask, t->out);
    keep(t, t->out, WIDTH);
    order_topk(NULL, N, WIDTH, 3, t->x, t->out, (int32_t *)t->more);
    keep(t, t->out, 3 * WIDTH);
    keep_index(t, (int32_t *)t->more, 3 * WIDTH);
    order_dist2(NULL, N, N, WIDTH, t->x, t->y, distance);
    elementwise_cast(NULL, KERNEL_F64, KERNEL_F32, N * N, distance, t->out);
    keep(t, t->out, N * N);
}

static void run_storage(struct trial *t, int unused)
{
    uint16_t *half = (uint16_t *)t->more;

    (void)unused;
    elementwise_to_bf16(NULL, 2000, t->x, half);
    elementwise_from_bf16(NULL, 2000, half, t->out);
    keep(t, t->out, 2000);
    elementwise_to_f16(NULL, 2000, t->x, half);
    elementwise_from_f16(NULL, 2000, half, t->out);
    keep(t, t->out, 2000);
    elementwise_clamp(NULL, 2000, t->x, -0.5f, 1.5f, t->out);
    keep(t, t->out, 2000);
}

static void run_random(struct trial *t, int unused)
{
    (void)unused;
    keep(t, t->y, 8192);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t counter[4] = { i, 1, 2, 3 }, key[2] = { 4, 5 }, word[4];

        philox_block(counter, key, word);
        keep_index(t, (int32_t *)word, 4);
        t->out[i] = random_uniform(word[0]);
    }
    keep(t, t->out, 1000);
}

static const struct {
    const char *name;
    void (*run)(struct trial *t, int parameter);
    int parameter;
    const char *expected;
} checks[] = {
#define CLASS_CHECK(name, function, parameter, hash) { name, run_##function, parameter, hash },
#include "native/kernel/class_table.h"
#undef CLASS_CHECK
};

size_t self_test_count(void)
{
    return sizeof checks / sizeof *checks;
}

const char *self_test_name(size_t index)
{
    return checks[index].name;
}

const char *self_test_expected(size_t index)
{
    return checks[index].expected;
}

void self_test_hash(size_t index, char hash[33])
{
    struct trial *t = pool_scratch();
    uint8_t digest[16];

    /* behind what the kernels themselves put there */
    t = (struct trial *)((char *)t + POOL_SCRATCH / 2);
    _Static_assert(sizeof(struct trial) <= POOL_SCRATCH / 2, "a trial must fit beside the kernels' scratch");
    crypto_generichash_init(&t->hash, NULL, 0, sizeof digest);
    inputs(t);
    checks[index].run(t, checks[index].parameter);
    crypto_generichash_final(&t->hash, digest, sizeof digest);
    sodium_bin2hex(hash, 33, digest, sizeof digest);
}
