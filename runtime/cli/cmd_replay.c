#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/role/audit.h"
#include "runtime/role/home.h"
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

static void print_contribution(const json_t *one)
{
    const json_t *failure = json_object_get(one, "failure");

    printf("%s  ", json_string_value(json_object_get(one, "did")));
    if (json_is_true(json_object_get(one, "match")))
        printf("equal, bit for bit");
    else if (json_object_get(one, "leaf"))
        printf("DIFFERS at leaf %lld (%s)", (long long)json_integer_value(json_object_get(one, "leaf")),
               json_string_value(json_object_get(one, "where")));
    else
        printf("DIFFERS (%s)", json_string_value(json_object_get(one, "where")));
    if (failure)
        printf(": nobody can compute it (%s)", json_string_value(json_object_get(failure, "message")));
    puts(json_object_get(one, "removed") ? "; convicted, and taken out by a later record" : "");
}

static void print_rounds(const char *title, const json_t *rounds)
{
    json_t *round;
    size_t index;

    if (json_array_size(rounds) == 0)
        return;
    printf("%s", title);
    json_array_foreach(rounds, index, round)
    {
        printf(" %lld", (long long)json_integer_value(round));
    }
    puts("");
}

static void print_replay(const json_t *result)
{
    json_t *each, *fold = json_object_get(result, "fold");
    const char *kind = json_string_value(json_object_get(result, "kind")),
               *reason = json_string_value(json_object_get(result, "reason")),
               *state = json_string_value(json_object_get(fold, "state"));
    size_t index, count = json_array_size(json_object_get(result, "contributions"));

    printf("round %lld  %s%s%s\n", (long long)json_integer_value(json_object_get(result, "round")), kind,
           reason && reason[0] ? ": " : "", reason ? reason : "");
    json_array_foreach(json_object_get(result, "contributions"), index, each) print_contribution(each);
    if (count == 0 && !json_is_object(fold))
        puts("nobody's work is in it and nothing was folded: the record follows from what it names");
    if (json_is_object(fold)) {
        printf("state %s  %s\n", state ? state : "none",
               json_is_true(json_object_get(fold, "match")) ? "equal, bit for bit" : "DIFFERS");
        if (json_array_size(json_object_get(fold, "rounds")) != 1 || count == 0)
            print_rounds("folded again, without what was convicted: rounds", json_object_get(fold, "rounds"));
    }
    print_rounds("settled rounds", json_object_get(result, "settled"));
}

static int replay_main(struct invocation *in)
{
    struct archive a = { 0 };
    struct error err = { 0 };
    char *end;
    long round = strtol(in->argument[1], &end, 10);
    char did[DID_TEXT];
    json_t *result = NULL;

    if (*end || round < 1 || round == LONG_MAX) {
        error_set(&err, ERROR_USAGE, NULL, "ROUND %.80s is no round: they count from 1", in->argument[1]);
        return command_fail(in, &err);
    }
    if (archive_open(&a, in->home, in->argument[0], &err) && audit_archive(&a, &err) && archive_worker(&a, in->threads, &err))
        result = replay_round(&a, round, in->arguments > 2 ? home_did(in->home, in->argument[2], did) : NULL, told, in, &err);
    archive_close(&a);
    command_clear_progress(in);
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
    "RUN ROUND [DID|NAME]",
    "recompute a contribution, or a whole round, and compare every bit",
    "rondo replay RUN 1 --home build/q\nrondo replay RUN 3 trainer-1 --home build/q --json",
    "Needs nothing running: records, documents and blocks of the nodes in HOME are read, and every copy is verified. Exit status "
    "1 when\n"
    "something differs that its maker is not convicted for; then the first wrong leaf of the step log is named, or the block or "
    "document that is damaged.",
    NULL,
    replay_main,
};
