#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/store/journal_internal.h"

static void document_path(const struct journal *j, struct hash id, char path[PATH_MAX])
{
    char cid[CID_TEXT];

    snprintf(path, PATH_MAX, "%s/%s", j->folder, cid_text(id, cid));
}

bool journal_has_document(struct journal *j, struct hash id)
{
    sqlite3_stmt *statement = journal_query(j, NULL, "select 1 from documents where id = ?", "h", &id);
    bool there = journal_step(j, statement, NULL) == ROW_THERE;

    journal_done(j, statement);
    return there;
}

void journal_remember(struct journal *j, struct verified *known)
{
    j->known = known;
}

/* The file first: an index row always has its file. */
static bool put_document(struct journal *j, const struct document *d, struct error *err)
{
    return journal_put_file(j, "documents", d->id, d->bytes.bytes, d->bytes.size, err) &&
           journal_change(j,
                          journal_query(j, err,
                                        "insert or ignore into documents (id, run, type, round, signer) values (?, ?, ?, ?, ?)",
                                        "hhiib", &d->id, &d->run, (int64_t)d->type, d->has_round ? (int64_t)d->round : -1,
                                        d->signer.bytes, d->has_signer ? sizeof d->signer.bytes : (size_t)0),
                          err);
}

bool journal_put_document(struct journal *j, const struct document *d, struct error *err)
{
    return journal_has_document(j, d->id) || (journal_begin(j, err) && journal_end(j, put_document(j, d, err), err));
}

bool journal_get_document(struct journal *j, struct hash id, struct buffer *bytes, struct error *err)
{
    char path[PATH_MAX], cid[CID_TEXT];
    const struct unsynced_file *fresh = unsynced_find(&j->files, "documents", id);
    struct buffer text = { 0 };
    struct document d;
    bool ok;

    if (fresh) {
        buffer_add(bytes, fresh->bytes, fresh->size);
        return true;
    }
    document_path(j, id, path);
    if (!file_exists(path))
        return error_set(err, ERROR_MISSING, "it has to be fetched from a peer", "document %s is not here", cid_text(id, cid));
    if (!file_read(path, DOCUMENT_SIZE, &text, err)) {
        buffer_free(&text);
        return false;
    }
    ok = document_read_bytes(text.bytes, text.size, j->known, &d, NULL);
    if (ok) {
        ok = hash_equal(d.id, id);
        document_free(&d);
    }
    if (!ok) /* whatever is wrong with it now, it was right when it was stored */
        error_set(err, ERROR_DAMAGED, "delete the file; it is fetched again", "the bytes are not what the name says");
    if (ok)
        buffer_add(bytes, text.bytes, text.size);
    buffer_free(&text);
    return ok || error_at(err, "%s", path);
}

bool journal_list_documents(struct journal *j, struct hash run, enum document_type type, int64_t round, struct hash **ids,
                            size_t *count, struct error *err)
{
    if (round < 0)
        return journal_list(j,
                            journal_query(j, err, "select id from documents where run = ? and type = ? order by round, id", "hi",
                                          &run, (int64_t)type),
                            ids, count, err);
    return journal_list(j,
                        journal_query(j, err, "select id from documents where run = ? and type = ? and round = ? order by id",
                                      "hii", &run, (int64_t)type, round),
                        ids, count, err);
}

bool journal_count_documents(struct journal *j, struct hash run, enum document_type type, int64_t round,
                             const struct public_key *signer, size_t *count, struct error *err)
{
    sqlite3_stmt *statement = /* a round of its own finds its rows by the index; all rounds have to be gone through */
        round < 0
            ? journal_query(j, err, "select count(*) from documents where run = ? and type = ? and signer = ?", "hib", &run,
                            (int64_t)type, signer->bytes, sizeof signer->bytes)
            : journal_query(j, err, "select count(*) from documents where run = ? and type = ? and round = ? and signer = ?",
                            "hiib", &run, (int64_t)type, round, signer->bytes, sizeof signer->bytes);
    bool ok = journal_step(j, statement, err) == ROW_THERE;

    *count = ok ? (size_t)sqlite3_column_int64(statement, 0) : 0;
    journal_done(j, statement);
    return ok;
}

bool journal_list_runs(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return journal_list(j,
                        journal_query(j, err, "select id from documents where type = ? order by id", "i", (int64_t)DOCUMENT_RUN),
                        ids, count, err);
}

bool journal_index(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return journal_list(j, journal_query(j, err, "select id from documents order by id", ""), ids, count, err);
}

bool journal_named_by_finals(struct journal *j, struct hash **ids, size_t *count, struct error *err)
{
    return journal_list(j, journal_query(j, err, "select record from final union select certificate from final order by 1", ""),
                        ids, count, err);
}

static bool forget_rows(struct journal *j, const struct hash *ids, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!journal_change(j, journal_query(j, err, "delete from documents where id = ?", "h", &ids[i]), err))
            return false;
    return journal_forget_files(j, "documents", ids, count, err);
}

bool journal_forget_documents(struct journal *j, const struct hash *ids, size_t count, struct error *err)
{
    char path[PATH_MAX];

    /* The rows first: an index row always has its file. */
    if (!journal_begin(j, err) || !journal_end(j, forget_rows(j, ids, count, err), err))
        return false;
    for (size_t i = 0; i < count; i++) {
        document_path(j, ids[i], path);
        if (unlink(path) != 0 && errno != ENOENT)
            return error_set(err, ERROR_IO, NULL, "cannot delete: %s", strerror(errno)), error_at(err, "%s", path);
    }
    return true;
}

bool journal_forget_document(struct journal *j, struct hash id, struct error *err)
{
    return journal_forget_documents(j, &id, 1, err);
}
