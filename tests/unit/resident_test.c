#include "runtime/script/resident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* KiB of files' pages that this process has mapped. */
static long mapped(void)
{
    char line[256];
    long kib = -1;
    FILE *in = fopen("/proc/self/status", "re");

    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "RssFile: %ld kB", &kib) == 1)
            break;
    if (in)
        fclose(in);
    return kib;
}

static int twice(int x)
{
    return 2 * x;
}

static int thrice(int x)
{
    return 3 * x;
}

/* Their addresses are written into a part of the file that is read only from then on: it must not be read from the file again. */
static int (*const relocated[])(int) = { twice, thrice };
static int written = 1;

static void files_pages_are_given_back(void **state)
{
    (void)state;
    const long before = mapped();

    resident_settle();
    assert_true(before > 0);
    assert_true(mapped() < before);
}

static void what_was_written_and_relocated_stays(void **state)
{
    (void)state;
    volatile size_t at = 1;

    written = 7;
    resident_settle();
    assert_int_equal(written, 7);
    assert_int_equal(relocated[at](5), 15);
    assert_int_equal(relocated[at - 1](5), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_pages_are_given_back),
        cmocka_unit_test(what_was_written_and_relocated_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
