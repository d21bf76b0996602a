/* Blocks, objects and states: what is read is what was stored, or an error that names it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/file.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"

static char folder[64];
static struct block_store store;
static struct error err;

static int make_store(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rondo_store_XXXXXX");
    return mkdtemp(folder) && block_store_open(folder, &store, &err) ? 0 : -1;
}

static bool delete_one(void *context, struct hash id)
{
    return block_delete(context, id, NULL);
}

static int drop_store(void **state)
{
    (void)state;
    block_each(&store, delete_one, &store, &err);
    return rmdir(folder);
}

static uint8_t *noise(size_t size, unsigned seed)
{
    uint8_t *bytes = malloc(size + 1);
    unsigned char key[randombytes_SEEDBYTES] = { (unsigned char)seed };

    randombytes_buf_deterministic(bytes, size, key);
    return bytes;
}

static void block_is_read_back_by_its_id(void **state)
{
    struct buffer out = { 0 };
    struct hash id, again;

    (void)state;
    assert_true(block_put(&store, "abc", 3, &id, &err));
    assert_true(block_put(&store, "abc", 3, &again, &err));
    assert_true(hash_equal(id, again) && block_has(&store, id));
    assert_true(block_get(&store, id, &out, &err));
    assert_int_equal(out.size, 3);
    assert_memory_equal(out.bytes, "abc", 3);
    assert_true(block_delete(&store, id, &err));
    assert_false(block_has(&store, id));
    assert_false(block_get(&store, id, &out, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_int_equal(out.size, 3);
    buffer_free(&out);
}

static void changed_byte_on_disk_is_damage_that_names_the_block(void **state)
{
    static const char tail[BLOCK_SIZE + 1];
    struct buffer out = { 0 };
    struct hash id;
    char path[200], cid[CID_TEXT];

    (void)state;
    assert_true(block_put(&store, "abc", 3, &id, &err));
    snprintf(path, sizeof path, "%s/%s", folder, cid_text(id, cid));
    assert_true(file_write(path, "abd", 3, 0644, &err));
    assert_false(block_get(&store, id, &out, &err));
    assert_int_equal(err.code, ERROR_DAMAGED);
    assert_non_null(strstr(err.message, cid));
    assert_int_equal(out.size, 0);
    assert_true(file_write(path, tail, sizeof tail, 0644, &err)); /* longer than a block may be: as much the disk's doing */
    assert_false(block_get(&store, id, &out, &err));
    assert_int_equal(err.code, ERROR_DAMAGED);
    assert_true(block_put_as(&store, id, "abc", 3, &err)); /* a good copy heals it */
    assert_true(block_get(&store, id, &out, &err));
    assert_false(block_put_as(&store, id, "abd", 3, &err));
    assert_int_equal(err.code, ERROR_MISMATCH);
    buffer_free(&out);
}

/* A copy that cannot be read now, since no descriptor is left, is not a spoiled one. */
static void block_that_cannot_be_read_now_is_kept(void **state)
{
    struct rlimit was, none = { 0, 0 };
    struct buffer out = { 0 };
    struct hash id;

    (void)state;
    assert_true(block_put(&store, "kept", 4, &id, &err));
    getrlimit(RLIMIT_NOFILE, &was);
    none.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none);

    const bool put = block_put(&store, "kept", 4, &id, &err);

    setrlimit(RLIMIT_NOFILE, &was);
    assert_false(put);
    assert_int_equal(err.code, ERROR_IO);
    err = (struct error){ 0 };
    assert_true(block_get(&store, id, &out, &err));
    buffer_free(&out);
}

static void block_above_a_mebibyte_is_refused(void **state)
{
    uint8_t *bytes = noise(BLOCK_SIZE + 1, 1);
    struct hash id;

    (void)state;
    assert_true(block_put(&store, bytes, BLOCK_SIZE, &id, &err));
    assert_false(block_put(&store, bytes, BLOCK_SIZE + 1, &id, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    free(bytes);
}

/* Without a second disk to fill, a limit on the size of files stands for it. */
static void disk_that_takes_no_more_loses_nothing(void **state)
{
    struct rlimit before, tight;
    struct hash id, big;
    struct buffer out = { 0 };
    uint8_t *bytes = noise(BLOCK_SIZE, 2);

    (void)state;
    assert_true(block_put(&store, "first", 5, &id, &err));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before, tight.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &tight);
    assert_false(block_put(&store, bytes, BLOCK_SIZE, &big, &err));
    assert_int_equal(err.code, ERROR_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(block_has(&store, big));
    assert_true(block_get(&store, id, &out, &err));
    assert_true(block_put(&store, bytes, BLOCK_SIZE, &big, &err));
    buffer_free(&out);
    free(bytes);
}

static const size_t sizes[] = {
    0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 3 * BLOCK_SIZE + 12345, 8 * BLOCK_SIZE, 17 * BLOCK_SIZE + 1
};

static void object_of_any_size_is_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *bytes = noise(sizes[i], 3);
        struct buffer out = { 0 };
        struct hash id, same;
        char path[100];

        assert_true(object_put(&store, "application/x", bytes, sizes[i], &id, &err));
        assert_true(object_id("application/x", bytes, sizes[i], &same, &err));
        assert_true(hash_equal(id, same));
        assert_true(object_get(&store, id, "application/x", sizes[i], &out, &err));
        assert_int_equal(out.size, sizes[i]);
        assert_memory_equal(out.bytes ? out.bytes : (uint8_t *)"", bytes, sizes[i]);

        snprintf(path, sizeof path, "%s.object", folder);
        assert_true(object_get_file(&store, id, "application/x", sizes[i], path, &err));
        assert_true(object_put_file(&store, "application/x", path, &same, &err));
        assert_true(hash_equal(id, same));
        unlink(path);
        buffer_free(&out);
        free(bytes);
    }
}

static void object_of_another_type_or_above_the_limit_is_refused(void **state)
{
    struct buffer out = { 0 };
    struct hash id;

    (void)state;
    assert_true(object_put(&store, "application/x", "abc", 3, &id, &err));
    assert_false(object_get(&store, id, "application/y", 3, &out, &err));
    assert_int_equal(err.code, ERROR_TYPE);
    assert_false(object_get(&store, id, "application/x", 2, &out, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    assert_int_equal(out.size, 0);
    buffer_free(&out);
}

/* object_is_file could never find such a file whole, and no judge would speak. */
static void object_in_other_chunks_is_not_laid_out_as_a_file(void **state)
{
    static const char manifest[] = "{\"chunk\":1024,\"chunks\":[\"%s\"],\"media\":\"application/x\",\"size\":3,\"version\":1}";
    char cid[CID_TEXT], text[300], path[100];
    struct hash id;

    (void)state;
    snprintf(path, sizeof path, "%s.object", folder);
    assert_true(block_put(&store, "abc", 3, &id, &err));
    snprintf(text, sizeof text, manifest, cid_text(id, cid));
    assert_true(block_put(&store, text, strlen(text), &id, &err));
    assert_false(object_get_file(&store, id, "application/x", 3, path, &err));
    assert_int_equal(err.code, ERROR_RANGE);
    assert_false(file_exists(path));
}

static void missing_chunks_are_listed_once_each(void **state)
{
    size_t size = 4 * BLOCK_SIZE + 5, count;
    uint8_t *bytes = calloc(1, size); /* four equal chunks and a short one */
    struct manifest m;
    struct hash id, *missing;
    struct buffer out = { 0 };

    (void)state;
    assert_true(object_put(&store, "application/x", bytes, size, &id, &err));
    assert_true(object_manifest(&store, id, NULL, size, &m, &err));
    assert_int_equal(m.count, 5);
    assert_true(object_missing(&store, &m, &missing, &count, &err));
    assert_int_equal(count, 0);
    free(missing);
    block_delete(&store, m.chunks[0], &err);
    block_delete(&store, m.chunks[4], &err);
    assert_true(object_missing(&store, &m, &missing, &count, &err));
    assert_int_equal(count, 2);
    free(missing);
    assert_false(object_get(&store, id, NULL, size, &out, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_int_equal(out.size, 0);
    manifest_free(&m);
    buffer_free(&out);
    free(bytes);
}

static void manifest_whose_numbers_lie_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"application/x\",\"size\":1,\"version\":1}",
        "{\"chunk\":1048576,\"chunks\":[\"abc\"],\"media\":\"application/x\",\"size\":1,\"version\":1}",
        "{\"chunk\":0,\"chunks\":[],\"media\":\"application/x\",\"size\":0,\"version\":1}",
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"\",\"size\":0,\"version\":1}",
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"application/x\",\"size\":-1,\"version\":1}",
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"application/x\",\"size\":0,\"version\":2}",
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"application/x\",\"size\":0,\"version\":1,\"x\":1}",
        "{\"chunk\":1048576,\"chunks\":[],\"media\":\"application/x\",\"size\":9007199254740991,\"version\":1}",
        "",
    };
    struct manifest m;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(manifest_parse(bad[i], strlen(bad[i]), NULL, UINT64_MAX, &m, &err));
}

/* ---- States ---- */

static const float values[6] = { 0, 1, 2, 3, 4, 5 };
static const int32_t seven = 7;
static const struct named_tensor tensors[3] = {
    { .name = "a", .code = CODE_F32, .rank = 2, .dims = { 2, 3 }, .bytes = values },
    { .name = "b", .code = CODE_I32, .rank = 0, .bytes = &seven },
    { .name = "c.empty", .code = CODE_F64, .rank = 2, .dims = { 0, 9 }, .bytes = "" },
};

static void state_is_read_back_with_the_same_root(void **state)
{
    struct buffer bytes = { 0 };
    struct hash before, after;
    struct state_object s;

    (void)state;
    assert_true(state_encode(tensors, 3, &bytes, &err));
    assert_true(state_decode(bytes.bytes, bytes.size, &s, &err));
    assert_int_equal(s.count, 3);
    assert_true(root_of_state(tensors, 3, &before, &err));
    assert_true(root_of_state(s.tensors, s.count, &after, &err));
    assert_true(hash_equal(before, after));
    assert_memory_equal(state_find(&s, "a")->bytes, values, sizeof values);
    assert_int_equal(((uintptr_t)state_find(&s, "b")->bytes - (uintptr_t)bytes.bytes) % 64, 0);
    assert_null(state_find(&s, "d"));
    state_object_free(&s);
    buffer_clear(&bytes);
    assert_true(state_encode(NULL, 0, &bytes, &err));
    assert_true(state_decode(bytes.bytes, bytes.size, &s, &err));
    assert_int_equal(s.count, 0);
    state_object_free(&s);
    buffer_free(&bytes);
}

static void state_has_one_text(void **state)
{
    struct buffer bytes = { 0 }, again = { 0 };
    struct state_object s;

    (void)state;
    assert_true(state_encode(tensors, 3, &bytes, &err));
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.bytes[i] ^= 1;
        if (state_decode(bytes.bytes, bytes.size, &s, &err)) { /* then it says something else, in that one text */
            buffer_clear(&again);
            assert_true(state_encode(s.tensors, s.count, &again, &err));
            assert_int_equal(again.size, bytes.size);
            assert_memory_equal(again.bytes, bytes.bytes, bytes.size);
            state_object_free(&s);
        }
        bytes.bytes[i] ^= 1;
    }
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(state_decode(bytes.bytes, size, &s, &err));
    buffer_add_u8(&bytes, 0);
    assert_false(state_decode(bytes.bytes, bytes.size, &s, &err));
    buffer_free(&again);
    buffer_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_is_read_back_by_its_id),
        cmocka_unit_test(changed_byte_on_disk_is_damage_that_names_the_block),
        cmocka_unit_test(block_that_cannot_be_read_now_is_kept),
        cmocka_unit_test(block_above_a_mebibyte_is_refused),
        cmocka_unit_test(disk_that_takes_no_more_loses_nothing),
        cmocka_unit_test(object_of_any_size_is_read_back),
        cmocka_unit_test(object_of_another_type_or_above_the_limit_is_refused),
        cmocka_unit_test(object_in_other_chunks_is_not_laid_out_as_a_file),
        cmocka_unit_test(missing_chunks_are_listed_once_each),
        cmocka_unit_test(manifest_whose_numbers_lie_is_refused),
        cmocka_unit_test(state_is_read_back_with_the_same_root),
        cmocka_unit_test(state_has_one_text),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, make_store, drop_store);
}
