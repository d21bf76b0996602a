/* Blocks that travel in a message: what is packed is read back, what does not fit stays behind, what is no block is refused. */
#include "runtime/role/carried.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/store/object.h"
#include "tests/fixture/fixture.h"

static struct hash object_of(struct fixture_place *p, size_t size)
{
    uint8_t *bytes = malloc(size);
    struct error err = { 0 };
    struct hash id;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + size);
    FIXTURE_OK(object_put(&p->blocks, "application/test", bytes, size, &id, &err), &err);
    free(bytes);
    return id;
}

static void an_object_is_read_back_manifest_first(void **state)
{
    struct fixture_place *p = *state;
    struct hash object = object_of(p, 1000), id;
    json_t *blocks = json_array();
    struct error err = { 0 };
    size_t room = CARRIED_MOST;

    carried_add(&p->blocks, object, blocks, &room);
    assert_int_equal(json_array_size(blocks), 2);
    for (size_t i = 0; i < 2; i++) {
        struct buffer bytes = { 0 };

        FIXTURE_OK(carried_read(json_array_get(blocks, i), &id, &bytes, &err), &err);
        assert_true(hash_equal(hash_block(bytes.bytes, bytes.size), id));
        assert_true(hash_equal(id, object) == (i == 0));
        assert_int_equal(bytes.size == 1000, i == 1);
        room += bytes.size;
        buffer_free(&bytes);
    }
    assert_int_equal(room, CARRIED_MOST);
    json_decref(blocks);
}

static void what_does_not_fit_and_all_after_it_stays_behind(void **state)
{
    struct fixture_place *p = *state;
    struct hash large = object_of(p, CARRIED_MOST + 1), small = object_of(p, 10);
    json_t *blocks = json_array();
    size_t room = CARRIED_MOST;

    carried_add(&p->blocks, large, blocks, &room);
    carried_add(&p->blocks, small, blocks, &room);
    assert_int_equal(json_array_size(blocks), 1); /* the large one's manifest */
    assert_int_equal(room, 0);
    json_decref(blocks);
}

static void an_object_that_is_not_here_is_left_out(void **state)
{
    struct fixture_place *p = *state;
    json_t *blocks = json_array();
    size_t room = CARRIED_MOST;

    carried_add(&p->blocks, hash_block("nothing", 7), blocks, &room);
    assert_int_equal(json_array_size(blocks), 0);
    assert_int_equal(room, CARRIED_MOST);
    json_decref(blocks);
}

static enum error_code refusal(json_t *block)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;

    assert_false(carried_read(block, &id, &bytes, &err));
    buffer_free(&bytes);
    json_decref(block);
    return err.code;
}

static void what_is_no_block_is_refused(void **state)
{
    char cid[CID_TEXT], *long_text = malloc(2 * CARRIED_MOST);

    (void)state;
    cid_text(hash_block("x", 1), cid);
    assert_int_equal(refusal(json_string("x")), ERROR_TYPE);
    assert_int_equal(refusal(json_pack("{s:s}", "cid", cid)), ERROR_TYPE);
    assert_int_equal(refusal(json_pack("{s:s, s:i}", "cid", cid, "bytes", 1)), ERROR_TYPE);
    assert_int_equal(refusal(json_pack("{s:s, s:s}", "cid", cid, "bytes", "eA")), ERROR_TYPE); /* padding is missing */
    assert_int_equal(refusal(json_pack("{s:s, s:s}", "cid", cid, "bytes", "e A==")), ERROR_TYPE);
    memset(long_text, 'A', 2 * CARRIED_MOST);
    assert_int_equal(refusal(json_pack("{s:s, s:s%}", "cid", cid, "bytes", long_text, (size_t)(2 * CARRIED_MOST))), ERROR_LIMIT);
    free(long_text);
    assert_int_not_equal(refusal(json_pack("{s:s, s:s}", "cid", "no cid", "bytes", "eA==")), ERROR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_object_is_read_back_manifest_first, fixture_place_new, fixture_place_free),
        cmocka_unit_test_setup_teardown(what_does_not_fit_and_all_after_it_stays_behind, fixture_place_new, fixture_place_free),
        cmocka_unit_test_setup_teardown(an_object_that_is_not_here_is_left_out, fixture_place_new, fixture_place_free),
        cmocka_unit_test(what_is_no_block_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
