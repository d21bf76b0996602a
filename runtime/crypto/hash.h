/* hash.h - BLAKE2b-256, each hash with a type.
 *
 * The type ("rondo/seed", at most 16 characters) is BLAKE2b's personalisation field (RFC 7693, section 2.5 of the BLAKE2
 * paper): two hashes of different types never agree by accident. Parts of variable length are given with `hash_part`, which
 * puts their length before them (u64 little-endian): no two lists of parts give the same bytes.
 *
 *     struct hasher h;
 *     hash_start(&h, "rondo/seed");
 *     hash_fixed(&h, run.bytes, 32), hash_u64(&h, round), hash_part(&h, entropy, size);
 *     struct hash seed = hash_end(&h);
 *
 * `hash_block` has no type: it is the hash inside a block's CID, which any IPFS store can compute.
 */
#ifndef RONDO_CRYPTO_HASH_H
#define RONDO_CRYPTO_HASH_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_SIZE = 32, HASH_TEXT = 65 }; /* bytes; hexadecimal digits and a zero */

struct hash {
    uint8_t bytes[HASH_SIZE];
};

struct hasher {
    crypto_generichash_blake2b_state state;
};

/* The whole hash of `size` bytes of one type. */
struct hash hash_typed(const char *type, const void *bytes, size_t size);
struct hash hash_block(const void *bytes, size_t size);

/* out[i] = hash_typed(type, bytes + i * size, size) for i below count (NULL: hash_block), many at once (native/base/blake2b.h). An output may lie where
 * inputs of the same or a lower index were, as when a level of a tree is made of the level below. */
void hash_many(const char *type, const void *bytes, size_t size, size_t count, struct hash *out);

/* out[i] = hash_block(inputs[i], size) for inputs of one size that lie anywhere. */
void hash_blocks(const void *const *inputs, size_t size, size_t count, struct hash *out);

void hash_start(struct hasher *h, const char *type); /* NULL: no type */
void hash_fixed(struct hasher *h, const void *bytes, size_t size);
void hash_part(struct hasher *h, const void *bytes, size_t size);
void hash_text(struct hasher *h, const char *text); /* a part */
void hash_u8(struct hasher *h, uint8_t value);
void hash_u32(struct hasher *h, uint32_t value);
void hash_u64(struct hasher *h, uint64_t value);
struct hash hash_end(struct hasher *h);

bool hash_equal(struct hash a, struct hash b);
int hash_compare(struct hash a, struct hash b); /* bytewise: below, at, above zero */

/* 64 lower-case digits. `hash_parse` is false for anything else. */
const char *hash_hex(struct hash hash, char text[HASH_TEXT]);
bool hash_parse(const char *text, struct hash *out);

#endif
