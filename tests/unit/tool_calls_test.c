#include "native/text/tool_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"

static json_t *parse(const char *text)
{
    struct error err = { 0 };
    json_t *value = json_read(text, strlen(text), 1 << 16, &err);

    assert_non_null(value);
    return value;
}

static void reads(const char *text, const char *expected)
{
    struct error err = { 0 };
    json_t *calls = tool_calls_read(text, strlen(text), &err), *wanted = parse(expected);

    assert_non_null(calls);
    assert_true(json_equal(calls, wanted));
    json_decref(calls);
    json_decref(wanted);
}

static void calls_are_read_as_models_write_them(void **state)
{
    static const char one[] = "[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]";

    (void)state;
    reads("<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>", one);
    reads("Well: <tool_call>\n[{\"name\": \"f\", \"arguments\": {\"x\": 1}}]", one);
    reads("[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}}]", one);
    reads(" {\"name\": \"f\", \"parameters\": {\"x\": 1}}", one);
    reads("{\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1}\"}}", one);
    reads(
        "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call><tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
        "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]");
    reads("The sum is {1, 2}.", "[]");
    reads("", "[]");
}

static void what_cannot_be_called_is_refused_whole(void **state)
{
    static const char *const bad[] = { "<tool_call>{\"name\": \"f\"}</tool_call>",
                                       "<tool_call>f(1)</tool_call>",
                                       "{\"x\": 1}",
                                       "[[]]",
                                       "{\"name\": \"f\", \"arguments\": 1}",
                                       "{\"name\": \"f\\u0000\", \"arguments\": {}}",
                                       "{\"name\": \"f\", \"arguments\": \"1\"}" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = { 0 };

        assert_null(tool_calls_read(bad[i], strlen(bad[i]), &err));
        assert_int_not_equal(err.code, 0);
    }
}

/* tool_call_cases.json: variations of BFCL v4's own answers and what bfcl-eval's ast_checker says of them (tools/oracle/tool_calls.py). */
static void every_case_is_judged_as_the_leaderboard_does(void **state)
{
    struct error err = { 0 };
    json_t *file = json_read_file(RONDO_SOURCE "/tests/golden/text/tool_call_cases.json", 1 << 20, &err), *item;
    size_t index;

    (void)state;
    assert_true(json_array_size(file) >= 60);
    json_array_foreach(file, index, item)
    {
        const char *why;
        bool right = tool_calls_right(json_object_get(item, "tools"), json_object_get(item, "calls"),
                                      json_object_get(item, "accepted"), &why);

        if (right != json_is_true(json_object_get(item, "right")))
            fail_msg("case %zu: %s", index, why);
    }
    json_decref(file);
}

static void a_turns_own_calls_are_right_and_each_other_value_is_not(void **state)
{
    struct error err = { 0 };
    json_t *own = parse("[{\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1.5, \\\"y\\\": [1]}\"}}]");
    json_t *tools =
        parse("[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": {\"type\": \"number\"}, \"y\": "
              "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}}}}}]");
    json_t *accepted = tool_calls_accepted(own, &err);
    json_t *good = tool_calls_read("{\"name\": \"f\", \"arguments\": {\"y\": [1], \"x\": 1.5}}", 48, &err);
    json_t *other = tool_calls_read("{\"name\": \"f\", \"arguments\": {\"y\": [2], \"x\": 1.5}}", 48, &err);
    const char *why;

    (void)state;
    assert_true(tool_calls_right(tools, good, accepted, &why));
    assert_false(tool_calls_right(tools, other, accepted, &why));
    assert_string_equal(why, "value");
    json_decref(own);
    json_decref(tools);
    json_decref(accepted);
    json_decref(good);
    json_decref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_read_as_models_write_them),
        cmocka_unit_test(what_cannot_be_called_is_refused_whole),
        cmocka_unit_test(every_case_is_judged_as_the_leaderboard_does),
        cmocka_unit_test(a_turns_own_calls_are_right_and_each_other_value_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
