#include "runtime/worker/sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/model/adapter.h"
#include "native/numerics/exp.h"
#include "native/numerics/random.h"
#include "native/text/utf8.h"
#include "runtime/doc/documents.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/training.h"

enum { ENDS = 16, PURPOSE = 0x73616d70 };

struct sampling {
    struct session *session;
    float *values;
    struct tokens tokens; /* the prompt's and what came after */
    size_t prompt;
    uint32_t ends[ENDS];
    size_t end_count;
    struct buffer text; /* of what came after: valid UTF-8 */
    size_t told;
    struct batch batch;
    float *logits; /* [1 time vocab] */
    uint32_t vocab;
};

/* --- values --------------------------------------------------------------------------------------------------------------- */

static bool own_values(struct sampling *g, bool adapted, struct error *err)
{
    const struct layout *l = &g->session->layout;

    for (size_t i = 0; !adapted && i < l->count; i++)
        if (!model_find(g->session->model, l->parameters[i].name))
            return error_set(err, ERROR_MISSING, "sample from a model with all of its weights",
                             "the model's files hold no tensor %s", l->parameters[i].name);
    return session_genesis(g->session, g->values, err);
}

static bool read_values(struct sampling *g, const json_t *job, struct error *err)
{
    const char *outer = document_text(job, "outer"), *adapter = document_text(job, "adapter");
    struct hash id;

    g->values = calloc((size_t)g->session->layout.values + 1, sizeof *g->values);
    if (!g->values)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %llu values", (unsigned long long)g->session->layout.values);
    if (outer)
        return cid_parse(outer, &id, err) && folding_values(g->session, id, g->values, err);
    if (!own_values(g, adapter != NULL, err))
        return false;
    if (!adapter)
        return true;

    struct tensor *tensors = folding_tensors(&g->session->layout, g->values);
    bool ok = adapter_read(adapter, tensors, g->session->layout.count, err);

    free(tensors);
    return ok;
}

/* --- prompt and end ------------------------------------------------------------------------------------------------------- */

static void add_end(struct sampling *g, const json_t *id)
{
    if (json_is_integer(id) && g->end_count < ENDS)
        g->ends[g->end_count++] = (uint32_t)json_integer_value(id);
}

/* The end-of-turn token: the one the template knows as eos_token, and those of the configuration. */
static void find_ends(struct sampling *g)
{
    const struct session *s = g->session;
    const char *text = json_string_value(json_object_get(s->variables, "eos_token"));
    json_t *ids = json_object_get(model_config(s->model), "eos_token_id"), *id;
    size_t index;

    if (text && tokenizer_find(s->tokenizer, text, strlen(text), &g->ends[0]))
        g->end_count = 1;
    add_end(g, ids);
    json_array_foreach(ids, index, id)
    {
        add_end(g, id);
    }
}

static bool read_prompt(struct sampling *g, const json_t *job, struct error *err)
{
    struct session *s = g->session;
    const json_t *conversation = json_object_get(job, "conversation");
    const char *prompt = document_text(job, "prompt");
    struct conversation_format format = { .tokenizer = s->tokenizer,
                                          .template = s->template,
                                          .variables = s->variables,
                                          .options = { 2026, 1, 1 },
                                          .context = (size_t)s->rules.context };

    if (conversation && !s->template)
        return error_set(err, ERROR_MISSING, "give text with --prompt", "the model has no chat template");
    if (conversation && !conversation_prompt(&format, conversation, &g->tokens, err))
        return error_at(err, "conversation");
    if (!conversation && !prompt)
        return error_set(err, ERROR_MISSING, NULL, "there is no prompt");
    if (!conversation && !tokenizer_encode(s->tokenizer, prompt, strlen(prompt), true, &g->tokens, err))
        return error_at(err, "prompt");
    g->prompt = g->tokens.count;
    if (g->prompt == 0)
        return error_set(err, ERROR_MISSING, "one token at least is needed to go on from", "the prompt is empty");
    if ((int64_t)g->prompt >= s->rules.context)
        return error_set(err, ERROR_LIMIT, "shorten it", "the prompt has %zu tokens, the model's context %lld", g->prompt,
                         (long long)s->rules.context);
    return true;
}

/* --- a token -------------------------------------------------------------------------------------------------------------- */

static int64_t bucket(size_t count)
{
    int64_t time = BATCH_BUCKET;

    while (time < (int64_t)count)
        time *= 2;
    return time;
}

/* The sequence as one row, padded at its end. */
static bool fill(struct sampling *g, int64_t time, struct error *err)
{
    struct batch *b = &g->batch;

    if (b->time != time) {
        batch_free(b);
        free(g->logits);
        *b = (struct batch){ .rows = 1, .time = time };
        b->ids = calloc((size_t)time, sizeof *b->ids);
        b->position = calloc((size_t)time, sizeof *b->position);
        b->segment = calloc((size_t)time, sizeof *b->segment);
        b->real = calloc((size_t)time, sizeof *b->real);
        g->logits = calloc((size_t)time * g->vocab, sizeof *g->logits);
        if (!g->logits)
            return error_set(err, ERROR_MEMORY, NULL, "no memory for the logits of %lld tokens", (long long)time);
    }
    for (size_t t = 0; t < g->tokens.count; t++) {
        b->ids[t] = (int32_t)g->tokens.ids[t];
        b->position[t] = (int32_t)t;
        b->segment[t] = 1;
        b->real[t] = 1;
    }
    return true;
}

/* The logits of the token after the last, borrowed. */
static const float *forward(struct sampling *g, struct error *err)
{
    int64_t time = bucket(g->tokens.count);
    const struct session_step *step = session_step(g->session, 1, time, SESSION_SAMPLE, 0, err);
    const struct graph *graph = step ? step->graph : NULL;
    const void **inputs;
    uint64_t bad;
    bool ok;

    if (!step)
        return NULL;
    g->vocab = (uint32_t)json_integer_value(json_object_get(json_object_get(step->model.meta, "axes"), "vocab"));
    ok = fill(g, time, err);
    inputs = calloc(graph->bound_count + 1, sizeof *inputs);
    for (uint32_t i = 0; ok && i < graph->bound_count; i++) {
        const char *field;

        ok = training_input(g->session, step, i, g->values, &inputs[i], &field, err);
        if (ok && field)
            inputs[i] = batch_field(&g->batch, field);
    }

    void *outputs[1] = { g->logits };
    const float *last = g->logits + (g->tokens.count - 1) * g->vocab;

    ok = ok && bound_fits(graph, graph->outputs[0].node, (uint64_t)time * g->vocab * sizeof *g->logits, err) &&
         executor_run(step->executor, inputs, outputs, NULL, err);
    if (ok && !tensor_finite_f32(last, g->vocab, &bad))
        ok = error_set(err, ERROR_NON_FINITE, NULL, "the logit of token %llu is not finite", (unsigned long long)bad);
    free(inputs);
    return ok ? last : NULL;
}

uint32_t sampling_pick(const float *logits, uint32_t count, double temperature, double uniform)
{
    uint32_t best = 0, last = 0;
    double sum = 0, goal, run = 0;

    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    if (temperature <= 0)
        return best;
    for (uint32_t i = 0; i < count; i++)
        sum += (double)f32_exp((float)(((double)logits[i] - (double)logits[best]) / temperature));
    goal = uniform * sum;
    for (uint32_t i = 0; i < count; i++) {
        double weight = (double)f32_exp((float)(((double)logits[i] - (double)logits[best]) / temperature));

        run += weight;
        if (weight > 0)
            last = i;
        if (run > goal)
            return i;
    }
    return last;
}

static double draw(uint64_t seed, uint32_t token)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) }, counter[4] = { 0, PURPOSE, token, 0 };
    uint32_t words[4];

    philox_block(counter, key, words);
    return (double)((uint64_t)words[0] << 21 | words[1] >> 11) * 0x1p-53;
}

/* --- text ----------------------------------------------------------------------------------------------------------------- */

/* The bytes so far as UTF-8: what can be no character becomes U+FFFD; an unfinished one at the end waits unless `all`. */
static bool decode(struct sampling *g, bool all, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = tokenizer_decode(g->session->tokenizer, g->tokens.ids + g->prompt, g->tokens.count - g->prompt, false, &bytes, err);
    const char *at = (const char *)bytes.bytes, *end = at + bytes.size;

    buffer_clear(&g->text);
    while (ok && at < end) {
        size_t size;
        uint32_t c = utf8_at(at, end, &size);

        if (c == UINT32_MAX && !all && end - at < 4 && (unsigned char)*at >= 0xc2)
            break;
        if (c == UINT32_MAX || c == 0)
            utf8_add(&g->text, 0xfffd);
        else
            buffer_add(&g->text, at, size);
        at += size;
    }
    buffer_free(&bytes);
    return ok;
}

static void tell(struct sampling *g, const struct job_reporter *to)
{
    json_t *report;

    if (!to || g->text.size <= g->told)
        return;
    report = json_pack("{s:s%}", "text", (const char *)g->text.bytes + g->told, g->text.size - g->told);
    to->report(to->context, report);
    json_decref(report);
    g->told = g->text.size;
}

static bool is_end(const struct sampling *g, uint32_t id)
{
    for (size_t i = 0; i < g->end_count; i++)
        if (g->ends[i] == id)
            return true;
    return false;
}

/* Why it ended; NULL with `err`. */
static const char *generate(struct sampling *g, const json_t *job, const struct job_reporter *to, struct error *err)
{
    int64_t most = document_integer(job, "max_tokens");
    double temperature = json_number_value(json_object_get(job, "temperature"));
    uint64_t seed = (uint64_t)document_integer(job, "seed");

    for (int64_t i = 0; i < most; i++) {
        const float *logits;
        uint32_t id;

        if ((int64_t)g->tokens.count >= g->session->rules.context)
            return "context";
        logits = forward(g, err);
        if (!logits)
            return NULL;
        id = sampling_pick(logits, g->vocab, temperature, draw(seed, (uint32_t)i));
        if (is_end(g, id))
            return "end_of_turn";
        tokens_add(&g->tokens, id, 0);
        if (!decode(g, false, err))
            return NULL;
        tell(g, to);
    }
    return "length";
}

json_t *job_sample(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    struct sampling g = { .session = s };
    json_t *result = NULL;
    const char *end = NULL;

    find_ends(&g);
    if (read_values(&g, job, err) && read_prompt(&g, job, err))
        end = generate(&g, job, to, err);
    if (end && decode(&g, true, err)) {
        tell(&g, to);
        result = json_pack("{s:s%, s:I, s:I, s:s}", "text", g.text.bytes ? (const char *)g.text.bytes : "", g.text.size, "tokens",
                           (json_int_t)(g.tokens.count - g.prompt), "prompt_tokens", (json_int_t)g.prompt, "end", end);
    }
    batch_free(&g.batch);
    buffer_free(&g.text);
    tokens_free(&g.tokens);
    free(g.logits);
    free(g.values);
    return result;
}
