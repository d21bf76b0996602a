#include "native/kernel/digest.h"

#include <string.h>

static const uint64_t start[8] = { 0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
                                   0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u };

static const uint8_t order[10][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
    { 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 }, { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
    { 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 }, { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
    { 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 }, { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
    { 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 }, { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x >> bits | x << (64 - bits);
}

static void mix(uint64_t v[16], size_t a, size_t b, size_t c, size_t d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(struct digest *digest, uint64_t last)
{
    uint64_t m[16], v[16];

    for (size_t i = 0; i < 16; i++) {
        m[i] = 0;
        for (size_t j = 8; j-- > 0;)
            m[i] = m[i] << 8 | digest->block[8 * i + j];
    }
    memcpy(v, digest->state, 64);
    memcpy(v + 8, start, 64);
    v[12] ^= digest->length;
    v[14] ^= last;
    for (size_t round = 0; round < 12; round++) {
        const uint8_t *o = order[round % 10];

        for (size_t i = 0; i < 4; i++)
            mix(v, i, 4 + i, 8 + i, 12 + i, m[o[2 * i]], m[o[2 * i + 1]]);
        for (size_t i = 0; i < 4; i++)
            mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[o[8 + 2 * i]], m[o[9 + 2 * i]]);
    }
    for (size_t i = 0; i < 8; i++)
        digest->state[i] ^= v[i] ^ v[8 + i];
}

void digest_start(struct digest *digest, size_t size)
{
    memset(digest, 0, sizeof *digest);
    memcpy(digest->state, start, sizeof start);
    digest->state[0] ^= 0x01010000u ^ size;
    digest->size = size;
}

void digest_add(struct digest *digest, const void *bytes, size_t count)
{
    const uint8_t *from = bytes;

    while (count > 0) {
        size_t room = sizeof digest->block - digest->filled, n = count < room ? count : room;

        if (room == 0) { /* more follows: this block is not the last */
            compress(digest, 0);
            digest->filled = 0;
            continue;
        }
        memcpy(digest->block + digest->filled, from, n);
        digest->filled += n;
        digest->length += n;
        from += n;
        count -= n;
    }
}

void digest_end(struct digest *digest, uint8_t *out)
{
    memset(digest->block + digest->filled, 0, sizeof digest->block - digest->filled);
    compress(digest, UINT64_MAX);
    for (size_t i = 0; i < digest->size; i++)
        out[i] = (uint8_t)(digest->state[i / 8] >> 8 * (i % 8));
}

void digest_hex(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[2 * size] = '\0';
}
