/* Admission: what a script file may be, before any engine sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/script/admit.h"

static bool admits(const char *source)
{
    return admit_source("t.lua", source, strlen(source), NULL);
}

static void plain_lua_is_admitted(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",
        "-- text\nreturn 1",
        "--[[ long\n comment ]] return { a = 1, [2] = 0x1F, 'x\\n\\065\\\\', [[raw \\d]], [==[ ]] ]==] }",
        "local x = 1e-3 + .5 + 2. + 0xff - -1 * 2 ^ 3 % 4 return x ~= 1 and not (x == 2) or x .. 'a'",
        "for i = 1, 10 do if i > 2 then break elseif i < 1 then repeat until true end end",
        "return 'gr\xc3\xbc\xc3\x9f' -- \xe2\x82\xac",
        "a.b[c]:d{ 1; 2 }; f'x'; return #t, 1 .. 2",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(admits(good[i]));
}

static void everything_beyond_lua_5_1_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\033Lua",
        "x = 5LL",
        "x = 5ULL",
        "x = 2i",
        "x = 0b1",
        "x = 0x1p4",
        "x = 1__0",
        "x = 1e",
        "x = 0x",
        "x = 1.2.3",
        "x += 1",
        "x = a ? b",
        "x = a & b",
        "x = a | b",
        "x = ~a",
        "x = !a",
        "goto out",
        "const x = 1",
        "continue",
        "x = '\\x41'",
        "x = '\\z'",
        "x = '\\999'",
        "x = '\\u{1}'",
        "x = 'a",
        "x = 'a\nb'",
        "--[[ open",
        "x = [[ [[ ]]",
        "x\001 = 1",
        "\xff",
        "x = '\xc0\xaf'",
        "x = '\xed\xa0\x80'",
        "caf\xc3\xa9 = 1",
        "x = @y",
        "x = `y`",
        "a\rb",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (admits(bad[i]))
            fail_msg("admitted: %s", bad[i]);
}

static void errors_name_file_and_line(void **state)
{
    (void)state;
    struct error err;
    char text[600];
    const char *source = "local a = 1\n--[[\n]]\nlocal b = 5LL";
    assert_false(admit_source("grpo.lua@1f2e3d4c", source, strlen(source), &err));
    assert_string_equal(error_text(&err, text, sizeof text),
                        "grpo.lua@1f2e3d4c:4: a malformed number (Lua 5.1: 12, 0.5, 1e-3, 0xff; no suffix)");
    assert_int_equal(err.code, ERROR_SYNTAX);
}

static void sizes_depths_and_constants_are_limited(void **state)
{
    (void)state;
    size_t size = ADMIT_BYTES + 1;
    char *text = malloc(size);
    memset(text, ' ', size);
    assert_true(admit_source("t", text, size - 1, NULL));
    assert_false(admit_source("t", text, size, NULL));
    memset(text, '(', 65);
    assert_true(admit_source("t", text, 64, NULL));
    assert_false(admit_source("t", text, 65, NULL));
    for (size_t i = 0; i < size - 1; i += 2)
        memcpy(text + i, "1 ", 2);
    assert_true(admit_source("t", text, 2 * ADMIT_CONSTANTS, NULL));
    assert_false(admit_source("t", text, 2 * ADMIT_CONSTANTS + 2, NULL));
    free(text);
}

static void any_bytes_at_all_give_an_answer(void **state)
{
    (void)state;
    static const char pieces[] = "[]=-'\"\\\n\t 0x.eE+19()az_\xe2\x82\xac{}~^";
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        for (size_t n = 0; n < sizeof text; n++) {
            seed = seed * 1664525u + 1013904223u;
            text[n] = pieces[(seed >> 16) % (sizeof pieces - 1)];
        }
        admit_source("t", text, (seed >> 24) % 64, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lua_is_admitted),           cmocka_unit_test(everything_beyond_lua_5_1_is_refused),
        cmocka_unit_test(errors_name_file_and_line),       cmocka_unit_test(sizes_depths_and_constants_are_limited),
        cmocka_unit_test(any_bytes_at_all_give_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
