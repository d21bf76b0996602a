/* Room on a node's disk: node gc, node pin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/memory_limit.h"
#include "runtime/cli/commands.h"
#include "runtime/role/collect.h"
#include "runtime/role/home.h"

#define ROLE_NAME                                                                                                                \
    {                                                                                                                            \
        "name", "NAME", "folder HOME/nodes/NAME (default: syncer)"                                                               \
    }

/* A node's folder without key, loop or server: the journal refuses to be opened while a process serves it. */
static bool folder_open(const struct invocation *in, struct node *node, struct error *err)
{
    const char *name;
    char path[4300];

    *node = (struct node){ 0 };
    if (!option_node_name(in, "syncer", &name, err))
        return false;
    snprintf(node->folder, sizeof node->folder, "%.3900s/nodes/%s", in->home, name);
    home_did(in->home, name, node->did);
    node->peers = peer_list_new();
    snprintf(path, sizeof path, "%s/node.db", node->folder);
    if (!file_exists(path)) {
        error_set(err, ERROR_MISSING, "rondo status lists the nodes of a home", "no node has been here");
        return error_at(err, "%s", node->folder);
    }
    snprintf(path, sizeof path, "%s/blocks", node->folder);
    node->journal = journal_open(node->folder, err);
    node->course = node->journal ? calloc(1, sizeof *node->course) : NULL;
    if (!node->course || !block_store_open(path, &node->blocks, err))
        return false;
    node->blocks.unsynced = journal_files(node->journal);
    return course_load(node, in->argument[0], node->course, err);
}

static void folder_close(struct node *node)
{
    if (node->course)
        course_free(node->course);
    free(node->course);
    journal_close(node->journal);
    peer_list_free(node->peers);
}

static bool read_quota(const struct invocation *in, uint64_t *quota, struct error *err)
{
    const char *text = option_text(in, "quota", NULL);

    *quota = 0;
    return !text || memory_size_read(text, quota) || error_set(err, ERROR_USAGE, "a size such as 500M or 8G", "--quota %s", text);
}

/* The round below which rounds may be dropped, from what the folder itself says. */
static bool find_below(struct node *node, int64_t *below, struct error *err)
{
    uint32_t last;
    struct hash record, certificate;
    struct buffer bytes = { 0 };
    struct document d = { 0 };
    struct error none = { 0 };

    *below = 0;
    if (!journal_last_final(node->journal, node->course->id, &last, &none))
        return none.code == ERROR_MISSING || (*err = none, false);
    if (journal_final(node->journal, node->course->id, last, &record, &certificate, err) &&
        journal_get_document(node->journal, record, &bytes, err) &&
        document_read_as(DOCUMENT_RECORD, bytes.bytes, bytes.size, &d, err))
        *below = collect_below(d.json, collect_verified(node));
    else
        error_at(err, "round %u", last);
    document_free(&d);
    buffer_free(&bytes);
    return err->code == ERROR_NONE;
}

static int node_gc_main(struct invocation *in)
{
    struct node node;
    struct error err = { 0 };
    struct collection c = { 0 };
    bool dry = option_flag(in, "dry-run");
    uint64_t quota;
    int64_t below;
    bool ok = read_quota(in, &quota, &err) && folder_open(in, &node, &err) && find_below(&node, &below, &err) &&
              collect_run(&node, below, quota, dry, &c, &err);

    if (err.code != ERROR_USAGE)
        folder_close(&node);
    if (!ok)
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "run", in->argument[0], "dry_run", dry,
                                     "pinned", c.pinned, "bytes", (json_int_t)c.bytes, "blocks", (json_int_t)c.blocks,
                                     "dropped_bytes", (json_int_t)c.dropped_bytes, "dropped_blocks", (json_int_t)c.dropped_blocks,
                                     "round", (json_int_t)c.round, "below", (json_int_t)below));
    else if (c.pinned)
        printf("the run is pinned: nothing is dropped (rondo node pin %s --off)\n", in->argument[0]);
    else
        printf("%.1f MB in %llu blocks; %s %.1f MB in %llu blocks; rounds before %lld may be dropped\n", (double)c.bytes / 1e6,
               (unsigned long long)c.blocks, dry ? "would drop" : "dropped", (double)c.dropped_bytes / 1e6,
               (unsigned long long)c.dropped_blocks, (long long)below);
    return EXIT_OK;
}

static int node_pin_main(struct invocation *in)
{
    struct node node;
    struct error err = { 0 };
    bool pinned = !option_flag(in, "off"), usage;
    bool ok = folder_open(in, &node, &err) && collect_pin(node.journal, in->argument[0], pinned, &err);

    usage = err.code == ERROR_USAGE;
    if (!usage)
        folder_close(&node);
    if (!ok)
        return command_fail(in, &err);
    if (in->json)
        command_print_json(json_pack("{s:s, s:b}", "run", in->argument[0], "pinned", pinned));
    else
        printf("%s\n", pinned ? "pinned: nothing of this run is dropped here" : "no longer pinned");
    return EXIT_OK;
}

static const struct option gc_options[] = {
    ROLE_NAME,
    { "quota", "SIZE", "drop no more than is needed for the blocks to fit (default: all that may be dropped)" },
    { "dry-run", NULL, "only say what would be dropped" },
    { NULL, NULL, NULL },
};

static const struct option pin_options[] = {
    ROLE_NAME,
    { "off", NULL, "let go again" },
    { NULL, NULL, NULL },
};

const struct command command_node_gc = {
    "node gc",
    "RUN",
    "drop blocks of rounds that are over from the folder of a stopped node",
    "rondo node gc RUN --name syncer-1 --dry-run\nrondo node gc RUN --name syncer-1 --quota 20G",
    "Kept are the run's scripts, model and data, the first, the last and every tenth state, and all of the rounds that can still "
    "be\n"
    "disputed or corrected, with three to spare. A running node does the same by itself with --quota SIZE. What is dropped here "
    "is\n"
    "missing to audit, replay and sync, unless another node has it.",
    gc_options,
    node_gc_main,
};

const struct command command_node_pin = {
    "node pin",
    "RUN",
    "keep every block of a run in a node's folder, whatever the quota",
    "rondo node pin RUN --name syncer-1\nrondo node pin RUN --name syncer-1 --off",
    "",
    pin_options,
    node_pin_main,
};
