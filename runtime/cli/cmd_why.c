#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/commands.h"
#include "runtime/role/home.h"
#include "runtime/role/why.h"

static const struct option options[] = {
    { "ledger", "URL", "ask this ledger what was released (default: the file in HOME/ledger)" },
    { "plain", NULL, "plain HTTP to a ledger on another machine" },
    { NULL, NULL, NULL },
};

static void print_why(const json_t *result)
{
    json_t *each;
    size_t index;
    bool asked = false;

    printf("%s  %s\n\n%5s %12s %-12s %-9s %s\n", json_string_value(json_object_get(result, "role")),
           json_string_value(json_object_get(result, "did")), "round", "pay", "code", "ledger", "why");
    json_array_foreach(json_object_get(result, "rounds"), index, each)
    {
        const char *amount = json_string_value(json_object_get(each, "amount")),
                   *ledger = json_string_value(json_object_get(each, "ledger")),
                   *code = json_string_value(json_object_get(each, "code"));

        asked = asked || ledger;
        printf("%5lld %12s %-12s %-9s %s%s\n", (long long)json_integer_value(json_object_get(each, "round")),
               amount ? amount : "-", code, ledger ? ledger : "-", json_string_value(json_object_get(each, "rule")),
               amount || strcmp(code, "open") == 0 ? "" : "; not settled yet");
    }
    printf("\n%s in all, ", json_string_value(json_object_get(result, "total")));
    if (asked)
        printf("%s released\n", json_string_value(json_object_get(result, "released")));
    else
        printf("no ledger was asked what is released (--ledger URL)\n");
}

static int why_main(struct invocation *in)
{
    struct archive a = { 0 };
    struct error err = { 0 };
    struct books *books = NULL;
    const char *url = option_text(in, "ledger", NULL);
    char did[DID_TEXT];
    json_t *result = NULL;
    bool ok = archive_open(&a, in->home, in->argument[0], &err);

    if (ok && url)
        ok = (books = books_of_url(url, option_flag(in, "plain"), &err)) != NULL;
    else if (ok && a.ledger)
        books = books_of_file(a.ledger);
    if (ok)
        result = why_of(&a, books, home_did(in->home, in->argument[1], did), &err);
    books_free(books);
    archive_close(&a);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
    } else {
        print_why(result);
        json_decref(result);
    }
    return EXIT_OK;
}

const struct command command_why = {
    "why",
    "RUN DID",
    "what each round paid a machine, or why it paid nothing",
    "rondo why RUN did:tenzro:machine:z6Mk... --home build/q\nrondo why RUN trainer-2 --home build/q --json",
    "Reads the records of the nodes in HOME and its ledger; nothing needs to run, nothing is believed but signed records. DID "
    "may be the\n"
    "name of a node in this home. A round's pay is known once a later record settles it; `ledger` tells whether it was released.",
    options,
    why_main,
};
