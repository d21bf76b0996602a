#include <stdlib.h>
#include <string.h>

#include "native/text/tokenizer_build.h"

enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5, TYPE_BYTE = 6 };

enum { RULE_PATTERNS = 5 };

static const char SEED_CODER[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| "
                                 "?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char BAILING[] =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
static const char BLOOM[] = " ?[^(\\s|.,!?…。，、।۔،)]+";

/* The split rules that a GGUF file names (llama.cpp's llm_load_vocab), in the original patterns of the models' own files. */
static const struct rule {
    const char *names, *patterns[RULE_PATTERNS];
    bool digits; /* each digit on its own before */
    bool whole_pieces;
    bool bos; /* put before a text unless the file says otherwise */
} RULES[] = {
    { .names =
          "gpt-2 gpt2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert mpt olmo jais trillion "
          "granite-docling exaone4",
      .patterns = { SPLIT_GPT2 } },
    { .names = "smollm starcoder refact command-r codeshell exaone minerva-7b", .patterns = { SPLIT_GPT2 }, .digits = true },
    { .names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
      .patterns = { SPLIT_LLAMA3 },
      .whole_pieces = true,
      .bos = true },
    { .names = "dbrx smaug-bpe chatglm-bpe glm4", .patterns = { SPLIT_LLAMA3 } },
    { .names = "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan grok-2", .patterns = { SPLIT_QWEN2 } },
    { .names = "qwen35", .patterns = { SPLIT_QWEN35 } },
    { .names = "gpt-4o llama4 kanana2 minimax-m2", .patterns = { SPLIT_O200K } },
    { .names = "tekken", .patterns = { SPLIT_TEKKEN }, .whole_pieces = true, .bos = true },
    { .names = "deepseek-v3 hunyuan-dense", .patterns = { "\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", SPLIT_DEEPSEEK3 } },
    { .names = "deepseek-coder", .patterns = { "[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}" } },
    { .names = "seed-coder", .patterns = { SEED_CODER } },
    { .names = "bailingmoe bailingmoe2 llada-moe", .patterns = { BAILING } },
    { .names = "bloom poro-chat gpt3-finnish", .patterns = { BLOOM } },
    { .names = "viking", .patterns = { BLOOM, "\\p{N}" } },
    { .names = "falcon", .patterns = { NULL } }, /* steps of its own */
};

static const struct rule *rule_named(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; length && i < sizeof RULES / sizeof *RULES; i++)
        for (const char *at = RULES[i].names; *at; at += strspn(at, " ")) {
            size_t size = strcspn(at, " ");

            if (size == length && !memcmp(at, name, size))
                return &RULES[i];
            at += size;
        }
    return NULL;
}

bool tokenizer_rule_adds_bos(const char *pre)
{
    const struct rule *rule = pre ? rule_named(pre) : NULL;

    return rule && rule->bos;
}

static bool add_rule(struct pretokenizer *p, const struct rule *rule, struct error *err)
{
    if (!rule->patterns[0])
        return pretokenizer_add_set(p, SET_PUNCTUATION, SPLIT_CONTIGUOUS, err) &&
               pretokenizer_add_byte_level(p, false, true, err) && pretokenizer_add_set(p, SET_DIGITS, SPLIT_CONTIGUOUS, err) &&
               pretokenizer_add_pattern(p, "[0-9][0-9][0-9]", 15, false, SPLIT_ISOLATED, false, err);
    if (rule->digits && !pretokenizer_add_set(p, SET_DIGITS, SPLIT_ISOLATED, err))
        return false;
    for (size_t i = 0; i < RULE_PATTERNS && rule->patterns[i]; i++)
        if (!pretokenizer_add_pattern(p, rule->patterns[i], strlen(rule->patterns[i]), false, SPLIT_ISOLATED, false, err))
            return false;
    return pretokenizer_add_byte_level(p, false, false, err);
}

static bool add_tokens(struct tokenizer_builder *b, const struct tokenizer_arrays *a, struct error *err)
{
    for (size_t i = 0; i < a->token_count; i++) {
        int32_t type = a->types ? a->types[i] : 1;
        uint8_t flags = type == TYPE_CONTROL || type == TYPE_UNKNOWN ? TOKEN_ADDED | TOKEN_SPECIAL
                        : type == TYPE_USER_DEFINED                  ? TOKEN_ADDED
                        : type == TYPE_BYTE || type == TYPE_UNUSED   ? 0
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

static bool fill_bytes(struct tokenizer *t, struct tokenizer_builder *b, const struct tokenizer_arrays *a, struct error *err)
{
    const struct rule *rule = a->pre ? rule_named(a->pre) : NULL;

    if (!rule) {
        error_set(err, ERROR_UNSUPPORTED, "give a tokenizer.json beside the file",
                  a->pre ? "split rule \"%s\"" : "no split rule%s", a->pre ? a->pre : "");
        return error_at(err, "tokenizer.ggml.pre");
    }
    if (a->merge_count == 0 || a->merge_count > TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, NULL, "%zu merges", a->merge_count) || error_at(err, "tokenizer.ggml.merges");
    t->whole_pieces = rule->whole_pieces;
    t->decoder.bytes = true;
    if (!add_rule(&t->pretokenizer, rule, err) || !builder_start(b, a->token_count, err) || !add_tokens(b, a, err) ||
        !add_merges(b, t, a, err) || !builder_finish(b, t, err))
        return false;
    t->bpe.unknown = BPE_NONE;
    t->bpe.keep_unknown = true;
    return true;
}

static bool add_step(struct normalizer *n, int kind, struct error *err)
{
    static const char mark[] = "\xe2\x96\x81";
    struct normalizer_step *step = normalizer_add(n, err);

    if (!step)
        return false;
    step->kind = kind;
    step->byte = ' ';
    step->content_size = sizeof mark - 1;
    memcpy(step->content, mark, sizeof mark);
    return true;
}

/* llama.cpp's llm_tokenizer_spm: spaces as "▁", one before each stretch of text, pairs joined by score. */
static bool fill_scores(struct tokenizer *t, struct tokenizer_builder *b, const struct tokenizer_arrays *a, struct error *err)
{
    if (!a->scores || !a->types)
        return error_set(err, ERROR_MISSING, NULL, "the model \"llama\" needs scores and token types") ||
               error_at(err, "tokenizer.ggml.scores");
    if ((!a->no_space_prefix && !add_step(&t->normalizer, NORMALIZER_PREPEND, err)) ||
        !add_step(&t->normalizer, NORMALIZER_REPLACE, err) || !builder_start(b, a->token_count, err) || !add_tokens(b, a, err) ||
        !builder_finish(b, t, err))
        return false;
    t->bpe.unknown = BPE_NONE;
    t->bpe.byte_fallback = true;
    for (uint32_t i = 0; i < a->token_count; i++) {
        if (a->types[i] == TYPE_UNKNOWN)
            t->bpe.unknown = i;
        if (a->types[i] == TYPE_BYTE)
            builder_set_fallback(t, a->tokens[i], i);
    }
    t->decoder.steps[0] = (struct decoder_step){ .kind = DECODER_REPLACE, .text = "\xe2\x96\x81", .content = " " };
    t->decoder.steps[1] = (struct decoder_step){ .kind = DECODER_BYTE_FALLBACK };
    t->decoder.steps[2] = (struct decoder_step){ .kind = DECODER_FUSE };
    t->decoder.steps[3] = (struct decoder_step){ .kind = DECODER_STRIP, .text = " ", .start = 1 };
    t->decoder.count = a->no_space_prefix ? 3 : 4;
    if (!builder_merge_by_scores(b, t, a->scores, err))
        return false;
    builder_set_cut(b, t);
    return true;
}

static bool is_token(const struct tokenizer *t, uint32_t id)
{
    return id < t->count && t->flags[id] & TOKEN_PRESENT;
}

struct tokenizer *tokenizer_from_arrays(const struct tokenizer_arrays *a, struct error *err)
{
    bool bytes = a->model && !strcmp(a->model, "gpt2");

    if (!bytes && !(a->model && !strcmp(a->model, "llama"))) {
        error_set(err, ERROR_UNSUPPORTED, "\"gpt2\", byte-level BPE, and \"llama\", BPE by scores, are offered",
                  "tokenizer model \"%s\"", a->model ? a->model : "");
        error_at(err, "tokenizer.ggml.model");
        return NULL;
    }

    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    bool ok = t ? (bytes ? fill_bytes(t, &b, a, err) : fill_scores(t, &b, a, err))
                : error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    builder_free(&b);
    if (ok && ((a->bos && !is_token(t, *a->bos)) || (a->eos && !is_token(t, *a->eos))))
        ok = error_set(err, ERROR_RANGE, NULL, "the token before or after a text is none");
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    if (a->bos)
        t->before[t->before_count++] = *a->bos;
    if (a->eos)
        t->after[t->after_count++] = *a->eos;
    return t;
}
