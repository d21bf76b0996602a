#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/worker/generate.h"

static const float logits[4] = { 0.0f, 2.0f, -INFINITY, 1.0f };

static uint32_t pick(const float *given, uint32_t count, double temperature, double uniform)
{
    const struct generate_rule rule = { .temperature = temperature, .top_p = 1, .repetition = 1 };
    float copy[4];

    memcpy(copy, given, count * sizeof *copy);
    return generate_pick(copy, count, &rule, NULL, 0, uniform);
}

static void without_heat_the_first_greatest_logit_is_picked(void **state)
{
    const float two[3] = { 1.0f, 3.0f, 3.0f };

    (void)state;
    assert_int_equal(pick(logits, 4, 0, 0.99), 1);
    assert_int_equal(pick(two, 3, 0, 0.5), 1);
}

static void a_draw_goes_through_the_probabilities_in_order(void **state)
{
    /* e^0, e^2, 0, e^1 over their sum 11.1073: 0.0900, 0.6652, 0, 0.2447 */
    static const struct {
        double uniform;
        uint32_t index;
    } cases[] = { { 0, 0 }, { 0.0899, 0 }, { 0.0902, 1 }, { 0.7551, 1 }, { 0.7555, 3 }, { 0.9999999999, 3 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(pick(logits, 4, 1, cases[i].uniform), cases[i].index);
}

static void what_has_no_probability_is_never_picked(void **state)
{
    const float last[3] = { 0.0f, 0.0f, -INFINITY };

    (void)state;
    for (double u = 0; u < 1; u += 0.001)
        assert_int_not_equal(pick(logits, 4, 1.5, u), 2);
    assert_int_equal(pick(last, 3, 1, 1 - 0x1p-53), 1);
}

static void heat_spreads_and_cold_gathers(void **state)
{
    int hot = 0, cold = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        hot += pick(logits, 4, 100, i / 1000.0) == 1;
        cold += pick(logits, 4, 0.1, i / 1000.0) == 1;
    }
    assert_in_range(hot, 330, 345); /* a third: three are about equal */
    assert_in_range(cold, 999, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_heat_the_first_greatest_logit_is_picked),
        cmocka_unit_test(a_draw_goes_through_the_probabilities_in_order),
        cmocka_unit_test(what_has_no_probability_is_never_picked),
        cmocka_unit_test(heat_spreads_and_cold_gathers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
