/* scratch.h - a folder for the time of one task; nothing of it stays, however the process ends.
 *
 *     process ---- pipe ----> keeper, a child that only waits for the pipe's end
 *        |                        |
 *     works in the folder      removes it: after scratch_close, a signal, kill -9 or a crash
 */
#ifndef RONDO_BASE_SCRATCH_H
#define RONDO_BASE_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "native/base/error.h"

struct scratch {
    char path[4096];
    int alive; /* the pipe's end that this process holds */
    pid_t keeper;
};

/* Makes $TMPDIR/rondo-NAME-XXXXXX, below /tmp without TMPDIR. To be called before threads are started. Errors: io. */
bool scratch_open(struct scratch *s, const char *name, struct error *err);
void scratch_close(struct scratch *s); /* returns when the folder is gone */

#endif
