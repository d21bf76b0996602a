#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "native/base/blake2b.h"
#include "runtime/cli/benches.h"
#include "runtime/crypto/root.h"

/* A state of this size is that of an adapter and its optimiser, or of a small model. */
#define STATE_BYTES ((size_t)500000000)

static void fill(uint8_t *bytes, size_t size)
{
    static const unsigned char seed[randombytes_SEEDBYTES] = "rondo bench hash";

    randombytes_buf_deterministic(bytes, size, seed);
}

static void state_root(void *context)
{
    const struct named_tensor tensor = { "state", CODE_U8, 1, { STATE_BYTES }, context };
    struct hash root;

    root_of_state(&tensor, 1, &root, NULL);
}

/* One thread, one hash of all bytes: what the root would cost at least without lanes. */
static void one_hash(void *context)
{
    uint8_t digest[HASH_SIZE];

    crypto_generichash_blake2b(digest, sizeof digest, context, STATE_BYTES, NULL, 0);
}

static void root_contest(struct measure *m, uint8_t *bytes)
{
    measure_contest(m, &(struct measure_contest){
                           .name = "hash.root",
                           .unit = "GB/s",
                           .peer = "twice libsodium's BLAKE2b on one thread",
                           .ours = { state_root, bytes, STATE_BYTES * 1e-9, 2 },
                           .theirs = { one_hash, bytes, 2 * STATE_BYTES * 1e-9, 1 },
                       });
}

/* --- one thread, by width of the vectors ------------------------------------------------------------------------------------ */

enum { LEAVES = 256 };

struct leaves {
    const uint8_t *bytes;
    size_t lanes;
    struct hash out[LEAVES];
};

static void by_lanes(void *context)
{
    static const uint8_t personal[BLAKE2B_PERSONAL] = "rondo/leaf";
    struct leaves *l = context;

    blake2b_many_by(l->lanes, personal, l->bytes, MERKLE_LEAF, MERKLE_LEAF, LEAVES, l->out->bytes);
}

static void one_by_one(void *context)
{
    struct leaves *l = context;

    for (size_t i = 0; i < LEAVES; i++)
        l->out[i] = hash_typed("rondo/leaf", l->bytes + i * MERKLE_LEAF, MERKLE_LEAF);
}

static void lanes_contest(struct measure *m, const uint8_t *bytes, size_t lanes)
{
    struct leaves l = { .bytes = bytes, .lanes = lanes };
    const double work = LEAVES * MERKLE_LEAF * 1e-9;
    char name[MEASURE_NAME];

    snprintf(name, sizeof name, "hash.leaves.%zu", lanes);
    measure_contest(m, &(struct measure_contest){ .name = name,
                                                  .unit = "GB/s",
                                                  .peer = "libsodium, leaf by leaf",
                                                  .ours = { by_lanes, &l, work, 1 },
                                                  .theirs = { one_by_one, &l, work, 1 } });
}

bool bench_hash(struct measure *m, struct error *err)
{
    uint8_t *bytes = malloc(STATE_BYTES);

    if (!bytes)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a state of %zu bytes", STATE_BYTES);
    fill(bytes, STATE_BYTES);
    root_contest(m, bytes);
    for (size_t lanes = 2; lanes <= blake2b_lanes(); lanes *= 2)
        lanes_contest(m, bytes, lanes);
    free(bytes);
    return true;
}
