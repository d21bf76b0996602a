#include "runtime/role/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/text/rows.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/documents.h"
#include "runtime/role/course.h"
#include "runtime/role/run_file.h"
#include "runtime/store/object.h"

enum { SHARE_ONE = 1000000000, FILES_MOST = 4096 };

/* ---- shards ---- */

struct shards {
    struct buffer *bytes; /* owned, `count` */
    uint64_t *rows;       /* owned, `count` */
    uint32_t count;
};

static void shards_new(struct shards *s, uint32_t count)
{
    *s = (struct shards){ calloc(count, sizeof *s->bytes), calloc(count, sizeof *s->rows), count };
    if (!s->bytes || !s->rows)
        abort();
}

static void shards_free(struct shards *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        buffer_free(&s->bytes[i]);
    free(s->bytes);
    free(s->rows);
}

/* To one of the shards first to last. */
static void add_row(struct shards *s, const char *line, uint32_t size, uint32_t first, uint32_t last)
{
    struct hash hash = hash_typed("rondo/row", line, size);
    uint32_t at;

    memcpy(&at, hash.bytes, sizeof at);
    at = first + at % (last - first + 1);
    buffer_add(&s->bytes[at], line, size);
    buffer_add_u8(&s->bytes[at], '\n');
    s->rows[at]++;
}

static bool add_file(struct shards *s, const char *path, struct error *err)
{
    struct rows rows = { 0 };
    char found[4096];
    bool ok = rows_open(&rows, run_file_find(path, found), err);

    for (size_t i = 0; ok && i < rows.count; i++)
        add_row(s, rows.bytes + rows.rows[i].offset, rows.rows[i].size, 0, s->count - 1);
    rows_free(&rows);
    return ok;
}

/* ---- a mix ---- */

struct corpus {
    struct rows *files; /* owned, `count` */
    size_t count;
    int64_t share; /* of SHARE_ONE */
    uint64_t size; /* bytes of all rows */
    uint64_t rows;
    uint64_t taken_size, taken_rows;
    uint32_t first, last; /* shards that its rows go to */
};

/* A row in the order of the choice; its place in the files. */
struct candidate {
    struct hash order;
    size_t file, row;
};

static void corpora_free(struct corpus *corpora, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < corpora[i].count; j++)
            rows_free(&corpora[i].files[j]);
        free(corpora[i].files);
    }
    free(corpora);
}

static bool open_corpus(struct corpus *c, const json_t *described, struct error *err)
{
    const json_t *files = json_object_get(described, "files"), *share = json_object_get(described, "share"), *file;
    double part = json_decimal(share, -1);
    char found[4096];
    size_t index;

    c->share = part >= 0 && part <= 1 ? llround(part * SHARE_ONE) : 0;
    if (c->share < 1)
        return error_set(err, ERROR_RANGE, "share = 0.25", "a number above 0 and up to 1 is needed") || error_at(err, "share");
    if (!json_is_array(files) || json_array_size(files) == 0 || json_array_size(files) > FILES_MOST)
        return error_set(err, ERROR_TYPE, "name files in every corpus, or in the dataset alone", "not a list of 1 to %d paths",
                         FILES_MOST) ||
               error_at(err, "files");
    c->files = calloc(json_array_size(files), sizeof *c->files);
    if (!c->files)
        abort();
    json_array_foreach(files, index, file)
    {
        struct rows *rows = &c->files[c->count];

        if (!json_is_string(file))
            return error_set(err, ERROR_TYPE, NULL, "files[%zu] is no path", index);
        c->count++;
        if (!rows_open(rows, run_file_find(json_string_value(file), found), err))
            return false;
        c->rows += rows->count;
        for (size_t i = 0; i < rows->count; i++)
            c->size += rows->rows[i].size;
    }
    return c->rows > 0 || error_set(err, ERROR_MISSING, "leave the corpus out", "its files hold no row") ||
           error_at(err, "files");
}

/* `shards` = { first, last } of a corpus that is to stand apart from others; else all. */
static bool read_place(struct corpus *c, const json_t *described, uint32_t count, struct error *err)
{
    const json_t *place = json_object_get(described, "shards"), *first = json_array_get(place, 0),
                 *last = json_array_get(place, 1);

    c->first = 0;
    c->last = count - 1;
    if (!place)
        return true;
    if (json_array_size(place) != 2 || !json_is_integer(first) || !json_is_integer(last) || json_integer_value(first) < 0 ||
        json_integer_value(first) > json_integer_value(last) || json_integer_value(last) >= count)
        return error_set(err, ERROR_RANGE, "shards = { 0, 3 }: the first and the last that hold it",
                         "not two of the %u shards, which count from 0", count) ||
               error_at(err, "shards");
    c->first = (uint32_t)json_integer_value(first);
    c->last = (uint32_t)json_integer_value(last);
    return true;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int order = hash_compare(x->order, y->order);

    if (order)
        return order;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int compare_places(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* All rows of the corpus, in the order of the choice. */
static struct candidate *draw_order(const struct corpus *c, uint64_t seed)
{
    struct candidate *all = calloc(c->rows, sizeof *all);
    size_t at = 0;

    if (!all)
        abort();
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = 0; j < c->files[i].count; j++) {
            const struct row *row = &c->files[i].rows[j];
            struct hasher h;

            hash_start(&h, "rondo/mix");
            hash_u64(&h, seed);
            hash_part(&h, c->files[i].bytes + row->offset, row->size);
            all[at++] = (struct candidate){ hash_end(&h), i, j };
        }
    qsort(all, at, sizeof *all, compare_candidates);
    return all;
}

/* Rows of at most `want` bytes go to the shards, in the order of the files. */
static void take_rows(struct corpus *c, uint64_t want, uint64_t seed, struct shards *s)
{
    struct candidate *all = draw_order(c, seed);
    size_t taken = 0;

    while (taken < c->rows) {
        uint32_t size = c->files[all[taken].file].rows[all[taken].row].size;

        if (c->taken_size + size > want)
            break;
        c->taken_size += size;
        taken++;
    }
    c->taken_rows = taken;
    qsort(all, taken, sizeof *all, compare_places);
    for (size_t i = 0; i < taken; i++) {
        const struct rows *rows = &c->files[all[i].file];

        add_row(s, rows->bytes + rows->rows[all[i].row].offset, rows->rows[all[i].row].size, c->first, c->last);
    }
    free(all);
}

/* size / share is least where the whole corpus is taken: the others get share : share of it. */
static void mix(struct corpus *corpora, size_t count, uint64_t seed, struct shards *s)
{
    size_t least = 0;

    for (size_t i = 1; i < count; i++)
        if ((unsigned __int128)corpora[i].size * (uint64_t)corpora[least].share <
            (unsigned __int128)corpora[least].size * (uint64_t)corpora[i].share)
            least = i;
    for (size_t i = 0; i < count; i++)
        take_rows(
            &corpora[i],
            (uint64_t)((unsigned __int128)corpora[least].size * (uint64_t)corpora[i].share / (uint64_t)corpora[least].share),
            seed, s);
}

static json_t *share_text(int64_t share)
{
    char text[16];
    size_t size;

    if (share == SHARE_ONE)
        return json_string("1");
    size = (size_t)snprintf(text, sizeof text, "0.%09lld", (long long)share);
    while (text[size - 1] == '0')
        text[--size] = '\0';
    return json_string(text);
}

static json_t *told(const struct corpus *corpora, const json_t *described)
{
    json_t *list = json_array(), *of;
    size_t i;

    json_array_foreach(described, i, of)
    {
        const struct corpus *c = &corpora[i];
        json_t *one =
            json_pack("{s:o, s:I, s:I, s:I, s:I}", "share", share_text(c->share), "rows", (json_int_t)c->taken_rows, "size",
                      (json_int_t)c->taken_size, "of_rows", (json_int_t)c->rows, "of_size", (json_int_t)c->size);

        if (json_object_get(of, "name"))
            json_object_set(one, "name", json_object_get(of, "name"));
        if (json_object_get(of, "licence"))
            json_object_set(one, "licence", json_object_get(of, "licence"));
        json_array_append_new(list, one);
    }
    return list;
}

/* The corpora's files, chosen by share; *list says what was taken. */
static bool add_mix(struct shards *s, const json_t *described, uint64_t seed, json_t **list, struct error *err)
{
    size_t count = json_array_size(described);
    struct corpus *corpora = calloc(count, sizeof *corpora);
    int64_t sum = 0;
    bool ok = true;

    if (!corpora)
        abort();
    for (size_t i = 0; ok && i < count; i++) {
        ok = (open_corpus(&corpora[i], json_array_get(described, i), err) &&
              read_place(&corpora[i], json_array_get(described, i), s->count, err)) ||
             error_at(err, "corpora[%zu]", i);
        sum += corpora[i].share;
    }
    if (ok && sum != SHARE_ONE)
        ok = error_set(err, ERROR_RANGE, "make them add up to 1", "the shares add up to %.9g", (double)sum / SHARE_ONE) ||
             error_at(err, "corpora");
    if (ok) {
        mix(corpora, count, seed, s);
        *list = told(corpora, described);
    }
    corpora_free(corpora, count);
    return ok;
}

/* ---- manifest ---- */

static bool put_shards(const struct block_store *blocks, const struct shards *s, json_t *manifest, struct error *err)
{
    json_t *list = json_array();
    uint64_t rows = 0;
    bool ok = true;

    json_object_set_new(manifest, "shards", list);
    for (uint32_t i = 0; ok && i < s->count; i++) {
        struct hash id;
        char cid[CID_TEXT];

        rows += s->rows[i];
        if (s->rows[i] == 0)
            ok = error_set(err, ERROR_RANGE, "use fewer shards", "shard %u of %u holds no row", i, s->count);
        ok = ok && object_put(blocks, SHARD_MEDIA, s->bytes[i].bytes, s->bytes[i].size, &id, err);
        if (ok)
            json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "object", cid_text(id, cid), "rows", (json_int_t)s->rows[i],
                                                  "size", (json_int_t)s->bytes[i].size));
    }
    json_object_set_new(manifest, "rows", json_integer((json_int_t)rows));
    return ok;
}

static bool put_manifest(const struct block_store *blocks, const json_t *manifest, json_t *dataset, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    char cid[CID_TEXT];
    bool ok = canonical_write(manifest, &bytes, err) && block_put(blocks, bytes.bytes, bytes.size, &id, err);

    if (ok)
        json_object_set_new(dataset, "manifest", json_string(cid_text(id, cid)));
    buffer_free(&bytes);
    return ok;
}

static bool add_files(struct shards *s, const json_t *files, struct error *err)
{
    json_t *file;
    size_t index;

    json_array_foreach(files, index, file)
    {
        if (!json_is_string(file))
            return error_set(err, ERROR_TYPE, NULL, "files[%zu] is no path", index);
        if (!add_file(s, json_string_value(file), err))
            return false;
    }
    return true;
}

static bool any_files(const json_t *corpora)
{
    json_t *corpus;
    size_t index;

    json_array_foreach(corpora, index, corpus)
    {
        if (json_object_get(corpus, "files"))
            return true;
    }
    return false;
}

static bool put(const struct block_store *blocks, json_t *dataset, bool mixed, uint32_t count, struct error *err)
{
    json_t *seed = json_object_get(dataset, "seed"), *manifest = json_pack("{s:i}", "version", 1), *list = NULL;
    struct shards s;
    bool ok;

    shards_new(&s, count);
    ok = mixed ? add_mix(&s, json_object_get(dataset, "corpora"), (uint64_t)json_integer_value(seed), &list, err)
               : add_files(&s, json_object_get(dataset, "files"), err);
    if (list) {
        json_object_set_new(manifest, "corpora", list);
        json_object_set_new(manifest, "seed", json_integer(json_integer_value(seed)));
    }
    ok = ok && put_shards(blocks, &s, manifest, err) && put_manifest(blocks, manifest, dataset, err);
    json_decref(manifest);
    shards_free(&s);
    return ok;
}

bool dataset_put(const struct block_store *blocks, json_t *dataset, struct error *err)
{
    json_t *files = json_object_get(dataset, "files"), *seed = json_object_get(dataset, "seed"),
           *corpora = json_object_get(dataset, "corpora"), *corpus;
    int64_t count = document_integer(dataset, "shards");
    bool mixed = any_files(corpora), ok;
    size_t index;

    if (!files && !mixed)
        return true;
    if (files && mixed)
        return error_set(err, ERROR_CONFLICT, "name files in every corpus, or in the dataset alone",
                         "files in the dataset and in its corpora") ||
               error_at(err, "dataset.files");
    if (seed && (!mixed || !json_is_integer(seed) || json_integer_value(seed) < 0))
        return error_set(err, ERROR_RANGE, "leave it out where corpora have no files",
                         "a whole number from 0 for a mix of corpora") ||
               error_at(err, "dataset.seed");
    if (count < 1 || count > 65536)
        return error_set(err, ERROR_RANGE, NULL, "%lld is not between 1 and 65536", (long long)count) ||
               error_at(err, "dataset.shards");
    ok = put(blocks, dataset, mixed, (uint32_t)count, err);
    json_object_del(dataset, "files");
    json_object_del(dataset, "seed");
    json_array_foreach(corpora, index, corpus)
    {
        json_object_del(corpus, "files");
    }
    return ok || error_at(err, "dataset");
}

bool dataset_put_rows(const struct block_store *blocks, const char *path, struct hash *id, uint64_t *rows, struct error *err)
{
    struct shards s;
    bool ok;

    shards_new(&s, 1);
    ok = add_file(&s, path, err) && object_put(blocks, SHARD_MEDIA, s.bytes[0].bytes, s.bytes[0].size, id, err);
    *rows = s.rows[0];
    shards_free(&s);
    return ok;
}

/* ---- rows by their files ---- */

/* The file and line of a row like this one. */
static bool row_found(const json_t *files, const char *bytes, size_t size, char *place, size_t room)
{
    const json_t *file;
    size_t index;
    bool found = false;

    json_array_foreach(files, index, file)
    {
        struct rows rows = { 0 };
        struct error none = { 0 };
        char path[4096];

        if (!found && json_is_string(file) && rows_open(&rows, run_file_find(json_string_value(file), path), &none))
            for (size_t i = 0; i < rows.count && !found; i++) {
                const struct row *row = &rows.rows[i];

                found = row->size == size && memcmp(rows.bytes + row->offset, bytes, size) == 0;
                if (found)
                    snprintf(place, room, "%s:%u", rows.name, row->line);
            }
        rows_free(&rows);
    }
    return found;
}

static bool row_found_in_any(const json_t *dataset, const char *bytes, size_t size, char *place, size_t room)
{
    const json_t *corpus;
    size_t index;

    if (row_found(json_object_get(dataset, "files"), bytes, size, place, room))
        return true;
    json_array_foreach(json_object_get(dataset, "corpora"), index, corpus)
    {
        if (row_found(json_object_get(corpus, "files"), bytes, size, place, room))
            return true;
    }
    return false;
}

void dataset_name_row(const struct block_store *blocks, const json_t *dataset, struct error *err)
{
    char cid[CID_TEXT], file[200], place[sizeof err->place];
    char *at = strstr(err->place, "bafk"), *colon = at ? strchr(at, ':') : NULL, *after;
    const unsigned long line = colon ? strtoul(colon + 1, &after, 10) : 0;
    struct buffer bytes = { 0 };
    struct rows rows = { 0 };
    struct error none = { 0 };
    struct hash id;
    bool found = false;

    if (!line || (size_t)(colon - at) >= sizeof cid)
        return;
    snprintf(cid, sizeof cid, "%.*s", (int)(colon - at), at);
    if (cid_parse(cid, &id, &none) && object_get(blocks, id, SHARD_MEDIA, UINT64_C(1) << 30, &bytes, &none) &&
        rows_of(&rows, cid, (const char *)bytes.bytes, bytes.size, &none))
        for (size_t i = 0; i < rows.count && !found; i++)
            found = rows.rows[i].line == line &&
                    row_found_in_any(dataset, rows.bytes + rows.rows[i].offset, rows.rows[i].size, file, sizeof file);
    if (found) {
        snprintf(place, sizeof place, "%.*s%s%s", (int)(at - err->place), err->place, file, after);
        memcpy(err->place, place, sizeof place);
    }
    rows_free(&rows);
    buffer_free(&bytes);
}
