/* The memory that a process may take, from a tree of files like those of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/memory_limit.h"

static char root[64];

static int fresh(void **state)
{
    (void)state;
    strcpy(root, "/tmp/rondo-memory-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int done(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    struct error err = { 0 };
    snprintf(path, sizeof path, "%s/%s", root, folder);
    assert_true(file_make_folder(path, &err));
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    assert_true(file_write(path, text, strlen(text), 0600, &err));
}

static void a_machine_without_groups_has_its_own_memory(void **state)
{
    (void)state;
    assert_int_equal(memory_limit_under(root, 1000), 1000);
    put("proc/self", "cgroup", "0::/\n");
    assert_int_equal(memory_limit_under(root, 1000), 1000);
    put("sys/fs/cgroup", "memory.max", "max\n");
    assert_int_equal(memory_limit_under(root, 1000), 1000);
    assert_true(memory_limit() > 0);
}

static void the_least_of_a_group_and_those_above_it_holds(void **state)
{
    (void)state;
    put("proc/self", "cgroup", "0::/pods/one\n");
    put("sys/fs/cgroup/pods/one", "memory.max", "900\n");
    assert_int_equal(memory_limit_under(root, 1000), 900);
    put("sys/fs/cgroup/pods", "memory.max", "800\n");
    assert_int_equal(memory_limit_under(root, 1000), 800);
    assert_int_equal(memory_limit_under(root, 700), 700);
}

static void a_container_that_sees_only_its_own_mount_is_limited_by_that(void **state)
{
    (void)state;
    put("proc/self", "cgroup", "0::/not/here/at/all\n");
    put("sys/fs/cgroup", "memory.max", "640\n");
    assert_int_equal(memory_limit_under(root, 1000), 640);
}

static void groups_of_the_first_version_are_read_too(void **state)
{
    (void)state;
    put("proc/self", "cgroup", "12:cpu,cpuacct:/docker/ab\n9:hugetlb,memory:/docker/ab\n4:memoryless:/docker/ab\n");
    put("sys/fs/cgroup/memory/docker/ab", "memory.limit_in_bytes", "500\n");
    put("sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_limit_under(root, 1000), 500);
    put("proc/self", "cgroup", "no colons\n:\n9:memory\n");
    assert_int_equal(memory_limit_under(root, 1000), 1000);
}

static void sizes_are_numbers_with_a_letter(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = { { "6000000", 6000000 }, { "500M", 500ull << 20 }, { "8G", 8ull << 30 },     { "8g", 8ull << 30 },
                 { "3GiB", 3ull << 30 }, { "2TB", 2ull << 40 },    { "64KiB", 64ull << 10 }, { "9B", 9 } };
    static const char *const bad[] = { "",           "0", "G", "-1", "1.5G", "8X", "8GG", "8G ", " 8G", "99999999999999999999",
                                       "9999999999T" };
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(memory_size_read(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(memory_size_read(bad[i], &bytes));
}

static void workers_of_one_machine_share_what_it_has_unless_one_was_given_its_part(void **state)
{
    (void)state;
    unsetenv("RONDO_MEMORY");
    assert_int_equal(memory_allowance(1), memory_limit() / 4 * 3);
    assert_int_equal(memory_allowance(6), memory_limit() / 4 * 3 / 6);
    assert_int_equal(setenv("RONDO_MEMORY", "500M", 1), 0);
    assert_int_equal(memory_allowance(6), 500ull << 20);
    unsetenv("RONDO_MEMORY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_without_groups_has_its_own_memory, fresh, done),
        cmocka_unit_test_setup_teardown(the_least_of_a_group_and_those_above_it_holds, fresh, done),
        cmocka_unit_test_setup_teardown(a_container_that_sees_only_its_own_mount_is_limited_by_that, fresh, done),
        cmocka_unit_test_setup_teardown(groups_of_the_first_version_are_read_too, fresh, done),
        cmocka_unit_test(sizes_are_numbers_with_a_letter),
        cmocka_unit_test(workers_of_one_machine_share_what_it_has_unless_one_was_given_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
