/* Whole runs under faults and lies, each from one seed (runtime/simulation). RONDO_SEEDS=N runs N mixed seeds instead of the usual 120; a
 * failing one is repeated, made small and told by `rondo simulate --seed SEED`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/buffer.h"
#include "runtime/simulation/simulation.h"

static struct simulation_result run(struct simulation set)
{
    struct simulation_result result;
    simulation_run(&set, &result);
    if (result.broken)
        fail_msg("%s: %s", invariant_name(result.broken), result.failure);
    return result;
}

static struct simulation lying(enum fault lie)
{
    struct simulation set = simulation_calm(1);
    set.faults = UINT64_C(1) << lie;
    *(lie < LIE_TRAINER ? &set.lying_syncers : &set.lying_trainers) = 1;
    return set;
}

static void a_run_without_faults_trains_every_round(void **state)
{
    (void)state;
    struct simulation_result result = run(simulation_calm(1));
    assert_int_equal(result.train, 4);
    assert_int_equal(result.skip, 0);
    assert_false(result.liar_convicted);
}

static void the_same_seed_ends_in_the_same_state(void **state)
{
    (void)state;
    struct simulation_result a = run(simulation_from_seed(3)), b = run(simulation_from_seed(3));
    assert_string_equal(a.state, b.state);
    assert_int_equal(a.events, b.events);
    assert_int_equal(a.injected, b.injected);
}

/* `simulation_test trace SEED`: everything that happens in a run of the seed, twice, on standard output. */
static int print_traces(const char *seed)
{
    struct simulation set = simulation_from_seed(strtoull(seed, NULL, 10));
    struct simulation_result result;
    set.trace = 2;
    for (int i = 0; i < 2; i++)
        simulation_run(&set, &result);
    return 0;
}

/* What another process prints of the seed: other addresses, other seeds of hash tables, other bytes in memory that was not set. */
static struct buffer traces_of(int seed, const char *perturb)
{
    char number[16], chunk[65536];
    struct buffer text = { 0 };
    int ends[2], status;
    ssize_t size;
    snprintf(number, sizeof number, "%d", seed);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("MALLOC_PERTURB_", perturb, 1);
        execl("/proc/self/exe", "simulation_test", "trace", number, NULL);
        _exit(127);
    }
    close(ends[1]);
    while ((size = read(ends[0], chunk, sizeof chunk)) > 0)
        buffer_add(&text, chunk, (size_t)size);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return text;
}

static void a_seed_gives_the_same_trace_again_and_in_another_process(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 8; seed++) {
        struct buffer a = traces_of(seed, "90"), b = traces_of(seed, "165");
        assert_true(a.size > 10000);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.bytes, b.bytes, a.size);
        assert_int_equal(a.size % 2, 0);
        assert_memory_equal(a.bytes, a.bytes + a.size / 2, a.size / 2);
        buffer_free(&a);
        buffer_free(&b);
    }
}

static void a_lying_trainer_is_caught_by_a_replay_and_removed(void **state)
{
    (void)state;
    struct simulation set = lying(LIE_BODY);
    struct simulation_result result = run(set);
    assert_true(result.liar_convicted);
    set.rollback = true;
    assert_true(run(set).liar_convicted);
    set.seed = 3; /* what it gives nobody can compute */
    assert_true(run(set).liar_convicted);
}

static void a_trainer_that_does_not_show_what_it_kept_is_convicted(void **state)
{
    (void)state;
    struct simulation set = lying(LIE_MUTE);
    set.keeps = true;
    assert_true(run(set).liar_convicted);
    set.seed = 2; /* its openings name what nobody can have */
    assert_true(run(set).liar_convicted);
    set = simulation_calm(1);
    set.keeps = true;
    struct simulation_result honest = run(set);
    assert_int_equal(honest.train, 4);
    assert_false(honest.liar_convicted);
}

static void a_copied_contribution_convicts_who_copied(void **state)
{
    (void)state;
    struct simulation set = lying(LIE_COPY);
    set.spot_check = "0";
    assert_true(run(set).liar_convicted);
}

static void a_trainer_that_sends_two_contributions_is_convicted(void **state)
{
    (void)state;
    assert_true(run(lying(LIE_TWICE)).liar_convicted);
}

static void a_syncer_that_votes_for_everything_forks_nothing_and_is_convicted(void **state)
{
    (void)state;
    assert_true(run(lying(LIE_EQUIVOCATE)).liar_convicted);
}

static void false_accusations_convict_nobody(void **state)
{
    (void)state;
    assert_false(run(lying(LIE_ACCUSE)).liar_convicted);
    struct simulation set = lying(LIE_ACCUSE); /* a syncer and a trainer: the later accuses of a step that has been opened */
    set.lying_syncers = 1;
    for (set.seed = 1; set.seed <= 10; set.seed++)
        assert_false(run(set).liar_convicted);
}

/* Four accuse all the honest, in a run whose challenges a replay decides, while a fifth lies in its work: that it is not paid, the simulator checks. */
static void accusations_do_not_hide_who_lies(void **state)
{
    (void)state;
    for (int seed = 13; seed < 400; seed += 32) {
        struct simulation set = simulation_from_seed((uint64_t)seed);
        assert_true(set.besieged);
        assert_true(run(set).liar_convicted);
    }
    /* Who is to find it out owes eight replays of the round before: its challenge comes late, where others owe many, too. */
    assert_true(run(simulation_from_seed(110573)).liar_convicted);
}

/* Every unit of money is where the records say: with liars, who lose their stakes, with accusers, who lose theirs to the accused, and without. */
static void stakes_are_lost_by_who_lies_and_who_accuses_for_nothing(void **state)
{
    static const enum fault lies[] = { LIE_BODY, LIE_MUTE, LIE_TWICE, LIE_ACCUSE, LIE_MANY };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct simulation set = lying(lies[i]);
        set.deposits = true;
        run(set);
    }
    struct simulation calm = simulation_calm(2);
    calm.deposits = true;
    assert_int_equal(run(calm).train, 4);
}

static void a_run_that_its_sponsor_changes_keeps_every_invariant(void **state)
{
    int skipped = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct simulation set = simulation_calm(seed);
        set.amends = set.deposits = true;
        set.rounds = 8;
        skipped += run(set).skip;
    }
    assert_true(skipped > 0); /* some were paused */
}

static void a_silent_syncer_delays_but_does_not_stop(void **state)
{
    (void)state;
    assert_int_equal(run(lying(LIE_SILENT)).train, 4);
}

/* Three decide with three, so none may lie; one that claims a head far ahead still does not keep the next seed from coming. */
static void a_head_far_ahead_does_not_stop_a_committee_that_tolerates_no_liar(void **state)
{
    (void)state;
    struct simulation set = lying(LIE_HEADS);
    set.syncers = set.threshold = 3;
    for (set.seed = 1; set.seed <= 10; set.seed++) {
        struct simulation_result result = run(set);
        assert_false(result.overcome);
        assert_int_equal(result.train, 4);
    }
}

static void whatever_one_member_says_every_round_is_trained(void **state)
{
    (void)state;
    for (enum fault lie = LIE_FIRST; lie < FAULT_KINDS; lie++)
        if (run(lying(lie)).train != 4)
            fail_msg("%s", fault_name(lie));
}

static void too_few_contributions_give_a_skip_and_the_run_goes_on(void **state)
{
    (void)state;
    struct simulation set = simulation_calm(1);
    set.late_trainers = true;
    struct simulation_result result = run(set);
    assert_int_equal(result.skip, 1);
    assert_int_equal(result.train, 3);
}

static void a_trainer_that_was_dropped_enrols_again_and_is_accepted(void **state)
{
    (void)state;
    struct simulation set = simulation_calm(1);
    set.absent_trainer = true;
    set.rounds = 5;
    assert_int_equal(run(set).last_trainer_at, 1);
    set.rounds = 8;
    assert_true(run(set).last_trainer_at > 5);
    for (set.seed = 2; set.seed < 12; set.seed++) {
        set.faults = 1 << FAULT_CRASH; /* what it signs again after a restart is the same document */
        set.rate[FAULT_CRASH] = 6;
        set.faults_until = 60000;
        assert_true(run(set).last_trainer_at > 5);
    }
}

static void trainers_state_what_they_take_and_shards_stay_in_their_regions(void **state)
{
    (void)state;
    struct simulation set = simulation_calm(1);
    for (set.seed = 1; set.seed < 12; set.seed++) {
        set.capacities = set.seed % 3 != 0;
        set.regions = set.seed % 3 != 1;
        assert_int_equal(run(set).train, set.rounds);
    }
    set.capacities = set.regions = true; /* and shards of one that is away come first, dealt to others */
    set.absent_trainer = true;
    set.rounds = 8;
    for (set.seed = 12; set.seed < 20; set.seed++)
        assert_true(run(set).last_trainer_at > 5);
}

static void a_wiped_syncer_abstains_catches_up_and_contradicts_nothing_it_said(void **state)
{
    (void)state;
    struct simulation set = simulation_calm(1);
    for (set.wipe_at = 600; set.wipe_at < 12000; set.wipe_at += 400)
        assert_false(run(set).liar_convicted);
}

/* docs/simulation.md, What it found. */
static void seeds_that_broke_an_invariant_once_keep_it(void **state)
{
    static const uint64_t seeds[] = { 31240, 31505, 43677, 45006, 48507, 89120, 120800, 128617, 7501305 };
    (void)state;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        run(simulation_from_seed(seeds[i]));
}

/* More payees and a larger panel than a real ledger takes, names that are remembered, more members than tell one machine what was decided. */
static void a_large_network_decides_and_pays_with_messages_that_grow_with_its_nodes(void **state)
{
    static const int sizes[][2] = { { 16, 8 }, { 70, 35 } };
    double share[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct simulation set = simulation_calm(1);
        set.trainers = sizes[i][0];
        set.syncers = sizes[i][1];
        set.threshold = set.syncers - (set.syncers - 1) / 3;
        set.quorum = set.trainers / 2;
        set.rounds = 2;
        set.spot_check = "0.3";
        struct simulation_result result = run(set);
        assert_int_equal(result.train, set.rounds);
        share[i] = (double)result.messages / result.rounds / (set.trainers + set.syncers);
    }
    assert_true(share[1] < share[0] * (70 + 35) / (16 + 8));
}

static void mixed_seeds_keep_every_invariant(void **state)
{
    (void)state;
    const char *wanted = getenv("RONDO_SEEDS");
    uint64_t seeds = wanted ? strtoull(wanted, NULL, 10) : 120;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct simulation set = simulation_from_seed(seed);
        struct simulation_result result;
        simulation_run(&set, &result);
        if (result.broken)
            fail_msg("%s: %s (rondo simulate --seed %llu)", invariant_name(result.broken), result.failure,
                     (unsigned long long)seed);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "trace") == 0)
        return print_traces(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_faults_trains_every_round),
        cmocka_unit_test(the_same_seed_ends_in_the_same_state),
        cmocka_unit_test(a_seed_gives_the_same_trace_again_and_in_another_process),
        cmocka_unit_test(a_lying_trainer_is_caught_by_a_replay_and_removed),
        cmocka_unit_test(a_trainer_that_does_not_show_what_it_kept_is_convicted),
        cmocka_unit_test(a_copied_contribution_convicts_who_copied),
        cmocka_unit_test(a_trainer_that_sends_two_contributions_is_convicted),
        cmocka_unit_test(a_syncer_that_votes_for_everything_forks_nothing_and_is_convicted),
        cmocka_unit_test(false_accusations_convict_nobody),
        cmocka_unit_test(accusations_do_not_hide_who_lies),
        cmocka_unit_test(stakes_are_lost_by_who_lies_and_who_accuses_for_nothing),
        cmocka_unit_test(a_run_that_its_sponsor_changes_keeps_every_invariant),
        cmocka_unit_test(a_silent_syncer_delays_but_does_not_stop),
        cmocka_unit_test(a_head_far_ahead_does_not_stop_a_committee_that_tolerates_no_liar),
        cmocka_unit_test(whatever_one_member_says_every_round_is_trained),
        cmocka_unit_test(too_few_contributions_give_a_skip_and_the_run_goes_on),
        cmocka_unit_test(a_trainer_that_was_dropped_enrols_again_and_is_accepted),
        cmocka_unit_test(trainers_state_what_they_take_and_shards_stay_in_their_regions),
        cmocka_unit_test(a_wiped_syncer_abstains_catches_up_and_contradicts_nothing_it_said),
        cmocka_unit_test(seeds_that_broke_an_invariant_once_keep_it),
        cmocka_unit_test(a_large_network_decides_and_pays_with_messages_that_grow_with_its_nodes),
        cmocka_unit_test(mixed_seeds_keep_every_invariant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
