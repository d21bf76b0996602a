#include "runtime/worker/states.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/store/state_object.h"
#include "runtime/worker/bound.h"
#include "tests/fixture/fixture.h"

static struct fixture f;

/* States of AdamW with other numbers in each slot, and values. */
static float *filled(struct states *states)
{
    struct error err = { 0 };
    float *values = layout_values(&f.session->layout, &err);

    FIXTURE_OK(values && session_genesis(f.session, values, &err), &err);
    FIXTURE_OK(states_new(states, f.session, &f.session->inner, values, &err), &err);
    for (size_t i = 0; i < states->count; i++)
        for (size_t j = 0; j < states->slots[i].size / sizeof(float); j++)
            ((float *)states->slots[i].data)[j] = (float)(i * 100 + j);
    return values;
}

static void adamw_keeps_two_tensors_and_two_numbers_a_parameter_all_zero_at_first(void **state)
{
    struct states states;
    struct error err = { 0 };
    float *values = layout_values(&f.session->layout, &err);
    const struct layout *l = &f.session->layout;
    char name[GRAPH_NAME + 1];

    (void)state;
    FIXTURE_OK(states_new(&states, f.session, &f.session->inner, values, &err), &err);
    assert_int_equal(states.count, 4 * l->count);
    for (size_t i = 0; i < l->count; i++) {
        snprintf(name, sizeof name, "s.%s.m", l->parameters[i].name);
        const struct state_slot *m = states_find(&states, name);

        assert_non_null(m);
        assert_int_equal(m->size, l->parameters[i].values * sizeof(float));
        for (size_t j = 0; j < l->parameters[i].values; j++)
            assert_true(((float *)m->data)[j] == 0);
        snprintf(name, sizeof name, "s.%s.seen1", l->parameters[i].name);
        assert_int_equal(states_find(&states, name)->size, sizeof(float));
    }
    assert_null(states_find(&states, "s.nothing.m"));
    states_free(&states);
    free(values);
}

static void values_and_slots_stand_in_one_list_ascending_by_name(void **state)
{
    struct states states;
    float *values = filled(&states);
    size_t count;
    struct named_tensor *list = states_tensors(&states, &f.session->layout, values, &count);
    size_t trained = 0;

    (void)state;
    assert_int_equal(count, states.count + f.session->layout.count);
    for (size_t i = 0; i < count; i++) {
        const struct state_slot *slot = states_find(&states, list[i].name);
        long place = layout_find(&f.session->layout, list[i].name);

        assert_true(i == 0 || strcmp(list[i - 1].name, list[i].name) < 0);
        trained += place >= 0;
        assert_ptr_equal(list[i].bytes, slot ? slot->data : values + f.session->layout.parameters[place].offset);
    }
    assert_int_equal(trained, f.session->layout.count);
    free(list);
    states_free(&states);
    free(values);
}

static void encode(const struct states *states, const float *values, struct buffer *bytes)
{
    size_t count;
    struct named_tensor *list = states_tensors(states, &f.session->layout, values, &count);
    struct error err = { 0 };

    FIXTURE_OK(state_encode(list, count, bytes, &err), &err);
    free(list);
}

static void a_state_object_gives_back_what_was_written(void **state)
{
    struct states states, other;
    float *values = filled(&states), *back;
    struct buffer bytes = { 0 };
    struct error err = { 0 };

    (void)state;
    encode(&states, values, &bytes);
    back = layout_values(&f.session->layout, &err);
    FIXTURE_OK(states_new(&other, f.session, &f.session->inner, back, &err), &err);
    FIXTURE_OK(states_read(&other, &f.session->layout, back, bytes.bytes, bytes.size, &err), &err);
    assert_memory_equal(back, values, f.session->layout.values * sizeof *back);
    for (size_t i = 0; i < states.count; i++)
        assert_memory_equal(other.slots[i].data, states.slots[i].data, states.slots[i].size);
    for (size_t cut = 1; cut < bytes.size; cut += 97) { /* any shorter object is refused */
        error_clear(&err);
        assert_false(states_read(&other, &f.session->layout, back, bytes.bytes, bytes.size - cut, &err));
        assert_int_not_equal(err.code, ERROR_NONE);
    }
    buffer_free(&bytes);
    states_free(&states);
    states_free(&other);
    free(values);
    free(back);
}

static enum error_code read_into(struct states *states, float *values, const struct buffer *bytes)
{
    struct error err = { 0 };

    assert_false(states_read(states, &f.session->layout, values, bytes->bytes, bytes->size, &err));
    return err.code;
}

static void states_of_another_optimiser_and_numbers_that_are_none_are_refused(void **state)
{
    struct states inner, outer;
    float *values = filled(&inner);
    struct buffer bytes = { 0 };
    struct error err = { 0 };

    (void)state;
    FIXTURE_OK(states_new(&outer, f.session, &f.session->outer, values, &err), &err);
    encode(&outer, values, &bytes); /* Nesterov's: one slot, not four */
    assert_int_equal(read_into(&inner, values, &bytes), ERROR_SHAPE);
    buffer_clear(&bytes);
    ((float *)inner.slots[3].data)[0] = INFINITY;
    encode(&inner, values, &bytes);
    assert_int_equal(read_into(&inner, values, &bytes), ERROR_NON_FINITE);
    buffer_clear(&bytes);
    ((float *)inner.slots[3].data)[0] = 0;
    values[3] = NAN;
    encode(&inner, values, &bytes);
    assert_int_equal(read_into(&inner, values, &bytes), ERROR_NON_FINITE);
    buffer_free(&bytes);
    states_free(&inner);
    states_free(&outer);
    free(values);
}

/* --- bound ---------------------------------------------------------------------------------------------------------------- */

static void a_trace_cannot_name_what_is_not_there(void **state)
{
    const struct script_trace *trace = &f.session->inner;
    json_t *low = json_integer(-1), *high = json_integer((json_int_t)trace->graph_count), *text = json_string("no"),
           *zero = json_integer(0);
    struct error err = { 0 };

    (void)state;
    assert_non_null(bound_graph(trace, zero, &err));
    assert_null(bound_graph(trace, low, &err));
    assert_null(bound_graph(trace, high, &err));
    assert_null(bound_graph(trace, text, &err));
    assert_null(bound_graph(trace, NULL, &err));
    assert_int_equal(err.code, ERROR_SCRIPT);
    assert_null(bound_parameter(&f.session->layout, text, &err));
    assert_null(bound_parameter(&f.session->layout, zero, &err));
    json_decref(low);
    json_decref(high);
    json_decref(text);
    json_decref(zero);
}

static void a_graphs_inputs_take_exactly_the_bytes_that_are_there(void **state)
{
    struct graph *g = graph_new(NULL);
    struct error err = { 0 };
    uint32_t node;

    (void)state;
    FIXTURE_OK(graph_input(g, "p", TENSOR_F32, "out=3 in=4", &node, &err), &err);
    assert_true(bound_fits(g, node, 48, &err));
    assert_false(bound_fits(g, node, 44, &err));
    assert_false(bound_fits(g, node, 52, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    FIXTURE_OK(graph_input(g, "d", TENSOR_F64, "", &node, &err), &err);
    assert_true(bound_fits(g, node, 8, &err));
    assert_false(bound_fits(g, node, 4, &err));
    graph_free(g);
}

/* A hostile trace: the optimiser's meta claims a smaller slot than its graph writes. */
static void an_init_that_writes_more_than_its_slot_is_refused(void **state)
{
    struct script_trace hostile = f.session->inner;
    struct states states;
    struct error err = { 0 };
    float *values = layout_values(&f.session->layout, &err);
    json_t *slot;

    (void)state;
    hostile.meta = json_deep_copy(hostile.meta);
    slot = json_array_get(json_object_get(json_array_get(json_object_get(hostile.meta, "params"), 0), "state"), 0);
    json_object_set_new(slot, "axes", json_string("n=1"));
    assert_false(states_new(&states, f.session, &hostile, values, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    json_decref(hostile.meta);
    free(values);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_keeps_two_tensors_and_two_numbers_a_parameter_all_zero_at_first),
        cmocka_unit_test(values_and_slots_stand_in_one_list_ascending_by_name),
        cmocka_unit_test(a_state_object_gives_back_what_was_written),
        cmocka_unit_test(states_of_another_optimiser_and_numbers_that_are_none_are_refused),
        cmocka_unit_test(a_trace_cannot_name_what_is_not_there),
        cmocka_unit_test(a_graphs_inputs_take_exactly_the_bytes_that_are_there),
        cmocka_unit_test(an_init_that_writes_more_than_its_slot_is_refused),
    };

    return FIXTURE_TESTS(argc, argv, &f, tests, 0);
}
