/* step_random.c - random tensors and dropout.
 *
 * Stream of a node: BLAKE2b-256, personalisation "rondo/random", over seed (32 bytes), round, step (u64 each), layer (i64), label. Its
 * first 8 bytes are the Philox key, the next 12 the counter words 1 to 3; word 0 counts blocks of four elements in the row-major
 * order of the result.
 */
#include <sodium.h>
#include <string.h>

#include "native/base/buffer.h"
#include "native/graph/step.h"
#include "native/numerics/random.h"

struct stream {
    uint32_t key[2], counter[4];
    unsigned op;
    uint64_t values;
    const float *x; /* dropout */
    float rate, scale;
    float *out;
};

static void stream_of(const struct work *w, struct stream *s)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "rondo/random";
    struct buffer b = { 0 };
    uint8_t hash[32];
    buffer_add(&b, w->random->seed, sizeof w->random->seed);
    buffer_add_u64(&b, w->random->round);
    buffer_add_u64(&b, w->random->step);
    buffer_add_u64(&b, (uint64_t)graph_integers(w->g, w->n)[0]);
    buffer_add_text(&b, w->g->names[w->n->name]);
    crypto_generichash_blake2b_salt_personal(hash, sizeof hash, b.bytes, b.size, NULL, 0, NULL, personal);
    buffer_free(&b);
    struct reader r = reader_of(hash, sizeof hash);
    s->key[0] = reader_u32(&r);
    s->key[1] = reader_u32(&r);
    for (unsigned i = 1; i < 4; i++)
        s->counter[i] = reader_u32(&r);
}

enum { DRAWN = 4096 /* values a task */ };

static void draw_share(void *context, size_t task)
{
    const struct stream *s = context;
    const uint64_t begin = task * DRAWN, end = begin + DRAWN < s->values ? begin + DRAWN : s->values;
    for (uint64_t i = begin; i < end; i += 4) {
        const uint32_t counter[4] = { (uint32_t)(i / 4), s->counter[1], s->counter[2], s->counter[3] };
        uint32_t word[4];
        philox_block(counter, s->key, word);
        for (uint64_t k = i; k < end && k < i + 4; k++) {
            if (s->op == OPERATOR_NORMAL)
                s->out[k] = random_normal(word[k - i]);
            else if (s->op == OPERATOR_UNIFORM)
                s->out[k] = random_uniform(word[k - i]);
            else
                s->out[k] = random_uniform(word[k - i]) >= s->rate ? s->x[k] * s->scale : 0;
        }
    }
}

static bool draw(struct work *w, struct stream *s)
{
    if (!w->random)
        return error_set(w->err, ERROR_MISSING, "give the seed of the run", "%s \"%s\" without a seed",
                         operator_table[w->n->op].name, w->g->names[w->n->name]);
    if (w->n->values > UINT64_C(4) * UINT32_MAX)
        return error_set(w->err, ERROR_LIMIT, NULL, "%s: more than 2^34 values", operator_table[w->n->op].name);
    stream_of(w, s);
    s->op = w->n->op;
    s->values = w->n->values;
    s->out = w->data[w->id];
    pool_run(w->pool, (s->values + DRAWN - 1) / DRAWN, draw_share, s);
    return true;
}

bool step_random(struct work *w)
{
    struct stream s = { 0 };
    return w->measure || draw(w, &s);
}

bool step_dropout(struct work *w)
{
    const double rate = graph_numbers(w->g, w->n)[0];
    struct stream s = { .rate = (float)rate, .scale = (float)(1 / (1 - rate)) };
    s.x = step_own(w, 0);
    return w->measure || draw(w, &s);
}
