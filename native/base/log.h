/* log.h - lines for whoever watches: readable text, or one JSON object a line for machines.
 *
 *     2026-11-29T22:30:01.250Z  info  syncer-1  [agent-sft 3]  view 1 begins: the leader of view 0 was silent
 *     {"time":"2026-11-29T22:30:01.250Z","level":"info","node":"syncer-1","run":"agent-sft","round":3,"message":"view 1 ..."}
 *
 * A `struct log` is a plain value: copy it and set `run` and `round` to speak of a round. Whole lines are written in one call,
 * so several processes may share standard error.
 */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log {
    int fd;               /* 2 for standard error                         */
    enum log_level level; /* lines above it are not written               */
    bool json;
    const char *node; /* borrowed; NULL: left out                     */
    const char *run;  /* borrowed; NULL: left out, the round with it  */
    int64_t round;    /* below zero: left out                         */
};

/* Standard error, text, no node and no run. */
struct log log_default(enum log_level level);

void log_write(const struct log *log, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An error with its place and hint; in JSON also its code. */
void log_error(const struct log *log, const struct error *err);

/* Now, as above: "2026-11-29T22:30:01.250Z". Returns `text`. */
const char *log_time(char text[32]);

/* False for a name that is none of: error warn info debug. */
bool log_level_parse(const char *name, enum log_level *out);

#endif
