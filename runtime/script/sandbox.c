#include "runtime/script/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

enum { SANITIZED = SANDBOX_SANITIZED };

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this architecture"
#endif

static bool limit(int what, uint64_t value, const char *name, struct error *err)
{
    struct rlimit l = { value, value };
    return !setrlimit(what, &l) || error_set(err, ERROR_ABSENT, NULL, "script sandbox: %s: %s", name, strerror(errno));
}

/* Every right of the newest interface that the kernel has is handled and none granted: no file, no socket, no signal. */
static void landlock(void)
{
    struct {
        uint64_t fs, net, scoped;
    } rights = { 0, 0, 0 };
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return;
    static const uint8_t fs_bits[] = { 13, 14, 15, 15, 16 };
    rights.fs = (1ULL << fs_bits[abi < 5 ? abi - 1 : 4]) - 1;
    rights.net = abi >= 4 ? 3 : 0;
    rights.scoped = abi >= 6 ? 3 : 0;
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rights, size, 0);
    if (fd < 0)
        return;
    syscall(SYS_landlock_restrict_self, fd, 0);
    close(fd);
}

static bool map_heap(uint64_t memory, struct error *err)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    void *all = malloc(memory);
    if (!all)
        return error_set(err, ERROR_MEMORY, "lower the script memory limit", "script sandbox: no %llu bytes of heap",
                         (unsigned long long)memory);
    *(volatile char *)all = 0;
    free(all);
    return true;
}

bool sandbox_enter(uint64_t memory, unsigned seconds, struct error *err)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0U))
        for (int fd = 3; fd < 4096; fd++)
            close(fd);
    if (!SANITIZED && !map_heap(memory, err))
        return false;
    landlock();
    bool ok = limit(RLIMIT_CPU, seconds, "cpu", err) && limit(RLIMIT_FSIZE, 0, "file size", err) &&
              limit(RLIMIT_CORE, 0, "core", err) && limit(RLIMIT_NOFILE, 3, "descriptors", err) &&
              limit(RLIMIT_NPROC, 0, "processes", err) &&
              (SANITIZED || limit(RLIMIT_AS, memory + (1ULL << 30), "address space", err));
    if (!ok)
        return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
        return error_set(err, ERROR_ABSENT, NULL, "script sandbox: prctl: %s", strerror(errno));
    prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); /* Linux 6.3 and later */
    return true;
}

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define NO_MEMORY(number)                                                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM)

bool sandbox_seal(struct error *err)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        NO_MEMORY(SYS_brk),
        NO_MEMORY(SYS_mmap),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    if (!SANITIZED && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        return error_set(err, ERROR_ABSENT, "scripts run only where the kernel has seccomp", "script sandbox: seccomp: %s",
                         strerror(errno));
    return true;
}
