/* The codec against its definition, written out value by value, under every instruction set of the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/codec/feedback.h"
#include "native/kernel/class.h"
#include "native/numerics/f32.h"

enum { MOST = 2 * TOPK_CHUNK + 300 };

static const unsigned all_bits[] = { 32, 16, 8, 4 };
static const size_t counts[] = { 0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 511, 1000, 4095, 4096, 4097, MOST };
enum { COUNTS = sizeof counts / sizeof *counts };

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 17;
    return *state ^= *state << 5;
}

/* Of every kind: ordinary, equal magnitudes, zeros of both signs, subnormal, large. */
static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t kind = next(&seed) % 16, bits = next(&seed);
        const float unit = (float)(bits >> 8) * 0x1p-24f - 0.5f;

        x[i] = kind < 10 ? unit : kind < 12 ? (bits & 1 ? 0.25f : -0.25f) : kind == 12 ? 0.0f : kind == 13 ? -0.0f : unit * 0.01f;
    }
    if (seed % 5 == 0)
        for (size_t i = 0; i < n; i++)
            x[i] *= seed % 2 ? 0x1p-140f : 0x1p58f;
}

static void for_every_isa(void (*test)(void))
{
    for (int isa = 0; isa < KERNEL_ISAS; isa++)
        if (kernel_isa_present((enum kernel_isa)isa)) {
            assert_true(kernel_isa_use((enum kernel_isa)isa, NULL));
            test();
        }
}

/* --- quantise ------------------------------------------------------------------------------------------------------------- */

/* The layout of quantise.h, word for word; `back` becomes what is read back. */
static void define_quantise(unsigned bits, const float *x, size_t n, struct buffer *out, float *back)
{
    const int most = bits == 8 ? 127 : 7;

    for (size_t i = 0; i < n && bits >= 16; i++) {
        back[i] = bits == 32 ? x[i] : f32_from_bf16(bf16_from_f32(x[i]));
        if (bits == 32)
            buffer_add_u32(out, f32_bits(x[i]));
        else
            buffer_add_u16(out, bf16_from_f32(x[i]));
    }
    for (size_t at = 0; at < n && bits < 16; at += QUANTISE_BLOCK) {
        const size_t end = n - at < QUANTISE_BLOCK ? n : at + QUANTISE_BLOCK;
        float largest = 0;
        uint8_t low = 0;

        for (size_t i = at; i < end; i++)
            largest = f32_max(f32_abs(x[i]), largest);

        const float scale = largest / (float)most;

        buffer_add_u32(out, f32_bits(scale));
        for (size_t i = at; i < end; i++) {
            int code = scale > 0 ? (int)f32_round(x[i] / scale) : 0;

            code = code > most ? most : code < -most ? -most : code;
            back[i] = scale * (float)code;
            if (bits == 8)
                buffer_add_u8(out, (uint8_t)code);
            else if ((i - at) % 2 == 0)
                low = code & 15;
            else
                buffer_add_u8(out, (uint8_t)(low | (code & 15) << 4));
        }
        if (bits == 4 && (end - at) % 2)
            buffer_add_u8(out, low);
    }
}

static void assert_same(const float *is, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(f32_bits(is[i]), f32_bits(want[i]));
}

static void try_quantise(unsigned bits, const float *x, size_t n)
{
    struct buffer out = { 0 }, want = { 0 }, again = { 0 };
    float *back = calloc(n + 1, sizeof *back), *read = calloc(n + 1, sizeof *read), *rest = calloc(n + 1, sizeof *rest);
    struct reader in;

    define_quantise(bits, x, n, &want, back);
    assert_true(quantise_encode(bits, x, n, &out, NULL));
    assert_int_equal(out.size, want.size);
    if (n)
        assert_memory_equal(out.bytes, want.bytes, want.size);
    in = reader_of(out.bytes, out.size);
    assert_true(quantise_decode(bits, &in, n, read, NULL));
    assert_same(read, back, n);
    memcpy(rest, x, n * sizeof *x);
    assert_true(quantise_encode_rest(bits, rest, n, &again, NULL));
    assert_int_equal(again.size, want.size);
    if (n)
        assert_memory_equal(again.bytes, want.bytes, want.size);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(f32_bits(rest[i]), f32_bits(x[i] - back[i]));
    free(back), free(read), free(rest);
    buffer_free(&out), buffer_free(&want), buffer_free(&again);
}

static void quantise_everywhere(void)
{
    float *x = calloc(MOST, sizeof *x);

    for (size_t c = 0; c < COUNTS; c++)
        for (unsigned b = 0; b < 4; b++) {
            fill(x, counts[c], (uint32_t)(17 * c + b + 1));
            try_quantise(all_bits[b], x, counts[c]);
        }
    free(x);
}

static void quantising_is_its_definition(void **state)
{
    (void)state;
    for_every_isa(quantise_everywhere);
}

/* Vectors 4.2 and 4.3 of a separate study of communication; halves are exact in binary. */
static void quantise_ties(void)
{
    const float eight[] = { 127, 2.5f, 3.5f, -2.5f, -0.5f, 1.5f, 10.25f, -100.75f };
    const float four[] = { 0.875f, 0.0625f, 0.1875f, -0.0625f, 0.3125f, -0.4375f, 0.55f, -0.875f };
    const uint8_t eight_codes[] = { 0x7f, 2, 4, 0xfe, 0, 2, 0x0a, 0x9b }, four_codes[] = { 0x07, 0x02, 0xc2, 0x94 };
    struct buffer out = { 0 };

    assert_true(quantise_encode(8, eight, 8, &out, NULL));
    assert_memory_equal(out.bytes + 4, eight_codes, sizeof eight_codes);
    buffer_clear(&out);
    assert_true(quantise_encode(4, four, 8, &out, NULL));
    assert_memory_equal(out.bytes + 4, four_codes, sizeof four_codes);
    buffer_free(&out);
}

static void ties_go_to_the_even_code(void **state)
{
    (void)state;
    for_every_isa(quantise_ties);
}

static void refuse_at(size_t at, float value, enum error_code code)
{
    static float x[700];
    struct buffer out = { 0 };
    struct error err = { 0 };
    char place[40];

    memset(x, 0, sizeof x);
    x[at] = value;
    snprintf(place, sizeof place, "value %zu", at);
    for (unsigned b = 0; b < 4; b++) {
        const struct topk dense = { .bits = all_bits[b] }, sparse = { 5, 64, all_bits[b] };

        error_clear(&err);
        assert_false(quantise_encode(all_bits[b], x, 700, &out, &err));
        assert_int_equal(err.code, code);
        assert_string_equal(err.place, place);
        error_clear(&err);
        assert_false(topk_encode(&sparse, x, 700, &out, &err));
        assert_int_equal(err.code, code);
        assert_string_equal(err.place, place);
        for (unsigned s = 0; s < 2; s++) {
            float rest[700] = { 0 };

            error_clear(&err);
            assert_false(feedback_encode(s ? &sparse : &dense, 1, x, rest, 700, &out, &err));
            assert_int_equal(err.code, code);
            assert_string_equal(err.place, place);
        }
        assert_int_equal(out.size, 0);
    }
    buffer_free(&out);
}

static void refuse_everywhere(void)
{
    static const size_t at[] = { 0, 255, 256, 300, 699 };

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        refuse_at(at[i], f32_from_bits(0x7fc00000), ERROR_NON_FINITE);
        refuse_at(at[i], f32_from_bits(0xff800000), ERROR_NON_FINITE);
        refuse_at(at[i], -0x1.000002p60f, ERROR_RANGE);
    }
}

static void a_value_that_cannot_be_sent_is_named_and_nothing_is_written(void **state)
{
    (void)state;
    for_every_isa(refuse_everywhere);
}

/* --- topk ----------------------------------------------------------------------------------------------------------------- */

/* The definition: sort the chunk by magnitude, keep the first, in their order. */
struct entry {
    uint32_t magnitude;
    size_t position;
};

static int by_magnitude(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->magnitude != y->magnitude)
        return x->magnitude > y->magnitude ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

static int by_position(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->position < y->position ? -1 : 1;
}

static void define_chunk(const struct topk *codec, const float *x, size_t n, struct buffer *out, float *back)
{
    static struct entry entries[TOPK_CHUNK];
    static float kept[TOPK_CHUNK], kept_back[TOPK_CHUNK];
    size_t k = 0, bit = 0, width = 1;

    while (k * codec->of < n * codec->keep)
        k++;
    while ((size_t)1 << width < codec->of)
        width++;
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct entry){ f32_bits(f32_abs(x[i])), i };
    qsort(entries, n, sizeof *entries, by_magnitude);
    qsort(entries, k, sizeof *entries, by_position);

    uint8_t *positions = calloc((k * width + 7) / 8, 1);

    for (size_t i = 0; i < k; i++) {
        kept[i] = x[entries[i].position];
        for (size_t b = 0; b < width; b++, bit++)
            positions[bit / 8] |= (uint8_t)((entries[i].position >> b & 1) << bit % 8);
    }
    buffer_add(out, positions, (k * width + 7) / 8);
    free(positions);
    define_quantise(codec->bits, kept, k, out, kept_back);
    memset(back, 0, n * sizeof *back);
    for (size_t i = 0; i < k; i++)
        back[entries[i].position] = kept_back[i];
}

static void define_topk(const struct topk *codec, const float *x, size_t n, struct buffer *out, float *back)
{
    for (size_t at = 0; at < n; at += codec->of)
        define_chunk(codec, x + at, n - at < codec->of ? n - at : codec->of, out, back + at);
}

static void try_topk(const struct topk *codec, const float *x, size_t n)
{
    struct buffer out = { 0 }, want = { 0 };
    float *back = calloc(n + 1, sizeof *back), *read = calloc(n + 1, sizeof *read), *rest = calloc(n + 1, sizeof *rest);
    struct reader in;
    uint64_t size;

    define_topk(codec, x, n, &want, back);
    assert_true(topk_encode(codec, x, n, &out, NULL));
    assert_true(topk_size(codec, n, &size));
    assert_int_equal(size, want.size);
    assert_int_equal(out.size, want.size);
    if (n)
        assert_memory_equal(out.bytes, want.bytes, want.size);
    in = reader_of(out.bytes, out.size);
    assert_true(topk_decode(codec, &in, n, read, NULL));
    assert_int_equal(reader_left(&in), 0);
    assert_same(read, back, n);
    memcpy(rest, x, n * sizeof *x);
    buffer_clear(&out);
    assert_true(topk_encode_rest(codec, rest, n, &out, NULL));
    if (n)
        assert_memory_equal(out.bytes, want.bytes, want.size);
    for (size_t i = 0; i < n; i++) /* what is not kept stays as it is, -0 too */
        assert_true(f32_bits(rest[i]) == f32_bits(x[i] - back[i]) || (back[i] == 0 && f32_bits(rest[i]) == f32_bits(x[i])));
    free(back), free(read), free(rest);
    buffer_free(&out), buffer_free(&want);
}

static const struct topk codecs[] = { { 41, 4096, 8 }, { 64, 4096, 4 }, { 1, 2, 32 },  { 2, 2, 16 },     { 3, 7, 4 },
                                      { 1, 4096, 32 }, { 5, 64, 8 },    { 17, 33, 4 }, { 300, 1000, 8 }, { 4096, 4096, 16 } };
enum { CODECS = sizeof codecs / sizeof *codecs };

static void topk_everywhere(void)
{
    float *x = calloc(MOST, sizeof *x);

    for (size_t c = 0; c < COUNTS; c++)
        for (size_t k = 0; k < CODECS; k++) {
            fill(x, counts[c], (uint32_t)(31 * c + k + 1));
            try_topk(&codecs[k], x, counts[c]);
        }
    for (size_t k = 0; k < CODECS; k++) { /* all equal, all zero */
        for (size_t i = 0; i < 5000; i++)
            x[i] = i % 3 ? 0.5f : -0.5f;
        try_topk(&codecs[k], x, 5000);
        memset(x, 0, MOST * sizeof *x);
        try_topk(&codecs[k], x, 5000);
    }
    free(x);
}

static void the_largest_are_kept_and_of_equal_ones_the_lower_positions(void **state)
{
    (void)state;
    for_every_isa(topk_everywhere);
}

static void codecs_out_of_range_are_not_known(void **state)
{
    const struct topk wrong[] = { { 0, 16, 8 }, { 17, 16, 8 }, { 1, 1, 8 }, { 1, 4097, 8 }, { 1, 16, 2 }, { 1, 0, 8 } };
    struct buffer out = { 0 };
    uint64_t size;
    (void)state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = { 0 };

        assert_false(topk_known(&wrong[i]));
        assert_false(topk_size(&wrong[i], 100, &size));
        assert_false(topk_encode(&wrong[i], NULL, 100, &out, &err));
        assert_int_equal(err.code, ERROR_UNSUPPORTED);
    }
    assert_false(topk_size(&codecs[0], UINT64_MAX / 2, &size));
}

static void hostile_positions_are_refused_each_with_its_code(void **state)
{
    const struct topk codec = { 2, 16, 8 }; /* positions of 4 bits: one byte; then a scale and two codes */
    const struct {
        uint8_t bytes[8];
        size_t size, count;
        enum error_code code;
    } cases[] = {
        { { 0x31, 0, 0, 0x80, 0x3f, 1, 2 }, 7, 16, ERROR_NONE },       { { 0x31, 0, 0, 0x80, 0x3f, 1 }, 6, 16, ERROR_TRUNCATED },
        { { 0x33, 0, 0, 0x80, 0x3f, 1, 2 }, 7, 16, ERROR_RANGE },      /* the same position twice */
        { { 0x13, 0, 0, 0x80, 0x3f, 1, 2 }, 7, 16, ERROR_RANGE },      /* descending */
        { { 0xf1, 0, 0, 0x80, 0x3f, 1, 2 }, 7, 15, ERROR_RANGE },      /* past the end of a short chunk */
        { { 0x31, 0, 0, 0x80, 0x3f, 1, 0x80 }, 7, 16, ERROR_RANGE },   /* a code that is never written */
        { { 0x31, 0, 0, 0x80, 0x7f, 1, 2 }, 7, 16, ERROR_NON_FINITE }, /* an infinite scale */
        { { 0x13, 0, 0, 0x80, 0x3f, 1 }, 6, 8, ERROR_CONFLICT },       /* one position; the other half of its byte is not 0 */
    };
    float read[16];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader in = reader_of(cases[i].bytes, cases[i].size);
        struct error err = { 0 };

        assert_int_equal(topk_decode(&codec, &in, cases[i].count, read, &err), cases[i].code == ERROR_NONE);
        assert_int_equal(err.code, cases[i].code);
    }
}

/* --- feedback ------------------------------------------------------------------------------------------------------------- */

/* One round of one trainer by the definition, with whatever codec. */
static void define_feedback(const struct topk *codec, float decay, const float *update, float *rest, size_t n, struct buffer *out)
{
    float *back = calloc(n + 1, sizeof *back);

    for (size_t i = 0; i < n; i++)
        rest[i] = f32_fma(decay, rest[i], update[i]);
    if (codec->keep)
        define_topk(codec, rest, n, out, back);
    else
        define_quantise(codec->bits, rest, n, out, back);
    for (size_t i = 0; i < n; i++)
        rest[i] = rest[i] - back[i];
    free(back);
}

static void feedback_everywhere(void)
{
    float *update = calloc(MOST, sizeof *update), *rest = calloc(MOST, sizeof *rest),
          *want_rest = calloc(MOST, sizeof *want_rest);

    for (size_t c = 0; c < COUNTS; c++)
        for (size_t k = 0; k < CODECS + 4; k++) {
            const struct topk codec = k < CODECS ? codecs[k] : (struct topk){ .bits = all_bits[k - CODECS] };

            memset(rest, 0, MOST * sizeof *rest);
            memset(want_rest, 0, MOST * sizeof *want_rest);
            for (uint32_t round = 0; round < 3; round++) {
                struct buffer out = { 0 }, want = { 0 };

                fill(update, counts[c], (uint32_t)(7 * c + k) * 3 + round + 1);
                define_feedback(&codec, 0.9f, update, want_rest, counts[c], &want);
                assert_true(feedback_encode(&codec, 0.9f, update, rest, counts[c], &out, NULL));
                assert_int_equal(out.size, want.size);
                if (want.size)
                    assert_memory_equal(out.bytes, want.bytes, want.size);
                for (size_t i = 0; i < counts[c]; i++)
                    assert_true(rest[i] == want_rest[i]);
                buffer_free(&out), buffer_free(&want);
            }
        }
    free(update), free(rest), free(want_rest);
}

static void what_is_left_out_is_carried_to_the_next_payload(void **state)
{
    (void)state;
    for_every_isa(feedback_everywhere);
}

/* Vector 4.6 of a separate study of communication: 8 entries, 2 kept, decay 0.9, three rounds, computed in binary64. */
static void feedback_agrees_with_a_worked_example(void **state)
{
    const float updates[3][8] = { { 0.9f, -0.1f, 0.2f, 0.05f, -0.6f, 0.3f, 0, 0.1f },
                                  { 0.1f, -0.2f, 0.4f, 0.1f, 0.1f, 0.35f, -0.1f, 0 },
                                  { 0, 0.1f, 0.1f, -0.3f, 0.2f, 0, 0.25f, -0.4f } };
    const float sent[3][8] = { { 0.9f, 0, 0, 0, -0.6f, 0, 0, 0 },
                               { 0, 0, 0.58f, 0, 0, 0.62f, 0, 0 },
                               { 0, 0, 0, 0, 0.29f, 0, 0, -0.319f } };
    const float left[8] = { 0.09f, -0.161f, 0.1f, -0.1695f, 0, 0, 0.16f, 0 };
    const struct topk codec = { 2, 8, 32 };
    float rest[8] = { 0 }, read[8];
    (void)state;

    for (size_t round = 0; round < 3; round++) {
        struct buffer out = { 0 };
        struct reader in;

        assert_true(feedback_encode(&codec, 0.9f, updates[round], rest, 8, &out, NULL));
        in = reader_of(out.bytes, out.size);
        assert_true(topk_decode(&codec, &in, 8, read, NULL));
        for (size_t i = 0; i < 8; i++)
            assert_true(f32_abs(read[i] - sent[round][i]) < 1e-6f);
        buffer_free(&out);
    }
    for (size_t i = 0; i < 8; i++)
        assert_true(f32_abs(rest[i] - left[i]) < 1e-6f);
}

static void a_decay_outside_its_range_is_refused(void **state)
{
    const float wrong[] = { -0.1f, 1.5f, f32_from_bits(0x7fc00000) };
    const struct topk codec = { .bits = 8 };
    float x = 0, rest = 0;
    struct buffer out = { 0 };
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        struct error err = { 0 };

        assert_false(feedback_encode(&codec, wrong[i], &x, &rest, 1, &out, &err));
        assert_int_equal(err.code, ERROR_RANGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantising_is_its_definition),
        cmocka_unit_test(ties_go_to_the_even_code),
        cmocka_unit_test(a_value_that_cannot_be_sent_is_named_and_nothing_is_written),
        cmocka_unit_test(the_largest_are_kept_and_of_equal_ones_the_lower_positions),
        cmocka_unit_test(codecs_out_of_range_are_not_known),
        cmocka_unit_test(hostile_positions_are_refused_each_with_its_code),
        cmocka_unit_test(what_is_left_out_is_carried_to_the_next_payload),
        cmocka_unit_test(feedback_agrees_with_a_worked_example),
        cmocka_unit_test(a_decay_outside_its_range_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
