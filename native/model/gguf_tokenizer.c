#include "native/model/gguf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A short text of the metadata as a string of its own, NULL when there is none. */
static char *text_of(const struct gguf *file, const char *key)
{
    struct text_slice text;

    return gguf_text(file, key, &text) ? strndup(text.bytes, text.size) : NULL;
}

/* The scores of all tokens as floats, NULL when they are absent. */
static float *scores_of(const struct gguf *file, size_t tokens)
{
    const struct gguf_value *value = gguf_find(file, "tokenizer.ggml.scores");
    float *scores;

    if (!value || !value->array || value->type != GGUF_F32 || value->count != tokens)
        return NULL;
    scores = malloc((tokens + 1) * sizeof *scores);
    if (scores)
        memcpy(scores, value->bytes, tokens * sizeof *scores);
    return scores;
}

/* The token `name` if the file says that it is put before or after a text; if it says nothing, `otherwise` holds. */
static const uint32_t *around(const struct gguf *file, const char *name, bool otherwise, uint32_t *id)
{
    char add[64], key[64];
    int64_t number;

    snprintf(add, sizeof add, "tokenizer.ggml.add_%s_token", name);
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", name);
    gguf_boolean(file, add, &otherwise);
    if (!otherwise || !gguf_integer(file, key, &number) || number < 0 || number > UINT32_MAX)
        return NULL;
    *id = (uint32_t)number;
    return id;
}

struct tokenizer *gguf_tokenizer(const struct gguf *file, struct error *err)
{
    size_t types;
    bool space = true;
    uint32_t bos, eos;
    struct tokenizer_arrays arrays = { 0 };
    char *kind = text_of(file, "tokenizer.ggml.model"), *pre = text_of(file, "tokenizer.ggml.pre");
    struct text_slice *tokens = gguf_texts(file, "tokenizer.ggml.tokens", &arrays.token_count);
    struct text_slice *merges = gguf_texts(file, "tokenizer.ggml.merges", &arrays.merge_count);
    int32_t *type = gguf_integers(file, "tokenizer.ggml.token_type", &types);
    float *scores = scores_of(file, arrays.token_count);
    struct tokenizer *tokenizer = NULL;

    gguf_boolean(file, "tokenizer.ggml.add_space_prefix", &space);
    arrays.model = kind;
    arrays.pre = pre;
    arrays.tokens = tokens;
    arrays.merges = merges;
    arrays.types = type;
    arrays.scores = scores;
    arrays.no_space_prefix = !space;
    arrays.bos = around(file, "bos", (kind && !strcmp(kind, "llama")) || tokenizer_rule_adds_bos(pre), &bos);
    arrays.eos = around(file, "eos", false, &eos);
    if (!kind || !tokens)
        error_set(err, ERROR_MISSING, NULL, "the file lacks tokenizer.ggml.model or .tokens");
    else if (type && types != arrays.token_count)
        error_set(err, ERROR_RANGE, NULL, "%zu token types for %zu tokens", types, arrays.token_count);
    else
        tokenizer = tokenizer_from_arrays(&arrays, err);
    free(kind);
    free(pre);
    free(tokens);
    free(merges);
    free(type);
    free(scores);
    return tokenizer;
}
