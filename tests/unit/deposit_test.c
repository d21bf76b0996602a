/* deposit.h: who locks what, and who gets it; no unit of money comes or goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/deposit.h"
#include "runtime/round/membership.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

#define ACCOUNT(letter) "0x00000000000000000000000000000000000000" letter letter

static struct rules rules;

static int start(void **state)
{
    (void)state;
    rules = (struct rules){ .run = "bafk2bzarun", .stake = "101", .deposit = "40", .trainers_limit = 8 };
    rules.spec = json_pack("{ssss}", "sponsor", "did:sponsor", "account", ACCOUNT("f"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(rules.spec);
    return 0;
}

static json_t *member(const char *did, const char *role, const char *account)
{
    return json_pack("{ssssss}", "did", did, "role", role, "account", account);
}

/* Trainers a and b, challenger c. */
static json_t *members(void)
{
    return json_pack("[ooo]", member("did:a", "trainer", ACCOUNT("a")), member("did:b", "trainer", ACCOUNT("b")),
                     member("did:c", "auditor", ACCOUNT("c")));
}

static json_t *locked(void)
{
    json_t *all = members();
    struct deposits out = deposits_after(&(struct deposits_input){ .rules = &rules, .members = all });

    assert_int_equal(json_array_size(out.returned), 0);
    json_decref(out.returned);
    json_decref(all);
    return json_pack("{so}", "deposits", out.held);
}

static unsigned __int128 amount_of(const json_t *list, const char *account)
{
    unsigned __int128 sum = 0;
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one) sum +=
        !account || value_is(one, "account", account) ? payout_parse(value_text(one, "amount")) : 0;
    return sum;
}

static void each_role_locks_what_the_spec_says(void **state)
{
    json_t *record = locked(), *held = json_object_get(record, "deposits");
    (void)state;
    assert_int_equal(json_array_size(held), 3);
    assert_string_equal(value_text(value_find(held, "did", "did:a"), "amount"), "101");
    assert_string_equal(value_text(value_find(held, "did", "did:c"), "amount"), "40");
    assert_null(deposit_due(&rules, "did:s", "syncer"));
    rules.allowed = json_pack("[s]", "did:c");
    assert_null(deposit_due(&rules, "did:c", "auditor")); /* the list vouches for it */
    assert_non_null(deposit_due(&rules, "did:d", "auditor"));
    json_decref(rules.allowed);
    rules.allowed = NULL;
    assert_false(hash_equal(deposit_run("run", "did:a"), deposit_run("run", "did:b")));
    assert_false(hash_equal(deposit_run("run", "did:a"), deposit_run("ru", "ndid:a")));
    json_decref(record);
}

static void half_of_a_stake_is_for_who_proved_the_lie(void **state)
{
    json_t *record = locked(), *convicted = json_pack("[{sssi}]", "did", "did:a", "round", 1), *left = members(), *line, *paid;
    json_t *upheld = json_pack("[{sssissss}{sssissss}{sssissss}]", "did", "did:a", "round", 1, "by", "did:c", "account",
                               ACCOUNT("c"), "did", "did:a", "round", 1, "by", "did:b", "account", ACCOUNT("b"), "did", "did:a",
                               "round", 2, "by", "did:c", "account", ACCOUNT("c")); /* who showed it twice has one share */
    (void)state;
    json_array_remove(left, 0);
    struct deposits out = deposits_after(&(struct deposits_input){
        .rules = &rules, .previous = record, .members = left, .convicted = convicted, .upheld = upheld });
    assert_int_equal(json_array_size(out.held), 2);
    assert_int_equal(json_array_size(out.returned), 1);
    line = json_array_get(out.returned, 0);
    paid = json_object_get(line, "payees");
    assert_string_equal(value_text(line, "cause"), "convicted");
    assert_string_equal(value_text(line, "total"), "101");
    assert_true(amount_of(paid, ACCOUNT("c")) == 25 && amount_of(paid, ACCOUNT("b")) == 25 &&
                amount_of(paid, ACCOUNT("f")) == 51);
    json_decref(out.held);
    json_decref(out.returned);
    /* Without a dispute, two statements say: all of it is the sponsor's. */
    out =
        deposits_after(&(struct deposits_input){ .rules = &rules, .previous = record, .members = left, .convicted = convicted });
    paid = json_object_get(json_array_get(out.returned, 0), "payees");
    assert_true(amount_of(paid, ACCOUNT("f")) == 101 && amount_of(paid, NULL) == 101);
    json_decref(out.held);
    json_decref(out.returned);
    json_decref(record);
    json_decref(convicted);
    json_decref(upheld);
    json_decref(left);
}

static void who_challenged_for_nothing_pays_the_accused(void **state)
{
    json_t *record = locked(), *rejected = json_pack("[{ssssss}]", "did", "did:c", "accused", "did:b", "account", ACCOUNT("b")),
           *left = members(), *paid;
    (void)state;
    json_array_remove(left, 2);
    struct deposits out =
        deposits_after(&(struct deposits_input){ .rules = &rules, .previous = record, .members = left, .rejected = rejected });
    assert_int_equal(json_array_size(out.returned), 1);
    paid = json_object_get(json_array_get(out.returned, 0), "payees");
    assert_string_equal(value_text(json_array_get(out.returned, 0), "cause"), "rejected");
    assert_true(amount_of(paid, ACCOUNT("b")) == 40 && amount_of(paid, NULL) == 40);
    json_decref(out.held);
    json_decref(out.returned);
    json_decref(record);
    json_decref(rejected);
    json_decref(left);
}

static void what_is_left_goes_back_when_the_run_is_over(void **state)
{
    json_t *record = locked(), *left = json_array(), *one; /* all have left, and none is forgotten */
    size_t i;
    (void)state;
    struct deposits out =
        deposits_after(&(struct deposits_input){ .rules = &rules, .previous = record, .members = left, .over = true });
    assert_int_equal(json_array_size(out.held), 0);
    assert_int_equal(json_array_size(out.returned), 3);
    json_array_foreach(out.returned, i, one)
    {
        assert_string_equal(value_text(one, "cause"), "over");
        assert_true(amount_of(json_object_get(one, "payees"), value_text(one, "account")) ==
                    payout_parse(value_text(one, "total")));
    }
    json_decref(out.held);
    json_decref(out.returned);
    json_decref(record);
    json_decref(left);
}

static json_t *enrolment(const char *did, const char *role, const char *account)
{
    return json_pack("{ssssssss}", "run", rules.run, "signer", did, "role", role, "account", account);
}

static void expect(const json_t *record, json_t *payload, const char *code)
{
    assert_string_equal(membership_code(&rules, record, "enrolment", payload), code);
    json_decref(payload);
}

static void an_open_run_admits_whoever_locks_and_nobody_twice(void **state)
{
    json_t *record = locked();
    (void)state;
    json_object_set_new(record, "barred", json_pack("[s]", "did:d"));
    expect(record, enrolment("did:x", "trainer", ACCOUNT("1")), "ok");
    expect(record, enrolment("did:x", "auditor", ACCOUNT("1")), "ok");
    expect(record, enrolment("did:d", "auditor", ACCOUNT("1")), "barred");
    expect(record, enrolment("did:a", "trainer", ACCOUNT("1")), "account"); /* its stake is another account's */
    expect(record, enrolment("did:a", "trainer", ACCOUNT("a")), "ok");
    rules.deposit = NULL;
    expect(record, enrolment("did:x", "auditor", ACCOUNT("1")), "admission");
    rules.deposit = "40";
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_role_locks_what_the_spec_says),
        cmocka_unit_test(half_of_a_stake_is_for_who_proved_the_lie),
        cmocka_unit_test(who_challenged_for_nothing_pays_the_accused),
        cmocka_unit_test(what_is_left_goes_back_when_the_run_is_over),
        cmocka_unit_test(an_open_run_admits_whoever_locks_and_nobody_twice),
    };
    return cmocka_run_group_tests(tests, start, end);
}
