/* lanes.h - rule 4 of the kernel class: 32 lanes, then a tree. Included by the loops of each instruction set; internal.
 *
 * LANES_PLAIN selects the definition, word for word; otherwise 32 elements are stepped at once, which is the same.
 */
#ifndef RONDO_KERNEL_LANES_H
#define RONDO_KERNEL_LANES_H

#include "native/kernel/reduce.h"
#include "native/numerics/exp.h"

enum lane_op {
    LANE_SUM,      /* lane + x */
    LANE_DOT,      /* fmaf(y, x, lane), y a second sequence */
    LANE_WEIGHTED, /* fmaf(y, y = 0 ? 0 : x, lane) */
    LANE_SQUARE,   /* fmaf(x, x, lane) */
    LANE_SQUARE_WEIGHTED,
    LANE_DISTANCE, /* fmaf(x - c, x - c, lane) */
    LANE_EXP,      /* lane + exp(x - c) */
    LANE_EXP_MASKED,
    LANE_EXP_DOT, /* fmaf(exp(x - c), x, lane) */
    LANE_MASKED,  /* lane + (y = 0 ? 0 : x) */
    LANE_MAX,     /* x > lane ? x : lane */
    LANE_MAX_MASKED,
    LANE_MIN,
    LANE_MIN_MASKED,
};

NUMERICS_FN float lane_start(enum lane_op op)
{
    return op == LANE_MAX || op == LANE_MAX_MASKED   ? -__builtin_inff()
           : op == LANE_MIN || op == LANE_MIN_MASKED ? __builtin_inff()
                                                     : 0.0f;
}

NUMERICS_FN float lane_step(enum lane_op op, float lane, float x, float y, float c)
{
    float kept;

    switch (op) {
    case LANE_SUM:
        return lane + x;
    case LANE_DOT:
        return f32_fma(y, x, lane);
    case LANE_WEIGHTED:
        return f32_fma(y, y == 0.0f ? 0.0f : x, lane);
    case LANE_SQUARE:
        return f32_fma(x, x, lane);
    case LANE_SQUARE_WEIGHTED:
        kept = y == 0.0f ? 0.0f : x;
        return f32_fma(y * kept, kept, lane);
    case LANE_DISTANCE:
        return f32_fma(x - c, x - c, lane);
    case LANE_EXP:
        return lane + f32_exp(x - c);
    case LANE_EXP_MASKED:
        return lane + (y == 0.0f ? 0.0f : f32_exp((y == 0.0f ? c : x) - c));
    case LANE_EXP_DOT:
        return f32_fma(f32_exp(x - c), x, lane);
    case LANE_MASKED:
        return lane + (y == 0.0f ? 0.0f : x);
    case LANE_MAX:
        return x > lane ? x : lane;
    case LANE_MAX_MASKED:
        kept = y == 0.0f ? lane : x;
        return kept > lane ? kept : lane;
    case LANE_MIN:
        return x < lane ? x : lane;
    case LANE_MIN_MASKED:
        kept = y == 0.0f ? lane : x;
        return kept < lane ? kept : lane;
    }
    return lane;
}

/* How two lanes, or two blocks, meet. */
NUMERICS_FN float lane_join(enum lane_op op, float a, float b)
{
    return op == LANE_MAX || op == LANE_MAX_MASKED   ? (b > a ? b : a)
           : op == LANE_MIN || op == LANE_MIN_MASKED ? (b < a ? b : a)
                                                     : a + b;
}

NUMERICS_FN float lanes_tree(enum lane_op op, float lane[REDUCE_LANES])
{
    for (int j = 0; j < 16; j++)
        lane[j] = lane_join(op, lane[j], lane[j + 16]);
    for (int j = 0; j < 8; j++)
        lane[j] = lane_join(op, lane[j], lane[j + 8]);
    for (int j = 0; j < 4; j++)
        lane[j] = lane_join(op, lane[j], lane[j + 4]);
    for (int j = 0; j < 2; j++)
        lane[j] = lane_join(op, lane[j], lane[j + 2]);
    return lane_join(op, lane[0], lane[1]);
}

/* x and y (NULL where the operation has one sequence) are contiguous. */
NUMERICS_FN float lanes_run(enum lane_op op, size_t n, const float *x, const float *y, float c)
{
    float total = lane_start(op);

    for (size_t start = 0; start < n; start += REDUCE_BLOCK) {
        size_t end = n - start < REDUCE_BLOCK ? n : start + REDUCE_BLOCK, i = start;
        float lane[REDUCE_LANES];

        for (int j = 0; j < REDUCE_LANES; j++)
            lane[j] = lane_start(op);
#ifndef LANES_PLAIN
        for (; i + REDUCE_LANES <= end; i += REDUCE_LANES)
            for (int j = 0; j < REDUCE_LANES; j++)
                lane[j] = lane_step(op, lane[j], x[i + j], y ? y[i + j] : 0.0f, c);
#endif
        for (; i < end; i++)
            lane[(i - start) % REDUCE_LANES] = lane_step(op, lane[(i - start) % REDUCE_LANES], x[i], y ? y[i] : 0.0f, c);
        total = lane_join(op, total, lanes_tree(op, lane));
    }
    return total;
}

/* The same over columns: sequence i of column c is x[i * inner + c], width at most LANES_COLUMNS; per_row (NULL or [n]) is a factor
 * shared by the columns: the step sees x * per_row[i]. c [width] as above, NULL for 0. */
#define LANES_COLUMNS 64
NUMERICS_FN void lanes_columns(enum lane_op op, size_t n, size_t inner, size_t width, const float *x, const float *y,
                               const float *per_row, const float *c, float *total)
{
    float lane[REDUCE_LANES][LANES_COLUMNS];

    for (size_t k = 0; k < width; k++)
        total[k] = lane_start(op);
    for (size_t start = 0; start < n; start += REDUCE_BLOCK) {
        size_t count = n - start < REDUCE_BLOCK ? n - start : REDUCE_BLOCK;
        int live = REDUCE_LANES;

#ifndef LANES_PLAIN
        /* Lanes that see no element hold the start, and joining a start changes no lane (but -0, which the last join makes +0 in any
         * case): few rows need few lanes. */
        while (live > 1 && (size_t)live / 2 >= count)
            live /= 2;
#endif
        for (int j = 0; j < live; j++)
            for (size_t k = 0; k < width; k++)
                lane[j][k] = lane_start(op);
        for (size_t i = 0; i < count; i++) {
            const float *row = x + (start + i) * inner, *other = y ? y + (start + i) * inner : row;
            float *l = lane[i % REDUCE_LANES];

            if (per_row)
                for (size_t k = 0; k < width; k++)
                    l[k] = lane_step(op, l[k], row[k] * per_row[start + i], other[k], c ? c[k] : 0.0f);
            else
                for (size_t k = 0; k < width; k++)
                    l[k] = lane_step(op, l[k], row[k], other[k], c ? c[k] : 0.0f);
        }
        for (int w = live / 2; w > 0; w /= 2)
            for (int j = 0; j < w; j++)
                for (size_t k = 0; k < width; k++)
                    lane[j][k] = lane_join(op, lane[j][k], lane[j + w][k]);
        for (size_t k = 0; k < width; k++)
            total[k] = lane_join(op, total[k], lane[0][k]);
    }
}

#endif
