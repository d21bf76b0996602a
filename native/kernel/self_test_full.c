/* The checks of the doctor and the cross check: shapes and numbers at which versions of a kernel come apart. */
#include "native/kernel/self_test_part.h"
#include "native/numerics/random.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Lengths around lanes, registers, chunks and blocks. */
static const size_t lengths[] = { 0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 509, 1021, 4096, 4099 };

/* Operators that move numbers and leave their bits, NaN too. */
static bool moves(enum elementwise_op op)
{
    return op == ELEMENTWISE_COPY || op == ELEMENTWISE_NEG || op == ELEMENTWISE_ABS || op == ELEMENTWISE_WHERE ||
           op == ELEMENTWISE_MIN || op == ELEMENTWISE_MAX;
}

static void elementwise_space(struct self_test *t, enum elementwise_op op, struct space space, const struct view in[3])
{
    elementwise_run(t->pool, op, KERNEL_F32, &space, in, t->out);
    if (moves(op))
        self_test_keep_bits(t, t->out, space_count(&space));
    else
        self_test_keep(t, t->out, space_count(&space));
}

void self_test_full_elementwise(struct self_test *t, int op)
{
    struct view plain[3] = { { t->x, { 1 } }, { t->y, { 1 } }, { t->z, { 1 } } };
    struct view strided[3] = { { t->x, { 1, 17 * 5, 17 } }, { t->y, { 0, 1, 13 } }, { t->z, { 29, 0, 0 } } };

    for (int wild = 0; wild < 2; wild++) {
        for (size_t i = 0; i < COUNT(lengths) - 1; i++)
            elementwise_space(t, (enum elementwise_op)op, (struct space){ 1, { lengths[i] } }, plain);
        elementwise_space(t, (enum elementwise_op)op, (struct space){ 3, { 17, 13, 5 } }, strided);
        elementwise_space(t, (enum elementwise_op)op, (struct space){ 0 }, plain);
        self_test_make_wild(t, 2);
    }
}

void self_test_full_types(struct self_test *t, int type)
{
    double *wide = self_test_doubles(t->more), *out = self_test_doubles(t->out);
    int32_t *whole = (int32_t *)wide;
    struct space space = { 2, { 31, 33 } };
    struct view in[3] = { { wide, { 33, 1 } }, { wide, { 1, 31 } }, { wide, { 0, 1 } } };

    elementwise_cast(t->pool, KERNEL_F32, KERNEL_F64, 2048, t->x, wide);
    for (size_t i = 0; i < 2048 && type == KERNEL_I32; i++)
        whole[i] = (int32_t)((uint32_t)t->index[i] * 123456789u - (uint32_t)t->index[i + 1]);
    for (int op = 0; op < ELEMENTWISE_OPS; op++) {
        bool compares = op >= ELEMENTWISE_LT && op <= ELEMENTWISE_NE, where = op == ELEMENTWISE_WHERE;

        if (!elementwise_offered((enum elementwise_op)op, (enum kernel_type)type))
            continue;
        in[0].data = where ? (void *)t->mask : wide;
        elementwise_run(t->pool, (enum elementwise_op)op, (enum kernel_type)type, &space, in, out);
        if (type == KERNEL_F64 && !compares)
            elementwise_cast(t->pool, KERNEL_F64, KERNEL_F32, 31 * 33, out, t->z);
        if (type == KERNEL_F64 && !compares)
            self_test_keep(t, t->z, 31 * 33);
        else
            self_test_keep_bits(t, out, 31 * 33);
    }
}

void self_test_full_cast(struct self_test *t, int unused)
{
    double *wide = self_test_doubles(t->more);

    (void)unused;
    self_test_make_wild(t, 2);
    elementwise_cast(t->pool, KERNEL_F32, KERNEL_I32, 1021, t->x, t->out);
    self_test_keep_bits(t, t->out, 1021);
    elementwise_cast(t->pool, KERNEL_I32, KERNEL_F32, 1021, t->out, t->y);
    self_test_keep(t, t->y, 1021);
    elementwise_cast(t->pool, KERNEL_F32, KERNEL_F64, 1021, t->z, wide);
    for (size_t i = 0; i < 1021; i++)
        wide[i] *= 1.0 + (double)i * 0x1p-27;
    elementwise_cast(t->pool, KERNEL_F64, KERNEL_F32, 1021, wide, t->out);
    self_test_keep(t, t->out, 1021);
    elementwise_cast(t->pool, KERNEL_F64, KERNEL_I32, 1021, wide, t->out);
    self_test_keep_bits(t, t->out, 1021);
}

static void product(struct self_test *t, int form, size_t m, size_t n, size_t k, int turn)
{
    struct gemm gemm = gemm_dense(m, n, k, t->x, turn & 1, t->y, turn >> 1 & 1, t->out);

    gemm.form = (enum gemm_form)form;
    gemm.onto = t->z;
    gemm.scale = -0.7f;
    gemm_run(t->pool, &gemm);
    self_test_keep(t, t->out, m * n);
}

void self_test_full_gemm(struct self_test *t, int form)
{
    static const size_t shapes[][3] = {
        { 1, 1, 1 },   { 1, 257, 255 }, { 257, 1, 256 }, { 3, 5, 257 },   { 8, 48, 64 },   { 61, 67, 31 },   { 2, 1000, 3 },
        { 509, 3, 2 }, { 5, 7, 1021 },  { 17, 49, 512 }, { 23, 31, 0 },   { 0, 5, 7 },     { 7, 0, 5 },      { 9, 16, 513 },
        { 1, 8, 300 }, { 16, 96, 65 },  { 6, 16, 256 },  { 48, 481, 33 }, { 128, 97, 17 }, { 66, 130, 130 },
    };

    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int turn = 0; turn < 4; turn++)
            product(t, form, shapes[i][0], shapes[i][1], shapes[i][2], turn);

    /* a row stride, two batches that share B, C onto itself */
    struct gemm padded = gemm_dense(13, 37, 261, t->x, 0, t->y, 0, t->z);

    padded.form = (enum gemm_form)form;
    padded.scale = 1.25f;
    padded.a_row = 263;
    padded.b_row = 41;
    padded.c_row = 43;
    padded.batch[0] = 2;
    padded.a_batch[0] = 13 * 263 + 1;
    padded.c_batch[0] = 13 * 43;
    padded.onto = t->z;
    gemm_run(t->pool, &padded);
    self_test_keep(t, t->z, 2 * 13 * 43);
    self_test_make_wild(t, 53);
    product(t, form, 19, 70, 259, 0);
    product(t, form, 19, 70, 40, 3);
}

void self_test_full_reduce(struct self_test *t, int op)
{
    for (int weighted = 0; weighted < 2; weighted++)
        for (size_t i = 0; i < COUNT(lengths); i++) {
            const float *weight = weighted ? t->mask : NULL;

            reduce_run(t->pool, (enum reduce_op)op, 3, lengths[i], 1, t->x, weight, t->out);
            self_test_keep(t, t->out, 3);
            reduce_run(t->pool, (enum reduce_op)op, 2, lengths[i], 5, t->y, weight, t->out);
            self_test_keep(t, t->out, 10);
        }
    reduce_run(t->pool, (enum reduce_op)op, 1, 12301, 1, t->x, NULL, t->out);
    self_test_keep(t, t->out, 1);
    reduce_run(t->pool, (enum reduce_op)op, 2, 67, 131, t->x, t->mask, t->out);
    self_test_keep(t, t->out, 262);
    for (size_t every = 2; every < 2000; every *= 31) {
        self_test_make_wild(t, every);
        reduce_run(t->pool, (enum reduce_op)op, 61, 67, 1, t->x, t->mask, t->out);
        self_test_keep(t, t->out, 61);
        reduce_run(t->pool, (enum reduce_op)op, 1, 61, 67, t->x, NULL, t->out);
        self_test_keep(t, t->out, 67);
    }
    reduce_argmax(t->pool, 7, 13, 9, t->x, (int32_t *)t->out);
    self_test_keep_bits(t, t->out, 63);
}

void self_test_full_dot(struct self_test *t, int unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        reduce_dot(t->pool, 3, lengths[i], t->x, (ptrdiff_t)lengths[i] + 1, t->y, 0, t->out);
        self_test_keep(t, t->out, 3);
    }
    self_test_make_wild(t, 61);
    reduce_dot(t->pool, 101, 67, t->x, 67, t->y, 67, t->out);
    self_test_keep(t, t->out, 101);
}

void self_test_full_sum_f64(struct self_test *t, int unused)
{
    double *wide = self_test_doubles(t->more), sum[3];

    (void)unused;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        elementwise_cast(t->pool, KERNEL_F32, KERNEL_F64, 3 * lengths[i], t->x, wide);
        reduce_sum_f64(t->pool, 3, lengths[i], wide, sum);
        self_test_keep_bits(t, sum, 6);
    }
}

void self_test_full_softmax(struct self_test *t, int masked)
{
    for (int wild = 0; wild < 2; wild++) {
        for (size_t i = 0; i < COUNT(lengths); i++) {
            size_t n = lengths[i], rows = n > 600 ? 1 : 3;
            const float *mask = masked ? t->mask : NULL;
            ptrdiff_t step = n % 2 ? 0 : (ptrdiff_t)n;

            softmax_run(t->pool, rows, n, t->x, mask, step, t->out);
            self_test_keep(t, t->out, rows * n);
            softmax_backward(t->pool, rows, n, t->out, t->y, t->more);
            self_test_keep(t, t->more, rows * n);
            softmax_log_run(t->pool, rows, n, t->x, mask, step, t->out);
            self_test_keep(t, t->out, rows * n);
            softmax_log_backward(t->pool, rows, n, t->out, t->y, mask, step, t->more);
            self_test_keep(t, t->more, rows * n);
        }
        self_test_make_wild(t, 301);
    }
}

void self_test_full_logprob(struct self_test *t, int unused)
{
    (void)unused;
    for (size_t i = 1; i < COUNT(lengths); i++) {
        size_t n = lengths[i], rows = n > 600 ? 1 : 3;
        int32_t target[3] = { (int32_t)(n - 1), (int32_t)(n / 2), -1 };

        softmax_logprob(t->pool, rows, n, t->x, target, t->out, t->more);
        self_test_keep(t, t->out, rows);
        self_test_keep(t, t->more, rows);
        softmax_entropy(t->pool, rows, n, t->x, t->more, t->mask);
        self_test_keep(t, t->mask, rows);
        softmax_logprob_backward(t->pool, rows, n, t->x, target, t->more, t->y, t->out);
        self_test_keep(t, t->out, rows * n);
        softmax_entropy_backward(t->pool, rows, n, t->x, t->more, t->mask, t->y, t->out);
        self_test_keep(t, t->out, rows * n);
    }
}

void self_test_full_norm(struct self_test *t, int layer)
{
    enum { ROWS = 3 };

    for (size_t i = 1; i < COUNT(lengths); i++) {
        size_t n = lengths[i];

        if (layer) {
            norm_layer(t->pool, ROWS, n, t->x, t->y, i % 2 ? t->z : NULL, 1e-5f, t->out, t->more, t->more + ROWS);
            self_test_keep(t, t->out, ROWS * n);
            norm_layer_backward(t->pool, ROWS, n, t->x, t->y, t->more, t->more + ROWS, t->z, t->out, t->mask, t->mask + n);
        } else {
            norm_rms(t->pool, ROWS, n, t->x, i % 2 ? t->y : NULL, 1e-6f, 0.0f, t->out, t->more);
            self_test_keep(t, t->out, ROWS * n);
            norm_rms_backward(t->pool, ROWS, n, t->x, i % 2 ? t->y : NULL, 0.0f, t->more, t->z, t->out, t->mask);
        }
        self_test_keep(t, t->out, ROWS * n);
        self_test_keep(t, t->mask, layer ? 2 * n : n);
    }

    /* long and thin: sums over rows */
    norm_rms(t->pool, 4099, 3, t->x, t->y, 1e-5f, 1.0f, t->out, t->more);
    norm_rms_backward(t->pool, 4099, 3, t->x, t->y, 1.0f, t->more, t->z, t->out, t->mask);
    self_test_keep(t, t->mask, 3);
}

static void attend(struct self_test *t, struct attention at, int32_t *segment)
{
    size_t heads = at.heads * at.group, q_size = at.batch * at.queries * heads * at.width,
           k_size = at.batch * at.keys * at.heads * at.width, rows = at.batch * heads * at.queries;
    float *k = t->y, *v = t->y + k_size, *dq = t->more, *dk = dq + q_size, *dv = dk + k_size, *lse = t->mask,
          *delta = t->mask + rows;

    at.scale = 1.0f / f32_sqrt((float)at.width);
    at.q_group = (ptrdiff_t)at.width;
    at.q_head = at.q_group * (ptrdiff_t)at.group;
    at.q_time = at.q_head * (ptrdiff_t)at.heads;
    at.q_batch = at.q_time * (ptrdiff_t)at.queries;
    at.k_head = (ptrdiff_t)at.width;
    at.k_time = at.k_head * (ptrdiff_t)at.heads;
    at.k_batch = at.k_time * (ptrdiff_t)at.keys;
    for (size_t i = 0; segment && i < at.batch * at.queries; i++)
        segment[i] = (int32_t)(i / 23);
    at.segment_q = at.segment_k = segment;
    attention_run(t->pool, &at, t->x, k, v, t->out, lse);
    self_test_keep(t, t->out, q_size);
    self_test_keep(t, lse, rows);
    attention_backward(t->pool, &at, t->x, k, v, t->out, lse, t->z, delta, dq, dk, dv);
    self_test_keep(t, delta, rows);
    self_test_keep(t, dq, q_size + 2 * k_size);
}

void self_test_full_attention(struct self_test *t, int variant)
{
    static const size_t shapes[][6] = { /* batch, queries, keys, heads, group, width */
                                        { 1, 1, 1, 1, 1, 1 },    { 1, 1, 130, 1, 2, 8 },   { 2, 65, 65, 2, 1, 4 },
                                        { 1, 63, 129, 1, 5, 7 }, { 1, 64, 128, 1, 3, 64 }, { 1, 193, 193, 2, 2, 8 },
                                        { 1, 17, 17, 1, 1, 80 }, { 1, 70, 3, 1, 1, 16 }
    };

    for (size_t i = 0; i < COUNT(shapes); i++) {
        const size_t *s = shapes[i];
        struct attention at = {
            .batch = s[0], .queries = s[1], .keys = s[2], .heads = s[3], .group = s[4], .width = s[5], .causal = variant != 2
        };

        if (variant == 1) {
            at.softcap = 2.0f;
            at.window = 1 + 29 * i;
        }
        attend(t, at, variant == 2 && s[1] == s[2] ? t->index : NULL);
    }
}

void self_test_full_rope(struct self_test *t, int scaling)
{
    static const size_t widths[] = { 2, 6, 34, 64, 128 };
    float factors[64];

    for (int i = 0; i < 64; i++)
        factors[i] = 1.0f + 0.3f * (float)i;
    for (size_t i = 0; i < COUNT(widths); i++) {
        struct rope rope = { .width = widths[i],
                             .base = 500000.0f,
                             .scaling = (enum rope_scaling)scaling,
                             .factor = 8.0f,
                             .low_factor = 1.0f,
                             .high_factor = 4.0f,
                             .original_length = 8192.0f,
                             .attention = 1.1f,
                             .factors = factors,
                             .interleaved = i % 2 };

        rope_frequencies(&rope, t->out);
        self_test_keep(t, t->out, widths[i] / 2);
        for (int p = 0; p < 11; p++)
            t->index[p] = p * p * 10007;
        rope_run(t->pool, &rope, 11, 2, widths[i] + i, t->index, i == 3, t->x, t->out);
        self_test_keep(t, t->out, 11 * 2 * (widths[i] + i));
    }
}

void self_test_full_gather(struct self_test *t, int unused)
{
    static const size_t widths[] = { 1, 3, 33, 64, 257, 1021 };

    (void)unused;
    self_test_make_wild(t, 101);
    for (size_t i = 0; i < COUNT(widths); i++) {
        gather_rows(t->pool, 41, widths[i], t->x, t->index, t->out);
        self_test_keep_bits(t, t->out, 41 * widths[i]);
        gather_scatter_add(t->pool, 53, widths[i], t->y, t->index, t->z);
        self_test_keep(t, t->z, 37 * widths[i]);
    }
    gather_rows(t->pool, 0, 5, t->x, t->index, t->out);
    gather_pick(t->pool, 5, 37, 67, t->x, t->index, t->out);
    self_test_keep_bits(t, t->out, 5 * 67);
    gather_pick_backward(t->pool, 5, 37, 67, t->index, t->y, t->out);
    self_test_keep_bits(t, t->out, 5 * 37 * 67);
}

void self_test_full_outer(struct self_test *t, int unused)
{
    static const size_t shapes[][3] = { { 0, 3, 5 }, { 1, 1, 1 }, { 53, 7, 31 }, { 53, 8, 64 }, { 300, 5, 257 }, { 97, 67, 33 } };

    (void)unused;
    self_test_make_wild(t, 101);
    for (size_t i = 0; i < COUNT(shapes); i++)
        self_test_outer(t, shapes[i][0], shapes[i][1], shapes[i][2]);
}

void self_test_full_order(struct self_test *t, int unused)
{
    static const size_t peers[] = { 1, 2, 3, 8, 17, 32 }, widths[] = { 1, 63, 64, 65, 257 };

    (void)unused;
    for (size_t i = 0; i < COUNT(peers); i++)
        for (size_t j = 0; j < COUNT(widths); j++) {
            size_t n = peers[i], width = widths[j], k = 1 + n / 3;
            double distance[4];

            for (size_t p = 0; p < n * width; p++) /* equal ones, and zeros of both signs */
                t->x[p] = p % 3 ? t->x[p] : p % 2 ? t->mask[p] : -t->mask[p];
            order_sort(t->pool, n, width, t->x, t->out);
            self_test_keep_bits(t, t->out, n * width);
            order_rank(t->pool, n, width, t->x, (int32_t *)t->more);
            self_test_keep_bits(t, t->more, n * width);
            order_median(t->pool, n, width, t->x, j % 2 ? t->mask : NULL, t->out);
            self_test_keep_bits(t, t->out, width);
            order_topk(t->pool, n, width, k, t->x, t->out, (int32_t *)t->more);
            self_test_keep_bits(t, t->out, k * width);
            self_test_keep_bits(t, t->more, k * width);
            order_dist2(t->pool, 2, 2, n * width, t->x, t->y, distance);
            self_test_keep_bits(t, distance, 8);
        }
}

void self_test_full_rows(struct self_test *t, int unused)
{
    (void)unused;
    for (size_t i = 1; i < COUNT(lengths); i++) {
        for (size_t p = 0; p < 2 * lengths[i]; p += 3)
            t->x[p] = p % 2 ? 0.0f : -0.0f;
        if (!order_rows(t->pool, 2, lengths[i], t->x, t->out, (int32_t *)t->more))
            continue; /* no memory: the hash will not be right */
        self_test_keep_bits(t, t->out, 2 * lengths[i]);
        self_test_keep_bits(t, t->more, 2 * lengths[i]);
    }
}

/* Every 16-bit pattern read; every upper half of a number written, with what rounding sees below it. */
void self_test_full_storage(struct self_test *t, int unused)
{
    uint16_t *half = (uint16_t *)t->more;
    static const uint32_t below[] = { 0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff };

    (void)unused;
    for (uint32_t i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    elementwise_from_bf16(t->pool, 65536, half, t->out);
    self_test_keep_bits(t, t->out, 65536);
    elementwise_from_f16(t->pool, 65536, half, t->out);
    self_test_keep_bits(t, t->out, 65536);
    for (size_t b = 0; b < COUNT(below); b++) {
        for (uint32_t i = 0; i < 65536; i++)
            t->x[i] = f32_from_bits(i << 16 | below[b]);
        elementwise_to_bf16(t->pool, 65536, t->x, half);
        self_test_keep_bits(t, half, 32768);
        elementwise_to_f16(t->pool, 65536, t->x, half);
        self_test_keep_bits(t, half, 32768);
    }
    self_test_make_wild(t, 2);
    elementwise_clamp(t->pool, 1021, t->x, -0.0f, 1.5f, t->out);
    self_test_keep_bits(t, t->out, 1021);
}

void self_test_full_random(struct self_test *t, int unused)
{
    (void)unused;
    for (uint32_t i = 0; i < 4099; i++) {
        uint32_t counter[4] = { i * 0x9e3779b9u, i, ~i, i >> 3 }, key[2] = { i ^ 77, 5 }, word[4];

        philox_block(counter, key, word);
        self_test_keep_bits(t, word, 4);
        t->out[i] = random_normal(word[0]);
        t->more[i] = random_uniform(word[1]);
    }
    self_test_keep(t, t->out, 4099);
    self_test_keep(t, t->more, 4099);
}

void self_test_full_dct(struct self_test *t, int inverse)
{
    static const struct dct shapes[] = { { 1, 1, 1, 1, false },      { 3, 2, 3, 2, false },     { 1, 510, 1, 255, false },
                                         { 256, 31, 256, 1, false }, { 64, 64, 64, 64, false }, { 62, 75, 31, 25, false } };

    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct dct dct = shapes[i];

        dct.inverse = inverse != 0;
        dct_run(t->pool, &dct, t->x, t->more, t->out);
        self_test_keep(t, t->out, dct.rows * dct.columns);
    }
}

void self_test_full_stored(struct self_test *t, int type)
{
    uint8_t *bytes = (uint8_t *)t->more;

    /* every pattern of the scale stands somewhere, at odd addresses */
    for (size_t i = 0; i < 4 * SELF_TEST_ROOM; i++)
        bytes[i] = (uint8_t)(i * 167 + (i >> 8) * 59 + (i >> 16) * 7);
    for (size_t first = 0; first < 65; first += 13)
        for (size_t i = 0; i < COUNT(lengths); i++) {
            stored_reader((enum stored_type)type)(bytes + i % 3, first, lengths[i], t->out);
            self_test_keep(t, t->out, lengths[i]);
        }
    stored_reader((enum stored_type)type)(bytes, 0, 100000, t->out);
    self_test_keep(t, t->out, 100000);
}

void self_test_full_chain(struct self_test *t, int unused)
{
    static const size_t shapes[][3] = { { 1, 1, 1 },    { 257, 5, 16 },  { 5, 257, 300 },
                                        { 64, 96, 33 }, { 900, 16, 65 }, { 127, 1, 513 } };

    (void)unused;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        struct gemm chain[3] = { gemm_dense(m, n, k, t->x, 1, t->y, 0, t->out), gemm_dense(m, n, 8, t->y, 0, t->x, 1, t->out),
                                 gemm_dense(m, n, k, t->z, 1, t->y, 1, t->out) };

        chain[1].form = GEMM_LOW_RANK;
        chain[1].scale = -2.5f;
        chain[2].form = GEMM_ONTO;
        gemm_run_chain(t->pool, chain, 3);
        self_test_keep(t, t->out, m * n);
    }
}
