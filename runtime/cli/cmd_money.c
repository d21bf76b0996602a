/* Money that is due to a key of this home: refunds of a sponsor, earnings of a node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/role/money.h"
#include "runtime/store/journal.h"

static const struct option options[] = {
    { "ledger", "URL", "the ledger (default http://127.0.0.1:8645)" },
    { "name", "NAME", "whose key: HOME/nodes/NAME/key.json (default: sponsor)" },
    { "plain", NULL, "plain HTTP to a ledger on another machine" },
    { NULL, NULL, NULL },
};

static void folder_of(const struct invocation *in, char folder[4400])
{
    snprintf(folder, 4400, "%.4000s/nodes/%.200s", in->home, option_text(in, "name", "sponsor"));
}

static bool read_key(const struct invocation *in, struct key_pair *keys, struct error *err)
{
    char folder[4400], path[4500];

    folder_of(in, folder);
    snprintf(path, sizeof path, "%s/key.json", folder);
    return keyfile_read(path, getenv("RONDO_PASSPHRASE"), keys, err) || error_at(err, "%s", path);
}

static struct books *open_books(const struct invocation *in, struct error *err)
{
    return books_of_url(option_text(in, "ledger", "http://127.0.0.1:8645"), option_flag(in, "plain"), err);
}

static const char *word(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "-";
}

/* The run's document as this home keeps it. */
static bool read_run(const struct invocation *in, struct run_spec *spec, struct error *err)
{
    char folder[4400];
    struct buffer bytes = { 0 };
    struct document run = { 0 };
    struct journal *journal;
    struct hash id;

    folder_of(in, folder);
    if (!cid_parse(in->argument[0], &id, err))
        return error_at(err, "RUN");
    journal = journal_open(folder, err);
    if (!journal && err->code == ERROR_CONFLICT)
        error_set(err, ERROR_REFUSED, "stop it first", "the node in %s is running", folder);

    bool ok = journal && journal_get_document(journal, id, &bytes, err) &&
              document_read_as(DOCUMENT_RUN, bytes.bytes, bytes.size, &run, err) && run_spec_read(&run, spec, err);

    document_free(&run);
    buffer_free(&bytes);
    journal_close(journal);
    return ok;
}

static int refund_main(struct invocation *in)
{
    struct error err = { 0 };
    struct key_pair keys = { 0 };
    struct run_spec spec = { 0 };
    struct books *books = NULL;
    json_t *result = NULL, *drawn = NULL;

    if (read_run(in, &spec, &err) && read_key(in, &keys, &err) && (books = open_books(in, &err)))
        result = money_refund(books, &spec, &keys.account, &err);
    if (result)
        drawn = money_withdraw(books, &keys.account, &err);
    books_free(books);
    run_spec_free(&spec);
    key_pair_wipe(&keys);
    if (!drawn) {
        json_decref(result);
        return command_fail(in, &err);
    }
    if (in->json) {
        json_object_update(result, drawn);
        command_print_json(result);
    } else {
        printf("%zu rounds refunded, %s came back; %zu have not expired yet\nwithdrawn %s, balance %s\n",
               json_array_size(json_object_get(result, "refunded")), word(result, "amount"),
               json_array_size(json_object_get(result, "waiting")), word(drawn, "withdrawn"), word(drawn, "balance"));
        json_decref(result);
    }
    json_decref(drawn);
    return EXIT_OK;
}

const struct command command_run_refund = {
    "run refund",
    "RUN",
    "take back what the rounds of a run did not pay, once their escrows have expired",
    "rondo run refund RUN --ledger http://127.0.0.1:8645",
    "Sends a refund for every escrow of the run that is past its expiry, and withdraws what came back. May be repeated.",
    options,
    refund_main,
};

static int withdraw_main(struct invocation *in)
{
    struct error err = { 0 };
    struct key_pair keys = { 0 };
    struct books *books = NULL;
    json_t *result = NULL;

    if (read_key(in, &keys, &err) && (books = open_books(in, &err)))
        result = money_withdraw(books, &keys.account, &err);
    books_free(books);
    key_pair_wipe(&keys);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    printf("withdrawn %s, balance %s of %s\n", word(result, "withdrawn"), word(result, "balance"), word(result, "account"));
    json_decref(result);
    return EXIT_OK;
}

const struct command command_withdraw = {
    "withdraw",
    "",
    "make what was paid to a node its account's balance",
    "rondo withdraw --name trainer-1 --ledger http://127.0.0.1:8645",
    "A release credits an account; only its owner can draw the credit.",
    options,
    withdraw_main,
};
