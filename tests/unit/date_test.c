#include "native/base/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_day_of_the_calendar_is_read(void **state)
{
    struct date date;

    (void)state;
    assert_true(date_parse("2026-01-31", &date, NULL));
    assert_int_equal(date.year, 2026);
    assert_int_equal(date.month, 1);
    assert_int_equal(date.day, 31);
    assert_true(date_parse("2024-02-29", &date, NULL));
    assert_true(date_parse("2000-02-29", &date, NULL));
}

static void what_is_no_day_is_refused_with_the_shape(void **state)
{
    static const char *const wrong[] = { "",           "2026-1-31",   "2026-13-01", "2026-02-29", "1900-02-29", "2026-04-31",
                                         "0000-01-01", "2026-01-00 ", "2026/01/01", "2026-01-00", "+026-01-01" };
    struct date date;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = { 0 };

        if (date_parse(wrong[i], &date, &err))
            fail_msg("%s was taken", wrong[i]);
        assert_int_equal(err.code, ERROR_SYNTAX);
        assert_string_equal(err.hint, "as 2026-01-31");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_day_of_the_calendar_is_read),
                                        cmocka_unit_test(what_is_no_day_is_refused_with_the_shape) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
