#include "native/text/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "native/base/buffer.h"
#include "native/base/file.h"
#include "native/text/unpack.h"

static const char LINES[] = "{\"text\": \"one\"}\n\n{\"text\": \"two\"}\n{\"text\": \"three\"}";

static void add_gzip(struct buffer *out, const void *bytes, size_t size)
{
    size_t bound = size + size / 100 + 256;
    uint8_t *packed = malloc(bound);
    z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size, .next_out = packed, .avail_out = (uInt)bound };

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    buffer_add(out, packed, z.total_out);
    deflateEnd(&z);
    free(packed);
}

static void add_zstd(struct buffer *out, const void *bytes, size_t size)
{
    size_t bound = ZSTD_compressBound(size);
    uint8_t *packed = malloc(bound);
    size_t got = ZSTD_compress(packed, bound, bytes, size, 19);

    assert_false(ZSTD_isError(got));
    buffer_add(out, packed, got);
    free(packed);
}

/* Writes the bytes to a file and opens it as rows. */
static bool open_bytes(struct rows *rows, const struct buffer *bytes, struct error *err)
{
    char path[] = "/tmp/rondo_rows_XXXXXX";
    int fd = mkstemp(path);
    bool ok;

    assert_true(fd >= 0);
    close(fd);
    assert_true(file_write(path, bytes->bytes, bytes->size, 0600, NULL));
    ok = rows_open(rows, path, err);
    unlink(path);
    return ok;
}

static void assert_lines(const struct buffer *file)
{
    static const uint32_t line[] = { 1, 3, 4 };
    struct rows rows;
    struct error err = { 0 };

    assert_true(open_bytes(&rows, file, &err));
    assert_int_equal(rows.size, strlen(LINES));
    assert_memory_equal(rows.bytes, LINES, rows.size);
    assert_int_equal(rows.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(rows.rows[i].line, line[i]);
    rows_free(&rows);
}

static void plain_gzip_and_zstd_files_hold_the_same_rows(void **state)
{
    struct buffer plain = { 0 }, gzip = { 0 }, zstd = { 0 };

    (void)state;
    buffer_add_text(&plain, LINES);
    add_gzip(&gzip, LINES, strlen(LINES));
    add_zstd(&zstd, LINES, strlen(LINES));
    assert_lines(&plain);
    assert_lines(&gzip);
    assert_lines(&zstd);
    buffer_free(&plain);
    buffer_free(&gzip);
    buffer_free(&zstd);
}

static void members_and_frames_follow_each_other(void **state)
{
    struct buffer gzip = { 0 }, zstd = { 0 };

    (void)state;
    add_gzip(&gzip, LINES, 20);
    add_gzip(&gzip, LINES + 20, strlen(LINES) - 20);
    buffer_add(&zstd, "\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11); /* a frame to skip */
    add_zstd(&zstd, LINES, 20);
    add_zstd(&zstd, LINES + 20, strlen(LINES) - 20);
    assert_lines(&gzip);
    assert_lines(&zstd);
    buffer_free(&gzip);
    buffer_free(&zstd);
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
    void (*const add[])(struct buffer *, const void *, size_t) = { add_gzip, add_zstd };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buffer packed = { 0 };

        add[i](&packed, LINES, strlen(LINES));
        for (size_t size = 4; size < packed.size; size++) {
            struct buffer out = { 0 };
            struct error err = { 0 };

            assert_false(unpack(packed.bytes, size, 1 << 20, &out, &err));
            assert_int_equal(err.code, ERROR_TRUNCATED);
            assert_true(err.hint[0]);
            buffer_free(&out);
        }
        buffer_free(&packed);
    }
}

static void a_damaged_file_is_refused_with_its_name(void **state)
{
    struct buffer gzip = { 0 };
    struct rows rows;
    struct error err = { 0 };

    (void)state;
    add_gzip(&gzip, LINES, strlen(LINES));
    gzip.bytes[gzip.size - 6] ^= 1; /* its check sum */
    assert_false(open_bytes(&rows, &gzip, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
    assert_non_null(strstr(err.place, "rondo_rows_"));
    rows_free(&rows);
    buffer_free(&gzip);
}

static void a_bomb_is_refused_before_it_is_kept(void **state)
{
    void (*const add[])(struct buffer *, const void *, size_t) = { add_gzip, add_zstd };
    enum { SIZE = 160 << 20 };
    uint8_t *zeros = calloc(1, SIZE);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buffer packed = { 0 }, out = { 0 };
        struct error err = { 0 };

        add[i](&packed, zeros, SIZE);
        assert_true(packed.size < SIZE / 900);
        assert_false(unpack(packed.bytes, packed.size, SIZE_MAX, &out, &err));
        assert_int_equal(err.code, ERROR_LIMIT);
        assert_true(out.size <= UNPACK_FREE + packed.size * UNPACK_RATIO);
        buffer_free(&out);

        error_clear(&err); /* and by the limit that is given */
        assert_false(unpack(packed.bytes, packed.size, 1000, &out, &err));
        assert_int_equal(err.code, ERROR_LIMIT);
        assert_true(out.size <= 1000);
        buffer_free(&out);
        buffer_free(&packed);
    }
    free(zeros);
}

static void a_parquet_file_is_told_how_it_becomes_jsonl(void **state)
{
    struct buffer file = { 0 };
    struct rows rows;
    struct error err = { 0 };

    (void)state;
    buffer_add_text(&file, "PAR1....PAR1");
    assert_false(open_bytes(&rows, &file, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "docs/data.md"));
    rows_free(&rows);
    buffer_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_gzip_and_zstd_files_hold_the_same_rows),
        cmocka_unit_test(members_and_frames_follow_each_other),
        cmocka_unit_test(a_file_cut_short_anywhere_is_refused),
        cmocka_unit_test(a_damaged_file_is_refused_with_its_name),
        cmocka_unit_test(a_bomb_is_refused_before_it_is_kept),
        cmocka_unit_test(a_parquet_file_is_told_how_it_becomes_jsonl),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
