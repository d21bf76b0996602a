/* Fifty steps of each kind of adapter and fifty of full training against PyTorch in binary64 (tools/oracle/trajectory.py): the whole chain of forward pass,
 * backward rules, clipping and AdamW, with numbers that nobody here computed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

enum { ROWS = 2, TIME = 32 };

struct arrays {
    int32_t ids[ROWS * TIME], position[ROWS * TIME], segment[ROWS * TIME];
    float real[ROWS * TIME], mask[ROWS * TIME], scored[ROWS * TIME], bytes[ROWS * TIME];
};

static struct batch batch_make(struct arrays *a, uint32_t step)
{
    struct batch b = { .rows = ROWS,
                       .time = TIME,
                       .ids = a->ids,
                       .position = a->position,
                       .segment = a->segment,
                       .real = a->real,
                       .mask = a->mask,
                       .scored = a->scored,
                       .bytes = a->bytes };

    memset(a, 0, sizeof *a);
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t length = 12 + (5 * step + 7 * row) % 20;

        for (uint32_t t = 0; t < TIME; t++) {
            uint32_t at = row * TIME + t;

            a->position[at] = (int32_t)t;
            if (t >= length)
                continue;
            a->ids[at] = (int32_t)((fixture_weight("ids", step * 64 + row * 32 + t, 2) + 1) * 16);
            a->segment[at] = 1;
            a->real[at] = 1;
            a->scored[at] = t > 0;
            a->mask[at] = t < length / 3 ? 0 : t % 3 == 0 ? 0.5f : 1;
            b.trained += a->mask[at] > 0;
        }
    }
    return b;
}

static double relative(float ours, const json_t *theirs)
{
    return fabs((double)ours - json_real_value(theirs)) / json_real_value(theirs);
}

static void follow(const char *name, int rank, bool dora, const json_t *adapter)
{
    struct fixture f;
    struct training t;
    struct arrays arrays;
    struct error err = { 0 };
    json_t *golden = json_read_file(RONDO_SOURCE "/tests/golden/trajectory.json", 1 << 20, &err), *steps, *step;
    float *values;
    size_t index;

    FIXTURE_OK(golden != NULL, &err);
    fixture_new(&f, &(struct fixture_options){ .rank = rank, .dora = dora, .adapter = adapter, .decay = "0.1", .threads = 2 });
    values = layout_values(&f.session->layout, &err);
    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    for (size_t i = 0; rank > 0 && i < f.session->layout.count; i++) {
        const struct layout_parameter *p = &f.session->layout.parameters[i];

        for (uint32_t j = 0; j < p->values && strstr(p->name, ".lora_") && !strstr(p->name, "magnitude"); j++) /* of the base */
            values[p->offset + j] = fixture_weight(p->name, j, strstr(p->name, "lora_B") ? 0.1f : 0.5f);
    }
    FIXTURE_OK(training_new(&t, f.session, values, 1, &err), &err);
    steps = json_object_get(golden, name);
    assert_int_equal(json_array_size(steps), 50);
    json_array_foreach(steps, index, step)
    {
        struct batch b = batch_make(&arrays, (uint32_t)index);

        FIXTURE_OK(training_step(&t, &b, 0.003 * (double)(1 + index % 3), 0, &err), &err);
        if (relative(t.loss, json_object_get(step, "loss")) > 1e-5 || relative(t.norm, json_object_get(step, "norm")) > 1e-4)
            fail_msg("step %zu: loss %.7g, norm %.7g; PyTorch has %.7g, %.7g", index, (double)t.loss, (double)t.norm,
                     json_real_value(json_object_get(step, "loss")), json_real_value(json_object_get(step, "norm")));
    }
    training_free(&t);
    free(values);
    json_decref(golden);
    fixture_free(&f);
}

static void adapters_follow_pytorch(void **state)
{
    (void)state;
    follow("lora", 2, false, NULL);
}

static void full_training_follows_pytorch(void **state)
{
    (void)state;
    follow("full", -1, false, NULL);
}

static void magnitudes_follow_pytorch(void **state)
{
    (void)state;
    follow("dora", 2, true, NULL);
}

static void whole_modules_beside_adapters_follow_pytorch(void **state)
{
    json_t *adapter = json_pack("{s:s, s:i, s:i, s:[s, s, s, s]}", "kind", "lora", "rank", 2, "alpha", 4, "modules_to_save",
                                "lm_head", "embed_tokens", "model.norm", "input_layernorm");

    (void)state;
    follow("whole", 2, false, adapter);
    json_decref(adapter);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_follow_pytorch),
        cmocka_unit_test(magnitudes_follow_pytorch),
        cmocka_unit_test(whole_modules_beside_adapters_follow_pytorch),
        cmocka_unit_test(full_training_follows_pytorch),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
