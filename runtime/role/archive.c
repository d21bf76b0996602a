#include "runtime/role/archive.h"
#include "runtime/role/collect.h"
#include "runtime/role/dataset.h"
#include "runtime/role/home.h"
#include "runtime/role/sponsor.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/role/course_needs.h"
#include "runtime/store/object.h"

/* --- opening -------------------------------------------------------------------------------------------------------------- */

static bool open_node(struct archive *a, const char *name, struct error *err)
{
    struct archive_node *n = &a->nodes[a->count];
    char path[4400], work[4200];

    snprintf(n->name, sizeof n->name, "%.60s", name);
    snprintf(n->folder, sizeof n->folder, "%.3800s/nodes/%s", a->home, n->name);
    snprintf(work, sizeof work, "%s/nodes/%s", a->auditor.folder, n->name);
    snprintf(path, sizeof path, "%s/node.db", n->folder);
    if (!file_exists(path))
        return true;
    snprintf(n->blocks.folder, sizeof n->blocks.folder, "%s/blocks", n->folder); /* not opened: that would make the folder */
    n->journal = journal_open_copy(n->folder, work, err);
    if (!n->journal && err->code == ERROR_CONFLICT)
        error_set(err, ERROR_REFUSED, "stop it first; rondo status asks nodes that run", "the node %s is running", n->name);
    if (!n->journal)
        return error_at(err, "%s", n->folder);
    n->blocks.unsynced = journal_files(n->journal);
    a->count++;
    return true;
}

static bool open_nodes(struct archive *a, struct error *err)
{
    struct dirent **names = NULL;
    char path[4100];
    int count;
    bool ok = true;

    snprintf(path, sizeof path, "%s/nodes", a->home);
    count = scandir(path, &names, NULL, alphasort);
    if (!home_may_read(a->home, err))
        return false;
    if (count < 0)
        return error_set(err, ERROR_MISSING, "give the home of a run by --home", "%s holds no nodes", a->home);
    a->nodes = calloc((size_t)count, sizeof *a->nodes);
    for (int i = 0; i < count; i++) {
        if (ok && names[i]->d_name[0] != '.')
            ok = open_node(a, names[i]->d_name, err);
        free(names[i]);
    }
    free(names);
    return ok;
}

static bool open_auditor(struct archive *a, const char *folder, struct error *err)
{
    char path[4100];

    snprintf(a->auditor.folder, sizeof a->auditor.folder, "%.3900s", folder);
    snprintf(path, sizeof path, "%s/blocks", a->auditor.folder);
    uv_loop_init(&a->auditor.loop);
    a->auditor.peers = peer_list_new();
    return file_make_folder(a->auditor.folder, err) && block_store_open(path, &a->auditor.blocks, err);
}

static bool open_ledger(struct archive *a, struct error *err)
{
    char path[4100];

    snprintf(path, sizeof path, "%s/ledger/ledger.db", a->home);
    if (!file_exists(path))
        return true;
    a->ledger = ledger_local_open_read(path, err); /* a ledger that runs beside is no hindrance */
    return a->ledger || error_at(err, "%s", path);
}

/* The run named, or the only one there is. */
static bool choose_run(struct archive *a, const char *run, struct hash *id, struct error *err)
{
    size_t seen = 0;

    if (run)
        return cid_parse(run, id, err) || error_at(err, "run");
    for (size_t i = 0; i < a->count; i++) {
        struct hash *ids = NULL;
        size_t count = 0;

        if (!journal_list_runs(a->nodes[i].journal, &ids, &count, err))
            return false;
        for (size_t j = 0; j < count; j++)
            if (seen == 0 || !hash_equal(*id, ids[j])) {
                *id = ids[j];
                seen++;
            }
        free(ids);
    }
    if (seen == 1)
        return true;
    return error_set(err, seen ? ERROR_USAGE : ERROR_MISSING,
                     seen ? "name the run" : "name the home of a run by --home (eval: or a model by --model)",
                     "the home holds %s", seen ? "several runs" : "no run");
}

static json_t *read_document(struct archive *a, enum document_type type, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    json_t *json = NULL;

    if (archive_document(a, id, &bytes, err) && document_read_as(type, bytes.bytes, bytes.size, &document, err))
        json = json_incref(document.json);
    document_free(&document);
    buffer_free(&bytes);
    return json;
}

/* Every decided round that any node has; nodes that disagree are a conflict. */
static bool load_finals(struct archive *a, struct error *err)
{
    for (uint32_t round = 0;; round++) {
        struct hash record = { 0 }, certificate = { 0 }, r, c;
        bool found = false;

        for (size_t i = 0; i < a->count; i++) {
            struct error none = { 0 };

            if (!journal_final(a->nodes[i].journal, a->course.id, round, &r, &c, &none)) {
                if (none.code == ERROR_MISSING)
                    continue;
                *err = none;
                return error_at(err, "%s", a->nodes[i].name);
            }
            if (found && !hash_equal(record, r))
                return error_set(err, ERROR_CONFLICT, "keep both folders as evidence", "node %s has another record of round %u",
                                 a->nodes[i].name, round);
            record = r;
            certificate = c;
            found = true;
        }
        if (!found)
            return true;

        json_t *json = read_document(a, DOCUMENT_RECORD, record, err),
               *votes = json ? read_document(a, DOCUMENT_CERTIFICATE, certificate, err) : NULL;

        if (!votes) {
            json_decref(json);
            return error_at(err, "round %u", round);
        }
        json_array_append_new(a->finals, json_pack("{s:o, s:o}", "record", json, "certificate", votes));
    }
}

bool archive_new_in(struct archive *a, const char *home, const char *folder, struct error *err)
{
    *a = (struct archive){ .finals = json_array() };
    snprintf(a->home, sizeof a->home, "%s", home);
    return open_auditor(a, folder, err);
}

bool archive_new(struct archive *a, const char *home, struct error *err)
{
    char folder[4100];

    snprintf(folder, sizeof folder, "%.3900s/audit", home);
    return archive_new_in(a, home, folder, err);
}

bool archive_open(struct archive *a, const char *home, const char *run, struct error *err)
{
    char folder[4100];
    struct scratch own;
    bool ok;

    snprintf(folder, sizeof folder, "%.3900s/audit", home);
    if (access(home, W_OK) == 0)
        return archive_open_in(a, home, folder, run, err);
    if (!scratch_open(&own, "audit", err)) {
        *a = (struct archive){ 0 };
        uv_loop_init(&a->auditor.loop); /* archive_close ends it */
        return false;
    }
    ok = archive_open_in(a, home, own.path, run, err);
    a->own = own;
    return ok;
}

bool archive_open_in(struct archive *a, const char *home, const char *folder, const char *run, struct error *err)
{
    struct hash id = { 0 };
    struct buffer bytes = { 0 };
    char cid[CID_TEXT];

    if (!archive_new_in(a, home, folder, err) || !open_nodes(a, err) || !open_ledger(a, err) || !choose_run(a, run, &id, err))
        return false;

    bool ok = archive_document(a, id, &bytes, err) &&
              course_of(&a->auditor, cid_text(id, cid), bytes.bytes, bytes.size, &a->course, err) && load_finals(a, err);

    buffer_free(&bytes);
    return ok;
}

void archive_close(struct archive *a)
{
    worker_free(a->worker);
    uv_run(&a->auditor.loop, UV_RUN_DEFAULT);
    uv_loop_close(&a->auditor.loop);
    peer_list_free(a->auditor.peers);
    course_free(&a->course);
    json_decref(a->finals);
    json_decref(a->opened);
    ledger_local_close(a->ledger);
    for (size_t i = 0; i < a->count; i++)
        journal_close(a->nodes[i].journal);
    free(a->nodes);
    if (a->own.path[0])
        scratch_close(&a->own);
    *a = (struct archive){ 0 };
}

const json_t *archive_record(const struct archive *a, int64_t round)
{
    return round < 0 ? NULL : json_object_get(json_array_get(a->finals, (size_t)round), "record");
}

/* --- documents and blocks ------------------------------------------------------------------------------------------------- */

void archive_damaged(struct error *err)
{
    if (err->code == ERROR_IO || err->code == ERROR_MEMORY || err->code == ERROR_MISSING || err->code == ERROR_CONFLICT)
        return;
    err->code = ERROR_MISMATCH;
    snprintf(err->hint, sizeof err->hint, "keep it as evidence; rondo sync into an empty folder fetches the run whole");
}

bool archive_document(struct archive *a, struct hash id, struct buffer *bytes, struct error *err)
{
    bool found = false;
    char cid[CID_TEXT];

    for (size_t i = 0; i < a->count; i++) {
        struct buffer copy = { 0 };
        struct error fault = { 0 };

        if (journal_get_document(a->nodes[i].journal, id, &copy, &fault)) {
            if (!found)
                buffer_add(bytes, copy.bytes, copy.size);
            found = true;
        } else if (fault.code != ERROR_MISSING) {
            buffer_free(&copy);
            *err = fault;
            archive_damaged(err);
            return error_at(err, "node %s", a->nodes[i].name);
        }
        buffer_free(&copy);
    }
    if (!found && a->elsewhere)
        return a->elsewhere->document(a->elsewhere->context, id, bytes, err);
    return found || error_set(err, ERROR_MISSING, ARCHIVE_ELSEWHERE, "no node of this home has document %s", cid_text(id, cid));
}

json_t *archive_contribution(struct archive *a, const char *cid, struct error *err)
{
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    struct hash id;
    json_t *json = NULL;

    if (cid_parse(cid, &id, err) && archive_document(a, id, &bytes, err) &&
        document_read_as(DOCUMENT_CONTRIBUTION, bytes.bytes, bytes.size, &document, err))
        json = json_incref(document.json);
    document_free(&document);
    buffer_free(&bytes);
    if (!json)
        error_at(err, "contribution %s", cid);
    return json;
}

/* What to do depends on why it is not here: nodes drop blocks of rounds that are over (collect.h). */
static bool no_block(const struct archive *a, struct hash id, struct error *err)
{
    char cid[CID_TEXT];

    for (size_t i = 0; i < a->count; i++) {
        int64_t round = collect_dropped(a->nodes[i].journal, a->course.run);

        if (round >= 0)
            return error_set(
                err, ERROR_MISSING,
                "a node of the run without --quota, or pinned, may have it: name its home by --home, or rondo sync RUN "
                "--peer URL fetches it; what all dropped nobody can recompute",
                "no node of this home has block %s: %s dropped rounds up to %lld to keep its quota", cid_text(id, cid),
                a->nodes[i].name, (long long)round);
    }
    return error_set(err, ERROR_MISSING, ARCHIVE_ELSEWHERE, "no node of this home has block %s", cid_text(id, cid));
}

static bool gather_block(struct archive *a, struct hash id, struct error *err)
{
    bool found = block_has(&a->auditor.blocks, id);

    for (size_t i = 0; i < a->count; i++) {
        struct buffer copy = { 0 };
        bool ok = true;

        if (!block_has(&a->nodes[i].blocks, id))
            continue;
        ok = block_get(&a->nodes[i].blocks, id, &copy, err) &&
             (found || block_put_as(&a->auditor.blocks, id, copy.bytes, copy.size, err));
        found = true;
        buffer_free(&copy);
        if (!ok)
            return error_at(err, "node %s", a->nodes[i].name);
    }
    return found || no_block(a, id, err);
}

bool archive_gather(struct archive *a, struct hash id, bool object, struct error *err)
{
    struct manifest m;

    if (a->elsewhere)
        return fetch_complete(&a->auditor, &(struct fetch_want){ .id = id, .object = object }, 1, COURSE_OBJECT_LIMIT) ||
               a->elsewhere->gather(a->elsewhere->context, id, object, err);
    if (!gather_block(a, id, err))
        return false;
    if (!object)
        return true;
    if (!object_manifest(&a->auditor.blocks, id, NULL, COURSE_OBJECT_LIMIT, &m, err))
        return false;

    bool ok = true;

    for (size_t i = 0; ok && i < m.count; i++)
        ok = gather_block(a, m.chunks[i], err);
    manifest_free(&m);
    return ok;
}

/* --- a worker ------------------------------------------------------------------------------------------------------------- */

struct waiting {
    struct archive *archive;
    json_t *result;
    struct error *err;
    worker_progress *progress;
    void *context;
    bool done;
};

static void job_progress(void *context, json_t *value)
{
    struct waiting *w = context;

    if (w->progress)
        w->progress(w->context, value);
}

static void job_done(void *context, const struct worker_answer *answer)
{
    struct waiting *w = context;

    w->done = true;
    if (answer->error)
        *w->err = *answer->error;
    else
        w->result = json_incref(answer->result);
    uv_stop(&w->archive->auditor.loop);
}

bool archive_course(struct archive *a, struct error *err)
{
    bool complete = false, again = true;

    while (again) {
        struct fetch_want *wants = NULL;
        size_t count = 0;
        bool ok = course_wants(&a->course, &wants, &count, &complete, err);

        for (size_t i = 0; ok && i < count; i++)
            ok = archive_gather(a, wants[i].id, wants[i].object, err);
        free(wants);
        if (!ok)
            return false;
        again = !complete;
    }
    return course_prepare(&a->course, err);
}

bool archive_worker(struct archive *a, unsigned threads, struct error *err)
{
    return a->worker || (archive_course(a, err) && archive_start(a, json_incref(a->course.open), threads, err));
}

bool archive_start(struct archive *a, json_t *open, unsigned threads, struct error *err)
{
    struct worker_options options = { .program = a->program, .blocks = a->auditor.blocks.folder, .threads = threads };
    struct waiting w = { .archive = a, .err = err };

    a->worker = worker_new(&a->auditor.loop, &options, err);
    if (!a->worker) {
        json_decref(open);
        return false;
    }
    worker_open(a->worker, open, job_done, &w);
    while (!w.done)
        uv_run(&a->auditor.loop, UV_RUN_DEFAULT);
    a->opened = w.result;
    return a->opened != NULL;
}

json_t *archive_job(struct archive *a, json_t *job, worker_progress *progress, void *context, struct error *err)
{
    struct waiting w = { .archive = a, .err = err, .progress = progress, .context = context };

    worker_submit(a->worker, job, NULL, 0, job_progress, job_done, &w);
    while (!w.done)
        uv_run(&a->auditor.loop, UV_RUN_DEFAULT);
    return w.result;
}

json_t *archive_evaluate(struct archive *a, const json_t *eval, const char *outer, worker_progress *progress, void *context,
                         struct error *err)
{
    const char *path = document_text(eval, "data");
    struct hash id;
    uint64_t rows;
    char cid[CID_TEXT];

    if (!path)
        error_set(err, ERROR_MISSING, "eval = { data = \"held_out.jsonl\" }", "it names no data");
    if (!path || !dataset_put_rows(&a->auditor.blocks, path, &id, &rows, err)) {
        error_at(err, "network.eval");
        return NULL;
    }
    return archive_job(a,
                       json_pack("{s:s, s:s, s:[s], s:I}", "job", "evaluate", "outer", outer, "shards", cid_text(id, cid), "rows",
                                 (json_int_t)document_integer(eval, "rows")),
                       progress, context, err);
}
