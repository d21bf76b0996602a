#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native/model/convert.h"

/* f16: 0x3800 is 0.5, 0x4000 is 2, 0xbc00 is -1. Values by hand from the definitions in tensor.h. */
static void q8_0_is_scale_times_code(void **state)
{
    uint8_t block[34] = { 0x00, 0x38, 0, 1, 255, 127, 128 };
    float out[32];
    (void)state;

    convert_to_f32(TENSOR_Q8_0, block, 32, out);
    assert_true(out[0] == 0 && out[1] == 0.5f && out[2] == -0.5f && out[3] == 63.5f && out[4] == -64);
}

static void q4_0_subtracts_8_and_splits_the_block_in_halves(void **state)
{
    uint8_t block[18] = { 0x00, 0x40, 0x80, 0xf1 };
    float out[32];
    (void)state;

    convert_to_f32(TENSOR_Q4_0, block, 32, out);
    assert_true(out[0] == -16 && out[16] == 0 && out[1] == -14 && out[17] == 14 && out[2] == -16);
}

static void q4_1_adds_the_minimum(void **state)
{
    uint8_t block[20] = { 0x00, 0x38, 0x00, 0xbc, 0x20, 0x0f };
    float out[32];
    (void)state;

    convert_to_f32(TENSOR_Q4_1, block, 32, out);
    assert_true(out[0] == -1 && out[16] == 0 && out[1] == 6.5f && out[17] == -1 && out[31] == -1);
}

/* 0x0401 is 2^-14 + 2^-24, 0x6400 is 1024. 15 times the one is 7.5 + 15/2048 units in the last place of a binary32 at 1024: up. */
static void q4_1_multiplies_then_adds_and_rounds_once(void **state)
{
    uint8_t block[20] = { 0x01, 0x04, 0x00, 0x64, 0x0f };
    float out[32];
    (void)state;

    convert_to_f32(TENSOR_Q4_1, block, 32, out);
    assert_true(out[0] == 1024.0009765625f && out[1] == 1024);
}

static void blocks_follow_one_another(void **state)
{
    uint8_t blocks[2 * 34] = { [0] = 0x00, [1] = 0x3c, [2] = 1, [34] = 0x00, [35] = 0x40, [36] = 3 };
    float out[64];
    (void)state;

    convert_to_f32(TENSOR_Q8_0, blocks, 64, out);
    assert_true(out[0] == 1 && out[32] == 6);
}

static void plain_types_are_read_from_any_address(void **state)
{
    const uint8_t bytes[] = { 0xff, 0x00, 0x00, 0x80, 0x3f, 0x80, 0x3f, 0x00, 0xbc, 0xfe, 0xff,
                              0xff, 0xff, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f };
    float out;
    (void)state;

    convert_to_f32(TENSOR_F32, bytes + 1, 1, &out);
    assert_true(out == 1);
    convert_to_f32(TENSOR_BF16, bytes + 5, 1, &out);
    assert_true(out == 1);
    convert_to_f32(TENSOR_F16, bytes + 7, 1, &out);
    assert_true(out == -1);
    convert_to_f32(TENSOR_I32, bytes + 9, 1, &out);
    assert_true(out == -2);
    convert_to_f32(TENSOR_F64, bytes + 13, 1, &out);
    assert_true(out == 0.1f);
}

static void what_is_written_is_read_again(void **state)
{
    static const enum tensor_type types[] = { TENSOR_F32, TENSOR_F16, TENSOR_BF16 };
    const float values[] = { 1, -2.5f, 0, 0.125f };
    uint8_t stored[16];
    float out[4];
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        assert_true(convert_from_f32(types[i], values, 4, stored));
        convert_to_f32(types[i], stored, 4, out);
        assert_memory_equal(out, values, sizeof values);
    }
    assert_false(convert_from_f32(TENSOR_Q4_1, values, 4, stored));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q8_0_is_scale_times_code),      cmocka_unit_test(q4_0_subtracts_8_and_splits_the_block_in_halves),
        cmocka_unit_test(q4_1_adds_the_minimum),         cmocka_unit_test(q4_1_multiplies_then_adds_and_rounds_once),
        cmocka_unit_test(blocks_follow_one_another),     cmocka_unit_test(plain_types_are_read_from_any_address),
        cmocka_unit_test(what_is_written_is_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
