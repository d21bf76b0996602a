/* stepper.h - a process that does one step when asked by a line and answers with a line of JSON: ours (`rondo bench step --serve`) or a
 * peer's (bench/peers/torch_step.py).
 *
 *     parent ── "step" ──> child                each side in a process of its own: threads, memory and caches of one do not
 *     parent <── { "seconds", "cpu", "peak" } ──   burden the other
 */
#ifndef RONDO_CLI_STEPPER_H
#define RONDO_CLI_STEPPER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "native/base/error.h"

struct stepper {
    pid_t pid;
    FILE *ask, *answer;
    char name[128];       /* as the child calls itself */
    char request[64];     /* the line to ask with; "step" at first */
    double seconds, peak; /* of the last step, and bytes of its greatest resident set */
    double cpu;           /* processor time of all steps so far */
    bool failed;
};

/* Starts argv (ends with NULL) and reads the line in which it names itself. Errors: missing (it does not start, or says nothing). */
bool stepper_start(struct stepper *s, const char *const *argv, struct error *err);
void stepper_stop(struct stepper *s);

/* One step; s->failed when the child is gone. Fits struct measure_side. */
void stepper_step(void *stepper);

/* The Python that has the peers: $RONDO_BENCH_PYTHON, else the one that bench/run.sh makes. */
const char *stepper_python(void);

/* The child's side: answers each line of standard input by step(context, line) until it ends. False with `err` from step. */
bool stepper_serve(const char *name, bool (*step)(void *context, const char *line, struct error *err), void *context,
                   struct error *err);

#endif
