/* amendment.h: only what the spec marks, only later rounds; two of one number void each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/round/amendment.h"
#include "runtime/round/value.h"

static struct rules rules;

static int start(void **state)
{
    (void)state;
    rules = (struct rules){
        .run = "bafk2bzarun", .rounds = 10, .trainers_quorum = 2, .trainers_limit = 8, .shards = 8, .spot_check = 100000000
    };
    rules.spec =
        json_pack("{sss[ssss]}", "sponsor", "did:sponsor", "amendable", "end", "pause", "quorum.trainers", "trust.spot_check");
    rules.amendable = json_object_get(rules.spec, "amendable");
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_decref(rules.spec);
    return 0;
}

static json_t *amendment(int number, int from, json_t *changes)
{
    return json_pack("{sssssisiso}", "run", rules.run, "signer", "did:sponsor", "number", number, "from", from, "changes",
                     changes);
}

/* The record after `previous` with these amendments. Takes all references. */
static json_t *record_with(json_t *previous, json_t *list)
{
    json_t *items = json_array(), *documents = json_object(), *payload;
    size_t i;
    json_array_foreach(list, i, payload)
    {
        char cid[CID_TEXT];
        value_cid(payload, cid);
        json_array_append_new(
            items, json_pack("{ssssss}", "cid", cid, "type", "amendment", "code", amendment_code(&rules, previous, payload)));
        json_object_set_new(documents, cid, json_pack("{sssO}", "type", "amendment", "payload", payload));
    }
    json_t *record = json_pack("{sIso}", "round", (json_int_t)(previous ? value_integer(previous, "round") + 1 : 0), "amendments",
                               amendments_after(&rules, previous, items, documents));
    json_decref(items);
    json_decref(documents);
    json_decref(list);
    json_decref(previous);
    return record;
}

static json_t *record_of_round(int round)
{
    return json_pack("{sis[]}", "round", round, "amendments");
}

static void expect(const json_t *previous, json_t *payload, const char *code)
{
    assert_string_equal(amendment_code(&rules, previous, payload), code);
    json_decref(payload);
}

static void only_what_is_marked_and_only_later_rounds(void **state)
{
    json_t *previous = record_of_round(3), *other;
    (void)state;
    expect(previous, amendment(1, 6, json_pack("{sb}", "end", 1)), "ok"); /* listed by record 4, so from 6 on */
    expect(previous, amendment(1, 5, json_pack("{sb}", "end", 1)), "late");
    expect(previous, amendment(1, 10, json_pack("{sb}", "pause", 1)), "ok");
    expect(previous, amendment(1, 11, json_pack("{sb}", "pause", 1)), "late");
    expect(previous, amendment(1, 6, json_object()), "amendable");
    expect(previous, amendment(1, 6, json_pack("{ss}", "payment.per_round", "1")), "amendable");
    expect(previous, amendment(1, 6, json_pack("{sb}", "end", 0)), "amendable");
    expect(previous, amendment(1, 6, json_pack("{si}", "quorum.trainers", 9)), "amendable");
    expect(previous, amendment(1, 6, json_pack("{ss}", "trust.spot_check", "1.5")), "amendable");
    expect(previous, amendment(1, 6, json_pack("{ss}", "trust.spot_check", "0.5")), "ok");
    other = amendment(1, 6, json_pack("{sb}", "end", 1));
    json_object_set_new(other, "signer", json_string("did:another"));
    expect(previous, other, "signer");
    other = amendment(1, 6, json_pack("{sb}", "end", 1));
    json_object_set_new(other, "run", json_string("another"));
    expect(previous, other, "run");
    rules.amendable = NULL;
    expect(previous, amendment(1, 6, json_pack("{sb}", "end", 1)), "amendable");
    assert_null(amendments_after(&rules, previous, NULL, NULL));
    rules.amendable = json_object_get(rules.spec, "amendable");
    json_decref(previous);
}

static void a_round_is_as_the_highest_number_in_force_says(void **state)
{
    json_t *record =
        record_with(record_of_round(2), json_pack("[oo]", amendment(2, 7, json_pack("{sb}", "pause", 0)),
                                                  amendment(1, 5, json_pack("{sbsi}", "pause", 1, "quorum.trainers", 4))));
    (void)state;
    assert_true(amendment_trains(&rules, record, 4));
    for (int round = 5; round < 7; round++) {
        assert_false(amendment_trains(&rules, record, round));
        assert_true(amendment_pauses(&rules, record, round));
    }
    assert_true(amendment_trains(&rules, record, 7));
    assert_int_equal(amendment_quorum(&rules, record, 4), 2);
    assert_int_equal(amendment_quorum(&rules, record, 8), 4);
    assert_int_equal(amendment_spot_check(&rules, record, 8), 100000000);
    assert_int_equal(amendment_rounds(&rules, record), 10);
    record = record_with(record, json_pack("[o]", amendment(3, 8, json_pack("{sb}", "end", 1))));
    assert_int_equal(amendment_rounds(&rules, record), 7);
    assert_false(amendment_trains(&rules, record, 8));
    assert_false(amendment_pauses(&rules, record, 8));
    json_decref(record);
}

static void two_of_one_number_void_each_other(void **state)
{
    json_t *record = record_with(record_of_round(2), json_pack("[oo]", amendment(1, 7, json_pack("{sb}", "pause", 1)),
                                                               amendment(1, 8, json_pack("{sb}", "pause", 1))));
    (void)state;
    assert_false(amendment_pauses(&rules, record, 8));
    expect(record, amendment(1, 9, json_pack("{sb}", "end", 1)), "number"); /* it is used up */
    record = record_with(record, json_pack("[o]", amendment(2, 8, json_pack("{sb}", "end", 1))));
    assert_int_equal(amendment_rounds(&rules, record), 7);
    record = record_with(record, json_pack("[o]", amendment(2, 7, json_pack("{sb}", "pause", 1)))); /* taken back in time */
    assert_int_equal(amendment_rounds(&rules, record), 10);
    record = record_with(record, json_pack("[o]", amendment(4, 8, json_pack("{sb}", "end", 1))));
    record = record_with(record, json_array());
    expect(record, amendment(4, 9, json_pack("{sb}", "pause", 1)), "late");
    record = record_with(record, json_array());
    assert_int_equal(value_integer(record, "round"), 8);
    expect(record, amendment(4, 10, json_pack("{sb}", "pause", 1)), "late"); /* it is over */
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_marked_and_only_later_rounds),
        cmocka_unit_test(a_round_is_as_the_highest_number_in_force_says),
        cmocka_unit_test(two_of_one_number_void_each_other),
    };
    return cmocka_run_group_tests(tests, start, end);
}
