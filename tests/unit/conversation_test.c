/* conversation_test.c - rows of conversations, texts and weighted parts as training examples, and rows that are none. */
#include <unistd.h>

#include "native/base/json.h"
#include "tests/unit/conversation_world.h"

static void the_pocket_template_prints_the_corpus_notation(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, POCKET,
               "{\"messages\":[{\"role\":\"user\",\"content\":\"Rent it\"}," CALL
               ",{\"role\":\"tool\",\"content\":\"{\\\"result\\\": 94}\"},{\"role\":\"assistant\",\"content\":\"The result is "
               "94.\"}],\"tools\":[" WEATHER "," RENT "]}\n");
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 2);
    assert_string_equal(
        w.examples.items[1].text,
        "<|im_start|>system\nTools: [{\"name\": \"get_weather\", \"description\": \"Get the weather\", \"parameters\": "
        "{\"city\": "
        "\"string\", \"day\": \"string\"}}, {\"name\": \"rent_gpu\", \"description\": \"Rent a GPU\", \"parameters\": "
        "{\"model\": "
        "\"string\", \"hours\": \"number\"}}]<|im_end|>\n<|im_start|>user\nRent it<|im_end|>\n<|im_start|>assistant\n"
        "<tool_call>{\"name\": \"rent_gpu\", \"arguments\": {\"model\": \"EA\", \"hours\":  1}}</tool_call><|im_end|>\n"
        "<|im_start|>tool\n{\"result\": 94}<|im_end|>\n<|im_start|>assistant\nThe result is 94.<|im_end|>");
    assert_trained(
        &w, &w.examples.items[0],
        "<tool_call>{\"name\": \"rent_gpu\", \"arguments\": {\"model\": \"EA\", \"hours\":  1}}</tool_call><|im_end|>");
    assert_trained(&w, &w.examples.items[1], "The result is 94.<|im_end|>");
    assert_int_equal(w.counts.rows, 1);
    assert_int_equal(w.counts.examples, 2);
    close_world(&w);
}

/* The example line: tools without description or parameters, a system message. */
static void the_example_line_becomes_two_examples(void **state)
{
    static const char line[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\"You are a procurement agent.\"},{\"role\":\"user\",\"content\":\"Rent "
        "one GPU for two hours at the index "
        "price.\"},{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"function\",\"function\":{"
        "\"name\":\"get_price_index\",\"arguments\":\"{\\\"class\\\": "
        "\\\"workstation\\\"}\"}}]},{\"role\":\"tool\",\"content\":\"{"
        "\\\"price\\\": \\\"...\\\"}\"},{\"role\":\"assistant\",\"content\":\"Booked at the index "
        "price.\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get_price_index\"}}]}";
    static const char *const templates[] = { POCKET, TOOLS };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;

        open_world(&w, templates[i], line);
        assert_true(read_all(&w));
        assert_int_equal(w.examples.count, 2);
        assert_int_equal(w.examples.items[0].turn, 2);
        assert_trained(
            &w, &w.examples.items[0],
            "<tool_call>{\"name\": \"get_price_index\", \"arguments\": {\"class\": \"workstation\"}}</tool_call><|im_end|>");
        assert_trained(&w, &w.examples.items[1], "Booked at the index price.<|im_end|>");
        assert_memory_equal(w.examples.items[0].text, "<|im_start|>system\nYou are a procurement agent.\n", 48);
        close_world(&w);
    }
}

/* Ids are those of the whole text, and the prompt is where the trained part begins. */
static void ids_are_those_of_the_whole_text(void **state)
{
    struct world w;
    struct tokens whole = { 0 }, prompt = { 0 };

    (void)state;
    open_world(&w, POCKET, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"yo\"}]}");
    assert_true(read_all(&w));

    const struct example *e = &w.examples.items[0];
    json_t *start = json_pack("{s:[{s:s,s:s}]}", "messages", "role", "user", "content", "hi");

    assert_true(tokenizer_encode(w.tokenizer, e->text, e->size, true, &whole, &w.err));
    assert_int_equal(whole.count, e->count);
    assert_memory_equal(whole.ids, e->ids, e->count * 4);
    assert_true(conversation_prompt(&w.format, start, &prompt, &w.err));
    for (size_t i = 0; i < e->count; i++)
        assert_true((e->weights[i] > 0) == (i >= prompt.count));
    json_decref(start);
    tokens_free(&whole);
    tokens_free(&prompt);
    close_world(&w);
}

static void drops(const char *template, const char *data, size_t context, enum conversation_drop reason, const char *detail)
{
    struct world w;

    open_world(&w, template, data);
    w.format.context = context;
    assert_true(read_all(&w));
    if (w.counts.dropped[reason] != 1)
        fail_msg("%s: not dropped as %s", data, conversation_drop_name(reason));
    assert_int_equal(w.examples.count, 0);
    assert_int_equal(w.counts.first[reason].line, 1);
    if (!strstr(w.counts.first[reason].detail, detail))
        fail_msg("\"%s\" is not in \"%s\"", detail, w.counts.first[reason].detail);
    close_world(&w);
}

static void sound_rows_that_cannot_be_examples_are_counted_with_their_reason(void **state)
{
    (void)state;
    drops(PLAIN, HI ",\"tools\":[" RENT "]}", 99, CONVERSATION_TOOLS_NOT_PRINTED, "messages[1]");
    drops(PLAIN, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}," CALL "]}", 99, CONVERSATION_CALLS_NOT_PRINTED,
          "messages[1]");
    drops("{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}<|im_end|>{% endfor %}",
          "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}," CALL "]}", 99, CONVERSATION_CALLS_NOT_PRINTED, "messages[1]");
    drops(PLAIN, HI "}", 5, CONVERSATION_TOO_LONG, "context 5");
    drops(PLAIN, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", 99, CONVERSATION_NOTHING_TRAINED,
          "no assistant turn");
    drops("{{ messages[0].content }}", HI "}", 99, CONVERSATION_NOTHING_TRAINED, "");
    drops("{% if messages|length > 1 %}{{ raise_exception('odd roles') }}{% endif %}", HI "}", 99, CONVERSATION_TEMPLATE_RAISED,
          "odd roles");
    drops("{% for m in messages %}{{ m.content }};{% endfor %}", HI "}", 99, CONVERSATION_NO_END, "messages[1]");
    drops("{{ messages|length }}{% for i in range(messages|length) %}{{ messages[i].content }}<|im_end|>{% endfor %}", HI "}", 99,
          CONVERSATION_NO_TURN, "messages[1]");
}

static void faults(const char *data, const char *want)
{
    struct world w;
    char text[900];

    open_world(&w, POCKET, data);
    assert_false(read_all(&w));
    error_text(&w.err, text, sizeof text);
    if (strncmp(text, want, strlen(want)))
        fail_msg("\"%s\" does not begin with \"%s\"", text, want);
    close_world(&w);
}

static void faults_name_file_line_and_field(void **state)
{
    (void)state;
    faults("\n\n{\"messages\":[" USER ",{\"content\":\"b\"}]}", "data.jsonl:3: messages[1].role: missing");
    faults("{\"text\":\"ok\"}\n{\"messages\":[}", "data.jsonl:2: column ");
    faults("[1]", "data.jsonl:1: not an object");
    faults("{}", "data.jsonl:1: messages: missing");
    faults("{\"messages\":[]}", "data.jsonl:1: messages: not a list, or empty");
    faults("{\"messages\":[{\"role\":\"robot\",\"content\":\"\"}]}", "data.jsonl:1: messages[0].role: unknown role \"robot\"");
    faults("{\"messages\":[{\"role\":7}]}", "data.jsonl:1: messages[0].role: not a text");
    faults("{\"messages\":[{\"role\":\"user\"}]}", "data.jsonl:1: messages[0].content: missing");
    faults("{\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\"}]}",
           "data.jsonl:1: messages[0].role: the conversation starts with the assistant");
    faults("{\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"system\",\"content\":\"b\"}]}",
           "data.jsonl:1: messages[1].role: a second system turn");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"b\",\"weight\":2}]}",
           "data.jsonl:1: messages[1].weight: not a number from 0 to 1");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":[]}]}",
           "data.jsonl:1: messages[1].reasoning_content: not a text");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\"}]}", "data.jsonl:1: messages[1].content: missing");
    faults("{\"messages\":[{\"role\":\"user\",\"content\":[]}]}", "data.jsonl:1: messages[0].content: a list of parts");
    faults("{\"messages\":[" USER ",{\"role\":\"tool\",\"content\":\"x\"}]}",
           "data.jsonl:1: messages[1]: a result without a call");
    faults("{\"messages\":[" USER "," CALL ",{\"role\":\"tool\",\"content\":\"x\"},{\"role\":\"tool\",\"content\":\"y\"}]}",
           "data.jsonl:1: messages[3]: a result without a call");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}]}",
           "data.jsonl:1: messages[1].tool_calls[0].function.name: missing");
    faults("{\"messages\":[" USER
           ",{\"role\":\"assistant\",\"content\":\"b\"}],\"tools\":[{\"function\":{\"name\":\"\\u0000f\"}}]}",
           "data.jsonl:1: tools[0].function.name: not a text, empty, or with a zero byte");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}]}",
           "data.jsonl:1: messages[1].tool_calls[0].function.arguments: missing");
    faults("{\"messages\":[" USER
           ",{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"[1]\"}}]}]}",
           "data.jsonl:1: messages[1].tool_calls[0].function.arguments: not a JSON object");
    faults("{\"messages\":[" USER
           ",{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}]}",
           "data.jsonl:1: messages[1].tool_calls[0].function.arguments: not JSON: ");
    faults("{\"messages\":[" USER ",{\"role\":\"assistant\",\"tool_calls\":[{}]}]}",
           "data.jsonl:1: messages[1].tool_calls[0].function: missing");
    faults("{\"messages\":[" USER "],\"tools\":[{\"type\":\"retrieval\"}]}", "data.jsonl:1: tools[0].type: only \"function\"");
    faults("{\"messages\":[" USER "],\"tools\":{}}", "data.jsonl:1: tools: not a list");
    faults("{\"messages\":[" USER "],\"messages\":[]}", "data.jsonl:1: column ");
    faults("{\"text\":\"\xff\"}", "data.jsonl:1: column ");
    faults("{\"text\":1}", "data.jsonl:1: text: not a text");
    faults("{\"text\":\"a\",\"parts\":[]}", "data.jsonl:1: more than one of");
    faults("{\"parts\":[[\"a\",1],[\"b\",2]]}", "data.jsonl:1: parts[1]: a weight outside 0 to 1");
    faults("{\"parts\":[[\"a\"]]}", "data.jsonl:1: parts[0]: not a text and a weight");
}

#define TWO                                                                                                                      \
    "{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"one\"}," USER                                                 \
    ",{\"role\":\"assistant\",\"content\":\"two\",\"weight\":0.5}," USER                                                         \
    ",{\"role\":\"assistant\",\"content\":\"three\",\"weight\":0}]}"

static void a_message_may_have_a_weight(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, PLAIN, TWO);
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 2);
    assert_true(w.examples.items[0].weights[w.examples.items[0].count - 1] == 1);
    assert_true(w.examples.items[1].weights[w.examples.items[1].count - 1] == 0.5f);
    assert_trained(&w, &w.examples.items[1], "two<|im_end|>");
    close_world(&w);
}

/* The same positions with the same weights, after the same tokens: so every term of the loss is in both forms once. */
static void an_example_that_begins_the_next_goes_into_it(void **state)
{
    struct world turns, one;

    (void)state;
    open_world(&turns, PLAIN, TWO);
    assert_true(read_all(&turns));
    open_world(&one, PLAIN, TWO);
    one.format.coalesce = true;
    assert_true(read_all(&one));
    assert_int_equal(one.examples.count, 1);
    assert_int_equal(one.counts.turns, 2);
    assert_int_equal(one.counts.trained, turns.counts.trained);
    assert_trained(&one, &one.examples.items[0], "one<|im_end|>two<|im_end|>");

    const struct example *e = &one.examples.items[0];

    for (size_t i = 0; i < e->count; i++) {
        float sum = 0;

        for (size_t k = 0; k < turns.examples.count; k++)
            if (i < turns.examples.items[k].count) {
                assert_int_equal(turns.examples.items[k].ids[i], e->ids[i]);
                sum += turns.examples.items[k].weights[i];
            }
        assert_true(sum == e->weights[i]);
    }
    close_world(&turns);
    close_world(&one);
}

static void reasoning_that_is_not_printed_is_told(void **state)
{
    (void)state;
    drops(PLAIN, "{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"r\"}]}", 99,
          CONVERSATION_REASONING_NOT_PRINTED, "messages[1]");
}

static void text_and_weighted_parts_become_tokens_with_weights(void **state)
{
    struct world w;
    struct tokens part = { 0 };

    (void)state;
    open_world(&w, POCKET,
               "{\"text\":\"Show the ring\"}\n{\"parts\":[[\"<|im_start|>user\\nhi<|im_end|>\",0.1],[\"\\n\",0],[\"yo\",1]]}\n");
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 2);
    for (size_t i = 0; i < w.examples.items[0].count; i++)
        assert_true(w.examples.items[0].weights[i] == 1);

    const struct example *e = &w.examples.items[1];

    assert_true(tokenizer_encode(w.tokenizer, "<|im_start|>user\nhi<|im_end|>", 29, true, &part, NULL));
    for (size_t i = 0; i < part.count; i++)
        assert_true(e->ids[i] == part.ids[i] && e->weights[i] == 0.1f);
    assert_true(e->weights[part.count] == 0);
    assert_true(e->weights[e->count - 1] == 1);
    assert_int_equal(e->line, 2);
    assert_int_equal(w.counts.trained, w.examples.items[0].count + e->count - 1);
    tokens_free(&part);
    close_world(&w);
}

static void the_preview_marks_what_is_trained_and_shows_control_characters(void **state)
{
    struct world w;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    open_world(&w, POCKET,
               "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u001b[2Jb\"},{\"role\":\"assistant\",\"content\":\"yo\"}]}\n"
               "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n");
    assert_true(
        conversation_preview(&w.format, &w.rows, &(struct conversation_show){ .limit = 5, .out = out }, &w.counts, &w.err));
    fflush(out);
    assert_non_null(strstr(text, "a\\x1b[2Jb<|im_end|>\n<|im_start|>assistant\n⟦yo<|im_end|>⟧\n"));
    assert_non_null(strstr(text, "2 rows, 1 examples"));
    assert_non_null(strstr(text, "1 dropped, nothing_trained: no assistant turn"));
    assert_non_null(strstr(text, "data.jsonl:2 messages: no assistant turn"));
    assert_true(conversation_preview(&w.format, &w.rows, &(struct conversation_show){ .limit = 5, .out = out, .colour = true },
                                     &w.counts, &w.err));
    fflush(out);
    assert_non_null(strstr(text, "\x1b[32myo<|im_end|>\x1b[0m"));
    fclose(out);
    free(text);
    close_world(&w);
}

/* What transformers' tokenizer(text) gives, where the file has a post-processor. */
static void a_text_gets_around_it_what_the_tokenizer_puts_there(void **state)
{
    char path[] = "/tmp/rondo_test_XXXXXX.json";
    const int file = mkstemps(path, 5);
    json_t *json = json_load_file(RONDO_SOURCE "/models/pocket/tokenizer.json", 0, NULL);
    uint32_t start, end;
    struct world w;
    (void)state;

    open_world(&w, "{{ messages }}", "{\"text\":\"Show the ring\"}\n{\"text\":\"\"}\n");
    tokenizer_free(w.tokenizer);
    json_object_set_new(
        json, "post_processor",
        json_pack(
            "{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[], s:{s:{s:s, s:[i], s:[s]}, s:{s:s, s:[i], s:[s]}}}",
            "type", "TemplateProcessing", "single", "SpecialToken", "id", "<|im_start|>", "type_id", 0, "Sequence", "id", "A",
            "type_id", 0, "SpecialToken", "id", "<|im_end|>", "type_id", 0, "pair", "special_tokens", "<|im_start|>", "id",
            "<|im_start|>", "ids", 1, "tokens", "<|im_start|>", "<|im_end|>", "id", "<|im_end|>", "ids", 2, "tokens",
            "<|im_end|>"));
    assert_true(file >= 0 && json_dumpfd(json, file, 0) == 0);
    json_decref(json);
    close(file);
    w.format.tokenizer = w.tokenizer = tokenizer_read_file(path, &w.err);
    unlink(path);
    assert_non_null(w.tokenizer);
    assert_true(read_all(&w));
    w.format.surround = true;
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 4);
    const struct example *plain = &w.examples.items[0], *both = &w.examples.items[2], *empty = &w.examples.items[3];

    start = both->ids[0];
    end = both->ids[both->count - 1];
    assert_true(start == 1 && end == 2 && plain->ids[0] != 1);
    assert_int_equal(both->count, plain->count + 2);
    assert_memory_equal(both->ids + 1, plain->ids, plain->count * sizeof *plain->ids);
    assert_true(empty->count == 2 && empty->ids[0] == start && empty->ids[1] == end);
    assert_true(both->weights[0] == 1 && both->weights[both->count - 1] == 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pocket_template_prints_the_corpus_notation),
        cmocka_unit_test(the_example_line_becomes_two_examples),
        cmocka_unit_test(ids_are_those_of_the_whole_text),
        cmocka_unit_test(sound_rows_that_cannot_be_examples_are_counted_with_their_reason),
        cmocka_unit_test(faults_name_file_line_and_field),
        cmocka_unit_test(a_message_may_have_a_weight),
        cmocka_unit_test(an_example_that_begins_the_next_goes_into_it),
        cmocka_unit_test(reasoning_that_is_not_printed_is_told),
        cmocka_unit_test(text_and_weighted_parts_become_tokens_with_weights),
        cmocka_unit_test(the_preview_marks_what_is_trained_and_shows_control_characters),
        cmocka_unit_test(a_text_gets_around_it_what_the_tokenizer_puts_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
