/* journal.h - what must be durable before anything that depends on it is sent.
 *
 *     FOLDER/node.db          SQLite
 *     FOLDER/documents/CID    one file a document: the bytes as they were received or made
 *
 *     signed       one row for each (run, round, view, kind, phase): the id of the one statement that was signed
 *     open round   the durable variables of the open round of each run: view, items, proposed, prepared, committed, lock
 *     final        record and certificate of each finished round
 *     released     one row for each escrow: the digest that was signed
 *     documents    an index of the files: id, type, run, round and signer
 *     notes        small values under a name
 *
 * SQLite, WAL, synchronous = FULL: when a call returns true its write survives a power cut; when it returns false (a full disk
 * too) nothing of it was written. The order is always: journal, then send.
 */
#ifndef RONDO_STORE_JOURNAL_H
#define RONDO_STORE_JOURNAL_H

#include <sys/types.h>

#include "runtime/doc/documents.h"
#include "runtime/store/unsynced.h"

struct journal;

/* Makes folder and files when they are missing. NULL with `err`: io, conflict when another process holds it. */
struct journal *journal_open(const char *folder, struct error *err);
/* To read only: the database is copied into `work`, an own folder, and the folder itself is left as it is; files whose bytes stand in the database
 * are checked, and read from there (journal_files). Errors: also conflict, when a process has it open; mismatch, when such a file is not what
 * its name says. */
struct journal *journal_open_copy(const char *folder, const char *work, struct error *err);
void journal_close(struct journal *journal);
/* The process that has the folder's journal open; 0: none, or none that can be seen from here. Never asked by that process itself: closing a
 * file drops the locks on it. */
pid_t journal_holder(const char *folder);
/* Reading a document verifies it, but not one that `known` remembers. Borrowed. */
void journal_remember(struct journal *journal, struct verified *known);

/* All that is put until the end is one write, with one sync: all or nothing. One may stand within another, which it is a part of. The end gives
 * `ok` back, or false with `err` when that could not be written. */
bool journal_begin(struct journal *journal, struct error *err);
bool journal_end(struct journal *journal, bool ok, struct error *err);
/* For what may be lost in a power cut, since others have it: it survives one as soon as a later write does. Never within another. What puts nothing
 * costs nothing. */
void journal_begin_lazily(struct journal *journal);

/* Something that is about to be signed: (kind, phase) e.g. ("vote", "prepare"), ("received", ""). */
struct statement {
    const char *kind, *phase;
    struct hash id; /* of the document's payload */
};

/* The one write before sending: the round's variables and every statement that will follow from them, all or nothing.
 * `variables` is the round machine's own canonical JSON. Signing the same statement again is fine. Errors: conflict when
 * another statement was signed for (run, round, view, kind, phase); stale when `view` is below the one written before, or
 * the round is final already. */
bool journal_save_round(struct journal *journal, struct hash run, uint32_t round, uint32_t view, const void *variables,
                        size_t size, const struct statement *statements, size_t count, struct error *err);

/* What was saved of a run last: of the open round, or of one that is final by now. False and code missing when nothing was: then the folder is
 * new, fetched or restored, and does not know what its key signed. `variables` is appended to. */
bool journal_load_round(struct journal *journal, struct hash run, uint32_t *round, uint32_t *view, struct buffer *variables,
                        struct error *err);

/* Statements outside of rounds, or of one phase only: unique by the same key. */
bool journal_sign_once(struct journal *journal, struct hash run, uint32_t round, uint32_t view, const struct statement *statement,
                       struct error *err);

/* Ends a round: its record and certificate (ids of documents put before). The same record again is
 * fine; another is conflict, and both are kept. */
bool journal_finish_round(struct journal *journal, struct hash run, uint32_t round, struct hash record, struct hash certificate,
                          struct error *err);
bool journal_final(struct journal *journal, struct hash run, uint32_t round, struct hash *record, struct hash *certificate,
                   struct error *err); /* missing when not final */
/* The last final round; missing when there is none. */
bool journal_last_final(struct journal *journal, struct hash run, uint32_t *round, struct error *err);

/* One release signature for each escrow. Conflict when another digest was signed. */
bool journal_release_once(struct journal *journal, struct hash escrow, struct hash digest, struct error *err);

/* Documents. Putting one again is fine. */
bool journal_put_document(struct journal *journal, const struct document *document, struct error *err);
/* Appends its bytes; missing when it is not there, mismatch when they are not what the id says. */
bool journal_get_document(struct journal *journal, struct hash id, struct buffer *bytes, struct error *err);
bool journal_has_document(struct journal *journal, struct hash id);
/* Ids of a run's documents of a type, ascending by round, then id. `round` below zero: all rounds. The caller frees *ids. */
bool journal_list_documents(struct journal *journal, struct hash run, enum document_type type, int64_t round, struct hash **ids,
                            size_t *count, struct error *err);
/* How many documents of a type and round a signer has here; `round` below zero: of all rounds and none. */
bool journal_count_documents(struct journal *journal, struct hash run, enum document_type type, int64_t round,
                             const struct public_key *signer, size_t *count, struct error *err);
/* Ids of all run documents. */
bool journal_list_runs(struct journal *journal, struct hash **ids, size_t *count, struct error *err);

/* A block of the folder `blocks`, whose bytes the caller has checked. One that is small costs no sync of its own (unsynced.h). */
bool journal_put_block(struct journal *journal, struct hash id, const void *bytes, size_t size, struct error *err);
/* What was put and is in no folder yet: a store of blocks reads it there. Borrowed for the journal's life. */
const struct unsynced *journal_files(const struct journal *journal);
/* Bytes of files that stand in the database because their folders may not be synced. They leave it in three steps, of which the second may be
 * done by any thread: a mark, the sync, the end. */
size_t journal_unsynced(const struct journal *journal);
bool journal_mark(struct journal *journal, int64_t *mark, struct error *err);
bool journal_sync_folder(const char *folder, struct error *err);
bool journal_synced(struct journal *journal, int64_t mark, struct error *err);
/* After a sync that failed, and at every start: files whose bytes stand in the database are written again. Another sync alone would say that all is
 * well: the system takes what it could not write for written. What a full disk does not take is read from the database (journal_files). */
bool journal_restore_files(struct journal *journal, struct error *err);
/* Blocks whose files were deleted: their bytes leave the database too, else the next start would write the files again. Sorts `ids`. */
bool journal_forget_blocks(struct journal *journal, struct hash *ids, size_t count, struct error *err);

/* The index rows, in one write, and the files of documents that are of no use, or cannot be used: those are fetched again when they are needed. Not
 * within a begin and its end. */
bool journal_forget_documents(struct journal *journal, const struct hash *ids, size_t count, struct error *err);
bool journal_forget_document(struct journal *journal, struct hash id, struct error *err);
/* Ids of every document in the index. The caller frees *ids. */
bool journal_index(struct journal *journal, struct hash **ids, size_t *count, struct error *err);
/* Records and certificates that decided rounds name. The caller frees *ids. */
bool journal_named_by_finals(struct journal *journal, struct hash **ids, size_t *count, struct error *err);
/* The database against itself: false and mismatch with the first thing that is wrong in it. */
bool journal_sound(struct journal *journal, struct error *err);
/* The database into a new file, without what was saved of rounds and notes under "own/", which are true of this folder alone: whoever goes on
 * from it signs nothing that it may have signed since. An older copy at `path` is replaced. */
bool journal_backup(struct journal *journal, const char *path, struct error *err);

/* Small values that must survive: a cursor, a nonce. */
bool journal_put_note(struct journal *journal, const char *name, const void *bytes, size_t size, struct error *err);
bool journal_get_note(struct journal *journal, const char *name, struct buffer *bytes, struct error *err); /* missing */

#endif
