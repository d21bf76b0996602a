#include "runtime/crypto/hash_many.h"

#include <assert.h>
#include <string.h>

static void hash_each(const char *type, const uint8_t *bytes, size_t size, size_t count, struct hash *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = hash_typed(type, bytes + i * size, size);
}

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

enum { LANES = 4, BLOCK = 128 };

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

AVX2 static inline __m256i rotate32(__m256i x)
{
    return _mm256_shuffle_epi32(x, _MM_SHUFFLE(2, 3, 0, 1));
}

AVX2 static inline __m256i rotate24(__m256i x)
{
    return _mm256_shuffle_epi8(x, _mm256_setr_epi8(3, 4, 5, 6, 7, 0, 1, 2, 11, 12, 13, 14, 15, 8, 9, 10, 3, 4, 5, 6, 7, 0, 1, 2,
                                                   11, 12, 13, 14, 15, 8, 9, 10));
}

AVX2 static inline __m256i rotate16(__m256i x)
{
    return _mm256_shuffle_epi8(x, _mm256_setr_epi8(2, 3, 4, 5, 6, 7, 0, 1, 10, 11, 12, 13, 14, 15, 8, 9, 2, 3, 4, 5, 6, 7, 0, 1,
                                                   10, 11, 12, 13, 14, 15, 8, 9));
}

AVX2 static inline __m256i rotate63(__m256i x)
{
    return _mm256_or_si256(_mm256_srli_epi64(x, 63), _mm256_add_epi64(x, x));
}

AVX2 static inline void mix(__m256i *a, __m256i *b, __m256i *c, __m256i *d, __m256i x, __m256i y)
{
    *a = _mm256_add_epi64(_mm256_add_epi64(*a, *b), x);
    *d = rotate32(_mm256_xor_si256(*d, *a));
    *c = _mm256_add_epi64(*c, *d);
    *b = rotate24(_mm256_xor_si256(*b, *c));
    *a = _mm256_add_epi64(_mm256_add_epi64(*a, *b), y);
    *d = rotate16(_mm256_xor_si256(*d, *a));
    *c = _mm256_add_epi64(*c, *d);
    *b = rotate63(_mm256_xor_si256(*b, *c));
}

/* message[w]: word w of the four blocks, one a lane. */
AVX2 static void load(const uint8_t *const block[LANES], __m256i message[16])
{
    for (size_t w = 0; w < 16; w += 4) {
        __m256i row[LANES];

        for (size_t i = 0; i < LANES; i++)
            row[i] = _mm256_loadu_si256((const __m256i *)(block[i] + 8 * w));

        __m256i a = _mm256_unpacklo_epi64(row[0], row[1]), b = _mm256_unpackhi_epi64(row[0], row[1]);
        __m256i c = _mm256_unpacklo_epi64(row[2], row[3]), d = _mm256_unpackhi_epi64(row[2], row[3]);

        message[w] = _mm256_permute2x128_si256(a, c, 0x20);
        message[w + 1] = _mm256_permute2x128_si256(b, d, 0x20);
        message[w + 2] = _mm256_permute2x128_si256(a, c, 0x31);
        message[w + 3] = _mm256_permute2x128_si256(b, d, 0x31);
    }
}

AVX2 static void compress(__m256i h[8], const uint8_t *const block[LANES], uint64_t counted, bool last)
{
    __m256i v[16], m[16];

    load(block, m);
    for (size_t i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = _mm256_set1_epi64x((long long)initial[i]);
    }
    v[12] = _mm256_xor_si256(v[12], _mm256_set1_epi64x((long long)counted));
    v[14] = _mm256_xor_si256(v[14], _mm256_set1_epi64x(last ? -1 : 0));
#pragma GCC unroll 12
    for (size_t round = 0; round < 12; round++) {
        const uint8_t *s = schedule[round];

        mix(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
        mix(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
        mix(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
        mix(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
        mix(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
        mix(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
        mix(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
        mix(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
    }
    for (size_t i = 0; i < 8; i++)
        h[i] = _mm256_xor_si256(h[i], _mm256_xor_si256(v[i], v[i + 8]));
}

/* Section 2.8 of the BLAKE2 paper: digest of 32 bytes, no key, fanout and depth 1, no salt, the type as personalisation. */
AVX2 static void start(const char *type, __m256i h[8])
{
    uint64_t personal[2] = { 0 };

    assert(strlen(type) <= sizeof personal);
    memcpy(personal, type, strlen(type));
    for (size_t i = 0; i < 8; i++)
        h[i] = _mm256_set1_epi64x((long long)(initial[i] ^ (i == 0 ? 0x01010020 : i >= 6 ? personal[i - 6] : 0)));
}

AVX2 static void hash_four(const char *type, const uint8_t *const bytes[LANES], size_t size, struct hash *out)
{
    uint8_t tail[LANES][BLOCK] = { { 0 } };
    const uint8_t *block[LANES];
    uint64_t words[4][LANES];
    __m256i h[8];
    size_t at = 0;

    start(type, h);
    for (; size - at > BLOCK; at += BLOCK) {
        for (size_t i = 0; i < LANES; i++)
            block[i] = bytes[i] + at;
        compress(h, block, at + BLOCK, false);
    }
    for (size_t i = 0; i < LANES; i++) {
        memcpy(tail[i], bytes[i] + at, size - at);
        block[i] = tail[i];
    }
    compress(h, block, size, true);
    for (size_t w = 0; w < 4; w++)
        _mm256_storeu_si256((__m256i *)words[w], h[w]);
    for (size_t i = 0; i < LANES; i++)
        for (size_t w = 0; w < 4; w++)
            memcpy(out[i].bytes + 8 * w, &words[w][i], 8);
}

void hash_many(const char *type, const void *bytes, size_t size, size_t count, struct hash *out)
{
    const uint8_t *from = bytes;
    size_t i = 0;

    if (__builtin_cpu_supports("avx2"))
        for (; i + LANES <= count; i += LANES) {
            const uint8_t *const four[LANES] = { from + i * size, from + (i + 1) * size, from + (i + 2) * size,
                                                 from + (i + 3) * size };

            hash_four(type, four, size, out + i);
        }
    hash_each(type, from + i * size, size, count - i, out + i);
}

#else

void hash_many(const char *type, const void *bytes, size_t size, size_t count, struct hash *out)
{
    hash_each(type, bytes, size, count, out);
}

#endif
