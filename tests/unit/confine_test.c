#include "runtime/worker/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/script/sandbox.h"
#include "tests/fixture/fixture.h"

/* Runs `attempt` in a confined child; its answer. */
static int confined(int (*attempt)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct error err = { 0 };

        _exit(confine_worker(&err) ? attempt() : 99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int denied(long result)
{
    return result == -1 && errno == EPERM ? 0 : 1;
}

static int open_sockets(void)
{
    return denied(socket(AF_INET, SOCK_STREAM, 0)) + denied(socket(AF_INET6, SOCK_DGRAM, 0)) +
           denied(socket(AF_UNIX, SOCK_STREAM, 0)) + denied(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int use_sockets(void)
{
    struct sockaddr address = { .sa_family = AF_UNIX };

    return denied(connect(0, &address, sizeof address)) + denied(bind(0, &address, sizeof address)) + denied(listen(0, 1)) +
           denied(accept(0, NULL, NULL)) + denied(syscall(SYS_io_uring_setup, 1, NULL));
}

static int look_at_others(void)
{
    return denied(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0)) +
           (SANDBOX_SANITIZED ? 0 : denied(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL)));
}

static int change_the_machine(void)
{
    return denied(syscall(SYS_unshare, 0)) + denied(syscall(SYS_mount, "a", "b", "c", 0, NULL)) +
           denied(syscall(SYS_chroot, "/")) + denied(syscall(SYS_keyctl, 0));
}

static int make_pairs(void)
{
    int pair[2];

    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) + denied(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) +
           denied(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
}

static int look_at_oneself(void)
{
    struct rlimit core;

    return (getrlimit(RLIMIT_CORE, &core) || core.rlim_max != 0) + (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) +
           (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2);
}

static int find_descriptors(void)
{
    int open = 0;

    for (int fd = 3; fd < 1024; fd++)
        open += fcntl(fd, F_GETFD) != -1;
    return open;
}

static int start_a_script(void)
{
    static const char source[] = "return aggregator { combine = function(u) return u:mean(\"peer\") end }";
    const struct script_file file = { "mine", source, sizeof source - 1 };
    struct error err = { 0 };
    json_t *about = script_describe(&(struct script_bundle){ &file, 1, NULL }, NULL, &err);

    return about == NULL;
}

static void a_worker_has_no_network(void **state)
{
    (void)state;
    assert_int_equal(confined(open_sockets), 0);
    assert_int_equal(confined(use_sockets), 0);
}

static void a_worker_cannot_look_into_other_processes_or_change_the_machine(void **state)
{
    (void)state;
    assert_int_equal(confined(look_at_others), 0);
    assert_int_equal(confined(change_the_machine), 0);
}

static void a_worker_keeps_three_descriptors_and_no_way_to_more_rights(void **state)
{
    int leaked = open("/dev/null", O_RDONLY);

    (void)state;
    assert_true(leaked >= 3);
    assert_int_equal(confined(find_descriptors), 0);
    assert_int_equal(confined(look_at_oneself), 0);
    close(leaked);
}

static void a_worker_can_still_start_scripts(void **state)
{
    (void)state;
    assert_int_equal(confined(make_pairs), 0);
    assert_int_equal(confined(start_a_script), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_has_no_network),
        cmocka_unit_test(a_worker_cannot_look_into_other_processes_or_change_the_machine),
        cmocka_unit_test(a_worker_keeps_three_descriptors_and_no_way_to_more_rights),
        cmocka_unit_test(a_worker_can_still_start_scripts),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
