/* Each round's pay and the rule behind it, from records written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/role/why.h"

/* Rounds 0 to 5 of a run with six; `b` is convicted for round 4 by record 5. */
static const char *const records[] = {
    "{'round':0,'kind':'open','members':[{'did':'did:a','role':'trainer'},{'did':'did:b','role':'trainer'}]}",
    "{'round':1,'kind':'train','members':[{'did':'did:a','role':'trainer'},{'did':'did:b','role':'trainer'}],'contributions':["
    "{'did':'did:a','code':'ok','weight':2},{'did':'did:b','code':'ok','weight':1}],'committee':['did:s'],'received':[]}",
    "{'round':2,'kind':'train','members':[{'did':'did:a','role':'trainer'},{'did':'did:b','role':'trainer'}],'contributions':["
    "{'did':'did:a','code':'probes','weight':2},{'did':'did:b','code':'ok','weight':1}],'committee':['did:s'],'received':[]}",
    "{'round':3,'kind':'train','members':[{'did':'did:a','role':'trainer'},{'did':'did:b','role':'trainer'}],'contributions':["
    "{'did':'did:b','code':'ok','weight':3}],'committee':[],'received':[],'settled':[{'round':1,'paid':["
    "{'did':'did:a','role':'trainer','amount':'534'},{'did':'did:b','role':'trainer','amount':'266'}]}]}",
    "{'round':4,'kind':'skip','reason':'quorum','members':[{'did':'did:a','role':'trainer'},{'did':'did:b','role':'trainer'}],"
    "'settled':[{'round':2,'paid':[{'did':'did:b','role':'trainer','amount':'800'}]}]}",
    "{'round':5,'kind':'train','members':[{'did':'did:a','role':'trainer'}],'contributions':[{'did':'did:a','code':'ok','weight':"
    "3},"
    "{'did':'did:b','code':'ok','weight':1}],'committee':[],'received':[],'convicted':[{'did':'did:b','round':4}],"
    "'settled':[{'round':3,'paid':[{'did':'did:b','role':'trainer','amount':'800'}]}]}",
};

static int set_up(void **state)
{
    struct archive *a = calloc(1, sizeof *a);

    a->finals = json_array();
    a->course.spec.rounds = 6;
    a->course.rules.panel = json_pack("[{s:s}]", "did", "did:s");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char *text = strdup(records[i]);

        for (char *at = text; *at; at++)
            if (*at == '\'')
                *at = '"';
        json_t *record = json_loads(text, 0, NULL);

        assert_non_null(record);
        json_array_append_new(a->finals, json_pack("{s:o}", "record", record));
        free(text);
    }
    *state = a;
    return 0;
}

static int tear_down(void **state)
{
    struct archive *a = *state;

    json_decref(a->finals);
    json_decref(a->course.rules.panel);
    free(a);
    return 0;
}

static void expect(const json_t *result, size_t round, const char *code, const char *amount)
{
    const json_t *line = json_array_get(json_object_get(result, "rounds"), round - 1);

    assert_string_equal(json_string_value(json_object_get(line, "code")), code);
    if (amount)
        assert_string_equal(json_string_value(json_object_get(line, "amount")), amount);
    else
        assert_true(json_is_null(json_object_get(line, "amount")));
}

static void every_round_of_a_trainer_has_its_reason(void **state)
{
    struct error err = { 0 };
    json_t *result = why_of(*state, NULL, "did:a", &err), *line;

    assert_non_null(result);
    expect(result, 1, "accepted", "534");
    expect(result, 2, "refused", "0");
    expect(result, 3, "absent", "0");
    expect(result, 4, "skipped", NULL);
    expect(result, 5, "accepted", NULL);
    expect(result, 6, "open", NULL);
    assert_string_equal(json_string_value(json_object_get(result, "total")), "534");
    line = json_array_get(json_object_get(result, "rounds"), 0);
    assert_int_equal(json_integer_value(json_object_get(line, "weight")), 2);
    assert_int_equal(json_integer_value(json_object_get(line, "weights")), 3);
    assert_int_equal(json_integer_value(json_object_get(line, "settled")), 3);
    line = json_array_get(json_object_get(result, "rounds"), 1);
    assert_string_equal(json_string_value(json_object_get(line, "reason")), "probes");
    line = json_array_get(json_object_get(result, "rounds"), 3);
    assert_string_equal(json_string_value(json_object_get(line, "reason")), "quorum");
    json_decref(result);
}

static void who_is_convicted_is_unpaid_from_that_round_on(void **state)
{
    struct error err = { 0 };
    json_t *result = why_of(*state, NULL, "did:b", &err);

    assert_non_null(result);
    expect(result, 1, "accepted", "266");
    expect(result, 3, "accepted", "800");
    expect(result, 4, "convicted", NULL);
    expect(result, 5, "convicted", NULL);
    json_decref(result);
}

static void what_a_convicted_one_gave_counts_in_nobodys_share(void **state)
{
    struct error err = { 0 };
    json_t *result = why_of(*state, NULL, "did:a", &err), *line = json_array_get(json_object_get(result, "rounds"), 4);

    assert_int_equal(json_integer_value(json_object_get(line, "weights")), 3);
    json_decref(result);
}

static void a_syncer_that_was_not_heard_is_told_so(void **state)
{
    struct error err = { 0 };
    json_t *result = why_of(*state, NULL, "did:s", &err);

    assert_string_equal(json_string_value(json_object_get(result, "role")), "syncer");
    expect(result, 1, "absent", "0");
    expect(result, 3, "not_enrolled", "0");
    json_decref(result);
}

static void a_did_that_no_record_names_is_refused(void **state)
{
    struct error err = { 0 };

    assert_null(why_of(*state, NULL, "did:nobody", &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    assert_non_null(strstr(err.hint, "run show"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_of_a_trainer_has_its_reason),
        cmocka_unit_test(who_is_convicted_is_unpaid_from_that_round_on),
        cmocka_unit_test(what_a_convicted_one_gave_counts_in_nobodys_share),
        cmocka_unit_test(a_syncer_that_was_not_heard_is_told_so),
        cmocka_unit_test(a_did_that_no_record_names_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
