#include "native/kernel/rope.h"

#include <assert.h>

#include "native/kernel/loops.h"
#include "native/numerics/power.h"

void rope_frequencies(const struct rope *rope, float *frequencies)
{
    for (size_t i = 0; i < rope->width / 2; i++) {
        float period = f32_pow(rope->base, (float)(2 * i) / (float)rope->width);
        float f = 1.0f / (rope->scaling == ROPE_FACTORS ? rope->factors[i] * period : period);

        if (rope->scaling == ROPE_LINEAR) {
            f = f / rope->factor;
        } else if (rope->scaling == ROPE_LLAMA3) {
            float w = 6.28318548f / f, low = rope->original_length / rope->low_factor,
                  high = rope->original_length / rope->high_factor;
            float u = (rope->original_length / w - rope->low_factor) / (rope->high_factor - rope->low_factor);

            if (w > low)
                f = f / rope->factor;
            else if (w >= high)
                f = ((1.0f - u) * f) / rope->factor + u * f;
        } else if (rope->scaling == ROPE_YARN) {
            float u = ((float)i - rope->low_factor) / (rope->high_factor - rope->low_factor);

            u = u < 0.0f ? 0.0f : u > 1.0f ? 1.0f : u;
            f = (f / rope->factor) * u + f * (1.0f - u);
        }
        frequencies[i] = f;
    }
}

struct job {
    const struct rope *rope;
    const struct loops *loops;
    size_t tokens, heads, dim;
    const int32_t *position;
    bool inverse;
    const float *x;
    float *out;
    float frequency[ROPE_WIDTH_MAX / 2];
};

static void token(void *context, size_t t)
{
    const struct job *job = context;
    float sine[ROPE_WIDTH_MAX / 2], cosine[ROPE_WIDTH_MAX / 2];
    size_t at = t * job->heads * job->dim;

    job->loops->rope_angles(job->rope->width / 2, job->position[t], job->frequency, job->inverse, sine, cosine);
    if (job->rope->scaling >= ROPE_YARN)
        for (size_t i = 0; i < job->rope->width / 2; i++) {
            sine[i] = sine[i] * job->rope->attention;
            cosine[i] = cosine[i] * job->rope->attention;
        }
    job->loops->rope(job->heads, job->dim, job->rope->width, job->rope->interleaved, sine, cosine, job->x + at, job->out + at);
}

void rope_run(struct pool *pool, const struct rope *rope, size_t tokens, size_t heads, size_t dim, const int32_t *position,
              bool inverse, const float *x, float *out)
{
    struct job job = { .rope = rope,
                       .loops = loops(),
                       .tokens = tokens,
                       .heads = heads,
                       .dim = dim,
                       .position = position,
                       .inverse = inverse,
                       .x = x,
                       .out = out };

    assert(rope->width <= ROPE_WIDTH_MAX && rope->width <= dim && rope->width % 2 == 0);
    rope_frequencies(rope, job.frequency);
    pool_run(pool, tokens, token, &job);
}
