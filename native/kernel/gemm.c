#include "native/kernel/gemm.h"

#include <stdbool.h>

#include "native/kernel/class.h"
#include "native/kernel/gemm_part.h"
#include "native/numerics/f32.h"

struct gemm gemm_dense(size_t m, size_t n, size_t k, const float *a, int a_transposed, const float *b, int b_transposed, float *c)
{
    return (struct gemm){ .m = m,
                          .n = n,
                          .k = k,
                          .batch = { 1, 1 },
                          .a = a,
                          .b = b,
                          .c = c,
                          .a_row = a_transposed ? 1 : (ptrdiff_t)k,
                          .a_col = a_transposed ? (ptrdiff_t)m : 1,
                          .b_row = b_transposed ? 1 : (ptrdiff_t)n,
                          .b_col = b_transposed ? (ptrdiff_t)k : 1,
                          .c_row = (ptrdiff_t)n };
}

static float b_element(const struct gemm *gemm, const struct gemm_part *part, size_t k, size_t j)
{
    ptrdiff_t offset = (ptrdiff_t)k * gemm->b_row + (ptrdiff_t)j * gemm->b_col;
    float value;

    if (!gemm->b_read)
        return part->b[offset];
    gemm->b_read(gemm->b_stored, part->b_first + (size_t)offset, 1, &value);
    return value;
}

static float reference_output(const struct gemm_part *part, size_t i, size_t j, float start)
{
    const struct gemm *gemm = part->gemm;
    const float *a = part->a + (ptrdiff_t)i * gemm->a_row;
    float total = gemm->form == GEMM_ONTO ? start : 0.0f;

    for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {
        size_t end = gemm->k - chunk < GEMM_CHUNK ? gemm->k : chunk + GEMM_CHUNK;
        float sum = 0.0f;

        for (size_t k = chunk; k < end; k++)
            sum = f32_fma(a[(ptrdiff_t)k * gemm->a_col], b_element(gemm, part, k, j), sum);
        total = total + sum;
    }
    return gemm->form == GEMM_LOW_RANK ? f32_fma(gemm->scale, total, start) : total;
}

void gemm_block_scalar(const struct gemm_rectangle *at, float *pack)
{
    (void)pack;
    for (size_t p = 0; p < at->count; p++)
        for (size_t i = 0; i < at->rows; i++)
            for (size_t j = 0; j < at->columns; j++) {
                ptrdiff_t to = (ptrdiff_t)i * at->c_row + (ptrdiff_t)j;
                const float *onto = p > 0 ? at->c : at->part[p].onto;

                at->c[to] = reference_output(&at->part[p], i, j, onto ? onto[to] : 0.0f);
            }
}

/* The rectangle of `rows` x `columns` at (row, column) of one batch. */
static struct gemm_rectangle rectangle(const struct gemm *chain, size_t count, size_t batch, size_t row, size_t column,
                                       size_t rows, size_t columns)
{
    ptrdiff_t outer = (ptrdiff_t)(batch / chain->batch[1]), inner = (ptrdiff_t)(batch % chain->batch[1]);
    ptrdiff_t r = (ptrdiff_t)row, c = (ptrdiff_t)column;
    ptrdiff_t to = outer * chain->c_batch[0] + inner * chain->c_batch[1] + r * chain->c_row + c;
    struct gemm_rectangle at = { .rows = rows, .columns = columns, .c = chain->c + to, .c_row = chain->c_row, .count = count };

    for (size_t i = 0; i < count; i++) {
        const struct gemm *gemm = &chain[i];
        ptrdiff_t b = outer * gemm->b_batch[0] + inner * gemm->b_batch[1] + c * gemm->b_col;

        at.part[i] = (struct gemm_part){ .gemm = gemm,
                                         .a = gemm->a + outer * gemm->a_batch[0] + inner * gemm->a_batch[1] + r * gemm->a_row,
                                         .b = gemm->b_read ? NULL : gemm->b + b,
                                         .b_first = gemm->b_first + (gemm->b_read ? (size_t)b : 0),
                                         .onto = gemm->form == GEMM_PLAIN ? NULL : gemm->onto + to };
        if (i > 0)
            at.part[i].onto = NULL;
    }
    return at;
}

void gemm_reference(const struct gemm *gemm)
{
    for (size_t batch = 0; batch < gemm->batch[0] * gemm->batch[1]; batch++) {
        struct gemm_rectangle all = rectangle(gemm, 1, batch, 0, 0, gemm->m, gemm->n);

        gemm_block_scalar(&all, NULL);
    }
}

_Static_assert((GEMM_PACK + 16 * GEMM_RECTANGLE) * sizeof(float) <= GEMM_SCRATCH && GEMM_SCRATCH <= POOL_SCRATCH,
               "what a product packs has room");

enum { ROWS_TO_CUT = 192 }; /* rows that are worth cutting before columns */

struct job {
    const struct gemm *chain;
    size_t count;
    void (*block)(const struct gemm_rectangle *at, float *pack);
    size_t row_cuts, column_cuts;
    bool turned;
};

static size_t cut(size_t count, size_t unit, size_t parts, size_t i)
{
    size_t units = (count + unit - 1) / unit, at = (units * i / parts) * unit;

    return at < count ? at : count;
}

/* C' = B' A' with few columns of C: the rectangle of `chain` (which is turned), written across into C. */
static void share_turned(const struct job *job, struct gemm_rectangle *at, float *scratch)
{
    const struct gemm *turned = job->chain;
    float *wide = scratch + GEMM_PACK, *c = at->c;
    ptrdiff_t c_row = at->c_row;

    /* at->c was worked out with the strides of a row-major C': its columns are rows of C */
    at->c = wide;
    at->c_row = GEMM_RECTANGLE;
    if (turned->form != GEMM_PLAIN) {
        for (size_t i = 0; i < at->rows; i++)
            for (size_t j = 0; j < at->columns; j++)
                wide[i * GEMM_RECTANGLE + j] = at->part[0].onto[(ptrdiff_t)j * c_row + (ptrdiff_t)i];
        at->part[0].onto = wide;
    }
    job->block(at, scratch);
    for (size_t j = 0; j < at->columns; j++)
        for (size_t i = 0; i < at->rows; i++)
            c[(ptrdiff_t)j * c_row + (ptrdiff_t)i] = wide[i * GEMM_RECTANGLE + j];
}

static void share(void *context, size_t task)
{
    const struct job *job = context;
    const struct gemm *gemm = job->chain;
    size_t r = task % job->row_cuts, rest = task / job->row_cuts, c = rest % job->column_cuts, batch = rest / job->column_cuts;
    size_t row = cut(gemm->m, 8, job->row_cuts, r), rows = cut(gemm->m, 8, job->row_cuts, r + 1) - row;
    size_t column = cut(gemm->n, 48, job->column_cuts, c), columns = cut(gemm->n, 48, job->column_cuts, c + 1) - column;

    if (rows == 0 || columns == 0)
        return;
    struct gemm_rectangle at = rectangle(gemm, job->count, batch, row, column, rows, columns);

    if (job->turned) {
        ptrdiff_t moved = (ptrdiff_t)column * (gemm->c_row - 1) + (ptrdiff_t)row * (1 - gemm->c_row);

        at.c += moved;
        at.part[0].onto = at.part[0].onto ? at.part[0].onto + moved : NULL;
        share_turned(job, &at, pool_scratch());
    } else {
        job->block(&at, pool_scratch());
    }
}

/* Not worth waking others for: by arithmetic, and with few rows by what of B has to be read. */
static bool is_small(const struct job *job)
{
    const struct gemm *gemm = job->chain;
    size_t batches = gemm->batch[0] * gemm->batch[1];

    return batches * gemm->m * gemm->n * gemm->k < (size_t)1 << 20 && batches * gemm->n * gemm->k < (size_t)1 << 16;
}

/* Whether A has to be gathered for each rectangle: columns of A lie apart, rows beside each other. */
static bool is_gathered(const struct job *job)
{
    for (size_t i = 0; i < job->count; i++)
        if (job->chain[i].a_row == 1 && job->chain[i].a_col != 1)
            return true;
    return false;
}

/* Columns of a rectangle: so few that all of K is packed at once when it is short, and C is met once; many where A has to be packed, too. */
static size_t columns_at_once(const struct job *job)
{
    size_t k = 0;

    if (is_gathered(job))
        return GEMM_RECTANGLE;
    for (size_t i = 0; i < job->count; i++)
        k += job->chain[i].k;
    return k <= GEMM_ROOM / 208 ? 192 : 240;
}

/* Enough rectangles to share out, each as large as that leaves: columns are cut first, since rows share a packed B; rows first where A is
 * gathered and has enough of them, since columns share what is gathered. */
static void divide(struct job *job, unsigned threads)
{
    const struct gemm *gemm = job->chain;
    size_t batches = gemm->batch[0] * gemm->batch[1], wanted = threads > 1 ? 2 * (size_t)threads : 1;
    size_t column_units = (gemm->n + 47) / 48, row_units = (gemm->m + 31) / 32;

    size_t most = columns_at_once(job);

    job->column_cuts = (gemm->n + most - 1) / most;
    job->row_cuts = 1;
    if (is_small(job))
        return;
    if (batches * job->column_cuts < wanted && !(is_gathered(job) && gemm->m >= ROWS_TO_CUT)) {
        size_t more = (wanted + batches - 1) / batches;

        job->column_cuts = more < column_units / 2 ? more : column_units >= 4 ? column_units / 2 : job->column_cuts;
    }
    if (batches * job->column_cuts < wanted) {
        size_t more = (wanted + batches * job->column_cuts - 1) / (batches * job->column_cuts);

        job->row_cuts = more < row_units ? more : row_units;
    }
}

static void run(struct pool *pool, const struct gemm *chain, size_t count, bool turned)
{
    static void (*const blocks[KERNEL_ISAS])(const struct gemm_rectangle *at, float *pack) =
        KERNEL_TABLE(gemm_block_scalar, gemm_block);
    struct job job = { .chain = chain, .count = count, .block = blocks[kernel_isa()], .turned = turned };
    size_t batches = chain->batch[0] * chain->batch[1];

    if (chain->m == 0 || chain->n == 0 || batches == 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (chain[i].k == 0 || (chain[i].form == GEMM_LOW_RANK && chain[i].k > GEMM_CHUNK))
            job.block = gemm_block_scalar;
    divide(&job, pool_threads(pool));
    size_t tasks = batches * job.column_cuts * job.row_cuts;

    pool_run(is_small(&job) ? NULL : pool, tasks, share, &job);
}

/* A tall C with few columns, A stored by columns: its transpose is computed, so that vectors run along A. The product of two numbers
 * does not depend on their order. */
static bool turned_pays(const struct gemm *gemm)
{
    return gemm->n <= 16 && gemm->m >= 64 && gemm->a_row == 1 && !gemm->b_read && kernel_isa() != KERNEL_SCALAR;
}

void gemm_run_chain(struct pool *pool, const struct gemm *chain, size_t count)
{
    if (count > 1 || !turned_pays(chain)) {
        run(pool, chain, count, false);
        return;
    }
    struct gemm turned = *chain;

    turned.m = chain->n;
    turned.n = chain->m;
    turned.a = chain->b;
    turned.a_row = chain->b_col;
    turned.a_col = chain->b_row;
    turned.b = chain->a;
    turned.b_row = chain->a_col;
    turned.b_col = chain->a_row;
    for (int i = 0; i < 2; i++) {
        turned.a_batch[i] = chain->b_batch[i];
        turned.b_batch[i] = chain->a_batch[i];
    }
    run(pool, &turned, 1, true);
}

void gemm_run(struct pool *pool, const struct gemm *gemm)
{
    gemm_run_chain(pool, gemm, 1);
}
