#include "native/text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/json.h"

/* A vocabulary of a few ASCII letters, with merges that need the order of ranks and ties from the left. */
#define MODEL(extra, splits)                                                                                                     \
    "{\"model\":{\"type\":\"BPE\"," extra "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"Ġ\":3,\"ab\":4,\"bc\":5,\"abc\":6,\"aa\":7,"    \
    "\"Ċ\":8,\"1\":9,\"2\":10,\"12\":11},\"merges\":[\"b c\",[\"a\",\"b\"],\"ab c\",\"a a\",\"1 2\"]},"                         \
    "\"added_tokens\":[{\"id\":12,\"content\":\"<|end|>\",\"special\":true},{\"id\":13,\"content\":\"<tag>\",\"special\":false}" \
    ","                                                                                                                          \
    "{\"id\":14,\"content\":\"<|end|>>\",\"special\":true}],"                                                                    \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" splits                                                        \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},\"decoder\":{\"type\":\"ByteLevel\"}}"
#define WORDS                                                                                                                    \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[A-Za-z]+|[0-9]+|\\n|[^A-Za-z0-9\\n]+\"},\"behavior\":\"Isolated\","           \
    "\"invert\":false},"

static struct tokenizer *make(const char *json)
{
    struct error err = { 0 };
    struct tokenizer *t = tokenizer_read(json, strlen(json), &err);
    char text[900];

    if (!t)
        fail_msg("%s", error_text(&err, text, sizeof text));
    return t;
}

static void check(const struct tokenizer *t, const char *text, bool special, const uint32_t *want, size_t count)
{
    struct tokens got = { 0 };
    struct error err = { 0 };

    assert_true(tokenizer_encode(t, text, strlen(text), special, &got, &err));
    assert_int_equal(got.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got.ids[i], want[i]);
    tokens_free(&got);
}
#define CHECK(t, text, special, ...) check(t, text, special, (uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

static void pairs_join_by_rank_then_from_the_left(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));

    (void)state;
    CHECK(t, "abc", true, 0, 5); /* b c ranks before a b */
    CHECK(t, "ab", true, 4);
    CHECK(t, "aaa", true, 7, 0);
    CHECK(t, "aaab", true, 7, 4);
    CHECK(t, "abcab bc", true, 0, 5, 4, 3, 5);
    tokenizer_free(t);
}

static void special_tokens_are_read_only_when_asked_and_the_longest_wins(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));

    (void)state;
    CHECK(t, "ab<|end|>c", true, 4, 12, 2);
    CHECK(t, "<|end|>>", true, 14);
    CHECK(t, "a<tag>b", false, 0, 13, 1); /* added, not special: always */
    CHECK(t, "a<|end|>b", false, 0, 1);   /* its characters have no tokens here and are left out */
    tokenizer_free(t);
}

static void splits_keep_pairs_apart(void **state)
{
    struct tokenizer *t = make(MODEL("", "{\"type\":\"Digits\",\"individual_digits\":true},"));

    (void)state;
    CHECK(t, "a12b", true, 0, 9, 10, 1);
    tokenizer_free(t);
    t = make(MODEL("", WORDS));
    CHECK(t, "a12b", true, 0, 11, 1);
    tokenizer_free(t);
}

static void unknown_bytes_are_dropped_or_replaced(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));

    (void)state;
    CHECK(t, "axb", true, 4); /* x is left out before pairs join, as the reference does */
    tokenizer_free(t);
    t = make(MODEL("\"unk_token\":\"c\",", WORDS));
    CHECK(t, "axxb", true, 0, 2, 2, 1);
    tokenizer_free(t);
    t = make(MODEL("\"unk_token\":\"c\",\"fuse_unk\":true,", WORDS));
    CHECK(t, "axxb", true, 0, 2, 1);
    tokenizer_free(t);
}

static void whole_pieces_come_first_with_ignore_merges(void **state)
{
    struct tokenizer *t = make(MODEL("\"ignore_merges\":true,", WORDS));

    (void)state;
    CHECK(t, "abc", true, 6);
    tokenizer_free(t);
}

/* Offsets tile the text, and decoding the ids gives the text back. */
static void offsets_and_decoding_fit_the_text(void **state)
{
    static const char text[] = "abc 12\n<|end|>aab<tag>";
    struct tokenizer *t = make(MODEL("", WORDS));
    struct tokens got = { 0 };
    struct buffer back = { 0 };
    uint32_t start = 0;

    (void)state;
    assert_true(tokenizer_encode(t, text, strlen(text), true, &got, NULL));
    for (size_t i = 0; i < got.count; i++) {
        buffer_clear(&back);
        assert_true(tokenizer_decode(t, got.ids + i, 1, true, &back, NULL));
        assert_int_equal(back.size, got.ends[i] - start);
        assert_memory_equal(back.bytes, text + start, back.size);
        start = got.ends[i];
    }
    assert_int_equal(start, strlen(text));
    buffer_clear(&back);
    assert_true(tokenizer_decode(t, got.ids, got.count, false, &back, NULL));
    assert_string_equal(buffer_text(&back), "abc 12\naab<tag>");
    assert_false(tokenizer_decode(t, (uint32_t[]){ 99 }, 1, true, &back, NULL));
    buffer_free(&back);
    tokens_free(&got);
    tokenizer_free(t);
}

/* The heap of long pieces and the search of short ones are one rule: quadratic reference over random strings. */
static size_t reference(const char *text, size_t size, uint32_t *ids)
{
    static const struct {
        uint32_t left, right, joined;
    } merges[] = { { 1, 2, 5 }, { 0, 1, 4 }, { 4, 2, 6 }, { 0, 0, 7 } };

    for (size_t i = 0; i < size; i++)
        ids[i] = (uint32_t)(text[i] - 'a');
    for (;;) {
        size_t best = SIZE_MAX, rank = 4;

        for (size_t i = 0; i + 1 < size; i++)
            for (size_t m = 0; m < rank; m++)
                if (merges[m].left == ids[i] && merges[m].right == ids[i + 1]) {
                    rank = m;
                    best = i;
                }
        if (best == SIZE_MAX)
            return size;
        ids[best] = merges[rank].joined;
        memmove(ids + best + 1, ids + best + 2, (size - best - 2) * sizeof *ids);
        size--;
    }
}

static void long_and_short_pieces_agree_with_the_plain_loop(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));
    uint32_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        char text[300];
        uint32_t want[300];
        size_t size = 1 + round % 299;

        for (size_t i = 0; i < size; i++)
            text[i] = (char)('a' + (seed = seed * 1103515245u + 12345u, (seed >> 16) % 3));
        text[size] = 0;
        check(t, text, true, want, reference(text, size, want));
    }
    tokenizer_free(t);
}

static void a_million_letters_in_one_piece_take_no_time(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));
    size_t size = 1000000;
    char *text = malloc(size);
    struct tokens got = { 0 };

    (void)state;
    for (size_t i = 0; i < size; i++)
        text[i] = "abcaab"[i % 6];
    assert_true(tokenizer_encode(t, text, size, true, &got, NULL));
    assert_int_equal(got.ends[got.count - 1], size);
    tokens_free(&got);
    free(text);
    tokenizer_free(t);
}

static void refused(const char *json, const char *place, const char *message)
{
    struct error err = { 0 };
    struct tokenizer *t = tokenizer_read(json, strlen(json), &err);

    assert_null(t);
    assert_non_null(strstr(err.place, place));
    if (!strstr(err.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.message);
}

static void what_is_not_offered_is_refused_by_name(void **state)
{
    (void)state;
    refused("[]", "", "not an object");
    refused("{", "line", "");
    refused("{\"model\":{\"type\":\"WordTree\"}}", "model.type", "WordTree");
    refused(MODEL("\"dropout\":0.1,", WORDS), "model", "dropout");
    refused(MODEL("\"unk_token\":\"q\",", WORDS), "model.unk_token", "not in the vocabulary");
    refused(MODEL("", "{\"type\":\"UnicodeScripts\"},"), "pre_tokenizer: pretokenizers[0]", "UnicodeScripts");
    refused(MODEL("", "{\"type\":\"Split\",\"behavior\":\"Odd\",\"pattern\":{\"Regex\":\"a\"}},"), "pre_tokenizer", "Odd");
    refused(MODEL("", "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"[a[b]]\"}},"), "pre_tokenizer",
            "a class inside a class");
    refused(MODEL("", "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(*COMMIT)\"}},"), "pre_tokenizer",
            "(*");
    refused(MODEL("", "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"[a\"}},"), "pre_tokenizer",
            "missing");
    refused(
        "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
        "false},\"decoder\":{\"type\":\"ByteLevel\"}}",
        "model.merges[0]", "not in the vocabulary");
    refused("{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
            "false},\"decoder\":{\"type\":\"ByteLevel\"}}",
            "model.vocab", "no id below");
    refused("{\"normalizer\":{\"type\":\"Nmt\"},\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}", "normalizer", "Nmt");
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    struct tokenizer *t = make(MODEL("", WORDS));
    struct tokens got = { 0 };
    struct error err = { 0 };

    (void)state;
    assert_false(tokenizer_encode(t, "ab\xff", 3, true, &got, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
    assert_non_null(strstr(err.message, "byte 2"));
    tokens_free(&got);
    tokenizer_free(t);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", folder, name);

    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The ids of "a<x>b" with what is put around them. */
static void check_folder(const char *folder, const char *config, const uint32_t *ids, size_t count)
{
    struct tokens got = { 0 };
    struct error err = { 0 };

    write_file(folder, "tokenizer_config.json", config);

    struct tokenizer *t = tokenizer_read_folder(folder, &err);

    if (!t)
        fail_msg("%s: %s", err.place, err.message);
    assert_true(tokenizer_encode(t, "a<x>b", 5, true, &got, NULL));
    tokenizer_surround(t, &got);
    assert_int_equal(got.count, count);
    assert_memory_equal(got.ids, ids, count * sizeof *ids);
    tokens_free(&got);
    tokenizer_free(t);
}

/* The rule of transformers 5 (TokenizersBackend): flags that stand hold in place of the post-processor. */
static void a_folder_adds_its_configs_tokens_and_ends(void **state)
{
    static const uint32_t own[] = { 2, 0, 5, 1 }, both[] = { 2, 0, 5, 1, 3 }, none[] = { 0, 5, 1 };
    char folder[] = "/tmp/rondo_test_XXXXXX", command[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_file(
        folder, "tokenizer.json",
        "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":1,\"<s>\":2,\"</s>\":3,\"?\":4},\"unk_token\":\"?\"},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[2],\"tokens\":[\"<s>"
        "\"]}}}}");
#define ADDED "\"added_tokens_decoder\":{\"5\":{\"content\":\"<x>\",\"special\":true}}"
    check_folder(folder, "{" ADDED "}", own, 4);
    check_folder(folder,
                 "{" ADDED
                 ",\"add_bos_token\":true,\"add_eos_token\":true,\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}",
                 both, 5);
    check_folder(folder, "{" ADDED ",\"add_bos_token\":false}", none, 3);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void rules_of_gguf_files_go_by_many_names(void **state)
{
    (void)state;
    assert_true(tokenizer_rule_adds_bos("llama-bpe"));
    assert_true(tokenizer_rule_adds_bos("tekken"));
    assert_false(tokenizer_rule_adds_bos("qwen2"));
    assert_false(tokenizer_rule_adds_bos("llama"));
    assert_false(tokenizer_rule_adds_bos(""));
}

static const char *fixture(const char *name, char *path, size_t size)
{
    const char *folder = getenv("RONDO_FIXTURES");

    snprintf(path, size, "%s/%s", folder ? folder : RONDO_SOURCE "/../shared/fixtures", name);
    return path;
}

/* tokenizer/tiny of the fixtures: one complete file with the GPT-2 rule, one whose pre-tokenizer has no byte-level step. */
static void tiny_files_load(void **state)
{
    static const char text[] = "hello the world<|endoftext|>";
    struct error err = { 0 };
    struct buffer back = { 0 };
    struct tokens got = { 0 };
    char path[600];

    (void)state;
    if (!file_exists(fixture("tokenizer/tiny/bpe_bytelevel_minimal.json", path, sizeof path)))
        skip();

    struct tokenizer *t = tokenizer_read_file(path, &err);

    assert_non_null(t);
    assert_true(tokenizer_encode(t, text, strlen(text), true, &got, &err));
    assert_true(tokenizer_decode(t, got.ids, got.count, true, &back, &err));
    assert_string_equal(buffer_text(&back), text);
    buffer_free(&back);
    tokens_free(&got);
    tokenizer_free(t);
    t = tokenizer_read_file(fixture("tokenizer/tiny/bpe_bytelevel_unicode.json", path, sizeof path), &err);
    assert_non_null(t);
    tokenizer_free(t);
}

/* tokens.json: ids that Hugging Face tokenizers gives (tools/oracle/tokenizer_cases.py), for the pocket model's own file and
 * for small files made to differ in one point each. */
static void ids_are_those_of_the_reference(void **state)
{
    struct error err = { 0 };
    json_t *files = json_read_file(RONDO_SOURCE "/tests/golden/text/tokens.json", 4 << 20, &err), *file;
    size_t f, c;
    unsigned checked = 0;

    (void)state;
    assert_non_null(files);
    json_array_foreach(files, f, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        char *json = path ? NULL : json_dumps(json_object_get(file, "tokenizer"), 0), full[600];
        struct tokenizer *t;
        json_t *pair;

        snprintf(full, sizeof full, "%s/%s", RONDO_SOURCE, path ? path : "");
        t = path ? tokenizer_read_file(full, &err) : tokenizer_read(json, strlen(json), &err);
        assert_non_null(t);
        json_array_foreach(json_object_get(file, "cases"), c, pair)
        {
            const json_t *text = json_array_get(pair, 0), *want = json_array_get(pair, 1);
            struct tokens got = { 0 };

            assert_true(tokenizer_encode(t, json_string_value(text), json_string_length(text), true, &got, &err));
            if (got.count != json_array_size(want))
                print_message("file %zu, \"%s\"\n", f, json_string_value(text));
            assert_int_equal(got.count, json_array_size(want));
            for (size_t i = 0; i < got.count; i++)
                if (got.ids[i] != json_integer_value(json_array_get(want, i)))
                    fail_msg("file %zu, \"%s\": token %zu is %u", f, json_string_value(text), i, got.ids[i]);
            tokens_free(&got);
            checked++;
        }
        tokenizer_free(t);
        free(json);
    }
    json_decref(files);
    assert_true(checked > 100);
}

static void the_engine_has_a_name(void **state)
{
    char text[100];

    (void)state;
    assert_memory_equal(tokenizer_engine(text, sizeof text), "PCRE2 1", 7);
    assert_non_null(strstr(text, ", Unicode "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_join_by_rank_then_from_the_left),
        cmocka_unit_test(special_tokens_are_read_only_when_asked_and_the_longest_wins),
        cmocka_unit_test(splits_keep_pairs_apart),
        cmocka_unit_test(unknown_bytes_are_dropped_or_replaced),
        cmocka_unit_test(whole_pieces_come_first_with_ignore_merges),
        cmocka_unit_test(offsets_and_decoding_fit_the_text),
        cmocka_unit_test(long_and_short_pieces_agree_with_the_plain_loop),
        cmocka_unit_test(a_million_letters_in_one_piece_take_no_time),
        cmocka_unit_test(what_is_not_offered_is_refused_by_name),
        cmocka_unit_test(text_that_is_not_utf8_is_refused),
        cmocka_unit_test(a_folder_adds_its_configs_tokens_and_ends),
        cmocka_unit_test(rules_of_gguf_files_go_by_many_names),
        cmocka_unit_test(the_engine_has_a_name),
        cmocka_unit_test(tiny_files_load),
        cmocka_unit_test(ids_are_those_of_the_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
