/* crashing.h - a node that runs above a disk that fails: for tests of power cuts (crash_test.c), full disks and failed syncs (full_disk_test.c).
 *
 *     steps of a node (stores.h) ── in a process of its own ── a disk that fails (failing_disk.h)
 *           └ acknowledged, in memory that the test shares
 */
#ifndef CRASHING_H
#define CRASHING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/fixture/fixture.h"
#include "tests/fixture/stores.h"
#include "tests/unit/failing_disk.h"

/* Shared with the process that looks: steps that were acknowledged; the points of a process that came to its end. */
static int *acknowledged;

/* Memory that the processes share. */
static inline void *shared(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* A new folder, in memory where it can be. */
static inline void crash_folder(char folder[64])
{
    snprintf(folder, 64, "%s/rondo_crash_XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(folder));
}

static inline int exit_of(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a process of its own, which the power may fail: from step `first` on. Exit 0: all steps were done. */
static inline int node_runs(const char *folder, int first, long cut_at, enum cut cut, bool lossy, long *points)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct stores s;

        disk.on = true;
        disk.cut_at = cut_at;
        disk.cut = cut;
        disk.lossy = lossy;
        if (!stores_open(&s, folder))
            _exit(1);
        for (int i = first; i < STORES_STEPS; i++) {
            if (!stores_step(&s, folder, i))
                _exit(2);
            *acknowledged = i + 1;
        }
        journal_close(s.journal);
        acknowledged[1] = (int)disk.points;
        _exit(0);
    }
    status = exit_of(pid);
    if (points)
        *points = acknowledged[1];
    return status;
}

/* The states of a node that nothing happens to, and its points. */
static inline long undisturbed(const char *folder, struct stores_states *states)
{
    long points;

    stores_note(states, folder);
    fixture_remove(folder);
    assert_int_equal(node_runs(folder, 0, -1, CUT_BEFORE, false, &points), 0);
    return points;
}

#endif
