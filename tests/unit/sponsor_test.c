/* What a sponsor may not sign: the open tier without a rule that bounds liars. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "runtime/role/sponsor.h"
#include "runtime/script/host.h"
#include "tests/fixture/fixture.h"

/* A draft that is refused at `base_model` when nothing before that is wrong. */
static bool make(struct fixture_place *f, const char *tier, json_t *aggregators, struct error *err)
{
    json_t *draft =
        json_pack("{s:{s:s}, s:o, s:s}", "trust", "tier", tier, "aggregators", aggregators, "base_model", "/none/model");
    struct key_pair keys;
    struct sponsor_setting setting = { .scripts = RONDO_SOURCE "/scripts", .blocks = &f->blocks, .keys = &keys };
    struct document run = { 0 };
    bool ok;

    key_pair_derive("sponsor_test", "sponsor", &keys);
    ok = sponsor_make_run(&setting, draft, &run, err);
    document_free(&run);
    json_decref(draft);
    return ok;
}

static json_t *stored(struct fixture_place *f, const char *name)
{
    struct buffer source = { 0 };
    struct error err = { 0 };
    struct hash id;
    char path[256], cid[CID_TEXT];

    snprintf(path, sizeof path, RONDO_SOURCE "/scripts/aggregators/%s.lua", name);
    assert_true(file_read(path, BLOCK_SIZE, &source, &err));
    assert_true(block_put(&f->blocks, source.bytes, source.size, &id, &err));
    buffer_free(&source);
    return json_pack("{s:s}", "script", cid_text(id, cid));
}

static void open_tier_without_a_robust_rule_is_refused(void **state)
{
    struct error err = { 0 };

    assert_false(make(*state, "open", json_pack("[{s:s}]", "script", "mean"), &err));
    assert_int_equal(err.code, ERROR_RANGE);
    assert_string_equal(err.place, "aggregators");
    assert_non_null(strstr(err.message, "robust = true"));
    assert_non_null(strstr(err.hint, "trimmed_mean"));
}

static void open_tier_with_one_robust_rule_in_the_chain_is_taken(void **state)
{
    struct error err = { 0 };

    assert_false(make(*state, "open", json_pack("[{s:s}, {s:s}]", "script", "norm_clip", "script", "mean"), &err));
    assert_string_equal(err.place, "base_model");
}

static void known_tier_may_use_a_plain_mean(void **state)
{
    struct error err = { 0 };

    assert_false(make(*state, "known", json_pack("[{s:s}]", "script", "mean"), &err));
    assert_string_equal(err.place, "base_model");
}

static void rule_named_by_its_content_is_asked_too(void **state)
{
    struct error err = { 0 };

    assert_false(make(*state, "open", json_pack("[o]", stored(*state, "mean")), &err));
    assert_string_equal(err.place, "aggregators");
    error_clear(&err);
    assert_false(make(*state, "open", json_pack("[o, o]", stored(*state, "mean"), stored(*state, "median")), &err));
    assert_string_equal(err.place, "base_model");
}

static void rule_whose_content_is_not_here_is_refused(void **state)
{
    struct error err = { 0 };
    struct hash id = hash_block("absent", 6);
    char cid[CID_TEXT];

    assert_false(make(*state, "open", json_pack("[{s:s}]", "script", cid_text(id, cid)), &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_string_equal(err.place, "aggregators[0]");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--script-child") == 0)
        return script_child_main();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_tier_without_a_robust_rule_is_refused),
        cmocka_unit_test(open_tier_with_one_robust_rule_in_the_chain_is_taken),
        cmocka_unit_test(known_tier_may_use_a_plain_mean),
        cmocka_unit_test(rule_named_by_its_content_is_asked_too),
        cmocka_unit_test(rule_whose_content_is_not_here_is_refused),
    };

    return cmocka_run_group_tests(tests, fixture_place_new, fixture_place_free);
}
