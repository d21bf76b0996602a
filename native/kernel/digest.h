/* digest.h - BLAKE2b (RFC 7693) without a key, written out plainly: the self-test needs nothing but a C compiler, so that it can be run
 * on a machine for which nothing else has been built. Everything else in Rondo hashes with libsodium.
 */
#ifndef RONDO_KERNEL_DIGEST_H
#define RONDO_KERNEL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_MAX 64

struct digest {
    uint64_t state[8], length; /* bytes taken in, those in `block` included */
    uint8_t block[128];
    size_t filled, size;
};

/* `size`: bytes of the result, 1 to DIGEST_MAX. */
void digest_start(struct digest *digest, size_t size);
void digest_add(struct digest *digest, const void *bytes, size_t count);
void digest_end(struct digest *digest, uint8_t *out);

/* Lower-case digits of `size` bytes and a closing zero: `text` has 2 size + 1 bytes. */
void digest_hex(const uint8_t *bytes, size_t size, char *text);

#endif
