/* rows.h - the lines of a JSONL file, found once, read where they lie.
 *
 *     file (memory-mapped)  {"messages": ...}\n{"messages": ...}\n\n{"text": ...}\n
 *     rows                   ^offset, size, line 1   ^line 2            ^line 4
 *
 * Lines of white space only are no rows. A row's JSON is parsed when asked for, so a file larger than memory can be used.
 * A file that is gzip or zstd (unpack.h) is unpacked to memory first. Its rows are those of the plain file, byte for byte.
 */
#ifndef RONDO_TEXT_ROWS_H
#define RONDO_TEXT_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

enum { ROWS_MAX_SIZE = 16 << 20 };          /* bytes of one row                 */
#define ROWS_MAX_UNPACKED ((size_t)4 << 30) /* of what a compressed file holds */

struct row {
    uint64_t offset;
    uint32_t size, line; /* line counts from 1 */
};

struct rows {
    char *name;        /* owned; the path as in error messages */
    const char *bytes; /* the file; mapped, or borrowed         */
    size_t size;
    struct row *rows; /* owned, `count` */
    size_t count;
    bool mapped;
    void *unpacked; /* owned: `bytes` of a compressed file, else NULL */
};

/* Errors: missing, io, limit (a row too long: "data.jsonl:3"), those of unpack. Free with rows_free, after a failure too.
 * rows_of borrows the bytes and unpacks nothing: what comes from a peer is plain. */
bool rows_open(struct rows *rows, const char *path, struct error *err);
bool rows_of(struct rows *rows, const char *name, const char *bytes, size_t size, struct error *err);
void rows_free(struct rows *rows);

/* The JSON object of row `index`; the caller owns it. NULL with `err`: syntax, type, duplicate, limit, place "data.jsonl:3". */
json_t *rows_read(const struct rows *rows, size_t index, struct error *err);

#endif
