/* Texts of errors hold what peers and scripts said: they must be shown on a terminal and be told in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "native/base/error.h"

static void assert_text(const char *text)
{
    json_t *value = json_string(text);

    assert_non_null(value);
    json_decref(value);
    for (const char *at = text; *at; at++)
        assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
}

static void what_is_no_text_or_steers_a_terminal_is_replaced(void **state)
{
    static const struct {
        const char *given, *told;
    } cases[] = {
        { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "\x1b[2Ja\n\x7f", " [2Ja  " },
        { "\xc2\x9b"
          "2J",
          "??2J" },                                 /* the control character U+009B */
        { "\xff\xc0\x80\xc3", "????" },             /* no byte of UTF-8, an overlong NUL, a cut character */
        { "\xed\xa0\x80|\xe0\x9f\xbf", "???|???" }, /* a surrogate, an overlong form */
        { "\xf4\x90\x80\x80|\xf0\x8f\xbf\xbf", "????|????" },
        { "\xc3"
          "a",
          "?a" },
    };
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error_set(&err, ERROR_SCRIPT, cases[i].given, "%s", cases[i].given);
        error_at(&err, "%s", cases[i].given);
        assert_string_equal(err.message, cases[i].told);
        assert_string_equal(err.hint, cases[i].told);
        assert_string_equal(err.place, cases[i].told);
    }
}

static void a_text_that_is_cut_inside_a_character_is_still_text(void **state)
{
    char wide[1024];
    struct error err;

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(wide, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof wide; i += 4)
            memcpy(wide + i, "\xf0\x9f\x98\x80", 5);
        error_set(&err, ERROR_SCRIPT, wide, "%s", wide);
        error_at(&err, "%s", wide);
        assert_text(err.message);
        assert_text(err.hint);
        assert_text(err.place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_text_or_steers_a_terminal_is_replaced),
        cmocka_unit_test(a_text_that_is_cut_inside_a_character_is_still_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
