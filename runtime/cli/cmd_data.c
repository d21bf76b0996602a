#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/source.h"
#include "native/text/conversation.h"
#include "runtime/cli/commands.h"
#include "runtime/role/bench.h"

enum { CONTEXT_MOST = 1 << 20, TEMPLATE_LIMIT = 1 << 20 };

/* A file of rows and what turns them into examples. */
struct reading {
    struct model_source *model;
    struct tokenizer *tokenizer;
    struct template *template;
    struct rows rows;
    struct conversation_format format;
};

static void reading_close(struct reading *r)
{
    rows_free(&r->rows);
    template_free(r->template);
    tokenizer_free(r->tokenizer);
    model_close(r->model);
}

/* The template of --template, else the model's; with neither, rows with messages are refused where they stand. */
static bool read_template(const struct invocation *in, struct reading *r, struct error *err)
{
    const char *path = option_text(in, "template", NULL), *own = model_chat_template(r->model);
    struct buffer text = { 0 };
    bool ok = true;

    if (path)
        ok = file_read(path, TEMPLATE_LIMIT, &text, err);
    else if (own)
        buffer_add(&text, own, strlen(own));
    if (ok && (path || own)) {
        r->template = template_new((const char *)text.bytes, text.size, err);
        ok = r->template || error_at(err, "%s", path ? path : "the model's chat template");
    }
    buffer_free(&text);
    return ok;
}

/* Texts are one stream, cut into rows of the context: they may be longer. The first row tells, as in training. */
static bool is_stream(const struct rows *rows, bool *stream, struct error *err)
{
    json_t *row = rows->count ? rows_read(rows, 0, err) : NULL;

    *stream = row && row_kind(row) == ROW_TEXT;
    json_decref(row);
    return row || rows->count == 0;
}

static bool reading_open(const struct invocation *in, struct reading *r, struct error *err)
{
    char pocket[4200];
    const char *path = option_text(in, "model", bench_pocket(pocket)), *date = option_text(in, "date", NULL);
    int64_t context;
    bool stream;

    r->model = model_open(path, err);
    if (!r->model)
        return false;
    context = bench_context(model_config(r->model), CONTEXT_MOST);
    if (!option_integer(in, "context", 8, CONTEXT_MOST, &context, err))
        return false;
    r->tokenizer = model_tokenizer(r->model, err);
    if (!r->tokenizer || !read_template(in, r, err))
        return false;
    if (!rows_open(&r->rows, in->argument[0], err) || !is_stream(&r->rows, &stream, err))
        return false;
    r->format = (struct conversation_format){ .tokenizer = r->tokenizer,
                                              .template = r->template,
                                              .variables = model_template_variables(r->model),
                                              .options = { .date = TEMPLATE_DATE },
                                              .context = stream ? SIZE_MAX : (size_t)context,
                                              .coalesce = option_flag(in, "coalesce"),
                                              .surround = option_flag(in, "surround"),
                                              .parse_special = option_flag(in, "parse-special") };
    if (date && !date_parse(date, &r->format.options.date, err)) {
        err->code = ERROR_USAGE;
        return error_at(err, "--date");
    }
    return true;
}

static json_t *drops_json(const struct reading *r, const struct conversation_counts *counts)
{
    json_t *list = json_array();
    char place[512];

    for (int i = 0; i < CONVERSATION_DROPS; i++) {
        if (!counts->dropped[i])
            continue;
        snprintf(place, sizeof place, "%s:%" PRIu32 ": %s", r->rows.name, counts->first[i].line, counts->first[i].detail);
        json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:s}", "reason", conversation_drop_name(i), "count",
                                              (json_int_t)counts->dropped[i], "text", conversation_drop_text(i), "first", place));
    }
    return list;
}

static json_t *counts_json(const struct reading *r, const struct conversation_counts *counts)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "file", r->rows.name, "rows", (json_int_t)counts->rows, "turns",
                     (json_int_t)counts->turns, "examples", (json_int_t)counts->examples, "tokens", (json_int_t)counts->tokens,
                     "trained", (json_int_t)counts->trained, "context",
                     r->format.context == SIZE_MAX ? json_null() : json_integer((json_int_t)r->format.context), "dropped",
                     drops_json(r, counts));
}

static bool any_dropped(const struct conversation_counts *counts)
{
    uint64_t sum = 0;

    for (int i = 0; i < CONVERSATION_DROPS; i++)
        sum += counts->dropped[i];
    return sum > 0;
}

/* Shows `limit` examples, then what the whole file gives. */
static int read_data(struct invocation *in, int64_t limit)
{
    struct reading r = { 0 };
    struct error err = { 0 };
    struct conversation_counts counts = { 0 };
    bool ok = reading_open(in, &r, &err);

    struct conversation_show show = { .limit = (size_t)limit,
                                      .colour = in->color,
                                      .tokens = limit && option_flag(in, "tokens"),
                                      .out = in->json ? NULL : stdout,
                                      .list = in->json && limit ? json_array() : NULL };

    ok = ok && conversation_preview(&r.format, &r.rows, &show, &counts, &err);
    if (ok && in->json) {
        json_t *told = counts_json(&r, &counts);

        if (show.list)
            json_object_set(told, "shown", show.list);
        command_print_json(told);
    }
    json_decref(show.list);
    reading_close(&r);
    if (!ok)
        return command_fail(in, &err);
    return any_dropped(&counts) || counts.examples == 0 ? EXIT_VERDICT : EXIT_OK;
}

static int check_main(struct invocation *in)
{
    return read_data(in, 0);
}

static int preview_main(struct invocation *in)
{
    struct error err = { 0 };
    int64_t limit = 3;

    if (!option_integer(in, "rows", 1, 1000000, &limit, &err))
        return command_fail(in, &err);

    int status = read_data(in, limit);

    return status == EXIT_VERDICT ? EXIT_OK : status;
}

#define DATA_TEXT                                                                                                                \
    "FILE has one JSON object a line: {\"messages\": [...], \"tools\": [...]} in OpenAI's shape, {\"text\": ...}, or a\n"        \
    "preference, image, series or prompt (docs/data.md). Of a conversation every\n"                                              \
    "assistant turn is one example; loss is on its tokens alone. A row that is no conversation is a fault, told as\n"            \
    "data.jsonl:3: messages[1].role, and exit status 3. A sound row that gives no example here (longer than the context, or\n"   \
    "with tools that the template does not print) is dropped and counted with its reason"

static const struct option check_options[] = {
    { "model", "PATH", "folder or .gguf file with tokenizer and template (default: the pocket model)" },
    { "template", "FILE", "chat template (default: the model's)" },
    { "context", "N", "most tokens of an example (default: the model's longest)" },
    { "coalesce", NULL, "put an example that begins the next one of its row into that one" },
    { "surround", NULL, "put around a row of text what the tokenizer puts around a text (BOS, EOS)" },
    { "parse-special", NULL, "special tokens in the texts of messages and tools are these tokens, not plain text" },
    { "date", "YYYY-MM-DD", "what strftime_now prints (default 2026-01-01)" },
    { NULL, NULL, NULL },
};

const struct command command_data_check = {
    "data check",
    "FILE",
    "read every row of a data file as training would",
    "rondo data check conversations.jsonl\nrondo data check cases.jsonl --model model.gguf --template "
    "scripts/runs/chatml_tools.jinja --json",
    DATA_TEXT "; exit status 1 when there are such rows.",
    check_options,
    check_main,
};

static const struct option preview_options[] = {
    { "model", "PATH", "folder or .gguf file with tokenizer and template (default: the pocket model)" },
    { "template", "FILE", "chat template (default: the model's)" },
    { "context", "N", "most tokens of an example (default: the model's longest)" },
    { "rows", "N", "examples to show (default 3)" },
    { "tokens", NULL, "a line a token: place, id, weight, text" },
    { "coalesce", NULL, "put an example that begins the next one of its row into that one" },
    { "surround", NULL, "put around a row of text what the tokenizer puts around a text (BOS, EOS)" },
    { "parse-special", NULL, "special tokens in the texts of messages and tools are these tokens, not plain text" },
    { "date", "YYYY-MM-DD", "what strftime_now prints (default 2026-01-01)" },
    { NULL, NULL, NULL },
};

const struct command command_data_preview = {
    "data preview",
    "FILE",
    "show examples as the template renders them, the trained part in colour",
    "rondo data preview conversations.jsonl\nrondo data preview conversations.jsonl --rows 1 --no-color",
    DATA_TEXT ".\nWithout colour the trained part stands between ⟦ and ⟧, a weight below 1 behind it. With --json the examples\n"
              "are in \"shown\": ids, weights and the byte of the text where each token ends.",
    preview_options,
    preview_main,
};
