#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/byte_alphabet.h"
#include "native/text/tokenizer_build.h"
#include "native/text/utf8.h"

/* What a file of ranks does not say, told by how many it has (tiktoken_ext/openai_public.py, llama_models/llama3/tokenizer.py). */
static const struct encoding {
    size_t ranks;
    const char *pattern;
    struct {
        const char *text;
        uint32_t id;
    } special[6];
} ENCODINGS[] = {
    { 50256, SPLIT_R50K, { { "<|endoftext|>", 50256 } } },
    { 50280, SPLIT_R50K, { { "<|endoftext|>", 50256 } } },
    { 100256,
      SPLIT_CL100K,
      { { "<|endoftext|>", 100257 },
        { "<|fim_prefix|>", 100258 },
        { "<|fim_middle|>", 100259 },
        { "<|fim_suffix|>", 100260 },
        { "<|endofprompt|>", 100276 } } },
    { 199998, SPLIT_O200K, { { "<|endoftext|>", 199999 }, { "<|endofprompt|>", 200018 } } },
    { 128000,
      SPLIT_LLAMA3,
      { { "<|begin_of_text|>", 128000 },
        { "<|end_of_text|>", 128001 },
        { "<|start_header_id|>", 128006 },
        { "<|end_header_id|>", 128007 },
        { "<|eot_id|>", 128009 } } },
};

static const struct encoding *encoding_of(size_t ranks)
{
    for (size_t i = 0; i < sizeof ENCODINGS / sizeof *ENCODINGS; i++)
        if (ENCODINGS[i].ranks == ranks)
            return &ENCODINGS[i];
    return NULL;
}

/* The lines "base64 rank", the bytes written in the byte alphabet one after another. */
struct ranks {
    struct buffer texts;
    struct rank {
        uint32_t id;
        size_t start, end;
    } * list; /* owned */
    size_t count;
    uint32_t greatest;
};

static bool read_line(struct ranks *r, const char *line, size_t size, struct error *err)
{
    const char *space = memchr(line, ' ', size);
    uint8_t bytes[TOKENIZER_MAX_TOKEN_SIZE / 2];
    size_t written = 0, start = r->texts.size;
    uint64_t id = 0;

    if (!space || sodium_base642bin(bytes, sizeof bytes, line, (size_t)(space - line), NULL, &written, NULL,
                                    sodium_base64_VARIANT_ORIGINAL) != 0)
        return error_set(err, ERROR_SYNTAX, "a line is base64, a space and a number", "no token in base64");
    for (const char *p = space + 1; p < line + size && id < TOKENIZER_MAX_TOKENS; p++) {
        if (*p < '0' || *p > '9')
            return error_set(err, ERROR_SYNTAX, "a line is base64, a space and a number", "no rank");
        id = id * 10 + (uint64_t)(*p - '0');
    }
    if (space + 1 == line + size || id >= TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_RANGE, NULL, "no rank below %d", TOKENIZER_MAX_TOKENS);
    for (size_t i = 0; i < written; i++)
        utf8_add(&r->texts, byte_alphabet_code_point(bytes[i]));
    r->list[r->count++] = (struct rank){ (uint32_t)id, start, r->texts.size };
    r->greatest = id > r->greatest ? (uint32_t)id : r->greatest;
    return true;
}

static bool read_lines(struct ranks *r, const char *text, size_t size, struct error *err)
{
    size_t lines = 0, number = 0;

    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    if (lines >= TOKENIZER_MAX_TOKENS)
        return error_set(err, ERROR_LIMIT, NULL, "%zu lines", lines);
    r->list = calloc(lines + 1, sizeof *r->list);
    if (!r->list)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu ranks", lines);
    for (const char *at = text, *end = text + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);

        number++;
        if (length && at[length - 1] == '\r')
            length--;
        if (length && !read_line(r, at, length, err))
            return error_at(err, "line %zu", number);
        at = stop ? stop + 1 : end;
    }
    return true;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct rank *)a)->id, y = ((const struct rank *)b)->id;

    return x < y ? -1 : x > y;
}

/* A token's last join is of the two parts that the ranks below its own make of it. Of a token that they leave in more parts
 * there is none: it is met as a whole piece only. */
static void add_joins(struct tokenizer *t, const struct ranks *r)
{
    struct bpe_work work = { 0 };
    struct tokens parts = { 0 };

    for (size_t i = 0; i < r->count; i++) {
        uint32_t id = r->list[i].id;
        size_t size = t->offsets[id + 1] - t->offsets[id];

        parts.count = 0;
        if (size > 1)
            bpe_encode(&t->bpe, t->bytes.bytes + t->offsets[id], size, 0, &work, &parts);
        if (parts.count == 2)
            bpe_set_merge(&t->bpe, parts.ids[0], parts.ids[1], id, id);
    }
    bpe_work_free(&work);
    tokens_free(&parts);
}

static bool fill(struct tokenizer *t, struct tokenizer_builder *b, struct ranks *r, struct error *err)
{
    const struct encoding *e = encoding_of(r->count);
    uint32_t greatest = r->greatest;

    if (!e)
        return error_set(err, ERROR_UNSUPPORTED, "use the model's tokenizer.json",
                         "%zu ranks: of none of the encodings whose split rule is known", r->count);
    qsort(r->list, r->count, sizeof *r->list, by_id);
    for (size_t i = 0; i < sizeof e->special / sizeof *e->special; i++)
        greatest = e->special[i].text && e->special[i].id > greatest ? e->special[i].id : greatest;
    if (!pretokenizer_add_pattern(&t->pretokenizer, e->pattern, strlen(e->pattern), false, SPLIT_ISOLATED, false, err) ||
        !pretokenizer_add_byte_level(&t->pretokenizer, false, false, err) || !builder_start(b, (size_t)greatest + 1, err))
        return false;
    for (size_t i = 0; i < r->count; i++) {
        struct text_slice text = { (const char *)r->texts.bytes + r->list[i].start, r->list[i].end - r->list[i].start };

        if (!builder_add(b, r->list[i].id, text, TOKEN_OF_MODEL, err))
            return false;
    }
    for (size_t i = 0; i < sizeof e->special / sizeof *e->special; i++) {
        struct text_slice text = { e->special[i].text, e->special[i].text ? strlen(e->special[i].text) : 0 };

        if (text.bytes && !builder_add(b, e->special[i].id, text, TOKEN_ADDED | TOKEN_SPECIAL, err))
            return false;
    }
    if (!builder_finish(b, t, err))
        return false;
    t->bpe.unknown = BPE_NONE;
    t->decoder.bytes = true;
    t->whole_pieces = true;
    add_joins(t, r);
    return true;
}

struct tokenizer *tokenizer_read_ranks(const char *text, size_t size, struct error *err)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    struct tokenizer_builder b = { 0 };
    struct ranks ranks = { 0 };
    bool ok = t || error_set(err, ERROR_MEMORY, NULL, "no memory for a tokenizer");

    ok = ok && read_lines(&ranks, text, size, err) && fill(t, &b, &ranks, err);
    builder_free(&b);
    buffer_free(&ranks.texts);
    free(ranks.list);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}
