#include "runtime/store/object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/schema.h"

/* ---- Manifests ------------------------------------------------------------------------------------------------------------- */

enum { CHUNKS = (BLOCK_SIZE - 256) / (CID_TEXT + 2) }; /* that fit a manifest of one block */

static const struct schema_field a_chunk = { .kind = SCHEMA_CID };
static const struct schema_field manifest_fields[] = {
    FIELD("chunk", INTEGER, .least = 1024, .most = BLOCK_SIZE), FIELD("chunks", LIST, .item = &a_chunk, .most = CHUNKS),
    FIELD("media", TEXT, .least = 1, .most = OBJECT_MEDIA - 1), FIELD("size", INTEGER),
    FIELD("version", INTEGER, .least = 1, .most = 1),
};
static const struct schema manifest_schema = SCHEMA(manifest_fields);

void manifest_free(struct manifest *m)
{
    free(m->chunks);
    *m = (struct manifest){ 0 };
}

static uint64_t chunks_of(uint64_t size, uint32_t chunk)
{
    return size == 0 ? 0 : (size - 1) / chunk + 1;
}

static bool read_manifest(const json_t *json, const char *media, uint64_t limit, struct manifest *out, struct error *err)
{
    const json_t *chunks = json_object_get(json, "chunks");

    if (!schema_check(&manifest_schema, json, err))
        return false;
    snprintf(out->media, sizeof out->media, "%s", json_string_value(json_object_get(json, "media")));
    out->size = (uint64_t)json_integer_value(json_object_get(json, "size"));
    out->chunk = (uint32_t)json_integer_value(json_object_get(json, "chunk"));
    out->count = json_array_size(chunks);
    if (media && strcmp(media, out->media) != 0)
        return error_set(err, ERROR_TYPE, NULL, "an object of type %s is needed, this is %s", media, out->media);
    if (out->size > limit)
        return error_set(err, ERROR_LIMIT, NULL, "an object of %llu bytes, at most %llu are taken", (unsigned long long)out->size,
                         (unsigned long long)limit);
    if (out->count != chunks_of(out->size, out->chunk))
        return error_set(err, ERROR_RANGE, NULL, "%zu chunks of %u bytes do not make %llu bytes", out->count, out->chunk,
                         (unsigned long long)out->size);
    out->chunks = malloc((out->count + 1) * sizeof *out->chunks);
    if (!out->chunks)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu chunks", out->count);
    for (size_t i = 0; i < out->count; i++)
        cid_parse(json_string_value(json_array_get(chunks, i)), &out->chunks[i], NULL);
    return true;
}

bool manifest_parse(const void *bytes, size_t size, const char *media, uint64_t limit, struct manifest *out, struct error *err)
{
    json_t *json = canonical_read(bytes, size, err);

    *out = (struct manifest){ 0 };
    if (!json)
        return error_at(err, "manifest");

    bool ok = read_manifest(json, media, limit, out, err);

    json_decref(json);
    if (!ok)
        manifest_free(out);
    return ok || error_at(err, "manifest");
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------- */

/* Without a store only the id is computed. */
static bool put_block(const struct block_store *store, struct hash id, const void *bytes, size_t size, struct error *err)
{
    return !store || block_put_hashed(store, id, bytes, size, err);
}

static bool put_manifest(const struct block_store *store, const char *media, uint64_t size, json_t *chunks, struct hash *id,
                         struct error *err)
{
    struct buffer text = { 0 };
    json_t *json = json_pack("{s:i, s:O, s:s, s:I, s:i}", "chunk", BLOCK_SIZE, "chunks", chunks, "media", media, "size",
                             (json_int_t)size, "version", 1);
    bool ok = canonical_write(json, &text, err);

    if (ok) {
        *id = hash_block(text.bytes, text.size);
        ok = put_block(store, *id, text.bytes, text.size, err);
    }
    json_decref(json);
    buffer_free(&text);
    return ok;
}

/* The ids of up to TOGETHER chunks, the last of which may be short: whole ones at once. */
enum { TOGETHER = 8 };

static void hash_chunks(const uint8_t *bytes, size_t size, struct hash *ids)
{
    const size_t whole = size / BLOCK_SIZE;

    hash_many(NULL, bytes, BLOCK_SIZE, whole, ids);
    if (size % BLOCK_SIZE)
        ids[whole] = hash_block(bytes + whole * BLOCK_SIZE, size % BLOCK_SIZE);
}

static bool put_object(const struct block_store *store, const char *media, const uint8_t *bytes, size_t size, struct hash *id,
                       struct error *err)
{
    json_t *chunks = json_array();
    struct hash ids[TOGETHER];
    bool ok =
        chunks_of(size, BLOCK_SIZE) <= CHUNKS || error_set(err, ERROR_LIMIT, NULL, "%zu bytes do not fit one manifest", size);

    for (size_t at = 0; ok && at < size; at += BLOCK_SIZE) {
        const size_t left = size - at, i = at / BLOCK_SIZE % TOGETHER;
        char cid[CID_TEXT];

        if (i == 0)
            hash_chunks(bytes + at, left < TOGETHER * BLOCK_SIZE ? left : TOGETHER * BLOCK_SIZE, ids);
        ok = put_block(store, ids[i], bytes + at, left < BLOCK_SIZE ? left : BLOCK_SIZE, err);
        if (ok)
            json_array_append_new(chunks, json_string(cid_text(ids[i], cid)));
    }
    ok = ok && put_manifest(store, media, size, chunks, id, err);
    json_decref(chunks);
    return ok;
}

bool object_put(const struct block_store *store, const char *media, const void *bytes, size_t size, struct hash *id,
                struct error *err)
{
    return put_object(store, media, bytes, size, id, err);
}

bool object_id(const char *media, const void *bytes, size_t size, struct hash *id, struct error *err)
{
    return put_object(NULL, media, bytes, size, id, err);
}

bool object_put_file(const struct block_store *store, const char *media, const char *path, struct hash *id, struct error *err)
{
    size_t size;
    const void *bytes = file_map(path, &size, err);

    if (!bytes)
        return false;

    bool ok = put_object(store, media, bytes, size, id, err);

    file_unmap(bytes, size);
    return ok || error_at(err, "%s", path);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

static bool object_error(struct hash id, struct error *err)
{
    char cid[CID_TEXT];

    return error_at(err, "object %s", cid_text(id, cid));
}

bool object_manifest(const struct block_store *store, struct hash id, const char *media, uint64_t limit, struct manifest *out,
                     struct error *err)
{
    struct buffer text = { 0 };
    bool ok = block_get(store, id, &text, err) && manifest_parse(text.bytes, text.size, media, limit, out, err);

    buffer_free(&text);
    return ok || object_error(id, err);
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, HASH_SIZE);
}

bool object_missing(const struct block_store *store, const struct manifest *m, struct hash **missing, size_t *count,
                    struct error *err)
{
    struct hash *list = malloc((m->count + 1) * sizeof *list);
    size_t lacking = 0, distinct = 0;

    if (!list)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu chunks", m->count);
    for (size_t i = 0; i < m->count; i++)
        if (!block_has(store, m->chunks[i]))
            list[lacking++] = m->chunks[i];
    /* A chunk that stands twice (of zeros, say) is asked for once. */
    qsort(list, lacking, sizeof *list, by_hash);
    for (size_t i = 0; i < lacking; i++)
        if (i == 0 || !hash_equal(list[i], list[i - 1]))
            list[distinct++] = list[i];
    *missing = list;
    *count = distinct;
    return true;
}

static bool get_chunk(const struct block_store *store, const struct manifest *m, size_t i, struct buffer *out, struct error *err)
{
    size_t before = out->size;
    uint64_t left = m->size - (uint64_t)i * m->chunk;
    uint64_t expected = left < m->chunk ? left : m->chunk;

    if (!block_get(store, m->chunks[i], out, err))
        return error_at(err, "chunk %zu", i);
    if (out->size - before == expected)
        return true;
    error_set(err, ERROR_MISMATCH, NULL, "%zu bytes where the manifest says %llu", out->size - before,
              (unsigned long long)expected);
    out->size = before;
    return error_at(err, "chunk %zu", i);
}

bool object_get(const struct block_store *store, struct hash id, const char *media, uint64_t limit, struct buffer *out,
                struct error *err)
{
    struct manifest m;
    size_t before = out->size;
    bool ok = true;

    if (!object_manifest(store, id, media, limit, &m, err))
        return false;
    buffer_reserve(out, m.size + 65536);
    for (size_t i = 0; ok && i < m.count; i++)
        ok = get_chunk(store, &m, i, out, err);
    manifest_free(&m);
    if (!ok)
        out->size = before;
    return ok || object_error(id, err);
}

static bool write_chunks(const struct block_store *store, const struct manifest *m, int fd, const char *path, struct error *err)
{
    struct buffer chunk = { 0 };
    bool ok = true;

    for (size_t i = 0; ok && i < m->count; i++) {
        buffer_clear(&chunk);
        ok = get_chunk(store, m, i, &chunk, err);
        for (size_t done = 0; ok && done < chunk.size;) {
            ssize_t put = write(fd, chunk.bytes + done, chunk.size - done);

            if (put < 0 && errno != EINTR) {
                error_set(err, ERROR_IO, errno == ENOSPC ? "free some space; nothing was lost" : NULL, "cannot write: %s",
                          strerror(errno));
                ok = error_at(err, "%s", path);
            } else if (put > 0) {
                done += (size_t)put;
            }
        }
    }
    buffer_free(&chunk);
    return ok;
}

bool object_get_file(const struct block_store *store, struct hash id, const char *media, uint64_t limit, const char *path,
                     struct error *err)
{
    char beside[PATH_MAX];
    struct manifest m;

    if (snprintf(beside, sizeof beside, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof beside)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
    if (!object_manifest(store, id, media, limit, &m, err))
        return false;
    if (m.chunk != BLOCK_SIZE) { /* object_is_file could never say yes */
        error_set(err, ERROR_RANGE, "rondo run check stores files in chunks that are right",
                  "its chunks have %u bytes, those of a file have %d", m.chunk, BLOCK_SIZE);
        manifest_free(&m);
        return object_error(id, err);
    }

    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && write_chunks(store, &m, fd, path, err);

    if (fd < 0) {
        error_set(err, ERROR_IO, NULL, "cannot create: %s", strerror(errno));
        error_at(err, "%s", beside);
    }
    if (ok && (fsync(fd) != 0 || rename(beside, path) != 0)) {
        error_set(err, ERROR_IO, NULL, "cannot write: %s", strerror(errno));
        ok = error_at(err, "%s", path);
    }
    if (fd >= 0)
        close(fd);
    if (!ok)
        unlink(beside);
    manifest_free(&m);
    return ok || object_error(id, err);
}

bool object_is_file(const char *media, struct hash id, const char *path, struct error *err)
{
    struct hash have;
    size_t size;
    const void *bytes = file_map(path, &size, err);
    const bool read = bytes && object_id(media, bytes, size, &have, err), equal = read && hash_equal(have, id);

    if (bytes)
        file_unmap(bytes, size);
    if (read && !equal) {
        error_set(err, ERROR_DAMAGED, "start the node again: it is laid out anew", "the file is not what was fetched");
        error_at(err, "%s", path);
    }
    return equal;
}
