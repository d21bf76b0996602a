/* Modules that are trained whole beside an adapter (modules_to_save): what PEFT wrote (tools/oracle/peft_whole.py) is read as PEFT means it, and
 * written back as PEFT reads it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/model/adapter_add.h"
#include "native/model/adapter_head.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/training.h"
#include "tests/fixture/fixture.h"

#define PEFT RONDO_SOURCE "/tests/golden/peft_whole"

enum { ROWS = 2, TIME = 32 };

/* Step 0 of trajectory.py's batches. */
static void fill_batch(struct batch *b, int32_t *ids, int32_t *numbers, float *ones)
{
    *b = (struct batch){ .rows = ROWS,
                         .time = TIME,
                         .ids = ids,
                         .position = numbers,
                         .segment = numbers + ROWS * TIME,
                         .real = ones,
                         .mask = ones,
                         .scored = ones,
                         .bytes = ones };
    for (int i = 0; i < ROWS * TIME; i++) {
        const int t = i % TIME;

        ids[i] = t < 12 + 7 * (i / TIME) ? (int32_t)((fixture_weight("ids", (uint32_t)i, 2) + 1) * 16) : 0;
        numbers[i] = t;
        numbers[ROWS * TIME + i] = 1;
        ones[i] = 1;
    }
}

/* The session on the golden adapter; `adapter` becomes its description. */
static void open_golden(struct fixture *f, json_t **adapter)
{
    struct error err = { 0 };

    *adapter = adapter_describe(PEFT, &err);
    FIXTURE_OK(*adapter != NULL, &err);
    fixture_new(f, &(struct fixture_options){ .adapter = *adapter, .start = PEFT });
}

static void an_adapter_with_whole_modules_gives_pefts_log_probabilities(void **state)
{
    struct fixture f;
    struct batch b;
    struct error err = { 0 };
    int32_t ids[ROWS * TIME], numbers[2 * ROWS * TIME];
    float ones[ROWS * TIME], logprobs[ROWS * TIME], best[ROWS * TIME];
    json_t *adapter, *golden = json_read_file(PEFT "/logprobs.json", 1 << 20, &err);

    (void)state;
    FIXTURE_OK(golden != NULL, &err);
    open_golden(&f, &adapter);

    float *values = layout_values(&f.session->layout, &err);

    FIXTURE_OK(session_genesis(f.session, values, &err), &err);
    fill_batch(&b, ids, numbers, ones);
    FIXTURE_OK(training_logprobs(f.session, values, &b, logprobs, best, &err), &err);
    for (size_t row = 0; row < ROWS; row++) {
        const json_t *list = json_array_get(golden, row);
        const size_t length = 12 + 7 * row, first = length / 3;

        assert_int_equal(json_array_size(list), length - first);
        for (size_t t = first; t < length; t++)
            assert_float_equal(logprobs[row * TIME + t], json_real_value(json_array_get(list, t - first)), 2e-5);
    }
    free(values);
    json_decref(golden);
    json_decref(adapter);
    fixture_free(&f);
}

static bool lists(const json_t *list, const char *text)
{
    const json_t *one;
    size_t index;

    json_array_foreach(list, index, one)
    {
        if (strcmp(json_string_value(one), text) == 0)
            return true;
    }
    return false;
}

static void what_was_read_is_written_as_peft_names_it(void **state)
{
    struct fixture f;
    struct error err = { 0 };
    char folder[96], path[160];
    json_t *adapter;
    struct safetensors peft, ours;

    (void)state;
    open_golden(&f, &adapter);
    assert_true(lists(json_object_get(adapter, "modules_to_save"), "model.layers.1.post_attention_layernorm"));
    assert_true(lists(json_object_get(adapter, "modules_to_save"), "lm_head"));

    float *values = layout_values(&f.session->layout, &err);

    FIXTURE_OK(session_genesis(f.session, values, &err), &err);

    struct tensor *tensors = folding_tensors(&f.session->layout, values);

    snprintf(folder, sizeof folder, "%s/written", f.folder);
    for (size_t i = 0; i < f.session->layout.count; i++) /* as the base has it: [out, in] */
        if (strstr(tensors[i].name, "up_proj"))
            assert_int_equal(tensors[i].rank, 2);
    FIXTURE_OK(
        adapter_write(folder,
                      &(struct adapter){ .kind = f.session->adapter.kind, .tensors = tensors, .count = f.session->layout.count },
                      &err),
        &err);
    FIXTURE_OK(safetensors_open(&peft, PEFT "/adapter_model.safetensors", &err), &err);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    FIXTURE_OK(safetensors_open(&ours, path, &err), &err);
    assert_int_equal(ours.count, peft.count);
    for (size_t i = 0; i < peft.count; i++) {
        assert_string_equal(ours.tensors[i].name, peft.tensors[i].name);
        assert_int_equal(ours.tensors[i].size, peft.tensors[i].size);
        assert_memory_equal(ours.tensors[i].data, peft.tensors[i].data, peft.tensors[i].size);
    }
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);

    json_t *config = json_read_file(path, 1 << 16, &err), *whole = json_object_get(config, "modules_to_save");

    assert_int_equal(json_array_size(whole), 5);
    assert_true(lists(whole, "model.norm") && lists(whole, "model.embed_tokens") && lists(whole, "model.layers.0.mlp.up_proj"));
    assert_int_equal(json_array_size(json_object_get(config, "target_modules")), 2);
    json_decref(config);
    safetensors_close(&ours);
    safetensors_close(&peft);
    free(tensors);
    free(values);
    json_decref(adapter);
    fixture_free(&f);
}

/* --- an embedding that is the head, too ------------------------------------------------------------------------------------- */

static float embedding[6] = { 1, 2, 3, 4, 5, 6 }, a[2] = { 1, 2 }, b[3] = { 1, 2, 3 };

static void write_tied(const char *folder, const char *head)
{
    struct tensor t[] = {
        { .name = (char[]){ "model.embed_tokens.weight" },
          .rank = 2,
          .dims = { 3, 2 },
          .data = embedding,
          .size = sizeof embedding },
        { .name = (char[]){ "x.q_proj.lora_A.weight" }, .rank = 2, .dims = { 1, 2 }, .data = a, .size = sizeof a },
        { .name = (char[]){ "x.q_proj.lora_B.weight" }, .rank = 2, .dims = { 3, 1 }, .data = b, .size = sizeof b },
    };
    json_t *whole = json_pack("[s]", "embed_tokens");
    struct error err = { 0 };

    FIXTURE_OK(adapter_write(
                   folder,
                   &(struct adapter){ .kind = { .rank = 1, .alpha = 1, .whole = whole }, .tensors = t, .count = 3, .head = head },
                   &err),
               &err);
    json_decref(whole);
}

static void read_tied(const char *folder, bool tied, struct error *err)
{
    float copy[6] = { 0 }, low[2], high[3];
    struct tensor t[] = {
        { .name = (char[]){ "model.embed_tokens.weight" }, .rank = 2, .dims = { 3, 2 }, .data = copy, .size = sizeof copy },
        { .name = (char[]){ "x.q_proj.lora_A.weight" }, .rank = 2, .dims = { 1, 2 }, .data = low, .size = sizeof low },
        { .name = (char[]){ "x.q_proj.lora_B.weight" }, .rank = 2, .dims = { 3, 1 }, .data = high, .size = sizeof high },
    };

    error_clear(err);
    if (adapter_read(folder, t, 3, tied, err))
        assert_memory_equal(copy, embedding, sizeof copy);
}

static void a_head_that_is_the_embedding_is_written_twice_and_read_once(void **state)
{
    char folder[64], path[128];
    struct error err = { 0 };
    struct buffer bytes = { 0 };

    (void)state;
    fixture_folder(folder);
    write_tied(folder, "model.embed_tokens.weight");
    read_tied(folder, true, &err);
    assert_int_equal(err.code, 0);
    read_tied(folder, false, &err); /* a base with a head of its own: that one would have to be trained as well */
    assert_int_equal(err.code, ERROR_UNKNOWN);

    snprintf(path, sizeof path, "%s/adapter_model.safetensors",
             folder); /* the last tensor is that of x.q_proj: lm_head stands first */
    assert_true(file_read(path, 1 << 16, &bytes, &err));

    struct safetensors file;

    assert_true(safetensors_open(&file, path, &err));
    assert_string_equal(file.tensors[0].name, "base_model.model.lm_head.weight");
    bytes.bytes[(const uint8_t *)file.tensors[0].data - (const uint8_t *)file.map] ^= 1;
    safetensors_close(&file);
    assert_true(file_write(path, bytes.bytes, bytes.size, 0600, &err));
    read_tied(folder, true, &err);
    assert_int_equal(err.code, ERROR_MISMATCH);
    assert_non_null(strstr(err.message, "a head of its own"));
    buffer_free(&bytes);

    write_tied(folder, NULL);
    read_tied(folder, true, &err);
    assert_int_equal(err.code, ERROR_MISMATCH);
    read_tied(folder, false, &err);
    assert_int_equal(err.code, 0);
    fixture_remove(folder);
}

static void a_copy_takes_the_place_of_its_weight(void **state)
{
    char folder[64];
    struct adapter_file file;
    struct error err = { 0 };
    float values[6] = { 0 };
    struct tensor weight = { .name = "model.embed_tokens.weight", .rank = 2, .dims = { 3, 2 } };

    (void)state;
    fixture_folder(folder);
    write_tied(folder, NULL);
    assert_true(adapter_file_open(&file, folder, &err));
    assert_true(adapter_file_add(&file, &weight, values, &err));
    assert_memory_equal(values, embedding, sizeof values);
    assert_int_equal(file.used, 1);
    weight.dims[0] = 2;
    weight.dims[1] = 3;
    assert_false(adapter_file_add(&file, &weight, values, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    adapter_file_close(&file);
    fixture_remove(folder);
}

static void whole_modules_that_no_model_has_are_refused_by_name(void **state)
{
    static const struct {
        const char *adapter, *message;
    } cases[] = {
        { "{\"kind\":\"lora\",\"rank\":2,\"alpha\":4,\"modules_to_save\":[\"ln_f\"]}", "modules_to_save: ln_f is no module" },
        { "{\"kind\":\"lora\",\"rank\":2,\"alpha\":4,\"modules_to_save\":[\"mlp\"]}", "modules_to_save: mlp is no module" },
    };
    struct fixture f;

    (void)state;
    fixture_new(&f, &(struct fixture_options){ 0 });
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *job = json_deep_copy(f.job), *adapter = json_loads(cases[i].adapter, 0, NULL);
        struct error err = { 0 };

        json_object_set_new(json_object_get(job, "spec"), "adapter", adapter);
        assert_null(session_new(job, &f.blocks, f.pool, &err));
        assert_non_null(strstr(err.message, cases[i].message));
        json_decref(job);
    }
    fixture_free(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_adapter_with_whole_modules_gives_pefts_log_probabilities),
        cmocka_unit_test(what_was_read_is_written_as_peft_names_it),
        cmocka_unit_test(a_head_that_is_the_embedding_is_written_twice_and_read_once),
        cmocka_unit_test(a_copy_takes_the_place_of_its_weight),
        cmocka_unit_test(whole_modules_that_no_model_has_are_refused_by_name),
    };

    fixture_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
