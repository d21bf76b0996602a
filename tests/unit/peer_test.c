/* peer_test.c - who is asked next, and how soon a silent peer is asked again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/net/peer.h"

#define A      "did:tenzro:machine:zA"
#define B      "did:tenzro:machine:zB"
#define C      "did:tenzro:machine:zC"
#define MINUTE 60000

static struct error err;

static int begin(void **state)
{
    struct peer_list *list = peer_list_new();

    assert_true(peer_list_put(list, B, "http://127.0.0.1:2/", 0, &err));
    assert_true(peer_list_put(list, C, "http://127.0.0.1:3", 0, &err));
    assert_true(peer_list_put(list, A, "https://a.example///", 0, &err));
    *state = list;
    return 0;
}

static int end(void **state)
{
    peer_list_free(*state);
    return 0;
}

static void peers_stand_in_did_order_with_clean_endpoints(void **state)
{
    struct peer_list *list = *state;

    assert_int_equal(peer_list_count(list), 3);
    assert_string_equal(peer_list_at(list, 0)->did, A);
    assert_string_equal(peer_list_at(list, 0)->endpoint, "https://a.example");
    assert_string_equal(peer_list_at(list, 2)->did, C);
    assert_null(peer_list_find(list, "did:tenzro:machine:zD"));
    peer_list_remove(list, B);
    peer_list_remove(list, B);
    assert_int_equal(peer_list_count(list), 2);
    assert_string_equal(peer_list_at(list, 1)->did, C);
}

static void malformed_dids_and_endpoints_are_refused(void **state)
{
    static const char *const bad[] = { "", "http://", "ftp://x", "http://a b", "javascript:x", "http://\n" };
    char longer[PEER_ENDPOINT + 8] = "http://";

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(peer_list_put(*state, A, bad[i], 0, &err));
    memset(longer + 7, 'a', sizeof longer - 8);
    assert_false(peer_list_put(*state, A, longer, 0, &err));
    assert_false(peer_list_put(*state, "dad:x", "http://x", 0, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
}

static void the_best_peer_that_may_be_tried_is_picked(void **state)
{
    struct peer_list *list = *state;
    const char *except[] = { B };

    peer_list_note(list, B, PEER_GOOD, 10);
    assert_string_equal(peer_list_pick(list, 10, NULL, 0)->did, B);
    assert_string_not_equal(peer_list_pick(list, 10, except, 1)->did, B);
    peer_list_note(list, B, PEER_BAD, 10);
    assert_string_not_equal(peer_list_pick(list, 5000, NULL, 0)->did, B);
}

static void equals_take_turns(void **state)
{
    struct peer_list *list = *state;
    const char *first, *second;

    first = peer_list_pick(list, 0, NULL, 0)->did;
    peer_list_note(list, first, PEER_SILENT, 1);
    second = peer_list_pick(list, 10000, NULL, 0)->did;
    assert_string_not_equal(first, second);
}

static void silence_delays_the_next_try_longer_and_longer(void **state)
{
    static const unsigned waits[] = { 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
    struct peer_list *list = *state;
    uint64_t now = 0;

    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        peer_list_note(list, A, PEER_SILENT, now);
        assert_int_equal(peer_list_find(list, A)->retry_ms, now + waits[i]);
        now += waits[i];
    }
    peer_list_note(list, A, PEER_GOOD, now);
    assert_int_equal(peer_list_find(list, A)->retry_ms, 0);
    peer_list_note(list, A, PEER_SILENT, now);
    assert_int_equal(peer_list_find(list, A)->retry_ms, now + 250);
}

static void a_new_endpoint_is_tried_at_once(void **state)
{
    struct peer_list *list = *state;

    peer_list_note(list, A, PEER_SILENT, 0);
    assert_true(peer_list_put(list, A, "https://b.example", 0, &err));
    assert_int_equal(peer_list_find(list, A)->retry_ms, 0);
}

static void nobody_is_shut_out_for_ever(void **state)
{
    struct peer_list *list = *state;

    for (int i = 0; i < 5; i++)
        peer_list_note(list, A, PEER_BAD, 0);
    assert_int_equal(peer_list_find(list, A)->score, 0);
    peer_list_note(list, A, PEER_GOOD, 10 * MINUTE);
    assert_int_equal(peer_list_find(list, A)->score, 300);
    peer_list_note(list, A, PEER_GOOD, 200 * MINUTE);
    assert_int_equal(peer_list_find(list, A)->score, 550);
}

static void all_silent_means_nobody_now(void **state)
{
    static const char *const all[] = { A, B, C };

    for (int i = 0; i < 3; i++)
        peer_list_note(*state, all[i], PEER_SILENT, 100);
    assert_null(peer_list_pick(*state, 200, NULL, 0));
    assert_non_null(peer_list_pick(*state, 350, NULL, 0));
}

static void the_list_has_a_limit(void **state)
{
    char did[64];

    for (int i = 0; i < PEER_LIMIT - 3; i++) {
        snprintf(did, sizeof did, "did:key:z%d", i);
        assert_true(peer_list_put(*state, did, "http://x", 0, &err));
    }
    assert_false(peer_list_put(*state, "did:key:one-more", "http://x", 0, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(peers_stand_in_did_order_with_clean_endpoints),
        T(malformed_dids_and_endpoints_are_refused),
        T(the_best_peer_that_may_be_tried_is_picked),
        T(equals_take_turns),
        T(silence_delays_the_next_try_longer_and_longer),
        T(a_new_endpoint_is_tried_at_once),
        T(nobody_is_shut_out_for_ever),
        T(all_silent_means_nobody_now),
        T(the_list_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
