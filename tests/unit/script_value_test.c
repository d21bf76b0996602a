/* Values on the pipe between host and child, and numbers as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/script/value.h"

static void numbers_print_as_the_shortest_text_that_reads_back(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } known[] = {
        { 0.1, "0.1" },           { 1.0 / 3, "0.3333333333333333" },
        { 1e21, "1e21" },         { 123456789012345680000.0, "123456789012345680000" },
        { 1e-7, "1e-7" },         { 1.5e-10, "1.5e-10" },
        { -0.0, "-0" },           { 100, "100" },
        { 0.000001, "0.000001" }, { 0.00012, "0.00012" },
        { 5e-324, "5e-324" },     { 1.7976931348623157e308, "1.7976931348623157e308" },
        { INFINITY, "inf" },      { -INFINITY, "-inf" },
        { 12.5, "12.5" },         { 9007199254740993.0, "9007199254740992" },
    };
    char text[32];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(value_number_text(known[i].x, text), known[i].text);
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        double x, y;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        memcpy(&x, &seed, sizeof x);
        if (!isfinite(x))
            continue;
        assert_true(strlen(value_number_text(x, text)) < sizeof text);
        y = strtod(text, NULL);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static void values_cross_unchanged(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": [1, -2, true, false, \"x\"], \"b\": {\"c\": {}}, \"d\": null, \"e\": 9007199254740992, \"f\": 0.5}";
    json_t *in = json_loads(text, 0, NULL);
    struct buffer bytes = { 0 };
    assert_true(value_write(&bytes, in, NULL));
    struct reader r = reader_of(bytes.bytes, bytes.size);
    json_t *out = value_read(&r, NULL);
    assert_non_null(out);
    assert_int_equal(reader_left(&r), 0);
    json_object_set_new(in, "f", json_string("0.5")); /* what is no integer comes back as decimal text */
    assert_true(json_equal(in, out));
    json_decref(in);
    json_decref(out);
    buffer_free(&bytes);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    json_t *in = json_pack("{s:[i,b,s],s:{s:f}}", "list", 3, 1, "text", "map", "x", 0.25);
    struct buffer bytes = { 0 };
    assert_true(value_write(&bytes, in, NULL));
    for (size_t n = 0; n < bytes.size; n++) {
        struct reader r = reader_of(bytes.bytes, n);
        struct error err = { .code = ERROR_NONE };
        assert_null(value_read(&r, &err));
        assert_int_not_equal(err.code, ERROR_NONE);
    }
    json_decref(in);
    buffer_free(&bytes);
}

static enum error_code refusal(const void *bytes, size_t size)
{
    struct error err = { .code = ERROR_NONE };
    struct reader r = reader_of(bytes, size);
    assert_null(value_read(&r, &err));
    return err.code;
}

static void lies_about_sizes_depth_and_numbers_are_refused(void **state)
{
    (void)state;
    assert_int_equal(refusal("\5\377\377\377\377\0", 6), ERROR_TRUNCATED);
    assert_int_equal(refusal("\6\377\377\377\177", 5), ERROR_TRUNCATED);
    assert_int_equal(refusal("\4\377\377\377\377x", 6), ERROR_TRUNCATED);
    assert_int_equal(refusal("\11", 1), ERROR_SYNTAX);
    assert_int_equal(refusal("\3\0\0\0\0\0\0\370\177", 9), ERROR_NON_FINITE);
    assert_int_equal(refusal("\4\1\0\0\0\351", 6), ERROR_SCRIPT);
    assert_int_equal(refusal("\6\2\0\0\0\1\0\0\0a\1\1\0\0\0a\1", 17), ERROR_SCRIPT);
    struct buffer deep = { 0 };
    for (int i = 0; i < 100; i++) {
        buffer_add_u8(&deep, VALUE_LIST);
        buffer_add_u32(&deep, 1);
    }
    buffer_add_u8(&deep, VALUE_NIL);
    assert_int_equal(refusal(deep.bytes, deep.size), ERROR_LIMIT);
    buffer_free(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_print_as_the_shortest_text_that_reads_back),
        cmocka_unit_test(values_cross_unchanged),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(lies_about_sizes_depth_and_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
