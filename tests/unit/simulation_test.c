/* Whole runs under faults and lies, each from one seed (tests/simulation). A failing seed is repeated, with every action printed, by
 *     build/tests/simulation_test SEED
 * RONDO_SEEDS=N runs N mixed seeds instead of the usual 60. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simulation/simulator.h"

static const struct simulation calm = {
    .seed = 1, .trainers = 4, .syncers = 4, .threshold = 3, .rounds = 4, .quorum = 2, .spot_check = "1", .give_up = 300000
};

static struct simulation_result run(struct simulation set)
{
    struct simulation_result result;
    simulation_run(&set, &result, false);
    if (*result.failure)
        fail_msg("%s", result.failure);
    return result;
}

static void a_run_without_faults_trains_every_round(void **state)
{
    (void)state;
    struct simulation_result result = run(calm);
    assert_int_equal(result.train, 4);
    assert_int_equal(result.skip, 0);
    assert_false(result.liar_convicted);
}

static void the_same_seed_ends_in_the_same_state(void **state)
{
    (void)state;
    struct simulation_result a = run(calm), b = run(calm);
    assert_string_equal(a.state, b.state);
    assert_int_equal(a.events, b.events);
}

static void a_lying_trainer_is_caught_by_a_replay_and_removed(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.liar = LIAR_BODY;
    struct simulation_result result = run(set);
    assert_true(result.liar_convicted);
    set.rollback = true;
    assert_true(run(set).liar_convicted);
}

static void a_trainer_that_sends_two_contributions_is_convicted(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.liar = LIAR_TWICE;
    assert_true(run(set).liar_convicted);
}

static void a_syncer_that_votes_for_everything_forks_nothing_and_is_convicted(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.liar = LIAR_VOTES;
    assert_true(run(set).liar_convicted);
}

static void false_accusations_convict_nobody(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.liar = LIAR_CHALLENGER;
    assert_false(run(set).liar_convicted);
}

static void a_silent_syncer_delays_but_does_not_stop(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.liar = LIAR_SILENT;
    assert_int_equal(run(set).train, 4);
}

static void too_few_contributions_give_a_skip_and_the_run_goes_on(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.late_trainers = true;
    struct simulation_result result = run(set);
    assert_int_equal(result.skip, 1);
    assert_int_equal(result.train, 3);
}

static void a_trainer_that_was_dropped_enrols_again_and_is_accepted(void **state)
{
    (void)state;
    struct simulation set = calm;
    set.absent_trainer = true;
    set.rounds = 5;
    assert_int_equal(run(set).last_trainer_at, 1);
    set.rounds = 8;
    assert_true(run(set).last_trainer_at > 5);
    for (set.seed = 2; set.seed < 12; set.seed++) {
        set.crash = 6; /* what it signs again after a restart is the same document */
        set.faults_until = 60000;
        assert_true(run(set).last_trainer_at > 5);
    }
}

static void a_wiped_syncer_abstains_catches_up_and_contradicts_nothing_it_said(void **state)
{
    (void)state;
    struct simulation set = calm;
    for (set.wipe_at = 600; set.wipe_at < 12000; set.wipe_at += 400)
        assert_false(run(set).liar_convicted);
}

static void mixed_seeds_keep_every_invariant(void **state)
{
    (void)state;
    const char *wanted = getenv("RONDO_SEEDS");
    uint64_t seeds = wanted ? strtoull(wanted, NULL, 10) : 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct simulation set = simulation_from_seed(seed);
        struct simulation_result result;
        simulation_run(&set, &result, false);
        if (*result.failure)
            fail_msg("seed %llu: %s (repeat: build/tests/simulation_test %llu)", (unsigned long long)seed, result.failure,
                     (unsigned long long)seed);
    }
}

static int repeat(const char *text)
{
    struct simulation set = simulation_from_seed(strtoull(text, NULL, 10));
    struct simulation_result result;
    simulation_run(&set, &result, true);
    printf("liar %d, %d trainers, %d of %d syncers: %s\n", set.liar, set.trainers, set.threshold, set.syncers,
           *result.failure ? result.failure : "all invariants hold");
    return *result.failure != 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_faults_trains_every_round),
        cmocka_unit_test(the_same_seed_ends_in_the_same_state),
        cmocka_unit_test(a_lying_trainer_is_caught_by_a_replay_and_removed),
        cmocka_unit_test(a_trainer_that_sends_two_contributions_is_convicted),
        cmocka_unit_test(a_syncer_that_votes_for_everything_forks_nothing_and_is_convicted),
        cmocka_unit_test(false_accusations_convict_nobody),
        cmocka_unit_test(a_silent_syncer_delays_but_does_not_stop),
        cmocka_unit_test(too_few_contributions_give_a_skip_and_the_run_goes_on),
        cmocka_unit_test(a_trainer_that_was_dropped_enrols_again_and_is_accepted),
        cmocka_unit_test(a_wiped_syncer_abstains_catches_up_and_contradicts_nothing_it_said),
        cmocka_unit_test(mixed_seeds_keep_every_invariant),
    };
    return argc > 1 ? repeat(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
