#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/decimal.h"
#include "native/kernel/class.h"
#include "runtime/cli/commands.h"
#include "runtime/role/audit.h"
#include "runtime/role/sync.h"

static const struct option options[] = {
    { "quick", NULL, "believe the records' plans and folds instead of computing them again" },
    { "recompute", "SHARE", "also replay this share of the contributions, step by step (0.1; 1: all)" },
    { "ledger", "URL", "ask this ledger (default: the file in HOME/ledger)" },
    { "peer", "URL", "audit a run that goes on: verify it from this node on, then replay the share and challenge what is wrong" },
    { "name", "NAME", "with --peer: folder HOME/nodes/NAME with key.json (default: auditor)" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { NULL, NULL, NULL },
};

static void told(void *context, const char *what, int64_t done, int64_t of)
{
    const struct invocation *in = context;

    if (in->quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kchecking %s", what);
    if (of)
        fprintf(stderr, " %lld/%lld", (long long)done, (long long)of);
    fflush(stderr);
}

static size_t print_each(const json_t *result, const char *name, const char *label)
{
    json_t *list = json_object_get(result, name), *each;
    size_t index;

    json_array_foreach(list, index, each)
    {
        printf("%s%s: %s\n", label, json_string_value(json_object_get(each, "place")),
               json_string_value(json_object_get(each, "message")));
    }
    return json_array_size(list);
}

static void print_audit(const json_t *result)
{
    json_t *count;
    const char *name;
    size_t found = print_each(result, "findings", "FOUND   "), missing = print_each(result, "incomplete", "MISSING ");

    printf("run     %s\nrounds  %lld%s\nstate   %s\nchecked", json_string_value(json_object_get(result, "run")),
           (long long)json_integer_value(json_object_get(result, "rounds")),
           json_is_true(json_object_get(result, "finished")) ? ", finished" : "",
           json_is_string(json_object_get(result, "state_root")) ? json_string_value(json_object_get(result, "state_root"))
                                                                 : "-");
    json_object_foreach(json_object_get(result, "checked"), name, count)
        printf(" %s=%lld", name, (long long)json_integer_value(count));
    if (found)
        printf("\nNOT everything holds\n");
    else if (missing)
        printf("\nwhat is here holds; %zu things are not in this home, and what needs them was not checked\n", missing);
    else
        printf("\neverything holds\n");
}

static void told_fetching(void *context, const char *what, int64_t done)
{
    told(context, what, done, 0);
}

/* Everything that is decided is verified from the first record on; then the node goes on as an auditor. */
static int audit_peer(struct invocation *in, int64_t share)
{
    struct error err = { 0 };
    const char *name;
    struct sync_options sync = { .home = in->home,
                                 .run = in->argument[0],
                                 .peer = option_text(in, "peer", NULL),
                                 .ledger = option_text(in, "ledger", "http://127.0.0.1:8645"),
                                 .plain = option_flag(in, "plain"),
                                 .threads = in->threads,
                                 .told = told_fetching,
                                 .context = in };
    json_t *result = NULL;

    if (option_node_name(in, "auditor", &name, &err) && kernel_start(&err)) {
        sync.name = name;
        result = sync_run(&sync, &err);
    }
    command_clear_progress(in);
    if (!result && err.code == ERROR_MISSING && strncmp(err.place, "round 0:", 8) == 0)
        return audit_live(in, share); /* nothing is decided yet */
    if (!result)
        return err.code == ERROR_MISMATCH || err.code == ERROR_CONFLICT ? (command_fail(in, &err), EXIT_VERDICT)
                                                                        : command_fail(in, &err);
    if (in->json)
        command_print_json(result);
    else
        json_decref(result);
    fflush(stdout);
    return audit_live(in, share);
}

static int audit_main(struct invocation *in)
{
    struct error err = { 0 };
    struct audit_options audit = { .home = in->home,
                                   .run = in->argument[0],
                                   .ledger = option_text(in, "ledger", NULL),
                                   .plain = option_flag(in, "plain"),
                                   .quick = option_flag(in, "quick"),
                                   .threads = in->threads,
                                   .told = told,
                                   .context = in };
    const char *share = option_text(in, "recompute", "0");
    json_t *result;

    if (!decimal_parse(share, &audit.recompute) || audit.recompute < 0 || audit.recompute > DECIMAL_ONE) {
        error_set(&err, ERROR_USAGE, NULL, "--recompute %s: a share from 0 to 1 is needed", share);
        return command_fail(in, &err);
    }
    if (option_text(in, "peer", NULL))
        return audit_peer(in, audit.recompute);
    result = audit_run(&audit, &err);
    command_clear_progress(in);
    if (!result)
        return command_fail(in, &err);

    bool ok = json_is_true(json_object_get(result, "ok"));

    if (in->json) {
        command_print_json(result);
    } else {
        print_audit(result);
        json_decref(result);
    }
    return ok ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_audit = {
    "audit",
    "RUN",
    "check every signature, record, seed, committee, contribution and payment of a run",
    "rondo audit RUN --home build/q\nrondo audit RUN --home build/q --recompute 0.1 --json\n"
    "rondo audit RUN --home /srv/rondo --ledger http://ledger.example:8645\n"
    "rondo audit RUN --recompute 0.1 --peer http://syncer.example:7001 --ledger http://ledger.example:8645",
    "Needs no node running: everything is read from the nodes' folders in HOME and the ledger, every copy is hashed again, "
    "every\n"
    "record is computed again from the documents it names, plans and folds by the scripts themselves. Exit status 1 when "
    "something\n"
    "does not hold; each finding names node and file, document or round. A home that has not everything (a trainer's, a copy by\n"
    "sync) ends with status 1 too, and lists apart what is not in it. What else lies in the folders is not looked at.\n"
    "With --peer the run goes on: everything decided so far is fetched and computed again as by sync, then the share of what "
    "can\n"
    "still be disputed is replayed, and what is wrong is challenged until the committee has decided, as by rondo auditor, to "
    "the\n"
    "end of the run. Exit status 0: all of it was right; 1: the last line says whether everybody who was wrong is convicted.",
    options,
    audit_main,
};
