#include <stdio.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/local.h"

static const struct option options[] = {
    { "ledger-seed", "TEXT", "test seed of ledger entropy, keys and nonce: two runs give the same bits" },
    { NULL, NULL, NULL },
};

/* What the objective calls metrics, where the held-out rows were measured by it. */
static void print_metrics(const json_t *before, const json_t *after)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get((json_t *)(uintptr_t)after, "metrics"), name, value)
    {
        printf("%-28.28s %10.4f %10.4f\n", name, json_number_value(json_object_get(json_object_get(before, "metrics"), name)),
               json_number_value(value));
    }
}

static void print_evaluation(const json_t *eval)
{
    const json_t *before = json_object_get(eval, "before"), *after = json_object_get(eval, "after");

    if (!before)
        return;
    printf("\n%-28s %10s %10s\n", "held out", "before", "after");
    if (json_is_real(json_object_get(after, "reward")))
        printf("%-28s %10.4f %10.4f\n", "reward", json_real_value(json_object_get(before, "reward")),
               json_real_value(json_object_get(after, "reward")));
    if (json_is_real(json_object_get(after, "loss")))
        printf("%-28s %10.4f %10.4f\n", "loss", json_real_value(json_object_get(before, "loss")),
               json_real_value(json_object_get(after, "loss")));
    if (json_is_real(json_object_get(after, "tool_call_accuracy")))
        printf("%-28s %10.3f %10.3f\n", "tool-call accuracy", json_number_value(json_object_get(before, "tool_call_accuracy")),
               json_number_value(json_object_get(after, "tool_call_accuracy")));
    print_metrics(before, after);
}

static void print_rounds(const json_t *rounds)
{
    json_t *each;
    size_t index;

    printf("\n%5s %-8s %8s %8s %15s  %s\n", "round", "status", "accepted", "refused", "mean step loss", "state");
    json_array_foreach(rounds, index, each)
    {
        const json_t *loss = json_object_get(each, "loss");
        char text[32] = "-";

        if (json_is_number(loss))
            snprintf(text, sizeof text, "%.4f", json_number_value(loss));
        printf("%5lld %-8s %8lld %8lld %15s  %.16s\n", (long long)json_integer_value(json_object_get(each, "round")),
               json_string_value(json_object_get(each, "status")),
               (long long)json_integer_value(json_object_get(each, "accepted")),
               (long long)json_integer_value(json_object_get(each, "refused")), text,
               json_string_value(json_object_get(each, "state_root")));
    }
}

static void print_paid(const json_t *result)
{
    json_t *paid = json_object_get(result, "paid"), *did;
    const char *name;

    printf("\n%-12s %14s  %s\n", "node", "paid", "did");
    json_object_foreach(json_object_get(result, "nodes"), name, did) printf(
        "%-12s %14s  %s\n", name, json_string_value(json_object_get(paid, json_string_value(did))), json_string_value(did));
}

static void print_result(const struct invocation *in, const json_t *result)
{
    const json_t *replay = json_object_get(result, "replay");
    double sent = json_number_value(json_object_get(result, "bytes_sent")),
           dense = json_number_value(json_object_get(result, "bytes_dense"));
    const char *run = json_string_value(json_object_get(result, "run"));

    print_rounds(json_object_get(result, "rounds"));
    print_evaluation(json_object_get(result, "eval"));
    print_paid(result);
    printf("\nsent %.2f MB; dense 32-bit exchange of every step: %.1f MB (%.0f times as much)\n", sent / 1e6, dense / 1e6,
           sent > 0 ? dense / sent : 0);
    printf("recomputed %lld, equal bit for bit %lld\n", (long long)json_integer_value(json_object_get(replay, "checked")),
           (long long)json_integer_value(json_object_get(replay, "matched")));
    printf("adapter: %s\n", json_string_value(json_object_get(result, "adapter")));
    printf("\nNext:\n  rondo replay %s 1 --home %s\n  rondo audit %s --home %s\n  rondo why %s trainer-1 --home %s\n", run,
           in->home, run, in->home, run, in->home);
}

static int local_main(struct invocation *in)
{
    struct error err = { 0 };
    int64_t threads = 0;
    struct local_options local = {
        .runfile = in->argument[0],
        .home = in->home,
        .ledger_seed = option_text(in, "ledger-seed", NULL),
        .json = in->json,
        .quiet = in->quiet,
    };

    if (!option_integer(in, "threads", 1, 1024, &threads, &err))
        return command_fail(in, &err);
    local.threads = (unsigned)threads;

    json_t *result = local_run(&local, &err);

    if (!result)
        return err.code == ERROR_NONE ? 130 : command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
    } else {
        print_result(in, result);
        json_decref(result);
    }
    return EXIT_OK;
}

const struct command command_local = {
    "local",
    "RUNFILE",
    "run a whole network on this machine: ledger, sponsor, syncers and trainers as separate processes",
    "rondo local scripts/runs/quickstart.lua\nrondo local scripts/runs/quickstart.lua --home build/q --json",
    "The same command on a home that holds a finished run prints its result again; on one that was broken off it goes on. "
    "Ctrl-C\n"
    "ends every process.",
    options,
    local_main,
};
