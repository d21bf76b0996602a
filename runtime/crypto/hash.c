#include "runtime/crypto/hash.h"

#include <assert.h>
#include <string.h>

#include "native/base/blake2b.h"
#include "native/base/hex.h"

/* The type fills the personalisation, zeros after it. */
struct personal {
    uint8_t bytes[BLAKE2B_PERSONAL];
};

static struct personal personal_of(const char *type)
{
    struct personal personal = { { 0 } };

    if (type) {
        assert(strlen(type) <= sizeof personal.bytes);
        memcpy(personal.bytes, type, strlen(type));
    }
    return personal;
}

void hash_start(struct hasher *h, const char *type)
{
    const struct personal personal = personal_of(type);

    crypto_generichash_blake2b_init_salt_personal(&h->state, NULL, 0, HASH_SIZE, NULL, personal.bytes);
}

void hash_many(const char *type, const void *bytes, size_t size, size_t count, struct hash *out)
{
    const struct personal personal = personal_of(type);

    _Static_assert(sizeof *out == BLAKE2B_SIZE, "digests stand one after another");
    if (count)
        blake2b_many(personal.bytes, bytes, size, size, count, out->bytes);
}

void hash_blocks(const void *const *inputs, size_t size, size_t count, struct hash *out)
{
    const struct personal personal = personal_of(NULL);

    if (count)
        blake2b_each(personal.bytes, inputs, size, count, out->bytes);
}

void hash_fixed(struct hasher *h, const void *bytes, size_t size)
{
    if (size)
        crypto_generichash_blake2b_update(&h->state, bytes, size);
}

void hash_part(struct hasher *h, const void *bytes, size_t size)
{
    hash_u64(h, size);
    hash_fixed(h, bytes, size);
}

void hash_text(struct hasher *h, const char *text)
{
    hash_part(h, text, strlen(text));
}

static void hash_little(struct hasher *h, uint64_t value, size_t size)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    hash_fixed(h, bytes, size);
}

void hash_u8(struct hasher *h, uint8_t value)
{
    hash_little(h, value, 1);
}

void hash_u32(struct hasher *h, uint32_t value)
{
    hash_little(h, value, 4);
}

void hash_u64(struct hasher *h, uint64_t value)
{
    hash_little(h, value, 8);
}

struct hash hash_end(struct hasher *h)
{
    struct hash out;

    crypto_generichash_blake2b_final(&h->state, out.bytes, sizeof out.bytes);
    return out;
}

struct hash hash_typed(const char *type, const void *bytes, size_t size)
{
    struct hasher h;

    hash_start(&h, type);
    hash_fixed(&h, bytes, size);
    return hash_end(&h);
}

struct hash hash_block(const void *bytes, size_t size)
{
    return hash_typed(NULL, bytes, size);
}

bool hash_equal(struct hash a, struct hash b)
{
    return hash_compare(a, b) == 0;
}

int hash_compare(struct hash a, struct hash b)
{
    return memcmp(a.bytes, b.bytes, HASH_SIZE);
}

const char *hash_hex(struct hash hash, char text[HASH_TEXT])
{
    return hex_encode(hash.bytes, HASH_SIZE, text);
}

bool hash_parse(const char *text, struct hash *out)
{
    return hex_decode(text, strlen(text), out->bytes, HASH_SIZE);
}
