#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "native/kernel/class.h"
#include "runtime/cli/commands.h"
#include "runtime/role/sync.h"

static const struct option options[] = {
    { "peer", "URL", "a node of the run; others are found from it" },
    { "ledger", "URL", "the run's ledger (default http://127.0.0.1:8645)" },
    { "name", "NAME", "folder HOME/nodes/NAME (default: syncer)" },
    { "adapter", "DIR", "write what was trained into DIR, in the layout that PEFT loads" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { NULL, NULL, NULL },
};

static void told(void *context, const char *what, int64_t done)
{
    const struct invocation *in = context;

    if (in->quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kfetching and verifying %s %lld", what, (long long)done);
    fflush(stderr);
}

static int sync_main(struct invocation *in)
{
    struct error err = { 0 };
    struct sync_options sync = { .home = in->home,
                                 .name = option_text(in, "name", "syncer"),
                                 .run = in->argument[0],
                                 .peer = option_text(in, "peer", NULL),
                                 .ledger = option_text(in, "ledger", "http://127.0.0.1:8645"),
                                 .adapter = option_text(in, "adapter", NULL),
                                 .plain = option_flag(in, "plain"),
                                 .threads = in->threads,
                                 .told = told,
                                 .context = in };
    json_t *result = NULL;

    if (!sync.peer)
        error_set(&err, ERROR_USAGE, NULL, "--peer URL is needed: any node of the run");
    else if (kernel_start(&err))
        result = sync_run(&sync, &err);
    command_clear_progress(in);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    printf("run    %s\nround  %lld%s\nstate  %s\n", json_string_value(json_object_get(result, "run")),
           (long long)json_integer_value(json_object_get(result, "rounds")),
           json_is_true(json_object_get(result, "finished")) ? ", the last" : "",
           json_string_value(json_object_get(result, "state_root")));
    json_decref(result);
    return EXIT_OK;
}

const struct command command_sync = {
    "sync",
    "RUN",
    "fetch a run into an empty folder, verify every record and compute every state again",
    "rondo sync RUN --peer http://syncer.example:7001 --ledger http://ledger.example:8645\n"
    "rondo sync RUN --peer http://127.0.0.1:7001 --home build/new --name syncer-1 --json\n"
    "rondo sync RUN --peer http://syncer.example:7001 --name copy --adapter my_adapter",
    "Everything comes from the peers and is checked against certificates, ledger and the scripts themselves; the state it ends "
    "at is\n"
    "computed here. May be broken off and called again. A syncer of that name goes on from the folder; its key must be put "
    "there.",
    options,
    sync_main,
};
