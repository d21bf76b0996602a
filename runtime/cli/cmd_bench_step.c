/* Training steps at the shapes of SmolLM2-135M against PyTorch's, ours against ours on one thread, traced, and with free order. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/benches.h"
#include "runtime/cli/machine_limit.h"
#include "runtime/cli/step_load.h"
#include "runtime/cli/stepper.h"

enum { RANK = 16, LAYERS = 30, PASSES = 256 };

/* One step that can be asked for by name: "lora.4x256". */
static const struct shape {
    const char *name;
    int rows, time, rank;
    double trained;
    enum tensor_type base;
    bool traced;
} shapes[] = {
    { "lora.4x256", 4, 256, RANK, 1, TENSOR_F32, false },      { "lora.1x1024", 1, 1024, RANK, 1, TENSOR_F32, false },
    { "lora.quarter", 4, 256, RANK, 0.25, TENSOR_F32, false }, { "full", 4, 256, 0, 1, TENSOR_F32, false },
    { "qlora", 4, 256, RANK, 1, TENSOR_Q4_0, false },          { "traced", 4, 256, RANK, 1, TENSOR_F32, true },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < SHAPES; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

static struct step_load *load_of(const struct shape *shape, unsigned threads, executor_profile profile, void *context,
                                 struct error *err)
{
    return step_load_new(&(struct step_load_options){ .rows = shape->rows,
                                                      .time = shape->time,
                                                      .rank = shape->rank,
                                                      .layers = LAYERS,
                                                      .trained = shape->trained,
                                                      .base = shape->base,
                                                      .traced = shape->traced,
                                                      .threads = threads,
                                                      .profile = profile,
                                                      .profile_context = context },
                         err);
}

/* ---- a step for another process ---- */

static bool step_served(void *context, const char *line, struct error *err)
{
    double loss;

    (void)line;
    return step_load_run(context, &loss, err);
}

static bool serve(const char *name, unsigned threads, struct error *err)
{
    const struct shape *shape = find_shape(name);
    struct step_load *load;
    bool ok;

    if (!shape)
        return error_set(err, ERROR_USAGE, "lora.4x256, lora.1x1024, lora.quarter, full, qlora or traced",
                         "no step is called \"%s\"", name);
    load = load_of(shape, threads, NULL, NULL, err);
    ok = load && stepper_serve("rondo", step_served, load, err);
    if (load)
        step_load_free(load);
    return ok;
}

static bool start_ours(struct stepper *s, const char *program, const char *shape, unsigned threads, struct error *err)
{
    char count[16];

    snprintf(count, sizeof count, "%u", threads);
    return stepper_start(s, (const char *const[]){ program, "bench", "step", "--serve", shape, "--threads", count, NULL }, err);
}

/* ---- PyTorch ---- */

static bool start_torch(struct stepper *s, const struct shape *shape, unsigned threads, struct error *err)
{
    char rows[16], time[16], trained[16], count[16];

    snprintf(rows, sizeof rows, "%d", shape->rows);
    snprintf(time, sizeof time, "%d", shape->time);
    snprintf(trained, sizeof trained, "%g", shape->trained);
    snprintf(count, sizeof count, "%u", threads);
    return stepper_start(s,
                         (const char *const[]){ stepper_python(), "bench/peers/torch_step.py", "--mode",
                                                shape->rank ? "lora" : "full", "--rows", rows, "--time", time, "--trained",
                                                trained, "--threads", count, NULL },
                         err);
}

static void torch_absent(struct measure *m, const char *name)
{
    measure_absent(m, name, "PyTorch", "torch, transformers and peft cannot be imported, or this is no checkout",
                   "sh bench/run.sh, or RONDO_BENCH_PYTHON");
}

/* ---- pairs ---- */

struct pair {
    const char *name, *unit, *peer;
    struct stepper *ours, *theirs;
    unsigned our_threads, their_threads;
    double tokens, limit; /* limit: tokens a second */
    bool times;           /* the row is one of seconds, not of rates */
};

/* Both processes alternate; the row is printed unless one of them is gone. */
static bool pair_run(struct measure *m, const struct pair *p, struct error *err)
{
    struct measure_row row;

    row = measure_run(
        m, &(struct measure_contest){ .name = p->name,
                                      .unit = p->unit,
                                      .peer = p->peer,
                                      .ours = { stepper_step, p->ours, p->tokens, p->our_threads, &p->ours->cpu },
                                      .theirs = { stepper_step, p->theirs, p->tokens, p->their_threads, &p->theirs->cpu },
                                      .limit = p->limit,
                                      .least = 1e-6,
                                      .rest = 0.3 });
    if (p->ours->failed || p->theirs->failed)
        return error_set(err, ERROR_MISSING, NULL, "%s: a process ended before its step", p->name);
    if (p->times) {
        row.ours = p->tokens / row.ours;
        row.theirs = p->tokens / row.theirs;
        row.ratio = 1 / row.ratio;
    }
    measure_print(m, &row);
    return true;
}

static void memory_row(struct measure *m, const char *name, const struct stepper *ours, double theirs, const char *peer)
{
    struct measure_row row = { .unit = "MB", .peer = peer, .ours = ours->peak * 1e-6, .theirs = theirs * 1e-6 };

    if (!measure_wanted(m, name))
        return;
    snprintf(row.name, sizeof row.name, "%s", name);
    row.ratio = row.ours / row.theirs;
    measure_print(m, &row);
}

/* A step against PyTorch's; the first of them also gives the rows of memory. */
static bool against_torch(struct measure *m, const char *program, const char *shape_name, double arithmetic, struct error *err)
{
    const struct shape *shape = find_shape(shape_name);
    bool first = strcmp(shape_name, "lora.4x256") == 0;
    char name[MEASURE_NAME];
    struct stepper ours, theirs, small;
    bool ok;

    snprintf(name, sizeof name, "step.%s", shape_name);
    if (!measure_wanted(m, name) && !(first && (measure_wanted(m, "memory.lora") || measure_wanted(m, "memory.qlora"))))
        return true;
    if (!start_torch(&theirs, shape, m->in->threads, err)) {
        error_clear(err);
        torch_absent(m, name);
        if (first) {
            torch_absent(m, "memory.lora");
            torch_absent(m, "memory.qlora");
        }
        return true;
    }
    if (!start_ours(&ours, program, shape_name, m->in->threads, err)) {
        stepper_stop(&theirs);
        return false;
    }

    const double operations = (double)shape->rows * shape->time * (shape->rank ? 598e6 : 920e6);

    ok = pair_run(m,
                  &(struct pair){ .name = name,
                                  .unit = "tokens/s",
                                  .peer = theirs.name,
                                  .ours = &ours,
                                  .theirs = &theirs,
                                  .our_threads = m->in->threads,
                                  .their_threads = m->in->threads,
                                  .tokens = (double)shape->rows * shape->time,
                                  .limit = shape->trained == 1 ? arithmetic * 1e9 / operations * shape->rows * shape->time : 0 },
                  err);
    if (ok && first) {
        memory_row(m, "memory.lora", &ours, theirs.peak, theirs.name);
        if (start_ours(&small, program, "qlora", m->in->threads, err)) {
            stepper_step(&small);
            stepper_step(&small);
            memory_row(m, "memory.qlora", &small, theirs.peak, theirs.name);
            stepper_stop(&small);
        }
    }
    stepper_stop(&ours);
    stepper_stop(&theirs);
    return ok && err->code == ERROR_NONE;
}

/* ---- ours against ours ---- */

static bool against_ourselves(struct measure *m, const struct pair *pair, const char *program, const char *shape,
                              unsigned threads, const char *other_program, const char *other_shape, unsigned other_threads,
                              struct error *err)
{
    struct stepper ours, theirs;
    struct pair p = *pair;
    bool ok = false;

    if (!measure_wanted(m, p.name))
        return true;
    p.ours = &ours;
    p.theirs = &theirs;
    p.tokens = 1024;
    p.our_threads = threads;
    p.their_threads = other_threads;
    if (!start_ours(&ours, program, shape, threads, err))
        return false;
    if (start_ours(&theirs, other_program, other_shape, other_threads, err)) {
        ok = pair_run(m, &p, err);
        stepper_stop(&theirs);
    }
    stepper_stop(&ours);
    return ok;
}

/* The same program with kernels that add in any order and contract at will (CMakeLists.txt: rondo_free). */
static bool against_free_order(struct measure *m, const char *program, struct error *err)
{
    char other[4200];

    if (!measure_wanted(m, "portable.cost"))
        return true;
    snprintf(other, sizeof other, "%s_free", program);
    if (access(other, X_OK) != 0) {
        measure_absent(m, "portable.cost", "free order", "rondo_free is not beside the program", "ninja -C build rondo_free");
        return true;
    }
    return against_ourselves(m,
                             &(struct pair){ .name = "portable.cost", .unit = "tokens/s", .peer = "free order and contraction" },
                             program, "lora.4x256", m->in->threads, other, "lora.4x256", m->in->threads, err);
}

/* ---- profile ---- */

struct profile {
    struct executor_pass pass[PASSES];
    unsigned calls[PASSES];
    size_t count;
    double seconds;
};

static void pass_added(void *context, const struct executor_pass *pass)
{
    struct profile *p = context;
    size_t i = 0;

    while (i < p->count && strcmp(p->pass[i].name, pass->name) != 0)
        i++;
    if (i == PASSES)
        return;
    if (i == p->count) {
        p->pass[p->count++] = (struct executor_pass){ 0 };
        memcpy(p->pass[i].name, pass->name, sizeof pass->name);
        p->calls[i] = 0;
    }
    p->calls[i]++;
    p->pass[i].seconds += pass->seconds;
    p->pass[i].operations += pass->operations;
    p->pass[i].bytes += pass->bytes;
    p->seconds += pass->seconds;
}

static int by_time(const void *a, const void *b)
{
    const struct executor_pass *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* A row for each kind of pass: the share of the limit is that of arithmetic or of memory, whichever is nearer. */
static void profile_printed(const struct measure *m, struct profile *p, double arithmetic, double memory)
{
    /* the calls go with their pass through the sorting */
    for (size_t i = 0; i < p->count; i++) {
        size_t at = strlen(p->pass[i].name);

        snprintf(p->pass[i].name + at, sizeof p->pass[i].name - at, " x%u", p->calls[i]);
    }
    qsort(p->pass, p->count, sizeof *p->pass, by_time);
    if (!m->in->json)
        printf("%-44s %9s %6s %9s %8s %6s\n", "pass x calls", "ms", "share", "GFLOP/s", "GB/s", "limit");
    for (size_t i = 0; i < p->count; i++) {
        const struct executor_pass *e = &p->pass[i];
        const double flops = 1e-9 * (double)e->operations / e->seconds, bytes = 1e-9 * (double)e->bytes / e->seconds;
        const double a = arithmetic > 0 ? flops / arithmetic : 0, b = memory > 0 ? bytes / memory : 0;

        if (m->in->json)
            command_print_json(json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "pass", e->name, "seconds", e->seconds, "share",
                                         e->seconds / p->seconds, "gflops", flops, "gbytes", bytes, "limit_share",
                                         a > b ? a : b));
        else
            printf("%-44s %9.2f %5.1f%% %9.1f %8.1f %5.0f%%\n", e->name, 1e3 * e->seconds, 100 * e->seconds / p->seconds, flops,
                   bytes, 100 * (a > b ? a : b));
    }
}

static bool profile_run(struct measure *m, double arithmetic, struct error *err)
{
    struct profile *p = calloc(1, sizeof *p);
    const char *name = *m->only ? m->only : "lora.4x256";
    const struct shape *shape = find_shape(strncmp(name, "step.", 5) == 0 ? name + 5 : name);
    struct step_load *load;
    double loss;
    bool ok;

    if (!shape) {
        free(p);
        return error_set(err, ERROR_USAGE, "lora.4x256, lora.1x1024, lora.quarter, full, qlora or traced",
                         "no step is called \"%s\"", name);
    }
    load = load_of(shape, m->in->threads, pass_added, p, err);
    ok = load && step_load_run(load, &loss, err); /* the first touches memory for the first time */
    *p = (struct profile){ 0 };
    ok = ok && step_load_run(load, &loss, err);
    if (ok)
        profile_printed(m, p, arithmetic, machine_limit_memory(m->in->threads));
    if (load)
        step_load_free(load);
    free(p);
    return ok;
}

bool bench_step(struct measure *m, struct error *err)
{
    static const char *const contests[] = { "lora.4x256", "lora.1x1024", "lora.quarter", "full" };
    const char *served = option_text(m->in, "serve", NULL);
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    const unsigned threads = m->in->threads;

    if (served)
        return serve(served, threads, err);
    program[length > 0 ? length : 0] = 0;

    const double arithmetic = m->cpu && !m->profile ? 0 : machine_limit_arithmetic(threads);

    if (m->profile)
        return profile_run(m, arithmetic, err);
    for (size_t i = 0; i < sizeof contests / sizeof *contests; i++)
        if (!against_torch(m, program, contests[i], arithmetic, err))
            return false;
    return (threads < 2 ||
            against_ourselves(m, &(struct pair){ .name = "scaling.lora", .unit = "tokens/s", .peer = "one thread" }, program,
                              "lora.4x256", threads, program, "lora.4x256", 1, err)) &&
           against_ourselves(
               m, &(struct pair){ .name = "trace.cost", .unit = "s", .peer = "the step without hashes", .times = true }, program,
               "traced", threads, program, "lora.4x256", threads, err) &&
           against_free_order(m, program, err);
}
