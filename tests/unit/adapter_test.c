#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/model/adapter_add.h"

static float a[6], b[4];
static char name_a[] = "model.layers.0.self_attn.q_proj.lora_A.weight",
            name_b[] = "model.layers.0.self_attn.q_proj.lora_B.weight";

/* A of rank 2 over 3, B from rank 2 to 2. */
static void pair(struct tensor t[2])
{
    t[0] = (struct tensor){ .name = name_a, .type = TENSOR_F32, .rank = 2, .dims = { 2, 3 }, .data = a, .size = sizeof a };
    t[1] = (struct tensor){ .name = name_b, .type = TENSOR_F32, .rank = 2, .dims = { 2, 2 }, .data = b, .size = sizeof b };
}

static void fill(void)
{
    for (int i = 0; i < 6; i++)
        a[i] = (float)i + 0.5f;
    for (int i = 0; i < 4; i++)
        b[i] = (float)-i;
}

/* A folder that holds the pair. */
static int set_up(void **state)
{
    struct tensor t[2];
    char *folder = strdup("/tmp/rondo_adapter_XXXXXX");

    pair(t);
    fill();
    *state = folder;
    return mkdtemp(folder) &&
                   adapter_write(folder, &(struct adapter){ .kind = { .rank = 2, .alpha = 4 }, .tensors = t, .count = 2 }, NULL)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    char path[128];

    snprintf(path, sizeof path, "%s/adapter_config.json", (char *)*state);
    unlink(path);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", (char *)*state);
    unlink(path);
    rmdir(*state);
    free(*state);
    return 0;
}

static void put_config(const char *folder, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    assert_true(file_write(path, text, strlen(text), 0600, NULL));
}

static void what_was_written_is_read_back(void **state)
{
    struct adapter_kind kind;
    struct tensor t[2];
    json_t *modules = adapter_modules(*state, false, NULL);

    assert_true(adapter_read_kind(*state, &kind, NULL));
    assert_int_equal(kind.rank, 2);
    assert_true(kind.alpha == 4 && !kind.root && !kind.dora && adapter_scale(&kind) == 2);
    assert_int_equal(json_array_size(modules), 1);
    assert_string_equal(json_string_value(json_array_get(modules, 0)), "model.layers.0.self_attn.q_proj");
    json_decref(modules);
    pair(t);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    assert_true(adapter_read(*state, t, 2, false, NULL));
    assert_true(a[0] == 0.5f && a[5] == 5.5f && b[1] == -1 && b[3] == -3);
}

static void a_tensor_that_the_file_has_not_got_is_told_by_name(void **state)
{
    float more[4] = { 1, 1, 1, 1 };
    char other[] = "model.layers.1.mlp.up_proj.lora_A.weight";
    struct error err = { 0 };
    struct tensor t[3];

    pair(t);
    t[2] = (struct tensor){ .name = other, .type = TENSOR_F32, .rank = 2, .dims = { 2, 2 }, .data = more, .size = sizeof more };
    assert_false(adapter_read(*state, t, 3, false, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_non_null(strstr(err.place, other));
}

static void the_magnitudes_of_dora_and_the_root_of_rslora_are_written_and_read(void **state)
{
    const struct adapter_kind kind = { .rank = 2, .alpha = 3, .root = true, .dora = true };
    float m[2] = { 5, 7 };
    char name[] = "model.layers.0.self_attn.q_proj.lora_magnitude_vector";
    struct tensor t[3];
    struct adapter_kind found;
    struct error err = { 0 };

    pair(t);
    t[2] = (struct tensor){ .name = name, .type = TENSOR_F32, .rank = 1, .dims = { 2 }, .data = m, .size = sizeof m };
    assert_true(adapter_write(*state, &(struct adapter){ .kind = kind, .tensors = t, .count = 3 }, NULL));
    assert_true(adapter_read_kind(*state, &found, NULL));
    assert_true(found.root && found.dora && found.rank == 2 && adapter_scale(&found) == 3 / sqrt(2));
    memset(m, 0, sizeof m);
    assert_true(adapter_read(*state, t, 3, false, NULL));
    assert_true(m[0] == 5 && m[1] == 7 && a[1] == 1.5f);
    assert_false(adapter_write(*state, &(struct adapter){ .kind = kind, .tensors = t, .count = 2 }, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    assert_false(adapter_write(*state, &(struct adapter){ .kind = { .rank = 2, .alpha = 3 }, .tensors = t, .count = 3 }, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
}

static void patterns_give_modules_their_own_rank_and_alpha(void **state)
{
    struct adapter_kind kind = { .rank = 8, .alpha = 16 }, found, one;
    json_t *ranks = json_pack("{s:i, s:i}", "q_proj", 2, "layers.1.self_attn.q_proj", 4), *alphas = json_pack("{s:i}", "proj", 1),
           *told;
    struct tensor t[2];

    assert_true(adapter_patterns(&kind, ranks, alphas, false, NULL));
    one = adapter_kind_of(&kind, "model.layers.0.self_attn.q_proj", 31);
    assert_true(one.rank == 2 && one.alpha == 16); /* "proj" begins behind no dot */
    assert_int_equal(adapter_kind_of(&kind, "model.layers.1.self_attn.q_proj", 31).rank, 4);
    assert_int_equal(adapter_kind_of(&kind, "model.layers.0.self_attn.k_proj", 31).rank, 8);

    pair(t);
    assert_true(adapter_write(*state, &(struct adapter){ .kind = kind, .tensors = t, .count = 2 }, NULL));
    assert_true(adapter_read_kind(*state, &found, NULL));
    assert_int_equal(found.rank, 8);
    assert_int_equal(adapter_kind_of(&found, "model.layers.0.self_attn.q_proj", 31).rank, 2);
    told = adapter_describe(*state, NULL);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(told, "rank_pattern"), "model.layers.0.self_attn.q_proj")), 2);
    assert_null(json_object_get(told, "alpha_pattern"));
    json_decref(told);
    adapter_kind_free(&found);
    adapter_kind_free(&kind);

    kind = (struct adapter_kind){ .rank = 8, .alpha = 16 }; /* PEFT: the first name that fits */
    assert_true(adapter_patterns(&kind, ranks, NULL, true, NULL));
    assert_int_equal(adapter_kind_of(&kind, "model.layers.1.self_attn.q_proj", 31).rank, 2);
    adapter_kind_free(&kind);
    json_decref(ranks);
    json_decref(alphas);
}

/* Numbers: reference, T-LORA; a DoRA as PEFT has it. */
static void an_adapter_is_added_into_a_weight(void **state)
{
    static float low[2] = { 1, 0.5f }, high[2] = { 0.2f, -0.4f }, m[2] = { 2.236068f, 5 };
    static const float plain[4] = { 1.4f, 2.2f, 2.2f, 3.6f }, dora[4] = { 1.200490f, 1.886484f, 2.607250f, 4.266409f };
    char magnitude[] = "model.layers.0.self_attn.q_proj.lora_magnitude_vector";
    struct tensor t[3], weight = { .name = "model.layers.0.self_attn.q_proj.weight", .rank = 2, .dims = { 2, 2 } };

    t[0] = (struct tensor){ .name = name_a, .rank = 2, .dims = { 1, 2 }, .data = low, .size = sizeof low };
    t[1] = (struct tensor){ .name = name_b, .rank = 2, .dims = { 2, 1 }, .data = high, .size = sizeof high };
    t[2] = (struct tensor){ .name = magnitude, .rank = 1, .dims = { 2 }, .data = m, .size = sizeof m };
    for (int way = 0; way < 4; way++) { /* a DoRA or not, transposed or not */
        const bool is_dora = way & 1, transposed = way & 2;
        struct adapter_file file;
        float w[4] = { 1, transposed ? 3 : 2, transposed ? 2 : 3, 4 };
        const struct adapter adapter = { .kind = { .rank = 1, .alpha = 2, .dora = is_dora },
                                         .tensors = t,
                                         .count = is_dora ? 3 : 2 };

        assert_true(adapter_write(*state, &adapter, NULL));
        assert_true(adapter_file_open(&file, *state, NULL));
        file.transposed = transposed;
        assert_true(adapter_file_add(&file, &weight, w, NULL));
        assert_int_equal(file.used, is_dora ? 3 : 2);
        for (int i = 0; i < 4; i++)
            assert_float_equal(w[transposed ? i % 2 * 2 + i / 2 : i], (is_dora ? dora : plain)[i], 2e-6);
        adapter_file_close(&file);
    }
}

static void an_adapter_of_another_model_is_refused(void **state)
{
    struct error err = { 0 };
    struct tensor t[2];

    pair(t);
    assert_false(adapter_read(*state, t, 1, false, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    assert_non_null(strstr(err.place, "q_proj.lora_B.weight"));
    error_clear(&err);
    t[0].dims[1] = 2;
    t[0].size = 16;
    assert_false(adapter_read(*state, t, 2, false, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
}

static void configurations_that_are_none_of_an_adapter_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum error_code code;
    } cases[] = {
        { "{\"peft_type\": \"IA3\", \"r\": 2, \"lora_alpha\": 4}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"bias\": \"all\"}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"modules_to_save\": \"lm_head\"}", ERROR_TYPE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"modules_to_save\": [1]}", ERROR_TYPE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"rank_pattern\": {\"^q_proj\": 4}}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"rank_pattern\": {\"q_proj\": 0}}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"alpha_pattern\": [8]}", ERROR_TYPE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"init_lora_weights\": \"pissa\"}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"lora_alpha\": 4}", ERROR_MISSING },
        { "{\"peft_type\": \"LORA\", \"r\": \"2\", \"lora_alpha\": 4}", ERROR_TYPE },
        { "{\"peft_type\": \"LORA\", \"r\": 0, \"lora_alpha\": 4}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1e300}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 0}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\"", ERROR_SYNTAX },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = { 0 };
        struct adapter_kind kind;

        put_config(*state, cases[i].text);
        assert_false(adapter_read_kind(*state, &kind, &err));
        assert_int_equal(err.code, cases[i].code);
        adapter_kind_free(&kind);
        assert_non_null(strstr(err.place, "adapter_config.json"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tensor_that_the_file_has_not_got_is_told_by_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_magnitudes_of_dora_and_the_root_of_rslora_are_written_and_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patterns_give_modules_their_own_rank_and_alpha, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_adapter_is_added_into_a_weight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_adapter_of_another_model_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configurations_that_are_none_of_an_adapter_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
