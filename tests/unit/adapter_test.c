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
#include "native/model/adapter.h"

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
    return mkdtemp(folder) && adapter_write(folder, &(struct adapter){ .rank = 2, .alpha = 4, .tensors = t, .count = 2 }, NULL)
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
    unsigned rank = 0, alpha = 0;
    struct tensor t[2];

    assert_true(adapter_read_config(*state, &rank, &alpha, NULL));
    assert_int_equal(rank, 2);
    assert_int_equal(alpha, 4);
    pair(t);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    assert_true(adapter_read(*state, t, 2, NULL));
    assert_true(a[0] == 0.5f && a[5] == 5.5f && b[1] == -1 && b[3] == -3);
}

static void a_pair_that_the_file_has_not_got_becomes_zero(void **state)
{
    float more[4] = { 1, 1, 1, 1 };
    char other[] = "model.layers.1.mlp.up_proj.lora_A.weight";
    struct tensor t[3];

    pair(t);
    t[2] = (struct tensor){ .name = other, .type = TENSOR_F32, .rank = 2, .dims = { 2, 2 }, .data = more, .size = sizeof more };
    assert_true(adapter_read(*state, t, 3, NULL));
    assert_true(more[0] == 0 && more[3] == 0 && a[0] == 0.5f);
}

static void an_adapter_of_another_model_is_refused(void **state)
{
    struct error err = { 0 };
    struct tensor t[2];

    pair(t);
    assert_false(adapter_read(*state, t, 1, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    assert_non_null(strstr(err.place, "q_proj.lora_B.weight"));
    error_clear(&err);
    t[0].dims[1] = 2;
    t[0].size = 16;
    assert_false(adapter_read(*state, t, 2, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
}

static void configurations_that_are_no_plain_lora_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum error_code code;
    } cases[] = {
        { "{\"peft_type\": \"IA3\", \"r\": 2, \"lora_alpha\": 4}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"use_dora\": true}", ERROR_UNSUPPORTED },
        { "{\"peft_type\": \"LORA\", \"lora_alpha\": 4}", ERROR_MISSING },
        { "{\"peft_type\": \"LORA\", \"r\": \"2\", \"lora_alpha\": 4}", ERROR_TYPE },
        { "{\"peft_type\": \"LORA\", \"r\": 0, \"lora_alpha\": 4}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1e300}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 0.5}", ERROR_RANGE },
        { "{\"peft_type\": \"LORA\"", ERROR_SYNTAX },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = { 0 };
        unsigned rank, alpha;

        put_config(*state, cases[i].text);
        assert_false(adapter_read_config(*state, &rank, &alpha, &err));
        assert_int_equal(err.code, cases[i].code);
        assert_non_null(strstr(err.place, "adapter_config.json"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pair_that_the_file_has_not_got_becomes_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_adapter_of_another_model_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configurations_that_are_no_plain_lora_are_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
