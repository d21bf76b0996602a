#include "native/kernel/gemm.h"

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

static float reference_output(const struct gemm *gemm, const float *a, const float *b, float start)
{
    float total = gemm->form == GEMM_ONTO ? start : 0.0f;

    for (size_t chunk = 0; chunk < gemm->k; chunk += GEMM_CHUNK) {
        size_t end = gemm->k - chunk < GEMM_CHUNK ? gemm->k : chunk + GEMM_CHUNK;
        float sum = 0.0f;

        for (size_t k = chunk; k < end; k++)
            sum = f32_fma(a[(ptrdiff_t)k * gemm->a_col], b[(ptrdiff_t)k * gemm->b_row], sum);
        total = total + sum;
    }
    return gemm->form == GEMM_LOW_RANK ? f32_fma(gemm->scale, total, start) : total;
}

void gemm_block_scalar(const struct gemm_rectangle *at, float *pack)
{
    const struct gemm *gemm = at->gemm;

    (void)pack;
    for (size_t i = 0; i < at->rows; i++)
        for (size_t j = 0; j < at->columns; j++) {
            ptrdiff_t to = (ptrdiff_t)i * gemm->c_row + (ptrdiff_t)j;

            at->c[to] = reference_output(gemm, at->a + (ptrdiff_t)i * gemm->a_row, at->b + (ptrdiff_t)j * gemm->b_col,
                                         gemm->form == GEMM_PLAIN ? 0.0f : at->onto[to]);
        }
}

/* The rectangle of `rows` x `columns` at (row, column) of one batch. */
static struct gemm_rectangle rectangle(const struct gemm *gemm, size_t batch, size_t row, size_t column, size_t rows,
                                       size_t columns)
{
    ptrdiff_t outer = (ptrdiff_t)(batch / gemm->batch[1]), inner = (ptrdiff_t)(batch % gemm->batch[1]);
    ptrdiff_t r = (ptrdiff_t)row, c = (ptrdiff_t)column;
    ptrdiff_t to = outer * gemm->c_batch[0] + inner * gemm->c_batch[1] + r * gemm->c_row + c;

    return (struct gemm_rectangle){ .gemm = gemm,
                                    .rows = rows,
                                    .columns = columns,
                                    .a = gemm->a + outer * gemm->a_batch[0] + inner * gemm->a_batch[1] + r * gemm->a_row,
                                    .b = gemm->b + outer * gemm->b_batch[0] + inner * gemm->b_batch[1] + c * gemm->b_col,
                                    .onto = gemm->form == GEMM_PLAIN ? NULL : gemm->onto + to,
                                    .c = gemm->c + to };
}

void gemm_reference(const struct gemm *gemm)
{
    for (size_t batch = 0; batch < gemm->batch[0] * gemm->batch[1]; batch++) {
        struct gemm_rectangle all = rectangle(gemm, batch, 0, 0, gemm->m, gemm->n);

        gemm_block_scalar(&all, NULL);
    }
}

struct job {
    const struct gemm *gemm;
    void (*block)(const struct gemm_rectangle *at, float *pack);
    size_t row_cuts, column_cuts;
};

static size_t cut(size_t count, size_t unit, size_t parts, size_t i)
{
    size_t units = (count + unit - 1) / unit, at = (units * i / parts) * unit;

    return at < count ? at : count;
}

static void share(void *context, size_t task)
{
    const struct job *job = context;
    const struct gemm *gemm = job->gemm;
    size_t r = task % job->row_cuts, rest = task / job->row_cuts, c = rest % job->column_cuts, batch = rest / job->column_cuts;
    size_t row = cut(gemm->m, 8, job->row_cuts, r), rows = cut(gemm->m, 8, job->row_cuts, r + 1) - row;
    size_t column = cut(gemm->n, 48, job->column_cuts, c), columns = cut(gemm->n, 48, job->column_cuts, c + 1) - column;
    struct gemm_rectangle at = rectangle(gemm, batch, row, column, rows, columns);

    if (rows > 0 && columns > 0)
        job->block(&at, pool_scratch());
}

/* Enough rectangles to share out, each as large as that leaves: columns are cut first, since rows share a packed B. */
static void divide(struct job *job, unsigned threads)
{
    const struct gemm *gemm = job->gemm;
    size_t batches = gemm->batch[0] * gemm->batch[1], wanted = threads > 1 ? 2 * (size_t)threads : 1;
    size_t column_units = (gemm->n + 47) / 48, row_units = (gemm->m + 31) / 32;

    job->column_cuts = (gemm->n + GEMM_RECTANGLE - 1) / GEMM_RECTANGLE;
    job->row_cuts = 1;
    if (batches * gemm->m * gemm->n * gemm->k < (size_t)1 << 20)
        return;
    if (batches * job->column_cuts < wanted) {
        size_t more = (wanted + batches - 1) / batches;

        job->column_cuts = more < column_units / 2 ? more : column_units >= 4 ? column_units / 2 : job->column_cuts;
    }
    if (batches * job->column_cuts < wanted) {
        size_t more = (wanted + batches * job->column_cuts - 1) / (batches * job->column_cuts);

        job->row_cuts = more < row_units ? more : row_units;
    }
}

void gemm_run(struct pool *pool, const struct gemm *gemm)
{
    static void (*const blocks[KERNEL_ISAS])(const struct gemm_rectangle *at, float *pack) = { gemm_block_scalar,
                                                                                               KERNEL_X86(gemm_block_avx2),
                                                                                               KERNEL_X86(gemm_block_avx512) };
    struct job job = { .gemm = gemm, .block = blocks[kernel_isa()] };
    size_t batches = gemm->batch[0] * gemm->batch[1];

    if (gemm->m == 0 || gemm->n == 0 || batches == 0)
        return;
    if (gemm->k == 0 || (gemm->form == GEMM_LOW_RANK && gemm->k > GEMM_CHUNK))
        job.block = gemm_block_scalar;
    divide(&job, pool_threads(pool));
    size_t tasks = batches * job.column_cuts * job.row_cuts;
    bool small = batches * gemm->m * gemm->n * gemm->k < (size_t)1 << 20;

    pool_run(small ? NULL : pool, tasks, share, &job);
}
