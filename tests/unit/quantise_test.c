/* NF4: the codes and values of bitsandbytes (tests/golden/nf4.safetensors, made by tools/oracle/nf4.py), and folders of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/json.h"
#include "native/model/bitsandbytes.h"
#include "native/model/convert.h"
#include "native/model/nf4.h"
#include "native/model/quantise.h"
#include "native/model/safetensors.h"
#include "native/model/source.h"

#define GOLDEN RONDO_SOURCE "/tests/golden/nf4.safetensors"
#define POCKET RONDO_SOURCE "/models/pocket"

static struct error err;

static void ok(bool good)
{
    if (!good)
        fail_msg("%s: %s", err.place, err.message);
}

static const struct tensor *find(const struct tensor *tensors, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

struct golden {
    struct safetensors file;
    struct tensor *tensors;
    size_t count;
    struct bitsandbytes_set set;
};

static void open_golden(struct golden *g)
{
    ok(safetensors_open(&g->file, GOLDEN, &err));
    g->count = g->file.count;
    g->tensors = malloc(g->count * sizeof *g->tensors);
    memcpy(g->tensors, g->file.tensors, g->count * sizeof *g->tensors);
    ok(bitsandbytes_fold(g->tensors, &g->count, &g->set, &err));
}

static void close_golden(struct golden *g)
{
    bitsandbytes_free(&g->set);
    free(g->tensors);
    safetensors_close(&g->file);
}

static void *pack(const struct bitsandbytes *b, enum tensor_type type)
{
    uint64_t values;
    size_t bytes;

    ok(tensor_measure(type, b->view.rank, b->view.dims, SIZE_MAX, &values, &bytes, &err));
    void *out = malloc(bytes + 1);

    bitsandbytes_pack(b, type, out);
    return out;
}

static void values_are_those_of_bitsandbytes_to_the_bit(void **state)
{
    struct golden g = { 0 };

    (void)state;
    open_golden(&g);
    assert_int_equal(g.set.count, 3);
    for (size_t i = 0; i < g.set.count; i++) {
        const struct bitsandbytes *b = &g.set.items[i];
        const uint64_t n = tensor_values(&b->view);
        float *values = malloc(n * sizeof *values);
        uint8_t hash[32];
        char name[64];

        snprintf(name, sizeof name, "%.*s.hash", (int)strlen(b->view.name) - 7, b->view.name);
        assert_int_equal(b->view.type, strcmp(b->view.name, "double.weight") == 0 ? TENSOR_NF4_DQ : TENSOR_NF4);
        for (int both = 0; both < 2; both++) { /* with the scales restored, the same */
            const enum tensor_type type = both ? TENSOR_NF4 : b->view.type;
            void *packed = pack(b, type);

            convert_to_f32(type, packed, n, values);
            crypto_generichash(hash, sizeof hash, (const void *)values, n * sizeof *values, NULL, 0);
            assert_memory_equal(hash, find(g.tensors, g.count, name)->data, sizeof hash);
            free(packed);
        }
        free(values);
    }
    close_golden(&g);
}

static void codes_are_those_of_bitsandbytes(void **state)
{
    struct golden g = { 0 };

    (void)state;
    open_golden(&g);
    for (size_t i = 0; i < g.set.count; i++) {
        const struct bitsandbytes *b = &g.set.items[i];
        const uint64_t n = tensor_values(&b->view);
        float *source = malloc(n * sizeof *source);
        struct tensor stored, parts[BITSANDBYTES_PARTS];
        char name[64];
        size_t count;

        snprintf(name, sizeof name, "%.*s.source", (int)strlen(b->view.name) - 7, b->view.name);
        convert_to_f32(TENSOR_BF16, find(g.tensors, g.count, name)->data, n, source);
        ok(tensor_new(&stored, "w", b->view.type, b->view.rank, b->view.dims, SIZE_MAX / 2, &err));
        assert_true(nf4_write(b->view.type, source, n, stored.data));
        ok(bitsandbytes_split(&stored, parts, &count, &err));
        assert_int_equal(count, b->nested ? 6 : 4);
        assert_memory_equal(parts[0].data, b->codes, n / 2); /* the half byte after an odd end is nobody's */
        if (!b->nested)
            assert_memory_equal(parts[1].data, b->absmax, parts[1].size);
        for (size_t j = 0; j < count; j++)
            tensor_free(&parts[j]);
        tensor_free(&stored);
        free(source);
    }
    close_golden(&g);
}

/* The vectors of docs/numerics.md's sources, by hand: a = 2, codes 10 2 9 7 15 5 13 0. */
static void a_short_block_is_coded_as_written(void **state)
{
    static const float x[8] = { 0.5f, -1.0f, 0.25f, 0, 2.0f, -0.3f, 1.1f, -1.9f };
    static const uint8_t want[8] = { 0, 0, 0, 0x40, 0xa2, 0x97, 0xf5, 0xd0 };
    uint8_t stored[36];
    float back[8];

    (void)state;
    assert_true(nf4_write(TENSOR_NF4, x, 8, stored));
    assert_memory_equal(stored, want, 8);
    for (unsigned i = 8; i < 36; i++)
        assert_int_equal(stored[i], 0x77);
    nf4_read(TENSOR_NF4, stored, 8, back);
    assert_true(back[0] == 2 * 0.246112301945686340f && back[4] == 2 && back[7] == -2);
}

static void scales_are_coded_to_the_nearest_around_their_mean(void **state)
{
    static const float scales[4] = { 2, 1, 0.5f, 1.5f };
    static const uint8_t want[4] = { 255, 47, 0, 207 };
    float x[256] = { 0 }, back[256];
    uint8_t stored[4 * 33 + 8];
    float head[2];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        x[64 * i] = scales[i];
    assert_true(nf4_write(TENSOR_NF4_DQ, x, 256, stored));
    memcpy(head, stored, sizeof head);
    assert_true(head[0] == 0.75f && head[1] == 1.25f);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(stored[8 + 33 * i], want[i]);
    nf4_read(TENSOR_NF4_DQ, stored, 256, back);
    assert_true(back[0] == 2 && back[1] == 0 && back[64] > 1.000976f && back[64] < 1.000978f);
}

static void zeros_and_the_smallest_numbers_stay_numbers(void **state)
{
    float x[128] = { 0 }, back[128];
    uint8_t stored[2 * 36 + 8];

    (void)state;
    x[64] = 1e-45f;
    x[65] = -3.4e38f;
    for (int dq = 0; dq < 2; dq++) {
        const enum tensor_type type = dq ? TENSOR_NF4_DQ : TENSOR_NF4;

        assert_true(nf4_write(type, x, 128, stored));
        nf4_read(type, stored, 128, back);
        for (unsigned i = 0; i < 128; i++)
            assert_true(i == 65 ? back[i] < -3e38f : back[i] == 0);
    }
}

static void a_folder_is_quantised_and_read_again(void **state)
{
    struct model_source *base, *model;
    char folder[] = "/tmp/rondo_quantise_XXXXXX", path[256];
    size_t matrices, seen = 0;
    json_t *config;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    ok(quantise_write(POCKET, path, TENSOR_NF4_DQ, &matrices, &err));
    base = model_open(POCKET, &err);
    model = model_open(path, &err);
    ok(model != NULL && base != NULL);
    assert_int_equal(model_tensor_count(model), model_tensor_count(base));
    for (size_t i = 0; i < model_tensor_count(base); i++) {
        const struct tensor *from = model_tensor(base, i), *to = model_find(model, from->name);
        const uint64_t n = tensor_values(from);
        float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
        const void *bytes;
        void *owned;
        enum tensor_type type;

        assert_int_equal(to->type, quantise_takes(from) ? TENSOR_NF4_DQ : from->type);
        seen += quantise_takes(from);
        ok(model_read_tensor(base, from->name, a, &err) && model_read_tensor(model, from->name, b, &err));
        if (quantise_takes(from)) {
            struct tensor whole;

            ok(tensor_new(&whole, NULL, TENSOR_NF4_DQ, from->rank, from->dims, SIZE_MAX / 2, &err));
            assert_true(nf4_write(TENSOR_NF4_DQ, a, n, whole.data));
            nf4_read(TENSOR_NF4_DQ, whole.data, n, a);
            ok(model_read_stored(model, from->name, &bytes, &owned, &type, &err));
            assert_int_equal(type, TENSOR_NF4_DQ);
            assert_memory_equal(bytes, whole.data, whole.size);
            free(owned);
            tensor_free(&whole);
        }
        assert_memory_equal(a, b, n * sizeof *a);
        free(a);
        free(b);
    }
    assert_int_equal(seen, matrices);
    assert_int_equal(matrices, 28);
    model_close(model);
    model_close(base);
    assert_false(quantise_write(path, path, TENSOR_NF4, &matrices, &err)); /* once is enough */
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    error_clear(&err);
    assert_false(quantise_write(POCKET, path, TENSOR_Q4_0, &matrices, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    error_clear(&err);
    snprintf(path, sizeof path, "%s/out/config.json", folder);
    config = json_read_file(path, 1 << 20, &err);
    assert_true(json_is_true(json_object_get(json_object_get(config, "quantization_config"), "load_in_4bit")));
    json_decref(config);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

/* What a file may say wrongly of one weight, each refused with its code. */
static void a_weight_whose_parts_do_not_fit_is_refused(void **state)
{
    static const struct {
        const char *name, *json;
        enum error_code code;
    } cases[] = {
        { "w.quant_state.bitsandbytes__fp4", "{}", ERROR_UNSUPPORTED },
        { "w.quant_state.bitsandbytes__nf4", "[]", ERROR_TYPE },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":128,\"shape\":[8]}", ERROR_UNSUPPORTED },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[-8]}", ERROR_TYPE },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":8}", ERROR_SHAPE },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[4294967296,4294967296]}",
          ERROR_LIMIT },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[9000]}", ERROR_SHAPE },
        { "v.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[8]}", ERROR_MISSING },
        { "w.quant_state.bitsandbytes__nf4",
          "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[8],\"nested_offset\":1e39,\"nested_blocksize\":256,"
          "\"nested_dtype\":\"float32\"}",
          ERROR_NON_FINITE },
        { "w.quant_state.bitsandbytes__nf4", "{\"quant_type\":\"nf4\",\"blocksize\":64,\"shape\":[8]}",
          ERROR_UNSUPPORTED }, /* map */
    };
    float map[16] = { 0 }, absmax = 1;
    uint8_t codes[4] = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor tensors[4] = {
            { .name = (char *)(uintptr_t) "w", .type = TENSOR_U8, .rank = 1, .dims = { 4 }, .data = codes, .size = 4 },
            { .name = (char *)(uintptr_t) "w.absmax", .rank = 1, .dims = { 1 }, .data = &absmax, .size = 4 },
            { .name = (char *)(uintptr_t) "w.quant_map", .rank = 1, .dims = { 16 }, .data = map, .size = sizeof map },
            { .name = (char *)(uintptr_t)cases[i].name,
              .type = TENSOR_U8,
              .rank = 1,
              .dims = { strlen(cases[i].json) },
              .data = (char *)(uintptr_t)cases[i].json,
              .size = strlen(cases[i].json) },
        };
        struct bitsandbytes_set set;
        size_t count = 4;

        assert_false(bitsandbytes_fold(tensors, &count, &set, &err));
        if (err.code != cases[i].code)
            fail_msg("case %zu: %s", i, err.message);
        error_clear(&err);
        bitsandbytes_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_bitsandbytes_to_the_bit),
        cmocka_unit_test(codes_are_those_of_bitsandbytes),
        cmocka_unit_test(a_short_block_is_coded_as_written),
        cmocka_unit_test(scales_are_coded_to_the_nearest_around_their_mean),
        cmocka_unit_test(zeros_and_the_smallest_numbers_stay_numbers),
        cmocka_unit_test(a_folder_is_quantised_and_read_again),
        cmocka_unit_test(a_weight_whose_parts_do_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
