#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "native/base/buffer.h"
#include "native/base/file.h"
#include "native/model/adapter.h"
#include "native/model/safetensors.h"

static struct buffer file_of(const char *header, size_t data)
{
    struct buffer out = { 0 };

    buffer_add_u64(&out, strlen(header));
    buffer_add_text(&out, header);
    for (size_t i = 0; i < data; i++)
        buffer_add_u8(&out, (uint8_t)i);
    return out;
}

/* Opens a file of this header and `data` bytes; checks the code. */
static void expect(const char *header, size_t data, enum error_code code)
{
    struct buffer bytes = file_of(header, data);
    struct safetensors file;
    struct error err = { 0 };

    assert_int_equal(safetensors_of(&file, bytes.bytes, bytes.size, &err), code == ERROR_NONE);
    assert_int_equal(err.code, code);
    safetensors_close(&file);
    buffer_free(&bytes);
}

static void a_file_is_read_in_name_order(void **state)
{
    struct buffer bytes = file_of("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                                  "\"__metadata__\":{\"format\":\"pt\"},"
                                  "\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[8,10]}}   ",
                                  10);
    struct safetensors file;
    (void)state;

    assert_true(safetensors_of(&file, bytes.bytes, bytes.size, NULL));
    assert_int_equal(file.count, 2);
    assert_string_equal(file.tensors[0].name, "a");
    assert_int_equal(file.tensors[0].type, TENSOR_BF16);
    assert_int_equal(file.tensors[0].rank, 0);
    assert_int_equal(*(uint8_t *)file.tensors[0].data, 8);
    assert_int_equal(file.tensors[1].dims[0], 2);
    assert_int_equal(file.tensors[1].dims[1], 1);
    assert_string_equal(json_string_value(json_object_get(file.metadata, "format")), "pt");
    safetensors_close(&file);
    buffer_free(&bytes);
}

static void empty_files_and_empty_tensors_are_files(void **state)
{
    (void)state;
    expect("{}", 0, ERROR_NONE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]},"
           "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
           2, ERROR_NONE);
}

static void lying_headers_are_refused_each_with_its_code(void **state)
{
    (void)state;
    expect("[]", 0, ERROR_SYNTAX);
    expect("{\"a\":}", 0, ERROR_SYNTAX);
    expect("{\"a\":3}", 0, ERROR_TYPE);
    expect("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, ERROR_TYPE);
    expect("{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, ERROR_UNSUPPORTED);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, ERROR_TYPE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, ERROR_TYPE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, ERROR_SHAPE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, ERROR_SHAPE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, ERROR_LIMIT);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, ERROR_LIMIT);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, ERROR_RANGE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, ERROR_RANGE);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, ERROR_CONFLICT);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, ERROR_CONFLICT);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
           6, ERROR_CONFLICT);
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
           "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
           8, ERROR_DUPLICATE);
    expect("{\"__metadata__\":{\"a\":1}}", 0, ERROR_TYPE);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    struct buffer bytes = file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
    (void)state;

    for (size_t size = 0; size < bytes.size; size++) {
        struct safetensors file;
        struct error err = { 0 };

        assert_false(safetensors_of(&file, bytes.bytes, size, &err));
        assert_true(err.code == ERROR_TRUNCATED || err.code == ERROR_RANGE);
        safetensors_close(&file);
    }
    memset(bytes.bytes, 0xff, 8);
    struct safetensors file;
    struct error err = { 0 };

    assert_false(safetensors_of(&file, bytes.bytes, bytes.size, &err));
    assert_int_equal(err.code, ERROR_LIMIT);
    safetensors_close(&file);
    buffer_free(&bytes);
}

/* Folder of its own, removed by the test. */
static char *new_folder(char *path)
{
    strcpy(path, "/tmp/rondo_test_XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static void what_is_written_is_read_again(void **state)
{
    char folder[64], path[96];
    const uint64_t dims[] = { 2, 3 }, one[] = { 5 };
    struct tensor t[2];
    struct safetensors file;
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    (void)state;

    snprintf(path, sizeof path, "%s/t.safetensors", new_folder(folder));
    assert_true(tensor_new(&t[0], "small", TENSOR_F16, 1, one, SIZE_MAX, NULL));
    assert_true(tensor_new(&t[1], "wide", TENSOR_F32, 2, dims, SIZE_MAX, NULL));
    memset(t[0].data, 0x11, t[0].size);
    memset(t[1].data, 0x22, t[1].size);
    assert_true(safetensors_write(path, t, 2, metadata, NULL));
    assert_true(safetensors_open(&file, path, NULL));
    assert_int_equal(file.count, 2);
    assert_memory_equal(file.tensors[0].data, t[0].data, t[0].size);
    assert_memory_equal(file.tensors[1].data, t[1].data, t[1].size);
    assert_int_equal((uintptr_t)file.tensors[1].data % 8, 0);
    assert_true(file.tensors[1].data < file.tensors[0].data); /* wide types first */
    safetensors_close(&file);
    free(t[1].name);
    t[1].name = strdup("small");
    assert_false(safetensors_write(path, t, 2, metadata, NULL));
    json_decref(metadata);
    tensor_free(&t[0]);
    tensor_free(&t[1]);
    unlink(path);
    rmdir(folder);
}

/* Adapters ---------------------------------------------------------------------------------------------------------------- */

static void tensors_of_an_adapter(struct tensor t[4])
{
    static const char *const names[] = { "model.layers.0.self_attn.q_proj.lora_A", "model.layers.0.self_attn.q_proj.lora_B",
                                         "model.layers.0.mlp.up_proj.lora_B.weight", "model.layers.0.mlp.up_proj.lora_A.weight" };
    const uint64_t a[] = { 2, 6 }, b[] = { 2, 2, 2 }, up[] = { 5, 2 };

    assert_true(tensor_new(&t[0], names[0], TENSOR_F32, 2, a, SIZE_MAX, NULL));
    assert_true(tensor_new(&t[1], names[1], TENSOR_F32, 3, b, SIZE_MAX, NULL)); /* (heads dim rank) */
    assert_true(tensor_new(&t[2], names[2], TENSOR_F32, 2, up, SIZE_MAX, NULL));
    assert_true(tensor_new(&t[3], names[3], TENSOR_F32, 2, a, SIZE_MAX, NULL));
}

static void an_adapter_has_the_names_and_shapes_of_peft(void **state)
{
    char folder[64], path[128];
    struct tensor t[4];
    struct adapter adapter = { .kind = { .rank = 2, .alpha = 4 }, .base = "base", .tensors = t, .count = 4 };
    struct safetensors file;
    struct buffer text = { 0 };
    (void)state;

    tensors_of_an_adapter(t);
    assert_true(adapter_write(new_folder(folder), &adapter, NULL));
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    assert_true(safetensors_open(&file, path, NULL));
    assert_int_equal(file.count, 4);
    assert_string_equal(file.tensors[0].name, "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight");
    assert_string_equal(file.tensors[3].name, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
    assert_int_equal(file.tensors[3].rank, 2);
    assert_int_equal(file.tensors[3].dims[0], 4);
    assert_int_equal(file.tensors[3].dims[1], 2);
    safetensors_close(&file);
    unlink(path);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    assert_true(file_read(path, 10000, &text, NULL));
    assert_non_null(strstr(buffer_text(&text), "\"r\": 2"));
    assert_non_null(strstr(buffer_text(&text), "\"lora_alpha\": 4"));
    assert_non_null(strstr(buffer_text(&text), "\"up_proj\",\n    \"q_proj\""));
    buffer_free(&text);
    unlink(path);
    rmdir(folder);
    for (unsigned i = 0; i < 4; i++)
        tensor_free(&t[i]);
}

static void an_incomplete_adapter_is_not_written(void **state)
{
    struct tensor t[4];
    struct adapter adapter = { .kind = { .rank = 2, .alpha = 4 }, .tensors = t, .count = 3 };
    struct error err = { 0 };
    (void)state;

    tensors_of_an_adapter(t);
    assert_false(adapter_write("/nowhere", &adapter, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    adapter.kind.rank = 3;
    error_clear(&err);
    assert_false(adapter_write("/nowhere", &adapter, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    strcpy(t[0].name, "embed");
    error_clear(&err);
    assert_false(adapter_write("/nowhere", &adapter, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    for (unsigned i = 0; i < 4; i++)
        tensor_free(&t[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_in_name_order),
        cmocka_unit_test(empty_files_and_empty_tensors_are_files),
        cmocka_unit_test(lying_headers_are_refused_each_with_its_code),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(an_adapter_has_the_names_and_shapes_of_peft),
        cmocka_unit_test(an_incomplete_adapter_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
