#include <math.h>
#include <stdio.h>
#include <string.h>

#include "native/kernel/elementwise.h"
#include "runtime/cli/benches.h"

/* How fast; how exact is bench/functions.c, a program of its own for its need of MPFR. */
enum { VALUES = 4096 }; /* of one call: they lie in the first-level cache */

struct functions {
    enum elementwise_op op;
    float (*peer)(float x, float y);
    float x[VALUES], y[VALUES], out[VALUES];
};

/* --- the C library's ------------------------------------------------------------------------------------------------------- */

#define PEER(name, formula)                                                                                                      \
    static float peer_##name(float x, float y)                                                                                   \
    {                                                                                                                            \
        (void)y;                                                                                                                 \
        return formula;                                                                                                          \
    }
PEER(exp, expf(x))
PEER(expm1, expm1f(x))
PEER(log, logf(x))
PEER(log1p, log1pf(x))
PEER(tanh, tanhf(x))
PEER(sigmoid, 1 / (1 + expf(-x)))
PEER(silu, x / (1 + expf(-x)))
PEER(gelu, x / 2 * (1 + erff(x * 0.70710677f)))
PEER(erf, erff(x))
PEER(sin, sinf(x))
PEER(cos, cosf(x))
PEER(rsqrt, 1 / sqrtf(x))
PEER(pow, powf(x, y))

static const struct {
    enum elementwise_op op;
    float (*peer)(float x, float y);
    float low, high; /* arguments */
} rows[] = {
    { ELEMENTWISE_EXP, peer_exp, -20, 20 },    { ELEMENTWISE_EXPM1, peer_expm1, -2, 2 },
    { ELEMENTWISE_LOG, peer_log, 0.01f, 100 }, { ELEMENTWISE_LOG1P, peer_log1p, -0.9f, 9 },
    { ELEMENTWISE_TANH, peer_tanh, -4, 4 },    { ELEMENTWISE_SIGMOID, peer_sigmoid, -8, 8 },
    { ELEMENTWISE_SILU, peer_silu, -8, 8 },    { ELEMENTWISE_GELU, peer_gelu, -4, 4 },
    { ELEMENTWISE_ERF, peer_erf, -3, 3 },      { ELEMENTWISE_SIN, peer_sin, -100, 100 },
    { ELEMENTWISE_COS, peer_cos, -100, 100 },  { ELEMENTWISE_RSQRT, peer_rsqrt, 0.01f, 100 },
    { ELEMENTWISE_POW, peer_pow, 0.01f, 10 },
};

static void ours(void *context)
{
    struct functions *f = context;
    const struct space space = { .rank = 1, .size = { VALUES } };
    const struct view in[] = { { f->x, { 1 } }, { f->y, { 1 } } };

    elementwise_run(NULL, f->op, KERNEL_F32, &space, in, f->out);
}

static void theirs(void *context)
{
    struct functions *f = context;

    for (size_t i = 0; i < VALUES; i++)
        f->out[i] = f->peer(f->x[i], f->y[i]);
}

bool bench_functions(struct measure *m, struct error *err)
{
    struct functions f;

    (void)err;
    memset(&f, 0, sizeof f);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const double work = VALUES * 1e-9;
        char name[MEASURE_NAME];

        f.op = rows[r].op;
        f.peer = rows[r].peer;
        for (size_t i = 0; i < VALUES; i++) {
            f.x[i] = rows[r].low + (rows[r].high - rows[r].low) * (float)(i * 1657 % VALUES) / VALUES;
            f.y[i] = 4 * (float)(i * 641 % VALUES) / VALUES - 2;
        }
        snprintf(name, sizeof name, "functions.%s", elementwise_name(f.op));
        measure_contest(m, &(struct measure_contest){ .name = name,
                                                      .unit = "10^9/s",
                                                      .peer = "the C library, one by one",
                                                      .ours = { ours, &f, work, 1 },
                                                      .theirs = { theirs, &f, work, 1 },
                                                      .least = 0.01 });
    }
    return true;
}
