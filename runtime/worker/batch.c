#include "runtime/worker/batch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/round/seed.h"

void batch_free(struct batch *b)
{
    free(b->ids);
    free(b->position);
    free(b->segment);
    free(b->real);
    free(b->mask);
    free(b->scored);
    free(b->bytes);
    for (size_t i = 0; i < b->extra_count; i++)
        free(b->extra[i].data);
    free(b->extra);
    *b = (struct batch){ 0 };
}

/* Whether it is a field of a pair's side: *half is then 0 or 1, *name what is halved. */
static bool is_half(const char **name, uint64_t *half)
{
    static const char *const sides[] = { "chosen.", "rejected." };

    for (uint64_t i = 0; i < 2; i++)
        if (strncmp(*name, sides[i], strlen(sides[i])) == 0) {
            *name += strlen(sides[i]);
            *half = i;
            return true;
        }
    return false;
}

const char *batch_input(const char *name)
{
    if (strcmp(name, "b.observed") == 0)
        return "target.observed";
    return strncmp(name, "b.", 2) == 0 ? name + 2 : name;
}

const void *batch_field(const struct batch *b, const char *name)
{
    uint64_t half;

    if (is_half(&name, &half)) {
        const char *whole = batch_field(b, name);

        return whole ? whole + half * (batch_field_count(b, name) / 2) * 4 : NULL;
    }

    const struct {
        const char *name;
        const void *data;
    } fields[] = { { "ids", b->ids },   { "position", b->position }, { "segment", b->segment }, { "real", b->real },
                   { "mask", b->mask }, { "scored", b->scored },     { "bytes", b->bytes } };

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].data;
    for (size_t i = 0; i < b->extra_count; i++)
        if (strcmp(b->extra[i].name, name) == 0)
            return b->extra[i].data;
    return NULL;
}

uint64_t batch_field_count(const struct batch *b, const char *name)
{
    uint64_t half;

    if (is_half(&name, &half))
        return batch_field_count(b, name) / 2;
    for (size_t i = 0; i < b->extra_count; i++)
        if (strcmp(b->extra[i].name, name) == 0)
            return b->extra[i].count;
    return batch_field(b, name) ? (uint64_t)(b->rows * b->time) : 0;
}

static void *grown(void *old, size_t count)
{
    void *bytes = realloc(old, count * 4);

    if (!bytes)
        abort();
    return bytes;
}

float *batch_extra(struct batch *b, const char *name, uint64_t count)
{
    struct batch_extra *e = NULL;

    for (size_t i = 0; i < b->extra_count && !e; i++)
        if (strcmp(b->extra[i].name, name) == 0)
            e = &b->extra[i];
    if (!e) {
        b->extra = realloc(b->extra, (b->extra_count + 1) * sizeof *b->extra);
        if (!b->extra)
            abort();
        e = &b->extra[b->extra_count++];
        *e = (struct batch_extra){ 0 };
        strncpy(e->name, name, sizeof e->name - 1);
    }
    e->data = grown(e->data, (size_t)count + 1);
    e->count = count;
    memset(e->data, 0, (size_t)count * sizeof *e->data);
    return e->data;
}

/* Sets the shape and clears every field. */
static void batch_shape(struct batch *b, int64_t rows, int64_t time)
{
    size_t count = (size_t)(rows * time);

    if (count > b->capacity) {
        b->ids = grown(b->ids, count);
        b->position = grown(b->position, count);
        b->segment = grown(b->segment, count);
        b->real = grown(b->real, count);
        b->mask = grown(b->mask, count);
        b->scored = grown(b->scored, count);
        b->bytes = grown(b->bytes, count);
        b->capacity = count;
    }
    b->rows = rows;
    b->time = time;
    b->tokens = b->trained = 0;
    memset(b->ids, 0, count * 4);
    memset(b->segment, 0, count * 4);
    memset(b->real, 0, count * 4);
    memset(b->mask, 0, count * 4);
    memset(b->scored, 0, count * 4);
    memset(b->bytes, 0, count * 4);
    for (size_t i = 0; i < count; i++)
        b->position[i] = (int32_t)(i % (size_t)time);
}

void batch_copy(struct batch *to, const struct batch *from)
{
    static const char *const names[] = { "ids", "position", "segment", "real", "mask", "scored", "bytes" };
    const size_t bytes = (size_t)(from->rows * from->time) * 4;

    batch_shape(to, from->rows, from->time);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        memcpy((void *)(uintptr_t)batch_field(to, names[i]), batch_field(from, names[i]), bytes);
    for (size_t i = 0; i < from->extra_count; i++) {
        const struct batch_extra *e = &from->extra[i];

        memcpy(batch_extra(to, e->name, e->count), e->data, (size_t)e->count * sizeof *e->data);
    }
    to->tokens = from->tokens;
    to->trained = from->trained;
}

/* Token `t` of segment `segment`, which begins at `start` of its row. */
static void batch_put_in(struct batch *b, const struct batch_rules *rules, int64_t row, int64_t start, int32_t segment, int64_t t,
                         uint32_t id, float weight)
{
    size_t i = (size_t)(row * b->time + start + t);

    b->ids[i] = (int32_t)id;
    b->position[i] = (int32_t)t;
    b->segment[i] = segment;
    b->real[i] = 1;
    b->bytes[i] = rules->token_bytes[id];
    b->tokens++;
    if (t == 0)
        return;
    b->scored[i] = 1;
    b->mask[i] = weight;
    b->trained += weight > 0;
}

static void batch_put(struct batch *b, const struct batch_rules *rules, int64_t row, int64_t t, uint32_t id, float weight)
{
    batch_put_in(b, rules, row, 0, 1, t, id, weight);
}

static int64_t bucket(int64_t size)
{
    return (size + BATCH_BUCKET - 1) / BATCH_BUCKET * BATCH_BUCKET;
}

static void put_label(struct batch *b, const struct example *const *examples, size_t count)
{
    float *label = batch_extra(b, "label", count);

    for (size_t i = 0; i < count; i++) {
        const int32_t number = (int32_t)examples[i]->target[0];

        memcpy(label + i, &number, sizeof number);
    }
}

/* Values and which of them were observed. */
static void put_observed(struct batch *b, const char *name, const char *observed, size_t row, const float *from, size_t count)
{
    float *values = (float *)(uintptr_t)batch_field(b, name) + row * count,
          *seen = (float *)(uintptr_t)batch_field(b, observed) + row * count;

    for (size_t i = 0; i < count; i++) {
        seen[i] = from[i] == from[i];
        values[i] = from[i] == from[i] ? from[i] : 0;
    }
}

/* All examples are of one shape: who reads them sees to it. */
static void batch_of_whole(struct batch *b, const struct batch_rules *rules, const struct example *const *examples, size_t count)
{
    const size_t each = examples[0]->count, after = examples[0]->target_count;

    batch_shape(b, (int64_t)count, rules->kind == BATCH_SERIES ? (int64_t)each : 1);
    b->tokens = b->trained = count * (uint64_t)rules->context;
    if (rules->kind == BATCH_IMAGES) {
        float *image = batch_extra(b, "image", count * each);

        for (size_t i = 0; i < count; i++)
            memcpy(image + i * each, examples[i]->values, each * sizeof *image);
        put_label(b, examples, count);
        return;
    }
    batch_extra(b, "series", count * each);
    batch_extra(b, "observed", count * each);
    batch_extra(b, "target", count * after);
    batch_extra(b, "target.observed", count * after);
    for (size_t i = 0; i < count; i++) {
        put_observed(b, "series", "observed", i, examples[i]->values, each);
        put_observed(b, "target", "target.observed", i, examples[i]->target, after);
    }
}

void batch_of(struct batch *b, const struct batch_rules *rules, const struct example *const *examples, size_t count)
{
    int64_t longest = 1;

    if (rules->kind != BATCH_TOKENS) {
        batch_of_whole(b, rules, examples, count);
        return;
    }

    for (size_t i = 0; i < count; i++)
        if ((int64_t)examples[i]->count > longest)
            longest = (int64_t)examples[i]->count;
    batch_shape(b, (int64_t)count, bucket(longest));
    for (size_t i = 0; i < count; i++)
        for (size_t t = 0; t < examples[i]->count; t++)
            batch_put(b, rules, (int64_t)i, (int64_t)t, examples[i]->ids[t], examples[i]->weights[t]);
}

/* The order of a lap: its own stream of the round's seed (runtime/round/seed.h). */
static void sampler_shuffle(struct sampler *s)
{
    struct stream stream;

    const size_t sides = s->rules.pairs ? 2 : 1;

    for (size_t i = 0; i < s->count; i++)
        s->order[i] = (uint32_t)(i * sides);
    stream_start(&stream, s->seed, "rondo/order", s->lap++);
    stream_shuffle(&stream, s->order, s->count);
    s->at = s->inside = 0;
}

bool sampler_new(struct sampler *s, const struct batch_rules *rules, const struct examples *const *lists, size_t count,
                 struct hash seed, struct error *err)
{
    *s = (struct sampler){ .rules = *rules, .seed = seed };
    for (size_t i = 0; i < count; i++)
        s->count += lists[i]->count;
    if (s->count == 0) /* not `missing`, which is what one machine lacks (failure.h) */
        return error_set(err, ERROR_RANGE, "rondo data check FILE says what was dropped and why",
                         "the assigned shards hold no example");
    if (s->count > UINT32_MAX / 2)
        return error_set(err, ERROR_LIMIT, NULL, "%zu examples in the assigned shards", s->count);
    s->examples = calloc(s->count, sizeof *s->examples);
    s->order = calloc(s->count, sizeof *s->order);
    if (!s->examples || !s->order) {
        sampler_free(s);
        return error_set(err, ERROR_MEMORY, NULL, "no memory for the order of examples");
    }
    s->count = 0; /* examples without a token are passed over */
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < lists[i]->count; j++)
            if (lists[i]->items[j].count)
                s->examples[s->count++] = &lists[i]->items[j];
    if (s->count == 0) {
        sampler_free(s);
        return error_set(err, ERROR_RANGE, NULL, "every example of the assigned shards is empty");
    }
    if (rules->pairs) /* no side of a pair is empty (preference.h) */
        s->count /= 2;
    sampler_shuffle(s);
    return true;
}

void sampler_free(struct sampler *s)
{
    free(s->examples);
    free(s->order);
    *s = (struct sampler){ 0 };
}

/* The next example; of pairs its rejected side stands behind it. */
static const struct example *const *sampler_peek_side(struct sampler *s)
{
    if (s->at == s->count)
        sampler_shuffle(s);
    return &s->examples[s->order[s->at]];
}

static const struct example *sampler_peek(struct sampler *s)
{
    return *sampler_peek_side(s);
}

static void next_stream(struct sampler *s, struct batch *b)
{
    int64_t time = s->rules.context, rows = s->rules.batch_tokens / time;

    rows = rows ? rows : 1;
    if (b)
        batch_shape(b, rows, time);
    for (int64_t i = 0; i < rows * time; i++) {
        const struct example *e = sampler_peek(s);

        if (b)
            batch_put(b, &s->rules, i / time, i % time, e->ids[s->inside], e->weights[s->inside]);
        if (++s->inside == e->count) {
            s->at++;
            s->inside = 0;
        }
    }
}

static void next_conversations(struct sampler *s, struct batch *b)
{
    enum { MOST = 4096 };
    const struct example *taken[MOST];
    size_t count = 0;
    int64_t longest = 0;

    while (count < MOST) {
        const struct example *e = sampler_peek(s);
        int64_t time = (int64_t)e->count > longest ? (int64_t)e->count : longest;

        if (count > 0 && (int64_t)(count + 1) * bucket(time) > s->rules.batch_tokens)
            break;
        longest = time;
        taken[count++] = e;
        s->at++;
    }
    if (b)
        batch_of(b, &s->rules, taken, count);
}

static void next_whole(struct sampler *s, struct batch *b)
{
    enum { MOST = 4096 };
    const struct example *taken[MOST];
    int64_t rows = s->rules.batch_tokens / s->rules.context;
    size_t count = rows < 1 ? 1 : rows > MOST ? MOST : (size_t)rows;

    for (size_t i = 0; i < count; i++) {
        taken[i] = sampler_peek(s);
        s->at++;
    }
    if (b)
        batch_of(b, &s->rules, taken, count);
}

static void next_pairs(struct sampler *s, struct batch *b)
{
    enum { MOST = 2048 };
    const struct example *taken[2 * MOST], *rejected[MOST];
    size_t count = 0;
    int64_t longest = 0;

    while (count < MOST) {
        const struct example *const *e = sampler_peek_side(s);
        int64_t longer = (int64_t)(e[0]->count > e[1]->count ? e[0]->count : e[1]->count);

        longest = longer > longest ? longer : longest;
        if (count > 0 && 2 * (int64_t)(count + 1) * bucket(longest) > s->rules.batch_tokens)
            break;
        taken[count] = e[0];
        rejected[count++] = e[1];
        s->at++;
    }
    memcpy(taken + count, rejected, count * sizeof *taken);
    if (b)
        batch_of(b, &s->rules, taken, 2 * count);
}

/* Each example goes behind the one before where the row has room for it, else into the next row. */
static void next_packed(struct sampler *s, struct batch *b)
{
    int64_t time = s->rules.context, rows = s->rules.batch_tokens / time, row = 0, start = 0;
    int32_t segment = 0;

    rows = rows ? rows : 1;
    if (b)
        batch_shape(b, rows, time);
    for (;;) {
        const struct example *e = sampler_peek(s);
        int64_t count = (int64_t)e->count;

        if (start + count > time) {
            if (++row == rows)
                return;
            start = segment = 0;
        }
        segment++;
        for (int64_t t = 0; b && t < count; t++)
            batch_put_in(b, &s->rules, row, start, segment, t, e->ids[t], e->weights[t]);
        start += count;
        s->at++;
    }
}

void sampler_next(struct sampler *s, struct batch *b)
{
    if (s->rules.kind != BATCH_TOKENS)
        next_whole(s, b);
    else if (s->rules.pairs)
        next_pairs(s, b);
    else if (s->rules.stream)
        next_stream(s, b);
    else if (s->rules.packed)
        next_packed(s, b);
    else
        next_conversations(s, b);
}
