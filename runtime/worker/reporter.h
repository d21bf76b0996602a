/* reporter.h - what a job tells while it runs. */
#ifndef RONDO_WORKER_REPORTER_H
#define RONDO_WORKER_REPORTER_H

#include <jansson.h>
#include <stdbool.h>

/* Where progress goes: reports are lossy and for people. `value` is borrowed. */
struct job_reporter {
    void (*report)(void *context, json_t *value);
    void *context;
    bool every; /* each step, rather than a few a second */
};

#endif
