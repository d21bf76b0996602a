#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native/model/source.h"
#include "native/text/template.h"
#include "native/text/tokenizer.h"

/* The form in which tools/pocket/task.lua writes a row. */
static const char row[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Find Zu\"}, {\"role\": \"assistant\", \"tool_calls\": [{\"type\": "
    "\"function\", \"function\": {\"name\": \"find_person\", \"arguments\": \"{\\\"name\\\": \\\"Zu\\\"}\"}}]}, {\"role\": "
    "\"tool\", \"content\": \"{\\\"answer\\\": 36}\"}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": "
    "\"set_timer\", \"description\": \"Set a timer\", \"parameters\": {\"type\": \"object\", \"properties\": {\"minutes\": "
    "{\"type\": \"number\"}}, \"required\": [\"minutes\"]}}}, {\"type\": \"function\", \"function\": {\"name\": "
    "\"find_person\", \"description\": \"Find a person by name\", \"parameters\": {\"type\": \"object\", \"properties\": "
    "{\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}}}], \"add_generation_prompt\": true}";

/* What pre-training taught the model to read: tools listed flat, the call in the words of the corpus. */
static const char rendered[] =
    "<|im_start|>system\nTools: [{\"name\": \"set_timer\", \"description\": \"Set a timer\", \"parameters\": {\"minutes\": "
    "\"number\"}}, {\"name\": \"find_person\", \"description\": \"Find a person by name\", \"parameters\": {\"name\": "
    "\"string\"}}]<|im_end|>\n<|im_start|>user\nFind Zu<|im_end|>\n<|im_start|>assistant\n<tool_call>{\"name\": "
    "\"find_person\", \"arguments\": {\"name\": \"Zu\"}}</tool_call><|im_end|>\n<|im_start|>tool\n{\"answer\": 36}<|im_end|>\n"
    "<|im_start|>assistant\n";

/* Of Hugging Face's tokenizers 0.23.3 for that text and the shipped tokenizer.json. */
static const uint32_t ids[] = { 1,   332, 201, 396, 395, 305, 263, 638, 65,  655, 267, 312, 263, 53,  405, 223, 67,
                                223, 655, 267, 308, 322, 456, 263, 319, 341, 305, 263, 863, 65,  432, 267, 312, 263,
                                40,  533, 223, 67,  223, 432, 223, 877, 223, 305, 267, 308, 322, 305, 263, 287, 394,
                                2,   201, 1,   272, 201, 40,  533, 223, 60,  87,  2,   201, 1,   278, 201, 30,  86,
                                361, 65,  856, 32,  271, 305, 263, 863, 65,  432, 267, 276, 73,  87,  273, 316, 85,
                                322, 305, 263, 60,  87,  323, 338, 86,  361, 65,  856, 32,  2,   201, 1,   86,  361,
                                201, 271, 264, 85,  646, 385, 21,  24,  95,  2,   201, 1,   278, 201 };

static void the_template_prints_what_the_model_was_pretrained_on(void **state)
{
    struct model_source *model = model_open(RONDO_SOURCE "/models/pocket", NULL);
    const char *source = model_chat_template(model);
    struct template *template = template_new(source, strlen(source), NULL);
    struct template_options options = { .date = { 2026, 1, 1 } };
    struct template_output output = { 0 };
    struct error err = { 0 };
    json_t *context = json_loads(row, 0, NULL);
    (void)state;

    assert_non_null(template);
    assert_true(template_render(template, context, &options, &output, &err));
    assert_string_equal(buffer_text(&output.text), rendered);
    template_output_free(&output);
    template_free(template);
    json_decref(context);
    model_close(model);
}

static void the_tokenizer_agrees_with_hugging_face(void **state)
{
    struct model_source *model = model_open(RONDO_SOURCE "/models/pocket", NULL);
    struct tokenizer *tokenizer = model_tokenizer(model, NULL);
    struct tokens tokens = { 0 };
    struct buffer text = { 0 };
    (void)state;

    assert_true(tokenizer_encode(tokenizer, rendered, strlen(rendered), true, &tokens, NULL));
    assert_int_equal(tokens.count, sizeof ids / sizeof *ids);
    assert_memory_equal(tokens.ids, ids, sizeof ids);
    assert_true(tokenizer_decode(tokenizer, tokens.ids, tokens.count, true, &text, NULL));
    assert_string_equal(buffer_text(&text), rendered);
    buffer_free(&text);
    tokens_free(&tokens);
    tokenizer_free(tokenizer);
    model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_template_prints_what_the_model_was_pretrained_on),
        cmocka_unit_test(the_tokenizer_agrees_with_hugging_face),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
