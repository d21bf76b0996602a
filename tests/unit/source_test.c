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
#include "native/model/match.h"
#include "native/model/safetensors.h"
#include "native/model/source.h"

/* A folder for one test; everything in it goes at the end. */
struct folder {
    char path[64];
};

static int set_up(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);

    strcpy(folder->path, "/tmp/rondo_test_XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {
        "config.json",   "tokenizer_config.json", "chat_template.jinja",          "model.safetensors",
        "a.safetensors", "b.safetensors",         "model.safetensors.index.json", "generation_config.json"
    };
    struct folder *folder = *state;
    char path[128];

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
        unlink(path);
    }
    rmdir(folder->path);
    free(folder);
    return 0;
}

static void put_text(const struct folder *folder, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    assert_true(file_write(path, text, strlen(text), 0600, NULL));
}

/* A part with one tensor of two equal values. */
static void put_part(const struct folder *folder, const char *file, const char *name, float value)
{
    char path[128];
    const uint64_t dims[] = { 2 };
    struct tensor t;

    snprintf(path, sizeof path, "%s/%s", folder->path, file);
    assert_true(tensor_new(&t, name, TENSOR_F32, 1, dims, SIZE_MAX, NULL));
    ((float *)t.data)[0] = ((float *)t.data)[1] = value;
    assert_true(safetensors_write(path, &t, 1, NULL, NULL));
    tensor_free(&t);
}

static void expect_refusal(const struct folder *folder, enum error_code code)
{
    struct error err = { 0 };

    assert_null(model_open(folder->path, &err));
    assert_int_equal(err.code, code);
}

static void a_folder_without_weights_opens_with_its_configuration(void **state)
{
    const struct folder *folder = *state;
    struct error err = { 0 };

    expect_refusal(folder, ERROR_MISSING);
    put_text(folder, "config.json", "[]");
    expect_refusal(folder, ERROR_TYPE);
    put_text(folder, "config.json", "{\"vocab_size\": 7}");
    struct model_source *model = model_open(folder->path, NULL);

    assert_non_null(model);
    assert_int_equal(model_tensor_count(model), 0);
    assert_int_equal(json_integer_value(json_object_get(model_config(model), "vocab_size")), 7);
    assert_null(model_find(model, "w"));
    assert_null(model_chat_template(model));
    assert_null(model_tokenizer(model, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    json_t *report = model_inspect(model, NULL); /* a tokenizer that is absent is no fault of the report */

    assert_true(json_is_null(json_object_get(report, "tokenizer")));
    json_decref(report);
    model_close(model);
}

static void parts_are_read_as_one_model(void **state)
{
    const struct folder *folder = *state;
    float values[2];

    put_text(folder, "config.json", "{}");
    put_text(folder, "model.safetensors.index.json",
             "{\"weight_map\": {\"z\": \"a.safetensors\", \"m\": \"b.safetensors\", \"other\": \"a.safetensors\"}}");
    expect_refusal(folder, ERROR_MISSING);
    put_part(folder, "a.safetensors", "z", 1);
    put_part(folder, "b.safetensors", "m", 2);
    struct model_source *model = model_open(folder->path, NULL);

    assert_non_null(model);
    assert_int_equal(model_tensor_count(model), 2);
    assert_string_equal(model_tensor(model, 0)->name, "m");
    assert_true(model_read_tensor(model, "z", values, NULL) && values[1] == 1);
    assert_true(model_read_tensor(model, "m", values, NULL) && values[0] == 2);
    model_close(model);
    put_part(folder, "b.safetensors", "z", 2);
    expect_refusal(folder, ERROR_DUPLICATE);
}

static void experts_are_read_as_one_tensor_and_matched_with_the_model(void **state)
{
    const struct folder *folder = *state;
    json_t *good =
        json_loads("[{\"name\": \"a.experts.*.b\", \"axes\": \"expert=2 out=2\"}, {\"name\": \"w.lora_A.weight\", \"axes\": "
                   "\"rank=1\", \"role\": \"lora_a\"}]",
                   0, NULL);
    json_t *none = json_array();
    struct error err = { 0 };
    float values[4];

    put_text(folder, "config.json", "{}");
    put_text(folder, "model.safetensors.index.json",
             "{\"weight_map\": {\"a.experts.0.b\": \"a.safetensors\", \"a.experts.1.b\": \"b.safetensors\"}}");
    put_part(folder, "a.safetensors", "a.experts.0.b", 1);
    put_part(folder, "b.safetensors", "a.experts.1.b", 2);
    struct model_source *model = model_open(folder->path, NULL);

    assert_true(model_read_tensor(model, "a.experts.*.b", values, NULL));
    assert_true(values[0] == 1 && values[1] == 1 && values[2] == 2 && values[3] == 2);
    assert_int_equal(tensor_values(model_find(model, "a.experts.*.b")), 4);
    assert_true(model_match(model, good, NULL));
    assert_false(model_match(model, none, &err));
    assert_int_equal(err.code, ERROR_UNKNOWN);
    json_object_set_new(json_array_get(good, 0), "axes", json_string("expert=2 out=3"));
    err = (struct error){ 0 };
    assert_false(model_match(model, good, &err));
    assert_int_equal(err.code, ERROR_SHAPE);
    json_object_set_new(json_array_get(good, 0), "name", json_string("a.experts.*.c"));
    err = (struct error){ 0 };
    assert_false(model_match(model, good, &err));
    assert_int_equal(err.code, ERROR_MISSING);
    json_decref(good);
    json_decref(none);
    model_close(model);
}

/* Two parts, and what their tensors are called once read: NULL where the tensor is left out. */
static void expect_names(const struct folder *folder, const char *a, const char *read_a, const char *b, const char *read_b)
{
    char index[400];
    struct error err = { 0 };

    put_part(folder, "a.safetensors", a, 1);
    put_part(folder, "b.safetensors", b, 2);
    snprintf(index, sizeof index, "{\"weight_map\": {\"%s\": \"a.safetensors\", \"%s\": \"b.safetensors\"}}", a, b);
    put_text(folder, "model.safetensors.index.json", index);
    struct model_source *model = model_open(folder->path, &err);

    assert_non_null(model);
    assert_int_equal(model_tensor_count(model), (read_a != NULL) + (read_b != NULL));
    assert_true(!read_a || model_find(model, read_a));
    assert_true(!read_b || model_find(model, read_b));
    model_close(model);
}

static void names_are_those_of_the_language_model(void **state)
{
    const struct folder *folder = *state;

    put_text(folder, "config.json", "{\"architectures\": [\"GPT2LMHeadModel\"]}");
    expect_names(folder, "h.0.ln_1.weight", "transformer.h.0.ln_1.weight", "h.0.attn.bias", NULL);
    expect_names(folder, "transformer.wte.weight", "transformer.wte.weight", "h.0.attn.c_attn.bias",
                 "transformer.h.0.attn.c_attn.bias");
    put_text(folder, "config.json",
             "{\"architectures\": [\"LlavaForConditionalGeneration\"], \"text_config\": {\"model_type\": \"llama\"}}");
    expect_names(folder, "language_model.model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight",
                 "vision_tower.vision_model.embeddings.class_embedding", NULL);
    expect_names(folder, "language_model.lm_head.weight", "lm_head.weight", "model.layers.3.self_attn.rotary_emb.inv_freq", NULL);
    expect_names(folder, "model.language_model.norm.weight", "model.norm.weight", "model.multi_modal_projector.linear_1.weight",
                 NULL);
    put_text(folder, "config.json", "{\"text_config\": {\"model_type\": \"llama\"}}");
    expect_names(folder, "model.norm.weight", "model.norm.weight", "visual.patch_embed.proj.weight", NULL);
}

static void the_language_part_of_a_configuration_has_its_defaults(void **state)
{
    const struct folder *folder = *state;

    put_text(folder, "config.json",
             "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"eos_token_id\": [1, 106], \"vision_config\": {}, "
             "\"text_config\": {\"hidden_size\": 2560, \"model_type\": \"gemma3_text\"}}");
    put_text(folder, "generation_config.json", "{\"eos_token_id\": [106, 7], \"temperature\": 0.5}");
    struct model_source *model = model_open(folder->path, NULL);
    const json_t *config = model_config(model);
    json_t *ends = json_pack("[i, i, i]", 1, 106, 7);

    assert_int_equal(json_integer_value(json_object_get(config, "hidden_size")), 2560);
    assert_int_equal(json_integer_value(json_object_get(config, "head_dim")), 256);
    assert_string_equal(json_string_value(json_array_get(json_object_get(config, "architectures"), 0)), "Gemma3ForCausalLM");
    assert_null(json_object_get(config, "vision_config"));
    assert_true(json_equal(json_object_get(config, "eos_token_id"), ends));
    assert_true(json_number_value(json_object_get(model_generation(model), "temperature")) == 0.5);
    json_decref(ends);
    model_close(model);
    put_text(folder, "config.json", "{\"text_config\": {\"model_type\": \"mamba\"}}");
    expect_refusal(folder, ERROR_UNSUPPORTED);
}

static void a_missing_head_is_the_embedding(void **state)
{
    const struct folder *folder = *state;
    struct model_source *model;

    put_text(folder, "config.json", "{\"tie_word_embeddings\": false}");
    put_part(folder, "model.safetensors", "model.embed_tokens.weight", 1);
    model = model_open(folder->path, NULL);
    assert_true(model_head_missing(model) && json_is_true(json_object_get(model_config(model), "tie_word_embeddings")));
    model_close(model);
    put_text(folder, "config.json", "{}");
    model = model_open(folder->path, NULL);
    assert_true(!model_head_missing(model) && json_is_true(json_object_get(model_config(model), "tie_word_embeddings")));
    model_close(model);
    put_part(folder, "model.safetensors", "lm_head.weight", 1);
    model = model_open(folder->path, NULL);
    assert_null(json_object_get(model_config(model), "tie_word_embeddings"));
    model_close(model);
}

static void an_index_names_files_of_its_own_folder_only(void **state)
{
    static const char *const names[] = { "../a.safetensors", "/etc/passwd", ".hidden" };
    const struct folder *folder = *state;
    char text[200];

    put_text(folder, "config.json", "{}");
    for (unsigned i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "{\"weight_map\": {\"z\": \"%s\"}}", names[i]);
        put_text(folder, "model.safetensors.index.json", text);
        expect_refusal(folder, ERROR_REFUSED);
    }
    put_text(folder, "model.safetensors.index.json", "{\"weight_map\": {\"z\": 3}}");
    expect_refusal(folder, ERROR_TYPE);
    put_text(folder, "model.safetensors.index.json", "{}");
    expect_refusal(folder, ERROR_TYPE);
}

static void weights_that_are_not_finite_are_not_read(void **state)
{
    const struct folder *folder = *state;
    struct error err = { 0 };
    float values[2];

    put_text(folder, "config.json", "{}");
    put_part(folder, "model.safetensors", "w", __builtin_inff());
    struct model_source *model = model_open(folder->path, NULL);

    assert_false(model_read_tensor(model, "w", values, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);

    const void *bytes;
    void *owned;
    enum tensor_type type;

    err = (struct error){ 0 };
    assert_false(model_read_stored(model, "w", &bytes, &owned, &type, &err));
    assert_int_equal(err.code, ERROR_NON_FINITE);
    assert_null(owned);
    model_close(model);
}

static void expect_template(const struct folder *folder, const char *text)
{
    struct model_source *model = model_open(folder->path, NULL);

    assert_non_null(model);
    if (text)
        assert_string_equal(model_chat_template(model), text);
    else
        assert_null(model_chat_template(model));
    model_close(model);
}

static void a_template_file_goes_before_one_in_the_configuration(void **state)
{
    const struct folder *folder = *state;

    put_text(folder, "config.json", "{}");
    put_text(folder, "tokenizer_config.json", "{\"chat_template\": \"one\"}");
    expect_template(folder, "one");
    put_text(folder, "tokenizer_config.json",
             "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"two\"},"
             " {\"name\": \"default\", \"template\": \"three\"}]}");
    expect_template(folder, "three");
    put_text(folder, "tokenizer_config.json", "{\"chat_template\": [3, {}]}");
    expect_template(folder, NULL);
    put_text(folder, "chat_template.jinja", "four");
    expect_template(folder, "four");
}

static void tokens_of_the_configuration_are_variables_of_templates(void **state)
{
    const struct folder *folder = *state;

    put_text(folder, "config.json", "{}");
    put_text(folder, "tokenizer_config.json",
             "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}, \"pad_token\": null, \"unk_token\": {}}");
    struct model_source *model = model_open(folder->path, NULL);
    const json_t *variables = model_template_variables(model);

    assert_int_equal(json_object_size(variables), 2);
    assert_string_equal(json_string_value(json_object_get(variables, "bos_token")), "<s>");
    assert_string_equal(json_string_value(json_object_get(variables, "eos_token")), "</s>");
    model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_without_weights_opens_with_its_configuration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_are_read_as_one_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_index_names_files_of_its_own_folder_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(experts_are_read_as_one_tensor_and_matched_with_the_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_those_of_the_language_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_language_part_of_a_configuration_has_its_defaults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_head_is_the_embedding, set_up, tear_down),
        cmocka_unit_test_setup_teardown(weights_that_are_not_finite_are_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_template_file_goes_before_one_in_the_configuration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tokens_of_the_configuration_are_variables_of_templates, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
