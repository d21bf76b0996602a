/* gguf_model_test.c - models in GGUF files: names, rows and configuration as those of the folder they were made from. */
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
#include "native/model/convert.h"
#include "native/model/merge.h"
#include "native/model/source.h"
#include "tests/unit/gguf_writer.h"

static const char *const tokens[] = { "<|im_end|>", "a", "b", "ab" };
static const char *const merges[] = { "a b" };

static void put_llama(struct buffer *b, uint64_t tensors)
{
    put_start(b, tensors, 14);
    put_string(b, "general.architecture", "llama");
    put_u32(b, "llama.block_count", 1);
    put_u32(b, "llama.context_length", 64);
    put_u32(b, "llama.embedding_length", 8);
    put_u32(b, "llama.feed_forward_length", 16);
    put_u32(b, "llama.attention.head_count", 2);
    put_u32(b, "llama.attention.head_count_kv", 1);
    put_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    put_string(b, "tokenizer.ggml.model", "gpt2");
    put_string(b, "tokenizer.ggml.pre", "smollm");
    put_strings(b, "tokenizer.ggml.tokens", tokens, 4);
    put_strings(b, "tokenizer.ggml.merges", merges, 1);
    put_u32(b, "tokenizer.ggml.eos_token_id", 0);
    put_string(b, "tokenizer.chat_template", "{{ messages }}");
}

/* Embedding 4 x 8, q 8 x 8 and k 4 x 8 of f32, whose values are their row numbers. */
static void write_llama(const char *path)
{
    struct buffer b = { 0 };
    static const unsigned rows[] = { 4, 8, 4 };

    put_llama(&b, 3);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "blk.0.attn_q.weight", 8, 8, 0, 128);
    put_tensor(&b, "blk.0.attn_k.weight", 4, 8, 0, 384);
    put_padding(&b);
    for (unsigned t = 0; t < 3; t++)
        for (unsigned r = 0; r < rows[t]; r++)
            for (unsigned c = 0; c < 8; c++) {
                const float value = (float)r;
                uint32_t bits;

                memcpy(&bits, &value, 4);
                buffer_add_u32(&b, bits);
            }
    assert_true(file_write(path, b.bytes, b.size, 0600, NULL));
    buffer_free(&b);
}

static void check_rows(const struct model_source *model, const char *name, const float *rows, unsigned count)
{
    float out[64], again[64];
    const void *bytes;
    void *owned;
    enum tensor_type type;

    assert_true(model_read_tensor(model, name, out, NULL));
    for (unsigned r = 0; r < count; r++)
        for (unsigned c = 0; c < 8; c++)
            assert_true(out[8 * r + c] == rows[r]);
    assert_true(model_read_stored(model, name, &bytes, &owned, &type, NULL));
    convert_to_f32(type, bytes, 8 * count, again);
    assert_memory_equal(out, again, 8 * count * sizeof *out);
    free(owned);
}

static void a_llama_file_reads_as_the_folder_it_was_made_from(void **state)
{
    /* heads of 4 rows: HF's rows 0 1 (first halves) and 2 3 (second halves) lie in the file as 0 2 1 3 */
    static const float embedding[] = { 0, 1, 2, 3 }, q[] = { 0, 2, 1, 3, 4, 6, 5, 7 }, k[] = { 0, 2, 1, 3 };
    char folder[] = "/tmp/rondo_test_XXXXXX", path[64];
    struct error err = { 0 };
    float out[64];
    (void)state;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    write_llama(path);
    struct model_source *model = model_open(path, &err);

    assert_non_null(model);
    assert_int_equal(model_tensor_count(model), 3);
    check_rows(model, "model.embed_tokens.weight", embedding, 4);
    check_rows(model, "model.layers.0.self_attn.q_proj.weight", q, 8);
    check_rows(model, "model.layers.0.self_attn.k_proj.weight", k, 4);
    assert_false(model_read_tensor(model, "model.layers.0.self_attn.q_proj.weigth", out, &err));
    assert_string_equal(err.hint, "did you mean model.layers.0.self_attn.q_proj.weight?");
    const json_t *config = model_config(model);

    assert_int_equal(json_integer_value(json_object_get(config, "vocab_size")), 4);
    assert_int_equal(json_integer_value(json_object_get(config, "head_dim")), 4);
    assert_true(json_is_true(json_object_get(config, "tie_word_embeddings")));
    assert_string_equal(model_chat_template(model), "{{ messages }}");
    assert_string_equal(json_string_value(json_object_get(model_template_variables(model), "eos_token")), "<|im_end|>");
    json_t *report = model_inspect(model, &err);

    assert_non_null(report);
    assert_int_equal(json_integer_value(json_object_get(report, "parameters")), 128);
    assert_int_equal(json_array_size(json_object_get(json_object_get(report, "tokenizer"), "missing_bytes")), 254);
    json_decref(report);
    model_close(model);
    unlink(path);
    rmdir(folder);
}

static void expect_model(struct buffer *b, enum error_code code)
{
    char folder[] = "/tmp/rondo_test_XXXXXX", path[64];
    struct error err = { 0 };

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    put_padding(b);
    for (unsigned i = 0; i < 256; i++)
        buffer_add_u8(b, 0);
    assert_true(file_write(path, b->bytes, b->size, 0600, NULL));
    assert_null(model_open(path, &err));
    assert_int_equal(err.code, code);
    unlink(path);
    rmdir(folder);
    buffer_free(b);
}

/* Norms of gemma stand in the file with 1 added, and no rows are interleaved. */
static void a_gemma_file_has_its_own_names_and_norms(void **state)
{
    static const float norm[] = { 4 }, q[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    char folder[] = "/tmp/rondo_test_XXXXXX", path[64];
    struct buffer b = { 0 };
    struct error err = { 0 };
    (void)state;

    put_start(&b, 3, 9);
    put_string(&b, "general.architecture", "gemma3");
    put_u32(&b, "gemma3.block_count", 1);
    put_u32(&b, "gemma3.context_length", 64);
    put_u32(&b, "gemma3.embedding_length", 8);
    put_u32(&b, "gemma3.feed_forward_length", 16);
    put_u32(&b, "gemma3.attention.head_count", 2);
    put_u32(&b, "gemma3.attention.key_length", 6);
    put_u32(&b, "gemma3.attention.sliding_window", 5);
    put_f32(&b, "gemma3.attention.layer_norm_rms_epsilon", 1e-5f);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "blk.0.ffn_norm.weight", 1, 8, 0, 128);
    put_tensor(&b, "blk.0.attn_q.weight", 8, 8, 0, 160);
    put_padding(&b);
    for (unsigned i = 0; i < 13 * 8; i++) {
        const float value = (float)(i < 32 ? i / 8 : i < 40 ? 5 : i / 8 - 5);
        uint32_t bits;

        memcpy(&bits, &value, 4);
        buffer_add_u32(&b, bits);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    assert_true(file_write(path, b.bytes, b.size, 0600, NULL));
    struct model_source *model = model_open(path, &err);

    assert_non_null(model);
    check_rows(model, "model.layers.0.pre_feedforward_layernorm.weight", norm, 1);
    check_rows(model, "model.layers.0.self_attn.q_proj.weight", q, 8);
    assert_int_equal(json_integer_value(json_object_get(model_config(model), "query_pre_attn_scalar")), 6);
    assert_int_equal(json_integer_value(json_object_get(model_config(model), "sliding_window")), 5);
    model_close(model);
    unlink(path);
    rmdir(folder);
    buffer_free(&b);
}

/* rope_freqs.weight of Llama 3: a number for each pair of a head of 4. */
static void divisors_of_frequencies_go_into_the_configuration(void **state)
{
    static const float numbers[] = { 1, 8 };
    char folder[] = "/tmp/rondo_test_XXXXXX", path[64];
    struct buffer b = { 0 };
    struct error err = { 0 };
    (void)state;

    put_llama(&b, 2);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "rope_freqs.weight", 0, 2, 0, 128);
    put_padding(&b);
    for (unsigned i = 0; i < 32; i++)
        buffer_add_u32(&b, 0);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t bits;

        memcpy(&bits, &numbers[i], 4);
        buffer_add_u32(&b, bits);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    assert_true(file_write(path, b.bytes, b.size, 0600, NULL));
    struct model_source *model = model_open(path, &err);

    assert_non_null(model);
    assert_int_equal(model_tensor_count(model), 1);
    const json_t *scaling = json_object_get(model_config(model), "rope_scaling");

    assert_string_equal(json_string_value(json_object_get(scaling, "rope_type")), "longrope");
    assert_true(json_real_value(json_array_get(json_object_get(scaling, "long_factor"), 1)) == 8);
    model_close(model);
    unlink(path);
    rmdir(folder);
    buffer_free(&b);
    put_llama(&b, 2);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "rope_freqs.weight", 1, 3, 0, 128);
    expect_model(&b, ERROR_SHAPE);
}

/* The sizes that all architectures have, a width of 8 in 2 heads; `values`: how many keys follow. */
static void put_common(struct buffer *b, const char *name, uint64_t tensors, uint64_t values)
{
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = { { "block_count", 1 },
                  { "context_length", 64 },
                  { "embedding_length", 8 },
                  { "feed_forward_length", 16 },
                  { "attention.head_count", 2 } };
    char key[64];

    put_start(b, tensors, 6 + values);
    put_string(b, "general.architecture", name);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(key, sizeof key, "%s.%s", name, sizes[i].key);
        put_u32(b, key, sizes[i].value);
    }
}

/* The file's data are floats 0, 1, 2, ... The model is opened, and the file and its bytes are gone. */
static struct model_source *opened(struct buffer *b, unsigned floats)
{
    char folder[] = "/tmp/rondo_test_XXXXXX", path[64];
    struct error err = { 0 };

    put_padding(b);
    for (unsigned i = 0; i < floats; i++) {
        const float value = (float)i;
        uint32_t bits;

        memcpy(&bits, &value, 4);
        buffer_add_u32(b, bits);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    assert_true(file_write(path, b->bytes, b->size, 0600, NULL));
    struct model_source *model = model_open(path, &err);

    if (!model)
        fail_msg("%s: %s", err.place, err.message);
    unlink(path);
    rmdir(folder);
    buffer_free(b);
    return model;
}

static void matrices_of_gpt2_are_turned(void **state)
{
    struct buffer b = { 0 };
    float out[128];
    const void *bytes;
    void *owned;
    enum tensor_type type;
    (void)state;

    put_common(&b, "gpt2", 4, 1);
    put_f32(&b, "gpt2.attention.layer_norm_epsilon", 1e-5f);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "position_embd.weight", 64, 8, 0, 128);
    put_tensor(&b, "blk.0.ffn_up.weight", 16, 8, 0, 128 + 2048);
    put_tensor(&b, "blk.0.ffn_up.bias", 0, 16, 0, 128 + 2048 + 512);
    struct model_source *model = opened(&b, 32 + 512 + 128 + 16);
    const struct tensor *t = model_find(model, "transformer.h.0.mlp.c_fc.weight");

    assert_true(t && t->dims[0] == 8 && t->dims[1] == 16 && model_find(model, "transformer.wpe.weight"));
    assert_true(model_find(model, "transformer.h.0.mlp.c_fc.bias"));
    assert_true(model_read_tensor(model, t->name, out, NULL));
    for (unsigned i = 0; i < 8; i++)
        for (unsigned o = 0; o < 16; o++)
            assert_true(out[16 * i + o] == (float)(32 + 512 + 8 * o + i));
    assert_true(model_read_stored(model, t->name, &bytes, &owned, &type, NULL));
    assert_true(type == TENSOR_F32 && memcmp(bytes, out, sizeof out) == 0);
    free(owned);
    assert_int_equal(json_integer_value(json_object_get(model_config(model), "n_embd")), 8);
    model_close(model);
}

static void experts_of_one_tensor_are_each_by_itself(void **state)
{
    struct buffer b = { 0 };
    float out[96];
    (void)state;

    put_common(&b, "qwen3moe", 2, 4);
    put_f32(&b, "qwen3moe.attention.layer_norm_rms_epsilon", 1e-5f);
    put_u32(&b, "qwen3moe.expert_count", 3);
    put_u32(&b, "qwen3moe.expert_used_count", 2);
    put_u32(&b, "qwen3moe.expert_feed_forward_length", 4);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_text(&b, "blk.0.ffn_up_exps.weight");
    buffer_add_u32(&b, 3);
    buffer_add_u64(&b, 8);
    buffer_add_u64(&b, 4);
    buffer_add_u64(&b, 3);
    buffer_add_u32(&b, 0);
    buffer_add_u64(&b, 128);
    struct model_source *model = opened(&b, 32 + 96);
    const struct tensor *stack = model_find(model, "model.layers.0.mlp.experts.*.up_proj.weight");

    assert_int_equal(model_tensor_count(model), 4);
    assert_true(stack && stack->rank == 3 && stack->dims[0] == 3 && stack->dims[1] == 4 && stack->dims[2] == 8);
    assert_true(model_read_tensor(model, stack->name, out, NULL));
    for (unsigned i = 0; i < 96; i++)
        assert_true(out[i] == (float)(32 + i));
    assert_true(model_read_tensor(model, "model.layers.0.mlp.experts.2.up_proj.weight", out, NULL) && out[0] == 32 + 64);
    assert_int_equal(json_integer_value(json_object_get(model_config(model), "moe_intermediate_size")), 4);
    assert_true(json_is_true(json_object_get(model_config(model), "norm_topk_prob")));
    model_close(model);
}

static void factors_of_phi3_go_into_the_configuration(void **state)
{
    struct buffer b = { 0 };
    (void)state;

    put_common(&b, "phi3", 4, 4);
    put_f32(&b, "phi3.attention.layer_norm_rms_epsilon", 1e-5f);
    put_u32(&b, "phi3.rope.dimension_count", 2);
    put_u32(&b, "phi3.rope.scaling.original_context_length", 16);
    put_f32(&b, "phi3.rope.scaling.attn_factor", 1.25f);
    put_tensor(&b, "rope_factors_long.weight", 0, 1, 0, 64);
    put_tensor(&b, "rope_factors_short.weight", 0, 1, 0, 32);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 96);
    put_tensor(&b, "blk.0.ffn_up.weight", 32, 8, 0, 224);
    struct model_source *model = opened(&b, 56 + 256);
    const json_t *config = model_config(model), *scaling = json_object_get(config, "rope_scaling");

    assert_int_equal(model_tensor_count(model), 2);
    assert_non_null(model_find(model, "model.layers.0.mlp.gate_up_proj.weight"));
    assert_true(json_real_value(json_object_get(config, "partial_rotary_factor")) == 0.5);
    assert_string_equal(json_string_value(json_object_get(scaling, "rope_type")), "longrope");
    assert_true(json_real_value(json_object_get(scaling, "attention_factor")) == 1.25);
    assert_true(json_real_value(json_array_get(json_object_get(scaling, "long_factor"), 0)) == 16);
    assert_true(json_real_value(json_array_get(json_object_get(scaling, "short_factor"), 0)) == 8);
    assert_int_equal(json_integer_value(json_object_get(scaling, "original_max_position_embeddings")), 16);
    model_close(model);
}

static void files_that_are_no_llama_are_refused(void **state)
{
    struct buffer b = { 0 };
    (void)state;

    put_start(&b, 0, 1);
    put_string(&b, "general.architecture", "mamba");
    expect_model(&b, ERROR_UNSUPPORTED);
    put_llama(&b, 0);
    expect_model(&b, ERROR_MISSING);
    put_llama(&b, 2);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "blk.0.ffn_gate_exps.weight", 1, 1, 0, 128);
    expect_model(&b, ERROR_UNSUPPORTED);
    put_llama(&b, 2);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "blk.1.attn_v.weight", 1, 1, 0, 128);
    expect_model(&b, ERROR_RANGE);
    put_llama(&b, 2);
    put_tensor(&b, "token_embd.weight", 4, 8, 0, 0);
    put_tensor(&b, "blk.0.attn_q.weight", 6, 1, 0, 128);
    expect_model(&b, ERROR_SHAPE);
}

static void the_pocket_folder_opens_with_tokenizer_and_template(void **state)
{
    struct error err = { 0 };
    struct model_source *model = model_open(RONDO_SOURCE "/models/pocket", &err);
    (void)state;

    assert_non_null(model);
    struct tokenizer *tokenizer = model_tokenizer(model, &err);

    assert_non_null(tokenizer);
    assert_int_equal(tokenizer_size(tokenizer), json_integer_value(json_object_get(model_config(model), "vocab_size")));
    assert_string_equal(json_string_value(json_object_get(model_template_variables(model), "bos_token")), "<|im_start|>");
    assert_non_null(model_chat_template(model));
    tokenizer_free(tokenizer);
    model_close(model);
    assert_null(model_open(RONDO_SOURCE "/models/absent", &err));
    assert_int_equal(err.code, ERROR_MISSING);
}

/* An adapter of rank 1 whose product is its row number in every column, of the module `module`. */
static void write_adapter(const char *folder, const char *module)
{
    float a[8], b[8];
    char names[2][80];
    struct tensor t[2] = {
        { .name = names[0], .type = TENSOR_F32, .rank = 2, .dims = { 1, 8 }, .data = a, .size = sizeof a },
        { .name = names[1], .type = TENSOR_F32, .rank = 2, .dims = { 8, 1 }, .data = b, .size = sizeof b },
    };

    for (int i = 0; i < 8; i++) {
        a[i] = 1;
        b[i] = (float)i;
    }
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "%s.lora_%c", module, 'A' + i);
    assert_true(adapter_write(folder, &(struct adapter){ .kind = { .rank = 1, .alpha = 2 }, .tensors = t, .count = 2 }, NULL));
}

/* Alone, B's rows lie as those of the weight: HF's rows 0 1 2 3 of a head as 0 2 1 3. */
static void check_adapter_file(const char *base, const char *adapter, const char *out)
{
    static const float rows[] = { 0, 2, 1, 3, 4, 6, 5, 7 };
    struct text_slice text;
    struct gguf file;
    double alpha;

    assert_true(merge_write_adapter(base, adapter, out, NULL));
    assert_true(gguf_open(&file, out, NULL));
    assert_true(gguf_text(&file, "general.type", &text) && text.size == 7 && memcmp(text.bytes, "adapter", 7) == 0);
    assert_true(gguf_real(&file, "adapter.lora.alpha", &alpha) && alpha == 2);
    assert_int_equal(file.tensor_count, 2);
    const struct tensor *a = gguf_tensor(&file, "blk.0.attn_q.weight.lora_a"),
                        *b = gguf_tensor(&file, "blk.0.attn_q.weight.lora_b");

    assert_true(a && b && a->dims[0] == 1 && a->dims[1] == 8 && b->dims[0] == 8 && b->dims[1] == 1);
    assert_memory_equal(b->data, rows, sizeof rows);
    gguf_close(&file);
}

static void an_adapter_is_merged_into_the_rows_that_it_belongs_to(void **state)
{
    static const float embedding[] = { 0, 1, 2, 3 }, q[] = { 0, 4, 5, 9, 12, 16, 17, 21 };
    char folder[] = "/tmp/rondo_test_XXXXXX", base[64], adapter[64], out[64], command[64];
    struct error err = { 0 };
    (void)state;

    assert_non_null(mkdtemp(folder));
    snprintf(base, sizeof base, "%s/m.gguf", folder);
    snprintf(adapter, sizeof adapter, "%s/adapter", folder);
    snprintf(out, sizeof out, "%s/merged.gguf", folder);
    write_llama(base);
    write_adapter(adapter, "model.layers.0.self_attn.q_proj");
    assert_true(merge_write(base, adapter, out, TENSOR_Q4_0, &err));
    struct model_source *model = model_open(out, &err);

    assert_non_null(model);
    assert_int_equal(model_find(model, "model.layers.0.self_attn.q_proj.weight")->type, TENSOR_F16); /* rows of 8 make no block */
    check_rows(model, "model.embed_tokens.weight", embedding, 4);
    check_rows(model, "model.layers.0.self_attn.q_proj.weight", q, 8);
    assert_string_equal(model_chat_template(model), "{{ messages }}");
    model_close(model);
    check_adapter_file(base, adapter, out);
    assert_false(merge_write(base, adapter, out, TENSOR_BF16, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_false(merge_write(base, adapter, folder, TENSOR_F16, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    write_adapter(adapter, "model.layers.0.self_attn.k_proj");
    assert_false(merge_write(base, adapter, out, TENSOR_F16, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    write_adapter(adapter, "model.layers.7.mlp.up_proj");
    assert_false(merge_write(base, adapter, out, TENSOR_F16, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_llama_file_reads_as_the_folder_it_was_made_from),
        cmocka_unit_test(a_gemma_file_has_its_own_names_and_norms),
        cmocka_unit_test(divisors_of_frequencies_go_into_the_configuration),
        cmocka_unit_test(matrices_of_gpt2_are_turned),
        cmocka_unit_test(experts_of_one_tensor_are_each_by_itself),
        cmocka_unit_test(factors_of_phi3_go_into_the_configuration),
        cmocka_unit_test(files_that_are_no_llama_are_refused),
        cmocka_unit_test(the_pocket_folder_opens_with_tokenizer_and_template),
        cmocka_unit_test(an_adapter_is_merged_into_the_rows_that_it_belongs_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
