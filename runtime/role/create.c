#include "runtime/role/create.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/role/books.h"
#include "runtime/role/quote.h"
#include "runtime/role/run_file.h"
#include "runtime/role/sponsor.h"

enum { LIST_LIMIT = 1 << 20 };

struct creating {
    const struct create_options *options;
    struct key_pair keys;
    struct block_store blocks;
    struct journal *journal;
    struct document run;
};

static bool open_folder(struct creating *c, struct error *err)
{
    char folder[4300], path[4400];

    snprintf(folder, sizeof folder, "%.4000s/nodes/%.200s", c->options->home, c->options->name);
    snprintf(path, sizeof path, "%s/key.json", folder);
    if (!keyfile_read(path, c->options->passphrase, &c->keys, err))
        return error_at(err, "%s", path);
    snprintf(path, sizeof path, "%s/blocks", folder);
    c->journal = journal_open(folder, err);
    if (!c->journal && err->code == ERROR_CONFLICT)
        error_set(err, ERROR_REFUSED, "stop it, or give another --name", "the node %s is running", c->options->name);
    return c->journal && block_store_open(path, &c->blocks, err);
}

/* A list from a file; *list NULL when no file was given. */
static bool read_list(const char *path, const char *option, json_t **list, struct error *err)
{
    *list = NULL;
    if (!path)
        return true;
    *list = json_read_file(path, LIST_LIMIT, err);
    if (json_is_array(*list))
        return true;
    if (*list)
        error_set(err, ERROR_TYPE, NULL, "%s: a JSON list is expected", path);
    json_decref(*list);
    *list = NULL;
    return error_at(err, "--%s", option);
}

static bool refuse_absent(const json_t *draft, const json_t *panel, const json_t *allowed, struct error *err)
{
    if (!panel && !json_object_get(json_object_get(draft, "committee"), "panel")) {
        error_set(err, ERROR_MISSING, "give --panel FILE with a list of {\"did\", \"account\"}", "the run file names no panel");
        return error_at(err, "committee.panel");
    }
    const json_t *admission = json_object_get(json_object_get(draft, "trust"), "admission");
    const char *mode = document_text(admission, "mode");

    if (!allowed && !json_object_get(admission, "allowed") && mode && strcmp(mode, "allow-list") == 0) {
        error_set(err, ERROR_MISSING, "give --allow FILE with a list of DIDs", "the run file names no trainers");
        return error_at(err, "trust.admission.allowed");
    }
    return true;
}

/* Whether the sponsor's account has what the escrows take. */
static bool can_pay(struct creating *c, struct books *books, unsigned __int128 need, struct error *err)
{
    struct ledger_account account;
    struct address address = account_address(&c->keys.account);
    char text[ADDRESS_TEXT], needs[AMOUNT_TEXT], has[AMOUNT_TEXT], credit[AMOUNT_TEXT], hint[240];

    if (!books_account(books, address, &account, err))
        return error_at(err, "ledger %s", c->options->ledger);
    if (account.balance >= need)
        return true;
    if (account.balance + account.credit >= need)
        snprintf(hint, sizeof hint, "rondo withdraw --name %.60s turns its credit of %s into balance", c->options->name,
                 amount_text(account.credit, credit));
    else
        snprintf(hint, sizeof hint,
                 "send the account more; a test ledger gives it when it is made: rondo ledger --allocate %s=%s",
                 address_text(address, text), amount_text(need, needs));
    error_set(err, ERROR_RANGE, hint, "the escrows take %s, account %s has %s: %s are missing", amount_text(need, needs),
              address_text(address, text), amount_text(account.balance, has), amount_text(need - account.balance, credit));
    return error_at(err, "payment");
}

/* What a draft's escrows take in all; 0 when it does not say: the check of the spec tells what is wrong. */
static unsigned __int128 sum_of_draft(const json_t *draft)
{
    const json_t *each = json_object_get(json_object_get(draft, "payment"), "per_round");
    unsigned __int128 amount = 0;
    int64_t rounds = document_integer(draft, "rounds");

    if (json_is_integer(each) && json_integer_value(each) > 0)
        amount = (unsigned __int128)json_integer_value(each);
    else if (!json_is_string(each) || !amount_parse(json_string_value(each), &amount))
        amount = 0;
    if (rounds < 1 || amount > ((unsigned __int128)1 << 96) || rounds > UINT32_MAX)
        return 0;
    return amount * (unsigned __int128)rounds;
}

/* A run whose disputes nobody could answer takes no money: silence would convict whoever is challenged. A large model takes seconds. */
static bool is_answerable(const struct creating *c, const json_t *panel, const json_t *allowed, struct error *err)
{
    const struct quote_options options = {
        .runfile = c->options->what, .home = c->options->home, .strict = true, .panel = panel, .allowed = allowed
    };
    const bool tells = !c->options->quiet && isatty(STDERR_FILENO);
    json_t *quote;

    if (tells)
        fputs("looking at what a dispute about a step would take", stderr);
    quote = quote_of(&options, err);
    if (tells)
        fputs("\r\033[K", stderr);
    json_decref(quote);
    return quote != NULL;
}

/* What is here is read before the ledger is asked, which may take its time to answer. */
static bool make_run(struct creating *c, struct books *books, struct error *err)
{
    char scripts[4096];
    struct sponsor_setting setting = { .scripts = run_file_scripts(scripts), .blocks = &c->blocks, .keys = &c->keys };
    struct ledger_status ledger;
    json_t *file = run_file_read(c->options->what, setting.scripts, err), *draft = json_object_get(file, "spec"), *panel = NULL,
           *allowed = NULL;
    bool ok = file && read_list(c->options->panel, "panel", &panel, err);

    ok = ok && read_list(c->options->allow, "allow", &allowed, err);
    if (ok && !json_is_object(draft))
        ok = error_set(err, ERROR_MISSING, "a run file returns { spec = {...} }", "spec: this field is missing");
    if (ok) {
        setting.panel = panel;
        setting.allowed = allowed;
        ok = refuse_absent(draft, panel, allowed, err) || error_at(err, "%s", c->options->what);
    }
    ok = ok && books_status(books, &ledger, err);
    if (ok) {
        setting.chain = ledger.chain;
        setting.contract = ledger.contract;
        ok = can_pay(c, books, sum_of_draft(draft), err) || error_at(err, "%s", c->options->what);
    }
    ok = ok && is_answerable(c, panel, allowed, err) &&
         (sponsor_make_run(&setting, draft, &c->run, err) || error_at(err, "%s", c->options->what));
    ok = ok && journal_put_document(c->journal, &c->run, err);
    json_decref(panel);
    json_decref(allowed);
    json_decref(file);
    return ok;
}

/* The run that was made before. */
static bool load_run(struct creating *c, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    bool ok = journal_get_document(c->journal, id, &bytes, err) &&
              document_read_as(DOCUMENT_RUN, bytes.bytes, bytes.size, &c->run, err);

    buffer_free(&bytes);
    return ok || error_at(err, "run %s", c->options->what);
}

static json_t *fund(struct creating *c, struct error *err)
{
    struct run_spec spec = { 0 };
    char cid[CID_TEXT], did[DID_TEXT], account[ADDRESS_TEXT], amount[AMOUNT_TEXT];
    json_t *result = NULL;

    bool ok = run_spec_read(&c->run, &spec, err),
         funded = ok && sponsor_fund(&spec, &c->keys, c->options->ledger, c->options->plain, c->journal, err);

    if (ok && !funded) {
        char why[240];

        snprintf(why, sizeof why, "%.239s", err->message);
        error_set(err, err->code, "rondo run create RUN --ledger URL goes on with it",
                  "run %s is made, but not all of its escrows: %s", cid_text(c->run.id, cid), why);
    }
    if (funded)
        result = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "run", cid_text(c->run.id, cid), "name", spec.name, "sponsor",
                           did_text(&spec.sponsor, did), "account", address_text(spec.account, account), "rounds",
                           (json_int_t)spec.rounds, "escrowed", amount_text(spec.payment.per_round * spec.rounds, amount),
                           "asset", spec.payment.asset);
    run_spec_free(&spec);
    return result;
}

json_t *create_run(const struct create_options *options, struct error *err)
{
    struct creating c = { .options = options };
    struct error no = { 0 };
    struct hash id;
    struct books *books = books_of_url(options->ledger, options->plain, err);
    bool ok = books && open_folder(&c, err);
    json_t *result = NULL;

    if (ok && cid_parse(options->what, &id, &no))
        ok = load_run(&c, id, err);
    else if (ok)
        ok = make_run(&c, books, err);
    if (ok)
        result = fund(&c, err);
    books_free(books);
    document_free(&c.run);
    journal_close(c.journal);
    key_pair_wipe(&c.keys);
    return result;
}
