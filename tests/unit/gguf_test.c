/* gguf_test.c - the format of GGUF files: values, tensors, and files that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/gguf_writer.h"

static void expect(const struct buffer *b, enum error_code code)
{
    struct gguf file;
    struct error err = { 0 };

    assert_int_equal(gguf_of(&file, b->bytes, b->size, &err), code == ERROR_NONE);
    if (err.code != code)
        print_message("%s: %s\n", err.place, err.message);
    assert_int_equal(err.code, code);
    gguf_close(&file);
}

static void values_of_all_kinds_are_read(void **state)
{
    static const char *const words[] = { "one", "", "three" };
    struct buffer b = { 0 };
    struct gguf file;
    struct text_slice text;
    int64_t integer;
    double real;
    bool boolean;
    size_t count;
    (void)state;

    put_start(&b, 0, 7);
    put_u32(&b, "u", 7);
    put_string(&b, "s", "text");
    put_f32(&b, "f", 0.5f);
    put_strings(&b, "words", words, 3);
    put_text(&b, "minus");
    buffer_add_u32(&b, GGUF_I8);
    buffer_add_u8(&b, 0xfe);
    put_text(&b, "yes");
    buffer_add_u32(&b, GGUF_BOOL);
    buffer_add_u8(&b, 1);
    put_text(&b, "numbers");
    buffer_add_u32(&b, GGUF_ARRAY);
    buffer_add_u32(&b, GGUF_U16);
    buffer_add_u64(&b, 2);
    buffer_add_u32(&b, 0xffff0003);
    assert_true(gguf_of(&file, b.bytes, b.size, NULL));
    assert_true(gguf_integer(&file, "u", &integer) && integer == 7);
    assert_true(gguf_integer(&file, "minus", &integer) && integer == -2);
    assert_true(gguf_real(&file, "f", &real) && real == 0.5);
    assert_true(gguf_real(&file, "u", &real) && real == 7);
    assert_true(gguf_boolean(&file, "yes", &boolean) && boolean);
    assert_true(gguf_text(&file, "s", &text) && text.size == 4 && memcmp(text.bytes, "text", 4) == 0);
    assert_false(gguf_text(&file, "u", &text) || gguf_integer(&file, "s", &integer) || gguf_integer(&file, "absent", &integer));
    struct text_slice *texts = gguf_texts(&file, "words", &count);

    assert_int_equal(count, 3);
    assert_int_equal(texts[1].size, 0);
    assert_memory_equal(texts[2].bytes, "three", 5);
    free(texts);
    int32_t *numbers = gguf_integers(&file, "numbers", &count);

    assert_int_equal(count, 2);
    assert_true(numbers[0] == 3 && numbers[1] == 65535);
    free(numbers);
    gguf_close(&file);
    buffer_free(&b);
}

static void tensors_have_their_slowest_dimension_first(void **state)
{
    struct buffer b = { 0 };
    struct gguf file;
    (void)state;

    put_start(&b, 2, 0);
    put_tensor(&b, "m", 3, 32, 8, 0);
    put_tensor(&b, "a", 0, 2, 0, 128);
    put_padding(&b);
    for (unsigned i = 0; i < 136; i++)
        buffer_add_u8(&b, (uint8_t)i);
    assert_true(gguf_of(&file, b.bytes, b.size, NULL));
    assert_string_equal(file.tensors[0].name, "a");
    assert_int_equal(*(const uint8_t *)file.tensors[0].data, 128);
    assert_int_equal(file.tensors[1].type, TENSOR_Q8_0);
    assert_int_equal(file.tensors[1].dims[0], 3);
    assert_int_equal(file.tensors[1].dims[1], 32);
    assert_int_equal(file.tensors[1].size, 3 * 34);
    gguf_close(&file);
    for (size_t size = 0; size < b.size; size++) {
        struct error err = { 0 };

        assert_false(gguf_of(&file, b.bytes, size, &err));
        assert_int_equal(err.code, ERROR_TRUNCATED);
        gguf_close(&file);
    }
    buffer_free(&b);
}

/* A file with one tensor entry and 64 bytes of data. */
static void expect_tensor(uint64_t rows, uint64_t columns, uint32_t type, uint64_t offset, enum error_code code)
{
    struct buffer b = { 0 };

    put_start(&b, 1, 0);
    put_tensor(&b, "t", rows, columns, type, offset);
    put_padding(&b);
    for (unsigned i = 0; i < 64; i++)
        buffer_add_u8(&b, 0);
    expect(&b, code);
    buffer_free(&b);
}

static void lying_tensors_are_refused(void **state)
{
    (void)state;
    expect_tensor(2, 8, 0, 0, ERROR_NONE);
    expect_tensor(2, 8, 0, 32, ERROR_TRUNCATED);
    expect_tensor(0, 1, 0, UINT64_MAX - 31, ERROR_TRUNCATED);
    expect_tensor(0, 1, 0, 4, ERROR_RANGE);
    expect_tensor(1, 31, 8, 0, ERROR_SHAPE);
    expect_tensor(UINT64_MAX, 8, 0, 0, ERROR_LIMIT);
    expect_tensor(UINT64_MAX / 8, 1, 0, 0, ERROR_TRUNCATED);
    expect_tensor(UINT64_MAX / 2, 1, 0, 0, ERROR_LIMIT);
    expect_tensor(1, 256, 16, 0, ERROR_UNSUPPORTED);
    expect_tensor(1, 1, 999, 0, ERROR_UNSUPPORTED);
}

static void lying_headers_are_refused(void **state)
{
    struct buffer b = { 0 };
    (void)state;

    put_start(&b, 0, 0);
    expect(&b, ERROR_NONE);
    b.bytes[0] = 'X';
    expect(&b, ERROR_SYNTAX);
    b.bytes[0] = 'G', b.bytes[4] = 1;
    expect(&b, ERROR_UNSUPPORTED);
    b.bytes[4] = 0, b.bytes[7] = 3; /* big-endian */
    expect(&b, ERROR_UNSUPPORTED);
    b.bytes[4] = 3, b.bytes[7] = 0, b.bytes[15] = 1; /* 2^56 tensors */
    expect(&b, ERROR_LIMIT);
    b.bytes[15] = 0, b.bytes[23] = 1; /* 2^56 keys */
    expect(&b, ERROR_LIMIT);
    buffer_clear(&b);
    put_start(&b, 0, 2);
    put_u32(&b, "k", 1);
    put_u32(&b, "k", 2);
    expect(&b, ERROR_DUPLICATE);
    buffer_clear(&b);
    put_start(&b, 0, 1);
    put_u32(&b, "general.alignment", 24);
    expect(&b, ERROR_RANGE);
    buffer_clear(&b);
    put_start(&b, 0, 1);
    put_string(&b, "general.alignment", "32");
    expect(&b, ERROR_TYPE);
    buffer_free(&b);
}

static void expect_array(uint32_t type, uint32_t element, uint64_t count, enum error_code code)
{
    struct buffer b = { 0 };

    put_start(&b, 0, 1);
    put_text(&b, "k");
    buffer_add_u32(&b, type);
    buffer_add_u32(&b, element);
    buffer_add_u64(&b, count);
    buffer_add_u64(&b, 0);
    expect(&b, code);
    buffer_free(&b);
}

static void lying_values_are_refused(void **state)
{
    (void)state;
    expect_array(GGUF_ARRAY, GGUF_U8, 8, ERROR_NONE);
    expect_array(GGUF_ARRAY, GGUF_U8, 9, ERROR_TRUNCATED);
    expect_array(GGUF_ARRAY, GGUF_U32, UINT64_MAX / 2, ERROR_TRUNCATED);
    expect_array(GGUF_ARRAY, GGUF_STRING, UINT64_MAX, ERROR_TRUNCATED);
    expect_array(GGUF_ARRAY, GGUF_ARRAY, 1, ERROR_UNSUPPORTED);
    expect_array(GGUF_ARRAY, 13, 1, ERROR_SYNTAX);
    expect_array(13, 0, 0, ERROR_SYNTAX);
    expect_array(GGUF_STRING, 0xffffffff, UINT64_MAX, ERROR_TRUNCATED);
}

static void overlapping_tensors_are_refused(void **state)
{
    struct buffer b = { 0 };
    (void)state;

    put_start(&b, 2, 0);
    put_tensor(&b, "a", 0, 9, 0, 0);
    put_tensor(&b, "b", 0, 1, 0, 32);
    put_padding(&b);
    for (unsigned i = 0; i < 64; i++)
        buffer_add_u8(&b, 0);
    expect(&b, ERROR_CONFLICT);
    buffer_clear(&b);
    put_start(&b, 2, 0);
    put_tensor(&b, "a", 0, 1, 0, 0);
    put_tensor(&b, "a", 0, 1, 0, 32);
    put_padding(&b);
    for (unsigned i = 0; i < 64; i++)
        buffer_add_u8(&b, 0);
    expect(&b, ERROR_DUPLICATE);
    buffer_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_all_kinds_are_read), cmocka_unit_test(tensors_have_their_slowest_dimension_first),
        cmocka_unit_test(lying_tensors_are_refused),    cmocka_unit_test(lying_headers_are_refused),
        cmocka_unit_test(lying_values_are_refused),     cmocka_unit_test(overlapping_tensors_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
