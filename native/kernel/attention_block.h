/* attention_block.h - attention by blocks of 64 queries x 64 keys on the register tile of gemm_kernel.h; internal. Compiled once an
 * instruction set under the names ATTENTION_FORWARD and ATTENTION_BACKWARD. */
#include <string.h>

#include "native/kernel/attention_part.h"
#include "native/kernel/gemm_kernel.h"
#include "native/kernel/lanes.h"
#include "native/numerics/activation.h"

#define BLOCK ATTENTION_BLOCK
#define WIDTH ATTENTION_WIDTH_MAX

struct room {
    float s[BLOCK * BLOCK], t[BLOCK * BLOCK], d[BLOCK * BLOCK]; /* scores and probabilities; softcap's tanh; dp and ds */
    float kt[WIDTH * BLOCK], vt[WIDTH * BLOCK];                 /* a key block, transposed */
    float product[BLOCK * WIDTH], pack[BLOCK * (WIDTH + VW)];
    float o[ATTENTION_GROUPS][BLOCK * WIDTH], m[ATTENTION_GROUPS][BLOCK], l[ATTENTION_GROUPS][BLOCK];
};
_Static_assert(sizeof(struct room) <= ATTENTION_SCRATCH * sizeof(float), "the scratch must hold a task's room");

/* C [rows, columns] = start + A B, one chunk; `start` NULL for +0. B's rows are contiguous. */
static void product(size_t rows, size_t columns, size_t k, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                    ptrdiff_t b_row, const float *start, float *c, ptrdiff_t c_row, float *pack)
{
    size_t vectors = (columns + VW - 1) / VW, panels = (vectors + GEMM_WIDE - 1) / GEMM_WIDE;

#ifdef GEMM_64_ROWS
    if (columns == 64) {
        gemm_panel_64(rows, k, a, a_row, a_col, b, b_row, (struct gemm_end){ start, c, c_row, columns, GEMM_ONTO, 0.0f });
        return;
    }
#endif
    for (size_t p = 0; p < panels; p++) {
        size_t first = gemm_cut(vectors, panels, p) * VW, width = gemm_cut(vectors, panels, p + 1) * VW - first;
        struct gemm_end end = { .start = start ? start + first : NULL, .c = c + first, .row = c_row, .form = GEMM_ONTO };
        const float *from = b + first;
        ptrdiff_t step = b_row;

        end.columns = columns - first < width ? columns - first : width;
        if (end.columns < width) {
            gemm_pack(k, end.columns, from, b_row, 1, pack, width);
            from = pack;
            step = (ptrdiff_t)width;
        }
        gemm_panel(rows, width / VW, k, a, a_row, a_col, from, step, end);
    }
}

/* Whether any of these queries may see a key of this block (by causality and window). */
static bool meets(const struct attention *at, size_t i0, size_t in, size_t j0, size_t jn)
{
    for (size_t i = i0; i < i0 + in; i++) {
        size_t from, to;

        attention_range(at, i, &from, &to);
        if (from < j0 + jn && to > j0)
            return true;
    }
    return false;
}

/* Scores of a pair of blocks: scaled, capped, -inf where not allowed; rows of BLOCK. With softcap t keeps its tanh. */
static void scores(const struct attention *at, size_t batch, size_t i0, size_t in, size_t j0, size_t jn, const float *q,
                   struct room *room)
{
    product(in, BLOCK, at->width, q, at->q_time, 1, room->kt, BLOCK, NULL, room->s, BLOCK, room->pack);
    for (size_t i = 0; i < in; i++) {
        float *s = room->s + i * BLOCK, *t = room->t + i * BLOCK, scale = at->scale, cap = at->softcap;
        size_t from, to;

        for (size_t j = 0; j < BLOCK; j++)
            s[j] = s[j] * scale;
        if (cap != 0.0f)
            for (size_t j = 0; j < BLOCK; j++) {
                t[j] = f32_tanh(s[j] / cap);
                s[j] = cap * t[j];
            }
        attention_range(at, i0 + i, &from, &to);
        from = from > j0 ? from - j0 : 0;
        to = to > j0 ? to - j0 : 0;
        to = to < jn ? to : jn;
        for (size_t j = 0; j < from && j < BLOCK; j++)
            s[j] = -__builtin_inff();
        for (size_t j = to; j < BLOCK; j++)
            s[j] = -__builtin_inff();
        if (at->segment_q) {
            int32_t own = at->segment_q[batch * at->queries + i0 + i];
            const int32_t *other = at->segment_k + batch * at->keys + j0;

            for (size_t j = 0; j < jn; j++)
                s[j] = other[j] == own ? s[j] : -__builtin_inff();
        }
    }
}

/* One key block enters the state of the rows. Rows that see nothing of it stay as they are. */
static void forward_rows(size_t in, size_t width, size_t count, const float *v, ptrdiff_t v_row, struct room *room, size_t g)
{
    float a[BLOCK];
    bool live[BLOCK];

    for (size_t i = 0; i < in; i++) {
        float *s = room->s + i * BLOCK, m = room->m[g][i], high = lanes_run(LANE_MAX, BLOCK, s, NULL, 0.0f);

        live[i] = high != -__builtin_inff();
        if (!live[i]) {
            memset(s, 0, BLOCK * sizeof *s);
            continue;
        }
        high = high > m ? high : m;
        a[i] = m == -__builtin_inff() ? 0.0f : f32_exp(m - high);
        for (size_t j = 0; j < BLOCK; j++)
            s[j] = f32_exp(s[j] - high);
        room->m[g][i] = high;
        room->l[g][i] = f32_fma(room->l[g][i], a[i], lanes_run(LANE_SUM, BLOCK, s, NULL, 0.0f));
    }
    product(in, width, count, room->s, BLOCK, 1, v, v_row, NULL, room->product, WIDTH, room->pack);
    for (size_t i = 0; i < in; i++) {
        float *o = room->o[g] + i * WIDTH, *x = room->product + i * WIDTH;

        if (live[i])
            for (size_t d = 0; d < width; d++)
                o[d] = f32_fma(o[d], a[i], x[d]);
    }
}

void ATTENTION_FORWARD(const struct attention_task *task, size_t batch, size_t head, size_t g0, size_t groups, size_t i0,
                       float *scratch)
{
    const struct attention *at = task->at;
    struct room *room = (struct room *)scratch;
    size_t in = at->queries - i0 < BLOCK ? at->queries - i0 : BLOCK;

    memset(room->o, 0, groups * sizeof room->o[0]);
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < in; i++) {
            room->m[g][i] = -__builtin_inff();
            room->l[g][i] = 0.0f;
        }
    for (size_t j0 = 0; j0 < at->keys; j0 += BLOCK) {
        size_t jn = at->keys - j0 < BLOCK ? at->keys - j0 : BLOCK;

        if (!meets(at, i0, in, j0, jn))
            continue;
        const float *k = attention_block_at(at, task->k, at->k_block, batch, head, j0);
        const float *v = attention_block_at(at, task->v, at->v_block, batch, head, j0);

        gemm_pack(at->width, jn, k, 1, at->k_time, room->kt, BLOCK);
        for (size_t g = 0; g < groups; g++) {
            scores(at, batch, i0, in, j0, jn, task->q + attention_q_at(at, batch, head, g0 + g) + (ptrdiff_t)i0 * at->q_time,
                   room);
            forward_rows(in, at->width, jn, v, at->k_time, room, g);
        }
    }
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < in; i++) {
            float l = room->l[g][i], inverse = 1.0f / l, *o = room->o[g] + i * WIDTH;
            float *y = task->y + attention_q_at(at, batch, head, g0 + g) + (ptrdiff_t)(i0 + i) * at->q_time;

            for (size_t d = 0; d < at->width; d++)
                y[d] = l == 0.0f ? 0.0f : o[d] * inverse;
            if (task->lse_out)
                task->lse_out[attention_lse_at(at, batch, head, g0 + g) + (ptrdiff_t)(i0 + i)] =
                    l == 0.0f ? 0.0f : room->m[g][i] + f32_log(l);
        }
}

/* room->s becomes p, room->d becomes ds */
static void backward_rows(const struct attention *at, size_t in, const float *lse, const float *delta, struct room *room)
{
    for (size_t i = 0; i < in; i++) {
        float *s = room->s + i * BLOCK, *d = room->d + i * BLOCK, *t = room->t + i * BLOCK, scale = at->scale;

        for (size_t j = 0; j < BLOCK; j++)
            s[j] = f32_exp(s[j] - lse[i]); /* +0 where not allowed */
        for (size_t j = 0; j < BLOCK; j++)
            d[j] = s[j] == 0.0f ? 0.0f : s[j] * (d[j] - delta[i]);
        if (at->softcap != 0.0f)
            for (size_t j = 0; j < BLOCK; j++)
                d[j] = d[j] * f32_fma(-t[j], t[j], 1.0f);
        for (size_t j = 0; j < BLOCK; j++)
            d[j] = d[j] * scale;
    }
}

/* `at_q`, `at_k`: offsets of the blocks' first rows. */
static void backward_pair(const struct attention_task *task, size_t batch, size_t i0, size_t in, size_t j0, size_t jn,
                          ptrdiff_t at_q, ptrdiff_t at_k, ptrdiff_t row, const struct attention_turn *turn, size_t step,
                          struct room *room)
{
    const struct attention *at = task->at;
    size_t width = at->width;

    scores(at, batch, i0, in, j0, jn, task->q + at_q, room);
    product(in, BLOCK, width, task->dy + at_q, at->q_time, 1, room->vt, BLOCK, NULL, room->d, BLOCK, room->pack);
    backward_rows(at, in, task->lse + row, task->delta + row, room);
    product(jn, width, in, room->s, 1, BLOCK, task->dy + at_q, at->q_time, task->dv + at_k, task->dv + at_k, at->k_time,
            room->pack);
    product(jn, width, in, room->d, 1, BLOCK, task->q + at_q, at->q_time, task->dk + at_k, task->dk + at_k, at->k_time,
            room->pack);
    attention_turn_wait(turn, step);
    product(in, width, jn, room->d, BLOCK, 1, task->k + at_k, at->k_time, task->dq + at_q, task->dq + at_q, at->q_time,
            room->pack);
}

void ATTENTION_BACKWARD(const struct attention_task *task, size_t batch, size_t head, size_t j0, struct attention_turn turn,
                        float *scratch)
{
    const struct attention *at = task->at;
    struct room *room = (struct room *)scratch;
    size_t jn = at->keys - j0 < BLOCK ? at->keys - j0 : BLOCK, step = 0;
    ptrdiff_t at_k = attention_k_at(at, batch, head) + (ptrdiff_t)j0 * at->k_time;

    gemm_pack(at->width, jn, task->k + at_k, 1, at->k_time, room->kt, BLOCK);
    gemm_pack(at->width, jn, task->v + at_k, 1, at->k_time, room->vt, BLOCK);
    for (size_t g = 0; g < at->group; g++)
        for (size_t i0 = 0; i0 < at->queries; i0 += BLOCK, step++) {
            size_t in = at->queries - i0 < BLOCK ? at->queries - i0 : BLOCK;
            ptrdiff_t at_q = attention_q_at(at, batch, head, g) + (ptrdiff_t)i0 * at->q_time;

            if (meets(at, i0, in, j0, jn))
                backward_pair(task, batch, i0, in, j0, jn, at_q, at_k, attention_lse_at(at, batch, head, g) + (ptrdiff_t)i0,
                              &turn, step, room);
            attention_turn_pass(&turn, step);
        }
}
