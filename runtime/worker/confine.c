#include "runtime/worker/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/script/sandbox.h"

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
#define CONFINE_LAST 0x3fffffff /* numbers above are those of the x32 interface */
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#define CONFINE_LAST 0x7fffffff
#else
#error "no seccomp filter for this architecture"
#endif

#define REFUSE        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define DENY(number)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), REFUSE
#define ARGUMENT(i)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i])) /* low half: little-endian */
#define UNLESS(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 1, 0), REFUSE
#define LOAD(field)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

static bool filter(struct error *err)
{
    struct sock_filter rules[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, CONFINE_LAST, 0, 1),
        REFUSE,
        /* the network */
        DENY(SYS_socket),
        DENY(SYS_connect),
        DENY(SYS_bind),
        DENY(SYS_listen),
        DENY(SYS_accept),
        DENY(SYS_accept4),
        DENY(SYS_io_uring_setup), /* it does what this filter does not see */
        /* other processes */
        DENY(SYS_process_vm_readv),
        DENY(SYS_process_vm_writev),
        DENY(SYS_pidfd_getfd),
        DENY(SYS_perf_event_open),
#if !SANDBOX_SANITIZED /* the leak check traces its own process */
        DENY(SYS_ptrace),
#endif
        /* the machine */
        DENY(SYS_mount),
        DENY(SYS_umount2),
        DENY(SYS_pivot_root),
        DENY(SYS_chroot),
        DENY(SYS_unshare),
        DENY(SYS_setns),
        DENY(SYS_open_by_handle_at),
        DENY(SYS_bpf),
        DENY(SYS_userfaultfd),
        DENY(SYS_init_module),
        DENY(SYS_finit_module),
        DENY(SYS_kexec_load),
        DENY(SYS_keyctl),
        DENY(SYS_add_key),
        DENY(SYS_request_key),
        /* a script's process is spoken to over a stream pair; datagrams could be sent elsewhere */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        ARGUMENT(0),
        UNLESS(AF_UNIX),
        ARGUMENT(1),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
        UNLESS(SOCK_STREAM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ||
           error_set(err, ERROR_ABSENT, "workers run only where the kernel has seccomp", "seccomp: %s", strerror(errno));
}

bool confine_worker(struct error *err)
{
    struct rlimit none = { 0, 0 };

    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int fd = 3; fd < 4096; fd++)
            close(fd);
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_set(err, ERROR_ABSENT, NULL, "cannot confine the worker: %s", strerror(errno));
    return filter(err);
}
