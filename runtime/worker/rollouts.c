#include "runtime/worker/rollouts.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/crypto/hash.h"
#include "runtime/round/seed.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/generate.h"
#include "runtime/worker/reference.h"

enum { AT_ONCE = 64 };

/* --- prompts in order ----------------------------------------------------------------------------------------------------- */

static void shuffle(struct rollouts *r)
{
    struct stream stream;

    for (size_t i = 0; i < r->count; i++)
        r->order[i] = (uint32_t)i;
    stream_start(&stream, r->seed, "rondo/order", r->lap++);
    stream_shuffle(&stream, r->order, r->count);
    r->at = 0;
}

static const struct prompt *peek(struct rollouts *r)
{
    if (r->at == r->count)
        shuffle(r);
    return r->prompts[r->order[r->at]];
}

static bool take_shards(struct rollouts *r, const json_t *shards, struct error *err)
{
    json_t *shard;
    size_t index;

    json_array_foreach(shards, index, shard)
    {
        struct hash id;
        const struct session_shard *rows = NULL;

        if (!cid_parse(json_string_value(shard), &id, err) || !(rows = session_shard(r->session, id, SESSION_TRAIN, err)))
            return false;
        r->prompts = realloc(r->prompts, (r->count + rows->prompts.count + 1) * sizeof *r->prompts);
        for (size_t i = 0; i < rows->prompts.count; i++)
            r->prompts[r->count++] = &rows->prompts.items[i];
    }
    if (r->count == 0 || r->count > UINT32_MAX / 2)
        return error_set(err, ERROR_RANGE, "rows need `messages` or `prompt`, and room in the context for an answer",
                         "the assigned shards hold no prompt");
    return true;
}

bool rollouts_new(struct rollouts *r, struct session *s, const json_t *shards, struct hash seed, const char *did, int64_t round,
                  double clip, struct error *err)
{
    struct hasher h;

    *r = (struct rollouts){ .session = s, .seed = seed, .round = round, .clip = clip, .batch_tokens = s->rules.batch_tokens };
    hash_start(&h, "rondo/rollout");
    hash_fixed(&h, seed.bytes, sizeof seed.bytes);
    hash_text(&h, did);
    r->draws = hash_end(&h);
    if (!take_shards(r, shards, err))
        return false;
    r->order = calloc(r->count, sizeof *r->order);
    if (!r->order)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for the order of prompts");
    shuffle(r);
    return true;
}

void rollouts_free(struct rollouts *r)
{
    free(r->prompts);
    free(r->taken);
    free(r->order);
    *r = (struct rollouts){ 0 };
}

/* --- drawing -------------------------------------------------------------------------------------------------------------- */

static uint32_t most_tokens(const struct session *s, const struct prompt *p)
{
    int64_t room = s->rules.context - (int64_t)p->count;

    return (uint32_t)(room < s->rollout.max_tokens ? room : s->rollout.max_tokens);
}

/* One completion of each of `prompts`, by the seeds of the stream. */
static struct generation *draw(struct session *s, const float *values, const struct prompt *const *prompts, size_t count,
                               struct stream *seeds, struct error *err)
{
    struct generation *list = calloc(count + 1, sizeof *list);
    uint32_t ends[GENERATE_ENDS];
    struct generate_options options = { .rule = { .temperature = s->rollout.temperature, .top_p = 1, .repetition = 1 },
                                        .ends = ends,
                                        .end_count = generate_ends(s, ends),
                                        .rows = AT_ONCE };

    if (!list)
        abort();
    for (size_t i = 0; i < count; i++) {
        list[i].prompt = prompts[i]->ids;
        list[i].prompt_count = (uint32_t)prompts[i]->count;
        list[i].most = most_tokens(s, prompts[i]);
        list[i].seed = stream_next(seeds);
    }
    if (generate(s, values, &options, list, count, err))
        return list;
    for (size_t i = 0; i < count; i++)
        generation_free(&list[i]);
    free(list);
    return NULL;
}

static void drawn_free(struct generation *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        generation_free(&list[i]);
    free(list);
}

static bool is_truncated(const struct generation *g)
{
    return g->end != GENERATE_END_OF_TURN;
}

/* --- rewards -------------------------------------------------------------------------------------------------------------- */

static json_t *as_text(const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    json_t *made = json_string(text ? text : "null");

    free(text);
    return made;
}

static json_t *completion(const struct session *s, const struct prompt *p, const struct generation *g, int64_t round,
                          struct error *err)
{
    const json_t *messages = json_object_get(p->row, "messages");
    struct buffer text = { 0 };
    json_t *made = NULL;

    if (generate_text(s, g->tokens, g->count, true, &text, err))
        made = json_pack(
            "{s:o, s:s%, s:o, s:I, s:b, s:I}", "prompt", as_text(messages ? messages : json_object_get(p->row, "prompt")), "text",
            text.bytes ? (const char *)text.bytes : "", text.size, "reference", as_text(json_object_get(p->row, "reference")),
            "tokens", (json_int_t)g->drawn, "truncated", is_truncated(g), "round", (json_int_t)round);
    buffer_free(&text);
    return made;
}

static bool reward(struct session *s, const struct prompt *const *prompts, const struct generation *list, size_t count,
                   int64_t round, struct scores *scores, struct error *err)
{
    json_t *completions = json_array();
    bool ok = true;

    for (size_t i = 0; ok && i < count; i++) {
        json_t *made = completion(s, prompts[i], &list[i], round, err);

        ok = made != NULL;
        if (ok)
            json_array_append_new(completions, made);
    }
    ok = ok && scoring_run(s, completions, scores, err);
    json_decref(completions);
    if (ok && scores->failed == count && count > 0) {
        *err = scores->first;
        return error_at(err, "reward: every completion was declined");
    }
    return ok;
}

/* --- a batch -------------------------------------------------------------------------------------------------------------- */

/* Rows: prompt, then what was drawn with weight 1. */
static void lay_out(struct rollouts *r, const struct prompt *const *prompts, const struct generation *list, size_t count,
                    struct batch *b)
{
    struct example *examples = calloc(count, sizeof *examples);
    const struct example **rows = calloc(count, sizeof *rows);
    float *sampler;

    for (size_t i = 0; i < count; i++) {
        const struct generation *g = &list[i];
        size_t before = prompts[i]->count, all = before + g->drawn;
        struct example *e = &examples[i];

        *e = (struct example){ .ids = calloc(all, sizeof *e->ids), .weights = calloc(all, sizeof *e->weights), .count = all };
        memcpy(e->ids, prompts[i]->ids, before * sizeof *e->ids);
        memcpy(e->ids + before, g->tokens, g->count * sizeof *e->ids);
        if (g->drawn > g->count)
            e->ids[before + g->count] = g->ended_by;
        for (size_t t = before; t < all; t++)
            e->weights[t] = 1;
        rows[i] = e;
    }
    batch_of(b, &r->session->rules, rows, count);
    sampler = batch_extra(b, "sampler_logprobs", (uint64_t)(b->rows * b->time));
    for (size_t i = 0; i < count; i++) {
        memcpy(sampler + i * (size_t)b->time + prompts[i]->count, list[i].logprobs, list[i].drawn * sizeof *sampler);
        free(examples[i].ids);
        free(examples[i].weights);
    }
    free(examples);
    free(rows);
}

/* "b.reward" -> "reward". */
static const char *field_of(const char *name)
{
    return strncmp(name, "b.", 2) == 0 ? name + 2 : name;
}

static bool reads(const struct session_step *step, const char *field)
{
    json_t *list = json_object_get(step->objective.meta, "fields"), *name;
    size_t index;

    json_array_foreach(list, index, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), field) == 0)
            return true;
    }
    return false;
}

/* Log-probabilities of the batch under `values`, or under the reference (NULL), 0 where nothing is trained: what is read there would only be
 * padding. */
static bool add_logprobs(struct rollouts *r, const float *values, const char *name, struct batch *b, struct error *err)
{
    size_t count = (size_t)(b->rows * b->time);
    float *out = batch_extra(b, name, count), *best = malloc(count * sizeof *best);
    bool ok =
        values ? training_logprobs(r->session, values, b, out, best, err) : reference_logprobs(r->session, b, out, best, err);

    for (size_t i = 0; i < count; i++)
        if (b->mask[i] == 0)
            out[i] = 0;
    free(best);
    return ok || error_at(err, "%s", name);
}

/* Runs the objective's `prepare`; what it returns becomes fields of the batch. */
static bool prepare(struct rollouts *r, struct batch *b, struct error *err)
{
    const struct session_step *step = session_step(r->session, b->rows, b->time, SESSION_TRAIN, r->clip, err);
    json_t *meta = step ? json_object_get(step->objective.meta, "prepare") : NULL;
    const struct graph *g = step && step->prepare ? bound_graph(&step->objective, json_object_get(meta, "graph"), err) : NULL;
    const void **inputs;
    void **outputs;
    bool ok = true;

    if (!g)
        return step && !step->prepare;
    inputs = calloc(g->bound_count + 1, sizeof *inputs);
    outputs = calloc(g->output_count + 1, sizeof *outputs);
    for (uint32_t i = 0; ok && i < g->output_count; i++) {
        const char *name = field_of(graph_text(g, g->outputs[i].name));

        if (strlen(name) >= sizeof b->extra->name)
            ok = error_set(err, ERROR_LIMIT, NULL, "prepare returns a name of %zu characters", strlen(name));
        else
            outputs[i] = batch_extra(b, name, g->nodes[g->outputs[i].node].values);
    }
    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *name = field_of(graph_text(g, g->nodes[g->bound[i]].name));

        inputs[i] = batch_field(b, name);
        ok = bound_fits(g, g->bound[i], batch_field_count(b, name) * sizeof(float), err) || error_at(err, "b.%s", name);
    }
    ok = ok && executor_run(step->prepare, inputs, outputs, NULL, err);
    free(inputs);
    free(outputs);
    return ok || error_at(err, "prepare");
}

static bool fill(struct rollouts *r, const float *values, const struct prompt *const *prompts, const struct generation *list,
                 size_t count, struct batch *b, struct error *err)
{
    struct scores scores;
    const struct session_step *step;
    float *truncated;
    bool old, reference;

    lay_out(r, prompts, list, count, b);
    scores = (struct scores){ .reward = batch_extra(b, "reward", count), .valid = batch_extra(b, "valid", count) };
    truncated = batch_extra(b, "truncated", count);
    for (size_t i = 0; i < count; i++)
        truncated[i] = is_truncated(&list[i]);
    if (!reward(r->session, prompts, list, count, r->round, &scores, err))
        return false;
    step = session_step(r->session, b->rows, b->time, SESSION_TRAIN, r->clip, err);
    if (!step)
        return false;
    old = reads(step, "b.old_logprobs");
    reference = reads(step, "b.ref_logprobs");
    return (!old || add_logprobs(r, values, "old_logprobs", b, err)) &&
           (!reference || add_logprobs(r, NULL, "ref_logprobs", b, err)) && prepare(r, b, err);
}

static int64_t bucket(int64_t size)
{
    return (size + BATCH_BUCKET - 1) / BATCH_BUCKET * BATCH_BUCKET;
}

/* The prompts of the next batch, each as often as its group is large. */
static const struct prompt **take(struct rollouts *r, size_t *count)
{
    const struct session *s = r->session;
    size_t samples = (size_t)s->rollout.samples, most = (size_t)r->batch_tokens / samples / BATCH_BUCKET + 1, groups = 0;
    const struct prompt **list = calloc((most + 1) * samples, sizeof *list);
    int64_t longest = 0;

    if (!list)
        abort();
    while (groups < most) {
        const struct prompt *p = peek(r);
        int64_t time = bucket((int64_t)p->count + most_tokens(s, p));

        longest = time > longest ? time : longest;
        if (groups > 0 && (int64_t)((groups + 1) * samples) * longest > r->batch_tokens)
            break;
        for (size_t i = 0; i < samples; i++)
            list[groups * samples + i] = p;
        groups++;
        r->at++;
    }
    *count = groups * samples;
    return list;
}

bool rollouts_next(struct rollouts *r, const float *values, struct batch *b, struct error *err)
{
    struct stream seeds;
    size_t count;
    struct generation *list;
    bool ok;

    free(r->taken);
    r->taken = take(r, &count);
    stream_start(&seeds, r->draws, "rondo/rollout", r->number++);
    list = draw(r->session, values, r->taken, count, &seeds, err);
    ok = list && fill(r, values, r->taken, list, count, b, err);
    if (list)
        drawn_free(list, count);
    return ok || error_at(err, "rollouts %llu", (unsigned long long)r->number);
}

bool rollouts_measure(struct session *s, const float *values, const struct prompt *const *prompts, size_t count,
                      struct rollout_measure *sum, struct error *err)
{
    struct scores scores = { .reward = calloc(count + 1, sizeof(float)), .valid = calloc(count + 1, sizeof(float)) };
    struct stream seeds;
    struct generation *list;
    bool ok;

    stream_start(&seeds, (struct hash){ { 0 } }, "rondo/measure", sum->rows);
    list = draw(s, values, prompts, count, &seeds, err);
    ok = list && reward(s, prompts, list, count, 0, &scores, err);
    for (size_t i = 0; ok && i < count; i++) {
        sum->reward += (double)(scores.reward[i] * scores.valid[i]);
        sum->valid += scores.valid[i] > 0;
        sum->truncated += is_truncated(&list[i]);
        sum->tokens += list[i].drawn;
        sum->rows++;
    }
    if (list)
        drawn_free(list, count);
    free(scores.reward);
    free(scores.valid);
    return ok;
}
