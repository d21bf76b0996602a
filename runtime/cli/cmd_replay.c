#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/role/audit.h"
#include "runtime/role/replay.h"

static void told(void *context, json_t *progress)
{
    const struct invocation *in = context;

    if (in->quiet || !isatty(STDERR_FILENO) || !json_object_get(progress, "steps"))
        return;
    fprintf(stderr, "\r\033[Kstep %lld/%lld", (long long)json_integer_value(json_object_get(progress, "step")),
            (long long)json_integer_value(json_object_get(progress, "steps")));
    fflush(stderr);
}

static void print_replay(const json_t *result)
{
    json_t *each, *fold = json_object_get(result, "fold");
    size_t index;

    json_array_foreach(json_object_get(result, "contributions"), index, each)
    {
        printf("%s  ", json_string_value(json_object_get(each, "did")));
        if (json_is_true(json_object_get(each, "match")))
            puts("equal, bit for bit");
        else if (json_object_get(each, "leaf"))
            printf("DIFFERS at leaf %lld (%s)\n", (long long)json_integer_value(json_object_get(each, "leaf")),
                   json_string_value(json_object_get(each, "where")));
        else
            printf("DIFFERS (%s)\n", json_string_value(json_object_get(each, "where")));
    }
    if (json_is_object(fold))
        printf("state %s  %s\n", json_string_value(json_object_get(fold, "state")),
               json_is_true(json_object_get(fold, "match")) ? "equal, bit for bit" : "DIFFERS");
}

static int replay_main(struct invocation *in)
{
    struct archive a = { 0 };
    struct error err = { 0 };
    char *end;
    long round = strtol(in->argument[1], &end, 10);
    json_t *result = NULL;

    if (*end || round < 1) {
        error_set(&err, ERROR_USAGE, NULL, "ROUND %s is no round: they count from 1", in->argument[1]);
        return command_fail(in, &err);
    }
    if (archive_open(&a, in->home, in->argument[0], &err) && audit_archive(&a, &err) && archive_worker(&a, in->threads, &err))
        result = replay_round(&a, round, in->arguments > 2 ? in->argument[2] : NULL, told, in, &err);
    archive_close(&a);
    if (!in->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (!result) {
        command_fail(in, &err);
        return err.code == ERROR_MISMATCH || err.code == ERROR_CONFLICT ? EXIT_VERDICT : error_status(err.code);
    }

    bool match = json_is_true(json_object_get(result, "match"));

    if (in->json) {
        command_print_json(result);
    } else {
        print_replay(result);
        json_decref(result);
    }
    return match ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_replay = {
    "replay",
    "RUN ROUND [DID]",
    "recompute a contribution, or a whole round, and compare every bit",
    "rondo replay RUN 1 --home build/q\nrondo replay RUN 3 did:tenzro:machine:z6Mk... --home build/q --json",
    "Needs nothing running: records, documents and blocks of the nodes in HOME are read, and every copy is verified. Exit status "
    "1 when\n"
    "something differs; then the first wrong leaf of the step log is named, or the block or document that is damaged.",
    NULL,
    replay_main,
};
