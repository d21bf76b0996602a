#include "runtime/worker/generate.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/softmax.h"
#include "native/numerics/exp.h"
#include "native/numerics/random.h"
#include "native/text/utf8.h"
#include "runtime/worker/bound.h"
#include "runtime/worker/training.h"

enum { PURPOSE = 0x73616d70, ROWS = 8, MOST_ROWS = 4096, PREFILL = 256, SHAPES = 20 };

/* ---- a draw --------------------------------------------------------------------------------------------------------------- */

double generate_uniform(uint64_t seed, uint32_t token)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) }, counter[4] = { 0, PURPOSE, token, 0 };
    uint32_t words[4];

    philox_block(counter, key, words);
    return (double)((uint64_t)words[0] << 21 | words[1] >> 11) * 0x1p-53;
}

struct candidate {
    float logit;
    uint32_t id;
};

/* Descending by logit, ascending by id. */
static int by_logit(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_id(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void penalise(float *logits, double repetition, const uint32_t *seen, size_t count)
{
    float r = (float)repetition;
    uint32_t *ids = malloc((count + 1) * sizeof *ids);

    if (!ids)
        abort();
    memcpy(ids, seen, count * sizeof *ids);
    qsort(ids, count, sizeof *ids, by_number);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i] != ids[i - 1]) /* each once */
            logits[ids[i]] = logits[ids[i]] > 0 ? logits[ids[i]] / r : logits[ids[i]] * r;
    free(ids);
}

static double weight_of(float logit, float best, double temperature)
{
    return (double)f32_exp((float)(((double)logit - (double)best) / temperature));
}

/* How many of the sorted candidates are kept. */
static size_t kept(const struct candidate *c, size_t count, const struct generate_rule *rule)
{
    double sum = 0, goal, run = 0;
    size_t keep = rule->top_k > 0 && rule->top_k < count ? rule->top_k : count, i;

    if (rule->top_p < 1) {
        for (i = 0; i < keep; i++)
            sum += weight_of(c[i].logit, c[0].logit, rule->temperature);
        goal = rule->top_p * sum;
        for (i = 0; i < keep && run < goal; i++)
            run += weight_of(c[i].logit, c[0].logit, rule->temperature);
        keep = i > 0 ? i : 1;
    }
    while (keep > 1 && weight_of(c[keep - 1].logit, c[0].logit, rule->temperature) < rule->min_p)
        keep--;
    return keep;
}

static uint32_t drawn(const struct candidate *c, size_t count, float best, double temperature, double uniform)
{
    double sum = 0, goal, run = 0;
    uint32_t last = c[0].id;

    for (size_t i = 0; i < count; i++)
        sum += weight_of(c[i].logit, best, temperature);
    goal = uniform * sum;
    for (size_t i = 0; i < count; i++) {
        double weight = weight_of(c[i].logit, best, temperature);

        run += weight;
        if (weight > 0)
            last = c[i].id;
        if (run > goal)
            return c[i].id;
    }
    return last;
}

uint32_t generate_pick(float *logits, uint32_t count, const struct generate_rule *rule, const uint32_t *seen, size_t seen_count,
                       double uniform)
{
    struct candidate *c;
    uint32_t best = 0, id;
    float top;
    size_t keep = count;

    if (rule->repetition != 1)
        penalise(logits, rule->repetition, seen, seen_count);
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    if (rule->temperature <= 0)
        return best;
    top = logits[best];
    c = malloc(count * sizeof *c);
    if (!c)
        abort();
    for (uint32_t i = 0; i < count; i++)
        c[i] = (struct candidate){ logits[i], i };
    if (rule->top_k > 0 || rule->top_p < 1 || rule->min_p > 0) {
        qsort(c, count, sizeof *c, by_logit);
        keep = kept(c, count, rule);
        qsort(c, keep, sizeof *c, by_id);
    }
    id = drawn(c, keep, top, rule->temperature, uniform);
    free(c);
    return id;
}

/* ---- a pass --------------------------------------------------------------------------------------------------------------- */

/* A shape with its memory. */
struct shape {
    int64_t rows, time;
    uint64_t serial;
    const struct session_step *step;
    const void **inputs;
    struct batch batch;
    float *logits; /* [rows time vocab] */
};

/* A place among the sequences that run. */
struct place {
    struct generation *g;
    struct cache_sequence *kept;
    uint32_t next; /* the token to go on from */
};

struct generator {
    struct session *session;
    const float *values;
    const struct generate_options *options;
    struct shape shapes[SHAPES];
    size_t shape_count;
    uint32_t vocab;
    float *row;     /* logits that a draw may change */
    uint64_t *bits; /* of what may come */

    const struct generation *prefix; /* whose prompt was computed last */
    struct cache_sequence *prefix_kept;
    float *prefix_logits;

    struct place *places;
    size_t running;
};

static void shape_free(struct shape *sh)
{
    batch_free(&sh->batch);
    free(sh->inputs);
    free(sh->logits);
    *sh = (struct shape){ 0 };
}

static bool batch_made(struct batch *b, int64_t rows, int64_t time)
{
    size_t n = (size_t)(rows * time);

    *b = (struct batch){ .rows = rows, .time = time };
    b->ids = calloc(n, sizeof *b->ids);
    b->position = calloc(n, sizeof *b->position);
    b->segment = calloc(n, sizeof *b->segment);
    b->real = calloc(n, sizeof *b->real);
    return b->ids && b->position && b->segment && b->real;
}

static bool shape_bound(struct generator *z, struct shape *sh, struct error *err)
{
    const struct graph *g = sh->step->graph;
    bool ok = true;

    z->vocab = (uint32_t)json_integer_value(json_object_get(json_object_get(sh->step->model.meta, "axes"), "vocab"));
    sh->inputs = calloc(g->bound_count + 1, sizeof *sh->inputs);
    sh->logits = malloc((size_t)(sh->rows * sh->time) * z->vocab * sizeof *sh->logits);
    if (!batch_made(&sh->batch, sh->rows, sh->time) || !sh->inputs || !sh->logits)
        return error_set(err, ERROR_MEMORY, "fewer sequences at once", "no memory for the logits of %lld tokens",
                         (long long)(sh->rows * sh->time));
    for (uint32_t i = 0; ok && i < g->bound_count; i++) {
        const char *field;

        ok = training_input(z->session, sh->step, i, z->values, &sh->inputs[i], &field, err);
        if (ok && field)
            sh->inputs[i] = batch_field(&sh->batch, field);
    }
    return ok && bound_fits(g, g->outputs[0].node, (uint64_t)(sh->rows * sh->time) * z->vocab * sizeof *sh->logits, err);
}

static struct shape *shape_of(struct generator *z, int64_t rows, int64_t time, struct error *err)
{
    const struct session_step *step = session_step(z->session, rows, time, SESSION_CONTINUE, 0, err);
    struct shape *sh = NULL;

    if (!step)
        return NULL;
    for (size_t i = 0; i < z->shape_count && !sh; i++)
        if (z->shapes[i].rows == rows && z->shapes[i].time == time)
            sh = &z->shapes[i];
    if (sh && sh->serial == step->serial)
        return sh;
    if (!sh)
        sh = &z->shapes[z->shape_count++];
    shape_free(sh);
    *sh = (struct shape){ .rows = rows, .time = time, .serial = step->serial, .step = step };
    return shape_bound(z, sh, err) ? sh : NULL;
}

/* Token `at` of a row. */
static void put(struct shape *sh, size_t row, size_t at, uint32_t id, size_t position)
{
    size_t i = row * (size_t)sh->time + at;

    sh->batch.ids[i] = (int32_t)id;
    sh->batch.position[i] = (int32_t)position;
    sh->batch.segment[i] = 1;
    sh->batch.real[i] = 1;
}

/* Rows that are short of tokens are padded with what the row had before: any token of the vocabulary does. */
static bool run(struct generator *z, struct shape *sh, struct cache_sequence **sequences, uint32_t *counts, struct error *err)
{
    void *outputs[1] = { sh->logits };
    struct cache_step step = { .sequences = sequences, .counts = counts, .rows = (size_t)sh->rows };
    uint64_t bad;

    if (!executor_continue(sh->step->executor, &step, err) || !executor_run(sh->step->executor, sh->inputs, outputs, NULL, err))
        return false;
    for (size_t r = 0; r < step.rows; r++)
        if (counts[r] > 0 && !tensor_finite_f32(sh->logits + (r * (size_t)sh->time + counts[r] - 1) * z->vocab, z->vocab, &bad))
            return error_set(err, ERROR_NON_FINITE, NULL, "the logit of token %llu is not finite", (unsigned long long)bad);
    return true;
}

/* How many tokens the prompt begins with as the one before it. */
static size_t shared(const struct generator *z, const struct generation *g)
{
    size_t most = !z->prefix ? 0 : z->prefix->prompt_count < g->prompt_count ? z->prefix->prompt_count : g->prompt_count, i = 0;

    while (i < most && z->prefix->prompt[i] == g->prompt[i])
        i++;
    return i;
}

/* The prompt into z->prefix_kept, and the logits after it. What the one before it began with is kept, less its last token, which gives the
 * logits. */
static bool prefill(struct generator *z, const struct generation *g, struct error *err)
{
    size_t done = shared(z, g);
    struct cache_sequence *before = z->prefix_kept;

    if (done == g->prompt_count && done == z->prefix->prompt_count)
        return true;
    done -= done == g->prompt_count;
    z->prefix = NULL;
    z->prefix_kept = done > 0 ? cache_sequence_copy(before, done) : NULL;
    cache_sequence_free(before);
    while (done < g->prompt_count) {
        size_t left = g->prompt_count - done;
        int64_t time = left <= 16 ? 16 : left <= 64 ? 64 : PREFILL;
        uint32_t count = left < (size_t)time ? (uint32_t)left : (uint32_t)time;
        struct shape *sh = shape_of(z, 1, time, err);

        if (!sh)
            return false;
        if (!z->prefix_kept)
            z->prefix_kept = cache_sequence_new(sh->step->cache);
        for (uint32_t t = 0; t < count; t++)
            put(sh, 0, t, g->prompt[done + t], done + t);
        if (!run(z, sh, &z->prefix_kept, &count, err))
            return false;
        done += count;
        if (done == g->prompt_count) {
            z->prefix_logits = realloc(z->prefix_logits, z->vocab * sizeof *z->prefix_logits);
            memcpy(z->prefix_logits, sh->logits + (size_t)(count - 1) * z->vocab, z->vocab * sizeof *z->prefix_logits);
        }
    }
    z->prefix = g;
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------------------------------------ */

static bool is_end(const struct generate_options *o, uint32_t id)
{
    for (size_t i = 0; i < o->end_count; i++)
        if (o->ends[i] == id)
            return true;
    return false;
}

/* The ids of the sequence so far, for the penalty. New. */
static uint32_t *seen_of(const struct generation *g)
{
    uint32_t *ids = malloc(((size_t)g->prompt_count + g->count + 1) * sizeof *ids);

    if (!ids)
        abort();
    memcpy(ids, g->prompt, g->prompt_count * sizeof *ids);
    memcpy(ids + g->prompt_count, g->tokens, g->count * sizeof *ids);
    return ids;
}

/* What may not come is taken out of z->row. */
static bool allowed_only(struct generator *z, const struct generation *g, struct error *err)
{
    uint32_t ids = tokenizer_size(z->session->tokenizer) > z->vocab ? tokenizer_size(z->session->tokenizer) : z->vocab;
    bool some = false;

    z->bits = z->bits ? z->bits : malloc((ids / 64 + 1) * sizeof *z->bits);
    if (!z->bits)
        abort();
    memset(z->bits, 0, (ids / 64 + 1) * sizeof *z->bits);
    z->options->allow(z->options->allow_context, g, z->bits);
    for (uint32_t i = 0; i < z->vocab; i++) {
        if (z->bits[i / 64] >> i % 64 & 1)
            some = true;
        else
            z->row[i] = -__builtin_inff();
    }
    return some || error_set(err, ERROR_UNSUPPORTED, "is the tokenizer the model's?", "no token that may come is the model's");
}

/* The next token from its logits; what ends the sequence is in g->end. False with an error. */
static bool draw(struct generator *z, struct place *p, const float *logits, struct error *err)
{
    struct generation *g = p->g;
    const struct generate_rule *rule = &z->options->rule;
    uint32_t *seen, id;
    int32_t target;

    memcpy(z->row, logits, z->vocab * sizeof *z->row);
    if (z->options->allow && !allowed_only(z, g, err))
        return false;
    seen = rule->repetition != 1 ? seen_of(g) : NULL;
    id = generate_pick(z->row, z->vocab, rule, seen, (size_t)g->prompt_count + g->count, generate_uniform(g->seed, g->count));
    free(seen);
    target = (int32_t)id;
    softmax_logprob(NULL, 1, z->vocab, logits, &target, &g->logprobs[g->drawn++], NULL);
    if (is_end(z->options, id)) {
        g->ended_by = id;
        g->end = GENERATE_END_OF_TURN;
        return true;
    }
    g->tokens[g->count++] = p->next = id;
    if (z->options->token && !z->options->token(z->options->context, g, err)) {
        g->end = GENERATE_STOPPED;
        return err->code == ERROR_NONE;
    }
    if ((int64_t)g->prompt_count + g->count >= z->session->rules.context)
        g->end = GENERATE_CONTEXT;
    else if (g->count == g->most)
        g->end = GENERATE_LENGTH;
    return true;
}

static bool prompt_good(const struct generator *z, const struct generation *g, struct error *err)
{
    if (g->prompt_count == 0)
        return error_set(err, ERROR_MISSING, "one token at least is needed to go on from", "the prompt is empty");
    return (int64_t)g->prompt_count < z->session->rules.context ||
           error_set(err, ERROR_LIMIT, "shorten it", "the prompt has %u tokens, the model's context %lld", g->prompt_count,
                     (long long)z->session->rules.context);
}

/* A free place takes a sequence; one that ends at its first token leaves it at once. */
static bool begin(struct generator *z, struct generation *g, struct error *err)
{
    struct place *p = &z->places[z->running];

    if (!prompt_good(z, g, err))
        return false;
    g->tokens = calloc((size_t)g->most + 1, sizeof *g->tokens);
    g->logprobs = calloc((size_t)g->most + 1, sizeof *g->logprobs);
    if (!g->tokens || !g->logprobs)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %u tokens", g->most);
    if (g->most == 0) {
        g->end = GENERATE_LENGTH;
        return true;
    }
    if (!prefill(z, g, err))
        return false;
    z->row = z->row ? z->row : malloc(z->vocab * sizeof *z->row);
    *p = (struct place){ .g = g };
    if (!draw(z, p, z->prefix_logits, err))
        return false;
    if (g->end == GENERATE_RUNNING) {
        p->kept = cache_sequence_copy(z->prefix_kept, g->prompt_count);
        z->running++;
    }
    return true;
}

/* One token for every sequence that runs. */
static bool advance(struct generator *z, struct error *err)
{
    int64_t rows = 1;
    struct cache_sequence **sequences;
    uint32_t *counts;
    struct shape *sh;
    size_t left = 0;
    bool ok;

    while (rows < (int64_t)z->running)
        rows *= 2;
    sh = shape_of(z, rows, 1, err);
    if (!sh)
        return false;
    sequences = calloc((size_t)rows, sizeof *sequences);
    counts = calloc((size_t)rows, sizeof *counts);
    for (size_t r = 0; r < z->running; r++) {
        sequences[r] = z->places[r].kept;
        counts[r] = 1;
        put(sh, r, 0, z->places[r].next, cache_sequence_length(sequences[r]));
    }
    ok = run(z, sh, sequences, counts, err);
    for (size_t r = 0; ok && r < z->running; r++)
        ok = draw(z, &z->places[r], sh->logits + r * z->vocab, err);
    free(sequences);
    free(counts);
    if (!ok)
        return false;
    for (size_t r = 0; r < z->running; r++) {
        struct place p = z->places[r];

        if (p.g->end == GENERATE_RUNNING)
            z->places[left++] = p;
        else
            cache_sequence_free(p.kept);
    }
    z->running = left;
    return true;
}

bool generate(struct session *s, const float *values, const struct generate_options *options, struct generation *list,
              size_t count, struct error *err)
{
    struct generator z = { .session = s, .values = values, .options = options };
    size_t rows = options->rows ? options->rows < MOST_ROWS ? options->rows : MOST_ROWS : ROWS, next = 0;
    bool ok = true;

    z.places = calloc(rows + 1, sizeof *z.places);
    if (!z.places)
        abort();
    while (ok && (next < count || z.running > 0)) {
        while (ok && z.running < rows && next < count)
            ok = begin(&z, &list[next++], err);
        if (ok && z.running > 0)
            ok = advance(&z, err);
    }
    for (size_t i = 0; i < z.running; i++)
        cache_sequence_free(z.places[i].kept);
    cache_sequence_free(z.prefix_kept);
    for (size_t i = 0; i < z.shape_count; i++)
        shape_free(&z.shapes[i]);
    free(z.prefix_logits);
    free(z.places);
    free(z.row);
    free(z.bits);
    return ok;
}

static void add_end(uint32_t *ends, size_t *count, const json_t *id)
{
    if (json_is_integer(id) && *count < GENERATE_ENDS)
        ends[(*count)++] = (uint32_t)json_integer_value(id);
}

size_t generate_ends(const struct session *s, uint32_t ends[GENERATE_ENDS])
{
    const char *text = json_string_value(json_object_get(s->variables, "eos_token"));
    json_t *ids = json_object_get(model_config(s->model), "eos_token_id"), *id;
    size_t count = text && tokenizer_find(s->tokenizer, text, strlen(text), &ends[0]), index;

    add_end(ends, &count, ids);
    json_array_foreach(ids, index, id)
    {
        add_end(ends, &count, id);
    }
    return count;
}

bool generate_text(const struct session *s, const uint32_t *ids, size_t count, bool all, struct buffer *text, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = tokenizer_decode(s->tokenizer, ids, count, false, &bytes, err);
    const char *at = (const char *)bytes.bytes, *end = at + bytes.size;

    buffer_clear(text);
    while (ok && at < end) {
        size_t size;
        uint32_t c = utf8_at(at, end, &size);

        if (c == UINT32_MAX && !all && end - at < 4 && (unsigned char)*at >= 0xc2)
            break;
        if (c == UINT32_MAX || c == 0)
            utf8_add(text, 0xfffd);
        else
            buffer_add(text, at, size);
        at += size;
    }
    buffer_free(&bytes);
    return ok;
}

void generation_free(struct generation *g)
{
    free(g->tokens);
    free(g->logprobs);
    *g = (struct generation){ 0 };
}
