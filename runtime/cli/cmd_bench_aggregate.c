#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/graph/execute.h"
#include "runtime/cli/benches.h"
#include "runtime/role/run_file.h"
#include "runtime/script/host.h"

/* Contributions of one round: PEERS updates of ROWS x COLUMNS values, combined by the shipped rules as a worker runs them, on one thread. */
enum { PEERS = 8, ROWS = 1024, COLUMNS = 2048, VALUES = ROWS * COLUMNS };

struct aggregate {
    struct executor *executor;
    const void *inputs[4];
    void *outputs[4];
    float *u, *out; /* [PEERS VALUES], the same for rules that keep every peer */
};

static void combine(void *context)
{
    struct aggregate *a = context;

    executor_run(a->executor, a->inputs, a->outputs, NULL, NULL);
}

/* --- the rules as one would write them down in C ---------------------------------------------------------------------------- */

static void plain_mean(void *context)
{
    struct aggregate *a = context;

    for (size_t i = 0; i < VALUES; i++) {
        float sum = 0;

        for (size_t p = 0; p < PEERS; p++)
            sum += a->u[p * VALUES + i];
        a->out[i] = sum / PEERS;
    }
}

/* One value of every peer, ascending. */
static void sort_value(const float *u, size_t at, float sorted[PEERS])
{
    for (size_t p = 0; p < PEERS; p++) {
        const float x = u[p * VALUES + at];
        size_t j = p;

        for (; j > 0 && sorted[j - 1] > x; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = x;
    }
}

static void plain_trimmed_mean(void *context)
{
    struct aggregate *a = context;
    float sorted[PEERS];

    for (size_t i = 0; i < VALUES; i++) {
        float sum = 0;

        sort_value(a->u, i, sorted);
        for (size_t p = 1; p < PEERS - 1; p++)
            sum += sorted[p];
        a->out[i] = sum / (PEERS - 2);
    }
}

static void plain_median(void *context)
{
    struct aggregate *a = context;
    float sorted[PEERS];

    for (size_t i = 0; i < VALUES; i++) {
        sort_value(a->u, i, sorted);
        a->out[i] = (sorted[PEERS / 2 - 1] + sorted[PEERS / 2]) / 2;
    }
}

static void plain_norm_clip(void *context)
{
    struct aggregate *a = context;
    float norm[PEERS], sorted[PEERS];

    for (size_t p = 0; p < PEERS; p++) {
        float sum = 0;

        for (size_t i = 0; i < VALUES; i++)
            sum += a->u[p * VALUES + i] * a->u[p * VALUES + i];
        norm[p] = sqrtf(sum);
        size_t j = p;
        for (; j > 0 && sorted[j - 1] > norm[p]; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = norm[p];
    }

    const float limit = (sorted[PEERS / 2 - 1] + sorted[PEERS / 2]) / 2;

    for (size_t p = 0; p < PEERS; p++) {
        const float scale = norm[p] > limit ? limit / norm[p] : 1;

        for (size_t i = 0; i < VALUES; i++)
            a->out[p * VALUES + i] = a->u[p * VALUES + i] * scale;
    }
}

/* --- the shipped rules ------------------------------------------------------------------------------------------------------ */

static bool trace(const char *rule, struct script_trace *out, struct error *err)
{
    const struct script_limits patient = { .seconds = 60 };
    struct script_set set = { 0 };
    char folder[4096], axes[64];
    json_t *params;
    bool ok;

    snprintf(axes, sizeof axes, "out=%d inp=%d", ROWS, COLUMNS);
    params = json_pack("[{s:s, s:s, s:s}]", "name", "weight", "kind", "matrix", "axes", axes);
    ok = script_set_read(run_file_scripts(folder), rule, NULL, &set, err) &&
         script_trace_aggregator(&set.bundle, &(struct script_aggregator_request){ .peers = PEERS, .params = params }, &patient,
                                 out, err);
    script_set_free(&set);
    json_decref(params);
    return ok;
}

/* Gives the graph its updates and the place of its result. */
static bool bind(const struct graph *g, struct aggregate *a, struct error *err)
{
    const size_t most = sizeof a->inputs / sizeof *a->inputs;

    memset(a->inputs, 0, sizeof a->inputs);
    memset(a->outputs, 0, sizeof a->outputs);
    if (g->bound_count > most || g->output_count > most)
        return error_set(err, ERROR_FAULT, NULL, "a rule of %u inputs and %u outputs", g->bound_count, g->output_count);
    for (uint32_t i = 0; i < g->bound_count; i++)
        a->inputs[i] = a->u;
    for (uint32_t i = 0; i < g->output_count; i++)
        if (strcmp(graph_text(g, g->outputs[i].name), "u") == 0)
            a->outputs[i] = a->out;
    return true;
}

static bool contest(struct measure *m, struct aggregate *a, const char *rule, void (*plain)(void *), struct error *err)
{
    const double work = (double)PEERS * VALUES * sizeof(float) * 1e-9;
    struct script_trace traced;
    char name[MEASURE_NAME];

    snprintf(name, sizeof name, "aggregate.%s", rule);
    if (!measure_wanted(m, name))
        return true;
    if (!trace(rule, &traced, err))
        return false;
    a->executor = executor_new(traced.graphs[0], &(struct executor_options){ 0 }, err);

    const bool ok = a->executor && bind(traced.graphs[0], a, err) && executor_run(a->executor, a->inputs, a->outputs, NULL, err);

    if (ok)
        measure_contest(m, &(struct measure_contest){ .name = name,
                                                      .unit = "GB/s",
                                                      .peer = "the rule as plain C",
                                                      .ours = { combine, a, work, 1 },
                                                      .theirs = { plain, a, work, 1 } });
    executor_free(a->executor);
    script_trace_free(&traced);
    return ok || error_at(err, "%s", rule);
}

bool bench_aggregate(struct measure *m, struct error *err)
{
    const size_t count = (size_t)PEERS * VALUES;
    struct aggregate a = { .u = malloc(count * sizeof *a.u), .out = malloc(count * sizeof *a.out) };
    bool ok = (a.u && a.out) || error_set(err, ERROR_MEMORY, NULL, "no memory for %d contributions", PEERS);

    for (size_t i = 0; ok && i < count; i++)
        a.u[i] = (float)((uint32_t)i * 2654435761u >> 8) * 0x1p-24f - 0.5f;
    ok = ok && contest(m, &a, "mean", plain_mean, err) && contest(m, &a, "trimmed_mean", plain_trimmed_mean, err) &&
         contest(m, &a, "median", plain_median, err) && contest(m, &a, "norm_clip", plain_norm_clip, err);
    free(a.out);
    free(a.u);
    return ok;
}
