/* How a plan says payloads are coded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/round/plan_codec.h"

static void read_as(const char *text, unsigned bits, unsigned keep, unsigned of, unsigned tile)
{
    json_t *plan = json_loads(text, 0, NULL), *document;
    struct error err = { 0 };
    struct plan_codec codec;

    assert_non_null(plan);
    if (!plan_codec_read(plan, &codec, &err))
        fail_msg("%s: %s: %s", text, err.place, err.message);
    assert_true(codec.bits == bits && codec.keep == keep && codec.of == of && codec.tile == tile);
    document = plan_codec_document(&codec);
    assert_true(plan_codec_fits(document, plan));
    json_object_set_new(document, "bits", json_integer(bits == 4 ? 8 : 4));
    assert_false(plan_codec_fits(document, plan));
    json_decref(document);
    json_decref(plan);
}

static void what_is_left_out_has_its_default(void **state)
{
    (void)state;
    read_as("{}", 32, 0, 0, 0);
    read_as("{\"codec\":{\"bits\":4,\"block\":256}}", 4, 0, 0, 0);
    read_as("{\"codec\":{\"bits\":8,\"keep\":41}}", 8, 41, 4096, 0);
    read_as("{\"codec\":{\"bits\":8,\"keep\":3,\"of\":7}}", 8, 3, 7, 0);
    read_as("{\"codec\":{\"transform\":\"dct\"}}", 32, 0, 0, 64);
    read_as("{\"codec\":{\"transform\":\"dct\",\"tile\":8,\"keep\":2,\"of\":64}}", 32, 2, 64, 8);
}

static void a_share_is_rounded_up_to_whole_values(void **state)
{
    (void)state;
    read_as("{\"codec\":{\"keep_share\":\"0.001\"}}", 32, 5, 4096, 0);
    read_as("{\"codec\":{\"keep_share\":\"0.25\",\"of\":8}}", 32, 2, 8, 0);
    read_as("{\"codec\":{\"keep_share\":1,\"of\":8}}", 32, 8, 8, 0);
    read_as("{\"codec\":{\"keep_share\":\"0.0000001\",\"of\":8}}", 32, 1, 8, 0);
}

static void what_cannot_be_is_refused_by_its_field(void **state)
{
    static const struct {
        const char *text, *place;
        enum error_code code;
    } cases[] = {
        { "{\"codec\":{\"bits\":2}}", "", ERROR_UNSUPPORTED },
        { "{\"codec\":{\"block\":64}}", "", ERROR_UNSUPPORTED },
        { "{\"codec\":{\"feedback\":\"0.9\"}}", "", ERROR_UNSUPPORTED },
        { "{\"codec\":{\"transform\":\"fft\"}}", "codec.transform", ERROR_UNSUPPORTED },
        { "{\"codec\":{\"tile\":8}}", "codec.transform", ERROR_UNSUPPORTED },
        { "{\"codec\":{\"transform\":\"dct\",\"tile\":257}}", "codec.tile", ERROR_RANGE },
        { "{\"codec\":{\"keep\":9,\"of\":8}}", "codec.keep", ERROR_RANGE },
        { "{\"codec\":{\"keep\":0}}", "codec.keep", ERROR_RANGE },
        { "{\"codec\":{\"keep\":\"1.5\"}}", "codec.keep", ERROR_RANGE },
        { "{\"codec\":{\"keep\":1,\"of\":4097}}", "codec.of", ERROR_RANGE },
        { "{\"codec\":{\"of\":8}}", "codec", ERROR_CONFLICT },
        { "{\"codec\":{\"keep\":1,\"keep_share\":\"0.1\"}}", "codec", ERROR_CONFLICT },
        { "{\"codec\":{\"keep_share\":0}}", "codec.keep_share", ERROR_RANGE },
        { "{\"codec\":{\"keep_share\":\"1.1\"}}", "codec.keep_share", ERROR_RANGE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *plan = json_loads(cases[i].text, 0, NULL);
        struct error err = { 0 };
        struct plan_codec codec;

        assert_non_null(plan);
        assert_false(plan_codec_read(plan, &codec, &err));
        if (err.code != cases[i].code)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_string_equal(err.place, cases[i].place);
        json_decref(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(a_share_is_rounded_up_to_whole_values),
        cmocka_unit_test(what_cannot_be_is_refused_by_its_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
