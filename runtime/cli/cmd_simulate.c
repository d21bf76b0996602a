#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "runtime/cli/commands.h"
#include "runtime/simulation/simulation.h"

static const struct option options[] = {
    { "seeds", "N", "so many runs, each from a seed of its own (default 100)" },
    { "seed", "S", "the first seed (default 1); given without --seeds it is the only one" },
    { "trainers", "N", "trainers in every run, 2 to 1000 (default: the seed says)" },
    { "syncers", "M", "syncers in every run, 1 to 64, all but a third of them the threshold (default: the seed says)" },
    { "rounds", "R", "training rounds of every run (default: the seed says)" },
    { "lying-trainers", "N", "trainers that lie, at most those beyond the quorum (default: the seed says)" },
    { "lying-syncers", "M", "syncers that lie, at most as many as are tolerated (default: the seed says)" },
    { "faults", "LIST", "what may go wrong, names with commas between; `all`, `none`, `names` (default: the seed says)" },
    { "keep", "A-B", "of the faults that happen by chance only numbers A to B - 1, as a failure names them" },
    { "bytes", NULL, "count the bytes of messages, too" },
    { "trace", "LEVEL", "print what happens: 1 faults, statements and decisions, 2 every action" },
    { NULL, NULL, NULL },
};

/* What was asked for beside the seed; -1: the seed says. */
struct wanted {
    int64_t seeds, seed, trainers, syncers, rounds, lying_trainers, lying_syncers;
    uint64_t faults, keep_first, keep_end;
    int64_t trace;
    bool faults_given, weigh;
};

static bool read_faults(const char *text, struct wanted *w, struct error *err)
{
    w->faults_given = true;
    if (strcmp(text, "none") == 0)
        return true;
    if (strcmp(text, "all") == 0) {
        w->faults = (UINT64_C(1) << FAULT_KINDS) - 1;
        return true;
    }
    while (*text) {
        size_t size = strcspn(text, ",");
        enum fault fault = fault_named(text, size);

        if (fault == FAULT_KINDS)
            return error_set(err, ERROR_USAGE, "rondo simulate --faults names lists them", "--faults: \"%.*s\" is no fault",
                             (int)size, text);
        w->faults |= UINT64_C(1) << fault;
        text += size + (text[size] == ',');
    }
    return true;
}

static bool read_keep(const char *text, struct wanted *w, struct error *err)
{
    int used = 0;

    w->keep_end = UINT64_MAX;
    if (!text)
        return true;
    if (sscanf(text, "%" SCNu64 "-%" SCNu64 "%n", &w->keep_first, &w->keep_end, &used) == 2 && !text[used])
        return true;
    return error_set(err, ERROR_USAGE, "write --keep 12-40", "--keep: \"%s\" is not two numbers with a hyphen between", text);
}

static bool read_wanted(const struct invocation *in, struct wanted *w, struct error *err)
{
    const char *faults = option_text(in, "faults", NULL);

    *w = (struct wanted){ .seeds = option_text(in, "seed", NULL) ? 1 : 100,
                          .seed = 1,
                          .trainers = -1,
                          .syncers = -1,
                          .rounds = -1,
                          .lying_trainers = -1,
                          .lying_syncers = -1,
                          .weigh = option_flag(in, "bytes") };
    return option_integer(in, "seeds", 1, INT64_C(1) << 40, &w->seeds, err) &&
           option_integer(in, "trace", 0, 2, &w->trace, err) && option_integer(in, "seed", 0, INT64_MAX, &w->seed, err) &&
           option_integer(in, "trainers", 2, SIMULATION_TRAINERS, &w->trainers, err) &&
           option_integer(in, "syncers", 1, SIMULATION_SYNCERS, &w->syncers, err) &&
           option_integer(in, "rounds", 1, 1000000, &w->rounds, err) &&
           option_integer(in, "lying-trainers", 0, SIMULATION_TRAINERS, &w->lying_trainers, err) &&
           option_integer(in, "lying-syncers", 0, SIMULATION_SYNCERS, &w->lying_syncers, err) &&
           read_keep(option_text(in, "keep", NULL), w, err) && (!faults || read_faults(faults, w, err));
}

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

static struct simulation simulation_of(const struct wanted *w, uint64_t seed)
{
    struct simulation set = simulation_from_seed(seed);

    if (w->trainers >= 0) {
        set.trainers = (int)w->trainers;
        set.quorum = set.trainers > 8 ? set.trainers / 2 : set.quorum;
    }
    if (w->syncers >= 0 && w->syncers != set.syncers) {
        set.syncers = (int)w->syncers;
        set.threshold = set.syncers - (set.syncers - 1) / 3;
    }
    if (w->rounds >= 0)
        set.rounds = (int)w->rounds;
    if (w->lying_trainers >= 0)
        set.lying_trainers = (int)w->lying_trainers;
    if (w->lying_syncers >= 0)
        set.lying_syncers = (int)w->lying_syncers;
    set.lying_trainers = at_most(set.lying_trainers, set.trainers - set.quorum);
    set.lying_syncers = at_most(set.lying_syncers, at_most(set.syncers - set.threshold, 2 * set.threshold - set.syncers - 1));
    if (w->faults_given)
        set.faults = w->faults;
    set.keep_first = w->keep_first;
    set.keep_end = w->keep_end;
    set.weigh = w->weigh;
    set.trace = (int)w->trace;
    return set;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct sums {
    int64_t seeds, overcome, rounds, train, skip;
    uint64_t events, messages, most_messages, bytes, faults[FAULT_KINDS];
    double most_per_round, most_bytes_per_round, node_rounds;
};

static void add(struct sums *sums, const struct simulation *set, const struct simulation_result *result)
{
    sums->seeds++;
    sums->overcome += result->overcome;
    sums->rounds += result->rounds;
    sums->train += result->train;
    sums->skip += result->skip;
    sums->events += result->events;
    sums->messages += result->messages;
    sums->bytes += result->bytes;
    sums->node_rounds += (double)(set->trainers + set->syncers) * result->rounds;
    if (result->most_messages > sums->most_messages)
        sums->most_messages = result->most_messages;
    if (result->rounds && (double)result->most_messages / result->rounds > sums->most_per_round)
        sums->most_per_round = (double)result->most_messages / result->rounds;
    if (result->rounds && (double)result->most_bytes / result->rounds > sums->most_bytes_per_round)
        sums->most_bytes_per_round = (double)result->most_bytes / result->rounds;
    for (int f = 0; f < FAULT_KINDS; f++)
        sums->faults[f] += result->faults[f];
}

static double share(double sum, double of)
{
    return of > 0 ? sum / of : 0;
}

static json_t *faults_of(const struct sums *sums)
{
    json_t *faults = json_object();

    for (int f = 0; f < FAULT_KINDS; f++)
        json_object_set_new(faults, fault_name(f), json_integer((json_int_t)sums->faults[f]));
    return faults;
}

static void print_sums(const struct invocation *in, const struct sums *sums, json_t *violation, double took, double worked)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    if (in->json) {
        command_print_json(json_pack(
            "{s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:f, s:o, s:i, s:o, s:f, s:f, s:f, s:I}",
            "seeds", sums->seeds, "overcome", sums->overcome, "rounds", sums->rounds, "records", "train", sums->train, "skip",
            sums->skip, "other", sums->rounds - sums->train - sums->skip, "events", sums->events, "messages", sums->messages,
            "most_messages_of_a_node", sums->most_messages, "most_messages_of_a_node_per_round", sums->most_per_round,
            "messages_per_node_per_round", share((double)sums->messages, sums->node_rounds), "bytes", sums->bytes,
            "most_bytes_of_a_node_per_round", sums->most_bytes_per_round, "bytes_per_node_per_round",
            share((double)sums->bytes, sums->node_rounds), "faults", faults_of(sums), "violations", violation ? 1 : 0,
            "violation", violation ? violation : json_null(), "seconds", took, "processor_seconds", worked, "rounds_per_minute",
            60 * (double)sums->rounds / worked, "resident_bytes", (json_int_t)usage.ru_maxrss * 1024));
        return;
    }
    printf("%lld seeds, %lld rounds (%lld trained, %lld skipped), %llu events, %llu messages\n", (long long)sums->seeds,
           (long long)sums->rounds, (long long)sums->train, (long long)sums->skip, (unsigned long long)sums->events,
           (unsigned long long)sums->messages);
    printf("messages of a node in a round: %.0f, %.0f of the busiest\n", share((double)sums->messages, sums->node_rounds),
           sums->most_per_round);
    if (sums->bytes)
        printf("bytes of a node in a round: %.0f, %.0f of the busiest\n", share((double)sums->bytes, sums->node_rounds),
               sums->most_bytes_per_round);
    for (int f = 0; f < FAULT_KINDS; f++)
        if (sums->faults[f])
            printf("%12llu %s\n", (unsigned long long)sums->faults[f], fault_name(f));
    if (sums->overcome)
        printf("%lld runs stopped: more liars in a committee than it tolerates\n", (long long)sums->overcome);
    if (violation)
        printf("violation: seed %lld, %s: %s\nrepeat it: %s --trace 1\n",
               (long long)json_integer_value(json_object_get(violation, "seed")),
               json_string_value(json_object_get(violation, "invariant")),
               json_string_value(json_object_get(violation, "message")),
               json_string_value(json_object_get(violation, "command")));
    else
        printf("no violation\n");
    printf("%.1f s, %.0f rounds a minute of processor time\n", took, 60 * (double)sums->rounds / worked);
    json_decref(violation);
}

/* The smallest set-up that fails in the same way is told, and unless this was asked for only as JSON, how it goes. */
static json_t *tell_violation(const struct invocation *in, struct simulation set, const struct simulation_result *first)
{
    struct simulation_result result;
    int64_t seed = (int64_t)set.seed;
    int runs = set.keep_end == UINT64_MAX ? simulation_shrink(&set, 300) : 0;
    char *command = simulation_command(&set);

    if (!in->json && !set.trace) {
        set.trace = 1;
        simulation_run(&set, &result);
    }
    json_t *violation =
        json_pack("{s:I, s:s, s:s, s:s, s:i}", "seed", (json_int_t)seed, "invariant", invariant_name(first->broken), "message",
                  first->failure, "command", command, "shrunk_in_runs", runs);

    free(command);
    return violation;
}

static int simulate_main(struct invocation *in)
{
    struct error err = { 0 };
    struct wanted wanted;
    struct sums sums = { 0 };
    json_t *violation = NULL;
    double began = seconds_of(CLOCK_MONOTONIC), worked = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

    if (strcmp(option_text(in, "faults", ""), "names") == 0) {
        for (int f = 0; f < FAULT_KINDS; f++)
            printf("%s\n", fault_name(f));
        return EXIT_OK;
    }
    if (!read_wanted(in, &wanted, &err))
        return command_fail(in, &err);
    for (int64_t i = 0; i < wanted.seeds && !violation; i++) {
        struct simulation set = simulation_of(&wanted, (uint64_t)(wanted.seed + i));
        struct simulation_result result;

        simulation_run(&set, &result);
        add(&sums, &set, &result);
        if (result.broken)
            violation = tell_violation(in, set, &result);
    }
    int status = violation ? EXIT_VERDICT : EXIT_OK;

    print_sums(in, &sums, violation, seconds_of(CLOCK_MONOTONIC) - began, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - worked);
    return status;
}

const struct command command_simulate = {
    "simulate",
    "",
    "runs of the protocol with everything that may go wrong, in one process, from seeds",
    "rondo simulate --seeds 2000 --json\nrondo simulate --seed 7 --trace 1\n"
    "rondo simulate --trainers 4 --syncers 4 --faults loss,crash,body --seeds 50",
    "The real round machines and ledger books, on a network, disks, clocks and a ledger that do their worst until a moment that "
    "the "
    "seed\n"
    "draws, with liars among them (docs/simulation.md). After every event the invariants are checked. The first run that breaks "
    "one "
    "is made\n"
    "smaller, printed, and the command that repeats it with it; the exit status is then 1.",
    options,
    simulate_main,
};
