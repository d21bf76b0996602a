#include <stdlib.h>
#include <string.h>

#include "native/codec/feedback.h"
#include "runtime/cli/benches.h"

enum { VALUES = 1 << 24 }; /* 64 MB: more than any cache of a core */

struct codec {
    float *values, *copy, *rest;
    struct buffer out;
    struct topk how; /* keep 0: all values */
};

static void copy(void *context)
{
    struct codec *c = context;

    memcpy(c->copy, c->values, VALUES * sizeof *c->values);
}

static void quantise(void *context)
{
    struct codec *c = context;

    buffer_clear(&c->out);
    quantise_encode(c->how.bits, c->values, VALUES, &c->out, NULL);
}

static void largest(void *context)
{
    struct codec *c = context;

    buffer_clear(&c->out);
    topk_encode(&c->how, c->values, VALUES, &c->out, NULL);
}

static void feedback(void *context)
{
    struct codec *c = context;

    buffer_clear(&c->out);
    feedback_encode(&c->how, 0.95f, c->values, c->rest, VALUES, &c->out, NULL);
}

/* `arrays` of values are read by one call of ours, one by a copy. */
static void contest(struct measure *m, struct codec *c, const char *name, struct topk how, double arrays, void (*run)(void *))
{
    const double work = VALUES * sizeof *c->values * 1e-9;

    c->how = how;
    measure_contest(m, &(struct measure_contest){ .name = name,
                                                  .unit = "GB/s",
                                                  .peer = "memcpy",
                                                  .ours = { run, c, work * arrays, 1 },
                                                  .theirs = { copy, c, work, 1 } });
}

static float *array_new(void)
{
    float *x = malloc(VALUES * sizeof *x);

    for (size_t i = 0; x && i < VALUES; i++)
        x[i] = ((float)((uint32_t)i * 2654435761u >> 8) * 0x1p-24f - 0.5f) * 0x1p-8f;
    return x;
}

bool bench_codec(struct measure *m, struct error *err)
{
    struct codec c = { .values = array_new(), .copy = array_new(), .rest = array_new() };
    const bool ok =
        (c.values && c.copy && c.rest) || error_set(err, ERROR_MEMORY, NULL, "no memory for three arrays of %d values", VALUES);

    if (ok) {
        contest(m, &c, "codec.int8", (struct topk){ .bits = 8 }, 1, quantise);
        contest(m, &c, "codec.int4", (struct topk){ .bits = 4 }, 1, quantise);
        contest(m, &c, "codec.topk", (struct topk){ .keep = 41, .of = 4096, .bits = 8 }, 1, largest);
        contest(m, &c, "codec.feedback", (struct topk){ .bits = 4 }, 2, feedback);
    }
    buffer_free(&c.out);
    free(c.rest);
    free(c.copy);
    free(c.values);
    return ok;
}
