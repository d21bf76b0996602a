#include "runtime/cli/measure.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double measure_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double measure_median(double *values, size_t count)
{
    assert(count > 0);
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

bool measure_wanted(const struct measure *m, const char *name)
{
    const bool wanted = strncmp(name, m->only, strlen(m->only)) == 0;

    json_object_set_new(m->names, name, json_boolean(wanted));
    return wanted;
}

/* --- pairs ------------------------------------------------------------------------------------------------------------- */

static double clock_of(const struct measure *m, const struct measure_side *side)
{
    struct timespec t;

    if (!m->cpu)
        return measure_now();
    if (side->cpu)
        return *side->cpu / (side->threads ? side->threads : 1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + (double)t.tv_nsec * 1e-9) / (side->threads ? side->threads : 1);
}

static double seconds(const struct measure *m, const struct measure_side *side, size_t calls)
{
    const double start = clock_of(m, side);

    for (size_t i = 0; i < calls; i++)
        side->run(side->context);
    return (clock_of(m, side) - start) / (double)calls;
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){ (time_t)seconds, (long)(1e9 * (seconds - floor(seconds))) }, NULL);
}

/* The rate of one side, once the other's threads sleep. */
static double rate(const struct measure *m, const struct measure_contest *contest, const struct measure_side *side, size_t calls)
{
    rest(contest->rest);
    return side->work / seconds(m, side, calls);
}

/* As many calls as fill `least` seconds, after one to warm up. */
static size_t calls_of(const struct measure *m, const struct measure_side *side, double least)
{
    seconds(m, side, 1);

    const double once = seconds(m, side, 1), calls = ceil(least / (once > 1e-9 ? once : 1e-9));

    return calls < 1 ? 1 : calls > 1e7 ? (size_t)1e7 : (size_t)calls;
}

struct measure_row measure_run(const struct measure *m, const struct measure_contest *contest)
{
    const struct measure_side *ours = &contest->ours, *theirs = &contest->theirs;
    const double least = contest->least > 0 ? contest->least : 0.05;
    const size_t our_calls = calls_of(m, ours, least), their_calls = theirs->run ? calls_of(m, theirs, least) : 0;
    double our[MEASURE_PAIRS], their[MEASURE_PAIRS], ratio[MEASURE_PAIRS];
    struct measure_row row = { .unit = contest->unit, .peer = theirs->run ? contest->peer : NULL };

    assert(m->pairs > 0 && m->pairs <= MEASURE_PAIRS);
    snprintf(row.name, sizeof row.name, "%s", contest->name);
    for (size_t i = 0; i < m->pairs; i++) {
        const bool first = i % 2 == 0;

        if (first)
            our[i] = rate(m, contest, ours, our_calls);
        if (theirs->run)
            their[i] = rate(m, contest, theirs, their_calls);
        if (!first)
            our[i] = rate(m, contest, ours, our_calls);
        if (theirs->run)
            ratio[i] = our[i] / their[i];
    }
    row.ours = measure_median(our, m->pairs);
    if (theirs->run) {
        row.theirs = measure_median(their, m->pairs);
        row.ratio = measure_median(ratio, m->pairs);
    }
    if (contest->limit > 0)
        row.limit_share = row.ours / contest->limit;
    return row;
}

void measure_contest(struct measure *m, const struct measure_contest *contest)
{
    if (!measure_wanted(m, contest->name))
        return;

    const struct measure_row row = measure_run(m, contest);

    measure_print(m, &row);
}

/* --- lines -------------------------------------------------------------------------------------------------------------- */

static json_t *number(double x)
{
    return x > 0 ? json_real(x) : json_null();
}

static json_t *text(const char *s)
{
    return s ? json_string(s) : json_null();
}

static void print_heading(struct measure *m)
{
    if (m->rows++ == 0)
        printf("%-24s %10s %10s %-10s %7s %7s  %s\n", "name", "ours", "theirs", "unit", "ratio", "limit", "peer");
}

static void print_cell(double x, int width, const char *suffix)
{
    if (x > 0)
        printf(" %*.3f%s", width - (int)strlen(suffix), x, suffix);
    else
        printf(" %*s", width, "-");
}

void measure_print(struct measure *m, const struct measure_row *row)
{
    if (m->in->json) {
        command_print_json(json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "name", row->name, "ours", number(row->ours), "unit",
                                     row->unit, "theirs", number(row->theirs), "peer", text(row->peer), "ratio",
                                     number(row->ratio), "limit_share", number(row->limit_share)));
    } else {
        print_heading(m);
        printf("%-24s", row->name);
        print_cell(row->ours, 10, "");
        print_cell(row->theirs, 10, "");
        printf(" %-10s", row->unit);
        print_cell(row->ratio, 7, "");
        print_cell(row->limit_share, 7, "");
        printf("  %s\n", row->peer ? row->peer : "-");
    }
    fflush(stdout);
}

void measure_absent(struct measure *m, const char *name, const char *peer, const char *why, const char *install)
{
    if (!measure_wanted(m, name))
        return;
    if (m->in->json) {
        command_print_json(json_pack("{s:s, s:s, s:s, s:s}", "name", name, "peer", peer, "absent", why, "install", install));
    } else {
        print_heading(m);
        printf("%-24s absent: %s (%s; %s)\n", name, peer, why, install);
    }
    fflush(stdout);
}
