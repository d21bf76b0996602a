#include <string.h>

#include "native/text/conversation.h"
#include "native/text/utf8.h"

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

static void print_part(FILE *out, const char *text, size_t size, float weight, bool colour)
{
    if (!size)
        return;
    if (weight > 0)
        fputs(colour ? "\x1b[32m" : "⟦", out);
    print_text(out, text, size);
    if (weight > 0)
        fputs(colour ? "\x1b[0m" : "⟧", out);
    if (weight > 0 && weight < 1)
        fprintf(out, "%s×%g%s", colour ? "\x1b[2m" : "", (double)weight, colour ? "\x1b[0m" : "");
}

static void print_tokens(FILE *out, const struct example *e)
{
    for (size_t i = 0; i < e->count; i++) {
        size_t start = i ? e->ends[i - 1] : 0;

        fprintf(out, "%6zu  %7u  %-5g  ", i, e->ids[i], (double)e->weights[i]);
        for (size_t at = start; at < e->ends[i]; at++)
            if (e->text[at] == '\n')
                fputs("\\n", out);
            else
                fputc((unsigned char)e->text[at] < 0x20 || e->text[at] == 0x7f ? '.' : e->text[at], out);
        fputs("\n", out);
    }
}

static const char *side_name(const struct example *e)
{
    return e->side == EXAMPLE_CHOSEN ? "chosen" : e->side == EXAMPLE_REJECTED ? "rejected" : NULL;
}

/* From dark to bright, the channels' mean. */
static void print_image(FILE *out, const struct example *e)
{
    static const char levels[] = " .:-=+*#%@";
    const size_t plane = (size_t)e->shape[1] * e->shape[2];
    double least = 0, most = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < plane; i++) {
            double sum = 0;

            for (size_t c = 0; c < e->shape[0]; c++)
                sum += (double)e->values[c * plane + i];
            if (pass == 0) {
                least = i == 0 || sum < least ? sum : least;
                most = i == 0 || sum > most ? sum : most;
                continue;
            }
            fputc(levels[most > least ? (size_t)((sum - least) / (most - least) * 9.0 + 0.5) : 0], out);
            if (i % e->shape[2] + 1 == e->shape[2])
                fputc('\n', out);
        }
}

static void print_numbers(FILE *out, const char *title, const float *values, size_t count)
{
    fputs(title, out);
    for (size_t i = 0; i < count && i < 64; i++)
        if (values[i] == values[i])
            fprintf(out, " %g", (double)values[i]);
        else
            fputs(" -", out);
    fputs(count > 64 ? " ...\n" : "\n", out);
}

static void print_labelled(FILE *out, const struct rows *rows, const struct example *e)
{
    if (e->shape[0]) {
        fprintf(out, "--- %s:%u image %u x %u x %u, label %g\n", rows->name, e->line, e->shape[0], e->shape[1], e->shape[2],
                (double)e->target[0]);
        print_image(out, e);
        return;
    }
    fprintf(out, "--- %s:%u series of %zu, target of %zu\n", rows->name, e->line, e->count, e->target_count);
    print_numbers(out, "series", e->values, e->count);
    print_numbers(out, "target", e->target, e->target_count);
}

static void print_example(FILE *out, const struct rows *rows, const struct example *e, const struct conversation_show *show)
{
    size_t trained = 0, at = 0, end = 0;

    if (e->values) {
        print_labelled(out, rows, e);
        return;
    }

    for (size_t i = 0; i < e->count; i++)
        trained += e->weights[i] > 0;
    if (e->side)
        fprintf(out, "--- %s:%u %s (%zu tokens, %zu trained)\n", rows->name, e->line, side_name(e), e->count, trained);
    else
        fprintf(out, "--- %s:%u messages[%u] (%zu tokens, %zu trained)\n", rows->name, e->line, e->turn, e->count, trained);
    if (show->tokens) {
        print_tokens(out, e);
        return;
    }
    for (size_t i = 0; i < e->count; i++) {
        end = e->ends[i];
        if (i + 1 == e->count || e->weights[i + 1] != e->weights[i]) {
            print_part(out, e->text + at, end - at, e->weights[i], show->colour);
            at = end;
        }
    }
    print_part(out, e->text + end, e->size - end, 0, show->colour);
    fputs("\n", out);
}

/* A list of numbers, null where nothing was observed. */
static json_t *numbers_json(const float *values, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, values[i] == values[i] ? json_real((double)values[i]) : json_null());
    return list;
}

json_t *example_json(const struct example *e)
{
    if (e->values)
        return json_pack("{s:I, s:o*, s:o, s:o}", "line", (json_int_t)e->line, "shape",
                         e->shape[0] ? json_pack("[i, i, i]", (int)e->shape[0], (int)e->shape[1], (int)e->shape[2]) : NULL,
                         "values", numbers_json(e->values, e->count), "target", numbers_json(e->target, e->target_count));

    json_t *tokens = json_array(), *weights = json_array(), *ends = json_array();

    for (size_t i = 0; i < e->count; i++) {
        json_array_append_new(tokens, json_integer(e->ids[i]));
        json_array_append_new(weights, json_real((double)e->weights[i]));
        json_array_append_new(ends, json_integer(e->ends[i]));
    }
    return json_pack("{s:I, s:I, s:s*, s:b, s:o, s:o, s:o, s:o}", "line", (json_int_t)e->line, "turn", (json_int_t)e->turn,
                     "side", side_name(e), "call", e->call, "ids", tokens, "weights", weights, "ends", ends, "text",
                     json_stringn(e->text, e->size));
}

static void print_counts(FILE *out, const struct rows *rows, const struct conversation_counts *counts)
{
    fprintf(out, "%llu rows, %llu examples", (unsigned long long)counts->rows, (unsigned long long)counts->examples);
    if (counts->turns > counts->examples)
        fprintf(out, " of %llu turns", (unsigned long long)counts->turns);
    fprintf(out, ", %llu tokens, %llu trained\n", (unsigned long long)counts->tokens, (unsigned long long)counts->trained);
    for (int reason = 0; reason < CONVERSATION_DROPS; reason++)
        if (counts->dropped[reason])
            fprintf(out, "%llu dropped, %s: %s (first: %s:%u %s)\n", (unsigned long long)counts->dropped[reason],
                    conversation_drop_name(reason), conversation_drop_text(reason), rows->name, counts->first[reason].line,
                    counts->first[reason].detail);
}

bool conversation_preview(const struct conversation_format *format, const struct rows *rows, const struct conversation_show *show,
                          struct conversation_counts *counts, struct error *err)
{
    struct examples list = { 0 };
    size_t shown = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < rows->count; i++) {
        ok = conversation_examples(format, rows, i, &list, counts, err);
        for (size_t j = 0; ok && j < list.count && shown < show->limit; j++, shown++) {
            if (show->out)
                print_example(show->out, rows, &list.items[j], show);
            if (show->list)
                json_array_append_new(show->list, example_json(&list.items[j]));
        }
        examples_free(&list);
    }
    if (show->out && ok)
        print_counts(show->out, rows, counts);
    return ok;
}

bool conversation_check(const struct conversation_format *format, const struct rows *rows, struct conversation_counts *counts,
                        struct error *err)
{
    return conversation_preview(format, rows, &(struct conversation_show){ 0 }, counts, err);
}
