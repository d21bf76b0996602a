#include "native/base/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* What the process had started may still write for a moment. */
static void remove_all(const char *path)
{
    for (int i = 0; i < 50 && nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && access(path, F_OK) == 0; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static void keep(const char *path, int waits)
{
    char byte;

    setsid(); /* signals for the terminal's processes are not for this one */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    dup2(waits, 0); /* nothing else of the process is held open: neither its output nor its locks */
    close_range(1, ~0U, 0);
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    remove_all(path);
    _exit(0);
}

bool scratch_open(struct scratch *s, const char *name, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    int ends[2];

    snprintf(s->path, sizeof s->path, "%s/rondo-%s-XXXXXX", parent && parent[0] ? parent : "/tmp", name);
    if (!mkdtemp(s->path)) {
        error_set(err, ERROR_IO, "name a folder with room by TMPDIR", "cannot make a folder to work in: %s", strerror(errno));
        return error_at(err, "%s", s->path);
    }
    if (pipe2(ends, O_CLOEXEC) == 0) {
        s->keeper = fork();
        if (s->keeper == 0)
            keep(s->path, ends[0]);
        close(ends[0]);
        s->alive = ends[1];
        if (s->keeper > 0)
            return true;
        close(ends[1]);
    }
    error_set(err, ERROR_IO, NULL, "cannot start a process: %s", strerror(errno));
    rmdir(s->path);
    return false;
}

void scratch_close(struct scratch *s)
{
    close(s->alive);
    while (waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
}
