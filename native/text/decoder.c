#include "native/text/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/utf8.h"

void token_texts_free(struct token_texts *texts)
{
    buffer_free(&texts->bytes);
    free(texts->ends);
    *texts = (struct token_texts){ 0 };
}

/* Ends the token whose bytes were put into the buffer. */
static void end_token(struct token_texts *texts)
{
    if (texts->count == texts->capacity) {
        texts->capacity = texts->capacity ? texts->capacity * 2 : 64;
        texts->ends = reallocarray(texts->ends, texts->capacity, sizeof *texts->ends);
        if (!texts->ends)
            abort();
    }
    buffer_reserve(&texts->bytes, 1); /* so that an empty text is a place, too */
    texts->ends[texts->count++] = texts->bytes.size;
}

void token_texts_add(struct token_texts *texts, const void *bytes, size_t size)
{
    buffer_add(&texts->bytes, bytes, size);
    end_token(texts);
}

static const char *token_at(const struct token_texts *texts, size_t i, size_t *size)
{
    size_t start = i ? texts->ends[i - 1] : 0;

    *size = texts->ends[i] - start;
    return (const char *)texts->bytes.bytes + start;
}

static void add_replaced(struct buffer *out, const char *text, size_t size, const char *what, const char *by)
{
    size_t length = strlen(what);
    const char *end = text + size, *found;

    while (length && size && (found = memmem(text, (size_t)(end - text), what, length))) {
        buffer_add(out, text, (size_t)(found - text));
        buffer_add_text(out, by);
        text = found + length;
    }
    buffer_add(out, text, (size_t)(end - text));
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int byte_of(const char *text, size_t size)
{
    if (size != 6 || memcmp(text, "<0x", 3) || text[5] != '>')
        return -1;

    int high = hex_value(text[3]), low = hex_value(text[4]);

    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static void end_run(struct token_texts *out, struct buffer *run)
{
    if (!run->size)
        return;
    if (utf8_valid((const char *)run->bytes, run->size, NULL)) {
        token_texts_add(out, run->bytes, run->size);
    } else {
        for (size_t i = 0; i < run->size; i++)
            token_texts_add(out, "\xef\xbf\xbd", 3);
    }
    buffer_clear(run);
}

static void byte_fallback(const struct token_texts *in, struct token_texts *out)
{
    struct buffer run = { 0 };

    for (size_t i = 0; i < in->count; i++) {
        size_t size;
        const char *text = token_at(in, i, &size);
        int byte = byte_of(text, size);

        if (byte >= 0) {
            buffer_add_u8(&run, (uint8_t)byte);
            continue;
        }
        end_run(out, &run);
        token_texts_add(out, text, size);
    }
    end_run(out, &run);
    buffer_free(&run);
}

static void margin(const struct decoder_step *step, const struct token_texts *in, struct token_texts *out)
{
    size_t length = strlen(step->text);
    bool open = true;

    for (size_t i = 0; i < in->count; i++) {
        size_t size;
        const char *text = token_at(in, i, &size);

        if (open && size >= length && !memcmp(text, step->text, length)) {
            text += length;
            size -= length;
            open = step->first;
        }
        open = open && size == 0;
        token_texts_add(out, text, size);
    }
}

static void strip(const struct decoder_step *step, const char *text, size_t size, struct token_texts *out)
{
    size_t length = strlen(step->text);

    for (size_t i = 0; i < step->start && size >= length && !memcmp(text, step->text, length); i++) {
        text += length;
        size -= length;
    }
    for (size_t i = 0; i < step->stop && size >= length && !memcmp(text + size - length, step->text, length); i++)
        size -= length;
    token_texts_add(out, text, size);
}

/* The library's tidying of English: no space before signs and short forms. */
static void clean_up(struct buffer *text, size_t from)
{
    static const char *const pairs[][2] = { { " .", "." },   { " ?", "?" },     { " !", "!" },    { " ,", "," },
                                            { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },  { " do not", " don't" },
                                            { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" } };
    struct buffer copy = { 0 };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        buffer_clear(&copy);
        add_replaced(&copy, (const char *)text->bytes + from, text->size - from, pairs[i][0], pairs[i][1]);
        text->size = from;
        buffer_add(text, copy.bytes, copy.size);
    }
    buffer_free(&copy);
}

static void wordpiece(const struct decoder_step *step, size_t i, const char *text, size_t size, struct token_texts *out)
{
    size_t length = strlen(step->text), from = out->bytes.size;

    if (i && size >= length && !memcmp(text, step->text, length)) {
        text += length;
        size -= length;
    } else if (i) {
        buffer_add_u8(&out->bytes, ' ');
    }
    buffer_add(&out->bytes, text, size);
    if (step->cleanup)
        clean_up(&out->bytes, from);
    end_token(out);
}

static void step_token(const struct decoder_step *step, size_t i, size_t count, const char *text, size_t size,
                       struct token_texts *out)
{
    switch (step->kind) {
    case DECODER_REPLACE:
        add_replaced(&out->bytes, text, size, step->text, step->content);
        end_token(out);
        break;
    case DECODER_STRIP:
        strip(step, text, size, out);
        break;
    case DECODER_METASPACE:
        add_replaced(&out->bytes, text, size, step->text, i == 0 && step->first ? "" : " ");
        end_token(out);
        break;
    case DECODER_WORDPIECE:
        wordpiece(step, i, text, size, out);
        break;
    case DECODER_SUFFIX:
        add_replaced(&out->bytes, text, size, step->text, i + 1 == count ? "" : " ");
        end_token(out);
        break;
    case DECODER_FUSE:
    case DECODER_BYTE_FALLBACK:
    case DECODER_MARGIN:
        break;
    }
}

static void step_run(const struct decoder_step *step, const struct token_texts *in, struct token_texts *out)
{
    if (step->kind == DECODER_FUSE) {
        token_texts_add(out, in->bytes.bytes, in->bytes.size);
        return;
    }
    if (step->kind == DECODER_BYTE_FALLBACK) {
        byte_fallback(in, out);
        return;
    }
    if (step->kind == DECODER_MARGIN) {
        margin(step, in, out);
        return;
    }
    for (size_t i = 0; i < in->count; i++) {
        size_t size;
        const char *text = token_at(in, i, &size);

        step_token(step, i, in->count, text, size, out);
    }
}

void decoder_run(const struct decoder *d, struct token_texts *texts, struct buffer *out)
{
    struct token_texts other = { 0 };

    for (size_t i = 0; i < d->count; i++) {
        struct token_texts done = *texts;

        other.count = 0;
        buffer_clear(&other.bytes);
        step_run(&d->steps[i], texts, &other);
        *texts = other;
        other = done;
    }
    for (size_t i = 0; d->absent && i < texts->count; i++) {
        size_t size;
        const char *text = token_at(texts, i, &size);

        if (i)
            buffer_add_u8(out, ' ');
        buffer_add(out, text, size);
    }
    if (!d->absent)
        buffer_add(out, texts->bytes.bytes, texts->bytes.size);
    token_texts_free(&other);
}
