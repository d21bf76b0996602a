/* Matrix products against OpenBLAS, over the shapes of a training step of SmolLM2-135M, each side in a process of its own: a library's
 * threads that spin after a call would take the other's time. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/kernel/gemm.h"
#include "runtime/cli/benches.h"
#include "runtime/cli/machine_limit.h"
#include "runtime/cli/stepper.h"

/* A request: form, m, n, k, how often. Forms as in a linear layer of `n` outputs over `k` inputs and m tokens:
 *     0  y = x W'      1  dx = dy W      2  dW = dy' x       so that A or B is stored transposed */
struct product {
    int form;
    size_t m, n, k, times;
};

struct side {
    struct pool *pool;
    float *a, *b, *c;
    size_t room[3];
    /* OpenBLAS */
    void (*sgemm)(int order, int a_transposed, int b_transposed, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
};

static bool room_for(float **x, size_t *room, size_t count)
{
    if (count <= *room)
        return true;
    free(*x);
    *x = aligned_alloc(64, (count * sizeof **x + 63) / 64 * 64);
    *room = *x ? count : 0;
    for (size_t i = 0; *x && i < count; i++)
        (*x)[i] = (float)(i % 31) - 15;
    return *x != NULL;
}

static void multiply(const struct side *s, const struct product *p)
{
    bool at = p->form == 2, bt = p->form == 0;

    for (size_t i = 0; i < p->times; i++) {
        struct gemm gemm = gemm_dense(p->m, p->n, p->k, s->a, at, s->b, bt, s->c);

        if (s->sgemm)
            s->sgemm(101, at ? 112 : 111, bt ? 112 : 111, (int)p->m, (int)p->n, (int)p->k, 1, s->a, (int)(at ? p->m : p->k), s->b,
                     (int)(bt ? p->k : p->n), 0, s->c, (int)p->n);
        else
            gemm_run(s->pool, &gemm);
    }
}

static bool product_served(void *context, const char *line, struct error *err)
{
    struct side *s = context;
    struct product p;

    if (sscanf(line, "%d %zu %zu %zu %zu", &p.form, &p.m, &p.n, &p.k, &p.times) != 5)
        return error_set(err, ERROR_SYNTAX, "form m n k times", "a request: %s", line);
    if (!room_for(&s->a, &s->room[0], p.m * p.k) || !room_for(&s->b, &s->room[1], p.k * p.n) ||
        !room_for(&s->c, &s->room[2], p.m * p.n))
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a product of %zu x %zu x %zu", p.m, p.n, p.k);
    multiply(s, &p);
    return true;
}

/* A function of the library under its own name or that of scipy's build. */
static void *function_of(void *library, const char *name)
{
    char other[64];
    void *found = dlsym(library, name);

    snprintf(other, sizeof other, "scipy_%s", name);
    return found ? found : dlsym(library, other);
}

/* Loads OpenBLAS with so many threads; its version and the kernel it picked in `name`. */
static bool load_openblas(struct side *s, unsigned threads, char *name, size_t size, struct error *err)
{
    const char *path = getenv("RONDO_OPENBLAS");
    void *library = dlopen(path ? path : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *sgemm = library ? function_of(library, "cblas_sgemm") : NULL,
         *set = library ? function_of(library, "openblas_set_num_threads") : NULL,
         *core = library ? function_of(library, "openblas_get_corename") : NULL,
         *config = library ? function_of(library, "openblas_get_config") : NULL;
    void (*set_threads)(int);
    char *(*text)(void);
    char version[64] = "OpenBLAS";

    if (!sgemm || !set || !core || !config)
        return error_set(err, ERROR_MISSING, "sh bench/run.sh, or RONDO_OPENBLAS", "OpenBLAS cannot be loaded");
    memcpy(&s->sgemm, &sgemm, sizeof sgemm); /* a function pointer from dlsym: POSIX allows the copy */
    memcpy(&set_threads, &set, sizeof set);
    set_threads((int)threads);
    memcpy(&text, &config, sizeof config);
    sscanf(text(), "%40s", version);
    if (strcmp(version, "OpenBLAS") == 0)
        sscanf(text(), "%*s %40s", version);
    memcpy(&text, &core, sizeof core);
    snprintf(name, size, "OpenBLAS %s, %s kernels", version, text());
    return true;
}

static bool serve(const char *who, unsigned threads, struct error *err)
{
    struct side s = { 0 };
    char name[100] = "rondo";
    bool ok = strcmp(who, "ours") == 0 || load_openblas(&s, threads, name, sizeof name, err);

    s.pool = pool_new(threads);
    ok = ok && stepper_serve(name, product_served, &s, err);
    pool_free(s.pool);
    free(s.a);
    free(s.b);
    free(s.c);
    return ok;
}

/* ---- the contest ---- */

static const struct {
    const char *name;
    size_t out, inp;
} linears[] = { { "qo", 576, 576 }, { "kv", 192, 576 }, { "gate_up", 1536, 576 }, { "down", 576, 1536 }, { "head", 49152, 576 } };
static const size_t tokens[] = { 256, 512, 1024, 2048 };
static const char *const forms[] = { "forward", "dx", "dw" };
enum { LINEARS = 5, TOKENS = 4, FORMS = 3 };

struct contest {
    struct measure *m;
    struct stepper ours, theirs;
    unsigned threads;
    double limit, sum, least; /* sum of logarithms */
    unsigned count;
};

static bool product_compared(struct contest *c, size_t linear, size_t rows, int form, struct error *err)
{
    const size_t out = linears[linear].out, inp = linears[linear].inp;
    struct product p = { form, form == 2 ? out : rows, form == 0 ? out : inp, form == 0 ? inp : form == 1 ? out : rows, 1 };
    const double work = 2e-9 * (double)p.m * (double)p.n * (double)p.k;
    char name[MEASURE_NAME];

    p.times = (size_t)ceil(10.0 / work);
    snprintf(name, sizeof name, "gemm.%s.%s.%zu.t%u", linears[linear].name, forms[form], rows, c->threads);
    for (int i = 0; i < 2; i++)
        snprintf((i ? &c->theirs : &c->ours)->request, sizeof c->ours.request, "%d %zu %zu %zu %zu", p.form, p.m, p.n, p.k,
                 p.times);

    struct measure_row row = measure_run(
        c->m,
        &(struct measure_contest){ .name = name,
                                   .unit = "GFLOP/s",
                                   .peer = c->theirs.name,
                                   .ours = { stepper_step, &c->ours, work * (double)p.times, c->threads, &c->ours.cpu },
                                   .theirs = { stepper_step, &c->theirs, work * (double)p.times, c->threads, &c->theirs.cpu },
                                   .limit = c->limit,
                                   .least = 1e-6,
                                   .rest = 0.15 });

    if (c->ours.failed || c->theirs.failed)
        return error_set(err, ERROR_MISSING, NULL, "%s: a process ended before its product", name);
    measure_print(c->m, &row);
    c->sum += log(row.ratio);
    c->least = c->count == 0 || row.ratio < c->least ? row.ratio : c->least;
    c->count++;
    return true;
}

static bool products_compared(struct contest *c, struct error *err)
{
    for (size_t l = 0; l < LINEARS; l++)
        for (size_t t = 0; t < TOKENS; t++)
            for (int form = 0; form < FORMS; form++) {
                /* the head runs in tiles of 256 rows, and only a full fine-tune has its dW */
                if (linears[l].out == 49152 && (tokens[t] != 256 || form == 2))
                    continue;
                if (!product_compared(c, l, tokens[t], form, err))
                    return false;
            }
    return true;
}

static bool start(struct contest *c, const char *program, struct error *err)
{
    char count[16];

    snprintf(count, sizeof count, "%u", c->threads);
    if (!stepper_start(&c->theirs,
                       (const char *const[]){ program, "bench", "gemm", "--serve", "openblas", "--threads", count, NULL }, err))
        return false;
    if (stepper_start(&c->ours, (const char *const[]){ program, "bench", "gemm", "--serve", "ours", "--threads", count, NULL },
                      err))
        return true;
    stepper_stop(&c->theirs);
    return false;
}

static void summary(struct measure *m, const char *name, const char *peer, double ratio)
{
    struct measure_row row = { .unit = "ratio", .peer = peer, .ratio = ratio };

    snprintf(row.name, sizeof row.name, "%s", name);
    measure_print(m, &row);
}

bool bench_gemm(struct measure *m, struct error *err)
{
    const char *served = option_text(m->in, "serve", NULL);
    char program[4096], peer[128] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    double least = 0;

    if (served)
        return serve(served, m->in->threads, err);
    if (!measure_wanted(m, "gemm"))
        return true;
    program[length > 0 ? length : 0] = 0;
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct contest c = { .m = m, .threads = threads, .limit = m->cpu ? 0 : machine_limit_arithmetic(threads) };
        char name[MEASURE_NAME];

        if (!start(&c, program, err)) {
            error_clear(err);
            measure_absent(m, "gemm", "OpenBLAS", "it cannot be loaded", "sh bench/run.sh, or RONDO_OPENBLAS");
            return true;
        }
        snprintf(peer, sizeof peer, "%s", c.theirs.name);

        const bool ok = products_compared(&c, err);

        stepper_stop(&c.ours);
        stepper_stop(&c.theirs);
        if (!ok)
            return false;
        snprintf(name, sizeof name, "gemm.geomean.t%u", threads);
        summary(m, name, peer, exp(c.sum / c.count));
        least = threads == 1 || c.least < least ? c.least : least;
    }
    summary(m, "gemm.min", peer, least);
    return true;
}
