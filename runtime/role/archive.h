/* archive.h - a home as evidence: everything that its nodes kept of a run, read without any of them running.
 *
 *     HOME/nodes/NAME/{blocks, documents, node.db}  ... every node's copy is hashed again; one wrong byte is an error naming it
 *     HOME/ledger/ledger.db                         ... likewise
 *     HOME/audit/                                   what the auditor works in, unless told otherwise; where HOME may not be written, a folder of its
 *                                                   own that goes with it
 *
 * Records, documents and blocks are taken from whichever node has them.
 */
#ifndef RONDO_ROLE_ARCHIVE_H
#define RONDO_ROLE_ARCHIVE_H

#include "native/base/scratch.h"
#include "runtime/ledger/local.h"
#include "runtime/role/course.h"

struct archive_node {
    char name[64];
    char folder[4096];
    struct block_store blocks;
    struct journal *journal; /* NULL when the folder has none */
};

/* Where to get what no node of the home has. Each gives it into the auditor's store, or false with `err`. */
struct archive_source {
    void *context;
    bool (*document)(void *context, struct hash id, struct buffer *bytes, struct error *err);
    bool (*gather)(void *context, struct hash id, bool object, struct error *err);
};

/* What to do where a home has not got a run's records, documents or blocks. */
#define ARCHIVE_ELSEWHERE                                                                                                        \
    "the homes of the run's syncers and trainers have it, by --home; rondo sync RUN --peer URL fetches it into another"

struct archive {
    char home[4000];
    const struct archive_source *elsewhere; /* borrowed; NULL: what the home lacks is missing */
    struct archive_node *nodes;
    size_t count;
    struct node auditor; /* folder, blocks and peers only: a course can be laid out in it */
    struct scratch own;  /* what it works in, where that is not in the home; else its path is empty */
    struct course course;
    json_t *finals;              /* [ { record, certificate } ] from round 0, as far as any node has them */
    struct ledger_local *ledger; /* NULL when the home holds none */
    const char *program;         /* borrowed: whose workers compute; NULL: this one's */
    struct worker *worker;       /* once archive_worker was called */
    json_t *opened;              /* what it said when it opened the run: { parameters, tensors } */
};

/* `run` NULL: the one run of the home (refused when there are several). Errors: missing, mismatch (a damaged document or ledger),
 * conflict (two records of one round), refused (a node runs). What was opened before the error stays open. */
bool archive_open(struct archive *a, const char *home, const char *run, struct error *err);
/* The same with the auditor's folder somewhere else: nothing below `home` is changed. */
bool archive_open_in(struct archive *a, const char *home, const char *folder, const char *run, struct error *err);
/* An empty archive in `home`: a store, and a place to lay a course out in; no nodes. */
bool archive_new(struct archive *a, const char *home, struct error *err);
/* The same with the auditor's folder somewhere else. */
bool archive_new_in(struct archive *a, const char *home, const char *folder, struct error *err);
void archive_close(struct archive *a);

/* A document's bytes from any node; every copy is checked. */
bool archive_document(struct archive *a, struct hash id, struct buffer *bytes, struct error *err);

/* The fields of a contribution, by its name in a record; NULL with `err`. New reference. */
json_t *archive_contribution(struct archive *a, const char *cid, struct error *err);

/* What is stored and cannot be read as what it should be is damaged, however the reader put it: the error becomes a mismatch. */
void archive_damaged(struct error *err);

/* An object into the auditor's store; every node's copy of each block is checked. `object` false: one block. */
bool archive_gather(struct archive *a, struct hash id, bool object, struct error *err);

/* Everything that opening the run needs, into the auditor's store; then a.course.open is made. */
bool archive_course(struct archive *a, struct error *err);

/* Starts a worker with the run open in it. */
bool archive_worker(struct archive *a, unsigned threads, struct error *err);
/* The same with an open job of one's own. Takes the reference. */
bool archive_start(struct archive *a, json_t *open, unsigned threads, struct error *err);

/* Runs one job to its end. New reference; NULL with `err`. Takes the reference of `job`. */
json_t *archive_job(struct archive *a, json_t *job, worker_progress *progress, void *context, struct error *err);

/* Measures the state `outer`, whose blocks are there, on the `eval = { data, rows }` of a run file. New reference; NULL with `err`. */
json_t *archive_evaluate(struct archive *a, const json_t *eval, const char *outer, worker_progress *progress, void *context,
                         struct error *err);

/* The record of a round, borrowed; NULL when no node has it. */
const json_t *archive_record(const struct archive *a, int64_t round);

#endif
