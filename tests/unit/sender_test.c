/* sender_test.c - what a sender may ask, what refusals cost, and requests that say whose they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "runtime/net/request_key.h"
#include "runtime/net/sender.h"

static struct secret_key key;

static int begin(void **state)
{
    *state = sender_table_new();
    return 0;
}

static int end(void **state)
{
    sender_table_free(*state);
    return 0;
}

static void tokens_come_back_with_time_and_no_more_than_the_burst(void **state)
{
    struct sender *s = sender_of_address(*state, "10.0.0.1", 1000);

    for (int i = 0; i < 5; i++)
        assert_true(sender_allows(s, 2, 5, 1000));
    assert_false(sender_allows(s, 2, 5, 1000));
    assert_true(sender_allows(s, 2, 5, 1500));
    assert_false(sender_allows(s, 2, 5, 1500));
    for (int i = 0; i < 5; i++)
        assert_true(sender_allows(s, 2, 5, 1000000));
    assert_false(sender_allows(s, 2, 5, 1000000));
}

static void a_ban_ends_when_half_is_forgotten(void **state)
{
    struct sender *s = sender_of_address(*state, "10.0.0.1", 0);

    for (int i = 0; i < SENDER_BAN / 10 - 1; i++)
        sender_blame(s, 10, 0);
    assert_false(sender_banned(s, 0));
    sender_blame(s, 10, 0);
    assert_true(sender_banned(s, 0));
    assert_true(sender_banned(s, SENDER_HALF_LIFE_MS / 2));
    assert_false(sender_banned(s, SENDER_HALF_LIFE_MS * 2));
}

/* However much was sent: nobody is shut out for ever. */
static void points_have_a_limit(void **state)
{
    struct sender *s = sender_of_address(*state, "10.0.0.1", 0);

    for (int i = 0; i < 1000000; i++)
        sender_blame(s, 10, (uint64_t)i);
    assert_true(sender_banned(s, 1000000));
    assert_false(sender_banned(s, 1000000 + 4 * SENDER_HALF_LIFE_MS));
}

/* One bad request now and then is forgotten, at whatever times it is asked. */
static void seldom_faults_never_ban(void **state)
{
    struct sender *s = sender_of_address(*state, "10.0.0.1", 0);
    uint64_t now = 0;

    for (int i = 0; i < 10000; i++) {
        sender_blame(s, 10, now += 2000);
        for (int j = 0; j < 10; j++)
            assert_false(sender_banned(s, now + (uint64_t)j));
    }
}

static void an_ipv6_customer_is_one_sender_and_a_key_is_not_an_address(void **state)
{
    struct public_key public = public_key_of(&key);
    struct sender *a = sender_of_address(*state, "2001:db8::1", 0);

    assert_ptr_equal(a, sender_of_address(*state, "2001:db8::ffff:2", 0));
    assert_ptr_not_equal(a, sender_of_address(*state, "2001:db8:0:1::1", 0));
    assert_ptr_not_equal(a, sender_of_key(*state, &public, 0));
    assert_ptr_equal(sender_of_key(*state, &public, 0), sender_of_key(*state, &public, 0));
}

/* Ten thousand addresses, and the one that is banned stays so. */
static void many_newcomers_do_not_push_out_who_is_banned(void **state)
{
    char address[32];

    for (int i = 0; i < SENDER_BAN / 10; i++)
        sender_blame(sender_of_address(*state, "10.9.9.9", 0), 10, 0);
    for (int i = 0; i < 10000; i++) {
        snprintf(address, sizeof address, "10.%d.%d.1", i / 250, i % 250);
        sender_blame(sender_of_address(*state, address, 1), 1, 1);
    }
    assert_true(sender_banned(sender_of_address(*state, "10.9.9.9", 1), 1));
    assert_int_equal(sender_table_banned(*state, 1), 1);
}

static void what_has_honest_causes_costs_nothing(void **state)
{
    static const enum error_code honest[] = { ERROR_STALE, ERROR_MISSING, ERROR_LIMIT, ERROR_CONFLICT, ERROR_TIMEOUT, ERROR_IO };

    (void)state;
    for (size_t i = 0; i < sizeof honest / sizeof *honest; i++)
        assert_int_equal(sender_cost(honest[i]), 0);
    assert_true(sender_cost(ERROR_SIGNATURE) > sender_cost(ERROR_REFUSED));
}

/* ---- requests that say whose they are ---- */

#define URL    "https://Node.example:7001/v1/documents?x=1"
#define ORIGIN "https://node.example:7001"
#define PATH   "/v1/documents"

static void a_header_proves_the_key_for_this_request_alone(void **state)
{
    char value[REQUEST_KEY_TEXT];
    int64_t now = request_key_now();
    struct public_key public = public_key_of(&key);
    struct request_key claim;

    (void)state;
    assert_true(request_key_make(&key, "POST", URL, "body", 4, value));
    assert_true(request_key_parse(value, &claim));
    assert_true(public_key_equal(&claim.key, &public));
    assert_true(claim.has_body && hash_equal(claim.body, hash_block("body", 4)));
    assert_true(request_key_verify(value, "POST", ORIGIN, PATH, now));
    assert_false(request_key_verify(value, "PUT", ORIGIN, PATH, now));
    assert_false(request_key_verify(value, "POST", "https://node.example:7002", PATH, now));
    assert_false(request_key_verify(value, "POST", ORIGIN, "/v1/blocks", now));
    assert_false(request_key_verify(value, "POST", ORIGIN, PATH, now + 2 * REQUEST_KEY_MS));
    assert_false(request_key_verify(value, "POST", ORIGIN, PATH, now - 2 * REQUEST_KEY_MS));
}

static void a_header_with_any_changed_character_proves_nothing(void **state)
{
    char value[REQUEST_KEY_TEXT], changed[REQUEST_KEY_TEXT];
    int64_t now = request_key_now();

    (void)state;
    assert_true(request_key_make(&key, "GET", URL, NULL, 0, value));
    assert_true(request_key_verify(value, "GET", ORIGIN, PATH, now));
    for (size_t i = 0; i < strlen(value); i++) {
        strcpy(changed, value);
        changed[i] = changed[i] == '7' ? '8' : '7';
        assert_false(request_key_verify(changed, "GET", ORIGIN, PATH, now));
    }
    for (size_t i = 0; i < strlen(value); i++) {
        strcpy(changed, value);
        changed[i] = '\0';
        assert_false(request_key_verify(changed, "GET", ORIGIN, PATH, now));
    }
    assert_false(request_key_verify("", "GET", ORIGIN, PATH, now));
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(tokens_come_back_with_time_and_no_more_than_the_burst),
        T(a_ban_ends_when_half_is_forgotten),
        T(points_have_a_limit),
        T(seldom_faults_never_ban),
        T(an_ipv6_customer_is_one_sender_and_a_key_is_not_an_address),
        T(many_newcomers_do_not_push_out_who_is_banned),
        T(what_has_honest_causes_costs_nothing),
        T(a_header_proves_the_key_for_this_request_alone),
        T(a_header_with_any_changed_character_proves_nothing),
    };

    if (sodium_init() < 0)
        return 1;
    secret_key_new(&key);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
