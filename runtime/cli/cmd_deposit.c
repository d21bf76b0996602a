#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/course_join.h"
#include "runtime/role/lock.h"

static const struct option options[] = {
    { "peer", "URL", "a node of the run (not needed once the folder knows the run)" },
    { "role", "ROLE", "trainer (default), or auditor: whoever challenges" },
    { "refund", NULL, "take back what nobody was given, once it has expired" },
    { "ledger", "URL", "the run's ledger (default http://127.0.0.1:8645)" },
    { "name", "NAME", "whose key: HOME/nodes/NAME/key.json (default: the role)" },
    { "plain", NULL, "plain HTTP to other machines than this one" },
    { NULL, NULL, NULL },
};

static json_t *deposit(struct invocation *in, struct node *node, const char *role, struct error *err)
{
    struct books *books = books_of_url(node->options.ledger, node->options.plain, err);
    json_t *result = NULL;

    if (books)
        result = option_flag(in, "refund") ? lock_refund(books, node->course, &node->keys, err)
                                           : lock_deposit(books, node->course, &node->keys, role, err);
    books_free(books);
    return result;
}

static void print(const json_t *result)
{
    const char *amount = json_string_value(json_object_get(result, "amount")), *account;

    if (json_object_get(result, "refunded")) {
        printf("%s taken back\n", amount);
        return;
    }
    account = json_string_value(json_object_get(result, "account"));
    if (strcmp(amount, "0") == 0)
        printf("the spec asks for no deposit of this machine\n");
    else
        printf("%s of %s %s, until %lld\n", amount, account,
               json_is_true(json_object_get(result, "locked")) ? "locked" : "were locked already",
               (long long)json_integer_value(json_object_get(result, "expiry")));
}

static int deposit_main(struct invocation *in)
{
    const char *role = option_text(in, "role", "trainer"), *name;
    struct error err = { 0 };
    struct node node = { 0 };
    char folder[4400];
    json_t *result = NULL;
    bool ok = option_node_name(in, role, &name, &err);

    if (ok && strcmp(role, "trainer") != 0 && strcmp(role, "auditor") != 0)
        ok = error_set(&err, ERROR_USAGE, NULL, "--role %.40s: trainer or auditor", role);
    if (!ok)
        return command_fail(in, &err);
    snprintf(folder, sizeof folder, "%.4000s/nodes/%s", in->home, name);

    struct node_options node_options = { .folder = folder,
                                         .ledger = option_text(in, "ledger", "http://127.0.0.1:8645"),
                                         .peer = option_text(in, "peer", NULL),
                                         .passphrase = getenv("RONDO_PASSPHRASE"),
                                         .plain = option_flag(in, "plain"),
                                         .quiet = in->quiet };

    if (node_open(&node, role, &node_options, &err) && course_take_part(&node, in->argument[0], &err))
        result = deposit(in, &node, role, &err);
    node_close(&node);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
    } else {
        print(result);
        json_decref(result);
    }
    return EXIT_OK;
}

const struct command command_deposit = {
    "deposit",
    "RUN",
    "lock what a run asks of a trainer or a challenger, or take it back",
    "rondo deposit RUN --name trainer-1 --peer http://sponsor.example:7000 --ledger http://ledger.example:8645\n"
    "rondo deposit RUN --role auditor --name auditor --peer http://sponsor.example:7000\n"
    "rondo deposit RUN --name trainer-1 --refund",
    "An escrow of the machine's own account, which the run's panel can release: to who proved a lie and the sponsor, to whoever "
    "was accused "
    "for\n"
    "nothing, or back when the run is over (docs/protocol.md, section 9). Who leaves earlier takes it back by --refund when it "
    "has expired. "
    "Locked\n"
    "already, nothing is done. `rondo trainer --deposit` and `rondo auditor --deposit` do the same before they enrol.",
    options,
    deposit_main,
};
