/* loops_body.h - the text of the loops tables: included once by each loops_ISA.c, which defines LOOPS (the table's name). */
#include "native/kernel/lanes.h"
#include "native/kernel/loops.h"
#include "native/kernel/order.h"
#ifndef LANES_PLAIN
#include "native/kernel/vector.h"
#endif
#include "native/numerics/activation.h"
#include "native/numerics/power.h"
#include "native/numerics/trig.h"

static void loop_elementwise(enum elementwise_op op, size_t n, const float *px, const float *py, const float *pz, float *out)
{
    switch (op) {
#define ELEMENTWISE_LOOP_1(formula)                                                                                              \
    for (size_t i = 0; i < n; i++) {                                                                                             \
        float x = px[i];                                                                                                         \
        out[i] = formula;                                                                                                        \
    }
#define ELEMENTWISE_LOOP_2(formula)                                                                                              \
    for (size_t i = 0; i < n; i++) {                                                                                             \
        float x = px[i], y = py[i];                                                                                              \
        out[i] = formula;                                                                                                        \
    }
#define ELEMENTWISE_LOOP_3(formula)                                                                                              \
    for (size_t i = 0; i < n; i++) {                                                                                             \
        float x = px[i], y = py[i], z = pz[i];                                                                                   \
        out[i] = formula;                                                                                                        \
    }
#define ELEMENTWISE_OP(name, text, arity, formula)                                                                               \
    case ELEMENTWISE_##name:                                                                                                     \
        ELEMENTWISE_LOOP_##arity(formula) break;
#include "native/kernel/elementwise_ops.h"
#undef ELEMENTWISE_OP
    case ELEMENTWISE_OPS:
        break;
    }
}

static void loop_transpose(size_t rows, size_t columns, const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row)
{
    size_t r = 0;

#ifndef LANES_PLAIN
    for (; r + 8 <= rows; r += 8) {
        size_t c = 0;

        for (; c + 8 <= columns; c += 8)
            vector_transpose8(from + (ptrdiff_t)r * from_row + (ptrdiff_t)c, from_row, to + (ptrdiff_t)c * to_row + (ptrdiff_t)r,
                              to_row);
        for (; c < columns; c++)
            for (size_t i = r; i < r + 8; i++)
                to[(ptrdiff_t)c * to_row + (ptrdiff_t)i] = from[(ptrdiff_t)i * from_row + (ptrdiff_t)c];
    }
#endif
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            to[(ptrdiff_t)c * to_row + (ptrdiff_t)r] = from[(ptrdiff_t)r * from_row + (ptrdiff_t)c];
}

static float loop_reduce_row(enum reduce_op op, size_t n, const float *x, const float *weight)
{
    float m, s;

    switch (op) {
    case REDUCE_SUM:
        return weight ? lanes_run(LANE_WEIGHTED, n, x, weight, 0.0f) : lanes_run(LANE_SUM, n, x, NULL, 0.0f);
    case REDUCE_MEAN:
        s = weight ? lanes_run(LANE_SUM, n, weight, NULL, 0.0f) : (float)n;
        return s == 0.0f ? 0.0f : loop_reduce_row(REDUCE_SUM, n, x, weight) / s;
    case REDUCE_MAX:
        return weight ? lanes_run(LANE_MAX_MASKED, n, x, weight, 0.0f) : lanes_run(LANE_MAX, n, x, NULL, 0.0f);
    case REDUCE_MIN:
        return weight ? lanes_run(LANE_MIN_MASKED, n, x, weight, 0.0f) : lanes_run(LANE_MIN, n, x, NULL, 0.0f);
    case REDUCE_NORM:
        return f32_sqrt(weight ? lanes_run(LANE_SQUARE_WEIGHTED, n, x, weight, 0.0f) : lanes_run(LANE_SQUARE, n, x, NULL, 0.0f));
    case REDUCE_LOGSUMEXP:
        m = loop_reduce_row(REDUCE_MAX, n, x, weight);
        if (m == -__builtin_inff())
            return m;
        return m + f32_log(weight ? lanes_run(LANE_EXP_MASKED, n, x, weight, m) : lanes_run(LANE_EXP, n, x, NULL, m));
    case REDUCE_OPS:
        break;
    }
    return 0.0f;
}

static void loop_reduce_columns(enum reduce_op op, size_t n, size_t inner, size_t width, const float *x, const float *weight,
                                float *out)
{
    float s[LANES_COLUMNS];

    switch (op) {
    case REDUCE_SUM:
        if (weight)
            lanes_columns(LANE_WEIGHTED, n, inner, width, x, weight, NULL, NULL, out);
        else
            lanes_columns(LANE_SUM, n, inner, width, x, NULL, NULL, NULL, out);
        break;
    case REDUCE_MEAN:
        loop_reduce_columns(REDUCE_SUM, n, inner, width, x, weight, out);
        if (weight)
            lanes_columns(LANE_SUM, n, inner, width, weight, NULL, NULL, NULL, s);
        for (size_t k = 0; k < width; k++) {
            float total = weight ? s[k] : (float)n;
            out[k] = total == 0.0f ? 0.0f : out[k] / total;
        }
        break;
    case REDUCE_MAX:
        if (weight)
            lanes_columns(LANE_MAX_MASKED, n, inner, width, x, weight, NULL, NULL, out);
        else
            lanes_columns(LANE_MAX, n, inner, width, x, NULL, NULL, NULL, out);
        break;
    case REDUCE_MIN:
        if (weight)
            lanes_columns(LANE_MIN_MASKED, n, inner, width, x, weight, NULL, NULL, out);
        else
            lanes_columns(LANE_MIN, n, inner, width, x, NULL, NULL, NULL, out);
        break;
    case REDUCE_NORM:
        if (weight)
            lanes_columns(LANE_SQUARE_WEIGHTED, n, inner, width, x, weight, NULL, NULL, out);
        else
            lanes_columns(LANE_SQUARE, n, inner, width, x, NULL, NULL, NULL, out);
        for (size_t k = 0; k < width; k++)
            out[k] = f32_sqrt(out[k]);
        break;
    case REDUCE_LOGSUMEXP:
        loop_reduce_columns(REDUCE_MAX, n, inner, width, x, weight, out);
        if (weight)
            lanes_columns(LANE_EXP_MASKED, n, inner, width, x, weight, NULL, out, s);
        else
            lanes_columns(LANE_EXP, n, inner, width, x, NULL, NULL, out, s);
        for (size_t k = 0; k < width; k++)
            out[k] = out[k] == -__builtin_inff() ? out[k] : out[k] + f32_log(s[k]);
        break;
    case REDUCE_OPS:
        break;
    }
}

static float loop_dot_row(size_t n, const float *x, const float *y)
{
    return lanes_run(LANE_DOT, n, x, y, 0.0f);
}

/* ---- softmax.h ---- */

static void loop_softmax(size_t n, const float *x, const float *mask, float *out)
{
    float m = loop_reduce_row(REDUCE_MAX, n, x, mask), s;

    if (m == -__builtin_inff()) {
        for (size_t i = 0; i < n; i++)
            out[i] = 0.0f;
        return;
    }
    if (mask)
        for (size_t i = 0; i < n; i++)
            out[i] = mask[i] == 0.0f ? 0.0f : f32_exp((mask[i] == 0.0f ? m : x[i]) - m);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = f32_exp(x[i] - m);
    s = lanes_run(LANE_SUM, n, out, NULL, 0.0f);
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] / s;
}

static void loop_softmax_log(size_t n, const float *x, const float *mask, float *out)
{
    float m = loop_reduce_row(REDUCE_MAX, n, x, mask), s;

    if (m == -__builtin_inff()) {
        for (size_t i = 0; i < n; i++)
            out[i] = 0.0f;
        return;
    }
    s = f32_log(mask ? lanes_run(LANE_EXP_MASKED, n, x, mask, m) : lanes_run(LANE_EXP, n, x, NULL, m));
    if (mask)
        for (size_t i = 0; i < n; i++)
            out[i] = mask[i] == 0.0f ? 0.0f : (x[i] - m) - s;
    else
        for (size_t i = 0; i < n; i++)
            out[i] = (x[i] - m) - s;
}

static void loop_softmax_backward(size_t n, const float *y, const float *dy, float *dx)
{
    float t = lanes_run(LANE_DOT, n, dy, y, 0.0f);

    for (size_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - t);
}

static void loop_softmax_log_backward(size_t n, const float *y, const float *dy, const float *mask, float *dx)
{
    float t = mask ? lanes_run(LANE_MASKED, n, dy, mask, 0.0f) : lanes_run(LANE_SUM, n, dy, NULL, 0.0f);

    if (mask)
        for (size_t i = 0; i < n; i++)
            dx[i] = mask[i] == 0.0f ? 0.0f : f32_fma(-f32_exp(y[i]), t, dy[i]);
    else
        for (size_t i = 0; i < n; i++)
            dx[i] = f32_fma(-f32_exp(y[i]), t, dy[i]);
}

static float loop_logprob(size_t n, const float *logits, int32_t target, float *lse)
{
    float m = lanes_run(LANE_MAX, n, logits, NULL, 0.0f), s = f32_log(lanes_run(LANE_EXP, n, logits, NULL, m));

    if (lse)
        *lse = m + s;
    return target < 0 ? 0.0f : (logits[target] - m) - s;
}

static void loop_logprob_backward(size_t n, const float *logits, int32_t target, float lse, float g, float *dlogits)
{
    float at_target;

    if (target < 0 || g == 0.0f) {
        for (size_t i = 0; i < n; i++)
            dlogits[i] = 0.0f;
        return;
    }
    at_target = f32_fma(-g, f32_exp(logits[target] - lse), g);
    for (size_t i = 0; i < n; i++)
        dlogits[i] = f32_fma(-g, f32_exp(logits[i] - lse), 0.0f);
    dlogits[target] = at_target;
}

static float loop_entropy(size_t n, const float *logits, float lse)
{
    return lse - lanes_run(LANE_EXP_DOT, n, logits, NULL, lse);
}

static void loop_entropy_backward(size_t n, const float *logits, float lse, float entropy, float g, float *dlogits)
{
    for (size_t i = 0; i < n; i++) {
        float d = logits[i] - lse;
        dlogits[i] = (-g * f32_exp(d)) * (d + entropy);
    }
}

/* ---- norm.h ---- */

static float loop_rms(size_t n, const float *x, const float *weight, float eps, float offset, float *y)
{
    float r = 1.0f / f32_sqrt(lanes_run(LANE_SQUARE, n, x, NULL, 0.0f) / (float)n + eps);

    if (weight)
        for (size_t i = 0; i < n; i++)
            y[i] = (x[i] * r) * (offset + weight[i]);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * r;
    return r;
}

/* dx holds g for the sum, then the result. */
static void loop_rms_backward(size_t n, const float *x, const float *weight, float offset, float r, const float *dy, float *dx)
{
    float c;

    if (weight)
        for (size_t i = 0; i < n; i++)
            dx[i] = dy[i] * (offset + weight[i]);
    else if (dx != dy)
        for (size_t i = 0; i < n; i++)
            dx[i] = dy[i];
    c = ((lanes_run(LANE_DOT, n, x, dx, 0.0f) * r) * r) * r / (float)n;
    for (size_t i = 0; i < n; i++)
        dx[i] = f32_fma(-c, x[i], r * dx[i]);
}

static void loop_rms_dweight(size_t rows, size_t inner, size_t width, const float *x, const float *rstd, const float *dy,
                             float *dweight)
{
    lanes_columns(LANE_DOT, rows, inner, width, x, dy, rstd, NULL, dweight);
}

static float loop_layer(size_t n, const float *x, const float *weight, const float *bias, float eps, float *y, float *mean)
{
    float u = lanes_run(LANE_SUM, n, x, NULL, 0.0f) / (float)n;
    float r = 1.0f / f32_sqrt(lanes_run(LANE_DISTANCE, n, x, NULL, u) / (float)n + eps);

    if (bias)
        for (size_t i = 0; i < n; i++)
            y[i] = f32_fma((x[i] - u) * r, weight[i], bias[i]);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = ((x[i] - u) * r) * weight[i];
    *mean = u;
    return r;
}

/* Rule 4 of fmaf(g, (x - u) r, lane). */
static float layer_inner(size_t n, const float *x, float u, float r, const float *g)
{
    float total = 0.0f;

    for (size_t start = 0; start < n; start += REDUCE_BLOCK) {
        size_t end = n - start < REDUCE_BLOCK ? n : start + REDUCE_BLOCK, i = start;
        float lane[REDUCE_LANES] = { 0.0f };

        for (; i + REDUCE_LANES <= end; i += REDUCE_LANES)
            for (int j = 0; j < REDUCE_LANES; j++)
                lane[j] = f32_fma(g[i + j], (x[i + j] - u) * r, lane[j]);
        for (int j = 0; i < end; i++, j++)
            lane[j] = f32_fma(g[i], (x[i] - u) * r, lane[j]);
        total += lanes_tree(LANE_SUM, lane);
    }
    return total;
}

/* dx holds g for the sums, then the result. */
static void loop_layer_backward(size_t n, const float *x, const float *weight, float mean, float r, const float *dy, float *dx)
{
    float a, b;

    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * weight[i];
    a = lanes_run(LANE_SUM, n, dx, NULL, 0.0f) / (float)n;
    b = layer_inner(n, x, mean, r, dx) / (float)n;
    for (size_t i = 0; i < n; i++)
        dx[i] = r * f32_fma(-b, (x[i] - mean) * r, dx[i] - a);
}

/* dweight: rule 4 over rows of fmaf(dy, (x - mean) rstd, lane); dbias: of dy. Either may be NULL. */
static void loop_layer_dweight(size_t rows, size_t inner, size_t width, const float *x, const float *mean, const float *rstd,
                               const float *dy, float *dweight, float *dbias)
{
    if (dbias)
        lanes_columns(LANE_SUM, rows, inner, width, dy, NULL, NULL, NULL, dbias);
    for (size_t k = 0; k < width && dweight; k++)
        dweight[k] = 0.0f;
    for (size_t start = 0; start < rows && dweight; start += REDUCE_BLOCK) {
        size_t end = rows - start < REDUCE_BLOCK ? rows : start + REDUCE_BLOCK;
        float lane[REDUCE_LANES][LANES_COLUMNS] = { { 0.0f } };

        for (size_t i = start; i < end; i++) {
            const float *row = x + i * inner, *g = dy + i * inner;
            float *l = lane[(i - start) % REDUCE_LANES];

            for (size_t k = 0; k < width; k++)
                l[k] = f32_fma(g[k], (row[k] - mean[i]) * rstd[i], l[k]);
        }
        for (int w = REDUCE_LANES / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                for (size_t k = 0; k < width; k++)
                    lane[j][k] += lane[j + w][k];
        for (size_t k = 0; k < width; k++)
            dweight[k] += lane[0][k];
    }
}

/* ---- order.h ---- */

/* Insertion from above: the new one moves down past what is greater, so an equal one stays behind those already there. Selects only,
 * and always a whole tile, so that columns go side by side. */
static void loop_sort(size_t n, size_t inner, size_t width, const float *x, float *sorted)
{
    float column[ORDER_MAX][ORDER_TILE];

    for (size_t i = 0; i < n; i++) {
        float in[ORDER_TILE] = { 0.0f };

        for (size_t k = 0; k < width; k++)
            in[k] = x[i * inner + k];
        for (size_t j = i; j-- > 0;)
            for (size_t k = 0; k < ORDER_TILE; k++) {
                float a = column[j][k], b = in[k];
                bool less = b < a;

                column[j + 1][k] = less ? a : b;
                in[k] = less ? b : a;
            }
        for (size_t k = 0; k < ORDER_TILE; k++)
            column[0][k] = in[k];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++)
            sorted[i * inner + k] = column[i][k];
}

static void loop_rank(size_t n, size_t inner, size_t width, const float *x, int32_t *rank)
{
    for (size_t i = 0; i < n; i++) {
        int32_t below[ORDER_TILE] = { 0 };

        for (size_t j = 0; j < n; j++)
            if (j < i)
                for (size_t k = 0; k < width; k++)
                    below[k] += x[j * inner + k] <= x[i * inner + k];
            else
                for (size_t k = 0; k < width; k++)
                    below[k] += x[j * inner + k] < x[i * inner + k];
        for (size_t k = 0; k < width; k++)
            rank[i * inner + k] = below[k];
    }
}

static double loop_dist2(size_t n, const float *x, const float *y)
{
    double total = 0.0;

    for (size_t start = 0; start < n; start += REDUCE_BLOCK) {
        size_t end = n - start < REDUCE_BLOCK ? n : start + REDUCE_BLOCK, i = start;
        double lane[REDUCE_LANES] = { 0.0 };

#ifndef LANES_PLAIN
        for (; i + REDUCE_LANES <= end; i += REDUCE_LANES)
            for (int j = 0; j < REDUCE_LANES; j++) {
                double d = (double)x[i + j] - (double)y[i + j];
                lane[j] += d * d;
            }
#endif
        for (; i < end; i++) {
            double d = (double)x[i] - (double)y[i];
            lane[(i - start) % REDUCE_LANES] += d * d;
        }
        for (int w = REDUCE_LANES / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                lane[j] += lane[j + w];
        total += lane[0];
    }
    return total;
}

/* ---- rope.h ---- */

static void loop_rope_angles(size_t half, int32_t position, const float *frequency, int inverse, float *sine, float *cosine)
{
    for (size_t i = 0; i < half; i++) {
        double angle = (double)position * (double)frequency[i];
        float s = trig_sin(angle, 0);

        sine[i] = inverse ? -s : s;
        cosine[i] = trig_sin(angle, 1);
    }
}

static void loop_rope(size_t heads, size_t dim, size_t width, int interleaved, const float *sine, const float *cosine,
                      const float *x, float *out)
{
    size_t half = width / 2;

    for (size_t h = 0; h < heads; h++, x += dim, out += dim) {
        if (interleaved)
            for (size_t i = 0; i < half; i++) {
                float a = x[2 * i], b = x[2 * i + 1];

                out[2 * i] = f32_fma(-b, sine[i], a * cosine[i]);
                out[2 * i + 1] = f32_fma(a, sine[i], b * cosine[i]);
            }
        else
            for (size_t i = 0; i < half; i++) {
                float a = x[i], b = x[i + half];

                out[i] = f32_fma(-b, sine[i], a * cosine[i]);
                out[i + half] = f32_fma(a, sine[i], b * cosine[i]);
            }
        for (size_t i = width; i < dim; i++)
            out[i] = x[i];
    }
}

/* One output after the other, from column `first` on. */
static void outer_plain(size_t count, const float *const *a, ptrdiff_t a_at, ptrdiff_t a_step, size_t rows, const float *const *b,
                        size_t first, size_t columns, float *out, size_t out_row)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = first; c < columns; c++) {
            float sum = 0.0f;

            for (size_t i = 0; i < count; i++) {
                float product = a[i][a_at + (ptrdiff_t)r * a_step] * b[i][c];

                sum = sum + product;
            }
            out[r * out_row + c] = sum;
        }
}

#ifdef LANES_PLAIN
static void loop_outer_sum(size_t count, const float *const *a, ptrdiff_t a_at, ptrdiff_t a_step, size_t rows,
                           const float *const *b, size_t columns, float *out, size_t out_row)
{
    outer_plain(count, a, a_at, a_step, rows, b, 0, columns, out, out_row);
}
#else
enum { OUTER_ROWS = 4, OUTER_WIDE = VW == 8 ? 2 : 4 };

/* `rows` x `wide` registers of sums at row r, column c. */
VECTOR_INLINE void outer_tile(const int rows, const int wide, size_t count, const float *const *a, ptrdiff_t a_at,
                              ptrdiff_t a_step, size_t r, const float *const *b, size_t c, float *out, size_t out_row)
{
    vf sum[OUTER_ROWS][OUTER_WIDE];

#pragma GCC unroll 4
    for (int k = 0; k < rows; k++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            sum[k][v] = vf_zero();
    for (size_t i = 0; i < count; i++) {
        const float *x = a[i] + a_at + (ptrdiff_t)r * a_step, *y = b[i] + c;
        vf yv[OUTER_WIDE];

#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            yv[v] = vf_load(y + v * VW);
#pragma GCC unroll 4
        for (int k = 0; k < rows; k++) {
            vf xv = vf_all(x[k * a_step]);

#pragma GCC unroll 4
            for (int v = 0; v < wide; v++)
                sum[k][v] = vf_add(sum[k][v], vf_mul(xv, yv[v]));
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < rows; k++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            vf_store(out + (r + (size_t)k) * out_row + c + v * VW, sum[k][v]);
}

static void loop_outer_sum(size_t count, const float *const *a, ptrdiff_t a_at, ptrdiff_t a_step, size_t rows,
                           const float *const *b, size_t columns, float *out, size_t out_row)
{
    size_t c = 0;

    for (; c + OUTER_WIDE * VW <= columns; c += OUTER_WIDE * VW) {
        size_t r = 0;

        for (; r + OUTER_ROWS <= rows; r += OUTER_ROWS)
            outer_tile(OUTER_ROWS, OUTER_WIDE, count, a, a_at, a_step, r, b, c, out, out_row);
        for (; r < rows; r++)
            outer_tile(1, OUTER_WIDE, count, a, a_at, a_step, r, b, c, out, out_row);
    }
    for (; c + VW <= columns; c += VW) {
        size_t r = 0;

        for (; r + OUTER_ROWS <= rows; r += OUTER_ROWS)
            outer_tile(OUTER_ROWS, 1, count, a, a_at, a_step, r, b, c, out, out_row);
        for (; r < rows; r++)
            outer_tile(1, 1, count, a, a_at, a_step, r, b, c, out, out_row);
    }
    outer_plain(count, a, a_at, a_step, rows, b, c, columns, out, out_row);
}
#endif

const struct loops LOOPS = {
    .elementwise = loop_elementwise,
    .transpose = loop_transpose,
    .reduce_row = loop_reduce_row,
    .reduce_columns = loop_reduce_columns,
    .dot_row = loop_dot_row,
    .softmax = loop_softmax,
    .softmax_log = loop_softmax_log,
    .softmax_backward = loop_softmax_backward,
    .softmax_log_backward = loop_softmax_log_backward,
    .logprob = loop_logprob,
    .logprob_backward = loop_logprob_backward,
    .entropy = loop_entropy,
    .entropy_backward = loop_entropy_backward,
    .rms = loop_rms,
    .rms_backward = loop_rms_backward,
    .rms_dweight = loop_rms_dweight,
    .layer = loop_layer,
    .layer_backward = loop_layer_backward,
    .layer_dweight = loop_layer_dweight,
    .sort = loop_sort,
    .rank = loop_rank,
    .dist2 = loop_dist2,
    .rope_angles = loop_rope_angles,
    .rope = loop_rope,
    .outer_sum = loop_outer_sum,
};
