#include "runtime/worker/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void check_frame(json_t *value, const struct buffer *bytes, const char *text, const char *want)
{
    char *got = json_dumps(value, JSON_COMPACT);

    assert_string_equal(got, text);
    assert_int_equal(bytes->size, strlen(want));
    assert_memory_equal(bytes->bytes, want, bytes->size);
    free(got);
    json_decref(value);
}

static void add(struct buffer *out, int id, const char *bytes)
{
    json_t *value = json_pack("{s:i}", "id", id);

    frame_add(out, value, bytes, strlen(bytes));
    json_decref(value);
}

static void frames_come_out_as_they_went_in_and_leave_what_follows(void **state)
{
    struct buffer in = { 0 }, bytes = { 0 };
    struct error err = { 0 };
    json_t *value;

    (void)state;
    add(&in, 1, "payload");
    add(&in, 2, "");
    assert_true(frame_take(&in, &value, &bytes, &err));
    check_frame(value, &bytes, "{\"id\":1}", "payload");
    buffer_clear(&bytes);
    assert_true(frame_take(&in, &value, &bytes, &err));
    check_frame(value, &bytes, "{\"id\":2}", "");
    assert_int_equal(in.size, 0);
    assert_false(frame_take(&in, &value, &bytes, &err));
    assert_int_equal(err.code, ERROR_NONE);
    buffer_free(&in);
    buffer_free(&bytes);
}

static void a_frame_that_comes_byte_by_byte_is_whole_at_its_last(void **state)
{
    struct buffer whole = { 0 }, in = { 0 }, bytes = { 0 };
    struct error err = { 0 };
    json_t *value;

    (void)state;
    add(&whole, 7, "abc");
    for (size_t i = 0; i < whole.size; i++) {
        assert_false(frame_take(&in, &value, &bytes, &err));
        assert_int_equal(err.code, ERROR_NONE);
        buffer_add_u8(&in, whole.bytes[i]);
    }
    assert_true(frame_take(&in, &value, &bytes, &err));
    check_frame(value, &bytes, "{\"id\":7}", "abc");
    buffer_free(&whole);
    buffer_free(&in);
    buffer_free(&bytes);
}

static enum error_code code_of(uint32_t json, uint64_t size, const char *rest)
{
    struct buffer in = { 0 }, bytes = { 0 };
    struct error err = { 0 };
    json_t *value;

    buffer_add_u32(&in, json);
    buffer_add_u64(&in, size);
    buffer_add_text(&in, rest);
    assert_false(frame_take(&in, &value, &bytes, &err));
    buffer_free(&in);
    buffer_free(&bytes);
    return err.code;
}

static void sizes_beyond_the_limits_and_bad_json_are_refused(void **state)
{
    (void)state;
    assert_int_equal(code_of(FRAME_JSON_MOST + 1u, 0, ""), ERROR_LIMIT);
    assert_int_equal(code_of(2, FRAME_BYTES_MOST + 1, "{}"), ERROR_LIMIT);
    assert_int_equal(code_of(2, UINT64_MAX, "{}"), ERROR_LIMIT);
    assert_int_equal(code_of(2, FRAME_BYTES_MOST, "{}"), ERROR_NONE); /* more to come */
    assert_int_not_equal(code_of(3, 0, "{x}"), ERROR_NONE);
    assert_int_not_equal(code_of(0, 0, ""), ERROR_NONE);
    assert_int_not_equal(code_of(16, 0, "{\"a\":1,   \"a\":2}"), ERROR_NONE); /* a name twice */
}

/* Writes `size` bytes of one frame to a pipe, closes it, and reads. */
static enum error_code read_cut(size_t cut, bool *good)
{
    struct buffer whole = { 0 }, bytes = { 0 };
    struct error err = { 0 };
    json_t *value = NULL;
    int ends[2];

    add(&whole, 3, "xyz");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], whole.bytes, whole.size - cut), (ssize_t)(whole.size - cut));
    close(ends[1]);
    *good = frame_read(ends[0], &value, &bytes, &err);
    if (*good)
        check_frame(value, &bytes, "{\"id\":3}", "xyz");
    close(ends[0]);
    buffer_free(&whole);
    buffer_free(&bytes);
    return err.code;
}

static void an_end_between_frames_is_no_fault_and_one_inside_is(void **state)
{
    bool good;

    (void)state;
    assert_int_equal(read_cut(0, &good), ERROR_NONE);
    assert_true(good);
    for (size_t cut = 1; cut < 23; cut++) {
        assert_int_equal(read_cut(cut, &good), ERROR_TRUNCATED);
        assert_false(good);
    }
    assert_int_equal(read_cut(23, &good), ERROR_NONE);
    assert_false(good);
}

static void writing_and_reading_descriptors_agree(void **state)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    json_t *value = json_pack("{s:i}", "id", 9);
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(frame_write(ends[1], value, "0123456789", 10, &err));
    assert_true(frame_write(ends[1], value, NULL, 0, &err));
    json_decref(value);
    assert_true(frame_read(ends[0], &value, &bytes, &err));
    check_frame(value, &bytes, "{\"id\":9}", "0123456789");
    buffer_clear(&bytes);
    assert_true(frame_read(ends[0], &value, &bytes, &err));
    check_frame(value, &bytes, "{\"id\":9}", "");
    close(ends[0]);
    close(ends[1]);
    buffer_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_as_they_went_in_and_leave_what_follows),
        cmocka_unit_test(a_frame_that_comes_byte_by_byte_is_whole_at_its_last),
        cmocka_unit_test(sizes_beyond_the_limits_and_bad_json_are_refused),
        cmocka_unit_test(an_end_between_frames_is_no_fault_and_one_inside_is),
        cmocka_unit_test(writing_and_reading_descriptors_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
