#include "runtime/script/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native/base/buffer.h"

enum { NURSERY_MAGIC = 0x3152554e, NURSERY_HEADER = 40 }; /* as in child.h, which needs an engine's headers */

extern char **environ;

struct script_nursery {
    pid_t pid; /* -1: none runs */
    int fd;
};

static bool stream_pair(int pair[2], struct error *err)
{
    return !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
           error_set(err, ERROR_IO, NULL, "script: socketpair: %s", strerror(errno));
}

bool script_spawn(const char *program, pid_t *pid, int *fd, struct error *err)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = { (char *)"rondo", (char *)"--script-child", NULL };
    int pair[2];

    if (!stream_pair(pair, err))
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);

    int failed = posix_spawn(pid, program, &actions, NULL, argv, environ);

    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    *fd = pair[0];
    if (!failed)
        return true;
    close(pair[0]);
    return error_set(err, ERROR_IO, NULL, "script: %s does not start: %s", program, strerror(failed));
}

/* ---- the worker's side ---------------------------------------------------------------------------------------------- */

struct script_nursery *script_nursery_new(void)
{
    struct script_nursery *n = calloc(1, sizeof *n);

    if (!n)
        abort();
    n->pid = n->fd = -1;
    return n;
}

static void stop(struct script_nursery *n)
{
    if (n->pid < 0)
        return;
    close(n->fd);
    kill(n->pid, SIGKILL);
    while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    n->pid = n->fd = -1;
}

void script_nursery_free(struct script_nursery *n)
{
    if (!n)
        return;
    stop(n);
    free(n);
}

pid_t script_nursery_pid(const struct script_nursery *n)
{
    return n->pid;
}

static bool start(struct script_nursery *n, const char *program, struct error *err)
{
    struct buffer header = { 0 };
    bool ok = script_spawn(program, &n->pid, &n->fd, err);

    if (!ok) {
        n->pid = n->fd = -1;
        return false;
    }
    buffer_add_u32(&header, NURSERY_MAGIC);
    while (header.size < NURSERY_HEADER)
        buffer_add_u32(&header, 0);
    ok = send(n->fd, header.bytes, header.size, MSG_NOSIGNAL) == (ssize_t)header.size;
    buffer_free(&header);
    return ok;
}

static bool give(int to, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    char one = 1;
    struct iovec part = { &one, 1 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

static bool told(int from, pid_t *pid)
{
    int32_t number = -1;
    ssize_t n;

    do
        n = recv(from, &number, sizeof number, MSG_WAITALL);
    while (n < 0 && errno == EINTR);
    *pid = number;
    return n == sizeof number && number > 0;
}

bool script_nursery_child(struct script_nursery *n, const char *program, pid_t *pid, int *fd, struct error *err)
{
    int pair[2];

    if (!stream_pair(pair, err))
        return false;
    for (int attempt = 0; attempt < 2; attempt++) {
        if ((n->pid >= 0 || start(n, program, err)) && give(n->fd, pair[1]) && told(n->fd, pid)) {
            close(pair[1]);
            *fd = pair[0];
            return true;
        }
        stop(n);
    }
    close(pair[0]);
    close(pair[1]);
    return error_set(err, ERROR_FAULT, "is there enough memory?", "%s starts no process for a script", program);
}

/* ---- the nursery's side --------------------------------------------------------------------------------------------- */

int script_nursery_take(void)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    char one;
    struct iovec part = { &one, 1 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
    };
    struct cmsghdr *c;
    ssize_t n;
    int fd;

    do
        n = recvmsg(0, &message, 0);
    while (n < 0 && errno == EINTR);
    c = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

bool script_nursery_tell(pid_t pid)
{
    int32_t number = pid;

    return send(1, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
}
