#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/audit.h"
#include "runtime/role/home.h"
#include "runtime/role/replay.h"

/* Text on one line: what a terminal would obey is shown instead. */
static void print_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", stdout);
        else if ((unsigned char)*text < ' ' || *text == 127)
            printf("\\x%02x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
}

static void print_prompt(const json_t *prompt)
{
    json_t *message;
    size_t index;

    if (json_is_string(prompt))
        print_text(json_string_value(prompt));
    json_array_foreach(prompt, index, message)
    {
        const char *role = json_string_value(json_object_get(message, "role")),
                   *content = json_string_value(json_object_get(message, "content"));

        printf("%s%s: ", index ? " | " : "", role ? role : "?");
        print_text(content ? content : "");
    }
}

static void print_completion(const json_t *c)
{
    const json_t *reward = json_object_get(c, "reward"), *advantage = json_object_get(c, "advantage");

    if (json_is_real(reward))
        printf("    reward %7.4f", json_real_value(reward));
    else
        printf("    declined      ");
    if (advantage)
        printf("  advantage %+7.4f", json_real_value(advantage));
    printf("  %3zu tokens%s  ", json_array_size(json_object_get(c, "tokens")),
           json_is_true(json_object_get(c, "truncated")) ? ", cut" : "     ");
    print_text(json_string_value(json_object_get(c, "text")));
    putchar('\n');
}

static void print_group(const json_t *group)
{
    const json_t *reference = json_object_get(group, "reference");
    json_t *each;
    size_t index;

    printf("  ");
    print_prompt(json_object_get(group, "prompt"));
    if (reference && !json_is_null(reference)) {
        char *text = json_dumps(reference, JSON_ENCODE_ANY | JSON_COMPACT);

        printf("  -> ");
        print_text(text ? text : "");
        free(text);
    }
    putchar('\n');
    json_array_foreach(json_object_get(group, "completions"), index, each) print_completion(each);
}

/* Prints the trainers' batches unless `quietly`; whether all are those that were committed to. */
static bool look_through(const json_t *result, bool quietly)
{
    json_t *trainer, *batch, *group;
    size_t i, k, g;
    bool all = true;

    json_array_foreach(json_object_get(result, "trainers"), i, trainer)
    {
        json_array_foreach(json_object_get(trainer, "batches"), k, batch)
        {
            bool match = json_is_true(json_object_get(batch, "match"));

            all = all && match;
            if (quietly)
                continue;
            printf("%s%s  step %lld  %s\n", i || k ? "\n" : "", json_string_value(json_object_get(trainer, "did")),
                   (long long)json_integer_value(json_object_get(batch, "step")),
                   match ? "as committed" : "NOT what was committed to");
            json_array_foreach(json_object_get(batch, "groups"), g, group) print_group(group);
        }
    }
    return all;
}

static int rollouts_main(struct invocation *in)
{
    struct archive a = { 0 };
    struct error err = { 0 };
    char *end, did[DID_TEXT];
    long round = strtol(in->argument[1], &end, 10);
    int64_t batches = 1;
    json_t *result = NULL;

    if (*end || round < 1 || round == LONG_MAX) {
        error_set(&err, ERROR_USAGE, NULL, "ROUND %.80s is no round: they count from 1", in->argument[1]);
        return command_fail(in, &err);
    }
    if (!option_integer(in, "batches", 0, 1 << 20, &batches, &err))
        return command_fail(in, &err);
    if (archive_open(&a, in->home, in->argument[0], &err) && audit_archive(&a, &err) && archive_worker(&a, in->threads, &err))
        result = replay_rollouts(&a, round, in->arguments > 2 ? home_did(in->home, in->argument[2], did) : NULL, batches, NULL,
                                 NULL, &err);
    archive_close(&a);
    if (!result)
        return command_fail(in, &err);

    bool match = look_through(result, in->json);

    if (in->json)
        command_print_json(result);
    else
        json_decref(result);
    return match ? EXIT_OK : EXIT_VERDICT;
}

static const struct option options[] = {
    { "batches", "N", "the first N batches of each trainer, 0 for all (default 1)" },
    { NULL, NULL, NULL },
};

const struct command command_rollouts = {
    "rollouts",
    "RUN ROUND [DID|NAME]",
    "read what trainers drew and how it was rewarded, in a run with a reward",
    "rondo rollouts RUN 1 --home build/g\nrondo rollouts RUN 6 trainer-1 --batches 0 --json",
    "Rollouts follow from the run's seed and the state before the step: they are drawn again here, and compared with the root "
    "that the\n"
    "trainer committed to. Needs nothing running. Exit status 1 when a batch is not the one of the contribution.",
    options,
    rollouts_main,
};
