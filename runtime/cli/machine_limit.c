#include "runtime/cli/machine_limit.h"

#include <stdlib.h>

#include "native/kernel/class.h"
#include "native/kernel/pool.h"
#include "runtime/cli/measure.h"

enum { LOOPS = 3000000, CHAINS = 12, TRIES = 5 };

static volatile float sink;

#if defined(KERNEL_HAS_X86)
#include <immintrin.h>

__attribute__((target("avx512f"))) static void chains_avx512(void *context, size_t task)
{
    __m512 sum[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);

    (void)context;
    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm512_set1_ps((float)(i + (int)task));
    for (long k = 0; k < LOOPS; k++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], x, y);
    for (int i = 0; i < CHAINS; i++)
        sink = sink + _mm512_reduce_add_ps(sum[i]);
}

__attribute__((target("avx2,fma"))) static void chains_avx2(void *context, size_t task)
{
    __m256 sum[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);

    (void)context;
    for (int i = 0; i < CHAINS; i++)
        sum[i] = _mm256_set1_ps((float)(i + (int)task));
    for (long k = 0; k < LOOPS; k++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], x, y);
    for (int i = 0; i < CHAINS; i++)
        sink = sink + _mm256_cvtss_f32(sum[i]);
}
#endif

/* The best of a few tries: a limit is what undisturbed moments give. */
static double best_rate(struct pool *pool, unsigned threads, void (*task)(void *, size_t), void *context, double work)
{
    double best = 0;

    for (int i = 0; i < TRIES; i++) {
        const double began = measure_now();

        pool_run(pool, threads, task, context);

        const double rate = threads * work / (measure_now() - began);

        best = rate > best ? rate : best;
    }
    return best * 1e-9;
}

double machine_limit_arithmetic(unsigned threads)
{
    double rate = 0;
#if defined(KERNEL_HAS_X86)
    struct pool *pool = pool_new(threads);

    if (kernel_isa() == KERNEL_AVX512)
        rate = best_rate(pool, threads, chains_avx512, NULL, 2.0 * 16 * CHAINS * LOOPS);
    else if (kernel_isa() == KERNEL_AVX2)
        rate = best_rate(pool, threads, chains_avx2, NULL, 2.0 * 8 * CHAINS * LOOPS);
    pool_free(pool);
#else
    (void)threads;
#endif
    return rate;
}

#define ARRAY ((size_t)8 << 20) /* floats of each array and thread */

static void added(void *context, size_t task)
{
    float *x = (float *)context + 2 * task * ARRAY, *y = x + ARRAY;

    for (size_t i = 0; i < ARRAY; i++)
        x[i] += y[i];
}

double machine_limit_memory(unsigned threads)
{
    struct pool *pool = pool_new(threads);
    float *arrays = calloc(2 * ARRAY * threads, sizeof *arrays);
    double rate = arrays ? best_rate(pool, threads, added, arrays, 3.0 * ARRAY * sizeof *arrays) : 0;

    free(arrays);
    pool_free(pool);
    return rate;
}
