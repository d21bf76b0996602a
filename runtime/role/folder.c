#include "runtime/role/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/role/course_needs.h"
#include "runtime/store/object.h"

struct check {
    const char *folder;
    struct block_store blocks;
    struct journal *journal;
    json_t *checked, *findings;
    bool repair;
    const struct folder_progress *progress;
    struct error *err; /* why it cannot go on */
    bool ok;
};

static void tell(const struct folder_progress *p, const char *what, int64_t done)
{
    if (p && p->told)
        p->told(p->context, what, done);
}

static int64_t count(json_t *counts, const char *name)
{
    int64_t n = json_integer_value(json_object_get(counts, name)) + 1;

    json_object_set_new(counts, name, json_integer((json_int_t)n));
    return n;
}

static void find(struct check *c, const char *place, const char *problem, const char *repair, bool repaired)
{
    json_array_append_new(c->findings, json_pack("{s:s, s:s, s:s, s:b}", "place", place, "problem", problem, "repair", repair,
                                                 "repaired", repaired));
}

static bool stop(struct check *c, const struct error *fault)
{
    *c->err = *fault;
    return c->ok = false;
}

/* --- files that are named by content ------------------------------------------------------------------------------------------ */

static const char *file_at(const struct check *c, const char *kind, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.3000s/%s/%.400s", c->folder, kind, name);
    return path;
}

static bool remove_file(struct check *c, const char *path)
{
    struct error fault = { 0 };

    if (!c->repair)
        return true;
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    error_set(&fault, ERROR_IO, NULL, "cannot delete: %s", strerror(errno));
    error_at(&fault, "%s", path);
    return stop(c, &fault);
}

/* A write that a crash broke off leaves NAME.PID.part; nothing else belongs there. */
static void check_other(struct check *c, const char *path)
{
    size_t size = strlen(path);
    bool part = size > 5 && strcmp(path + size - 5, ".part") == 0;

    if (!part)
        find(c, path, "no file of this folder", "look what it is, and move it away", false);
    else if (remove_file(c, path))
        find(c, path, "left by a write that was broken off", "delete it", c->repair);
}

static void check_block(struct check *c, struct hash id, const char *path)
{
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    bool good = block_get(&c->blocks, id, &bytes, &fault);

    buffer_free(&bytes);
    tell(c->progress, "blocks", count(c->checked, "blocks"));
    if (good)
        return;
    if (fault.code == ERROR_IO)
        stop(c, &fault);
    else if (remove_file(c, path))
        find(c, path, "the bytes are not what the name says", "delete it; it is fetched again", c->repair);
}

static void index_document(struct check *c, const struct buffer *bytes, const char *path)
{
    struct document document = { 0 };
    struct error fault = { 0 };

    if (c->repair &&
        (!document_read(bytes->bytes, bytes->size, &document, &fault) || !journal_put_document(c->journal, &document, &fault)))
        stop(c, &fault);
    else
        find(c, path, "the index does not list it", "put it into the index", c->repair);
    document_free(&document);
}

static void check_document(struct check *c, struct hash id, const char *path)
{
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    bool good = journal_get_document(c->journal, id, &bytes, &fault);

    tell(c->progress, "documents", count(c->checked, "documents"));
    if (good && !journal_has_document(c->journal, id))
        index_document(c, &bytes, path);
    else if (!good && fault.code == ERROR_IO)
        stop(c, &fault);
    else if (!good) {
        if (c->repair && !journal_forget_document(c->journal, id, c->err))
            c->ok = false;
        else
            find(c, path, "no document, or another than the name says", "delete it; it is fetched again", c->repair);
    }
    buffer_free(&bytes);
}

static void each_file(struct check *c, const char *kind, void (*check_named)(struct check *, struct hash, const char *))
{
    char path[PATH_MAX];
    DIR *folder = opendir(file_at(c, kind, "", path));

    for (struct dirent *entry; c->ok && folder && (entry = readdir(folder));) {
        struct hash id;

        if (entry->d_name[0] == '.')
            continue;
        file_at(c, kind, entry->d_name, path);
        if (cid_parse(entry->d_name, &id, NULL))
            check_named(c, id, path);
        else
            check_other(c, path);
    }
    if (folder)
        closedir(folder);
}

/* --- the journal -------------------------------------------------------------------------------------------------------------- */

static void check_rows(struct check *c)
{
    struct hash *ids = NULL;
    size_t n = 0;

    c->ok = c->ok && journal_index(c->journal, &ids, &n, c->err);
    for (size_t i = 0; c->ok && i < n; i++) {
        char path[PATH_MAX], cid[CID_TEXT];

        if (file_exists(file_at(c, "documents", cid_text(ids[i], cid), path)))
            continue;
        if (c->repair && !journal_forget_document(c->journal, ids[i], c->err))
            c->ok = false;
        else
            find(c, path, "the index lists it, and it is gone", "take it out of the index; it is fetched again", c->repair);
    }
    free(ids);
}

static void check_finals(struct check *c)
{
    struct hash *ids = NULL;
    size_t n = 0;

    c->ok = c->ok && journal_named_by_finals(c->journal, &ids, &n, c->err);
    for (size_t i = 0; c->ok && i < n; i++) {
        struct buffer bytes = { 0 };
        struct error fault = { 0 };
        char path[PATH_MAX], cid[CID_TEXT];

        if (!journal_get_document(c->journal, ids[i], &bytes, &fault))
            find(c, file_at(c, "documents", cid_text(ids[i], cid), path), "a decided round names it, and it is not here",
                 "fetch it: rondo sync RUN", false);
        buffer_free(&bytes);
    }
    free(ids);
}

/* --- models: made from blocks, for workers ------------------------------------------------------------------------------------- */

static bool is_object(const char *path, const char *cid)
{
    struct error none = { 0 };
    struct hash id;

    return cid && cid_parse(cid, &id, NULL) && object_is_file(MODEL_MEDIA, id, path, &none);
}

static void check_model_file(struct check *c, const char *folder, const json_t *file)
{
    char path[PATH_MAX + 256];

    snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_object_get(file, "name")));
    if (!file_exists(path))
        return;
    tell(c->progress, "models", count(c->checked, "models"));
    if (!is_object(path, json_string_value(json_object_get(file, "object"))) && remove_file(c, path))
        find(c, path, "not the bytes of the object that the model names", "delete it; it is laid out again", c->repair);
}

static void check_model(struct check *c, struct hash id, const char *path)
{
    struct buffer bytes = { 0 };
    struct error none = { 0 };
    json_t *manifest =
        block_get(&c->blocks, id, &bytes, &none) ? json_read((const char *)bytes.bytes, bytes.size, BLOCK_SIZE, &none) : NULL;
    json_t *file;
    size_t index;

    if (!manifest)
        find(c, path, "the manifest of this model is not here", "fetch it: rondo sync RUN", false);
    json_array_foreach(json_object_get(manifest, "files"), index, file)
    {
        if (c->ok && course_plain_name(json_string_value(json_object_get(file, "name"))))
            check_model_file(c, path, file);
    }
    json_decref(manifest);
    buffer_free(&bytes);
}

/* --- the whole ------------------------------------------------------------------------------------------------------------------ */

static void check_key(struct check *c, const char *passphrase)
{
    struct key_pair keys = { 0 };
    struct error fault = { 0 };
    char path[PATH_MAX], text[1024];

    snprintf(path, sizeof path, "%s/key.json", c->folder);
    if (!file_exists(path))
        find(c, path, "no key", "rondo key new, or put the key of this node back", false);
    else if (!keyfile_read(path, passphrase, &keys, &fault) && fault.code != ERROR_REFUSED && fault.code != ERROR_SIGNATURE)
        find(c, path, error_text(&fault, text, sizeof text), "put the key of this node back", false);
    key_pair_wipe(&keys);
}

static bool open_parts(const char *folder, struct block_store *blocks, struct journal **journal, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.3000s/node.db", folder);
    if (!file_exists(path)) {
        error_set(err, ERROR_MISSING, "rondo status lists the nodes of a home", "no node has been here");
        return error_at(err, "%.3000s", folder);
    }
    snprintf(path, sizeof path, "%.3000s/blocks", folder);
    *journal = journal_open(folder, err);
    if (!*journal || !block_store_open(path, blocks, err))
        return false;
    blocks->unsynced = journal_files(*journal);
    return true;
}

json_t *folder_check(const char *folder, const char *passphrase, bool repair, const struct folder_progress *progress,
                     struct error *err)
{
    struct check c = { .folder = folder, .repair = repair, .progress = progress, .err = err };
    struct error fault = { 0 };
    char place[PATH_MAX], text[1024];

    c.ok = open_parts(folder, &c.blocks, &c.journal, err);
    c.checked = json_pack("{s:i, s:i, s:i}", "blocks", 0, "documents", 0, "models", 0);
    c.findings = json_array();
    if (c.ok)
        check_key(&c, passphrase);
    if (c.ok && !journal_sound(c.journal, &fault)) {
        snprintf(place, sizeof place, "%.3000s/node.db", folder);
        find(&c, place, error_text(&fault, text, sizeof text), "wipe the folder but key.json, and fetch the run: rondo sync",
             false);
    }
    if (c.ok)
        each_file(&c, "blocks", check_block);
    if (c.ok)
        each_file(&c, "documents", check_document);
    check_rows(&c);
    check_finals(&c);
    if (c.ok)
        each_file(&c, "models", check_model);
    journal_close(c.journal);
    if (c.ok)
        return json_pack("{s:o, s:o}", "checked", c.checked, "findings", c.findings);
    json_decref(c.checked);
    json_decref(c.findings);
    return NULL;
}

/* --- backup ---------------------------------------------------------------------------------------------------------------------- */

struct backup {
    struct block_store from, to;
    struct journal *journal;
    char documents[PATH_MAX]; /* of the copy */
    json_t *copied, *kept;
    const struct folder_progress *progress;
    struct error *err;
    bool ok;
};

static bool copy_block(void *context, struct hash id)
{
    struct backup *b = context;
    struct buffer bytes = { 0 };
    bool there = block_has(&b->to, id);

    b->ok = there || (block_get(&b->from, id, &bytes, b->err) && block_put_hashed(&b->to, id, bytes.bytes, bytes.size, b->err));
    buffer_free(&bytes);
    if (b->ok)
        tell(b->progress, "blocks", count(there ? b->kept : b->copied, "blocks"));
    return b->ok;
}

static bool copy_document(struct backup *b, struct hash id)
{
    struct buffer bytes = { 0 };
    char path[PATH_MAX + 128], cid[CID_TEXT];
    bool there;

    snprintf(path, sizeof path, "%s/%s", b->documents, cid_text(id, cid));
    there = file_exists(path);
    b->ok = there ||
            (journal_get_document(b->journal, id, &bytes, b->err) && file_write(path, bytes.bytes, bytes.size, 0644, b->err));
    buffer_free(&bytes);
    if (b->ok)
        tell(b->progress, "documents", count(there ? b->kept : b->copied, "documents"));
    return b->ok;
}

static bool copy_documents(struct backup *b)
{
    struct hash *ids = NULL;
    size_t n = 0;
    bool ok = journal_index(b->journal, &ids, &n, b->err);

    for (size_t i = 0; ok && i < n; i++)
        ok = copy_document(b, ids[i]);
    free(ids);
    return ok;
}

/* A key is never overwritten: a copy of another node is refused. */
static bool copy_key(const char *folder, const char *to, bool with_key, struct error *err)
{
    struct buffer own = { 0 }, there = { 0 };
    char from[PATH_MAX], path[PATH_MAX];
    bool ok;

    snprintf(from, sizeof from, "%.3000s/key.json", folder);
    snprintf(path, sizeof path, "%.3000s/key.json", to);
    ok = file_read(from, 1 << 16, &own, err);
    if (ok && file_exists(path)) {
        ok = file_read(path, 1 << 16, &there, err) &&
             ((own.size == there.size && memcmp(own.bytes, there.bytes, own.size) == 0) ||
              error_set(err, ERROR_CONFLICT, "name another folder", "%s holds the copy of another node", to));
    } else if (ok && with_key) {
        ok = file_write(path, own.bytes, own.size, 0600, err);
    }
    buffer_free(&own);
    buffer_free(&there);
    return ok;
}

json_t *folder_backup(const char *folder, const char *to, bool with_key, const struct folder_progress *progress,
                      struct error *err)
{
    struct backup b = { .progress = progress, .err = err };
    char path[PATH_MAX];

    b.copied = json_pack("{s:i, s:i}", "blocks", 0, "documents", 0);
    b.kept = json_pack("{s:i, s:i}", "blocks", 0, "documents", 0);
    b.ok = open_parts(folder, &b.from, &b.journal, err) && journal_sound(b.journal, err);
    snprintf(b.documents, sizeof b.documents, "%.3000s/documents", to);
    snprintf(path, sizeof path, "%.3000s/blocks", to);
    b.ok =
        b.ok && file_make_folder(b.documents, err) && block_store_open(path, &b.to, err) && copy_key(folder, to, with_key, err);
    b.ok = b.ok && block_each(&b.from, copy_block, &b, err) && b.ok && copy_documents(&b);
    /* Last: a copy that was broken off is not taken for a whole one. */
    snprintf(path, sizeof path, "%.3000s/node.db", to);
    b.ok = b.ok && journal_backup(b.journal, path, err);
    journal_close(b.journal);
    if (b.ok)
        return json_pack("{s:o, s:o}", "copied", b.copied, "kept", b.kept);
    json_decref(b.copied);
    json_decref(b.kept);
    return NULL;
}
