#include "runtime/role/quote.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/ledger/local.h"
#include "runtime/role/dataset.h"
#include "runtime/role/held_out.h"
#include "runtime/role/quote_internal.h"
#include "runtime/role/run_file.h"
#include "runtime/role/sponsor.h"

enum { CHECK_CHAIN = 31337 };

static void say_placeholder(struct quote *q, const char *text)
{
    json_array_append_new(q->placeholders, json_string(text));
}

/* --- the draft, with names for who is not known yet -------------------------------------------------------------------- */

static int64_t network_number(const struct quote *q, const char *name, const json_t *otherwise, int64_t most)
{
    const json_t *value = json_object_get(q->network, name);
    int64_t n = json_integer_value(value ? value : otherwise);

    return n < 1 ? 1 : n > most ? most : n;
}

static void placeholder_keys(const char *role, int64_t index, struct key_pair *keys)
{
    char name[64];

    snprintf(name, sizeof name, "%s-%lld", role, (long long)index);
    key_pair_derive("placeholder of rondo run check", name, keys);
}

static json_t *placeholder_panel(int64_t count)
{
    json_t *panel = json_array();

    for (int64_t i = 1; i <= count; i++) {
        struct key_pair keys;
        char did[DID_TEXT], account[ADDRESS_TEXT];

        placeholder_keys("syncer", i, &keys);

        struct public_key key = public_key_of(&keys.identity);

        json_array_append_new(panel, json_pack("{s:s, s:s}", "did", did_text(&key, did), "account",
                                               address_text(account_address(&keys.account), account)));
        key_pair_wipe(&keys);
    }
    return panel;
}

static json_t *placeholder_allowed(int64_t count)
{
    json_t *allowed = json_array();

    for (int64_t i = 1; i <= count; i++) {
        struct key_pair keys;
        char did[DID_TEXT];

        placeholder_keys("trainer", i, &keys);

        struct public_key key = public_key_of(&keys.identity);

        json_array_append_new(allowed, json_string(did_text(&key, did)));
        key_pair_wipe(&keys);
    }
    return allowed;
}

static bool make_run(struct quote *q, struct error *err)
{
    json_t *committee = json_object_get(q->draft, "committee"), *quorum = json_object_get(q->draft, "quorum"),
           *admission = json_object_get(json_object_get(q->draft, "trust"), "admission"), *panel = NULL, *allowed = NULL;
    struct key_pair keys;
    struct document run = { 0 };
    char scripts[4096], cid[CID_TEXT];
    bool ok;

    say_placeholder(q, "sponsor, account, nonce, payment.chain and payment.contract: run create puts in the real ones");
    if (!json_object_get(committee, "panel") && !q->options->panel) {
        panel = placeholder_panel(network_number(q, "syncers", json_object_get(committee, "size"), SPEC_PANEL));
        say_placeholder(q, "committee.panel: run create takes it from --panel FILE");
    }
    q->trainers = network_number(q, "trainers", json_object_get(quorum, "trainers"), SPEC_TRAINERS);
    if (!json_object_get(admission, "allowed") && !q->options->allowed &&
        (!document_text(admission, "mode") || strcmp(document_text(admission, "mode"), "allow-list") == 0)) {
        allowed = placeholder_allowed(network_number(q, "trainers", json_object_get(quorum, "trainers"), SPEC_TRAINERS));
        say_placeholder(q, "trust.admission.allowed: run create takes it from --allow FILE");
    }
    placeholder_keys("sponsor", 1, &keys);

    struct sponsor_setting setting = { .scripts = run_file_scripts(scripts),
                                       .blocks = &q->a.auditor.blocks,
                                       .keys = &keys,
                                       .panel = panel ? panel : q->options->panel,
                                       .allowed = allowed ? allowed : q->options->allowed,
                                       .nonce = "00000000000000000000000000000000",
                                       .chain = CHECK_CHAIN,
                                       .contract = ledger_local_domain(CHECK_CHAIN).contract };

    ok = sponsor_make_run(&setting, q->draft, &run, err) &&
         course_of(&q->a.auditor, cid_text(run.id, cid), run.bytes.bytes, run.bytes.size, &q->a.course, err);
    document_free(&run);
    key_pair_wipe(&keys);
    json_decref(panel);
    json_decref(allowed);
    return ok;
}

static bool check_network(struct quote *q, struct error *err)
{
    if (!json_is_object(q->draft))
        return error_set(err, ERROR_MISSING, "a run file returns { spec = {...}, network = {...} }",
                         "spec: this field is missing");
    return run_file_check_network(q->network, err) && held_out_check(q->draft, q->network, err);
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

static json_t *collect(struct quote *q)
{
    json_t *committee = quote_committee(q), *money = quote_money(q), *time = quote_time(q), *rollouts = quote_rollouts(q);

    return json_pack("{s:O, s:O, s:o, s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:O}", "spec", q->a.course.spec.json,
                     "placeholders", q->placeholders, "committee", committee, "plans", q->plans, "work", quote_work(q),
                     "rollouts", rollouts, "bytes", quote_bytes(q), "disk", quote_disk(q), "memory", quote_memory(q), "time",
                     time, "money", money, "warnings", q->warnings);
}

static bool look(struct quote *q, struct error *err)
{
    if (!check_network(q, err) || !make_run(q, err))
        return false;
    if (q->a.course.spec.trust.allowed_count)
        q->trainers = (int64_t)q->a.course.spec.trust.allowed_count;
    q->syncers = (int64_t)q->a.course.spec.committee.panel_count;
    if (!archive_worker(&q->a, q->options->threads, err))
        return false;
    q->parameters = document_integer(q->a.opened, "parameters");
    return quote_claims(q, err) && quote_plans(q, err) && quote_measure(q, err);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

json_t *quote_of(const struct quote_options *options, struct error *err)
{
    struct quote q = { .options = options, .placeholders = json_array(), .warnings = json_array(), .plans = json_array() };
    struct rusage used;
    char scripts[4096], folder[4200];
    json_t *run, *dataset, *result = NULL;
    bool ok;

    snprintf(folder, sizeof folder, "%.4000s/check-%ld", options->home, (long)getpid());
    run = run_file_read(options->runfile, run_file_scripts(scripts), err);
    q.draft = json_object_get(run, "spec");
    q.network = json_object_get(run, "network");
    dataset = json_deep_copy(json_object_get(q.draft, "dataset")); /* its files, before they are shards */
    ok = run && archive_new(&q.a, folder, err);
    if (ok) {
        ok = look(&q, err);
        worker_free(q.a.worker); /* its memory can be told once it has ended */
        q.a.worker = NULL;
        uv_run(&q.a.auditor.loop, UV_RUN_DEFAULT);
        if (ok && options->measure && getrusage(RUSAGE_CHILDREN, &used) == 0)
            q.memory = (int64_t)used.ru_maxrss * 1024;
        if (ok)
            result = collect(&q);
        else
            dataset_name_row(&q.a.auditor.blocks, dataset, err);
        archive_close(&q.a);
    }
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    json_decref(q.placeholders);
    json_decref(q.warnings);
    json_decref(q.plans);
    json_decref(dataset);
    json_decref(run);
    if (!ok)
        error_at(err, "%s", options->runfile);
    return result;
}
