#include "runtime/worker/folding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/numerics/f32.h"
#include "runtime/doc/documents.h"
#include "runtime/round/plan_codec.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/fragments.h"

#define OUTER_LIMIT   (UINT64_C(8) << 30)
#define PAYLOAD_MEDIA "application/vnd.rondo.payload"

/* The update of a round, on its way through the chain of aggregators. */
struct updates {
    uint32_t fragment; /* what the round exchanges; elsewhere all is 0 */
    size_t peers;      /* 1 and `whole` once the last rule has removed the axis */
    bool whole;
    uint64_t n;
    float *u;       /* owned, [peer n] or [n] */
    float *weights; /* owned, [peer] */
    uint8_t *said;  /* owned, a bit for each value of u as it came: whether its payload says it, that is whether it is not 0 */
    float *sent;    /* the same as 0 and 1 [peer n], owned; NULL until a rule reads it */
};

static void updates_free(struct updates *u)
{
    free(u->u);
    free(u->weights);
    free(u->said);
    free(u->sent);
}

static bool updates_new(struct updates *u, struct error *err)
{
    u->u = calloc((size_t)(u->n * u->peers) + 1, sizeof *u->u);
    u->weights = calloc(u->peers + 1, sizeof *u->weights);
    u->said = calloc((size_t)(u->n * u->peers) / 8 + 1, 1);
    return (u->u && u->weights && u->said) ||
           error_set(err, ERROR_MEMORY, NULL, "no memory for the updates of %zu peers", u->peers);
}

static void note_said(struct updates *u)
{
    for (uint64_t i = 0; i < u->n * u->peers; i++)
        u->said[i / 8] |= (uint8_t)((u->u[i] != 0) << i % 8);
}

static bool make_sent(struct updates *u, struct error *err)
{
    if (u->sent)
        return true;
    u->sent = malloc((size_t)(u->n * u->peers) * sizeof *u->sent + 1);
    for (uint64_t i = 0; u->sent && i < u->n * u->peers; i++)
        u->sent[i] = (float)(u->said[i / 8] >> i % 8 & 1);
    return u->sent || error_set(err, ERROR_MEMORY, NULL, "no memory for the updates of %zu peers", u->peers);
}

static struct tensor *tensors_of(const struct layout *l, uint32_t fragment, float *values, size_t *count)
{
    struct tensor *list = calloc(l->count, sizeof *list);

    *count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct layout_parameter *p = &l->parameters[i];
        struct tensor *t = &list[*count];

        if (!fragment_has(fragment, p))
            continue;
        *t = (struct tensor){ .name = (char *)(uintptr_t)p->name,
                              .type = TENSOR_F32,
                              .rank = p->rank,
                              .data = values + p->offset,
                              .size = (size_t)p->values * sizeof *values };
        memcpy(t->dims, p->dims, sizeof p->dims);
        ++*count;
    }
    return list;
}

struct tensor *folding_tensors(const struct layout *l, float *values)
{
    size_t count;

    return tensors_of(l, FRAGMENT_ALL, values, &count);
}

struct tensor *folding_payload(const struct session *s, const json_t *plan, const struct payload_header *header, float *values,
                               size_t *count)
{
    return tensors_of(&s->layout, json_object_get(plan, "fragment") ? header->fragment : FRAGMENT_ALL, values, count);
}

bool folding_header(struct session *s, const json_t *plan, int64_t round, const char *did, struct payload_header *header,
                    struct error *err)
{
    struct plan_codec codec;
    struct hash run;
    uint32_t fragment;

    if (!plan_codec_read(plan, &codec, err) || !cid_parse(s->run, &run, err) || !fragments_of(s, plan, &fragment, err))
        return false;
    *header = (struct payload_header){ .bits = codec.bits,
                                       .keep = codec.keep,
                                       .of = codec.of,
                                       .tile = codec.tile,
                                       .round = (uint32_t)round,
                                       .fragment = fragment == FRAGMENT_ALL ? 0 : fragment };
    memcpy(header->run, run.bytes, sizeof header->run);
    strncpy(header->did, did, PAYLOAD_DID);
    return true;
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
    float *values = layout_values(&s->layout, err);
    struct states states = { 0 };
    json_t *result = NULL;

    if (values && session_genesis(s, values, err) && states_new(&states, s, &s->outer, values, err))
        result = roots(s, &states, values, err);
    states_free(&states);
    free(values);
    return result;
}

static bool read_payload(struct session *s, const json_t *contribution, const json_t *payloads, int64_t round, const json_t *plan,
                         float *values, struct error *err)
{
    struct payload_header expected;
    const char *cid = document_text(contribution, "cid"), *did = document_text(contribution, "did"),
               *text = document_text(payloads, cid);
    struct hash payload;
    struct buffer bytes = { 0 };
    struct tensor *tensors;
    size_t body, count;

    if (!text)
        return error_set(err, ERROR_MISSING, NULL, "nothing says which payload %s names", cid);
    if (!cid_parse(text, &payload, err) || !folding_header(s, plan, round, did, &expected, err))
        return error_at(err, "payload of %s", did);
    tensors = folding_payload(s, plan, &expected, values, &count);

    bool ok = object_get(&s->blocks, payload, PAYLOAD_MEDIA, OUTER_LIMIT, &bytes, err) &&
              payload_decode(bytes.bytes, bytes.size, &expected, tensors, count, &body, err);

    free(tensors);
    buffer_free(&bytes);
    return ok || error_at(err, "payload of %s", did);
}

static bool reads_sent(const struct graph *g)
{
    uint32_t place;

    return graph_bound_find(g, "c.sent", &place) != GRAPH_NONE;
}

/* Runs one combine graph: `u` and `sent` (when it reads that) [peer count] in, `out` [rows count] out. */
static bool run_combine(struct session *s, const struct graph *g, const struct updates *in, const float *u, const float *sent,
                        uint64_t count, float *out, size_t rows, struct error *err)
{
    const void **inputs = calloc(g->bound_count + 1, sizeof *inputs);
    void **outputs = calloc(g->output_count + 1, sizeof *outputs);
    struct executor *ex = NULL;
    bool ok = true;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);
        bool weight = strcmp(name, "c.weight") == 0, said = strcmp(name, "c.sent") == 0;

        if (!weight && !said && strcmp(name, "u") != 0)
            ok = error_set(err, ERROR_UNSUPPORTED, "aggregators may read the updates, c.weight and c.sent",
                           "an aggregator that reads %s", name);
        inputs[i] = weight ? in->weights : said ? sent : u;
        ok = ok && bound_fits(g, g->bound[i], in->peers * (weight ? 1 : count) * sizeof(float), err);
    }
    for (uint32_t i = 0; ok && i < g->output_count; i++)
        if (strcmp(graph_text(g, g->outputs[i].name), "u") == 0) {
            outputs[i] = out;
            ok = bound_fits(g, g->outputs[i].node, rows * count * sizeof(float), err);
        }
    if (ok)
        ex = executor_new(g, &(struct executor_options){ .pool = s->pool }, err);
    ok = ex && executor_run(ex, inputs, outputs, NULL, err);
    executor_free(ex);
    free(inputs);
    free(outputs);
    return ok;
}

/* Between an update [rows n] and the parameters of one call, gathered as [rows count]. */
static void move_parameters(const struct layout *l, const json_t *names, uint64_t n, float *whole, float *part, uint64_t count,
                            size_t rows, bool gather)
{
    uint64_t at = 0;
    size_t index;
    json_t *name;

    json_array_foreach(names, index, name)
    {
        const struct layout_parameter *p = &l->parameters[layout_find(l, json_string_value(name))];

        for (size_t row = 0; row < rows; row++) {
            float *x = whole + row * n + p->offset, *y = part + row * count + at;

            memcpy(gather ? y : x, gather ? x : y, (size_t)p->values * sizeof *x);
        }
        at += p->values;
    }
}

/* Combines the parameters of one call and puts the result in its place. */
static bool combine_call(struct session *s, const struct graph *g, const json_t *names, const struct updates *in, float *out,
                         size_t rows, struct error *err)
{
    uint64_t count = 0;
    size_t index;
    json_t *name;

    json_array_foreach(names, index, name)
    {
        const struct layout_parameter *p = bound_parameter(&s->layout, name, err);

        if (!p || p->values > s->layout.values - count)
            return p ? error_set(err, ERROR_SCRIPT, NULL, "a call of the aggregator names a parameter twice") : false;
        count += p->values;
    }

    float *u = malloc((size_t)(count * in->peers) * sizeof *u + 1), *y = malloc((size_t)(count * rows) * sizeof *y + 1);
    float *sent = reads_sent(g) ? malloc((size_t)(count * in->peers) * sizeof *sent + 1) : NULL;
    bool ok = (u && y && (sent || !reads_sent(g))) ||
              error_set(err, ERROR_MEMORY, NULL, "no memory for the updates of %zu peers", in->peers);

    if (ok) {
        move_parameters(&s->layout, names, in->n, in->u, u, count, in->peers, true);
        if (sent)
            move_parameters(&s->layout, names, in->n, in->sent, sent, count, in->peers, true);
        ok = run_combine(s, g, in, u, sent, count, y, rows, err);
    }
    if (ok)
        move_parameters(&s->layout, names, in->n, out, y, count, rows, false);
    free(u);
    free(y);
    free(sent);
    return ok;
}

/* Whether a call is about tensors of the fragment: a rule may divide by what is 0 in the others. */
static bool is_exchanged(const struct layout *l, uint32_t fragment, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        long place = layout_find(l, json_string_value(json_array_get(names, i)));

        if (place < 0 || fragment_has(fragment, &l->parameters[place]))
            return true;
    }
    return false;
}

/* All calls of a rule, `in` to `out` [rows n]. */
static bool combine_all(struct session *s, const struct script_trace *trace, struct updates *in, float *out, size_t rows,
                        struct error *err)
{
    const char *over = document_text(trace->meta, "over");
    json_t *calls = json_object_get(trace->meta, "calls"), *call;
    size_t index;

    if (!over || (strcmp(over, "whole") != 0 && strcmp(over, "tensor") != 0))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "an aggregator over pairs of adapters");
    json_array_foreach(calls, index, call)
    {
        const struct graph *g = bound_graph(trace, json_object_get(call, "combine"), err);

        if (!g)
            return false;
        if (json_array_size(json_object_get(call, "state")))
            return error_set(err, ERROR_UNSUPPORTED, NULL, "an aggregator that keeps state");
        if (strcmp(over, "whole") != 0 && !is_exchanged(&s->layout, in->fragment, json_object_get(call, "params")))
            continue;
        if (reads_sent(g) && !make_sent(in, err))
            return false;
        if (!(strcmp(over, "whole") == 0 ? run_combine(s, g, in, in->u, in->sent, in->n, out, rows, err)
                                         : combine_call(s, g, json_object_get(call, "params"), in, out, rows, err)))
            return false;
    }
    return true;
}

static bool aggregate(struct session *s, size_t which, struct updates *u, int64_t round, struct error *err)
{
    json_t *metas = layout_metas(&s->layout);
    struct script_aggregator_request request = { .peers = (int64_t)u->peers, .params = metas, .round = round };
    struct script_trace trace;
    bool ok = script_trace_aggregator(&s->aggregators[which].bundle, &request, &s->limits, &trace, err);

    json_decref(metas);
    if (!ok)
        return false;

    bool keeps = json_is_true(json_object_get(trace.meta, "keeps_peer"));
    size_t rows = keeps ? u->peers : 1;
    float *out = calloc((size_t)(u->n * rows), sizeof *out);

    ok = out ? combine_all(s, &trace, u, out, rows, err) : error_set(err, ERROR_MEMORY, NULL, "no memory for an aggregate");
    script_trace_free(&trace);
    free(u->u);
    u->u = out;
    u->whole = !keeps;
    return ok;
}

/* The outer step of one parameter: `g` and `lr` in, `p` and slots in and out where they lie. */
struct outer_step {
    const struct graph *g;
    const void **inputs;
    void **outputs;
    struct executor_alias *aliases;
    size_t alias_count;
};

/* The slot of graph name "s.NAME" for this parameter; NULL for other names. */
static const struct state_slot *outer_slot(const struct states *states, const struct layout_parameter *p, const char *name)
{
    char full[GRAPH_NAME + 1];

    if (strncmp(name, "s.", 2) != 0)
        return NULL;
    snprintf(full, sizeof full, "s.%s.%s", p->name, name + 2);
    return states_find(states, full);
}

static bool outer_bind(struct outer_step *step, const struct states *states, const struct layout_parameter *p, float *values,
                       const float *update, const float *lr, struct error *err)
{
    const struct graph *g = step->g;
    bool ok = true;

    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *name = graph_text(g, g->nodes[g->bound[i]].name);
        const struct state_slot *slot = outer_slot(states, p, name);
        bool rate = strcmp(name, "lr") == 0;

        step->inputs[i] = slot                     ? slot->data
                          : rate                   ? (const void *)lr
                          : strcmp(name, "p") == 0 ? values + p->offset
                          : strcmp(name, "g") == 0 ? update + p->offset
                                                   : NULL;
        ok = step->inputs[i] ? bound_fits(g, g->bound[i], slot ? slot->size : (rate ? 1 : p->values) * sizeof *lr, err)
                             : error_set(err, ERROR_UNSUPPORTED, NULL, "an outer optimiser that reads %s", name);
    }
    for (uint32_t i = 0; ok && i < g->output_count; i++) {
        const char *name = graph_text(g, g->outputs[i].name);
        const struct state_slot *slot = outer_slot(states, p, name);
        uint32_t place;

        if (!slot && strcmp(name, "p") != 0)
            continue; /* metrics are not computed */
        step->outputs[i] = slot ? slot->data : values + p->offset;
        ok = bound_fits(g, g->outputs[i].node, slot ? slot->size : p->values * sizeof *values, err);
        if (graph_bound_find(g, name, &place) != GRAPH_NONE)
            step->aliases[step->alias_count++] = (struct executor_alias){ i, place };
    }
    return ok;
}

/* Applies the update by the outer optimiser, parameter by parameter. */
static bool apply(struct session *s, struct states *states, float *values, const struct updates *u, double rate,
                  struct error *err)
{
    json_t *entries = json_object_get(s->outer.meta, "params"), *entry;
    float lr = (float)rate;
    size_t index;

    json_array_foreach(entries, index, entry)
    {
        const struct layout_parameter *p = bound_parameter(&s->layout, json_object_get(entry, "name"), err);
        struct outer_step step = { .g = p ? bound_graph(&s->outer, json_object_get(entry, "step"), err) : NULL };
        struct executor *ex = NULL;
        bool ok;

        if (!step.g)
            return error_at(err, "outer");
        if (!fragment_has(u->fragment, p))
            continue; /* its momentum waits with it */
        step.inputs = calloc(step.g->bound_count + 1, sizeof *step.inputs);
        step.outputs = calloc(step.g->output_count + 1, sizeof *step.outputs);
        step.aliases = calloc(step.g->output_count + 1, sizeof *step.aliases);
        ok = outer_bind(&step, states, p, values, u->u, &lr, err);
        if (ok)
            ex =
                executor_new(step.g, &(struct executor_options){ .aliases = step.aliases, .alias_count = step.alias_count }, err);
        ok = ex && executor_run(ex, step.inputs, step.outputs, NULL, err);
        executor_free(ex);
        free(step.inputs);
        free(step.outputs);
        free(step.aliases);
        if (!ok)
            return error_at(err, "outer: %s", p->name);
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
    json_t *rate = json_object_get(plan, "outer_lr");
    int64_t number = json_integer_value(json_object_get(round, "round"));
    struct updates u = { .peers = json_array_size(list), .n = s->layout.values };
    size_t index;
    bool ok = updates_new(&u, err) && fragments_of(s, plan, &u.fragment, err);

    json_array_foreach(list, index, contribution)
    {
        ok = ok && read_payload(s, contribution, payloads, number, plan, u.u + index * u.n, err);
        if (ok)
            u.weights[index] = (float)json_integer_value(json_object_get(contribution, "weight"));
    }
    if (ok)
        note_said(&u);
    for (size_t i = 0; ok && i < s->aggregator_count; i++)
        ok = aggregate(s, i, &u, number, err) || error_at(err, "aggregators[%zu]", i);
    if (ok && !u.whole)
        ok = error_set(err, ERROR_SCRIPT, "put a rule such as mean after it", "the last aggregator keeps the axis peer");
    if (ok) {
        *norm = norm_of(u.u, u.n);
        *root = layout_root(&s->layout, u.u);
        ok = apply(s, states, values, &u, json_decimal(rate, 0), err) && check_values(&s->layout, values, err);
    }
    updates_free(&u);
    return ok;
}

json_t *folding_run(struct session *s, const json_t *request, const json_t *payloads, struct error *err)
{
    float *values = layout_values(&s->layout, err), norm = 0;
    json_t *rounds = json_object_get(request, "rounds"), *round, *steps = json_array(), *result = NULL;
    struct states states = { 0 };
    struct hash from, root = { 0 };
    size_t index;
    bool ok = values && states_new(&states, s, &s->outer, values, err) && cid_parse(document_text(request, "from"), &from, err) &&
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
