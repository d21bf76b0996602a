/* Every kind of step against the reference libraries, streams, and the split rules against their own expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"
#include "native/text/normal_form.h"
#include "native/text/pattern.h"
#include "native/text/pretokenizer.h"
#include "native/text/tokenizer.h"
#include "native/text/utf8.h"

static struct tokenizer *tokenizer_of(const json_t *file)
{
    const char *path = json_string_value(json_object_get(file, "path"));
    char *json = path ? NULL : json_dumps(json_object_get(file, "tokenizer"), 0), full[600];
    struct error err = { 0 };
    struct tokenizer *t;

    snprintf(full, sizeof full, "%s/%s", RONDO_SOURCE, path ? path : "");
    t = path ? tokenizer_read_file(full, &err) : tokenizer_read(json, strlen(json), &err);
    if (!t)
        fail_msg("%s: %s", err.place, err.message);
    free(json);
    return t;
}

/* Token by token, with ends of characters only, the stream gives what decoding all at once does. */
static void check_stream(const struct tokenizer *t, const struct tokens *tokens, const struct buffer *whole)
{
    struct tokenizer_stream stream = { .tokenizer = t, .special = true };
    struct buffer out = { 0 }, lossy = { 0 };

    for (size_t i = 0; i < tokens->count; i++) {
        assert_true(tokenizer_stream_feed(&stream, tokens->ids[i], &out, NULL));
        assert_true(utf8_valid((const char *)out.bytes, out.size, NULL));
    }
    tokenizer_stream_finish(&stream, &out);
    utf8_add_lossy(&lossy, (const char *)whole->bytes, whole->size);
    assert_string_equal(buffer_text(&out), buffer_text(&lossy));
    tokenizer_stream_free(&stream);
    buffer_free(&out);
    buffer_free(&lossy);
}

static void check_case(const struct tokenizer *t, size_t f, size_t c, bool special, const json_t *one)
{
    const json_t *text = json_array_get(one, 0), *want = json_array_get(one, 1), *back = json_array_get(one, 2);
    struct tokens got = { 0 };
    struct buffer decoded = { 0 }, lossy = { 0 };
    uint32_t last = 0;

    assert_true(tokenizer_encode(t, json_string_value(text), json_string_length(text), special, &got, NULL));
    for (size_t i = 0; i < got.count; i++) {
        assert_true(got.ends[i] >= last && got.ends[i] <= json_string_length(text));
        last = got.ends[i];
    }
    if (c % 2 == 0)
        tokenizer_surround(t, &got);
    for (size_t i = 0; i < got.count && i < json_array_size(want); i++)
        if (got.ids[i] != json_integer_value(json_array_get(want, i)))
            fail_msg("file %zu, case %zu: token %zu is %u", f, c, i, got.ids[i]);
    assert_int_equal(got.count, json_array_size(want));
    assert_true(tokenizer_decode(t, got.ids, got.count, true, &decoded, NULL));
    utf8_add_lossy(&lossy, (const char *)decoded.bytes, decoded.size);
    if (lossy.size != json_string_length(back) || (lossy.size && memcmp(lossy.bytes, json_string_value(back), lossy.size)))
        fail_msg("file %zu, case %zu: decoded \"%s\", not \"%s\"", f, c, buffer_text(&lossy), json_string_value(back));
    check_stream(t, &got, &decoded);
    tokens_free(&got);
    buffer_free(&decoded);
    buffer_free(&lossy);
}

static void check_file(struct tokenizer *t, size_t f, const json_t *file)
{
    const json_t *cases = json_object_get(file, "cases");
    const char *path = json_string_value(json_object_get(file, "path"));
    bool special = !path || !strstr(path, ".model"); /* SentencePiece reads no control symbols */

    for (size_t c = 0; c < json_array_size(cases); c++)
        check_case(t, f, c, special, json_array_get(cases, c));
    tokenizer_free(t);
}

/* steps.json: tools/oracle/tokenizer_cases.py. */
static void ids_and_texts_are_those_of_the_references(void **state)
{
    json_t *files = json_read_file(RONDO_SOURCE "/tests/golden/text/steps.json", 8 << 20, NULL), *file;
    size_t f;

    (void)state;
    assert_non_null(files);
    assert_true(json_array_size(files) >= 17);
    json_array_foreach(files, f, file) check_file(tokenizer_of(file), f, file);
    json_decref(files);
}

/* random.json: tools/oracle/tokenizer_random.py --sample. Its tokenizers are those of steps.json, and files. */
static void random_texts_are_read_as_the_references_do(void **state)
{
    json_t *steps = json_read_file(RONDO_SOURCE "/tests/golden/text/steps.json", 8 << 20, NULL),
           *files = json_read_file(RONDO_SOURCE "/tests/golden/text/random.json", 8 << 20, NULL), *file;
    size_t f;

    (void)state;
    assert_non_null(steps);
    assert_true(json_array_size(files) > json_array_size(steps));
    json_array_foreach(files, f, file)
    {
        const json_t *step = json_object_get(file, "step");

        check_file(tokenizer_of(step ? json_array_get(steps, (size_t)json_integer_value(step)) : file), f, file);
    }
    json_decref(steps);
    json_decref(files);
}

struct pieces {
    const char *text;
    size_t ends[400], count;
};

static void keep(void *context, const char *text, size_t size, struct origin origin)
{
    struct pieces *pieces = context;

    assert_int_equal(origin_at(origin, 0), text - pieces->text);
    pieces->ends[pieces->count++] = (size_t)(text - pieces->text) + size;
}

static void split(struct pretokenizer *p, const char *text, struct pieces *out)
{
    struct pretokenizer_work *work = pretokenizer_work_new(p);

    out->text = text;
    out->count = 0;
    assert_true(pretokenizer_split(p, work, text, strlen(text), (struct origin){ NULL, 0 }, keep, out, NULL));
    pretokenizer_work_free(work);
}

/* The same pattern in a group is not known, so an engine runs it. */
static void check_rule(const char *pattern)
{
    static const char *const parts[] = { "a",         "B",      "é", "漢",   "ǅ",  "'s",       "'S", "'ll",
                                         "'\xc5\xbf", "'x",     "1", "23",   "½",  " ",        "  ", "\n",
                                         "\r",        "\t",     ".", "/",    "!?", "\xcc\x81", "😀",  "\xc2\xa0",
                                         "The",       "iPhone", "_", "\x01", "ʰ",  "Ⅷ",        "\"" };
    struct pretokenizer own = { 0 }, engine = { 0 };
    struct error err = { 0 };
    char grouped[2000], text[400];
    uint32_t seed = 7;

    snprintf(grouped, sizeof grouped, "(?:%s)", pattern);
    assert_true(pretokenizer_add_pattern(&own, pattern, strlen(pattern), false, SPLIT_ISOLATED, false, &err));
    assert_true(pretokenizer_add_pattern(&engine, grouped, strlen(grouped), false, SPLIT_ISOLATED, false, &err));
    assert_non_null(own.steps[0].rule);
    assert_null(engine.steps[0].rule);
    for (unsigned round = 0; round < 4000; round++) {
        struct pieces a, b;

        text[0] = 0;
        for (unsigned i = 0; i < 1 + round % 14; i++)
            strcat(text, parts[(seed = seed * 1103515245u + 12345u, seed >> 16) % (sizeof parts / sizeof *parts)]);
        split(&own, text, &a);
        split(&engine, text, &b);
        if (a.count != b.count || memcmp(a.ends, b.ends, a.count * sizeof *a.ends))
            fail_msg("\"%s\" of %s", text, pattern);
    }
    pretokenizer_free(&own);
    pretokenizer_free(&engine);
}

static void split_rules_cut_as_their_expressions_do(void **state)
{
    static const char tekken[] =
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?"
        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const char deepseek[] =
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
        "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const char marks[] =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

    (void)state;
    check_rule(SPLIT_GPT2);
    check_rule(SPLIT_R50K);
    check_rule(SPLIT_LLAMA3);
    check_rule(SPLIT_QWEN2);
    check_rule(SPLIT_O200K);
    check_rule(tekken);
    check_rule(deepseek);
    check_rule(marks);
}

static void expressions_are_rewritten_or_refused(void **state)
{
    static const struct {
        const char *pattern, *text;
        size_t start, end; /* SIZE_MAX: refused */
    } cases[] = { { "a{,2}", "aaa", 0, 2 },
                  { "[0-9]{3}+", "12345678", 0, 6 },
                  { "\\u0041+", "xAA", 1, 3 },
                  { "\\h+", "xyfF9", 2, 5 },
                  { "\\w+", "\xc2\xb2", 0, 2 },
                  { "[\\w]+", "\xc2\xb2z", 2, 3 },
                  { "{", "a{", 1, 2 },
                  { "(ab){2}+", "ababab", 0, 4 },
                  { "^b", "a\nb", 2, 3 },
                  { "\\w+", "e\xcc\x81", 0, 3 },
                  { "[a[b]]", "", SIZE_MAX, 0 },
                  { "[a&&b]", "", SIZE_MAX, 0 },
                  { "(?i:x|SS)", "", SIZE_MAX, 0 },
                  { "(?i:s)s", "Ss", 0, 2 },
                  { "(?<n>a)", "", SIZE_MAX, 0 },
                  { "\\Kx", "", SIZE_MAX, 0 },
                  { "a\\", "", SIZE_MAX, 0 } };
    struct pattern_search *search = pattern_search_new();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = { 0 };
        struct pattern *p = pattern_new(cases[i].pattern, strlen(cases[i].pattern), false, &err);
        size_t start, end;

        if (cases[i].start == SIZE_MAX) {
            assert_null(p);
            continue;
        }
        if (!p || pattern_find(p, search, cases[i].text, strlen(cases[i].text), 0, &start, &end, &err) != 1 ||
            start != cases[i].start || end != cases[i].end)
            fail_msg("%s: %s", cases[i].pattern, err.message);
        pattern_free(p);
    }
    pattern_search_free(search);
}

/* A hostile text of marks, which a sort by exchange would take a day for, and an expression without end. */
static void long_runs_end(void **state)
{
    size_t size = 2 << 20;
    char *text = malloc(size);
    struct aligned out = { 0 };
    struct pattern_search *search = pattern_search_new();
    struct pattern *p = pattern_new("(a+)+[bc]", 9, false, NULL);
    struct error err = { 0 };
    size_t start, end;

    (void)state;
    for (size_t i = 0; i < size; i += 2)
        memcpy(text + i, i % 4 ? "\xcc\xa3" : "\xcc\x81", 2); /* classes 220 and 230 in turn */
    normal_form_apply(text, size, (struct origin){ NULL, 0 }, false, true, &out);
    assert_int_equal(out.text.size, size);
    assert_memory_equal(out.text.bytes, "\xcc\xa3\xcc\xa3", 4);
    memset(text, 'a', 4000);
    assert_int_equal(pattern_find(p, search, text, 4000, 0, &start, &end, &err), -1);
    assert_int_equal(err.code, ERROR_LIMIT);
    pattern_free(p);
    pattern_search_free(search);
    aligned_free(&out);
    free(text);
}

static void broken_bytes_become_replacement_characters(void **state)
{
    /* The Unicode Standard, table 3-8, and what stands at the end. */
    static const char bytes[] = "a\xf1\x80\x80\xe1\x80\xc2"
                                "b\x80"
                                "c\x80\xbf"
                                "d\xe2\x82";
    struct buffer out = { 0 };

    (void)state;
    utf8_add_lossy(&out, bytes, sizeof bytes - 1);
    assert_string_equal(buffer_text(&out), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                                           "b\xef\xbf\xbd"
                                           "c\xef\xbf\xbd\xef\xbf\xbd"
                                           "d\xef\xbf\xbd");
    assert_int_equal(utf8_whole(bytes, sizeof bytes - 1), sizeof bytes - 3);
    assert_int_equal(utf8_whole("ab", 2), 2);
    assert_int_equal(utf8_whole("a\xff", 2), 2);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts_are_read_as_the_references_do),
        cmocka_unit_test(ids_and_texts_are_those_of_the_references),
        cmocka_unit_test(split_rules_cut_as_their_expressions_do),
        cmocka_unit_test(expressions_are_rewritten_or_refused),
        cmocka_unit_test(long_runs_end),
        cmocka_unit_test(broken_bytes_become_replacement_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
