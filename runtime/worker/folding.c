#include "runtime/worker/folding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/codec/payload.h"
#include "native/numerics/f32.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"

#define OUTER_LIMIT   (UINT64_C(8) << 30)
#define PAYLOAD_MEDIA "application/vnd.rondo.payload"

/* The update of a round, on its way through the chain of aggregators. */
struct updates {
    size_t peers; /* 1 and `whole` once the last rule has removed the axis */
    bool whole;
    uint64_t n;
    float *u;       /* owned, [peer n] or [n] */
    float *weights; /* owned, [peer] */
};

struct tensor *folding_tensors(const struct layout *l, float *values)
{
    struct tensor *list = calloc(l->count, sizeof *list);

    for (size_t i = 0; i < l->count; i++) {
        const struct layout_parameter *p = &l->parameters[i];

        list[i] = (struct tensor){ .name = (char *)(uintptr_t)p->name,
                                   .type = TENSOR_F32,
                                   .rank = p->rank,
                                   .data = values + p->offset,
                                   .size = (size_t)p->values * sizeof *values };
        memcpy(list[i].dims, p->dims, sizeof p->dims);
    }
    return list;
}

static bool put_outer(struct session *s, const struct states *states, const float *values, struct hash *outer, struct error *err)
{
    struct buffer bytes = { 0 };
    size_t count;
    struct named_tensor *tensors = states_tensors(states, &s->layout, values, &count);
    bool ok =
        state_encode(tensors, count, &bytes, err) && object_put(&s->blocks, STATE_MEDIA, bytes.bytes, bytes.size, outer, err);

    free(tensors);
    buffer_free(&bytes);
    return ok;
}

static bool get_outer(struct session *s, struct hash outer, struct states *states, float *values, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = object_get(&s->blocks, outer, STATE_MEDIA, OUTER_LIMIT, &bytes, err) &&
              states_read(states, &s->layout, values, bytes.bytes, bytes.size, err);

    buffer_free(&bytes);
    return ok;
}

bool folding_values(struct session *s, struct hash outer, float *values, struct error *err)
{
    struct states states;
    bool ok = states_new(&states, s, &s->outer, values, err) && get_outer(s, outer, &states, values, err);

    states_free(&states);
    return ok;
}

static json_t *roots(struct session *s, const struct states *states, const float *values, struct error *err)
{
    struct hash outer;

    if (!put_outer(s, states, values, &outer, err))
        return NULL;
    return json_pack("{s:o, s:o}", "outer", document_json_cid(outer), "state",
                     document_json_hash(layout_root(&s->layout, values)));
}

json_t *folding_genesis(struct session *s, struct error *err)
{
    float *values = calloc((size_t)s->layout.values, sizeof *values);
    struct states states = { 0 };
    json_t *result = NULL;

    if (session_genesis(s, values, err) && states_new(&states, s, &s->outer, values, err))
        result = roots(s, &states, values, err);
    states_free(&states);
    free(values);
    return result;
}

static bool read_payload(struct session *s, const json_t *contribution, const json_t *payloads, int64_t round, unsigned bits,
                         float *values, struct error *err)
{
    struct payload_header expected = { .bits = bits, .round = (uint32_t)round };
    const char *cid = json_string_value(json_object_get(contribution, "cid")),
               *did = json_string_value(json_object_get(contribution, "did"));
    struct hash payload, run;
    struct buffer bytes = { 0 };
    struct tensor *tensors;
    size_t body;

    if (!cid_parse(json_string_value(json_object_get(payloads, cid)) ? json_string_value(json_object_get(payloads, cid)) : "",
                   &payload, err) ||
        !cid_parse(s->run, &run, err))
        return error_at(err, "payload of %s", cid);
    memcpy(expected.run, run.bytes, sizeof expected.run);
    strncpy(expected.did, did, PAYLOAD_DID);
    tensors = folding_tensors(&s->layout, values);

    bool ok = object_get(&s->blocks, payload, PAYLOAD_MEDIA, OUTER_LIMIT, &bytes, err) &&
              payload_decode(bytes.bytes, bytes.size, &expected, tensors, s->layout.count, &body, err);

    free(tensors);
    buffer_free(&bytes);
    return ok || error_at(err, "payload of %s", did);
}

static json_t *find_call(json_t *calls, size_t index, const char **unsupported)
{
    json_t *call = json_array_get(calls, index);

    if (json_array_size(json_object_get(call, "state")))
        *unsupported = "an aggregator that keeps state";
    return call;
}

/* Runs one combine graph: `u` in, `u` out. */
static bool run_combine(struct session *s, const struct graph *g, const float *u, const float *weights, float *out,
                        struct error *err)
{
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    struct executor *ex = NULL;
    bool ok = true;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);

        if (strcmp(name, "u") == 0)
            inputs[i] = u;
        else if (strcmp(name, "c.weight") == 0)
            inputs[i] = weights;
        else
            ok = error_set(err, ERROR_UNSUPPORTED, "aggregators may read the updates and c.weight", "an aggregator that reads %s",
                           name);
    }
    for (uint32_t i = 0; i < g->output_count; i++)
        if (strcmp(graph_text(g, g->outputs[i].name), "u") == 0)
            outputs[i] = out;
    if (ok)
        ex = executor_new(g, &(struct executor_options){ .pool = s->pool }, err);
    ok = ok && ex && executor_run(ex, inputs, outputs, NULL, err);
    executor_free(ex);
    free(inputs);
    free(outputs);
    return ok;
}

/* Gathers the parameters of one call as [peer values], combines, and puts the result back. */
static bool combine_call(struct session *s, const struct script_trace *trace, json_t *call, const struct updates *in, float *out,
                         bool keeps, struct error *err)
{
    const struct graph *g = trace->graphs[json_integer_value(json_object_get(call, "combine"))];
    json_t *names = json_object_get(call, "params"), *name;
    uint64_t values = 0, at = 0;
    size_t index;

    json_array_foreach(names, index, name)
    {
        values += s->layout.parameters[layout_find(&s->layout, json_string_value(name))].values;
    }

    float *u = malloc((size_t)(values * in->peers) * sizeof *u + 1), *y = malloc((size_t)(values * in->peers) * sizeof *y + 1);
    size_t rows = keeps ? in->peers : 1;

    json_array_foreach(names, index, name)
    {
        const struct layout_parameter *p = &s->layout.parameters[layout_find(&s->layout, json_string_value(name))];

        for (size_t peer = 0; peer < in->peers; peer++)
            memcpy(u + peer * values + at, in->u + peer * in->n + p->offset, (size_t)p->values * sizeof *u);
        at += p->values;
    }

    bool ok = run_combine(s, g, u, in->weights, y, err);

    at = 0;
    json_array_foreach(names, index, name)
    {
        const struct layout_parameter *p = &s->layout.parameters[layout_find(&s->layout, json_string_value(name))];

        for (size_t peer = 0; peer < rows; peer++)
            memcpy(out + peer * in->n + p->offset, y + peer * values + at, (size_t)p->values * sizeof *y);
        at += p->values;
    }
    free(u);
    free(y);
    return ok;
}

static bool aggregate(struct session *s, size_t which, struct updates *u, int64_t round, struct error *err)
{
    json_t *metas = json_array(), *calls;
    struct script_trace trace;
    const char *unsupported = NULL;

    for (size_t i = 0; i < s->layout.count; i++)
        json_array_append(metas, s->layout.parameters[i].meta);

    struct script_aggregator_request request = { .peers = (int64_t)u->peers, .params = metas, .round = round };
    bool ok = script_trace_aggregator(&s->aggregators[which].bundle, &request, &s->limits, &trace, err);

    json_decref(metas);
    if (!ok)
        return false;
    calls = json_object_get(trace.meta, "calls");

    bool whole = strcmp(json_string_value(json_object_get(trace.meta, "over")), "whole") == 0,
         keeps = json_is_true(json_object_get(trace.meta, "keeps_peer"));
    float *out = calloc((size_t)(u->n * (keeps ? u->peers : 1)), sizeof *out);

    for (size_t i = 0; ok && i < json_array_size(calls); i++) {
        json_t *call = find_call(calls, i, &unsupported);

        if (unsupported)
            ok = error_set(err, ERROR_UNSUPPORTED, NULL, "%s", unsupported);
        else if (whole)
            ok = run_combine(s, trace.graphs[json_integer_value(json_object_get(call, "combine"))], u->u, u->weights, out, err);
        else if (strcmp(json_string_value(json_object_get(trace.meta, "over")), "tensor") == 0)
            ok = combine_call(s, &trace, call, u, out, keeps, err);
        else
            ok = error_set(err, ERROR_UNSUPPORTED, NULL, "an aggregator over pairs of adapters");
    }
    script_trace_free(&trace);
    free(u->u);
    u->u = out;
    u->whole = !keeps;
    return ok;
}

/* Applies the update by the outer optimiser, parameter by parameter. */
static bool apply(struct session *s, struct states *states, float *values, const float *update, double rate, struct error *err)
{
    json_t *entries = json_object_get(s->outer.meta, "params"), *entry;
    float lr = (float)rate;
    size_t index;
    bool ok = true;

    json_array_foreach(entries, index, entry)
    {
        const char *parameter = json_string_value(json_object_get(entry, "name"));
        const struct layout_parameter *p = &s->layout.parameters[layout_find(&s->layout, parameter)];
        const struct graph *g = s->outer.graphs[json_integer_value(json_object_get(entry, "step"))];
        const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
        void **outputs = calloc(g->output_count + 1, sizeof *outputs);
        struct executor_alias *aliases = calloc(g->output_count + 1, sizeof *aliases);
        size_t alias_count = 0;
        char name[GRAPH_NAME + 1];

        for (uint32_t i = 0; ok && i < g->bound_count; i++) {
            const char *input = graph_text(g, g->nodes[g->bound[i]].name);

            if (strcmp(input, "p") == 0)
                inputs[i] = values + p->offset;
            else if (strcmp(input, "g") == 0)
                inputs[i] = update + p->offset;
            else if (strcmp(input, "lr") == 0)
                inputs[i] = &lr;
            else if (strncmp(input, "s.", 2) == 0) {
                snprintf(name, sizeof name, "s.%s.%s", parameter, input + 2);
                inputs[i] = states_find(states, name);
            } else
                ok = error_set(err, ERROR_UNSUPPORTED, NULL, "an outer optimiser that reads c.%s", input);
        }
        for (uint32_t i = 0; i < g->output_count; i++) {
            const char *output = graph_text(g, g->outputs[i].name);
            uint32_t place;

            if (strcmp(output, "p") == 0)
                outputs[i] = values + p->offset;
            else if (strncmp(output, "s.", 2) == 0) {
                snprintf(name, sizeof name, "s.%s.%s", parameter, output + 2);
                outputs[i] = states_find(states, name);
            }
            if (outputs[i] && graph_bound_find(g, output, &place) != GRAPH_NONE)
                aliases[alias_count++] = (struct executor_alias){ i, place };
        }

        struct executor *ex =
            !ok ? NULL : executor_new(g, &(struct executor_options){ .aliases = aliases, .alias_count = alias_count }, err);

        ok = ok && ex && executor_run(ex, inputs, outputs, NULL, err);
        executor_free(ex);
        free(inputs);
        free(outputs);
        free(aliases);
        if (!ok)
            return error_at(err, "outer: %s", parameter);
    }
    return true;
}

/* Largest magnitude a folded state may have: one round cannot overflow the next. */
static bool check_values(const struct layout *l, const float *values, struct error *err)
{
    for (uint64_t i = 0; i < l->values; i++)
        if (!(values[i] <= 0x1p60f && values[i] >= -0x1p60f))
            return error_set(err, ERROR_NON_FINITE, NULL, "the folded state holds a number that is not finite or beyond 2^60");
    return true;
}

/* √ Σ x² in f64, ascending: telemetry. */
static float norm_of(const float *x, uint64_t n)
{
    double sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return (float)sqrt(sum);
}

static bool fold_round(struct session *s, const json_t *round, const json_t *payloads, struct states *states, float *values,
                       float *norm, struct hash *root, struct error *err)
{
    json_t *list = json_object_get(round, "contributions"), *contribution, *plan = json_object_get(round, "plan");
    json_t *bits = json_object_get(json_object_get(plan, "codec"), "bits"), *rate = json_object_get(plan, "outer_lr");
    int64_t number = json_integer_value(json_object_get(round, "round"));
    struct updates u = { .peers = json_array_size(list), .n = s->layout.values };
    size_t index;
    bool ok = true;

    u.u = malloc((size_t)(u.n * u.peers) * sizeof *u.u + 1);
    u.weights = calloc(u.peers + 1, sizeof *u.weights);
    json_array_foreach(list, index, contribution)
    {
        u.weights[index] = (float)json_integer_value(json_object_get(contribution, "weight"));
        ok = ok && read_payload(s, contribution, payloads, number,
                                json_is_integer(bits) ? (unsigned)json_integer_value(bits) : 32, u.u + index * u.n, err);
    }
    for (size_t i = 0; ok && i < s->aggregator_count; i++)
        ok = aggregate(s, i, &u, number, err) || error_at(err, "aggregators[%zu]", i);
    if (ok && !u.whole)
        ok = error_set(err, ERROR_SCRIPT, "put a rule such as mean after it", "the last aggregator keeps the axis peer");
    if (ok) {
        *norm = norm_of(u.u, u.n);
        *root = layout_root(&s->layout, u.u);
        ok = apply(s, states, values, u.u, json_is_string(rate) ? strtod(json_string_value(rate), NULL) : json_number_value(rate),
                   err) &&
             check_values(&s->layout, values, err);
    }
    free(u.u);
    free(u.weights);
    return ok;
}

json_t *folding_run(struct session *s, const json_t *request, const json_t *payloads, struct error *err)
{
    float *values = calloc((size_t)s->layout.values, sizeof *values), norm = 0;
    json_t *rounds = json_object_get(request, "rounds"), *round, *steps = json_array(), *result = NULL;
    struct states states = { 0 };
    struct hash from, root = { 0 };
    size_t index;
    bool ok = states_new(&states, s, &s->outer, values, err) &&
              cid_parse(json_string_value(json_object_get(request, "from")), &from, err) &&
              get_outer(s, from, &states, values, err);

    json_array_foreach(rounds, index, round)
    {
        json_t *entry =
            ok && fold_round(s, round, payloads, &states, values, &norm, &root, err) ? roots(s, &states, values, err) : NULL;

        ok = entry != NULL;
        if (!ok)
            break;
        json_object_set(entry, "round", json_object_get(round, "round"));
        json_array_append_new(steps, entry);
    }
    if (ok)
        result = json_pack("{s:o, s:O, s:{s:o}}", "aggregate", document_json_hash(root), "steps", steps, "telemetry", "norm",
                           document_json_float(norm));
    json_decref(steps);
    states_free(&states);
    free(values);
    return result;
}
