#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "runtime/role/local_internal.h"
#include "runtime/role/replay.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

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
        json_t *document = value_is(each, "code", "ok") ? replay_contribution(a, document_text(each, "cid"), err) : NULL;

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

json_t *local_result(struct local *l, struct error *err)
{
    struct archive a = { 0 };
    char path[4400];
    json_t *result = NULL;

    local_say(l, "evaluating, and recomputing round 1");
    if (archive_open(&a, l->options.home, l->run, err))
        result = collect(l, &a, err);
    local_clear(l);
    archive_close(&a);
    if (result) {
        char *text = json_dumps(result, JSON_INDENT(1));

        snprintf(path, sizeof path, "%.4000s/result.json", l->options.home);
        if (!file_write(path, text, strlen(text), 0644, err)) {
            json_decref(result);
            result = NULL;
        }
        free(text);
    }
    return result;
}
