#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/role/bisect.h"

static const struct option options[] = {
    { "program-a", "FILE", "the program that computed RUN_A (default: this one)" },
    { "program-b", "FILE", "the program that computed RUN_B (default: this one)" },
    { NULL, NULL, NULL },
};

static void told(void *context, json_t *progress)
{
    const struct invocation *in = context;

    if (in->quiet || !isatty(STDERR_FILENO) || !json_object_get(progress, "steps"))
        return;
    fprintf(stderr, "\r\033[Kstep %lld/%lld", (long long)json_integer_value(json_object_get(progress, "step")),
            (long long)json_integer_value(json_object_get(progress, "steps")));
    fflush(stderr);
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value ? value : "";
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static void print_step(const json_t *result)
{
    const json_t *traces = json_object_get(result, "traces");

    printf("round %lld: %s parts at step %lld (leaf %lld: %s)\n", number(result, "round"), text(result, "did"),
           number(result, "leaf") - 1, number(result, "leaf"), text(result, "where"));
    if (json_is_string(json_object_get(result, "operator")))
        printf("operator %s, value %lld of the step, tile %lld\ntraces   a %s, b %s\n", text(result, "operator"),
               number(result, "entry"), number(result, "tile"), text(traces, "a"), text(traces, "b"));
    else if (traces)
        printf("operator unknown: traces a %s, b %s (--program-a, --program-b)\n", text(traces, "a"), text(traces, "b"));
}

static void print_bisect(const json_t *result)
{
    if (json_is_true(json_object_get(result, "equal")))
        printf("equal, bit for bit, in %lld rounds\n", number(result, "rounds"));
    else if (json_object_get(result, "where"))
        print_step(result);
    else
        printf("round %lld: %s differs %s%s\n", number(result, "round"), text(result, "what"), text(result, "did"),
               strcmp(text(result, "run_a"), text(result, "run_b")) == 0
                   ? ""
                   : " (seeds follow from a run's id: one run file and one --ledger-seed give two homes one run)");
}

/* A folder is a home with one run; anything else a run of HOME. */
static struct bisect_side side_of(const struct invocation *in, size_t i, const char *program)
{
    struct stat status;
    const char *word = in->argument[i];
    bool folder = stat(word, &status) == 0 && S_ISDIR(status.st_mode);

    return (struct bisect_side){ .home = folder ? word : in->home,
                                 .run = folder ? NULL : word,
                                 .program = option_text(in, program, NULL) };
}

static int bisect_main(struct invocation *in)
{
    struct error err = { 0 };
    const struct bisect_side sides[2] = { side_of(in, 0, "program-a"), side_of(in, 1, "program-b") };
    json_t *result = bisect_run(sides, in->threads, told, in, &err);

    command_clear_progress(in);
    if (!result)
        return command_fail(in, &err);

    bool equal = json_is_true(json_object_get(result, "equal"));

    if (in->json) {
        command_print_json(result);
    } else {
        print_bisect(result);
        json_decref(result);
    }
    return equal ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_bisect = {
    "bisect",
    "RUN_A RUN_B",
    "name the first round, step, operator and tile in which two runs of one spec differ",
    "rondo bisect build/one build/two\nrondo bisect build/one build/two --program-b /opt/old/rondo --json",
    "Each is a home that holds one run, or a run of HOME. Nothing of them is running. What both gave their trainers is compared "
    "first, "
    "then\n"
    "the step logs; of the first leaf that differs the step is traced once more for either run, or taken from a dispute, and the "
    "first "
    "tile\n"
    "named. A run that another build computed needs that build for its trace. Exit status 0: equal; 1: they differ.",
    options,
    bisect_main,
};
