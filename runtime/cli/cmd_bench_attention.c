/* Attention over 2048 positions, forward and backward, at the heads of SmolLM2-135M, against PyTorch's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/kernel/attention.h"
#include "runtime/cli/benches.h"
#include "runtime/cli/stepper.h"

enum { LENGTH = 2048, KEYS = 3, GROUP = 3, WIDTH = 64, QUERIES = KEYS * GROUP };

/* Operations of the half that is seen: two products forward, five backward. */
#define WORK (7 * 2.0 * LENGTH * LENGTH / 2 * QUERIES * WIDTH * 1e-9)

struct side {
    struct pool *pool;
    struct attention shape;
    float *q, *k, *v, *y, *lse, *dy, *delta, *dq, *dk, *dv;
};

static float *numbers(size_t count)
{
    float *x = malloc(count * sizeof *x);
    uint32_t state = 1;

    for (size_t i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return x;
}

static bool pass_served(void *context, const char *line, struct error *err)
{
    struct side *s = context;

    (void)line, (void)err;
    attention_run(s->pool, &s->shape, s->q, s->k, s->v, s->y, s->lse);
    attention_backward(s->pool, &s->shape, s->q, s->k, s->v, s->y, s->lse, s->dy, s->delta, s->dq, s->dk, s->dv);
    return true;
}

static bool serve(unsigned threads, struct error *err)
{
    const size_t queries = (size_t)LENGTH * QUERIES * WIDTH, keys = (size_t)LENGTH * KEYS * WIDTH,
                 rows = (size_t)LENGTH * QUERIES;
    struct side s = { .pool = pool_new(threads),
                      .shape = { .batch = 1,
                                 .queries = LENGTH,
                                 .keys = LENGTH,
                                 .heads = KEYS,
                                 .group = GROUP,
                                 .width = WIDTH,
                                 .scale = 0.125f,
                                 .causal = true,
                                 .q_batch = (ptrdiff_t)queries,
                                 .q_time = QUERIES * WIDTH,
                                 .q_head = GROUP * WIDTH,
                                 .q_group = WIDTH,
                                 .k_batch = (ptrdiff_t)keys,
                                 .k_time = KEYS * WIDTH,
                                 .k_head = WIDTH } };
    float **const all[] = { &s.q, &s.y, &s.dy, &s.dq, &s.k, &s.v, &s.dk, &s.dv, &s.lse, &s.delta };
    bool ok = s.pool != NULL;

    for (size_t i = 0; i < 10; i++)
        ok = (*all[i] = numbers(i < 4 ? queries : i < 8 ? keys : rows)) && ok;
    ok = ok ? stepper_serve("rondo", pass_served, &s, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for attention");
    for (size_t i = 0; i < 10; i++)
        free(*all[i]);
    pool_free(s.pool);
    return ok;
}

bool bench_attention(struct measure *m, struct error *err)
{
    char program[4096], threads[16];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    struct stepper ours, theirs;
    bool ok;

    if (option_text(m->in, "serve", NULL))
        return serve(m->in->threads, err);
    if (!measure_wanted(m, "attention.2048"))
        return true;
    program[length > 0 ? length : 0] = 0;
    snprintf(threads, sizeof threads, "%u", m->in->threads);
    if (!stepper_start(&theirs,
                       (const char *const[]){ stepper_python(), "bench/peers/torch_attention.py", "--threads", threads, NULL },
                       err)) {
        error_clear(err);
        measure_absent(m, "attention.2048", "scaled_dot_product_attention", "torch cannot be imported, or this is no checkout",
                       "sh bench/run.sh, or RONDO_BENCH_PYTHON");
        return true;
    }
    ok = stepper_start(
        &ours, (const char *const[]){ program, "bench", "attention", "--serve", "ours", "--threads", threads, NULL }, err);
    if (ok) {
        const struct measure_row row =
            measure_run(m, &(struct measure_contest){ .name = "attention.2048",
                                                      .unit = "GFLOP/s",
                                                      .peer = theirs.name,
                                                      .ours = { stepper_step, &ours, WORK, m->in->threads, &ours.cpu },
                                                      .theirs = { stepper_step, &theirs, WORK, m->in->threads, &theirs.cpu },
                                                      .least = 0.2,
                                                      .rest = 0.3 });

        ok = !ours.failed && !theirs.failed;
        if (ok)
            measure_print(m, &row);
        else
            error_set(err, ERROR_MISSING, NULL, "a process ended before its pass");
        stepper_stop(&ours);
    }
    stepper_stop(&theirs);
    return ok;
}
