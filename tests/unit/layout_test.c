#include "runtime/worker/layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *meta_of(const char *text)
{
    json_error_t fault;
    json_t *meta = json_loads(text, 0, &fault);

    if (!meta)
        fail_msg("%s", fault.text);
    return meta;
}

static const char *const three = "{\"params\":["
                                 "{\"name\":\"b.weight\",\"axes\":\"out=3 in=4\",\"trained\":true,\"init\":{\"normal\":\"0.5\"}},"
                                 "{\"name\":\"a.weight\",\"axes\":\"n=5\",\"trained\":true,\"init\":{\"fill\":1}},"
                                 "{\"name\":\"frozen\",\"axes\":\"n=1000\",\"trained\":false,\"init\":{\"fill\":0}},"
                                 "{\"name\":\"b.Weight\",\"axes\":\"\",\"trained\":true,\"init\":{\"fill\":\"0.25\"}}]}";

static void parameters_ascend_by_name_without_gaps_and_frozen_ones_are_left_out(void **state)
{
    json_t *meta = meta_of(three);
    struct layout l;
    struct error err = { 0 };

    (void)state;
    assert_true(layout_new(&l, meta, &err));
    assert_int_equal(l.count, 3);
    assert_int_equal(l.values, 18);
    assert_string_equal(l.parameters[0].name, "a.weight");
    assert_string_equal(l.parameters[1].name, "b.Weight");
    assert_string_equal(l.parameters[2].name, "b.weight");
    assert_int_equal(l.parameters[1].offset, 5);
    assert_int_equal(l.parameters[1].rank, 0);
    assert_int_equal(l.parameters[2].offset, 6);
    assert_int_equal(l.parameters[2].dims[0], 3);
    assert_int_equal(l.parameters[2].dims[1], 4);
    assert_int_equal(layout_find(&l, "b.weight"), 2);
    assert_int_equal(layout_find(&l, "frozen"), -1);
    layout_free(&l);
    json_decref(meta);
}

static void the_root_is_the_state_root_of_the_same_tensors(void **state)
{
    json_t *meta = meta_of(three);
    struct layout l;
    struct error err = { 0 };
    float values[18];
    struct hash want;

    (void)state;
    for (int i = 0; i < 18; i++)
        values[i] = (float)i / 3;
    assert_true(layout_new(&l, meta, &err));

    const struct named_tensor tensors[3] = {
        { .name = "a.weight", .code = CODE_F32, .rank = 1, .dims = { 5 }, .bytes = values },
        { .name = "b.Weight", .code = CODE_F32, .rank = 0, .bytes = values + 5 },
        { .name = "b.weight", .code = CODE_F32, .rank = 2, .dims = { 3, 4 }, .bytes = values + 6 },
    };

    assert_true(root_of_state(tensors, 3, &want, &err));
    assert_true(hash_equal(layout_root(&l, values), want));
    values[17] = nextafterf(values[17], 100);
    assert_false(hash_equal(layout_root(&l, values), want));
    layout_free(&l);
    json_decref(meta);
}

static void first_values_follow_the_init(void **state)
{
    json_t *meta = meta_of(three), *params = json_object_get(meta, "params");
    struct error err = { 0 };
    float values[12], again[12];
    double sum = 0;

    (void)state;
    assert_true(layout_draw(json_array_get(params, 1), "run", values, &err));
    for (int i = 0; i < 5; i++)
        assert_true(values[i] == 1);
    assert_true(layout_draw(json_array_get(params, 3), "run", values, &err));
    assert_true(values[0] == 0.25f);
    assert_true(layout_draw(json_array_get(params, 0), "run", values, &err));
    assert_true(layout_draw(json_array_get(params, 0), "run", again, &err));
    assert_memory_equal(values, again, sizeof values);
    for (int i = 0; i < 12; i++)
        sum += (double)values[i] * (double)values[i];
    assert_true(sum / 12 > 0.05 && sum / 12 < 0.8); /* about 0.25 */
    assert_true(layout_draw(json_array_get(params, 0), "another run", again, &err));
    assert_memory_not_equal(values, again, sizeof values);
    json_decref(meta);
}

/* From this program once: what a run's first state holds must never change. */
static void draws_are_the_same_for_ever(void **state)
{
    json_t *meta = meta_of("{\"name\":\"model.layers.0.mlp.up_proj.lora_A.weight\",\"axes\":\"rank=2 embed=3\","
                           "\"init\":{\"normal\":1}}");
    static const uint32_t golden[6] = { 0xbe870da7, 0x3f8dd511, 0xc0148505, 0xbc7edf06, 0x3f8d6762, 0xbf3a1d91 };
    struct error err = { 0 };
    float values[6];

    (void)state;
    assert_true(layout_draw(meta, "bafk2bzacedgolden", values, &err));
    for (int i = 0; i < 6; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        if (bits != golden[i])
            fail_msg("value %d is 0x%08x", i, bits);
    }
    json_decref(meta);
}

static enum error_code refused(const char *text)
{
    json_t *meta = meta_of(text);
    struct layout l;
    struct error err = { 0 };

    assert_false(layout_new(&l, meta, &err));
    json_decref(meta);
    return err.code;
}

static void metas_that_no_model_gives_are_refused(void **state)
{
    (void)state;
    assert_int_equal(refused("{}"), ERROR_MISSING);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=2\",\"trained\":false}]}"), ERROR_MISSING);
    assert_int_equal(refused("{\"params\":[{\"axes\":\"n=2\",\"trained\":true}]}"), ERROR_SCRIPT);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"trained\":true}]}"), ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n\",\"trained\":true}]}"), ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=0\",\"trained\":true}]}"), ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=-1\",\"trained\":true}]}"), ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=2x\",\"trained\":true}]}"), ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=4294967296 m=4294967296\",\"trained\":true}]}"),
                     ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1\",\"trained\":true}]}"),
                     ERROR_SHAPE);
    assert_int_equal(refused("{\"params\":[{\"name\":\"a\",\"axes\":\"n=2\",\"trained\":true},"
                             "{\"name\":\"a\",\"axes\":\"n=3\",\"trained\":true}]}"),
                     ERROR_DUPLICATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_ascend_by_name_without_gaps_and_frozen_ones_are_left_out),
        cmocka_unit_test(the_root_is_the_state_root_of_the_same_tensors),
        cmocka_unit_test(first_values_follow_the_init),
        cmocka_unit_test(draws_are_the_same_for_ever),
        cmocka_unit_test(metas_that_no_model_gives_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
