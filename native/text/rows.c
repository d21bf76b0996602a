#include "native/text/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/unpack.h"
#include "native/text/utf8.h"

enum { MAX_ROWS = 100000000 };

static bool blank(const char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!memchr(" \t\r", at[i], 3))
            return false;
    return true;
}

static bool add(struct rows *rows, size_t *capacity, struct row row)
{
    if (rows->count == *capacity) {
        size_t grown = *capacity ? *capacity * 2 : 256;
        struct row *more = reallocarray(rows->rows, grown, sizeof *more);

        if (!more)
            return false;
        rows->rows = more;
        *capacity = grown;
    }
    rows->rows[rows->count++] = row;
    return true;
}

static bool find_rows(struct rows *rows, struct error *err)
{
    size_t capacity = 0, at = 0;
    uint32_t line = 1;

    for (; at < rows->size; line++) {
        const char *start = rows->bytes + at, *end = memchr(start, '\n', rows->size - at);
        size_t size = end ? (size_t)(end - start) : rows->size - at;

        if (!blank(start, size)) {
            if (size > ROWS_MAX_SIZE)
                return error_set(err, ERROR_LIMIT, "split the row", "a row of %zu bytes, at most %d are read", size,
                                 ROWS_MAX_SIZE) ||
                       error_at(err, "%s:%u", rows->name, line);
            if (rows->count == MAX_ROWS)
                return error_set(err, ERROR_LIMIT, "split the file", "more than %d rows", MAX_ROWS) ||
                       error_at(err, "%s", rows->name);
            if (!add(rows, &capacity, (struct row){ at, (uint32_t)size, line }))
                return error_set(err, ERROR_MEMORY, NULL, "no memory for the index of rows") || error_at(err, "%s", rows->name);
        }
        at += size + (end != NULL);
    }
    return true;
}

/* The map of a compressed file gives way to what it holds. */
static bool unpack_rows(struct rows *rows, struct error *err)
{
    struct buffer out = { 0 };
    bool ok = unpack(rows->bytes, rows->size, ROWS_MAX_UNPACKED, &out, err);

    file_unmap(rows->bytes, rows->size);
    rows->mapped = false;
    rows->unpacked = out.bytes;
    rows->bytes = out.bytes ? (const char *)out.bytes : "";
    rows->size = out.size;
    return ok || error_at(err, "%s", rows->name);
}

bool rows_open(struct rows *rows, const char *path, struct error *err)
{
    *rows = (struct rows){ .name = strdup(path) };
    rows->bytes = file_map(path, &rows->size, err);
    rows->mapped = rows->bytes != NULL;
    if (!rows->mapped)
        return false;
    if (rows->size >= 4 && !memcmp(rows->bytes, "PAR1", 4))
        return error_set(err, ERROR_UNSUPPORTED, "docs/data.md has the line that makes it JSONL", "a Parquet file") ||
               error_at(err, "%s", path);
    return (unpack_form_of(rows->bytes, rows->size) == UNPACK_PLAIN || unpack_rows(rows, err)) && find_rows(rows, err);
}

bool rows_of(struct rows *rows, const char *name, const char *bytes, size_t size, struct error *err)
{
    *rows = (struct rows){ .name = strdup(name), .bytes = bytes, .size = size };
    return find_rows(rows, err);
}

void rows_free(struct rows *rows)
{
    if (rows->mapped)
        file_unmap(rows->bytes, rows->size);
    free(rows->unpacked);
    free(rows->name);
    free(rows->rows);
    *rows = (struct rows){ 0 };
}

json_t *rows_read(const struct rows *rows, size_t index, struct error *err)
{
    struct row row = rows->rows[index];
    size_t fault;
    json_t *value = json_read(rows->bytes + row.offset, row.size, ROWS_MAX_SIZE, err);

    if (value && !json_is_object(value)) {
        json_decref(value);
        value = NULL;
        error_set(err, ERROR_TYPE, "a row is {\"messages\": [...]}, {\"text\": \"...\"} or {\"parts\": [...]}", "not an object");
    } else if (!value && err && !strncmp(err->place, "line 1, ", 8)) {
        memmove(err->place, err->place + 8, strlen(err->place + 8) + 1); /* the file's line comes before it */
    }
    if (!value && err && err->code == ERROR_SYNTAX && !utf8_valid(rows->bytes + row.offset, row.size, &fault))
        snprintf(err->hint, sizeof err->hint,
                 "the row is not UTF-8 from byte %zu on: iconv -f WINDOWS-1252 -t UTF-8 converts a file", fault + 1);
    if (!value)
        error_at(err, "%s:%u", rows->name, row.line);
    return value;
}
