#include <stdio.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/home.h"

static const struct option options[] = {
    { "plain", NULL, "plain HTTP to another machine than this one" },
    { NULL, NULL, NULL },
};

/* { node, endpoint, ok, status | error } */
static json_t *ask(const char *name, const char *endpoint, bool plain)
{
    struct error err = { 0 };
    char text[1024];
    json_t *status = home_ask(endpoint, "/v1/status", plain, &err);
    json_t *line = json_pack("{s:s, s:s, s:b}", "node", name, "endpoint", endpoint, "running", status != NULL);

    if (status)
        json_object_set_new(line, "status", status);
    else
        json_object_set_new(line, "error", json_string(error_text(&err, text, sizeof text)));
    return line;
}

static json_t *ask_home(const struct invocation *in)
{
    size_t count;
    struct home_node *nodes = home_nodes(in->home, &count);
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        const char *endpoint = json_string_value(json_object_get(nodes[i].running, "endpoint"));

        json_array_append_new(list, endpoint ? ask(nodes[i].name, endpoint, option_flag(in, "plain"))
                                             : json_pack("{s:s, s:n, s:b}", "node", nodes[i].name, "endpoint", "running",
                                                         nodes[i].running != NULL));
    }
    home_nodes_free(nodes, count);
    return list;
}

static void print_line(const json_t *line)
{
    const json_t *status = json_object_get(line, "status"), *machine = json_object_get(status, "machine");
    const char *name = json_string_value(json_object_get(line, "node")),
               *role = json_string_value(json_object_get(status, "role")),
               *endpoint = json_string_value(json_object_get(line, "endpoint")),
               *phase = json_string_value(json_object_get(machine, "phase"));

    if (!status) {
        const char *error = json_string_value(json_object_get(line, "error"));

        printf("%-14s %s\n", name,
               error                                            ? error
               : json_is_true(json_object_get(line, "running")) ? "running, listens nowhere"
                                                                : "not running");
        return;
    }
    printf("%-14s %-8s %-26s %-12s", name, role ? role : "?", endpoint, phase ? phase : "serving");
    if (json_object_get(machine, "round"))
        printf(" round %lld", (long long)json_integer_value(json_object_get(machine, "round")));
    if (json_integer_value(json_object_get(machine, "view")) > 0)
        printf(" view %lld", (long long)json_integer_value(json_object_get(machine, "view")));
    printf("\n");
}

static int status_main(struct invocation *in)
{
    json_t *list, *line;
    size_t index;
    struct error err = { 0 };
    bool some = false;

    if (!in->arguments && !home_may_read(in->home, &err))
        return command_fail(in, &err);
    if (in->arguments) {
        list = json_array();
        json_array_append_new(list, ask("node", in->argument[0], option_flag(in, "plain")));
    } else {
        list = ask_home(in);
    }
    json_array_foreach(list, index, line) some = some || json_is_true(json_object_get(line, "running"));
    if (in->json) {
        command_print_json(json_pack("{s:O, s:b}", "nodes", list, "running", some));
    } else {
        json_array_foreach(list, index, line) print_line(line);
        if (json_array_size(list) == 0)
            fprintf(stderr, "%s holds no nodes\n", in->home);
    }
    json_decref(list);
    return some ? EXIT_OK : EXIT_VERDICT;
}

const struct command command_status = {
    "status",
    "[URL]",
    "what a node, or every node of a home, is doing",
    "rondo status http://127.0.0.1:7001\nrondo status --home build/q\nrondo status --home build/q --json",
    "Phases of a syncer: await_entropy, training, collecting, voting, done. Exit status 1 when no node that was asked answers.",
    options,
    status_main,
};
