#include <sodium.h>
#include <stdlib.h>

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

bool bench_hash(struct measure *m, struct error *err)
{
    uint8_t *bytes;

    if (!measure_wanted(m, "hash.root"))
        return true;
    bytes = malloc(STATE_BYTES);
    if (!bytes)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a state of %zu bytes", STATE_BYTES);
    fill(bytes, STATE_BYTES);
    measure_contest(m, &(struct measure_contest){
                           .name = "hash.root",
                           .unit = "GB/s",
                           .peer = "twice libsodium's BLAKE2b on one thread",
                           .ours = { state_root, bytes, STATE_BYTES * 1e-9 },
                           .theirs = { one_hash, bytes, 2 * STATE_BYTES * 1e-9 },
                       });
    free(bytes);
    return true;
}
