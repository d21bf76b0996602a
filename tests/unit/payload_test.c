#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/codec/payload.h"
#include "native/codec/quantise.h"
#include "native/kernel/dct.h"
#include "native/numerics/f32.h"

static uint32_t next(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u;
}

static float any_value(uint32_t *state)
{
    return ((float)(next(state) >> 8) * 0x1p-24f - 0.5f) * 3;
}

static void decode(unsigned bits, const void *bytes, size_t size, uint64_t count, float *values, enum error_code code)
{
    struct reader in = reader_of(bytes, size);
    struct error err = { 0 };

    assert_int_equal(quantise_decode(bits, &in, count, values, &err), code == ERROR_NONE);
    assert_int_equal(err.code, code);
    if (code == ERROR_NONE)
        assert_int_equal(reader_left(&in), 0);
}

/* Computed by hand: scale 7/7 = 1; 0.5, 1.5 and 2.5 show ties to even. */
static void four_bits_are_laid_out_as_the_protocol_says(void **state)
{
    const float values[] = { 7, -7, 0.5f, 1.5f, 2.5f, -2.5f, -1, 0, 3 };
    const uint8_t bytes[] = { 0x00, 0x00, 0x80, 0x3f, 0x97, 0x20, 0xe2, 0x0f, 0x03 };
    const float back[] = { 7, -7, 0, 2, 2, -2, -1, 0, 3 };
    struct buffer out = { 0 };
    float read[9];
    (void)state;

    assert_true(quantise_encode(4, values, 9, &out, NULL));
    assert_int_equal(out.size, sizeof bytes);
    assert_memory_equal(out.bytes, bytes, sizeof bytes);
    decode(4, bytes, sizeof bytes, 9, read, ERROR_NONE);
    assert_memory_equal(read, back, sizeof back);
    buffer_free(&out);
}

static void eight_bits_are_laid_out_as_the_protocol_says(void **state)
{
    const float values[] = { 63.5f, -63.5f, 0.25f, 0.75f, -1 };
    const uint8_t bytes[] = { 0x00, 0x00, 0x00, 0x3f, 127, 129, 0, 2, 0xfe };
    struct buffer out = { 0 };
    (void)state;

    assert_true(quantise_encode(8, values, 5, &out, NULL));
    assert_int_equal(out.size, sizeof bytes);
    assert_memory_equal(out.bytes, bytes, sizeof bytes);
    buffer_free(&out);
}

static void plain_bits_are_little_endian(void **state)
{
    const float values[] = { 1, -2, 1.00390625f }; /* the last lies half between two bf16 values */
    const uint8_t half[] = { 0x80, 0x3f, 0x00, 0xc0, 0x80, 0x3f };
    struct buffer out = { 0 };
    float read[3];
    (void)state;

    assert_true(quantise_encode(16, values, 3, &out, NULL));
    assert_memory_equal(out.bytes, half, sizeof half);
    buffer_clear(&out);
    assert_true(quantise_encode(32, values, 3, &out, NULL));
    decode(32, out.bytes, out.size, 3, read, ERROR_NONE);
    assert_memory_equal(read, values, sizeof values);
    buffer_free(&out);
}

static void values_come_back_within_half_a_step(void **state)
{
    static const unsigned bits[] = { 4, 8 };
    static const uint64_t counts[] = { 0, 1, 2, 3, 255, 256, 257, 511, 513, 1000 };
    float values[1000], read[1000];
    uint32_t seed = 1;
    (void)state;

    for (unsigned b = 0; b < 2; b++)
        for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct buffer out = { 0 };
            uint64_t size;

            for (uint64_t i = 0; i < counts[c]; i++)
                values[i] = any_value(&seed);
            assert_true(quantise_encode(bits[b], values, counts[c], &out, NULL));
            assert_true(quantise_size(bits[b], counts[c], &size));
            assert_int_equal(out.size, size);
            decode(bits[b], out.bytes, out.size, counts[c], read, ERROR_NONE);
            for (uint64_t i = 0; i < counts[c]; i++) {
                float largest = 0;

                for (uint64_t j = i / 256 * 256; j < counts[c] && j < i / 256 * 256 + 256; j++)
                    largest = f32_max(f32_abs(values[j]), largest);
                assert_true(f32_abs(read[i] - values[i]) <= largest / (bits[b] == 8 ? 127 : 7) * 0.50001f);
            }
            buffer_free(&out);
        }
}

static void blocks_of_zeros_and_subnormals_stay_finite(void **state)
{
    const float zeros[] = { 0, -0.0f, 0 }, tiny[] = { 0x1p-149f, -0x1p-149f, 0 }, small[] = { 10 * 0x1p-149f, -0x1p-149f, 0 };
    const uint8_t nothing[6] = { 0 };
    struct buffer out = { 0 };
    float read[3];
    (void)state;

    assert_true(quantise_encode(4, zeros, 3, &out, NULL));
    assert_memory_equal(out.bytes, nothing, 6);
    buffer_clear(&out);
    assert_true(quantise_encode(4, tiny, 3, &out, NULL)); /* the scale underflows to 0 */
    assert_memory_equal(out.bytes, nothing, 6);
    buffer_clear(&out);
    assert_true(quantise_encode(4, small, 3, &out, NULL)); /* the scale rounds down to 1: 10 is held at 7 */
    decode(4, out.bytes, out.size, 3, read, ERROR_NONE);
    assert_true(read[0] == 7 * 0x1p-149f && read[1] == -0x1p-149f);
    buffer_free(&out);
}

static void values_that_could_spoil_a_sum_are_not_encoded(void **state)
{
    const float nan = f32_from_bits(0x7fc00000), large = 0x1.000002p60f, edge = -0x1p60f;
    struct buffer out = { 0 };
    struct error err = { 0 };
    (void)state;

    assert_false(quantise_encode(8, &nan, 1, &out, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);
    error_clear(&err);
    assert_false(quantise_encode(4, &large, 1, &out, &err));
    assert_int_equal(err.code, ERROR_RANGE);
    assert_true(quantise_encode(32, &edge, 1, &out, NULL));
    buffer_free(&out);
}

static void hostile_values_are_refused_each_with_its_code(void **state)
{
    const struct {
        unsigned bits;
        uint8_t bytes[8];
        size_t size, count;
        enum error_code code;
    } cases[] = {
        { 4, { 0, 0, 0x80, 0x3f, 0x08 }, 5, 2, ERROR_RANGE },         /* -8 */
        { 8, { 0, 0, 0x80, 0x3f, 0x80, 0 }, 6, 2, ERROR_RANGE },      /* -128 */
        { 4, { 0, 0, 0x80, 0xbf, 0x01 }, 5, 2, ERROR_RANGE },         /* negative scale */
        { 4, { 0, 0, 0, 0x80, 0x00 }, 5, 2, ERROR_RANGE },            /* scale -0 */
        { 4, { 0, 0, 0x80, 0x7f, 0x01 }, 5, 2, ERROR_NON_FINITE },    /* infinite scale */
        { 8, { 0, 0, 0xc0, 0x7f, 0x01, 1 }, 6, 2, ERROR_NON_FINITE }, /* NaN scale */
        { 4, { 0, 0, 0, 0x5d, 0x00 }, 5, 2, ERROR_RANGE },            /* 7 * 2^59 > 2^60 */
        { 4, { 0, 0, 0, 0, 0x10 }, 5, 2, ERROR_CONFLICT },            /* a value under scale 0 */
        { 4, { 0, 0, 0x80, 0x3f, 0x11 }, 5, 1, ERROR_CONFLICT },      /* the unused nibble */
        { 4, { 0, 0, 0x80, 0x3f }, 4, 2, ERROR_TRUNCATED },
        { 32, { 0, 0, 0x80, 0x7f }, 4, 1, ERROR_NON_FINITE },
        { 32, { 1, 0, 0x80, 0x5d }, 4, 1, ERROR_RANGE },
        { 16, { 0xc0, 0xff }, 2, 1, ERROR_NON_FINITE },
        { 16, { 0x81, 0x5d }, 2, 1, ERROR_RANGE },
        { 5, { 0 }, 8, 1, ERROR_UNSUPPORTED },
    };
    float read[2];
    (void)state;

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        decode(cases[i].bits, cases[i].bytes, cases[i].size, cases[i].count, read, cases[i].code);
}

/* Whole payloads ---------------------------------------------------------------------------------------------------------- */

static struct payload_header header_of(unsigned bits)
{
    struct payload_header header = { .bits = bits, .fragment = 2, .round = 0x01020304, .did = "did:key:z6Mk" };

    memset(header.run, 0xaa, sizeof header.run);
    return header;
}

struct pair {
    struct tensor t[2];
};

static struct pair pair_new(void)
{
    struct pair p;
    const uint64_t first[] = { 3, 100 }, second[] = { 5 };
    uint32_t seed = 7;

    assert_true(tensor_new(&p.t[0], "b", TENSOR_F32, 2, first, SIZE_MAX, NULL));
    assert_true(tensor_new(&p.t[1], "a", TENSOR_F32, 1, second, SIZE_MAX, NULL));
    for (unsigned k = 0; k < 2; k++)
        for (uint64_t i = 0; i < tensor_values(&p.t[k]); i++)
            ((float *)p.t[k].data)[i] = any_value(&seed);
    return p;
}

static void pair_free(struct pair *p)
{
    tensor_free(&p->t[0]);
    tensor_free(&p->t[1]);
}

static void a_payload_starts_with_the_header_of_the_protocol(void **state)
{
    struct payload_header header = header_of(4), read;
    struct pair p = pair_new();
    struct buffer out = { 0 };
    size_t body, again;
    const uint8_t start[] = { 'R', 'N', 'D', 'P', 1, 0, 4, 0, 2, 0, 0, 0, 4, 3, 2, 1 };
    (void)state;

    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    assert_memory_equal(out.bytes, start, sizeof start);
    assert_int_equal(body, 50 + strlen(header.did));
    assert_memory_equal(out.bytes + 50, header.did, strlen(header.did));
    assert_true(payload_read_header(out.bytes, out.size, &read, &again, NULL));
    assert_int_equal(body, again);
    assert_string_equal(read.did, header.did);
    assert_int_equal(read.round, header.round);
    buffer_free(&out);
    pair_free(&p);
}

static void tensors_follow_in_name_order_whatever_order_they_are_given_in(void **state)
{
    struct payload_header header = header_of(32);
    struct pair p = pair_new();
    struct tensor swapped[] = { p.t[1], p.t[0] };
    struct buffer one = { 0 }, two = { 0 };
    size_t body;
    (void)state;

    assert_true(payload_encode(&header, p.t, 2, &one, &body, NULL));
    assert_true(payload_encode(&header, swapped, 2, &two, &body, NULL));
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.bytes, two.bytes, one.size);
    assert_memory_equal(one.bytes + body, p.t[1].data, 5 * sizeof(float)); /* "a" comes first */
    buffer_free(&one);
    buffer_free(&two);
    pair_free(&p);
}

static void a_payload_that_was_decoded_encodes_to_the_same_values(void **state)
{
    static const unsigned bits[] = { 32, 16, 8, 4 };
    (void)state;

    for (unsigned b = 0; b < 4; b++) {
        struct payload_header header = header_of(bits[b]);
        struct pair p = pair_new(), q = pair_new();
        struct buffer out = { 0 };
        size_t body, again;

        assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
        assert_true(payload_decode(out.bytes, out.size, &header, q.t, 2, &again, NULL));
        assert_int_equal(body, again);
        for (unsigned k = 0; k < 2; k++)
            for (uint64_t i = 0; i < tensor_values(&p.t[k]); i++)
                assert_true(f32_abs(((float *)p.t[k].data)[i] - ((float *)q.t[k].data)[i]) <= (bits[b] == 4 ? 0.11f : 0.01f));
        buffer_free(&out);
        pair_free(&p);
        pair_free(&q);
    }
}

static void expect_refusal(const struct buffer *payload, size_t size, const struct payload_header *expected, enum error_code code)
{
    struct pair p = pair_new();
    struct error err = { 0 };
    size_t body;

    assert_false(payload_decode(payload->bytes, size, expected, p.t, 2, &body, &err));
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != 0);
    pair_free(&p);
}

static void every_truncation_and_every_wrong_field_is_refused(void **state)
{
    const struct payload_header header = header_of(4);
    struct payload_header other;
    struct pair p = pair_new();
    struct buffer out = { 0 };
    size_t body;
    (void)state;

    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    for (size_t size = 0; size < out.size; size++)
        expect_refusal(&out, size, &header, ERROR_TRUNCATED);
    other = header, other.round++;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.fragment++;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.bits = 8;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.run[31]++;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.did[0] = 'D';
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    buffer_add_u8(&out, 0);
    expect_refusal(&out, out.size, &header, ERROR_LIMIT);
    out.bytes[7] = 4;
    expect_refusal(&out, out.size - 1, &header, ERROR_UNSUPPORTED);
    out.bytes[7] = 0;
    out.bytes[6] = 5;
    expect_refusal(&out, out.size - 1, &header, ERROR_UNSUPPORTED);
    out.bytes[4] = 2;
    expect_refusal(&out, out.size - 1, &header, ERROR_UNSUPPORTED);
    out.bytes[0] = 'S';
    expect_refusal(&out, out.size - 1, &header, ERROR_SYNTAX);
    buffer_free(&out);
    pair_free(&p);
}

static void a_payload_of_the_largest_values_says_how_many(void **state)
{
    struct payload_header header = header_of(8), other, read;
    struct pair p = pair_new(), q = pair_new();
    struct buffer out = { 0 };
    const uint8_t kept[] = { 3, 0, 16, 0 };
    size_t body, again;
    (void)state;

    header.keep = 3, header.of = 16;
    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    assert_int_equal(out.bytes[7], 1);
    assert_int_equal(body, 54 + strlen(header.did));
    assert_memory_equal(out.bytes + 50 + strlen(header.did), kept, sizeof kept);
    assert_true(payload_read_header(out.bytes, out.size, &read, &again, NULL));
    assert_true(read.keep == 3 && read.of == 16 && again == body);
    assert_true(payload_decode(out.bytes, out.size, &header, q.t, 2, &again, NULL));
    for (size_t size = 0; size < out.size; size++)
        expect_refusal(&out, size, &header, ERROR_TRUNCATED);
    other = header, other.keep = 4;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.of = 17;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.keep = other.of = 0;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    memset(out.bytes + body - 4, 0, 4);
    expect_refusal(&out, out.size, &header, ERROR_RANGE); /* 0 of every 0 */
    out.bytes[body - 4] = 17, out.bytes[body - 2] = 16;
    expect_refusal(&out, out.size, &header, ERROR_RANGE); /* 17 of every 16 */
    buffer_free(&out);
    pair_free(&p);
    pair_free(&q);
}

/* Against the definition, a tile at a time by dct.h. */
static void coefficients_of_tiles_are_sent_tile_by_tile(void **state)
{
    struct payload_header header = header_of(32), other, read;
    struct pair p = pair_new(), q = pair_new();
    struct buffer out = { 0 };
    const uint8_t tile[] = { 20, 0 };
    size_t body, again;
    (void)state;

    header.tile = 20; /* [3, 100]: tiles of 3 x 20; [5]: one row of 5 */
    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    assert_int_equal(out.bytes[7], 2);
    assert_memory_equal(out.bytes + 50 + strlen(header.did), tile, sizeof tile);
    assert_int_equal(out.size - body, 305 * sizeof(float));
    for (unsigned k = 0; k < 6; k++) {
        float x[60], between[60], want[60];
        const size_t rows = k == 0 ? 1 : 3, wide = k == 0 ? 5 : 20, left = k == 0 ? 0 : 20 * (k - 1);
        const struct dct dct = { .rows = rows, .columns = wide, .high = rows, .wide = wide };
        const struct tensor *t = &p.t[k == 0];

        for (size_t i = 0; i < rows; i++)
            memcpy(x + i * wide, (const float *)t->data + i * 100 + left, wide * sizeof *x);
        dct_run(NULL, &dct, x, between, want);
        assert_memory_equal(out.bytes + body + (k == 0 ? 0 : 5 + 60 * (k - 1)) * sizeof(float), want, rows * wide * sizeof *want);
    }
    assert_true(payload_decode(out.bytes, out.size, &header, q.t, 2, &again, NULL));
    for (unsigned k = 0; k < 2; k++)
        for (uint64_t i = 0; i < tensor_values(&p.t[k]); i++)
            assert_true(f32_abs(((float *)p.t[k].data)[i] - ((float *)q.t[k].data)[i]) < 1e-5f);
    for (size_t size = 0; size < out.size; size++)
        expect_refusal(&out, size, &header, ERROR_TRUNCATED);
    other = header, other.tile = 0;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    other = header, other.tile = 21;
    expect_refusal(&out, out.size, &other, ERROR_MISMATCH);
    header.keep = 2, header.of = 60, header.bits = 8; /* the two largest of each tile */
    out.size = 0;
    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    assert_int_equal(out.bytes[7], 3);
    assert_true(payload_read_header(out.bytes, out.size, &read, &again, NULL));
    assert_true(read.tile == 20 && read.keep == 2 && again == body);
    assert_true(payload_decode(out.bytes, out.size, &header, q.t, 2, &again, NULL));
    for (unsigned side = 0; side < 2; side++) {
        out.bytes[body - 2] = (uint8_t)side, out.bytes[body - 1] = (uint8_t)(2 * side); /* 0, 513 */
        expect_refusal(&out, out.size, &header, ERROR_RANGE);
    }
    buffer_free(&out);
    pair_free(&p);
    pair_free(&q);
}

/* Coefficients within the limit whose values are not. */
static void coefficients_that_add_up_beyond_the_limit_are_refused(void **state)
{
    struct payload_header header = header_of(32);
    struct pair p = pair_new();
    struct buffer out = { 0 };
    const float large = 0x1p60f;
    size_t body;
    (void)state;

    header.tile = 4;
    assert_true(payload_encode(&header, p.t, 2, &out, &body, NULL));
    for (unsigned i = 0; i < 305; i++)
        memcpy(out.bytes + body + 4 * i, &large, 4);
    expect_refusal(&out, out.size, &header, ERROR_RANGE);
    buffer_free(&out);
    pair_free(&p);
}

static void an_update_that_cannot_be_sent_names_its_tensor(void **state)
{
    const struct payload_header header = header_of(4);
    struct pair p = pair_new();
    struct buffer out = { 0 };
    struct error err = { 0 };
    size_t body;
    (void)state;

    ((float *)p.t[0].data)[17] = f32_from_bits(0x7f800000);
    assert_false(payload_encode(&header, p.t, 2, &out, &body, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);
    assert_string_equal(err.place, "b: value 17");
    p.t[1].name[0] = 'b';
    error_clear(&err);
    assert_false(payload_encode(&header, p.t, 2, &out, &body, &err));
    assert_int_equal(err.code, ERROR_DUPLICATE);
    buffer_free(&out);
    pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bits_are_laid_out_as_the_protocol_says),
        cmocka_unit_test(eight_bits_are_laid_out_as_the_protocol_says),
        cmocka_unit_test(plain_bits_are_little_endian),
        cmocka_unit_test(values_come_back_within_half_a_step),
        cmocka_unit_test(blocks_of_zeros_and_subnormals_stay_finite),
        cmocka_unit_test(values_that_could_spoil_a_sum_are_not_encoded),
        cmocka_unit_test(hostile_values_are_refused_each_with_its_code),
        cmocka_unit_test(a_payload_starts_with_the_header_of_the_protocol),
        cmocka_unit_test(tensors_follow_in_name_order_whatever_order_they_are_given_in),
        cmocka_unit_test(a_payload_that_was_decoded_encodes_to_the_same_values),
        cmocka_unit_test(every_truncation_and_every_wrong_field_is_refused),
        cmocka_unit_test(a_payload_of_the_largest_values_says_how_many),
        cmocka_unit_test(coefficients_of_tiles_are_sent_tile_by_tile),
        cmocka_unit_test(coefficients_that_add_up_beyond_the_limit_are_refused),
        cmocka_unit_test(an_update_that_cannot_be_sent_names_its_tensor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
