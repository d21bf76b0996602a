/* blake2b_lanes.h - the text of the lanes: included by each file that defines BLAKE2B_WIDTH (2, 4, 8) and BLAKE2B_GROUP (the name of its
 * one function), and is compiled for the instructions of that width. Internal to native/base.
 *
 * A vector holds one 64-bit word of each input. Written with the compilers' vector types: the same text for every width.
 */
#include <stdbool.h>
#include <string.h>

#include "native/base/blake2b_group.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { WIDTH = BLAKE2B_WIDTH, BLOCK = 128 };

typedef uint64_t lanes __attribute__((vector_size(8 * BLAKE2B_WIDTH), aligned(8), may_alias));
typedef uint64_t lanes_anywhere __attribute__((vector_size(8 * BLAKE2B_WIDTH), aligned(1), may_alias)); /* of an input */

/* RFC 7693: section 2.6 (initial values), 2.7 (message schedule), 3.1 and 3.2 (mixing and compression). */
static const uint64_t initial[8] = { 0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                                     0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179 };
static const uint8_t schedule[12][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
    { 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 }, { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
    { 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 }, { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
    { 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 }, { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
    { 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 }, { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
};

static inline __attribute__((always_inline)) void rotate(lanes *x, int by)
{
#if BLAKE2B_WIDTH == 4 && defined(__AVX2__)
    /* Whole bytes in one shuffle: AVX2 has no rotation. */
    const __m256i by24 = _mm256_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10, 3, 4, 5, 6, 7, 0, 1, 2, 11, 12,
                                          13, 14, 15, 8, 9, 10);
    const __m256i by16 = _mm256_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9, 2, 3, 4, 5, 6, 7, 0, 1, 10, 11,
                                          12, 13, 14, 15, 8, 9);
    const __m256i v = (__m256i)*x;

    if (by != 63) {
        *x = (lanes)(by == 32   ? _mm256_shuffle_epi32(v, _MM_SHUFFLE(2, 3, 0, 1))
                     : by == 24 ? _mm256_shuffle_epi8(v, by24)
                                : _mm256_shuffle_epi8(v, by16));
        return;
    }
#endif
    *x = *x >> by | *x << (64 - by);
}

/* One after another and not the four side by side: so they fit the sixteen registers of AVX2. */
static inline __attribute__((always_inline)) void mix(lanes *a, lanes *b, lanes *c, lanes *d, lanes *x, lanes *y)
{
    *a = *a + *b + *x;
    *d ^= *a;
    rotate(d, 32);
    *c += *d;
    *b ^= *c;
    rotate(b, 24);
    *a = *a + *b + *y;
    *d ^= *a;
    rotate(d, 16);
    *c += *d;
    *b ^= *c;
    rotate(b, 63);
}

/* One stage of the transposition of a square of words: the blocks beside the diagonal change places. */
#define SWAP(a, b, low, high)                                                                                                    \
    do {                                                                                                                         \
        const lanes first = (a), second = (b);                                                                                   \
        (a) = __builtin_shufflevector(first, second, low);                                                                       \
        (b) = __builtin_shufflevector(first, second, high);                                                                      \
    } while (0)
#define LIST(...) __VA_ARGS__

static inline __attribute__((always_inline)) void transpose(lanes row[WIDTH])
{
#if BLAKE2B_WIDTH == 2
    SWAP(row[0], row[1], LIST(0, 2), LIST(1, 3));
#elif BLAKE2B_WIDTH == 4
    for (size_t i = 0; i < 4; i += 2)
        SWAP(row[i], row[i + 1], LIST(0, 4, 2, 6), LIST(1, 5, 3, 7));
    for (size_t i = 0; i < 2; i++)
        SWAP(row[i], row[i + 2], LIST(0, 1, 4, 5), LIST(2, 3, 6, 7));
#else
    for (size_t i = 0; i < 8; i += 2)
        SWAP(row[i], row[i + 1], LIST(0, 8, 2, 10, 4, 12, 6, 14), LIST(1, 9, 3, 11, 5, 13, 7, 15));
    for (size_t i = 0; i < 8; i += i % 4 == 1 ? 3 : 1)
        SWAP(row[i], row[i + 2], LIST(0, 1, 8, 9, 4, 5, 12, 13), LIST(2, 3, 10, 11, 6, 7, 14, 15));
    for (size_t i = 0; i < 4; i++)
        SWAP(row[i], row[i + 4], LIST(0, 1, 2, 3, 8, 9, 10, 11), LIST(4, 5, 6, 7, 12, 13, 14, 15));
#endif
}

/* message[w]: word w of the inputs' blocks. */
static inline __attribute__((always_inline)) void load(const uint8_t *const block[WIDTH], lanes message[16])
{
#pragma GCC unroll 16
    for (size_t w = 0; w < 16; w += WIDTH) {
        for (size_t i = 0; i < WIDTH; i++)
            message[w + i] = *(const lanes_anywhere *)(block[i] + 8 * w);
        transpose(message + w);
    }
}

static inline __attribute__((always_inline)) void compress(lanes h[8], const uint8_t *const block[WIDTH], uint64_t counted,
                                                           bool last)
{
    lanes v[16], m[16];

    load(block, m);
    for (size_t i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = (lanes){ 0 } + initial[i];
    }
    v[12] ^= counted;
    v[14] ^= last ? ~UINT64_C(0) : 0;
#pragma GCC unroll 12
    for (size_t round = 0; round < 12; round++) {
        const uint8_t *s = schedule[round];

        mix(&v[0], &v[4], &v[8], &v[12], &m[s[0]], &m[s[1]]);
        mix(&v[1], &v[5], &v[9], &v[13], &m[s[2]], &m[s[3]]);
        mix(&v[2], &v[6], &v[10], &v[14], &m[s[4]], &m[s[5]]);
        mix(&v[3], &v[7], &v[11], &v[15], &m[s[6]], &m[s[7]]);
        mix(&v[0], &v[5], &v[10], &v[15], &m[s[8]], &m[s[9]]);
        mix(&v[1], &v[6], &v[11], &v[12], &m[s[10]], &m[s[11]]);
        mix(&v[2], &v[7], &v[8], &v[13], &m[s[12]], &m[s[13]]);
        mix(&v[3], &v[4], &v[9], &v[14], &m[s[14]], &m[s[15]]);
    }
    for (size_t i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* Digest of 32 bytes, no key, fanout and depth 1; the personalisation is words 6 and 7 of the parameters. */
static void start(const uint8_t *personal, lanes h[8])
{
    uint64_t words[2];

    memcpy(words, personal, sizeof words);
    for (size_t i = 0; i < 8; i++)
        h[i] = (lanes){ 0 } + (initial[i] ^ (i == 0 ? 0x01010020 : i >= 6 ? words[i - 6] : 0));
}

void BLAKE2B_GROUP(const uint8_t *personal, const uint8_t *const *bytes, size_t size, size_t ahead, uint8_t (*out)[BLAKE2B_SIZE])
{
    const uint8_t *block[WIDTH];
    lanes h[8];
    size_t at = 0;

    start(personal, h);
    for (;; at += BLOCK) {
        for (size_t i = 0; i < WIDTH; i++) {
            block[i] = bytes[i] + at;
            __builtin_prefetch((const void *)((uintptr_t)block[i] + ahead));
            __builtin_prefetch((const void *)((uintptr_t)block[i] + ahead + 64));
        }
        if (size - at <= BLOCK)
            break;
        compress(h, block, at + BLOCK, false);
    }

    uint8_t tail[WIDTH][BLOCK];

    for (size_t i = 0; i < WIDTH && size - at < BLOCK; i++) { /* a short last block is filled with zeros */
        memset(tail[i], 0, BLOCK);
        if (size > at)
            memcpy(tail[i], block[i], size - at);
        block[i] = tail[i];
    }
    compress(h, block, size, true);
    for (size_t w = 0; w < BLAKE2B_SIZE / 8; w++)
        for (size_t i = 0; i < WIDTH; i++)
            memcpy(out[i] + 8 * w, (const uint8_t *)&h[w] + 8 * i, 8);
}
