/* llama.cpp's own test vocabularies and cases (models/ggml-vocab-*.gguf, .inp, .out), from the fixtures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/model/gguf.h"
#include "native/text/tokenizer.h"

static const char *fixture(const char *name, const char *end, char *path, size_t size)
{
    const char *root = getenv("RONDO_FIXTURES");

    snprintf(path, size, "%s/tokenizer/llama.cpp/ggml-vocab-%s.gguf%s", root ? root : RONDO_SOURCE "/../shared/fixtures", name,
             end);
    return path;
}

static struct tokenizer *open_vocabulary(const char *name)
{
    struct gguf file = { 0 };
    struct error err = { 0 };
    struct text_slice model, pre;
    struct tokenizer_arrays arrays = { 0 };
    char path[700], model_name[64], pre_name[64];
    size_t count;

    if (!gguf_open(&file, fixture(name, "", path, sizeof path), &err)) {
        gguf_close(&file);
        return NULL;
    }
    bool space = true;
    const struct gguf_value *scores = gguf_find(&file, "tokenizer.ggml.scores");

    assert_true(gguf_text(&file, "tokenizer.ggml.model", &model) && gguf_text(&file, "tokenizer.ggml.pre", &pre));
    gguf_boolean(&file, "tokenizer.ggml.add_space_prefix", &space);
    arrays.no_space_prefix = !space;
    arrays.scores = scores && scores->type == GGUF_F32 ? (const float *)(const void *)scores->bytes : NULL;
    snprintf(model_name, sizeof model_name, "%.*s", (int)model.size, model.bytes);
    snprintf(pre_name, sizeof pre_name, "%.*s", (int)pre.size, pre.bytes);
    arrays.model = model_name;
    arrays.pre = pre_name;
    arrays.tokens = gguf_texts(&file, "tokenizer.ggml.tokens", &arrays.token_count);
    arrays.merges = gguf_texts(&file, "tokenizer.ggml.merges", &arrays.merge_count);
    arrays.types = gguf_integers(&file, "tokenizer.ggml.token_type", &count);

    struct tokenizer *t = tokenizer_from_arrays(&arrays, &err);

    if (!t)
        fail_msg("%s: %s", err.place, err.message);
    free((void *)arrays.tokens);
    free((void *)arrays.merges);
    free((void *)arrays.types);
    gguf_close(&file);
    return t;
}

/* One case: the ids of a line of the .out file. Returns the next line. */
static char *check_line(const struct tokenizer *t, const char *text, size_t size, char *line)
{
    struct tokens got = { 0 };
    struct buffer back = { 0 };
    size_t i = 0;

    assert_true(tokenizer_encode(t, text, size, false, &got, NULL));
    while (*line && *line != '\n') {
        unsigned long want = strtoul(line, &line, 10);

        if (i >= got.count || got.ids[i] != want)
            fail_msg("\"%.*s\": token %zu is not %lu", (int)size, text, i, want);
        i++;
        while (*line == ' ')
            line++;
    }
    assert_int_equal(i, got.count);
    assert_true(tokenizer_decode(t, got.ids, got.count, true, &back, NULL));
    assert_int_equal(back.size, size);
    assert_true(size == 0 || !memcmp(back.bytes, text, size));
    buffer_free(&back);
    tokens_free(&got);
    return *line ? line + 1 : line;
}

static void check_vocabulary(const char *name)
{
    static const char between[] = "\n__ggml_vocab_test__\n";
    struct tokenizer *t = open_vocabulary(name);
    struct buffer texts = { 0 }, ids = { 0 };
    char path[700];
    unsigned cases = 0;

    if (!t)
        skip();
    assert_true(file_read(fixture(name, ".inp", path, sizeof path), 1 << 20, &texts, NULL));
    assert_true(file_read(fixture(name, ".out", path, sizeof path), 1 << 20, &ids, NULL));

    const char *at = buffer_text(&texts), *end = at + texts.size;
    char *line = (char *)buffer_text(&ids);

    while (at < end) {
        const char *stop = memmem(at, (size_t)(end - at), between, sizeof between - 1);

        line = check_line(t, at, (size_t)((stop ? stop : end) - at), line);
        cases++;
        at = stop ? stop + sizeof between - 1 : end;
    }
    assert_true(cases > 40);
    buffer_free(&texts);
    buffer_free(&ids);
    tokenizer_free(t);
}

static void gpt2_gives_the_ids_of_llama_cpp(void **state)
{
    (void)state;
    check_vocabulary("gpt-2");
}

static void starcoder_with_single_digits_gives_the_ids_of_llama_cpp(void **state)
{
    (void)state;
    check_vocabulary("starcoder");
}

static void phi3_by_scores_gives_the_ids_of_llama_cpp(void **state)
{
    (void)state;
    check_vocabulary("phi-3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_gives_the_ids_of_llama_cpp),
        cmocka_unit_test(phi3_by_scores_gives_the_ids_of_llama_cpp),
        cmocka_unit_test(starcoder_with_single_digits_gives_the_ids_of_llama_cpp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
