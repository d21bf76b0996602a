#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/text/conversation.h"
#include "native/text/dialect.h"
#include "native/text/picture.h"
#include "native/text/rows.h"
#include "runtime/cli/commands.h"

enum { FAULTS_TOLD = 20, PICTURE_LIMIT = 64 << 20 };

struct converting {
    const struct invocation *in;
    enum dialect shape;
    struct rows rows;
    FILE *out;
    uint64_t written, faults;
    json_t *first; /* the first FAULTS_TOLD faults */
};

static void tell_fault(struct converting *c, const struct error *err)
{
    char text[1024];

    if (c->faults++ >= FAULTS_TOLD)
        return;
    if (c->in->json)
        json_array_append_new(c->first, json_pack("{s:s, s:s, s:s, s:s}", "code", error_name(err->code), "place", err->place,
                                                  "message", err->message, "hint", err->hint));
    else
        fprintf(stderr, "%s\n", error_text(err, text, sizeof text));
}

/* A row whose image is a path, from the data file's folder: the picture takes the path's place. */
static json_t *with_picture(const struct converting *c, const json_t *row, struct error *err)
{
    const char *path = json_string_value(json_object_get(row, "image")), *slash = strrchr(c->rows.name, '/');
    struct buffer bytes = { 0 };
    char full[4200];
    json_t *image = NULL, *made = NULL;
    const int folder = slash && path[0] != '/' ? (int)(slash - c->rows.name + 1) : 0;

    if (snprintf(full, sizeof full, "%.*s%s", folder, c->rows.name, path) >= (int)sizeof full)
        error_set(err, ERROR_LIMIT, NULL, "the path is too long");
    else if (file_read(full, PICTURE_LIMIT, &bytes, err)) {
        image = picture_read(bytes.bytes, bytes.size, json_object_get(row, "shape"), err);
        if (!image)
            error_at(err, "%s", path);
    }
    buffer_free(&bytes);
    if (!image)
        return error_at(err, "image"), NULL;
    made = json_copy((json_t *)(uintptr_t)row);
    json_object_set_new(made, "image", image);
    json_object_del(made, "shape");
    return made;
}

static json_t *convert_row(const struct converting *c, json_t *row, struct error *err)
{
    switch (row_kind(row)) {
    case ROW_IMAGE:
        return json_is_string(json_object_get(row, "image")) ? with_picture(c, row, err) : json_incref(row);
    case ROW_PAIR:
    case ROW_SERIES:
        return json_incref(row);
    default:
        return dialect_convert(row, c->shape, err);
    }
}

static bool convert_rows(struct converting *c, struct error *err)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        struct error why = { 0 };
        json_t *row = rows_read(&c->rows, i, &why), *made = row ? convert_row(c, row, &why) : NULL;

        if (row && !made)
            error_at(&why, "%s:%" PRIu32, c->rows.name, c->rows.rows[i].line);
        if (made && (json_dumpf(made, c->out, JSON_COMPACT) != 0 || fputc('\n', c->out) == EOF))
            error_set(err, ERROR_IO, NULL, "cannot write");
        else if (made)
            c->written++;
        else
            tell_fault(c, &why);
        json_decref(row);
        json_decref(made);
        if (err->code != ERROR_NONE)
            return false;
    }
    return true;
}

/* The rows go to OUT.part first: what is at OUT is whole. */
static bool convert_file(struct converting *c, const char *path, struct error *err)
{
    char part[4200];
    bool ok;

    snprintf(part, sizeof part, "%.4000s.part", path);
    c->out = fopen(part, "wx");
    if (!c->out)
        return error_set(err, ERROR_IO, "another conversion may be writing it; remove it if not", "cannot create: %m") ||
               error_at(err, "%s", part);
    ok = convert_rows(c, err);
    if (fclose(c->out) != 0 && ok)
        ok = error_set(err, ERROR_IO, NULL, "cannot write: %m");
    if (ok && rename(part, path) != 0)
        ok = error_set(err, ERROR_IO, NULL, "cannot rename: %m");
    if (!ok)
        unlink(part);
    return ok || error_at(err, "%s", path);
}

static int convert_main(struct invocation *in)
{
    struct converting c = { .in = in, .first = json_array() };
    struct error err = { 0 };
    const char *from = option_text(in, "from", "auto"), *out = in->argument[1];
    bool ok = dialect_parse(from, &c.shape) ||
              error_set(&err, ERROR_USAGE, "one of auto, openai, sharegpt, hermes", "--from: unknown shape %.40s", from);

    ok = ok && rows_open(&c.rows, in->argument[0], &err) && convert_file(&c, out, &err);
    if (ok && in->json)
        command_print_json(json_pack("{s:s, s:s, s:I, s:I, s:I, s:O}", "file", c.rows.name, "out", out, "rows",
                                     (json_int_t)c.rows.count, "written", (json_int_t)c.written, "faults", (json_int_t)c.faults,
                                     "first", c.first));
    else if (ok) {
        if (c.faults > FAULTS_TOLD)
            fprintf(stderr, "... and %" PRIu64 " rows more\n", c.faults - FAULTS_TOLD);
        printf("%zu rows, %" PRIu64 " written to %s, %" PRIu64 " left out\n", c.rows.count, c.written, out, c.faults);
    }
    rows_free(&c.rows);
    json_decref(c.first);
    if (!ok)
        return command_fail(in, &err);
    return c.faults || !c.written ? EXIT_VERDICT : EXIT_OK;
}

static const struct option convert_options[] = {
    { "from", "SHAPE", "openai, sharegpt or hermes (default: auto, by each row's fields)" },
    { NULL, NULL, NULL },
};

const struct command command_data_convert = {
    "data convert",
    "FILE OUT",
    "turn a data file of another shape into one that training reads",
    "rondo data convert sharegpt.jsonl data.jsonl\nrondo data convert hermes.jsonl.zst data.jsonl --from hermes --json",
    "FILE is JSONL, plain or compressed with gzip or zstd. A row that is no conversation is left out and told in one line, with\n"
    "file, line, field and what to do; exit status 1 when there are such rows. The rest is written to OUT, one row a line. Of a "
    "row\n"
    "{\"image\": PATH, \"label\": N} the picture, a PPM or PGM file or raw bytes with \"shape\", takes the place of its path.",
    convert_options,
    convert_main,
};
