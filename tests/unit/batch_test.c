#include "runtime/worker/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EXAMPLES = 40, VOCAB = 1000 };

/* Example i has ids 10 i, 10 i + 1, ... and trains its second half. Sizes are 1 to 9; every tenth is empty. */
static struct examples *make_examples(void)
{
    struct examples *list = calloc(1, sizeof *list);

    list->items = calloc(EXAMPLES, sizeof *list->items);
    list->count = list->capacity = EXAMPLES;
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct example *e = &list->items[i];

        e->count = i % 10;
        e->ids = calloc(e->count + 1, sizeof *e->ids);
        e->weights = calloc(e->count + 1, sizeof *e->weights);
        for (uint32_t t = 0; t < e->count; t++) {
            e->ids[t] = 10 * i + t;
            e->weights[t] = t >= e->count / 2 ? 1 : 0;
        }
    }
    return list;
}

static void list_free(struct examples *list)
{
    examples_free(list);
    free(list);
}

static float *token_bytes(void)
{
    float *bytes = malloc(VOCAB * sizeof *bytes);

    for (int i = 0; i < VOCAB; i++)
        bytes[i] = (float)(i % 7);
    return bytes;
}

static struct hash seed_of_number(uint8_t number)
{
    return hash_typed("rondo/seed", &number, 1);
}

static void start(struct sampler *s, const struct batch_rules *rules, const struct examples *list, uint8_t seed)
{
    struct error err = { 0 };

    assert_true(sampler_new(s, rules, (const struct examples *const[]){ list }, 1, seed_of_number(seed), &err));
}

/* Appends the first id of each row of the next batch. */
static size_t firsts(struct sampler *s, uint32_t *out)
{
    struct batch b = { 0 };
    size_t rows;

    sampler_next(s, &b);
    rows = (size_t)b.rows;
    for (int64_t row = 0; row < b.rows; row++)
        out[row] = (uint32_t)b.ids[row * b.time];
    batch_free(&b);
    return rows;
}

static void a_lap_holds_every_example_once_in_an_order_that_the_seed_fixes(void **state)
{
    struct examples *list = make_examples();
    float *bytes = token_bytes();
    struct batch_rules rules = { .token_bytes = bytes, .batch_tokens = 32, .context = 16 }; /* one row a batch */
    struct sampler a, b, other;
    uint32_t seen[EXAMPLES] = { 0 }, first[36], id, same;
    size_t different = 0;

    (void)state;
    start(&a, &rules, list, 1);
    start(&b, &rules, list, 1);
    start(&other, &rules, list, 2);
    assert_int_equal(a.count, 36); /* four are empty */
    for (int lap = 0; lap < 3; lap++)
        for (int i = 0; i < 36; i++) {
            assert_int_equal(firsts(&a, &id), 1);
            assert_int_equal(firsts(&b, &same), 1);
            assert_int_equal(id, same);
            assert_int_equal(firsts(&other, &same), 1);
            assert_int_equal(seen[id / 10]++, lap);
            different += id != same;
            if (lap == 0)
                first[i] = id;
            else if (lap == 1)
                different += first[i] != id; /* another lap is another order */
        }
    assert_true(different > 100);
    sampler_free(&a);
    sampler_free(&b);
    sampler_free(&other);
    free(bytes);
    list_free(list);
}

static void rows_are_padded_at_their_end_and_fields_are_about_their_token(void **state)
{
    struct examples *list = make_examples();
    float *bytes = token_bytes();
    struct batch_rules rules = { .token_bytes = bytes, .batch_tokens = 96, .context = 16 };
    struct sampler s;
    struct batch b = { 0 };

    (void)state;
    start(&s, &rules, list, 3);
    for (int i = 0; i < 20; i++) {
        uint64_t tokens = 0, trained = 0;

        sampler_next(&s, &b);
        assert_int_equal(b.rows, 3); /* 3 * 32 fill the 96 */
        assert_int_equal(b.time, BATCH_BUCKET);
        for (int64_t row = 0; row < b.rows; row++) {
            const struct example *e = &list->items[b.ids[row * b.time] / 10];

            for (int64_t t = 0; t < b.time; t++) {
                size_t at = (size_t)(row * b.time + t);
                bool real = t < (int64_t)e->count, scored = real && t > 0;

                assert_int_equal(b.position[at], t);
                assert_int_equal(b.segment[at], real);
                assert_true(b.real[at] == (real ? 1 : 0) && b.scored[at] == (scored ? 1 : 0));
                assert_int_equal(b.ids[at], real ? e->ids[t] : 0);
                assert_true(b.mask[at] == (scored ? e->weights[t] : 0));
                assert_true(b.bytes[at] == (real ? bytes[e->ids[t]] : 0));
                tokens += real;
                trained += b.mask[at] > 0;
            }
        }
        assert_int_equal(b.tokens, tokens);
        assert_int_equal(b.trained, trained);
    }
    batch_free(&b);
    sampler_free(&s);
    free(bytes);
    list_free(list);
}

static void a_row_longer_than_the_batch_stands_alone(void **state)
{
    struct example longer = { .count = 70 };
    uint32_t ids[70] = { 0 };
    float weights[70] = { 0 }, bytes[1] = { 1 };
    struct batch_rules rules = { .token_bytes = bytes, .batch_tokens = 64, .context = 128 };
    struct examples list = { .items = &longer, .count = 1 };
    struct sampler s;
    struct batch b = { 0 };

    (void)state;
    longer.ids = ids;
    longer.weights = weights;
    start(&s, &rules, &list, 1);
    sampler_next(&s, &b);
    assert_int_equal(b.rows, 1);
    assert_int_equal(b.time, 96);
    assert_int_equal(b.tokens, 70);
    batch_free(&b);
    sampler_free(&s);
}

static void a_stream_is_cut_exactly_and_goes_on_where_the_row_before_ended(void **state)
{
    struct examples *list = make_examples();
    float *bytes = token_bytes();
    struct batch_rules rules = { .token_bytes = bytes, .batch_tokens = 35, .context = 17, .stream = true };
    struct sampler s, order;
    struct batch b = { 0 };
    const struct example *e = NULL;
    size_t inside = 0;

    (void)state;
    start(&s, &rules, list, 5);
    start(&order, &rules, list, 5);
    for (int i = 0; i < 30; i++) {
        sampler_next(&s, &b);
        assert_int_equal(b.rows, 2);
        assert_int_equal(b.time, 17);
        assert_int_equal(b.tokens, 34);
        for (int64_t at = 0; at < 34; at++) { /* 170 tokens a lap: several laps are crossed */
            if (!e) {
                struct batch_rules one = { .token_bytes = bytes, .batch_tokens = 1, .context = 16 };
                struct batch row = { 0 };

                order.rules = one;
                sampler_next(&order, &row);
                e = &list->items[row.ids[0] / 10];
                batch_free(&row);
            }
            assert_int_equal(b.ids[at], e->ids[inside]);
            assert_int_equal(b.position[at], at % 17);
            assert_int_equal(b.segment[at], 1);
            assert_true(b.mask[at] == (at % 17 ? e->weights[inside] : 0));
            if (++inside == e->count) {
                e = NULL;
                inside = 0;
            }
        }
    }
    batch_free(&b);
    sampler_free(&s);
    sampler_free(&order);
    free(bytes);
    list_free(list);
}

static void passing_over_batches_leads_to_the_same_one(void **state)
{
    struct examples *list = make_examples();
    float *bytes = token_bytes();
    const struct batch_rules kinds[] = { { .token_bytes = bytes, .batch_tokens = 96, .context = 16 },
                                         { .token_bytes = bytes, .batch_tokens = 35, .context = 17, .stream = true },
                                         { .token_bytes = bytes, .batch_tokens = 64, .context = 32, .packed = true },
                                         { .token_bytes = bytes, .batch_tokens = 128, .context = 16, .pairs = true } };

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int steps = 1; steps < 40; steps++) {
            struct sampler drawn, skipped;
            struct batch a = { 0 }, b = { 0 };

            start(&drawn, &kinds[k], list, 6);
            start(&skipped, &kinds[k], list, 6);
            for (int i = 1; i < steps; i++) {
                sampler_next(&drawn, &a);
                sampler_next(&skipped, NULL);
            }
            sampler_next(&drawn, &a);
            sampler_next(&skipped, &b);
            assert_int_equal(a.rows * a.time, b.rows * b.time);
            assert_memory_equal(a.ids, b.ids, (size_t)(a.rows * a.time) * sizeof *a.ids);
            assert_memory_equal(a.mask, b.mask, (size_t)(a.rows * a.time) * sizeof *a.mask);
            batch_free(&a);
            batch_free(&b);
            sampler_free(&drawn);
            sampler_free(&skipped);
        }
    free(bytes);
    list_free(list);
}

static void images_are_passed_over_without_being_drawn(void **state)
{
    struct examples *list = make_examples(); /* without values, which nobody reads */
    const struct batch_rules rules = { .batch_tokens = 48, .context = 16, .kind = BATCH_IMAGES };
    struct sampler s;

    (void)state;
    start(&s, &rules, list, 6);
    for (int i = 0; i < 50; i++)
        sampler_next(&s, NULL);
    assert_int_equal(s.lap, 1 + (50 * 3 - 1) / (int)s.count);
    sampler_free(&s);
    list_free(list);
}

static void shards_without_a_token_are_refused(void **state)
{
    struct example nothing[2] = { { .count = 0 }, { .count = 0 } };
    struct examples empty = { .items = nothing, .count = 2 }, none = { 0 };
    struct batch_rules rules = { .batch_tokens = 32, .context = 16 };
    struct error err = { 0 };
    struct sampler s;

    (void)state;
    assert_false(sampler_new(&s, &rules, (const struct examples *const[]){ &none }, 1, seed_of_number(1), &err));
    assert_int_equal(err.code, ERROR_RANGE);
    error_clear(&err);
    assert_false(sampler_new(&s, &rules, (const struct examples *const[]){ &empty, &none }, 2, seed_of_number(1), &err));
    assert_int_equal(err.code, ERROR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lap_holds_every_example_once_in_an_order_that_the_seed_fixes),
        cmocka_unit_test(rows_are_padded_at_their_end_and_fields_are_about_their_token),
        cmocka_unit_test(a_row_longer_than_the_batch_stands_alone),
        cmocka_unit_test(a_stream_is_cut_exactly_and_goes_on_where_the_row_before_ended),
        cmocka_unit_test(passing_over_batches_leads_to_the_same_one),
        cmocka_unit_test(images_are_passed_over_without_being_drawn),
        cmocka_unit_test(shards_without_a_token_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
