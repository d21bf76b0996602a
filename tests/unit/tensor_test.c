#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "native/tensor/tensor.h"

static void test_sizes_of_every_type_are_those_of_its_blocks(void **state)
{
    (void)state;
    static const size_t bytes_of_256[TENSOR_TYPES] = { 1024, 1024, 2048, 512, 512, 272, 144, 160, 176, 192,
                                                       144,  136,  84,   110, 144, 176, 210, 256, 144, 140 };
    const uint64_t dims[2] = { 1, 256 };
    for (unsigned i = 0; i < TENSOR_TYPES; i++) {
        uint64_t values;
        size_t bytes;
        enum tensor_type found;
        assert_true(tensor_measure((enum tensor_type)i, 2, dims, 4096, &values, &bytes, NULL));
        assert_int_equal(values, 256);
        assert_int_equal(bytes, bytes_of_256[i]);
        assert_true(tensor_type_find(tensor_type_name((enum tensor_type)i), &found));
        assert_int_equal(found, i);
    }
}

static void test_blocks_through_a_whole_tensor_may_end_in_part(void **state)
{
    (void)state;
    const uint64_t dims[2] = { 3, 5500 }; /* 16500 values: 257 blocks and a part */
    uint64_t values;
    size_t bytes;
    assert_true(tensor_measure(TENSOR_NF4, 2, dims, SIZE_MAX, &values, &bytes, NULL));
    assert_int_equal(bytes, 258 * 36);
    assert_true(tensor_measure(TENSOR_NF4_DQ, 2, dims, SIZE_MAX, &values, &bytes, NULL));
    assert_int_equal(bytes, 258 * 33 + 2 * 8);
    assert_int_equal(tensor_block_place(TENSOR_NF4_DQ, 16384), 256 * 33 + 8);
    assert_int_equal(tensor_block_place(TENSOR_Q4_0, 64), 36);
}

static void test_products_that_overflow_and_torn_blocks_are_refused(void **state)
{
    (void)state;
    struct error err = { 0 };
    uint64_t values;
    size_t bytes;
    const uint64_t huge[2] = { UINT64_C(1) << 40, UINT64_C(1) << 40 }, torn[1] = { 33 }, wide[1] = { 1 << 20 };
    assert_false(tensor_measure(TENSOR_F32, 2, huge, SIZE_MAX, &values, &bytes, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    error_clear(&err);
    assert_false(tensor_measure(TENSOR_Q4_1, 1, torn, SIZE_MAX, &values, &bytes, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    error_clear(&err);
    assert_false(tensor_measure(TENSOR_F32, 1, wide, 4096, &values, &bytes, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
}

static void test_a_new_tensor_is_zero_and_owns_its_name(void **state)
{
    (void)state;
    struct tensor t;
    char name[8] = "w";
    const uint64_t dims[1] = { 5 };
    assert_true(tensor_new(&t, name, TENSOR_F32, 1, dims, 4096, NULL));
    name[0] = 'x';
    assert_string_equal(t.name, "w");
    for (unsigned i = 0; i < 5; i++)
        assert_true(((float *)t.data)[i] == 0);
    tensor_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_every_type_are_those_of_its_blocks),
        cmocka_unit_test(test_blocks_through_a_whole_tensor_may_end_in_part),
        cmocka_unit_test(test_products_that_overflow_and_torn_blocks_are_refused),
        cmocka_unit_test(test_a_new_tensor_is_zero_and_owns_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
