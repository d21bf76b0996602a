#include "runtime/role/held_out.h"

#include <stdio.h>
#include <string.h>

#include "native/base/file.h"
#include "native/model/source.h"
#include "native/text/conversation.h"
#include "runtime/crypto/hash.h"
#include "runtime/doc/documents.h"
#include "runtime/role/run_file.h"

enum { TEMPLATE_LIMIT = 1 << 20 };

/* The run's template: a file the draft names, else the model's own. NULL without an error when there is neither. */
static struct template *read_template(const json_t *draft, const struct model_source *model, struct error *err)
{
    const char *path = document_text(draft, "chat_template"), *own = model_chat_template(model);
    struct buffer text = { 0 };
    struct template *template = NULL;
    char found[4096];

    if (path && strcmp(path, "model") != 0 && file_read(run_file_find(path, found), TEMPLATE_LIMIT, &text, err))
        template = template_new((const char *)text.bytes, text.size, err);
    else if (own && (!path || strcmp(path, "model") == 0))
        template = template_new(own, strlen(own), err);
    buffer_free(&text);
    if (!template && err->code != ERROR_NONE)
        error_at(err, "chat_template");
    return template;
}

static bool say_why_none(const struct rows *rows, const struct conversation_counts *counts, struct error *err)
{
    for (int i = 0; i < CONVERSATION_DROPS; i++)
        if (counts->dropped[i])
            return error_set(err, ERROR_RANGE, "rondo data check FILE tells of each row", "no row of %.150s can be evaluated: %s",
                             rows->name, conversation_drop_text(i));
    return error_set(err, ERROR_MISSING, NULL, "%.150s has no rows", rows->name);
}

/* Every row is read as the evaluation reads it. */
static bool rows_usable(const struct conversation_format *shape, const char *path, struct error *err)
{
    struct conversation_format format = *shape;
    struct conversation_counts counts = { 0 };
    struct rows rows = { 0 };
    bool ok = rows_open(&rows, path, err);
    json_t *first = ok && rows.count ? rows_read(&rows, 0, err) : NULL;

    ok = ok && (first || rows.count == 0);
    if (first && row_kind(first) == ROW_TEXT)
        format.context = SIZE_MAX; /* texts are one stream, cut into rows of the context later */
    json_decref(first);
    ok = ok && conversation_check(&format, &rows, &counts, err) && (counts.examples || say_why_none(&rows, &counts, err));
    rows_free(&rows);
    return ok;
}

/* Whether the file's first row is numbers rather than text: such a run needs no tokenizer. */
static bool is_labelled(const char *path)
{
    struct rows rows = { 0 };
    json_t *first = rows_open(&rows, path, NULL) && rows.count ? rows_read(&rows, 0, NULL) : NULL;
    bool labelled = first && row_kind(first) >= ROW_IMAGE;

    json_decref(first);
    rows_free(&rows);
    return labelled;
}

static bool read_as_run(const json_t *draft, const char *base, const char *path, struct error *err)
{
    char found[4096];
    const char *day = document_text(draft, "template_date");
    struct model_source *model = model_open(run_file_find(base, found), err);
    struct tokenizer *tokenizer = NULL;
    struct template *template = NULL;
    struct date date = TEMPLATE_DATE;
    bool ok;

    if (day && !date_parse(day, &date, err)) {
        model_close(model);
        return error_at(err, "template_date");
    }
    if (!model) {
        error_clear(err); /* the making of the run says what is wrong with it */
        return true;
    }
    tokenizer = model_tokenizer(model, err);
    template = tokenizer ? read_template(draft, model, err) : NULL;
    ok = tokenizer && err->code == ERROR_NONE;
    if (ok) {
        struct conversation_format format = { .tokenizer = tokenizer,
                                              .template = template,
                                              .variables = model_template_variables(model),
                                              .options = { .date = date },
                                              .parse_special = json_is_true(json_object_get(draft, "parse_special")),
                                              .context = (size_t)document_integer(draft, "context") };

        ok = rows_usable(&format, path, err) || error_at(err, "network.eval.data");
    }
    template_free(template);
    tokenizer_free(tokenizer);
    model_close(model);
    return ok;
}

bool held_out_check(const json_t *draft, const json_t *network, struct error *err)
{
    const json_t *eval = json_object_get(network, "eval"), *rows = json_object_get(eval, "rows");
    const char *path = document_text(eval, "data"), *base = document_text(draft, "base_model");
    char found[4096];
    struct hash stored;

    error_clear(err);
    if (!eval)
        return true;
    if (!path) {
        error_set(err, ERROR_MISSING, "eval = { data = \"held_out.jsonl\" }", "it names no data");
        return error_at(err, "network.eval");
    }
    if (rows && (!json_is_integer(rows) || json_integer_value(rows) < 1)) {
        error_set(err, ERROR_RANGE, "leave it out to evaluate all rows", "a whole number from 1 is needed");
        return error_at(err, "network.eval.rows");
    }
    path = run_file_find(path, found);
    if (!file_exists(path)) {
        error_set(err, ERROR_MISSING, "paths are relative to the folder the command runs in", "there is no file %s", path);
        return error_at(err, "network.eval.data");
    }
    if (json_object_get(draft, "reward"))
        return true; /* prompts: the worker reads them */
    if (is_labelled(path))
        return rows_usable(&(struct conversation_format){ 0 }, path, err) || error_at(err, "network.eval.data");
    if (!base || cid_parse(base, &stored, NULL) || document_integer(draft, "context") < 1)
        return true; /* the check of the spec says what is wrong there */
    return read_as_run(draft, base, path, err);
}
