#include <stdlib.h>
#include <string.h>

#include "native/codec/quantise.h"
#include "runtime/cli/benches.h"

enum { VALUES = 1 << 24 }; /* 64 MB: more than any cache of a core */

struct codec {
    float *values, *copy;
    struct buffer out;
    unsigned bits;
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
    quantise_encode(c->bits, c->values, VALUES, &c->out, NULL);
}

static void contest(struct measure *m, struct codec *c, const char *name, void (*run)(void *))
{
    const double work = VALUES * sizeof *c->values * 1e-9;

    measure_contest(m,
                    &(struct measure_contest){
                        .name = name, .unit = "GB/s", .peer = "memcpy", .ours = { run, c, work }, .theirs = { copy, c, work } });
}

bool bench_codec(struct measure *m, struct error *err)
{
    struct codec c = { .values = malloc(VALUES * sizeof(float)), .copy = malloc(VALUES * sizeof(float)) };
    const bool ok = c.values && c.copy;

    if (!ok)
        error_set(err, ERROR_MEMORY, NULL, "no memory for two arrays of %d values", VALUES);
    for (size_t i = 0; ok && i < VALUES; i++)
        c.values[i] = ((float)((uint32_t)i * 2654435761u >> 8) * 0x1p-24f - 0.5f) * 0x1p-8f;
    if (ok) {
        c.bits = 8;
        contest(m, &c, "codec.int8", quantise);
        c.bits = 4;
        contest(m, &c, "codec.int4", quantise);
    }
    buffer_free(&c.out);
    free(c.copy);
    free(c.values);
    return ok;
}
