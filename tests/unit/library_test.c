#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "native/base/library.h"
#include "runtime/net/http_client.h"

#define ZLIB_CALLS(CALL) CALL(, crc32) CALL(zlib, Version)
LIBRARY_CALLS(zlib, ZLIB_CALLS)
LIBRARY_LOAD(zlib, "libz.so.1", ZLIB_CALLS)

static bool is_mapped(const char *library)
{
    char line[4400];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found = found || strstr(line, library);
    fclose(maps);
    return found;
}

/* Whoever links one of them again makes every worker and every script map it. */
static void what_only_a_node_needs_is_mapped_with_its_first_call(void **state)
{
    (void)state;
    assert_false(is_mapped("/libcurl"));
    assert_false(is_mapped("/libmicrohttpd"));
    assert_false(is_mapped("/libgnutls"));
    assert_false(is_mapped("/libcrypto"));
    assert_true(http_url_is_loopback("http://127.0.0.1:7001/v1/status"));
    assert_true(is_mapped("/libcurl"));
}

static void functions_of_a_loaded_library_are_its_own(void **state)
{
    (void)state;
    assert_int_equal(zlib()->crc32(0, (const uint8_t *)"123456789", 9), 0xcbf43926); /* the check value of CRC-32 */
    assert_ptr_equal(zlib(), zlib());
    assert_string_equal(zlib()->Version(), zlibVersion());
}

/* The status of a process that loads this, and what it says. */
static int load_apart(const char *library, const char *name, char said[512])
{
    const char *const names[] = { name, NULL };
    void *calls[1];
    int pair[2], status = 0;
    ssize_t size;
    pid_t pid;

    assert_int_equal(pipe(pair), 0);
    pid = fork();
    if (pid == 0) {
        dup2(pair[1], STDERR_FILENO);
        library_load(library, names, calls);
        _exit(0);
    }
    close(pair[1]);
    size = read(pair[0], said, 511);
    said[size > 0 ? size : 0] = '\0';
    close(pair[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_library_that_is_missing_ends_the_program_with_its_name(void **state)
{
    char said[512];

    (void)state;
    assert_int_equal(load_apart("libnowhere.so.9", "f", said), 127);
    assert_non_null(strstr(said, "install the package of libnowhere.so.9"));
    assert_int_equal(load_apart("libz.so.1", "no_such_function", said), 127);
    assert_non_null(strstr(said, "no_such_function"));
}

static void a_machine_that_lacks_a_library_can_be_told_beforehand(void **state)
{
    struct error err = { 0 };

    (void)state;
    assert_true(library_all_there(&err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_a_node_needs_is_mapped_with_its_first_call),
        cmocka_unit_test(functions_of_a_loaded_library_are_its_own),
        cmocka_unit_test(a_machine_that_lacks_a_library_can_be_told_beforehand),
        cmocka_unit_test(a_library_that_is_missing_ends_the_program_with_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
