/* dispute.h: whoever lies in one tile of one step is shown to, by that tile alone; whoever does not, is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/kernel/pool.h"
#include "runtime/doc/documents.h"
#include "runtime/worker/dispute_fit.h"
#include "runtime/worker/dispute_internal.h"
#include "tests/fixture/fixture.h"

static struct fixture f;
static json_t *context;
static struct step_log honest, lying; /* of three steps; `lying` is wrong from LEAF on */
static struct buffer right, wrong;    /* openings of leaf LEAF */
enum { LEAF = 2 };

static struct dispute_case about(const struct step_log *log, int64_t index)
{
    return (struct dispute_case){ .context = context, .shards = f.shards, .index = index, .log = log };
}

static float *a_frozen_weight(struct session *s)
{
    json_t *params = json_object_get(s->layout.meta, "params"), *param;
    size_t index;

    json_array_foreach(params, index, param)
    {
        if (s->frozen[index] && strstr(document_text(param, "name"), "up_proj"))
            return s->frozen[index];
    }
    fail_msg("no frozen weight is held");
    return NULL;
}

/* Another session of the run, which computes step LEAF with one weight of the base moved; log and opening tell just what it did. */
static void lie(void)
{
    struct pool *pool;
    struct session *s = fixture_session(&f, 1, &pool);
    const struct dispute_case c = about(NULL, LEAF);
    struct dispute_step d;
    struct error err = { 0 };
    struct hash *tiles;

    FIXTURE_OK(dispute_step_new(&d, s, &c, true, NULL, &err), &err);
    a_frozen_weight(s)[5] += 0.25f;
    tiles = dispute_tiles(&d, &err);
    FIXTURE_OK(tiles != NULL, &err);
    lying = honest;
    lying.leaves = malloc(honest.steps * sizeof *lying.leaves);
    memcpy(lying.leaves, honest.leaves, honest.steps * sizeof *lying.leaves);
    lying.leaves[LEAF - 1].loss = d.running.training.loss;
    lying.leaves[LEAF - 1].state = training_root(&d.running.training);
    buffer_add(&wrong, right.bytes, 20);
    buffer_add(&wrong, tiles, (size_t)d.first[d.entry_count] * sizeof *tiles);
    assert_int_equal(wrong.size, right.size);
    free(tiles);
    dispute_step_free(&d);
    session_free(s);
    pool_free(pool);
}

static int start(void **state)
{
    struct inner inner;
    struct error err = { 0 };
    const struct dispute_case c = about(NULL, LEAF);

    (void)state;
    fixture_new(&f, &(struct fixture_options){ 0 });
    context = fixture_context(&f, 1, 'a');
    FIXTURE_OK(inner_run(f.session, context, f.shards, NULL, NULL, &inner, &err), &err);
    honest = inner.log;
    inner.log.leaves = NULL;
    inner_free(&inner);
    FIXTURE_OK(dispute_open(f.session, &(struct dispute_case){ .context = context, .shards = f.shards, .index = c.index }, NULL,
                            &right, &err),
               &err);
    lie();
    return 0;
}

static int end(void **state)
{
    (void)state;
    step_log_free(&honest);
    step_log_free(&lying);
    buffer_free(&right);
    buffer_free(&wrong);
    json_decref(context);
    fixture_free(&f);
    return 0;
}

static void check_opening(const struct step_log *log, const void *bytes, size_t size, const char *code, const char *why)
{
    const struct dispute_case c = about(log, LEAF);
    struct dispute_verdict verdict;
    struct error err = { 0 };

    FIXTURE_OK(dispute_opening(f.session, &c, bytes, size, &verdict, &err), &err);
    assert_string_equal(verdict.code, code);
    assert_string_equal(verdict.why, why);
}

static struct dispute_verdict judge(const struct step_log *log, const struct buffer *opening, const void *pick, size_t size)
{
    const struct dispute_case c = about(log, LEAF);
    struct dispute_verdict verdict;
    struct error err = { 0 };

    FIXTURE_OK(dispute_judge(f.session, &c, opening->bytes, opening->size, pick, size, &verdict, &err), &err);
    return verdict;
}

static struct dispute_verdict pick_against(const struct step_log *log, const struct buffer *opening, struct buffer *pick)
{
    const struct dispute_case c = about(log, LEAF);
    struct dispute_verdict verdict;
    struct error err = { 0 };

    FIXTURE_OK(dispute_pick(f.session, &c, opening->bytes, opening->size, NULL, pick, &verdict, &err), &err);
    return verdict;
}

static void an_opening_is_held_to_the_graph_and_to_its_leaf(void **state)
{
    struct step_log other = honest;

    (void)state;
    check_opening(&honest, right.bytes, right.size, "ok", "");
    check_opening(&lying, wrong.bytes, wrong.size, "ok", ""); /* it tells what it did */
    check_opening(&lying, right.bytes, right.size, "upheld", "results");
    check_opening(&honest, wrong.bytes, wrong.size, "upheld", "results");
    check_opening(&honest, right.bytes, right.size - 1, "upheld", "malformed");
    check_opening(&honest, right.bytes, 3, "upheld", "malformed");
    other.leaves = malloc(honest.steps * sizeof *other.leaves);
    memcpy(other.leaves, honest.leaves, honest.steps * sizeof *other.leaves);
    other.leaves[LEAF - 1].batch.bytes[3] ^= 1;
    check_opening(&other, right.bytes, right.size, "upheld", "batch");
    free(other.leaves);
}

static void a_lie_in_one_tile_is_picked_and_proved(void **state)
{
    struct buffer pick = { 0 };
    struct dispute_verdict mine = pick_against(&lying, &wrong, &pick), theirs = judge(&lying, &wrong, pick.bytes, pick.size);

    (void)state;
    assert_string_equal(mine.code, "ok");
    assert_string_equal(theirs.code, "upheld");
    assert_string_equal(theirs.why, "tile");
    assert_string_equal(theirs.operator_name, "dot"); /* the product with the weight that was moved */
    assert_int_equal(theirs.entry, mine.entry);
    assert_int_equal(theirs.tile, mine.tile);
    buffer_free(&pick);
}

static void the_honest_are_not_convicted_whatever_is_picked(void **state)
{
    struct buffer pick = { 0 }, none = { 0 };
    uint32_t entry;

    (void)state;
    assert_string_equal(pick_against(&honest, &right, &none).code, "rejected");
    assert_int_equal(none.size, 0);
    pick_against(&lying, &wrong, &pick);
    assert_string_equal(judge(&honest, &right, pick.bytes, pick.size).code, "rejected");
    for (uint32_t turn = 0; turn < 60; turn++) { /* bytes changed, cut, added */
        struct buffer bad = { 0 };

        buffer_add(&bad, pick.bytes, pick.size);
        if (turn % 3 == 0)
            bad.size = (size_t)turn * 7919 % pick.size;
        else if (turn % 3 == 1)
            bad.bytes[(size_t)turn * 104729 % (turn < 30 ? 32 : pick.size)] ^= (uint8_t)(1 << turn % 8);
        else
            buffer_add_u8(&bad, (uint8_t)turn);
        assert_string_equal(judge(&honest, &right, bad.bytes, bad.size).code, "rejected");
        assert_string_equal(judge(&lying, &wrong, bad.bytes, bad.size).code, "rejected");
        buffer_free(&bad);
    }
    for (entry = 0; entry < 4000; entry += 601) { /* any other value of the step */
        memcpy(pick.bytes + 12, &entry, sizeof entry);
        assert_string_equal(judge(&honest, &right, pick.bytes, pick.size).code, "rejected");
    }
    buffer_free(&pick);
}

/* Every value of a step, picked and judged: what an honest trainer opened stands, and a hash that is not what it says falls. */
static void judge_every_value(void)
{
    for (int64_t index = 1; index <= LEAF; index++) {
        const struct dispute_case c = about(&honest, index);
        struct dispute_step d;
        struct buffer opening = { 0 };
        struct error err = { 0 };
        uint64_t tiles;

        FIXTURE_OK(dispute_open(f.session, &c, NULL, &opening, &err), &err);
        FIXTURE_OK(dispute_step_new(&d, f.session, &c, false, NULL, &err), &err);
        tiles = d.first[d.entry_count];
        dispute_step_free(&d);
        for (uint64_t tile = 0; tile < tiles; tile += 1 + tile % 41) {
            struct buffer pick = { 0 };
            struct dispute_verdict verdict;

            opening.bytes[20 + 32 * tile] ^= 1;
            FIXTURE_OK(dispute_pick(f.session, &c, opening.bytes, opening.size, NULL, &pick, &verdict, &err), &err);
            assert_string_equal(verdict.code, "ok");
            FIXTURE_OK(dispute_judge(f.session, &c, opening.bytes, opening.size, pick.bytes, pick.size, &verdict, &err), &err);
            if (strcmp(verdict.code, "upheld") != 0)
                fail_msg("leaf %d, tile %d of %d: %s (%s)", (int)index, (int)tile, (int)tiles, verdict.code,
                         verdict.operator_name);
            opening.bytes[20 + 32 * tile] ^= 1;
            FIXTURE_OK(dispute_judge(f.session, &c, opening.bytes, opening.size, pick.bytes, pick.size, &verdict, &err), &err);
            assert_string_equal(verdict.code, "rejected");
            assert_string_equal(verdict.why, "tile"); /* the proof holds; so does the tile */
            buffer_free(&pick);
        }
        buffer_free(&opening);
    }
}

static void every_value_of_a_step_can_be_judged(void **state)
{
    (void)state;
    judge_every_value();
}

/* The picks of the values are no larger than was said before anybody trained. */
static void what_a_dispute_takes_is_known_before_it(void **state)
{
    const struct dispute_case c = about(&honest, LEAF);
    struct dispute_fit fit;
    struct dispute_step d;
    struct error err = { 0 };
    uint64_t largest = 0;

    (void)state;
    FIXTURE_OK(dispute_fit(f.session, context, f.shards, &fit, &err), &err);
    assert_true(fit.step > 0 && fit.traced > 0);
    FIXTURE_OK(dispute_step_new(&d, f.session, &c, true, NULL, &err), &err);
    if (d.running.batch.rows == fit.rows && d.running.batch.time == fit.time)
        assert_int_equal(fit.opening, right.size);
    assert_true(fit.opening >= right.size);
    for (uint32_t i = 0; i < d.entry_count; i += 7) { /* a run of the step each */
        struct buffer pick = { 0 };

        FIXTURE_OK(dispute_write_pick(&d, i, d.first[i + 1] - d.first[i] - 1, &pick, &err), &err);
        largest = pick.size > largest ? pick.size : largest;
        buffer_free(&pick);
    }
    assert_true(largest > 0 && largest <= fit.pick);
    dispute_step_free(&d);
}

/* Bytes of the pick of the first tile of token_logprob, which reads all logits. */
static size_t pick_of_logits(void)
{
    const struct dispute_case c = about(&honest, LEAF);
    struct dispute_step d;
    struct buffer pick = { 0 };
    struct error err = { 0 };
    uint32_t i = 0;
    size_t size;

    FIXTURE_OK(dispute_step_new(&d, f.session, &c, true, NULL, &err), &err);
    while (i < d.entry_count && d.g->nodes[d.entries[i]].op != OPERATOR_TOKEN_LOGPROB)
        i++;
    assert_true(i < d.entry_count);
    FIXTURE_OK(dispute_write_pick(&d, i, 0, &pick, &err), &err);
    size = pick.size;
    buffer_free(&pick);
    dispute_step_free(&d);
    return size;
}

static void what_is_too_large_to_be_shown_the_judge_makes(void **state)
{
    const uint64_t usual = f.session->shown;
    const size_t shown = pick_of_logits();

    f.session->shown = 1024;
    assert_true(pick_of_logits() < shown);
    judge_every_value();
    the_honest_are_not_convicted_whatever_is_picked(state);
    what_a_dispute_takes_is_known_before_it(state);
    f.session->shown = usual;
}

static void two_openings_are_compared_tile_by_tile(void **state)
{
    const struct dispute_case c = about(NULL, LEAF);
    struct dispute_verdict verdict, picked;
    struct buffer pick = { 0 };
    struct error err = { 0 };

    (void)state;
    FIXTURE_OK(dispute_compare(f.session, &c, right.bytes, right.size, right.bytes, right.size, &verdict, &err), &err);
    assert_string_equal(verdict.code, "rejected");
    FIXTURE_OK(dispute_compare(f.session, &c, right.bytes, right.size, wrong.bytes, wrong.size, &verdict, &err), &err);
    assert_string_equal(verdict.code, "ok");
    picked = pick_against(&lying, &wrong, &pick);
    assert_int_equal(verdict.entry, picked.entry);
    assert_int_equal(verdict.tile, picked.tile);
    assert_string_equal(verdict.operator_name, "dot");
    assert_false(dispute_compare(f.session, &c, right.bytes, right.size - 1, wrong.bytes, wrong.size, &verdict, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
    buffer_free(&pick);
}

static void ends_of_the_log_are_not_disputed_by_tiles(void **state)
{
    (void)state;
    assert_false(dispute_by_tiles(f.session, 0, 3));
    assert_true(dispute_by_tiles(f.session, 1, 3));
    assert_true(dispute_by_tiles(f.session, 3, 3));
    assert_false(dispute_by_tiles(f.session, 4, 3));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_opening_is_held_to_the_graph_and_to_its_leaf),
        cmocka_unit_test(a_lie_in_one_tile_is_picked_and_proved),
        cmocka_unit_test(the_honest_are_not_convicted_whatever_is_picked),
        cmocka_unit_test(every_value_of_a_step_can_be_judged),
        cmocka_unit_test(what_a_dispute_takes_is_known_before_it),
        cmocka_unit_test(what_is_too_large_to_be_shown_the_judge_makes),
        cmocka_unit_test(two_openings_are_compared_tile_by_tile),
        cmocka_unit_test(ends_of_the_log_are_not_disputed_by_tiles),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, start, end);
}
