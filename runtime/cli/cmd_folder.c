/* A node's folder as files: node check, node backup. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/role/folder.h"
#include "runtime/role/home.h"

static void told(void *context, const char *what, int64_t done)
{
    const struct invocation *in = context;

    if (in->quiet || done % 64 != 0 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s %lld", what, (long long)done);
    fflush(stderr);
}

/* --- node check ----------------------------------------------------------------------------------------------------------------- */

static const struct option check_options[] = {
    { "repair", NULL,
      "delete what is damaged (the node fetches it again) and what broken writes left; index what is not indexed" },
    { NULL, NULL, NULL },
};

static void print_check(const char *name, const json_t *result)
{
    const json_t *checked = json_object_get(result, "checked");
    json_t *one;
    size_t index;

    printf("%s: %lld blocks, %lld documents, %lld files of models\n", name,
           (long long)json_integer_value(json_object_get(checked, "blocks")),
           (long long)json_integer_value(json_object_get(checked, "documents")),
           (long long)json_integer_value(json_object_get(checked, "models")));
    json_array_foreach(json_object_get(result, "findings"), index, one)
    {
        printf("  %s\n    %s\n    %s%s\n", json_string_value(json_object_get(one, "place")),
               json_string_value(json_object_get(one, "problem")), json_is_true(json_object_get(one, "repaired")) ? "done: " : "",
               json_string_value(json_object_get(one, "repair")));
    }
}

/* Findings that are still there. */
static size_t open_findings(const json_t *result)
{
    json_t *one;
    size_t index, open = 0;

    json_array_foreach(json_object_get(result, "findings"), index, one) open += !json_is_true(json_object_get(one, "repaired"));
    return open;
}

static json_t *check_one(struct invocation *in, const char *name, size_t *open, struct error *err)
{
    const struct folder_progress progress = { told, in };
    char folder[4400];
    json_t *result;

    snprintf(folder, sizeof folder, "%.4000s/nodes/%.200s", in->home, name);
    result = folder_check(folder, getenv("RONDO_PASSPHRASE"), option_flag(in, "repair"), &progress, err);
    command_clear_progress(in);
    if (!result)
        return NULL;
    *open += open_findings(result);
    if (!in->json)
        print_check(name, result);
    json_object_set_new(result, "node", json_string(name));
    return result;
}

static int check_main(struct invocation *in)
{
    struct error err = { 0 };
    size_t count = 0, open = 0;
    struct home_node *nodes = home_nodes(in->home, &count);
    json_t *list = json_array(), *result;
    bool ok = true;

    for (size_t i = 0; ok && i < (in->arguments ? in->arguments : count); i++) {
        result = check_one(in, in->arguments ? in->argument[i] : nodes[i].name, &open, &err);
        ok = result && json_array_append_new(list, result) == 0;
    }
    ok = ok && home_may_read(in->home, &err);
    if (ok && json_array_size(list) == 0)
        ok = error_set(&err, ERROR_MISSING, "give the home of a node by --home", "%s holds no nodes", in->home);
    home_nodes_free(nodes, count);
    if (ok && in->json)
        command_print_json(json_pack("{s:O, s:b}", "nodes", list, "ok", open == 0));
    json_decref(list);
    if (!ok)
        return command_fail(in, &err);
    return open == 0 ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_node_check = {
    "node check",
    "[NAME...]",
    "look at every file of a node's folder, or of every node of a home",
    "rondo node check --home /srv/rondo\nrondo node check syncer-1 --home /srv/rondo --repair",
    "Hashes every block, verifies every document, compares models with their blocks, and the journal with itself and with the "
    "files.\n"
    "Stop the node first. Exit status 1 when something is wrong that was not repaired; each finding says what to do.",
    check_options,
    check_main,
};

/* --- node backup ---------------------------------------------------------------------------------------------------------------- */

static const struct option backup_options[] = {
    { "no-key", NULL, "leave key.json out" },
    { NULL, NULL, NULL },
};

static int backup_main(struct invocation *in)
{
    const struct folder_progress progress = { told, in };
    struct error err = { 0 };
    char folder[4400];
    json_t *result, *copied, *kept;

    snprintf(folder, sizeof folder, "%.4000s/nodes/%.200s", in->home, in->argument[0]);
    result = folder_backup(folder, in->argument[1], !option_flag(in, "no-key"), &progress, &err);
    command_clear_progress(in);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    copied = json_object_get(result, "copied");
    kept = json_object_get(result, "kept");
    printf("copied %lld blocks and %lld documents to %s; %lld and %lld were there\n",
           (long long)json_integer_value(json_object_get(copied, "blocks")),
           (long long)json_integer_value(json_object_get(copied, "documents")), in->argument[1],
           (long long)json_integer_value(json_object_get(kept, "blocks")),
           (long long)json_integer_value(json_object_get(kept, "documents")));
    json_decref(result);
    return EXIT_OK;
}

const struct command command_node_backup = {
    "node backup",
    "NAME DIR",
    "copy a node's folder, so that a node can go on from the copy",
    "rondo node backup syncer-1 /backup/syncer-1 --home /srv/rondo",
    "DIR is a new folder or an earlier copy, to which only what is new is added. Stop the node first. To restore: copy DIR to\n"
    "HOME/nodes/NAME. A syncer that goes on from a copy enrols anew and signs only after a record has listed that, so it cannot\n"
    "contradict what it signed since. DIR holds the node's secrets unless --no-key is given.",
    backup_options,
    backup_main,
};
