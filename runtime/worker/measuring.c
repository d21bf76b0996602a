#include "runtime/worker/measuring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/doc/documents.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/reference.h"
#include "runtime/worker/training.h"

enum { AT_ONCE = 4, WHOLES_AT_ONCE = 16 };

struct measured {
    double loss;
    json_t *metrics; /* sums, by name */
    uint64_t rows, dropped;
};

/* The graph's loss and metrics on one batch, each in its output's place of `results`. */
static bool run_batch(struct session *s, const struct session_step *step, const float *values, const struct batch *b,
                      float *results, struct error *err)
{
    const struct graph *g = step->graph;
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    const float done = 1;
    bool ok = inputs && outputs;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name), *field = NULL;

        if (strcmp(name, "b.progress") == 0) {
            inputs[i] = &done;
            continue;
        }
        ok = training_input(s, step, i, values, &inputs[i], &field, err);
        if (ok && field) {
            inputs[i] = batch_field(b, field);
            ok = bound_fits(g, g->bound[i], batch_field_count(b, field) * sizeof(float), err) || error_at(err, "b.%s", field);
        }
    }
    for (uint32_t i = 0; ok && i < g->output_count; i++) {
        ok = bound_fits(g, g->outputs[i].node, sizeof(float), err);
        outputs[i] = &results[i];
    }
    ok = ok && executor_run(step->executor, inputs, outputs, NULL, err);
    free(inputs);
    free(outputs);
    return ok;
}

static void add_results(struct measured *m, const struct graph *g, const float *results, double weight)
{
    for (uint32_t i = 0; i < g->output_count; i++) {
        const char *name = graph_text(g, g->outputs[i].name);
        double value = (double)results[i] * weight;

        if (strcmp(name, "loss") == 0)
            m->loss += value;
        else if (strncmp(name, "metric.", 7) == 0 && isfinite(value))
            json_object_set_new(m->metrics, name + 7, json_real(json_real_value(json_object_get(m->metrics, name + 7)) + value));
    }
}

static bool measure_batch(struct session *s, const float *values, struct batch *b, size_t rows, struct measured *m,
                          struct error *err)
{
    const struct session_step *step;
    float *results;
    bool ok;

    if (!reference_add(s, b, SESSION_MEASURE, 0, err))
        return false;
    step = session_step(s, b->rows, b->time, SESSION_MEASURE, 0, err);
    results = step ? calloc(step->graph->output_count + 1, sizeof *results) : NULL;
    ok = results && run_batch(s, step, values, b, results, err);
    if (ok)
        add_results(m, step->graph, results, (double)rows);
    free(results);
    m->rows += rows;
    return ok;
}

/* The next `count` rows of the shard as a batch. */
static void lay_out(const struct session *s, const struct example *items, size_t count, struct batch *b)
{
    const struct example *rows[2 * AT_ONCE + WHOLES_AT_ONCE];
    const size_t sides = s->rules.pairs ? 2 : 1;

    for (size_t i = 0; i < sides * count; i++)
        rows[i] = &items[i < count ? sides * i : 2 * (i - count) + 1];
    batch_of(b, &s->rules, rows, sides * count);
}

static bool measure_shard(struct session *s, const struct session_shard *shard, const float *values, int64_t most,
                          struct measured *m, const struct job_reporter *to, struct error *err)
{
    const size_t sides = s->rules.pairs ? 2 : 1, all = shard->examples.count / sides,
                 at_once = sides == 2 ? AT_ONCE : WHOLES_AT_ONCE;
    struct batch batch = { 0 };
    bool ok = true;

    for (size_t at = 0, count; ok && at < all && (most <= 0 || (int64_t)m->rows < most); at += count) {
        count = all - at < at_once ? all - at : at_once;
        if (most > 0 && (int64_t)(m->rows + count) > most)
            count = (size_t)(most - (int64_t)m->rows);
        lay_out(s, &shard->examples.items[sides * at], count, &batch);
        ok = measure_batch(s, values, &batch, count, m, err);
        if (ok && to && m->rows % 64 < at_once) {
            json_t *report = json_pack("{s:I}", "evaluated", (json_int_t)m->rows);

            to->report(to->context, report);
            json_decref(report);
        }
    }
    batch_free(&batch);
    return ok;
}

static json_t *result(struct measured *m, struct error *err)
{
    const char *name;
    json_t *sum;

    if (m->rows == 0)
        return error_set(err, ERROR_MISSING, "rondo data check FILE tells why", "no held-out row can be evaluated"), NULL;
    if (!isfinite(m->loss))
        return error_set(err, ERROR_NON_FINITE, NULL, "the loss of the held-out rows is not finite"), NULL;
    json_object_foreach(m->metrics, name, sum)
    {
        json_real_set(sum, json_real_value(sum) / (double)m->rows);
    }
    return json_pack("{s:f, s:O, s:n, s:I, s:I}", "loss", m->loss / (double)m->rows, "metrics", m->metrics, "tool_call_accuracy",
                     "rows", (json_int_t)m->rows, "dropped", (json_int_t)m->dropped);
}

json_t *measuring_run(struct session *s, const json_t *job, const float *values, const struct job_reporter *to, struct error *err)
{
    json_t *shards = json_object_get(job, "shards"), *shard, *told = NULL;
    struct measured m = { .metrics = json_object() };
    size_t index;
    bool ok = true;

    json_array_foreach(shards, index, shard)
    {
        const struct session_shard *rows = NULL;
        struct hash id;

        ok = ok && cid_parse(json_string_value(shard), &id, err) && (rows = session_shard(s, id, SESSION_EVALUATE, err)) &&
             measure_shard(s, rows, values, document_integer(job, "rows"), &m, to, err);
        for (size_t i = 0; ok && i < CONVERSATION_DROPS; i++)
            m.dropped += rows->counts.dropped[i];
    }
    if (ok)
        told = result(&m, err);
    json_decref(m.metrics);
    return told;
}
