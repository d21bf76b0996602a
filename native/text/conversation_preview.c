#include <string.h>

#include "native/text/conversation.h"
#include "native/text/utf8.h"

enum paint { PAINT_PLAIN, PAINT_TRAINED };

/* Text of a data file on a terminal: control characters are shown, not obeyed. */
static void print_text(FILE *out, const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end) {
        size_t length;
        uint32_t c = utf8_at(text, end, &length);

        if (c == UINT32_MAX || (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0))
            fprintf(out, "\\x%02x", (unsigned char)*text);
        else
            fwrite(text, 1, length, out);
        text += length;
    }
}

static void print_part(FILE *out, const char *text, size_t size, enum paint paint, bool colour)
{
    if (!size)
        return;
    if (paint == PAINT_TRAINED)
        fputs(colour ? "\x1b[32m" : "⟦", out);
    print_text(out, text, size);
    if (paint == PAINT_TRAINED)
        fputs(colour ? "\x1b[0m" : "⟧", out);
}

static void print_example(FILE *out, const struct rows *rows, const struct example *e, bool colour)
{
    size_t trained = 0;

    for (size_t i = 0; i < e->count; i++)
        trained += e->weights[i] > 0;
    fprintf(out, "--- %s:%u messages[%u] (%zu tokens, %zu trained)\n", rows->name, e->line, e->turn, e->count, trained);
    print_part(out, e->text, e->trained_start, PAINT_PLAIN, colour);
    print_part(out, e->text + e->trained_start, e->trained_end - e->trained_start, PAINT_TRAINED, colour);
    print_part(out, e->text + e->trained_end, e->size - e->trained_end, PAINT_PLAIN, colour);
    fputs("\n", out);
}

static void print_counts(FILE *out, const struct rows *rows, const struct conversation_counts *counts)
{
    fprintf(out, "%llu rows, %llu examples, %llu tokens, %llu trained\n", (unsigned long long)counts->rows,
            (unsigned long long)counts->examples, (unsigned long long)counts->tokens, (unsigned long long)counts->trained);
    for (int reason = 0; reason < CONVERSATION_DROPS; reason++)
        if (counts->dropped[reason])
            fprintf(out, "%llu dropped, %s: %s (first: %s:%u %s)\n", (unsigned long long)counts->dropped[reason],
                    conversation_drop_name(reason), conversation_drop_text(reason), rows->name, counts->first[reason].line,
                    counts->first[reason].detail);
}

bool conversation_preview(const struct conversation_format *format, const struct rows *rows, size_t limit, bool colour, FILE *out,
                          struct conversation_counts *counts, struct error *err)
{
    struct examples list = { 0 };
    size_t shown = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < rows->count; i++) {
        ok = conversation_examples(format, rows, i, &list, counts, err);
        for (size_t j = 0; out && ok && j < list.count && shown < limit; j++, shown++)
            print_example(out, rows, &list.items[j], colour);
        examples_free(&list);
    }
    if (out && ok)
        print_counts(out, rows, counts);
    return ok;
}

bool conversation_check(const struct conversation_format *format, const struct rows *rows, struct conversation_counts *counts,
                        struct error *err)
{
    return conversation_preview(format, rows, 0, false, NULL, counts, err);
}
