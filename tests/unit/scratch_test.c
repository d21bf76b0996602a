/* scratch_test.c - a folder for one task is gone after it, and after kill -9. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/scratch.h"

static void fill(const struct scratch *s)
{
    char path[4200];
    struct error err = { 0 };

    snprintf(path, sizeof path, "%s/a/b", s->path);
    assert_true(file_make_folder(path, &err));
    strcat(path, "/file");
    assert_true(file_write(path, "x", 1, 0600, &err));
}

static void it_is_gone_when_it_is_closed(void **state)
{
    struct scratch s;
    struct error err = { 0 };

    (void)state;
    assert_true(scratch_open(&s, "test", &err));
    fill(&s);
    scratch_close(&s);
    assert_int_not_equal(access(s.path, F_OK), 0);
}

static void it_is_gone_when_its_process_is_killed(void **state)
{
    static const int signals[] = { SIGKILL, SIGINT, SIGTERM };
    struct scratch s = { 0 };
    struct error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();

        if (child == 0) {
            signal(signals[i], SIG_DFL); /* a shell lets its background ignore SIGINT */
            if (!scratch_open(&s, "test", &err))
                _exit(1);
            fill(&s);
            if (write(ends[1], s.path, sizeof s.path) != sizeof s.path)
                _exit(1);
            for (;;)
                pause();
        }
        assert_int_equal(read(ends[0], s.path, sizeof s.path), sizeof s.path);
        assert_int_equal(access(s.path, F_OK), 0);
        kill(child, signals[i]);
        waitpid(child, NULL, 0);
        for (int k = 0; k < 500 && access(s.path, F_OK) == 0; k++)
            nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        assert_int_not_equal(access(s.path, F_OK), 0);
        close(ends[0]);
        close(ends[1]);
    }
}

static void a_parent_that_is_not_there_is_named(void **state)
{
    struct scratch s;
    struct error err = { 0 };

    (void)state;
    setenv("TMPDIR", "/no/such/folder", 1);
    assert_false(scratch_open(&s, "test", &err));
    unsetenv("TMPDIR");
    assert_int_equal(err.code, ERROR_IO);
    assert_non_null(strstr(err.place, "/no/such/folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_gone_when_it_is_closed),
        cmocka_unit_test(it_is_gone_when_its_process_is_killed),
        cmocka_unit_test(a_parent_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
