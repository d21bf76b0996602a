#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/amend.h"

static const struct option options[] = {
    { "peer", "URL", "a syncer or trainer of the run (needed)" },
    { "end", NULL, "no later round trains; what is open is settled" },
    { "pause", NULL, "rounds are skipped, each as long as round_ms, until --resume" },
    { "resume", NULL, "rounds train again" },
    { "quorum", "N", "quorum.trainers" },
    { "spot-check", "SHARE", "trust.spot_check" },
    { "from", "ROUND", "the first round it touches (default: the first that can be)" },
    { "wait", "SECONDS", "for the record that lists it (default 60)" },
    { "name", "NAME", "whose key: HOME/nodes/NAME/key.json (default: sponsor)" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { NULL, NULL, NULL },
};

/* What the options change; NULL with `err` (usage). */
static json_t *read_changes(const struct invocation *in, struct error *err)
{
    json_t *changes = json_object();
    int64_t quorum;

    if (option_flag(in, "end"))
        json_object_set_new(changes, "end", json_true());
    if (option_flag(in, "pause") != option_flag(in, "resume"))
        json_object_set_new(changes, "pause", json_boolean(option_flag(in, "pause")));
    if (option_text(in, "quorum", NULL)) {
        if (!option_integer(in, "quorum", 1, 10000, &quorum, err)) {
            json_decref(changes);
            return NULL;
        }
        json_object_set_new(changes, "quorum.trainers", json_integer(quorum));
    }
    if (option_text(in, "spot-check", NULL))
        json_object_set_new(changes, "trust.spot_check", json_string(option_text(in, "spot-check", NULL)));
    if (json_object_size(changes))
        return changes;
    json_decref(changes);
    error_set(err, ERROR_USAGE, NULL, "say what changes: --end, --pause, --resume, --quorum N or --spot-check SHARE");
    return NULL;
}

static int amend_main(struct invocation *in)
{
    struct error err = { 0 };
    struct key_pair keys = { 0 };
    const char *name;
    char path[4500];
    int64_t from = 0, wait = 60;
    json_t *changes = read_changes(in, &err), *result = NULL;
    bool ok = changes && option_integer(in, "from", 1, 1000000, &from, &err) &&
              option_integer(in, "wait", 0, 86400, &wait, &err) && option_node_name(in, "sponsor", &name, &err);

    if (ok && !option_text(in, "peer", NULL))
        ok = error_set(&err, ERROR_USAGE, NULL, "--peer URL is needed: a syncer or trainer of the run");
    if (ok) {
        snprintf(path, sizeof path, "%.4000s/nodes/%.200s/key.json", in->home, name);
        ok = keyfile_read(path, getenv("RONDO_PASSPHRASE"), &keys, &err) || error_at(&err, "%s", path);
    }
    if (ok)
        result = amend_run(&(struct amend_options){ .run = in->argument[0],
                                                    .peer = option_text(in, "peer", NULL),
                                                    .changes = changes,
                                                    .from = from,
                                                    .plain = option_flag(in, "plain"),
                                                    .wait_ms = (unsigned)wait * 1000 },
                           &keys, &err);
    json_decref(changes);
    if (!result)
        return command_fail(in, &err);

    bool listed = json_is_integer(json_object_get(result, "record"));

    if (in->json) {
        command_print_json(result);
    } else {
        printf("amendment %lld, from round %lld on: %s (%lld members took it)\n",
               (long long)json_integer_value(json_object_get(result, "number")),
               (long long)json_integer_value(json_object_get(result, "from")),
               listed ? "listed by a record" : "no record lists it yet",
               (long long)json_integer_value(json_object_get(result, "members")));
        json_decref(result);
    }
    return listed ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_run_amend = {
    "run amend",
    "RUN",
    "change what the spec marks as amendable, in rounds to come: end or pause the run, quorum, spot checks",
    "rondo run amend RUN --pause --peer http://syncer.example:7001\nrondo run amend RUN --end --from 12 --peer "
    "http://127.0.0.1:7001 "
    "--json",
    "Signed with the sponsor's key and handed to every member; it holds once a record lists it, from two records later on at "
    "the\n"
    "earliest. Escrows of rounds that no longer train go back to the sponsor when they expire, not before. Two amendments of one "
    "number\n"
    "void each other. Exit status 1: no record listed it in time; it may still come.",
    options,
    amend_main,
};
