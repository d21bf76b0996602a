/* After a run was made: show, list, stop. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "native/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/role/archive.h"
#include "runtime/role/home.h"
#include "runtime/role/sponsor.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

/* --- show ---------------------------------------------------------------------------------------------------------------- */

static json_t *round_line(const json_t *record)
{
    json_t *each, *settled = json_array();
    size_t index;
    json_int_t accepted = 0, refused = 0;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        if (value_is(each, "code", "ok"))
            accepted++;
        else
            refused++;
    }
    json_array_foreach(json_object_get(record, "settled"), index, each)
        json_array_append(settled, json_object_get(each, "round"));
    return json_pack("{s:O, s:O, s:O, s:I, s:I, s:O, s:o}", "round", json_object_get(record, "round"), "kind",
                     json_object_get(record, "kind"), "reason", json_object_get(record, "reason"), "accepted", accepted,
                     "refused", refused, "state_root", json_object_get(record, "state"), "settled", settled);
}

static json_t *show(struct archive *a)
{
    const struct run_spec *s = &a->course.spec;
    json_t *rounds = json_array(), *final;
    const json_t *last = archive_record(a, (int64_t)json_array_size(a->finals) - 1);
    char did[DID_TEXT], each[AMOUNT_TEXT];
    size_t index;

    json_array_foreach(a->finals, index, final) json_array_append_new(rounds, round_line(json_object_get(final, "record")));
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:b, s:o, s:O, s:O, s:O}", "run", a->course.run, "name", s->name, "sponsor",
                     did_text(&s->sponsor, did), "rounds_planned", (json_int_t)s->rounds, "per_round",
                     amount_text(s->payment.per_round, each), "asset", s->payment.asset, "finished",
                     last && record_is_last(&a->course.rules, last), "rounds", rounds, "members",
                     last ? json_object_get(last, "members") : json_null(), "convicted",
                     last ? json_object_get(last, "convicted") : json_null(), "spec", s->json);
}

static void print_show(const json_t *result)
{
    json_t *each;
    size_t index;

    printf("run      %s\nname     %s\nsponsor  %s\nrounds   %lld planned at %s %s%s\n", value_text(result, "run"),
           value_text(result, "name"), value_text(result, "sponsor"), (long long)value_integer(result, "rounds_planned"),
           value_text(result, "per_round"), value_text(result, "asset"),
           json_is_true(json_object_get(result, "finished")) ? ", finished" : "");
    json_array_foreach(json_object_get(result, "members"), index, each)
    {
        printf("%-8s %s\n", value_text(each, "role"), value_text(each, "did"));
    }
    json_array_foreach(json_object_get(result, "convicted"), index, each)
    {
        printf("convicted for round %lld: %s\n", (long long)value_integer(each, "round"), value_text(each, "did"));
    }
    printf("\n%5s %-6s %8s %8s  %-16s\n", "round", "kind", "accepted", "refused", "state");
    json_array_foreach(json_object_get(result, "rounds"), index, each)
    {
        printf("%5lld %-6s %8lld %8lld  %.16s %s\n", (long long)value_integer(each, "round"), value_text(each, "kind"),
               (long long)value_integer(each, "accepted"), (long long)value_integer(each, "refused"),
               value_text(each, "state_root"), value_text(each, "reason"));
    }
}

static int show_main(struct invocation *in)
{
    struct archive a = { 0 };
    struct error err = { 0 };
    json_t *result = archive_open(&a, in->home, in->argument[0], &err) ? show(&a) : NULL;

    archive_close(&a);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
    } else {
        print_show(result);
        if (json_array_size(json_object_get(result, "rounds")) == 0 && !in->quiet)
            fprintf(stderr, "no record of the run is in %s: %s\n", in->home, ARCHIVE_ELSEWHERE);
        json_decref(result);
    }
    return EXIT_OK;
}

const struct command command_run_show = {
    "run show",
    "RUN",
    "a run's rounds, members and convictions, from the records of the nodes in a home",
    "rondo run show RUN --home build/q\nrondo run show RUN --home build/q --json",
    "Nothing needs to run. While nodes run ask them with `rondo status`.",
    NULL,
    show_main,
};

/* --- list ---------------------------------------------------------------------------------------------------------------- */

/* A node or run that cannot be read is listed with what is wrong. */
static void list_damage(json_t *list, const struct home_node *n, const char *run, const struct error *fault)
{
    char text[1024];

    json_array_append_new(list, json_pack("{s:s, s:s?, s:s, s:s}", "node", n->name, "run", run, "damage", error_name(fault->code),
                                          "text", error_text(fault, text, sizeof text)));
}

static json_t *list_run(struct journal *journal, const struct home_node *n, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    struct error none = { 0 };
    uint32_t last = 0, funded = 0;
    char cid[CID_TEXT];
    json_t *line = NULL;
    bool ok = journal_get_document(journal, id, &bytes, err) &&
              document_read_as(DOCUMENT_RUN, bytes.bytes, bytes.size, &document, err),
         some = ok && journal_last_final(journal, id, &last, &none);

    if (ok && !some && none.code != ERROR_MISSING) {
        *err = none;
        ok = false;
    }
    if (ok) {
        bool sponsor = sponsor_funded(journal, id, &funded);
        int64_t rounds = document_integer(document.json, "rounds");

        line = json_pack("{s:s, s:s, s:o, s:b, s:O, s:I, s:o}", "node", n->name, "run", cid_text(id, cid), "round",
                         some ? json_integer(last) : json_null(), "running", 0, "name", json_object_get(document.json, "name"),
                         "rounds_planned", (json_int_t)rounds, "funded", sponsor ? json_integer(funded) : json_null());
    }
    document_free(&document);
    buffer_free(&bytes);
    return line;
}

static bool list_folder(json_t *list, const struct home_node *n)
{
    struct error fault = { 0 };
    struct hash *ids = NULL;
    size_t count = 0;
    char path[4300], cid[CID_TEXT];
    struct journal *journal;
    bool whole = true;

    snprintf(path, sizeof path, "%s/node.db", n->folder);
    if (!file_exists(path))
        return true;
    journal = journal_open(n->folder, &fault);
    if (!journal || !journal_list_runs(journal, &ids, &count, &fault)) {
        list_damage(list, n, NULL, &fault);
        whole = false;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *line = list_run(journal, n, ids[i], &fault);

        if (line) {
            json_array_append_new(list, line);
        } else {
            list_damage(list, n, cid_text(ids[i], cid), &fault);
            whole = false;
        }
    }
    free(ids);
    journal_close(journal);
    return whole;
}

static void print_line(const json_t *line)
{
    const json_t *funded = json_object_get(line, "funded");
    const char *run = json_string_value(json_object_get(line, "run"));

    printf("%-14s %s", value_text(line, "node"), run ? run : "");
    if (json_object_get(line, "damage"))
        printf("%sDAMAGED: %s", run ? "  " : "", value_text(line, "text"));
    else if (json_is_true(json_object_get(line, "running")))
        printf("  running");
    else if (json_is_integer(json_object_get(line, "round")))
        printf("  round %lld", (long long)value_integer(line, "round"));
    if (json_is_integer(funded) && json_integer_value(funded) < value_integer(line, "rounds_planned"))
        printf("  NOT FUNDED: %lld of %lld rounds (rondo run create RUN goes on)", (long long)json_integer_value(funded),
               (long long)value_integer(line, "rounds_planned"));
    else if (json_is_integer(funded))
        printf("  funded");
    puts("");
}

static int list_main(struct invocation *in)
{
    struct error err = { 0 };

    if (!home_may_read(in->home, &err))
        return command_fail(in, &err);

    size_t count, index;
    struct home_node *nodes = home_nodes(in->home, &count);
    json_t *list = json_array(), *each;
    bool whole = true;

    for (size_t i = 0; i < count; i++) {
        if (nodes[i].running) /* its journal is in use; the file says what it serves */
            json_array_append_new(list, json_pack("{s:s, s:O, s:n, s:b}", "node", nodes[i].name, "run",
                                                  json_object_get(nodes[i].running, "run"), "round", "running", 1));
        else
            whole = list_folder(list, &nodes[i]) && whole;
    }
    home_nodes_free(nodes, count);
    if (in->json) {
        command_print_json(json_pack("{s:o}", "runs", list));
        return whole ? EXIT_OK : EXIT_VERDICT;
    }
    json_array_foreach(list, index, each) print_line(each);
    if (json_array_size(list) == 0 && !in->quiet)
        fprintf(stderr, "%s holds no runs\n", in->home);
    json_decref(list);
    return whole ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_run_list = {
    "run list",
    "",
    "the runs that the nodes of a home take part in",
    "rondo run list --home build/q",
    "Of a run made here: whether each of its rounds has an escrow. Exit status 1 when a node or run cannot be read; it is listed "
    "with\n"
    "what is wrong.",
    NULL,
    list_main,
};

/* --- stop ---------------------------------------------------------------------------------------------------------------- */

static const char stop_truth[] = "Its trainers and syncers go on as long as they find each other: a funded round is promised to "
                                 "them. Nobody can take an escrow\n"
                                 "back before its expiry; rounds that nobody works in are skipped and refunded then. "
                                 "`rondo run amend --end` ends a\n"
                                 "run early, where its spec lets it.";

static int stop_main(struct invocation *in)
{
    struct error err = { 0 };
    const char *run = in->argument[0];
    size_t count;
    struct home_node *nodes = home_nodes(in->home, &count);
    json_t *stopped = json_array();
    char path[4300];

    snprintf(path, sizeof path, "%.4000s/run.json", in->home);
    for (size_t i = 0; i < count; i++) {
        if (!value_is(nodes[i].running, "role", "sponsor") || !value_is(nodes[i].running, "run", run) || !home_serves(&nodes[i]))
            continue;
        if (file_exists(path))
            error_set(&err, ERROR_REFUSED, "press Ctrl-C there, or send it SIGTERM",
                      "a `rondo local` keeps this sponsor running");
        else if (kill((pid_t)value_integer(nodes[i].running, "pid"), SIGTERM) == 0)
            json_array_append_new(stopped, json_string(nodes[i].name));
    }
    home_nodes_free(nodes, count);
    if (err.code == ERROR_NONE && json_array_size(stopped) == 0)
        error_set(&err, ERROR_MISSING, "rondo status --home DIR lists what runs", "no sponsor of %s runs in this home", run);
    if (json_array_size(stopped) == 0) {
        json_decref(stopped);
        return command_fail(in, &err);
    }
    if (in->json) {
        command_print_json(json_pack("{s:s, s:o, s:s}", "run", run, "stopped", stopped, "note", stop_truth));
        return EXIT_OK;
    }
    printf("stopped serving %s\n%s\n", run, stop_truth);
    json_decref(stopped);
    return EXIT_OK;
}

const struct command command_run_stop = {
    "run stop", "RUN", "stop serving a run as its sponsor", "rondo run stop RUN --home /srv/sponsor", stop_truth, NULL, stop_main,
};
