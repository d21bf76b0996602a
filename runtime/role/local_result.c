#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/role/audit.h"
#include "runtime/role/local_internal.h"
#include "runtime/role/replay.h"
#include "runtime/round/payout.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

enum { RESULT_LIMIT = 64 << 20 };

static void replay_told(void *context, json_t *progress)
{
    struct local *l = context;

    if (l->options.quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kchecking: ");
    if (json_object_get(progress, "steps"))
        fprintf(stderr, "step %lld/%lld", (long long)document_integer(progress, "step"),
                (long long)document_integer(progress, "steps"));
    else
        fprintf(stderr, "held-out row %lld", (long long)document_integer(progress, "evaluated"));
    fflush(stderr);
    l->bar = true;
}

/* Mean over the accepted contributions of their mean step loss. */
static json_t *round_loss(struct archive *a, const json_t *record, struct error *err)
{
    json_t *each;
    size_t index;
    double sum = 0;
    int count = 0;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        json_t *document = value_is(each, "code", "ok") ? archive_contribution(a, document_text(each, "cid"), err) : NULL;

        if (document) {
            sum += (double)document_float(json_object_get(document, "loss"));
            count++;
        }
        json_decref(document);
    }
    return count ? json_real(sum / count) : json_null();
}

static json_t *rounds_of(struct archive *a, struct error *err)
{
    json_t *list = json_array();

    for (int64_t round = 1; round <= (int64_t)a->course.spec.rounds; round++) {
        const json_t *record = archive_record(a, round), *each;
        json_int_t accepted = 0, refused = 0;
        size_t index;

        if (!record)
            break;
        json_array_foreach(json_object_get(record, "contributions"), index, each)
        {
            if (value_is(each, "code", "ok"))
                accepted++;
            else
                refused++;
        }
        json_array_append_new(list, json_pack("{s:I, s:s, s:I, s:I, s:O, s:o}", "round", (json_int_t)round, "status",
                                              value_is(record, "kind", "train") ? "final" : "skipped", "accepted", accepted,
                                              "refused", refused, "state_root", json_object_get(record, "state"), "loss",
                                              round_loss(a, record, err)));
    }
    return list;
}

/* What the ledger credited to each DID's account. */
static json_t *paid_of(struct archive *a, json_t *names)
{
    json_t *paid = json_object(), *did;
    const char *name;

    json_object_foreach(names, name, did)
    {
        struct key_pair keys;
        struct error none = { 0 };
        char path[4400], text[40];
        struct ledger_account account;

        snprintf(path, sizeof path, "%.4000s/nodes/%s/key.json", a->home, name);
        if (!keyfile_read(path, NULL, &keys, &none))
            continue;
        account = ledger_local_account(a->ledger, account_address(&keys.account));
        json_object_set_new(paid, json_string_value(did), json_string(payout_text(account.balance + account.credit, text)));
        key_pair_wipe(&keys);
    }
    return paid;
}

static json_t *names_of(struct local *l)
{
    json_t *names = json_object();

    for (int64_t i = 0; i < l->trainers + l->syncers; i++) {
        struct key_pair keys;
        struct error none = { 0 };
        char name[32], path[4400], did[DID_TEXT];

        snprintf(name, sizeof name, "%s-%lld", i < l->trainers ? "trainer" : "syncer",
                 (long long)(i < l->trainers ? i + 1 : i - l->trainers + 1));
        snprintf(path, sizeof path, "%.4000s/nodes/%s/key.json", l->options.home, name);
        if (!keyfile_read(path, NULL, &keys, &none))
            continue;
        struct public_key key = public_key_of(&keys.identity);

        json_object_set_new(names, name, json_string(did_text(&key, did)));
        key_pair_wipe(&keys);
    }
    return names;
}

static json_t *evaluate(struct local *l, struct archive *a, const char *outer, struct error *err)
{
    struct hash state;

    if (!cid_parse(outer, &state, err) || (!block_has(&a->auditor.blocks, state) && !archive_gather(a, state, true, err))) {
        error_at(err, "network.eval");
        return NULL;
    }
    return archive_evaluate(a, json_object_get(l->network, "eval"), outer, replay_told, l, err);
}

static json_t *evaluation(struct local *l, struct archive *a, const char *first, const char *last, struct error *err)
{
    json_t *before, *after;

    if (!json_object_get(l->network, "eval"))
        return json_null();
    before = evaluate(l, a, first, err);
    after = before ? evaluate(l, a, last, err) : NULL;
    if (after)
        return json_pack("{s:o, s:o}", "before", before, "after", after);
    json_decref(before);
    return NULL;
}

static json_t *replays(struct local *l, struct archive *a, struct error *err)
{
    json_t *first = replay_round(a, 1, NULL, replay_told, l, err),
           *spots = first ? replay_spot_checks(a, replay_told, l, err) : NULL, *each, *result;
    json_int_t checked = 0, matched = 0;
    size_t index;

    if (!spots) {
        json_decref(first);
        return NULL;
    }
    json_array_foreach(json_object_get(first, "contributions"), index, each)
    {
        checked++;
        matched += json_is_true(json_object_get(each, "match"));
    }
    if (json_is_object(json_object_get(first, "fold"))) {
        checked++;
        matched += json_is_true(json_object_get(json_object_get(first, "fold"), "match"));
    }
    result = json_pack("{s:I, s:I}", "checked", checked + json_integer_value(json_object_get(spots, "drawn")), "matched",
                       matched + json_integer_value(json_object_get(spots, "matched")));
    json_decref(first);
    json_decref(spots);
    return result;
}

static json_t *write_adapter(struct local *l, struct archive *a, const char *outer, struct error *err)
{
    char folder[4400];
    struct hash id;

    snprintf(folder, sizeof folder, "%.4000s/runs/%s/adapter", l->options.home, a->course.run);
    if (!file_make_folder(folder, err) || !cid_parse(outer, &id, err) || !archive_gather(a, id, true, err))
        return NULL;
    return archive_job(a, json_pack("{s:s, s:s, s:s, s:O?}", "job", "adapter", "outer", outer, "folder", folder, "base", l->base),
                       NULL, NULL, err);
}

static json_t *collect(struct local *l, struct archive *a, struct error *err)
{
    const json_t *last = json_object_get(json_array_get(a->finals, json_array_size(a->finals) - 1), "record");
    const char *outer = document_text(last, "outer");
    json_t *genesis = NULL, *eval = NULL, *replay = NULL, *adapter = NULL, *names = names_of(l), *result = NULL;
    int64_t sent, dense;

    if (!outer)
        error_set(err, ERROR_FAULT, NULL, "the last record names no state");
    else if (archive_worker(a, l->options.threads ? l->options.threads : (unsigned)sysconf(_SC_NPROCESSORS_ONLN), err))
        genesis = archive_job(a, json_pack("{s:s}", "job", "genesis"), NULL, NULL, err);
    if (genesis && (eval = evaluation(l, a, document_text(genesis, "outer"), outer, err)) && (replay = replays(l, a, err)) &&
        (adapter = write_adapter(l, a, outer, err)) &&
        replay_traffic(a, document_integer(a->opened, "parameters"), &sent, &dense, err))
        result = json_pack("{s:s, s:o, s:O, s:o, s:O, s:O, s:I, s:I, s:O}", "run", a->course.run, "rounds", rounds_of(a, err),
                           "eval", eval, "paid", paid_of(a, names), "nodes", names, "replay", replay, "bytes_sent",
                           (json_int_t)sent, "bytes_dense", (json_int_t)dense, "adapter", json_object_get(adapter, "folder"));
    json_decref(genesis);
    json_decref(eval);
    json_decref(replay);
    json_decref(adapter);
    json_decref(names);
    return result;
}

/* The hash of the result file's bytes stands in the sponsor's journal. */
static struct journal *sponsor_journal(const struct archive *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->nodes[i].name, "sponsor") == 0)
            return a->nodes[i].journal;
    return NULL;
}

/* An archive reads copies of the journals: the note goes into the sponsor's own. */
static bool keep_result(struct local *l, const json_t *result, struct error *err)
{
    char *text = json_dumps(result, JSON_INDENT(1)), path[4400];
    struct hash hash = hash_block(text, strlen(text));
    struct journal *journal;
    bool ok;

    snprintf(path, sizeof path, "%.4000s/result.json", l->options.home);
    ok = file_write(path, text, strlen(text), 0644, err);
    free(text);
    snprintf(path, sizeof path, "%.4000s/nodes/sponsor", l->options.home);
    journal = ok ? journal_open(path, err) : NULL;
    ok = journal && journal_put_note(journal, "result", hash.bytes, sizeof hash.bytes, err);
    journal_close(journal);
    return ok;
}

/* The result as it was written, or NULL: then its file was changed since. */
static json_t *kept_result(const char *path, const struct archive *a)
{
    struct buffer bytes = { 0 }, note = { 0 };
    struct error none = { 0 };
    struct journal *journal = sponsor_journal(a);
    struct hash hash;
    json_t *result = NULL;

    if (file_read(path, RESULT_LIMIT, &bytes, &none) && journal && journal_get_note(journal, "result", &note, &none)) {
        hash = hash_block(bytes.bytes, bytes.size);
        if (note.size == sizeof hash.bytes && memcmp(note.bytes, hash.bytes, sizeof hash.bytes) == 0)
            result = json_read((const char *)bytes.bytes, bytes.size, RESULT_LIMIT, &none);
    }
    buffer_free(&bytes);
    buffer_free(&note);
    return result;
}

static json_t *make_result(struct local *l, struct archive *a, struct error *err)
{
    json_t *result;

    local_say(l, "evaluating, and recomputing round 1");
    result = collect(l, a, err);
    local_clear(l);
    if (result && !keep_result(l, result, err)) {
        json_decref(result);
        result = NULL;
    }
    return result;
}

json_t *local_result(struct local *l, struct error *err)
{
    struct archive a = { 0 };
    json_t *result = archive_open(&a, l->options.home, l->run, err) ? make_result(l, &a, err) : NULL;

    archive_close(&a);
    return result;
}

/* Rounds and payments told, against what records, contributions and ledger say now. */
static bool still_so(struct archive *a, json_t *names, const json_t *result, struct error *err)
{
    json_t *rounds, *paid;
    bool ok = audit_archive(a, err);

    if (!ok)
        return false;
    rounds = rounds_of(a, err);
    paid = paid_of(a, names);
    ok = err->code == ERROR_NONE;
    if (ok && (!json_equal(rounds, json_object_get(result, "rounds")) || !json_equal(paid, json_object_get(result, "paid"))))
        ok = error_set(err, ERROR_MISMATCH, "rondo audit lists what does not hold", "%s no longer say what result.json says",
                       json_equal(rounds, json_object_get(result, "rounds")) ? "the ledger's accounts" : "the records");
    json_decref(rounds);
    json_decref(paid);
    return ok;
}

static json_t *result_again(struct local *l, struct archive *a, const char *path, struct error *err)
{
    const json_t *last = archive_record(a, (int64_t)json_array_size(a->finals) - 1);
    json_t *names, *result;

    if (!last || !record_is_last(&a->course.rules, last))
        return NULL;
    result = kept_result(path, a);
    if (!result) {
        local_say(l, "%s is damaged, or older than its run: it is made again from the records", path);
        return make_result(l, a, err);
    }
    names = names_of(l);
    if (!still_so(a, names, result, err)) {
        json_decref(result);
        result = NULL;
    }
    json_decref(names);
    return result;
}

json_t *local_result_again(struct local *l, struct error *err)
{
    struct archive a = { 0 };
    char path[4400];
    json_t *state, *result = NULL;

    snprintf(path, sizeof path, "%.4000s/result.json", l->options.home);
    error_clear(err);
    if (!file_exists(path) || !local_state(l, &state, err) || !state)
        return NULL;
    if (archive_open(&a, l->options.home, document_text(state, "run"), err))
        result = result_again(l, &a, path, err);
    archive_close(&a);
    json_decref(state);
    if (!result && err->code != ERROR_NONE)
        error_at(err, "%s", l->options.home);
    return result;
}
