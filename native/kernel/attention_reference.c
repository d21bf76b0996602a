/* The definition of attention.h, one query (forward) or one pair of blocks (backward) after the other. */
#include "native/kernel/attention.h"

#include <assert.h>

#include "native/kernel/attention_part.h"
#include "native/kernel/lanes.h"
#include "native/numerics/activation.h"

#define BLOCK ATTENTION_BLOCK

static float chain(size_t n, const float *x, ptrdiff_t x_step, const float *y, ptrdiff_t y_step)
{
    float sum = 0.0f;

    for (size_t i = 0; i < n; i++)
        sum = f32_fma(x[(ptrdiff_t)i * x_step], y[(ptrdiff_t)i * y_step], sum);
    return 0.0f + sum;
}

/* The score, and the softcap's tanh (0 without). */
static float score(const struct attention *at, const float *q, const float *k, float *t)
{
    float s = chain(at->width, q, 1, k, 1) * at->scale;

    *t = 0.0f;
    if (at->softcap == 0.0f)
        return s;
    *t = f32_tanh(s / at->softcap);
    return at->softcap * *t;
}

static void reference_query(const struct attention *at, size_t batch, size_t head, size_t i, const float *q, const float *k,
                            const float *v, float *y, float *lse)
{
    float m = -__builtin_inff(), l = 0.0f, o[ATTENTION_WIDTH_MAX] = { 0.0f };

    for (size_t block = 0; block < at->keys; block += BLOCK) {
        size_t count = at->keys - block < BLOCK ? at->keys - block : BLOCK;
        float p[BLOCK] = { 0.0f }, t, high = m, a;
        bool any = false, allow[BLOCK];
        const float *keys = attention_block_at(at, k, at->k_block, batch, head, block);
        const float *values = attention_block_at(at, v, at->v_block, batch, head, block);

        for (size_t j = 0; j < count; j++) {
            allow[j] = attention_allowed(at, batch, i, block + j);
            if (!allow[j])
                continue;
            p[j] = score(at, q, keys + (ptrdiff_t)j * at->k_time, &t);
            high = p[j] > high ? p[j] : high;
            any = true;
        }
        if (!any)
            continue;
        a = m == -__builtin_inff() ? 0.0f : f32_exp(m - high);
        m = high;
        for (size_t j = 0; j < count; j++)
            p[j] = allow[j] ? f32_exp(p[j] - m) : 0.0f;
        l = f32_fma(l, a, lanes_run(LANE_SUM, count, p, NULL, 0.0f));
        for (size_t d = 0; d < at->width; d++)
            o[d] = f32_fma(o[d], a, chain(count, p, 1, values + d, at->k_time));
    }
    for (size_t d = 0; d < at->width; d++)
        y[d] = l == 0.0f ? 0.0f : o[d] * (1.0f / l);
    if (lse)
        *lse = l == 0.0f ? 0.0f : m + f32_log(l);
}

void attention_reference(const struct attention *at, const float *q, const float *k, const float *v, float *y, float *lse)
{
    for (size_t b = 0; b < at->batch; b++)
        for (size_t h = 0; h < at->heads; h++)
            for (size_t g = 0; g < at->group; g++)
                for (size_t i = 0; i < at->queries; i++) {
                    ptrdiff_t from = attention_q_at(at, b, h, g) + (ptrdiff_t)i * at->q_time;

                    reference_query(at, b, h, i, q + from, k, v, y + from, lse ? lse + attention_lse_at(at, b, h, g) + i : NULL);
                }
}

/* p and ds of one pair of blocks: [queries][keys] */
static void reference_block(const struct attention *at, size_t batch, size_t i0, size_t in, size_t j0, size_t jn, const float *q,
                            const float *k, const float *v, const float *lse, const float *delta, const float *dy,
                            float p[BLOCK][BLOCK], float ds[BLOCK][BLOCK])
{
    for (size_t i = 0; i < in; i++)
        for (size_t j = 0; j < jn; j++) {
            const float *key = k + (ptrdiff_t)(j0 + j) * at->k_time, *value = v + (ptrdiff_t)(j0 + j) * at->k_time;
            float t, d;

            p[i][j] = ds[i][j] = 0.0f;
            if (!attention_allowed(at, batch, i0 + i, j0 + j))
                continue;
            p[i][j] = f32_exp(score(at, q + (ptrdiff_t)(i0 + i) * at->q_time, key, &t) - lse[i0 + i]);
            d = p[i][j] * (chain(at->width, dy + (ptrdiff_t)(i0 + i) * at->q_time, 1, value, 1) - delta[i0 + i]);
            if (at->softcap != 0.0f)
                d = d * f32_fma(-t, t, 1.0f);
            ds[i][j] = d * at->scale;
        }
}

/* to[r * step + d] += chain over n of c[i * c_step + r * c_row] x[i * x_step + d], for rows r and the width's d */
static void accumulate(size_t rows, size_t width, size_t n, const float *c, ptrdiff_t c_row, ptrdiff_t c_step, const float *x,
                       ptrdiff_t x_step, float *to, ptrdiff_t step)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < width; d++) {
            float *out = to + (ptrdiff_t)r * step + d;

            *out = *out + chain(n, c + (ptrdiff_t)r * c_row, c_step, x + d, x_step);
        }
}

static void reference_head(const struct attention *at, size_t b, size_t h, const float *q, const float *k, const float *v,
                           const float *lse, const float *delta, const float *dy, float *dq, float *dk, float *dv)
{
    float p[BLOCK][BLOCK], ds[BLOCK][BLOCK];

    for (size_t j0 = 0; j0 < at->keys; j0 += BLOCK)
        for (size_t g = 0; g < at->group; g++)
            for (size_t i0 = 0; i0 < at->queries; i0 += BLOCK) {
                size_t jn = at->keys - j0 < BLOCK ? at->keys - j0 : BLOCK,
                       in = at->queries - i0 < BLOCK ? at->queries - i0 : BLOCK;
                ptrdiff_t key = attention_k_at(at, b, h), head = attention_q_at(at, b, h, g), row = attention_lse_at(at, b, h, g);
                ptrdiff_t from = head + (ptrdiff_t)i0 * at->q_time, to = key + (ptrdiff_t)j0 * at->k_time;

                reference_block(at, b, i0, in, j0, jn, q + head, k + key, v + key, lse + row, delta + row, dy + head, p, ds);
                accumulate(jn, at->width, in, p[0], 1, BLOCK, dy + from, at->q_time, dv + to, at->k_time);
                accumulate(jn, at->width, in, ds[0], 1, BLOCK, q + from, at->q_time, dk + to, at->k_time);
                accumulate(in, at->width, jn, ds[0], BLOCK, 1, k + to, at->k_time, dq + from, at->q_time);
            }
}

void attention_reference_backward(const struct attention *at, const float *q, const float *k, const float *v, const float *lse,
                                  const float *delta, const float *dy, float *dq, float *dk, float *dv)
{
    for (size_t b = 0; b < at->batch; b++)
        for (size_t h = 0; h < at->heads; h++)
            reference_head(at, b, h, q, k, v, lse, delta, dy, dq, dk, dv);
}
