#include "runtime/role/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/crypto/keyfile.h"
#include "runtime/role/course_needs.h"
#include "runtime/store/object.h"

enum { OPEN_ROUNDS = 2 }; /* documents come for the open round and the one after it */

/* --- a set of hashes --------------------------------------------------------------------------------------------------- */

struct hash_set {
    struct hash *slots; /* zero: free */
    size_t count, size; /* size: a power of two, or 0 */
};

static const struct hash none = { { 0 } };

static size_t slot_of(const struct hash_set *set, struct hash id)
{
    size_t at;

    memcpy(&at, id.bytes, sizeof at);
    for (at &= set->size - 1; !hash_equal(set->slots[at], none) && !hash_equal(set->slots[at], id);)
        at = (at + 1) & (set->size - 1);
    return at;
}

static bool set_has(const struct hash_set *set, struct hash id)
{
    return set->size && hash_equal(set->slots[slot_of(set, id)], id);
}

/* False when it was there. */
static bool set_add(struct hash_set *set, struct hash id)
{
    if (set->count * 2 >= set->size) {
        struct hash_set wider = { .size = set->size ? set->size * 2 : 1024, .count = set->count };

        wider.slots = calloc(wider.size, sizeof *wider.slots);
        if (!wider.slots)
            abort();
        for (size_t i = 0; i < set->size; i++)
            if (!hash_equal(set->slots[i], none))
                wider.slots[slot_of(&wider, set->slots[i])] = set->slots[i];
        free(set->slots);
        *set = wider;
    }

    size_t at = slot_of(set, id);

    if (hash_equal(set->slots[at], id))
        return false;
    set->slots[at] = id;
    set->count++;
    return true;
}

/* --- what is named ----------------------------------------------------------------------------------------------------- */

struct collector {
    struct node *node;
    struct hash_set kept;
    struct buffer dropped; /* struct hash: of the files deleted */
    struct collection *out;
    bool dry;
};

/* The chunks of a block that is a manifest; none for another, or for one that is not here. */
static struct manifest chunks_of(const struct collector *c, struct hash id)
{
    struct manifest m = { 0 };
    struct error no = { 0 };

    if (!block_has(&c->node->blocks, id) || !object_manifest(&c->node->blocks, id, NULL, UINT64_MAX, &m, &no))
        m = (struct manifest){ 0 };
    return m;
}

static void keep(struct collector *c, struct hash id)
{
    struct manifest m;

    if (!set_add(&c->kept, id))
        return;
    m = chunks_of(c, id);
    for (size_t i = 0; i < m.count; i++)
        set_add(&c->kept, m.chunks[i]);
    manifest_free(&m);
}

/* Every content id that stands anywhere in it. */
static void each_cid(const json_t *value, void (*visit)(struct collector *, struct hash), struct collector *c)
{
    const char *key;
    json_t *inner;
    size_t index;
    struct hash id;

    if (json_is_string(value)) {
        if (cid_parse(json_string_value(value), &id, NULL))
            visit(c, id);
    } else if (json_is_array(value)) {
        json_array_foreach((json_t *)(uintptr_t)value, index, inner) each_cid(inner, visit, c);
    } else if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, inner) each_cid(inner, visit, c);
    }
}

static const enum document_type naming[] = { DOCUMENT_CONTRIBUTION, DOCUMENT_OPENING, DOCUMENT_PICK };

/* What documents of a run name, of one round, or with `round` below zero of all from `from` on. */
static bool each_named(struct collector *c, struct hash run, int64_t round, int64_t from,
                       void (*visit)(struct collector *, struct hash), struct error *err)
{
    bool ok = true;

    for (size_t t = 0; ok && t < sizeof naming / sizeof *naming; t++) {
        struct hash *ids = NULL;
        size_t count = 0;

        ok = journal_list_documents(c->node->journal, run, naming[t], round, &ids, &count, err);
        for (size_t i = 0; ok && i < count; i++) {
            struct buffer bytes = { 0 };
            struct document d = { 0 };

            ok = journal_get_document(c->node->journal, ids[i], &bytes, err) &&
                 document_read_bytes(bytes.bytes, bytes.size, c->node->known, &d, err);
            if (ok && (int64_t)d.round >= from)
                each_cid(d.json, visit, c);
            document_free(&d);
            buffer_free(&bytes);
        }
        free(ids);
    }
    return ok;
}

/* The record of a round. New reference; NULL with `err`: missing when it is not here. */
static json_t *record_at(struct collector *c, struct hash run, int64_t round, struct error *err)
{
    struct hash record, certificate;
    struct buffer bytes = { 0 };
    json_t *value = NULL;

    if (journal_final(c->node->journal, run, (uint32_t)round, &record, &certificate, err) &&
        journal_get_document(c->node->journal, record, &bytes, err))
        value = json_read((const char *)bytes.bytes, bytes.size, SIZE_MAX, err);
    buffer_free(&bytes);
    return value;
}

static void keep_state(struct collector *c, const json_t *record)
{
    struct hash id;

    if (document_text(record, "outer") && cid_parse(document_text(record, "outer"), &id, NULL))
        keep(c, id);
}

/* Checkpoints keep their state; the record that round `below` begins with, and later ones, whatever they name: also the carries of machines
 * that were away for long. */
static bool keep_records(struct collector *c, struct hash run, int64_t below, struct error *err)
{
    uint32_t last;
    struct error no = { 0 };

    if (!journal_last_final(c->node->journal, run, &last, &no))
        return no.code == ERROR_MISSING || (*err = no, false);
    for (int64_t round = 0; round <= (int64_t)last; round++) {
        if (round < below - 1 && round % COLLECT_CHECKPOINT != 0)
            continue;

        json_t *record = record_at(c, run, round, err);

        if (!record)
            return error_at(err, "round %lld", (long long)round);
        if (round < below - 1)
            keep_state(c, record);
        else
            each_cid(record, keep, c);
        json_decref(record);
    }
    return true;
}

/* Shards are fetched one by one, as rounds assign them: those that the dataset's manifest lists. */
static void keep_shards(struct collector *c)
{
    struct buffer bytes = { 0 };
    json_t *manifest = NULL;

    if (block_get(&c->node->blocks, c->node->course->spec.dataset.manifest, &bytes, NULL))
        manifest = json_read((const char *)bytes.bytes, bytes.size, BLOCK_SIZE, NULL);
    each_cid(manifest, keep, c);
    json_decref(manifest);
    buffer_free(&bytes);
}

static bool keep_course(struct collector *c, struct error *err)
{
    struct fetch_want *wants = NULL;
    size_t count;
    bool complete, ok = course_wants(c->node->course, &wants, &count, &complete, err);

    for (size_t i = 0; ok && i < count; i++)
        keep(c, wants[i].id);
    free(wants);
    keep_shards(c);
    return ok && (complete || error_set(err, ERROR_MISSING, "start the node once: it fetches the rest",
                                        "not everything that the run is made of is here"));
}

/* Whatever documents of other runs in this folder name, and what their specs do. */
static bool keep_others(struct collector *c, struct error *err)
{
    struct hash *runs = NULL;
    size_t count = 0;
    bool ok = journal_list_runs(c->node->journal, &runs, &count, err);

    for (size_t i = 0; ok && i < count; i++) {
        char run[CID_TEXT];
        struct course *own = c->node->course, other = { 0 };

        if (hash_equal(runs[i], own->id))
            continue;
        ok = course_load(c->node, cid_text(runs[i], run), &other, err);
        c->node->course = &other;
        ok = ok && keep_course(c, err) && keep_records(c, runs[i], 0, err) && each_named(c, runs[i], -1, 0, keep, err);
        c->node->course = own;
        course_free(&other);
    }
    free(runs);
    return ok;
}

/* --- dropping ---------------------------------------------------------------------------------------------------------- */

static bool size_of(const struct block_store *blocks, struct hash id, uint64_t *size)
{
    char path[4300], cid[CID_TEXT];
    struct stat about;

    snprintf(path, sizeof path, "%s/%s", blocks->folder, cid_text(id, cid));
    if (lstat(path, &about) || !S_ISREG(about.st_mode))
        return false;
    *size = (uint64_t)about.st_size;
    return true;
}

static void drop_block(struct collector *c, struct hash id)
{
    uint64_t size;

    if (set_has(&c->kept, id) || !size_of(&c->node->blocks, id, &size))
        return;
    if (c->dry)
        set_add(&c->kept, id); /* counted once */
    else if (block_delete(&c->node->blocks, id, NULL))
        buffer_add(&c->dropped, id.bytes, sizeof id);
    else
        return; /* it is counted again the next time */
    c->out->dropped_bytes += size;
    c->out->dropped_blocks++;
}

static void drop(struct collector *c, struct hash id)
{
    struct manifest m;

    if (set_has(&c->kept, id))
        return;
    m = chunks_of(c, id);
    for (size_t i = 0; i < m.count; i++)
        drop_block(c, m.chunks[i]);
    manifest_free(&m);
    drop_block(c, id);
}

/* A round whose record is not here is left out: a node that came later has nothing of it. */
static bool drop_round(struct collector *c, int64_t round, struct error *err)
{
    struct hash run = c->node->course->id;
    struct error no = { 0 };
    json_t *record = record_at(c, run, round, &no);
    uint64_t before = c->out->dropped_blocks;
    bool ok = record ? each_named(c, run, round, round, drop, err) : no.code == ERROR_MISSING || (*err = no, false);

    if (ok && record) {
        static const char *const objects[] = { "aggregate", "outer" };
        struct hash id;

        for (size_t i = 0; i < 2; i++)
            if (document_text(record, objects[i]) && cid_parse(document_text(record, objects[i]), &id, NULL))
                drop(c, id);
    }
    if (c->out->dropped_blocks > before)
        c->out->round = round;
    json_decref(record);
    return ok;
}

bool collect_measure(const struct block_store *blocks, uint64_t *bytes, uint64_t *count, struct error *err)
{
    DIR *folder = opendir(blocks->folder);
    struct dirent *entry;

    *bytes = *count = 0;
    if (!folder) {
        error_set(err, ERROR_IO, NULL, "cannot read the folder: %s", strerror(errno));
        return error_at(err, "%s", blocks->folder);
    }
    while ((entry = readdir(folder))) {
        struct stat about;

        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) || !S_ISREG(about.st_mode))
            continue;
        *bytes += (uint64_t)about.st_size;
        ++*count;
    }
    closedir(folder);
    return true;
}

int64_t collect_below(const json_t *last_record, int64_t verified)
{
    int64_t below = document_integer(last_record, "round"), correct = document_integer(last_record, "correct");
    json_t *entry;
    size_t index;

    json_array_foreach(json_object_get(last_record, "unsettled"), index, entry)
    {
        int64_t round = document_integer(entry, "round");

        below = round < below ? round : below;
    }
    if (correct > 0 && correct < below)
        below = correct;
    if (verified >= 0 && verified < below)
        below = verified;
    return below > COLLECT_SPARE ? below - COLLECT_SPARE : 0;
}

/* The rounds before it have nothing left to drop: they are not looked through again. The last one's state has been kept until now. */
static const char *first_name(const char *run, char name[128])
{
    snprintf(name, 128, "collected/%s", run);
    return name;
}

int64_t collect_dropped(struct journal *journal, const char *run)
{
    char name[128];
    struct buffer text = { 0 };
    int64_t round = journal_get_note(journal, first_name(run, name), &text, NULL) ? strtol(buffer_text(&text), NULL, 10) : -1;

    buffer_free(&text);
    return round;
}

static int64_t first_kept(const struct node *node)
{
    int64_t round = collect_dropped(node->journal, node->course->run);

    return round < 0 ? 0 : round;
}

static bool put_first_kept(struct node *node, int64_t round, struct error *err)
{
    char name[128], text[24];

    snprintf(text, sizeof text, "%lld", (long long)round);
    return journal_put_note(node->journal, first_name(node->course->run, name), text, strlen(text), err);
}

int64_t collect_verified(const struct node *node)
{
    char name[128];
    struct buffer text = { 0 };
    int64_t rounds = -1;
    const struct run_spec *spec = &node->course->spec;

    for (size_t i = 0; i < spec->committee.panel_count; i++) {
        char did[DID_TEXT];

        if (strcmp(did_text(&spec->committee.panel[i].did, did), node->did) == 0)
            rounds = 0;
    }
    if (rounds < 0)
        return rounds;
    snprintf(name, sizeof name, "verified/%s", node->course->run);
    if (journal_get_note(node->journal, name, &text, NULL))
        rounds = strtol(buffer_text(&text), NULL, 10);
    buffer_free(&text);
    return rounds;
}

bool collect_run(struct node *node, int64_t below, uint64_t quota, bool dry, struct collection *out, struct error *err)
{
    struct collector c = { .node = node, .out = out, .dry = dry };
    uint32_t last = 0;
    int64_t first;
    struct error no = { 0 };
    bool ok;

    *out = (struct collection){ .round = -1, .pinned = collect_pinned(node->journal, node->course->run) };
    if (!collect_measure(&node->blocks, &out->bytes, &out->blocks, err))
        return false;
    if (out->pinned || out->bytes <= quota || below <= 0)
        return true;
    ok = keep_course(&c, err) && keep_records(&c, node->course->id, below, err) && keep_others(&c, err) &&
         (journal_last_final(node->journal, node->course->id, &last, &no) || no.code == ERROR_MISSING || (*err = no, false));
    for (int64_t round = below; ok && round <= (int64_t)last + OPEN_ROUNDS; round++)
        ok = each_named(&c, node->course->id, round, round, keep, err);
    first = ok ? first_kept(node) : below;
    while (ok && first < below && out->bytes - out->dropped_bytes > quota)
        ok = drop_round(&c, first++, err);
    ok = journal_forget_blocks(node->journal, (struct hash *)c.dropped.bytes, c.dropped.size / sizeof(struct hash),
                               ok ? err : NULL) &&
         ok && (dry || first == 0 || put_first_kept(node, first - 1, err));
    free(c.kept.slots);
    buffer_free(&c.dropped);
    return ok;
}

/* --- a folder that no process serves ------------------------------------------------------------------------------------- */

static bool read_did(struct node *node, const char *passphrase, struct error *err)
{
    struct key_pair keys;
    struct public_key key;
    char path[4300];

    snprintf(path, sizeof path, "%s/key.json", node->folder);
    if (!file_exists(path)) /* a folder that was fetched: nobody's */
        return true;
    if (!keyfile_read(path, passphrase, &keys, err))
        return error_at(err, "%s", path);
    key = public_key_of(&keys.identity);
    did_text(&key, node->did);
    key_pair_wipe(&keys);
    return true;
}

static bool open_folder(struct node *node, const char *run, struct error *err)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/node.db", node->folder);
    if (!file_exists(path)) {
        error_set(err, ERROR_MISSING, "rondo status lists the nodes of a home", "no node has been here");
        return error_at(err, "%s", node->folder);
    }
    node->peers = peer_list_new();
    node->course = calloc(1, sizeof *node->course);
    node->journal = node->course ? journal_open(node->folder, err) : NULL;
    snprintf(path, sizeof path, "%s/blocks", node->folder);
    if (!node->journal || !block_store_open(path, &node->blocks, err))
        return false;
    node->blocks.unsynced = journal_files(node->journal);
    return course_load(node, run, node->course, err);
}

bool collect_open(struct node *node, const char *folder, const char *run, struct error *err)
{
    *node = (struct node){ 0 };
    snprintf(node->folder, sizeof node->folder, "%s", folder);
    if (open_folder(node, run, err))
        return true;
    collect_close(node);
    return false;
}

void collect_close(struct node *node)
{
    if (node->course)
        course_free(node->course);
    free(node->course);
    journal_close(node->journal);
    peer_list_free(node->peers);
    *node = (struct node){ 0 };
}

bool collect_find_below(struct node *node, const char *passphrase, int64_t *below, struct error *err)
{
    uint32_t last;
    struct error no = { 0 };
    struct collector c = { .node = node };
    json_t *record;

    *below = 0;
    if (!read_did(node, passphrase, err))
        return false;
    if (!journal_last_final(node->journal, node->course->id, &last, &no))
        return no.code == ERROR_MISSING || (*err = no, false);
    record = record_at(&c, node->course->id, last, err);
    if (!record)
        return error_at(err, "round %u", last);
    *below = collect_below(record, collect_verified(node));
    json_decref(record);
    return true;
}

/* --- pins -------------------------------------------------------------------------------------------------------------- */

static const char *pin_name(const char *run, char name[128])
{
    snprintf(name, 128, "pin/%s", run);
    return name;
}

bool collect_pin(struct journal *journal, const char *run, bool pinned, struct error *err)
{
    char name[128];

    return journal_put_note(journal, pin_name(run, name), pinned ? "1" : "0", 1, err);
}

bool collect_pinned(struct journal *journal, const char *run)
{
    char name[128];
    struct buffer text = { 0 };
    bool pinned = journal_get_note(journal, pin_name(run, name), &text, NULL) && text.size && text.bytes[0] == '1';

    buffer_free(&text);
    return pinned;
}
