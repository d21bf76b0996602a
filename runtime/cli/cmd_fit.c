#include <stdio.h>

#include "runtime/cli/commands.h"
#include "runtime/role/fit.h"

static const struct option options[] = {
    { "seed", "TEXT", "seed of order and random choices (default: fit)" },
    { "rounds", "N", "stop after so many rounds" },
    { NULL, NULL, NULL },
};

static int fit_main(struct invocation *in)
{
    struct error err = { 0 };
    int64_t rounds = 0;

    if (!option_integer(in, "rounds", 1, 1000000, &rounds, &err))
        return command_fail(in, &err);

    struct fit_options fit = { .runfile = in->argument[0],
                               .home = in->home,
                               .seed = option_text(in, "seed", "fit"),
                               .threads = in->threads,
                               .rounds = rounds,
                               .quiet = in->quiet };
    json_t *result = fit_run(&fit, &err);

    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }

    json_t *after = json_object_get(json_object_get(result, "eval"), "after"),
           *before = json_object_get(json_object_get(result, "eval"), "before");

    if (json_is_real(json_object_get(after, "reward")))
        printf("held-out reward %.4f -> %.4f\n", json_real_value(json_object_get(before, "reward")),
               json_real_value(json_object_get(after, "reward")));
    else if (json_is_object(after))
        printf("held-out loss %.4f -> %.4f, tool-call accuracy %.3f -> %.3f\n",
               json_number_value(json_object_get(before, "loss")), json_number_value(json_object_get(after, "loss")),
               json_number_value(json_object_get(before, "tool_call_accuracy")),
               json_number_value(json_object_get(after, "tool_call_accuracy")));
    printf("adapter: %s\n", json_string_value(json_object_get(result, "adapter")));
    json_decref(result);
    return EXIT_OK;
}

const struct command command_fit = {
    "fit",
    "RUNFILE",
    "train a run file alone on this machine, without a network",
    "rondo fit scripts/runs/quickstart.lua --home build/fit\nrondo fit scripts/runs/quickstart.lua --home build/fit --rounds 2",
    "One trainer with every shard, folded by the run's own rules: to try a run out before it is paid for, and for baselines.",
    options,
    fit_main,
};
