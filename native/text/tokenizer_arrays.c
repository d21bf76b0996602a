#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer_build.h"

enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4 };

/* The split rules that a GGUF file names (llama.cpp's llm_load_vocab), in the original patterns. */
static const struct rule {
    const char *name, *pattern;
    bool digits; /* each digit on its own before */
    bool whole_pieces;
} RULES[] = {
    { "gpt-2", SPLIT_GPT2, false, false },      { "gpt2", SPLIT_GPT2, false, false },   { "smollm", SPLIT_GPT2, true, false },
    { "starcoder", SPLIT_GPT2, true, false },   { "refact", SPLIT_GPT2, true, false },  { "command-r", SPLIT_GPT2, true, false },
    { "llama-bpe", SPLIT_LLAMA3, false, true }, { "qwen2", SPLIT_QWEN2, false, false }, { "gpt-4o", SPLIT_O200K, false, false },
};

static const struct rule *rule_named(const char *name)
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (!strcmp(RULES[i].name, name))
            return &RULES[i];
    return NULL;
}

static bool add_tokens(struct tokenizer_builder *b, const struct tokenizer_arrays *a, struct error *err)
{
    for (size_t i = 0; i < a->token_count; i++) {
        int32_t type = a->types ? a->types[i] : 1;
        uint8_t flags = type == TYPE_CONTROL || type == TYPE_UNKNOWN ? TOKEN_ADDED | TOKEN_SPECIAL
                        : type == TYPE_USER_DEFINED                  ? TOKEN_ADDED
                                                                     : TOKEN_OF_MODEL;

        if (!builder_add(b, i, a->tokens[i], flags, err))
            return error_at(err, "tokenizer.ggml.tokens");
    }
    return true;
}

/* "left right": the sides hold no space, since a space is written U+0120. */
static bool add_merges(struct tokenizer_builder *b, struct tokenizer *t, const struct tokenizer_arrays *a, struct error *err)
{
    for (size_t i = 0; i < a->merge_count; i++) {
        struct text_slice m = a->merges[i];
        const char *space = m.size ? memchr(m.bytes + 1, ' ', m.size - 1) : NULL;

        if (!space || m.size > 2 * TOKENIZER_MAX_TOKEN_SIZE)
            return error_set(err, ERROR_SYNTAX, NULL, "no two sides with a space between") ||
                   error_at(err, "tokenizer.ggml.merges[%zu]", i);

        struct text_slice left = { m.bytes, (size_t)(space - m.bytes) }, right = { space + 1, m.size - left.size - 1 };

        if (!builder_merge(b, t, left, right, (uint32_t)i, err))
            return error_at(err, "tokenizer.ggml.merges[%zu]", i);
    }
    return true;
}

struct tokenizer *tokenizer_from_arrays(const struct tokenizer_arrays *a, struct error *err)
{
    const struct rule *rule = a->pre ? rule_named(a->pre) : NULL;

    if (!a->model || strcmp(a->model, "gpt2")) {
        error_set(err, ERROR_UNSUPPORTED, "byte-level BPE is offered, named \"gpt2\"", "tokenizer model \"%s\"",
                  a->model ? a->model : "");
        error_at(err, "tokenizer.ggml.model");
        return NULL;
    }
    if (!rule) {
        error_set(err, ERROR_UNSUPPORTED, "give a tokenizer.json beside the file",
                  a->pre ? "split rule \"%s\"" : "no split rule%s", a->pre ? a->pre : "");
        error_at(err, "tokenizer.ggml.pre");
        return NULL;
    }

    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    bool ok = t || error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    ok = ok && (a->merge_count <= TOKENIZER_MAX_TOKENS || error_set(err, ERROR_LIMIT, NULL, "%zu merges", a->merge_count));
    if (ok) {
        t->whole_pieces = rule->whole_pieces;
        t->decoder.bytes = true;
        ok =
            (!rule->digits || pretokenizer_add_set(&t->pretokenizer, SET_DIGITS, SPLIT_ISOLATED, err)) &&
            pretokenizer_add_pattern(&t->pretokenizer, rule->pattern, strlen(rule->pattern), false, SPLIT_ISOLATED, false, err) &&
            pretokenizer_add_byte_level(&t->pretokenizer, false, false, err);
    }
    ok = ok && builder_start(&b, a->token_count, err) && add_tokens(&b, a, err) && add_merges(&b, t, a, err) &&
         builder_finish(&b, t, err);
    if (ok) {
        t->bpe.unknown = BPE_NONE;
        t->bpe.keep_unknown = true;
    }
    builder_free(&b);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}
