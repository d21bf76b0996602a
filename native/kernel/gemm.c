#include "native/kernel/gemm.h"

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

void gemm_reference(const struct gemm *gemm)
{
    for (size_t outer = 0; outer < gemm->batch[0]; outer++)
        for (size_t inner = 0; inner < gemm->batch[1]; inner++)
            for (size_t i = 0; i < gemm->m; i++)
                for (size_t j = 0; j < gemm->n; j++) {
                    ptrdiff_t at = (ptrdiff_t)outer * gemm->c_batch[0] + (ptrdiff_t)inner * gemm->c_batch[1] +
                                   (ptrdiff_t)i * gemm->c_row + (ptrdiff_t)j;
                    const float *a = gemm->a + (ptrdiff_t)outer * gemm->a_batch[0] + (ptrdiff_t)inner * gemm->a_batch[1] +
                                     (ptrdiff_t)i * gemm->a_row;
                    const float *b = gemm->b + (ptrdiff_t)outer * gemm->b_batch[0] + (ptrdiff_t)inner * gemm->b_batch[1] +
                                     (ptrdiff_t)j * gemm->b_col;

                    gemm->c[at] = reference_output(gemm, a, b, gemm->form == GEMM_PLAIN ? 0.0f : gemm->onto[at]);
                }
}

void gemm_run(struct pool *pool, const struct gemm *gemm)
{
    (void)pool;
    gemm_reference(gemm);
}
