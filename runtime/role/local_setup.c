#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/ledger/client.h"
#include "runtime/role/local_internal.h"
#include "runtime/role/node.h"
#include "runtime/role/run_file.h"

static void path_of(const struct local *l, char path[4200], const char *rest)
{
    snprintf(path, 4200, "%.4000s/%s", l->options.home, rest);
}

bool local_state(struct local *l, json_t **state, struct error *err)
{
    char path[4200];
    struct hash id;

    path_of(l, path, "run.json");
    *state = NULL;
    if (!file_exists(path))
        return true;
    *state = json_read_file(path, 1 << 20, err);
    if (*state && document_text(*state, "hash") && document_text(*state, "runfile") && document_text(*state, "run") &&
        (cid_parse(document_text(*state, "run"), &id, NULL)))
        return true;
    json_decref(*state);
    *state = NULL;
    error_set(err, ERROR_MISMATCH, "restore it, or give another --home; rondo audit and rondo run list read the nodes without it",
              "it is damaged");
    return error_at(err, "%s", path);
}

static struct hash file_hash(const struct local *l, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash hash = { 0 };

    if (file_read(l->options.runfile, 1 << 20, &bytes, err))
        hash = hash_block(bytes.bytes, bytes.size);
    buffer_free(&bytes);
    return hash;
}

static bool read_run_file(struct local *l, struct error *err)
{
    char scripts[4096];
    json_t *run = run_file_read(l->options.runfile, run_file_scripts(scripts), err);

    if (!run)
        return false;
    l->draft = json_incref(json_object_get(run, "spec"));
    l->network = json_incref(json_object_get(run, "network"));
    l->base = json_incref(json_object_get(l->draft, "base_model"));
    json_decref(run);
    if (!json_is_object(l->draft) || !json_is_object(l->network)) {
        error_set(err, ERROR_MISSING, "a run file returns { spec = {...}, network = {...} }", "`spec` and `network` are needed");
        return error_at(err, "%s", l->options.runfile);
    }
    if (!run_file_check_network(l->network, err))
        return error_at(err, "%s", l->options.runfile);
    l->trainers = document_integer(l->network, "trainers");
    l->syncers = document_integer(l->network, "syncers");
    l->rounds = document_integer(l->draft, "rounds");
    if (l->trainers && l->syncers)
        return true;
    error_set(err, ERROR_MISSING, "how many of each: network = { trainers = 4, syncers = 4 }", "trainers and syncers are needed");
    return error_at(err, "%s: network", l->options.runfile);
}

/* The node's keys: made once, and again the same from the test seed. */
static bool node_keys(struct local *l, const char *name, struct key_pair *keys, struct error *err)
{
    char folder[4200], path[4400];

    path_of(l, folder, "nodes/");
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "%s", name);
    snprintf(path, sizeof path, "%s/key.json", folder);
    if (file_exists(path))
        return keyfile_read(path, NULL, keys, err);
    if (l->options.ledger_seed)
        key_pair_derive(l->options.ledger_seed, name, keys);
    else
        key_pair_new(keys);
    return file_make_folder(folder, err) && keyfile_write(path, keys, NULL, err);
}

static void name_of(char name[32], const char *role, int64_t index)
{
    snprintf(name, 32, "%s-%lld", role, (long long)index);
}

/* A home holds one run: another run file, or this one changed, is refused before anything is started. */
static bool same_run_file(struct local *l, struct error *err)
{
    json_t *state;
    char hash[HASH_TEXT];

    if (!local_state(l, &state, err))
        return false;

    bool same = !state || strcmp(document_text(state, "hash"), hash_hex(file_hash(l, err), hash)) == 0 ||
                error_set(err, ERROR_CONFLICT, "give another --home, or the run file as it was",
                          "%s holds a run of %s as it was then", l->options.home, document_text(state, "runfile"));

    json_decref(state);
    return same;
}

bool local_setup_home(struct local *l, struct error *err)
{
    char name[32], path[4200];
    struct key_pair keys;
    bool ok = read_run_file(l, err) && same_run_file(l, err) && file_make_folder(l->options.home, err) &&
              node_keys(l, "sponsor", &keys, err);

    for (int64_t i = 1; ok && i <= l->syncers; i++) {
        name_of(name, "syncer", i);
        ok = node_keys(l, name, &keys, err);
    }
    for (int64_t i = 1; ok && i <= l->trainers; i++) {
        name_of(name, "trainer", i);
        ok = node_keys(l, name, &keys, err);
    }
    path_of(l, path, "ledger");
    ok = ok && file_make_folder(path, err);
    key_pair_wipe(&keys);
    return ok;
}

static json_t *panel_of(struct local *l, struct error *err)
{
    json_t *panel = json_array();

    for (int64_t i = 1; i <= l->syncers; i++) {
        struct key_pair keys;
        char name[32], did[DID_TEXT], account[ADDRESS_TEXT];

        name_of(name, "syncer", i);
        if (!node_keys(l, name, &keys, err)) {
            json_decref(panel);
            return NULL;
        }
        struct public_key key = public_key_of(&keys.identity);

        json_array_append_new(panel, json_pack("{s:s, s:s}", "did", did_text(&key, did), "account",
                                               address_text(account_address(&keys.account), account)));
        key_pair_wipe(&keys);
    }
    return panel;
}

static json_t *allowed_of(struct local *l, struct error *err)
{
    json_t *allowed = json_array();

    for (int64_t i = 1; i <= l->trainers; i++) {
        struct key_pair keys;
        char name[32], did[DID_TEXT];

        name_of(name, "trainer", i);
        if (!node_keys(l, name, &keys, err)) {
            json_decref(allowed);
            return NULL;
        }
        struct public_key key = public_key_of(&keys.identity);

        json_array_append_new(allowed, json_string(did_text(&key, did)));
        key_pair_wipe(&keys);
    }
    return allowed;
}

/* With a test seed the nonce follows from it, so that two runs have one id. */
static const char *nonce_of(const struct local *l, char hex[33])
{
    struct hash hash;

    if (!l->options.ledger_seed)
        return NULL;
    hash = hash_typed("rondo/nonce", l->options.ledger_seed, strlen(l->options.ledger_seed));
    return hex_encode(hash.bytes, 16, hex);
}

/* The ledger's chain and contract, asked once. */
struct asked {
    struct ledger_status status;
    struct error *err;
    bool ok;
    struct ledger *ledger;
    struct http_client *http;
};

static void status_told(void *context, const struct ledger_answer *answer)
{
    struct asked *a = context;

    a->ok = !answer->error;
    if (a->ok)
        a->status = *answer->status;
    else
        *a->err = *answer->error;
    ledger_free(a->ledger);
    http_client_free(a->http);
}

static bool ask_ledger(const char *url, struct ledger_status *status, struct error *err)
{
    struct asked a = { .err = err };
    uv_loop_t loop;

    uv_loop_init(&loop);
    a.http = http_client_new(&loop, NULL, err);
    a.ledger = a.http ? ledger_client_new(&loop, a.http, url, 0, err) : NULL;
    if (a.ledger)
        ledger_status(a.ledger, (struct ledger_then){ status_told, &a });
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    *status = a.status;
    return a.ok;
}

static bool make_run(struct local *l, const struct key_pair *keys, const struct block_store *blocks, struct journal *journal,
                     struct document *run, struct error *err)
{
    char scripts[4096], nonce[33], path[4200], cid[CID_TEXT], hash[HASH_TEXT];
    struct ledger_status status;
    json_t *panel = panel_of(l, err), *allowed = panel ? allowed_of(l, err) : NULL;
    struct sponsor_setting setting = { .scripts = run_file_scripts(scripts),
                                       .blocks = blocks,
                                       .keys = keys,
                                       .panel = panel,
                                       .allowed = allowed,
                                       .nonce = nonce_of(l, nonce) };
    bool ok = allowed && ask_ledger(l->ledger_url, &status, err);

    if (ok) {
        setting.chain = status.chain;
        setting.contract = status.contract;
        ok = sponsor_make_run(&setting, l->draft, run, err) || error_at(err, "%s", l->options.runfile);
    }
    ok = ok && journal_put_document(journal, run, err);
    if (ok) {
        json_t *state =
            json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:s?}", "version", 1, "run", cid_text(run->id, cid), "runfile",
                      l->options.runfile, "hash", hash_hex(file_hash(l, err), hash), "trainers", (json_int_t)l->trainers,
                      "syncers", (json_int_t)l->syncers, "ledger_seed", l->options.ledger_seed);
        char *text = json_dumps(state, JSON_INDENT(2));

        path_of(l, path, "run.json");
        ok = file_write(path, text, strlen(text), 0644, err);
        free(text);
        json_decref(state);
    }
    json_decref(panel);
    json_decref(allowed);
    return ok;
}

/* The document of a run that was begun before in this home. */
static bool load_run(struct journal *journal, json_t *state, struct document *run, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = cid_parse(document_text(state, "run"), &id, err) && journal_get_document(journal, id, &bytes, err) &&
              document_read_as(DOCUMENT_RUN, bytes.bytes, bytes.size, run, err);

    buffer_free(&bytes);
    return ok;
}

bool local_setup_run(struct local *l, struct error *err)
{
    char folder[4200], path[4400], cid[CID_TEXT];
    struct key_pair keys;
    struct block_store blocks;
    struct journal *journal;
    struct document run = { 0 };
    struct run_spec spec = { 0 };
    json_t *state;
    bool ok;

    if (!local_state(l, &state, err))
        return false;
    path_of(l, folder, "nodes/sponsor");
    snprintf(path, sizeof path, "%s/blocks", folder);
    journal = journal_open(folder, err);
    ok = journal && block_store_open(path, &blocks, err) && node_keys(l, "sponsor", &keys, err) &&
         (state ? load_run(journal, state, &run, err) : make_run(l, &keys, &blocks, journal, &run, err)) &&
         run_spec_read(&run, &spec, err) && sponsor_fund(&spec, &keys, l->ledger_url, false, journal, err);
    if (ok)
        snprintf(l->run, sizeof l->run, "%s", cid_text(run.id, cid));
    run_spec_free(&spec);
    document_free(&run);
    journal_close(journal);
    json_decref(state);
    node_settle();
    return ok;
}
