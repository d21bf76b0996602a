#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/home.h"
#include "runtime/round/value.h"

static bool ask(const struct home_node *n, struct error *err)
{
    if (!home_serves(n))
        error_set(err, ERROR_MISSING, "start it, so that it can say so; or leave it stopped: it is dropped after a few rounds",
                  "%s does not run", n->name);
    else if (!value_is(n->running, "role", "trainer") && !value_is(n->running, "role", "auditor"))
        error_set(err, ERROR_REFUSED, NULL, "%s is a %s: only a trainer or an auditor leaves a run", n->name,
                  value_text(n->running, "role"));
    else if (kill((pid_t)value_integer(n->running, "pid"), SIGUSR1) != 0)
        error_set(err, ERROR_REFUSED, NULL, "%s belongs to another user", n->name);
    return err->code == ERROR_NONE;
}

static int leave_main(struct invocation *in)
{
    struct error err = { 0 };
    size_t count = 0;
    struct home_node *nodes = home_nodes(in->home, &count);
    const struct home_node *found = NULL;
    json_t *said = NULL;

    for (size_t i = 0; i < count; i++)
        if (strcmp(nodes[i].name, in->argument[0]) == 0)
            found = &nodes[i];
    if (!found)
        error_set(&err, ERROR_MISSING, "rondo status lists the nodes of a home", "no node %.60s in %s", in->argument[0],
                  in->home);
    else if (ask(found, &err))
        said = json_pack("{s:s, s:s}", "leaving", found->name, "run", value_text(found->running, "run"));
    home_nodes_free(nodes, count);
    if (!said)
        return command_fail(in, &err);
    if (in->json)
        command_print_json(said);
    else
        printf("%s leaves; it ends by itself when all that it did is settled\n", in->argument[0]);
    if (!in->json)
        json_decref(said);
    return EXIT_OK;
}

const struct command command_leave = {
    "leave",
    "NAME",
    "let a trainer or an auditor that runs here leave its run",
    "rondo leave trainer-1 --home /srv/rondo",
    "It says so to the committee, trains until a record lists that, answers challenges until all that it did is settled and "
    "paid, and "
    "ends.\n"
    "Started again it enrols again. The same as sending SIGUSR1 to its process.",
    NULL,
    leave_main,
};
