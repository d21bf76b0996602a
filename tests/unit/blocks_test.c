/* Every block type of GGUF against the values of ggml's Python package: tests/golden/gguf_blocks.gguf holds blocks and values, made
 * by tools/oracle/gguf_blocks.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/model/blocks.h"
#include "native/model/convert.h"
#include "native/model/gguf.h"

#define GOLDEN RONDO_SOURCE "/tests/golden/gguf_blocks.gguf"

enum { VALUES = 512, GIVEN = 14 };

static void every_type_has_the_bits_of_the_reference(void **state)
{
    struct error err = { 0 };
    struct gguf file;
    unsigned compared = 0;
    (void)state;

    if (!gguf_open(&file, GOLDEN, &err))
        fail_msg("%s: %s", err.place, err.message);
    for (size_t i = 0; i < file.tensor_count; i++) {
        const struct tensor *t = &file.tensors[i], *want;
        char name[64];
        float got[VALUES];

        snprintf(name, sizeof name, "%.50s.values", t->name);
        want = gguf_tensor(&file, name);
        if (!want)
            continue;
        assert_int_equal(tensor_values(t), VALUES);
        assert_int_equal(want->size, sizeof got);
        convert_to_f32(t->type, t->data, VALUES, got);
        if (memcmp(got, want->data, sizeof got) != 0)
            fail_msg("%s differs", t->name);
        compared++;
    }
    assert_int_equal(compared, GIVEN);
    gguf_close(&file);
}

static void blocks_at_odd_addresses_give_the_same(void **state)
{
    uint8_t bytes[1 + 210];
    float even[256], odd[256];
    (void)state;

    for (int type = 0; type < TENSOR_TYPES; type++) {
        block_read *read = block_reader((enum tensor_type)type);

        if (!read)
            continue;
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(i * 29 & 0x7b);
        read(bytes, even);
        memmove(bytes + 1, bytes, sizeof bytes - 1);
        read(bytes + 1, odd);
        assert_memory_equal(even, odd, tensor_block_values((enum tensor_type)type) * sizeof *even);
    }
}

static void quantised_values_have_the_bytes_of_the_reference(void **state)
{
    static const char *const names[] = { "made.Q8_0", "made.Q4_0" };
    struct error err = { 0 };
    struct gguf file;
    (void)state;

    if (!gguf_open(&file, GOLDEN, &err))
        fail_msg("%s: %s", err.place, err.message);
    const struct tensor *made = gguf_tensor(&file, "made");

    assert_non_null(made);
    assert_int_equal(made->size, VALUES * sizeof(float));
    for (unsigned i = 0; i < 2; i++) {
        const struct tensor *want = gguf_tensor(&file, names[i]);
        float values[VALUES];
        uint8_t got[VALUES * 2];

        memcpy(values, made->data, sizeof values);
        assert_non_null(want);
        assert_true(convert_from_f32(want->type, values, VALUES, got));
        assert_memory_equal(got, want->data, want->size);
    }
    gguf_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_values_have_the_bytes_of_the_reference),
        cmocka_unit_test(every_type_has_the_bits_of_the_reference),
        cmocka_unit_test(blocks_at_odd_addresses_give_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
