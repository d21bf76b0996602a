/* Every write point of a node's stores, SQLite's among them: the power fails before it, after it and in its midst, and what was never
 * synced is lost or happens to be there. The node starts again: it holds what it held before or after the step that was cut short, which
 * is what had been acknowledged or one step more, and goes on to the same end. */
#include "tests/unit/crashing.h"

static void a_node_holds_what_it_acknowledged_wherever_the_power_fails(void **state)
{
    char folder[64];
    struct stores_states states;
    struct buffer held = { 0 };
    long points, cuts = 0;

    (void)state;
    crash_folder(folder);
    points = undisturbed(folder, &states);
    assert_true(points > 50);

    for (long at = 0; at < points; at++)
        for (int kind = 0; kind < 2 * CUTS; kind++) {
            fixture_remove(folder);
            *acknowledged = 0;
            assert_int_equal(node_runs(folder, 0, at, (enum cut)(kind / 2), kind % 2, NULL), 9);

            int done = *acknowledged;

            if (!stores_look(folder, &held) || !stores_follow(&states, &held, done))
                fail_msg("point %ld of %ld, kind %d, after step %d: it holds\n%s", at, points, kind, done, buffer_text(&held));
            assert_int_equal(node_runs(folder, done < 6 ? done : 6, -1, CUT_BEFORE, false, NULL), 0);
            assert_true(stores_look(folder, &held));
            assert_true(stores_follow(&states, &held, STORES_STEPS));
            cuts++;
        }
    print_message("%ld write points, %ld cuts\n", points, cuts);
    buffer_free(&held);
    stores_states_free(&states);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_holds_what_it_acknowledged_wherever_the_power_fails),
    };

    acknowledged = shared(2 * sizeof *acknowledged);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
