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

static bool folder_open(const struct invocation *in, struct node *node, struct error *err)
{
    const char *name;
    char folder[4300];

    *node = (struct node){ 0 };
    if (!option_node_name(in, "syncer", &name, err))
        return false;
    snprintf(folder, sizeof folder, "%.3900s/nodes/%s", in->home, name);
    return collect_open(node, folder, in->argument[0], err);
}

static bool read_quota(const struct invocation *in, uint64_t *quota, struct error *err)
{
    const char *text = option_text(in, "quota", NULL);

    *quota = 0;
    return !text || memory_size_read(text, quota) || error_set(err, ERROR_USAGE, "a size such as 500M or 8G", "--quota %s", text);
}

static int node_gc_main(struct invocation *in)
{
    struct node node;
    struct error err = { 0 };
    struct collection c = { 0 };
    bool dry = option_flag(in, "dry-run");
    uint64_t quota;
    int64_t below;
    bool ok = read_quota(in, &quota, &err) && folder_open(in, &node, &err) &&
              collect_find_below(&node, getenv("RONDO_PASSPHRASE"), &below, &err) &&
              collect_run(&node, below, quota, dry, &c, &err);

    if (err.code != ERROR_USAGE)
        collect_close(&node);
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
        collect_close(&node);
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
