/* measure.h - ours against theirs, in pairs: what all of `rondo bench` shares.
 *
 *     pair 1: ours theirs   pair 2: theirs ours   pair 3: ours theirs   ...      at least five, after one call of each to warm up
 *               \   /                \   /                 \   /
 *               ratio                ratio                 ratio         -> the median ratio, and the median of each side
 *
 * Both sides of a pair run within a moment of each other, so what else the machine does falls on both. One line a row: a table, or with
 * --json an object { name, ours, unit, theirs, peer, ratio, limit_share }; ratio is ours / theirs in `unit`, limit_share ours against
 * what the machine could do at most; what is not known is null. A peer that is not there has a row too: { name, peer, absent, install }.
 */
#ifndef RONDO_CLI_MEASURE_H
#define RONDO_CLI_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"
#include "runtime/cli/command.h"

struct measure {
    const struct invocation *in;
    const char *only; /* rows whose names start so; "" for all */
    json_t *names;    /* of the rows there are: name -> whether it is asked for */
    size_t pairs;     /* 5 .. MEASURE_PAIRS */
    size_t rows;      /* printed so far */
    bool profile;
    bool cpu; /* processor time instead of the wall clock: for a machine that is busy otherwise */
};

enum { MEASURE_PAIRS = 101, MEASURE_NAME = 64 };

/* One side's work, done once. */
struct measure_side {
    void (*run)(void *context);
    void *context;
    double work;       /* units done by one call: the rate is work / seconds */
    unsigned threads;  /* that share the work (0: one): of processor time each counts its part, as if they never waited */
    const double *cpu; /* processor time of a side that works in another process, growing; NULL: it is this one's */
};

struct measure_contest {
    const char *name;                 /* "codec.int8" */
    const char *unit;                 /* of a rate: "GB/s" */
    const char *peer;                 /* who `theirs` is: "memcpy" */
    struct measure_side ours, theirs; /* theirs.run NULL: ours alone */
    double limit;                     /* the highest rate that the machine allows; 0: not known */
    double least;                     /* seconds of one measurement, made long enough by repeating calls; 0: 0.05 */
    double rest;                      /* seconds before each: threads of the other side's pool may spin that long after a call */
};

struct measure_row {
    char name[MEASURE_NAME];
    const char *unit, *peer;                 /* peer NULL: there is none */
    double ours, theirs, ratio, limit_share; /* 0: not known */
};

/* Seconds of a clock that never goes back. */
double measure_now(void);

/* The middle value (of an even count, the mean of the two). Sorts `values`. */
double measure_median(double *values, size_t count);

/* Whether the rows of this name are asked for. */
bool measure_wanted(const struct measure *m, const char *name);

/* Runs the pairs; prints nothing. */
struct measure_row measure_run(const struct measure *m, const struct measure_contest *contest);

/* Prints a row. */
void measure_print(struct measure *m, const struct measure_row *row);

/* Runs and prints, if it is wanted. */
void measure_contest(struct measure *m, const struct measure_contest *contest);

/* A row that cannot be measured: why, and what to do about it. */
void measure_absent(struct measure *m, const char *name, const char *peer, const char *why, const char *install);

#endif
