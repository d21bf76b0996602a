/* crashing.h - a node's stores above a disk that fails: for tests of power cuts (crash_test.c), full disks and failed syncs (full_disk_test.c).
 *
 *     steps of a node ── system calls, SQLite's among them ── points ── the power is cut, the disk is full, a sync fails
 *           └ acknowledged, in memory that the test shares         └ what was not synced is undone
 */
#ifndef CRASHING_H
#define CRASHING_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "native/base/file.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/store/journal.h"
#include "runtime/store/object.h"

/* ---- the disk: system calls of this program and of the libraries in it ------------------------------------------------------ */

enum cut { CUT_BEFORE, CUT_MIDST, CUT_AFTER, CUTS };

/* What a cut undoes: bytes that were written over or added, a file's old size, a name. `doomed`: a sync of it failed, after which the system
 * takes it for written, and no later one writes it. */
struct undo {
    dev_t device;
    ino_t file;
    char path[256], from[256]; /* from: of a rename */
    off_t at, size;
    size_t length, count; /* of what was written; of the bytes that were there */
    char *bytes;
    bool doomed;
    struct undo *next;
};

static struct {
    bool on, lossy;
    long points, cut_at;
    enum cut cut;
    bool faulty, lasting, full; /* the point cut_at fails, and the power does not; from there on nothing takes room; it is so */
    struct undo *undos;         /* the newest first */
} disk;

/* Shared with the process that looks: steps that were acknowledged. */
static int *acknowledged;

static inline void power_fails(void)
{
    for (struct undo *u = disk.undos; u && disk.lossy; u = u->next) {
        struct stat st;
        int fd;

        if (u->from[0]) {
            syscall(SYS_renameat, AT_FDCWD, u->path, AT_FDCWD, u->from);
            continue;
        }
        fd = (int)syscall(SYS_openat, AT_FDCWD, u->path, O_WRONLY);
        if (fd < 0)
            continue;
        if (fstat(fd, &st) != 0 || st.st_dev != u->device || st.st_ino != u->file) { /* another file of this name */
            syscall(SYS_close, fd);
            continue;
        }
        if (u->doomed) {
            for (size_t i = 0; i < u->length && u->at + (off_t)i < st.st_size; i++)
                (void)!syscall(SYS_pwrite64, fd, "", 1, u->at + (off_t)i);
            syscall(SYS_close, fd);
            continue;
        }
        if (u->count)
            (void)!syscall(SYS_pwrite64, fd, u->bytes, u->count, u->at);
        (void)!syscall(SYS_ftruncate, fd, u->size);
        syscall(SYS_close, fd);
    }
    _exit(9);
}

/* Counts a write point; true when this is the one that the power fails at. */
static inline bool point(void)
{
    bool here = disk.on && disk.points++ == disk.cut_at && !disk.faulty;

    if (here && disk.cut == CUT_BEFORE)
        power_fails();
    return here;
}

/* Whether the call whose point was counted last fails. */
static inline bool fails(bool takes_room)
{
    bool here = disk.on && disk.faulty && disk.points - 1 == disk.cut_at;

    if (here && disk.lasting)
        disk.full = true;
    if (!here && !(disk.on && disk.full && takes_room))
        return false;
    errno = takes_room ? ENOSPC : EIO;
    return true;
}

static inline bool is_file(int fd, struct stat *st)
{
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode);
}

static inline void remember(int fd, off_t at, size_t count)
{
    struct undo *u;
    struct stat st;
    char link[64];
    ssize_t size, got;
    int copy;

    if (!disk.on || !is_file(fd, &st))
        return;
    for (struct undo **old = &disk.undos; *old;) /* what is written over is to be synced again */
        if ((*old)->doomed && (*old)->device == st.st_dev && (*old)->file == st.st_ino && at <= (*old)->at &&
            at + (off_t)count >= (*old)->at + (off_t)(*old)->length)
            *old = (*old)->next;
        else
            old = &(*old)->next;
    u = calloc(1, sizeof *u);
    *u = (struct undo){
        .device = st.st_dev, .file = st.st_ino, .at = at, .size = st.st_size, .length = count, .next = disk.undos
    };
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, u->path, sizeof u->path - 1);
    if (size > 0 && count && at < st.st_size) {
        u->bytes = malloc(count);
        copy = (int)syscall(SYS_openat, AT_FDCWD, u->path, O_RDONLY);
        got = copy < 0 ? -1 : pread(copy, u->bytes, count, at);
        syscall(SYS_close, copy);
        u->count = got > 0 ? (size_t)got : 0;
    }
    disk.undos = u;
}

/* What was written to a file is safe once it is synced; a name, once its folder is. */
static inline void forget(int fd)
{
    struct stat st;

    if (!disk.on || fstat(fd, &st) != 0)
        return;
    for (struct undo **at = &disk.undos; *at;)
        if (!(*at)->doomed &&
            (((*at)->device == st.st_dev && (*at)->file == st.st_ino) || (S_ISDIR(st.st_mode) && (*at)->from[0])))
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

static inline ssize_t put(int fd, const void *bytes, size_t count, off_t at, bool placed)
{
    bool here = false;
    struct stat st;

    if (disk.on && is_file(fd, &st)) {
        here = point();
        if (fails(true)) {
            if (disk.cut != CUT_MIDST || disk.points - 1 != disk.cut_at || count < 2)
                return -1;
            count /= 2; /* some of it finds room */
        }
        remember(fd, placed ? at : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR), count);
    }
    if (here && disk.cut == CUT_MIDST)
        count /= 2;

    ssize_t done = placed ? syscall(SYS_pwrite64, fd, bytes, count, at) : syscall(SYS_write, fd, bytes, count);

    if (here)
        power_fails();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return put(fd, bytes, count, 0, false);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return put(fd, bytes, count, at, true);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return put(fd, bytes, count, at, true);
}

/* A sync of this file, or of all, failed. */
static inline void doom(int fd, bool all)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return;
    for (struct undo *u = disk.undos; u; u = u->next)
        u->doomed = u->doomed || (!u->from[0] && (all || (u->device == st.st_dev && u->file == st.st_ino)));
}

/* In the midst of a sync nothing can be said of what it was for: that is as before it. */
static inline int sync_file(long number, int fd)
{
    bool here = point();
    int done;

    if (here && disk.cut == CUT_MIDST)
        power_fails();
    if (fails(false)) {
        doom(fd, number == SYS_syncfs);
        return -1;
    }
    done = (int)syscall(number, fd);
    forget(fd);
    if (here)
        power_fails();
    return done;
}

int fsync(int fd)
{
    return sync_file(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_file(SYS_fdatasync, fd);
}

int syncfs(int fd)
{
    int done = sync_file(SYS_syncfs, fd);

    for (struct undo **at = &disk.undos; done == 0 && *at;)
        if ((*at)->doomed)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    return done;
}

static inline int cut_file(int fd, off_t size)
{
    bool here = point();
    int done;

    if (fails(false))
        return -1;
    remember(fd, 0, 0);
    done = (int)syscall(SYS_ftruncate, fd, size);
    if (here)
        power_fails();
    return done;
}

int ftruncate(int fd, off_t size)
{
    return cut_file(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    return cut_file(fd, size);
}

int rename(const char *from, const char *to)
{
    bool here = point(), fresh = access(to, F_OK) != 0;
    int done = fails(true) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    struct undo *u;

    if (disk.on && done == 0 && fresh) {
        u = calloc(1, sizeof *u);
        u->next = disk.undos;
        snprintf(u->path, sizeof u->path, "%s", to);
        snprintf(u->from, sizeof u->from, "%s", from);
        disk.undos = u;
    }
    if (here)
        power_fails();
    return done;
}

/* ---- a node's steps -------------------------------------------------------------------------------------------------------- */

static const struct hash run = { { 1 } }, one = { { 0x11 } }, two = { { 0x22 } }, three = { { 0x33 } };

struct stores {
    struct journal *journal;
    struct block_store blocks;
    struct error err;
};

static inline bool put_vote(struct stores *s, int view, struct hash *id)
{
    struct document out = { 0 };
    struct key_pair keys;
    json_t *fields = json_pack("{s:o, s:i, s:i, s:s, s:o}", "run", document_json_cid(run), "round", 1, "view", view, "phase",
                               "prepare", "record", document_json_cid(one));
    bool ok;

    key_pair_derive("crash_test", "one", &keys);
    ok = document_make(DOCUMENT_VOTE, fields, &keys.identity, NULL, &out, &s->err) &&
         journal_put_document(s->journal, &out, &s->err);
    *id = out.id;
    json_decref(fields);
    document_free(&out);
    return ok;
}

static inline bool put_object(struct stores *s)
{
    static char bytes[5000];
    struct hash id;

    memset(bytes, 7, sizeof bytes);
    return object_put(&s->blocks, "application/test", bytes, sizeof bytes, &id, &s->err);
}

static inline bool save(struct stores *s, uint32_t round, const char *text, const char *kind, const char *phase)
{
    struct statement statement = { kind, phase, one };

    return journal_save_round(s->journal, run, round, 0, text, strlen(text), &statement, 1, &s->err);
}

static inline bool finish(struct stores *s)
{
    struct hash record, certificate;

    return put_vote(s, 1, &record) && put_vote(s, 2, &certificate) &&
           journal_finish_round(s->journal, run, 1, record, certificate, &s->err);
}

/* A message from another machine: a document and a block that it names, in one write. */
static inline bool put_message(struct stores *s)
{
    struct hash id;

    return journal_begin(s->journal, &s->err) &&
           journal_end(s->journal,
                       put_vote(s, 3, &id) && journal_put_block(s->journal, hash_block("block", 5), "block", 5, &s->err),
                       &s->err);
}

/* What others say survives with what this node says next. */
static inline bool hear_and_say(struct stores *s)
{
    struct hash id;

    return journal_begin_lazily(s->journal, &s->err) && journal_end(s->journal, put_vote(s, 4, &id), &s->err) &&
           save(s, 2, "DE", "vote", "prepare");
}

static inline bool sync_all(struct stores *s, const char *folder)
{
    struct error none;
    int64_t mark;

    if (!journal_mark(s->journal, &mark, &s->err))
        return false;
    if (journal_sync_folder(folder, &s->err))
        return journal_synced(s->journal, mark, &s->err);
    journal_restore_files(s->journal, &none);
    return false;
}

enum { STEPS = 11 };

/* A step that is done again, or was done before the power failed, changes nothing. */
static inline bool step(struct stores *s, const char *folder, int number)
{
    struct hash id;

    switch (number) {
    case 0:
        return put_object(s);
    case 1:
        return save(s, 1, "A", "received", "");
    case 2:
        return put_vote(s, 0, &id);
    case 3:
        return save(s, 1, "AB", "vote", "prepare");
    case 4:
        return save(s, 1, "ABC", "vote", "commit");
    case 5:
        return finish(s);
    case 6:
        return journal_release_once(s->journal, two, three, &s->err);
    case 8:
        return put_message(s);
    case 9:
        return sync_all(s, folder);
    case 10:
        return hear_and_say(s);
    default:
        return save(s, 2, "D", "received", "") && journal_put_note(s->journal, "note", "text", 4, &s->err);
    }
}

static inline bool stores_open(struct stores *s, const char *folder)
{
    char path[128];

    *s = (struct stores){ 0 };
    snprintf(path, sizeof path, "%s/blocks", folder);
    s->journal = journal_open(folder, &s->err);
    return s->journal && block_store_open(path, &s->blocks, &s->err);
}

/* In a process of its own, which the power may fail: from step `first` on. Exit 0: all steps were done. */
static inline int node_runs(const char *folder, int first, long cut_at, enum cut cut, bool lossy, long *points)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct stores s;

        disk.on = true;
        disk.cut_at = cut_at;
        disk.cut = cut;
        disk.lossy = lossy;
        if (!stores_open(&s, folder))
            _exit(1);
        for (int i = first; i < STEPS; i++) {
            if (!step(&s, folder, i))
                _exit(2);
            *acknowledged = i + 1;
        }
        journal_close(s.journal);
        acknowledged[1] = (int)disk.points;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (points)
        *points = acknowledged[1];
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- what a node holds ------------------------------------------------------------------------------------------------------ */

static inline void add_table(sqlite3 *db, const char *sql, struct buffer *out)
{
    sqlite3_stmt *rows;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        buffer_add_text(out, (const char *)sqlite3_column_text(rows, 0));
        buffer_add_u8(out, '\n');
    }
    sqlite3_finalize(rows);
}

/* Every row; of files those that rows name, and the blocks. False: something is there that cannot be read, or is named and not there. */
static inline bool look(const char *folder, struct buffer *out)
{
    struct stores s;
    struct hash *ids = NULL;
    size_t count = 0;
    char path[128], text[HASH_TEXT];
    sqlite3 *db;
    DIR *blocks;
    bool ok;

    buffer_clear(out);
    if (!stores_open(&s, folder))
        return false;
    ok = journal_sound(s.journal, &s.err) && journal_list_documents(s.journal, run, DOCUMENT_VOTE, -1, &ids, &count, &s.err);
    for (size_t i = 0; ok && i < count; i++) {
        struct buffer bytes = { 0 };

        ok = journal_get_document(s.journal, ids[i], &bytes, &s.err);
        buffer_free(&bytes);
    }
    free(ids);
    journal_close(s.journal);

    snprintf(path, sizeof path, "%s/node.db", folder);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    add_table(db, "select round || view || kind || phase || hex(id) from signed order by 1", out);
    add_table(db, "select round || view || hex(variables) from open order by 1", out);
    add_table(db, "select round || hex(record) || hex(certificate) from final order by 1", out);
    add_table(db, "select hex(escrow) || hex(digest) from released order by 1", out);
    add_table(db, "select name || hex(value) from notes order by 1", out);
    add_table(db, "select hex(id) from documents order by 1", out);
    sqlite3_close(db);

    snprintf(path, sizeof path, "%s/blocks", folder);
    blocks = opendir(path);
    for (struct dirent *e; ok && blocks && (e = readdir(blocks));) {
        struct buffer bytes = { 0 };
        struct hash id;

        if (cid_parse(e->d_name, &id, NULL)) {
            ok = block_get(&s.blocks, id, &bytes, &s.err);
            hash_hex(id, text);
        }
        buffer_free(&bytes);
    }
    if (blocks)
        closedir(blocks);
    return ok;
}

static inline void clear(const char *path)
{
    char command[200];

    snprintf(command, sizeof command, "rm -rf %s", path);
    assert_int_equal(system(command), 0);
}

/* Tables after each number of steps of a node that nothing happened to; a step that writes several times has several. */
static struct buffer seen[64];
static int step_of[64], seen_count;

static inline bool same(const struct buffer *a, const struct buffer *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

static inline void note_state(const char *folder, int steps)
{
    struct buffer now = { 0 };

    assert_true(look(folder, &now));
    for (int i = 0; i < seen_count; i++)
        if (same(&seen[i], &now) && step_of[i] == steps) {
            buffer_free(&now);
            return;
        }
    assert_true(seen_count < 64);
    step_of[seen_count] = steps;
    seen[seen_count++] = now;
}

/* Whether what is held follows from `steps` steps, or is on the way to the next. */
static inline bool follows(const struct buffer *held, int steps)
{
    for (int i = 0; i < seen_count; i++)
        if (same(&seen[i], held) && (step_of[i] == steps || step_of[i] == steps + 1 || step_of[i] == -(steps + 1)))
            return true;
    return false;
}

/* The states between the writes of the steps that write several times: -(number of the step, from 1). */
static inline void note_between(const char *folder)
{
    struct stores s;
    struct hash id;

    for (int part = 1; part <= 2; part++) {
        clear(folder);
        assert_true(stores_open(&s, folder));
        for (int i = 0; i < 5; i++)
            assert_true(step(&s, folder, i));
        for (int view = 1; view <= part; view++)
            assert_true(put_vote(&s, view, &id));
        journal_close(s.journal);
        note_state(folder, -6);
    }
    clear(folder);
    assert_true(stores_open(&s, folder));
    for (int i = 0; i < 7; i++)
        assert_true(step(&s, folder, i));
    assert_true(save(&s, 2, "D", "received", ""));
    journal_close(s.journal);
    note_state(folder, -8);
    clear(folder);
    assert_true(stores_open(&s, folder));
    for (int i = 0; i < 10; i++)
        assert_true(step(&s, folder, i));
    assert_true(journal_begin_lazily(s.journal, &s.err) && journal_end(s.journal, put_vote(&s, 4, &id), &s.err));
    journal_close(s.journal);
    note_state(folder, -11);
}

static inline void note_states(const char *folder)
{
    struct stores s;

    for (int steps = 0; steps <= STEPS; steps++) {
        clear(folder);
        assert_true(stores_open(&s, folder));
        for (int i = 0; i < steps; i++)
            assert_true(step(&s, folder, i));
        journal_close(s.journal);
        note_state(folder, steps);
    }
    note_between(folder);
}

#endif
