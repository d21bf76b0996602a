#include "runtime/worker/sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/doc/documents.h"
#include "runtime/worker/constraint.h"
#include "runtime/worker/training.h"
#include "runtime/worker/values.h"

struct sampling {
    struct session *session;
    float *values;
    struct tokens tokens; /* the prompt's */
    size_t prompt;
    struct buffer text; /* of what came after: valid UTF-8 */
    size_t told;
    const struct job_reporter *to;
    const json_t *stops; /* texts, or NULL */
    bool stopped;
};

/* --- prompt --------------------------------------------------------------------------------------------------------------- */

/* Text that is gone on with, into the empty `out`: what the tokenizer puts in front of a text stands there once, also where the text has it. */
static bool encode_start(const struct session *s, const char *text, size_t size, struct tokens *out, struct error *err)
{
    size_t before;

    tokenizer_start(s->tokenizer, out);
    before = out->count;
    if (!tokenizer_encode(s->tokenizer, text, size, true, out, err))
        return false;
    if (before == 0 || out->count < 2 * before || memcmp(out->ids, out->ids + before, before * sizeof *out->ids) != 0)
        return true;
    out->count -= before;
    memmove(out->ids, out->ids + before, out->count * sizeof *out->ids);
    memmove(out->ends, out->ends + before, out->count * sizeof *out->ends);
    return true;
}

bool sampling_prompt(const struct session *s, const json_t *from, struct tokens *tokens, struct error *err)
{
    const json_t *conversation = json_object_get(from, "conversation");
    const char *prompt = document_text(from, "prompt");
    const struct conversation_format format = session_format(s);

    if (conversation && !s->template)
        return error_set(err, ERROR_MISSING, "give text with --prompt", "the model has no chat template");
    if (conversation && !conversation_prompt(&format, conversation, tokens, err))
        return error_at(err, "conversation");
    if (!conversation && !prompt)
        return error_set(err, ERROR_MISSING, NULL, "there is no prompt");
    if (!conversation && !encode_start(s, prompt, strlen(prompt), tokens, err))
        return error_at(err, "prompt");
    return tokens->count > 0 ||
           error_set(err, ERROR_MISSING, "one token at least is needed to go on from", "the prompt is empty");
}

static bool read_prompt(struct sampling *g, const json_t *job, struct error *err)
{
    if (!sampling_prompt(g->session, job, &g->tokens, err))
        return false;
    g->prompt = g->tokens.count;
    return (int64_t)g->prompt < g->session->rules.context ||
           error_set(err, ERROR_LIMIT, "shorten it", "the prompt has %zu tokens, the model's context %lld", g->prompt,
                     (long long)g->session->rules.context);
}

/* --- text ----------------------------------------------------------------------------------------------------------------- */

/* All but the last `hold` bytes, which may be the beginning of something that is cut off; never half a character. */
static void tell(struct sampling *g, const struct job_reporter *to, size_t hold)
{
    size_t end = g->text.size > hold ? g->text.size - hold : 0;
    json_t *report;

    while (end > 0 && end < g->text.size && (g->text.bytes[end] & 0xc0) == 0x80)
        end--;
    if (!to || end <= g->told)
        return;
    report = json_pack("{s:s%}", "text", (const char *)g->text.bytes + g->told, end - g->told);
    to->report(to->context, report);
    json_decref(report);
    g->told = end;
}

/* After a token: what is new of the text goes out; a stop string, cut off with all behind it, ends it. */
static bool told_token(void *context, const struct generation *g, struct error *err)
{
    struct sampling *s = context;
    size_t hold = 0, at = SIZE_MAX;

    if (!generate_text(s->session, g->tokens, g->count, false, &s->text, err))
        return false;
    for (size_t i = 0; i < json_array_size(s->stops); i++) {
        const json_t *stop = json_array_get(s->stops, i);
        size_t size = json_string_length(stop);
        const void *found = s->text.size ? memmem(s->text.bytes, s->text.size, json_string_value(stop), size) : NULL;

        if (size == 0)
            continue;
        hold = size - 1 > hold ? size - 1 : hold; /* what may be the beginning of one waits */
        if (found && (size_t)((const uint8_t *)found - s->text.bytes) < at)
            at = (size_t)((const uint8_t *)found - s->text.bytes);
    }
    if (at != SIZE_MAX) {
        s->text.size = at;
        s->stopped = true;
        return false;
    }
    tell(s, s->to, hold);
    return true;
}

/* A number of the job, else what the model's generation_config.json calls `theirs`. */
static double setting(const json_t *job, const char *ours, const json_t *own, const char *theirs, double otherwise)
{
    const json_t *value = json_object_get(job, ours);

    value = value ? value : json_object_get(own, theirs);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

bool sampling_rule(const struct session *s, const json_t *job, struct generate_rule *rule, struct error *err)
{
    const bool as_model = json_is_true(json_object_get(job, "as_model"));
    const json_t *own = as_model ? model_generation(s->model) : NULL;
    const double top_k = setting(job, "top_k", own, "top_k", 0);

    if (as_model && !own)
        return error_set(err, ERROR_MISSING, "say --temperature instead", "the model has no generation_config.json");
    *rule = (struct generate_rule){
        .temperature = setting(job, "temperature", own, "temperature", 1),
        .top_k = top_k > 0 && top_k < UINT32_MAX ? (uint32_t)top_k : 0,
        .top_p = setting(job, "top_p", own, "top_p", 1),
        .min_p = setting(job, "min_p", own, "min_p", 0),
        .repetition = setting(job, "repetition", own, "repetition_penalty", 1),
    };
    if (!json_object_get(job, "temperature") && !json_is_true(json_object_get(own, "do_sample")))
        rule->temperature = 0;
    return (rule->temperature >= 0 && rule->top_p > 0 && rule->min_p >= 0 && rule->min_p < 1 && rule->repetition > 0) ||
           error_set(err, ERROR_RANGE, "temperature from 0, top_p above 0, min_p from 0 to below 1, repetition above 0",
                     "a rule of sampling that cannot be");
}

const char *sampling_end(enum generate_end end)
{
    return end == GENERATE_STOPPED       ? "stop"
           : end == GENERATE_END_OF_TURN ? "end_of_turn"
           : end == GENERATE_CONTEXT     ? "context"
                                         : "length";
}

json_t *job_sample(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    struct sampling g = { .session = s, .to = to, .stops = json_object_get(job, "stop") };
    struct generation out = { .most = (uint32_t)document_integer(job, "max_tokens"),
                              .seed = (uint64_t)document_integer(job, "seed") };
    uint32_t ends[GENERATE_ENDS];
    struct generate_options options = {
        .ends = ends, .end_count = generate_ends(s, ends), .rows = 1, .token = told_token, .context = &g
    };
    struct constraints only = { 0 };
    json_t *result = NULL, *logprobs = json_array(), *ids = json_array();
    bool ok = sampling_rule(s, job, &options.rule, err) && (g.values = values_read(s, job, err)) && read_prompt(&g, job, err);

    if (ok) {
        out.prompt = g.tokens.ids;
        out.prompt_count = (uint32_t)g.prompt;
        ok = constraints_of(&only, s, job, &out, 1, &options, err) &&
             (!options.allow || constraints_add(&only, 0, json_object_get(job, "conversation"), err)) &&
             generate(s, g.values, &options, &out, 1, err);
    }
    if (ok && (g.stopped || generate_text(s, out.tokens, out.count, true, &g.text, err))) {
        tell(&g, to, 0);
        for (uint32_t i = 0; i < out.count; i++) {
            json_array_append_new(logprobs, json_real(out.logprobs[i]));
            json_array_append_new(ids, json_integer(out.tokens[i]));
        }
        result = json_pack("{s:s%, s:I, s:I, s:s, s:O, s:O}", "text", g.text.bytes ? (const char *)g.text.bytes : "", g.text.size,
                           "tokens", (json_int_t)out.count, "prompt_tokens", (json_int_t)g.prompt, "end", sampling_end(out.end),
                           "ids", ids, "logprobs", logprobs);
    }
    json_decref(logprobs);
    json_decref(ids);
    constraints_free(&only);
    generation_free(&out);
    buffer_free(&g.text);
    tokens_free(&g.tokens);
    free(g.values);
    return result;
}

/* --- choices -------------------------------------------------------------------------------------------------------------- */

/* The prompt's tokens and behind them the choice's. */
static bool choice_tokens(const struct sampling *g, const char *prompt, const json_t *choice, struct tokens *out,
                          struct error *err)
{
    const struct tokenizer *t = g->session->tokenizer;
    const char *text = json_string_value(choice);
    struct buffer whole = { 0 };
    bool ok = true, together = false;

    if (prompt) {
        buffer_add(&whole, prompt, strlen(prompt));
        buffer_add(&whole, text, json_string_length(choice));
        ok = encode_start(g->session, (const char *)whole.bytes, whole.size, out, err);
        together = ok && out->count > g->prompt && memcmp(out->ids, g->tokens.ids, g->prompt * sizeof *out->ids) == 0;
        buffer_free(&whole);
    }
    if (ok && !together) {
        out->count = 0;
        for (size_t i = 0; i < g->prompt; i++)
            tokens_add(out, g->tokens.ids[i], 0);
        ok = tokenizer_encode(t, text, json_string_length(choice), false, out, err);
    }
    return ok;
}

static bool choice_weighed(const struct sampling *g, const char *prompt, const json_t *choice, json_t *results, struct error *err)
{
    struct session *s = g->session;
    struct tokens tokens = { 0 };
    struct batch batch = { 0 };
    struct evaluation sum = { 0 };
    struct example row = { 0 };
    const struct example *rows[1] = { &row };
    bool ok = choice_tokens(g, prompt, choice, &tokens, err);

    if (ok && tokens.count == g->prompt)
        ok = error_set(err, ERROR_MISSING, NULL, "a choice without tokens");
    if (ok && (int64_t)tokens.count > s->rules.context)
        ok = error_set(err, ERROR_LIMIT, "shorten it", "%zu tokens with a choice, the model's context is %lld", tokens.count,
                       (long long)s->rules.context);
    row = (struct example){ .ids = tokens.ids, .count = tokens.count, .weights = calloc(tokens.count + 1, sizeof *row.weights) };
    for (size_t i = g->prompt; i < tokens.count; i++)
        row.weights[i] = 1;
    if (ok) {
        batch_of(&batch, &s->rules, rows, 1);
        ok = evaluate_batch(s, g->values, &batch, &sum, NULL, err);
    }
    if (ok)
        json_array_append_new(results,
                              json_pack("{s:f, s:I, s:I}", "logprob", -sum.loss, "tokens", (json_int_t)(tokens.count - g->prompt),
                                        "bytes", (json_int_t)json_string_length(choice)));
    free(row.weights);
    batch_free(&batch);
    tokens_free(&tokens);
    return ok;
}

json_t *job_choose(struct session *s, const json_t *job, struct error *err)
{
    struct sampling g = { .session = s };
    const json_t *choices = json_object_get(job, "choices"), *choice;
    json_t *results = json_array(), *result = NULL;
    bool ok = (g.values = values_read(s, job, err)) && read_prompt(&g, job, err);
    size_t index;

    json_array_foreach(choices, index, choice)
    {
        ok = ok &&
             choice_weighed(&g, json_object_get(job, "conversation") ? NULL : document_text(job, "prompt"), choice, results, err);
    }
    if (ok)
        result = json_pack("{s:O}", "choices", results);
    json_decref(results);
    tokens_free(&g.tokens);
    free(g.values);
    return result;
}
