#include "runtime/doc/run_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/date.h"
#include "native/base/hex.h"

enum { PAYEES = 64 }; /* of one release */

/* ---- Checks across fields -------------------------------------------------------------------------------------------------- */

static json_t *at(const json_t *spec, const char *path)
{
    char part[64];
    json_t *value = (json_t *)spec;

    while (value && *path) {
        size_t size = strcspn(path, ".");

        snprintf(part, sizeof part, "%.*s", (int)size, path);
        value = json_object_get(value, part);
        path += size + (path[size] == '.');
    }
    return value;
}

static int64_t number(const json_t *spec, const char *path)
{
    return json_integer_value(at(spec, path));
}

static int64_t billionths(const json_t *spec, const char *path)
{
    int64_t value = 0;

    decimal_parse(json_string_value(at(spec, path)), &value);
    return value;
}

static unsigned __int128 amount(const json_t *spec, const char *path)
{
    const char *text = json_string_value(at(spec, path));
    unsigned __int128 value = 0;

    if (text) /* some may be absent */
        amount_parse(text, &value);
    return value;
}

/* What later versions will offer, so that its refusal does not look like a spelling mistake. `only`: refused when it is this. */
static const struct {
    const char *path, *only, *what;
} later[] = {
    { "trust.tier", "attested", "the attested tier" }, /* admission by evidence is: trust.admission */
    { "trust.tier", "confidential", "the confidential tier" },
    { "committee.weights", NULL, "a weighted committee" },
    { "committee.weight", NULL, "a weighted committee" },
    { "committee.stake", NULL, "a weighted committee" },
    { "delay", NULL, "delayed aggregates" },
    { "payment.ledger", "evm", "a ledger on an EVM chain" },
};

static bool refuse_later(const char *path, const char *what, struct error *err)
{
    error_set(err, ERROR_UNSUPPORTED, NULL, "%s: not offered by this version", what);
    return error_at(err, "%s", path);
}

static bool check_offered(const json_t *spec, struct error *err)
{
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        const json_t *value = at(spec, later[i].path);
        const char *text = json_string_value(value);

        if (value && (!later[i].only || (text && strcmp(text, later[i].only) == 0)))
            return refuse_later(later[i].path, later[i].what, err);
    }
    if (json_is_string(at(spec, "dataset.sealed")))
        return refuse_later("dataset.sealed", "a sealed dataset", err);
    return true;
}

static bool range(const char *path, struct error *err)
{
    return error_at(err, "%s", path);
}

/* Of the adapter: a list of ends of modules' names. */
static bool check_module_names(const char *field, const json_t *names, struct error *err)
{
    static const struct schema_field name = FIELD("name", TEXT, .least = 1, .most = 128);
    const struct schema_field list = { field, SCHEMA_LIST, .item = &name, .least = 1, .most = SPEC_TARGETS };
    const struct schema inside = { &list, 1 };
    const struct schema_field adapter = FIELD("adapter", OBJECT, .of = &inside);
    const struct schema whole = { &adapter, 1 };
    json_t *object = json_pack("{s:{s:O}}", "adapter", field, names);
    const bool ok = schema_check(&whole, object, err);

    json_decref(object);
    return ok;
}

static bool check_targets(const json_t *targets, struct error *err)
{
    const char *text = json_string_value(targets);

    if (text && strcmp(text, "all-linear") == 0)
        return true;
    if (!json_is_array(targets)) {
        error_set(err, text ? ERROR_UNKNOWN : ERROR_TYPE, "{ \"q_proj\", \"v_proj\" } names ends of modules",
                  "targets are \"all-linear\" or a list of names");
        return error_at(err, "adapter.targets");
    }
    return check_module_names("targets", targets, err);
}

/* { end of a module's name: whole number }. */
static bool check_pattern(const json_t *adapter, const char *field, int64_t most, struct error *err)
{
    json_t *pattern = json_object_get(adapter, field), *number;
    const char *name;

    if (pattern && (!json_is_object(pattern) || json_object_size(pattern) < 1 || json_object_size(pattern) > SPEC_TARGETS))
        return error_set(err, ERROR_TYPE, "{ q_proj = 8 }", "not 1 to %d names with numbers", SPEC_TARGETS) ||
               error_at(err, "adapter.%s", field);
    json_object_foreach(pattern, name, number)
    {
        if (!*name || strlen(name) > 128)
            return error_set(err, ERROR_RANGE, NULL, "a name of 1 to 128 bytes is needed") || error_at(err, "adapter.%s", field);
        if (!json_is_integer(number) || json_integer_value(number) < 1 || json_integer_value(number) > most)
            return error_set(err, ERROR_RANGE, NULL, "a whole number from 1 to %lld is needed", (long long)most) ||
                   error_at(err, "adapter.%s.%s", field, name);
    }
    return true;
}

static bool check_adapter(const json_t *spec, struct error *err)
{
    const json_t *adapter = at(spec, "adapter");
    bool none = strcmp(json_string_value(at(spec, "adapter.kind")), "none") == 0;
    static const char *const parts[] = { "rank",         "alpha",         "targets",
                                         "scaling",      "start",         "loraplus_lr_ratio",
                                         "rank_pattern", "alpha_pattern", "modules_to_save" };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool given = json_object_get(adapter, parts[i]) != NULL, needed = i < 3 && !none;

        if (given ? !none : !needed)
            continue;
        error_set(err, given ? ERROR_UNKNOWN : ERROR_MISSING, NULL,
                  given ? "an adapter of kind none has no such field" : "this field is missing");
        return error_at(err, "adapter.%s", parts[i]);
    }
    const json_t *whole = json_object_get(adapter, "modules_to_save");

    return none || (check_targets(json_object_get(adapter, "targets"), err) &&
                    (!whole || check_module_names("modules_to_save", whole, err)) &&
                    check_pattern(adapter, "rank_pattern", 1024, err) && check_pattern(adapter, "alpha_pattern", 65536, err));
}

static bool check_committee(const json_t *spec, struct error *err)
{
    json_t *panel = at(spec, "committee.panel");
    int64_t size = number(spec, "committee.size"), threshold = number(spec, "committee.threshold");
    int64_t release = number(spec, "committee.release_threshold"), members = (int64_t)json_array_size(panel);

    if (size > members) {
        error_set(err, ERROR_RANGE, "a committee is drawn from the panel", "the size is %lld, the panel has %lld",
                  (long long)size, (long long)members);
        return range("committee.size", err);
    }
    if (threshold * 2 <= size || threshold > size) {
        error_set(err, ERROR_RANGE, "two halves could decide differently", "%lld of %lld: more than half, at most all are needed",
                  (long long)threshold, (long long)size);
        return range("committee.threshold", err);
    }
    if (release * 2 <= members || release > members) {
        error_set(err, ERROR_RANGE, NULL, "%lld of a panel of %lld: more than half, at most all are needed", (long long)release,
                  (long long)members);
        return range("committee.release_threshold", err);
    }
    for (size_t i = 0; i < json_array_size(panel); i++)
        for (size_t j = 0; j < i; j++)
            for (size_t k = 0; k < 2; k++) {
                const char *name = k ? "account" : "did";

                if (!json_equal(json_object_get(json_array_get(panel, i), name), json_object_get(json_array_get(panel, j), name)))
                    continue;
                error_set(err, ERROR_DUPLICATE, NULL, "the same %s as of member %zu", name, j);
                return error_at(err, "committee.panel[%zu].%s", i, name);
            }
    return true;
}

/* Who may come, and what it costs. */
static bool check_admission(const json_t *spec, struct error *err)
{
    const char *mode = json_string_value(at(spec, "trust.admission.mode"));
    const bool listed = strcmp(mode, "allow-list") == 0, given = at(spec, "trust.admission.allowed") != NULL;

    if (listed != given) {
        error_set(err, given ? ERROR_UNKNOWN : ERROR_MISSING, NULL,
                  given ? "only an allow-list has such a field" : "this field is missing");
        return range("trust.admission.allowed", err);
    }
    if (strcmp(mode, "stake") == 0 && amount(spec, "trust.stake") == 0) {
        error_set(err, ERROR_MISSING, "give the amount that each trainer locks", "admission by stake without a stake");
        return range("trust.stake", err);
    }
    if (strcmp(mode, "open") == 0 && amount(spec, "trust.stake") == 0 && amount(spec, "trust.deposit") == 0) {
        error_set(err, ERROR_MISSING, "give trust.stake (trainers), trust.deposit (challengers), or both",
                  "open admission without deposit or stake: identities would cost nothing");
        return range("trust.deposit", err);
    }
    return true;
}

/* Each shard goes to that many machines, and a part counts only by what they agree on. */
static bool check_replicas(const json_t *spec, struct error *err)
{
    const bool replicated = strcmp(json_string_value(at(spec, "trust.tier")), "replicated") == 0;
    int64_t replicas = number(spec, "trust.replicas"), parts = number(spec, "quorum.trainers"),
            most = number(spec, "limits.trainers");
    json_t *allowed = at(spec, "trust.admission.allowed");

    if (replicated != (replicas > 1)) {
        error_set(err, ERROR_RANGE, replicated ? "2 gives each shard to two machines" : "set trust.tier = \"replicated\"",
                  "%lld replicas: the replicated tier has two at least, the others one", (long long)replicas);
        return range("trust.replicas", err);
    }
    for (size_t i = 0; replicated && i < 2; i++) {
        static const char *const parts_of_their_own[] = { "dataset.regions", "limits.batches" };

        if (!at(spec, parts_of_their_own[i]))
            continue;
        error_set(err, ERROR_UNSUPPORTED, "leave it out, or choose another tier",
                  "the machines of the replicated tier get the same shards and do the same steps, wherever they are");
        return range(parts_of_their_own[i], err);
    }
    if (allowed && (int64_t)json_array_size(allowed) < most)
        most = (int64_t)json_array_size(allowed);
    if (parts * replicas > most) {
        error_set(err, ERROR_RANGE, NULL, "%lld parts of %lld machines each are needed, %lld may take part", (long long)parts,
                  (long long)replicas, (long long)most);
        return range("quorum.trainers", err);
    }
    return true;
}

static bool check_trainers(const json_t *spec, struct error *err)
{
    json_t *allowed = at(spec, "trust.admission.allowed"), *panel = at(spec, "committee.panel");
    int64_t quorum_of = number(spec, "quorum.trainers"), most = number(spec, "limits.trainers");
    int64_t listed = allowed ? (int64_t)json_array_size(allowed) : most, shards = number(spec, "dataset.shards");

    if (most + (int64_t)json_array_size(panel) > PAYEES) {
        error_set(err, ERROR_RANGE, NULL, "%lld trainers and %zu syncers, one release pays at most %d", (long long)most,
                  json_array_size(panel), PAYEES);
        return range("limits.trainers", err);
    }
    if (quorum_of > most || quorum_of > listed || quorum_of > shards) {
        error_set(err, ERROR_RANGE, NULL,
                  "%lld trainers are needed, but limits.trainers is %lld, %lld are allowed and %lld shards are dealt",
                  (long long)quorum_of, (long long)most, (long long)listed, (long long)shards);
        return range("quorum.trainers", err);
    }
    if (listed > most) {
        error_set(err, ERROR_RANGE, NULL, "%lld are allowed, limits.trainers is %lld", (long long)listed, (long long)most);
        return range("trust.admission.allowed", err);
    }
    for (size_t i = 0; i < json_array_size(allowed); i++) {
        bool twice = false, judge = false;

        for (size_t j = 0; j < i; j++)
            twice |= json_equal(json_array_get(allowed, i), json_array_get(allowed, j));
        for (size_t j = 0; j < json_array_size(panel); j++)
            judge |= json_equal(json_array_get(allowed, i), json_object_get(json_array_get(panel, j), "did"));
        if (!twice && !judge)
            continue;
        error_set(err, ERROR_DUPLICATE, NULL, twice ? "listed twice" : "a member of the panel cannot train");
        return error_at(err, "trust.admission.allowed[%zu]", i);
    }
    return true;
}

static bool check_span(const json_t *span, int64_t shards, const char *why, struct error *err)
{
    int64_t first = json_integer_value(json_array_get(span, 0)), last = json_integer_value(json_array_get(span, 1));

    return (first <= last && last < shards) || error_set(err, ERROR_RANGE, why, "from %lld to %lld: the %lld shards count from 0",
                                                         (long long)first, (long long)last, (long long)shards);
}

static bool check_after(const json_t *before, const json_t *span, struct error *err)
{
    return !before || json_integer_value(json_array_get(before, 1)) < json_integer_value(json_array_get(span, 0)) ||
           error_set(err, ERROR_RANGE, NULL, "spans ascend and do not meet: it begins before the one in front of it ends");
}

/* Names are those of different places; spans lie among the shards. */
static bool check_regions(const json_t *spec, struct error *err)
{
    static const char *const rules[] = { "only", "prefer" };
    json_t *regions = at(spec, "dataset.regions"), *corpora = at(spec, "dataset.corpora");
    int64_t shards = number(spec, "dataset.shards");

    for (size_t i = 0; i < json_array_size(regions); i++) {
        const json_t *region = json_array_get(regions, i), *name = json_object_get(region, "name");

        for (size_t j = 0; j < i; j++)
            if (json_equal(name, json_object_get(json_array_get(regions, j), "name"))) {
                error_set(err, ERROR_DUPLICATE, NULL, "the same name as of region %zu", j);
                return error_at(err, "dataset.regions[%zu].name", i);
            }
        for (size_t k = 0; k < 2; k++) {
            const json_t *spans = json_object_get(region, rules[k]);

            for (size_t j = 0; j < json_array_size(spans); j++)
                if (!check_span(json_array_get(spans, j), shards, "{ first, last }, both among them", err) ||
                    !check_after(j ? json_array_get(spans, j - 1) : NULL, json_array_get(spans, j), err))
                    return error_at(err, "dataset.regions[%zu].%s[%zu]", i, rules[k], j);
        }
    }
    for (size_t i = 0; i < json_array_size(corpora); i++) {
        const json_t *span = json_object_get(json_array_get(corpora, i), "shards");

        if (span && !check_span(span, shards, "{ first, last }: the shards that hold the corpus", err))
            return error_at(err, "dataset.corpora[%zu].shards", i);
    }
    return true;
}

static bool check_times(const json_t *spec, struct error *err)
{
    int64_t least = number(spec, "quorum.grace.min_ms"), most = number(spec, "quorum.grace.max_ms");
    int64_t lead = number(spec, "seed_lead") * number(spec, "payment.block_ms"), view = number(spec, "committee.view_ms");
    int64_t settles = number(spec, "trust.challenge_rounds") + 2 * (number(spec, "trust.answer_rounds") + 1);
    int64_t expiry = number(spec, "payment.expiry_rounds");

    if (least > most || most > number(spec, "quorum.round_ms")) {
        error_set(err, ERROR_RANGE, NULL, "min_ms %lld, max_ms %lld, round_ms %lld do not ascend", (long long)least,
                  (long long)most, (long long)number(spec, "quorum.round_ms"));
        return range("quorum.grace", err);
    }
    if (lead < view) {
        error_set(err, ERROR_RANGE, "raise seed_lead, or lower committee.view_ms",
                  "%lld ms of blocks, one view takes %lld ms: the seed's block could be known before the vote", (long long)lead,
                  (long long)view);
        return range("seed_lead", err);
    }
    if (expiry < settles + 2) {
        error_set(err, ERROR_RANGE, NULL,
                  "%lld, at least %lld are needed: a round may take %lld records to settle, and 4 more to release",
                  (long long)expiry, (long long)settles + 2, (long long)settles);
        return range("payment.expiry_rounds", err);
    }
    return true;
}

static bool check_money(const json_t *spec, struct error *err)
{
    unsigned __int128 budget = amount(spec, "payment.budget"), each = amount(spec, "payment.per_round");
    uint64_t rounds = (uint64_t)number(spec, "rounds");
    char budget_text[AMOUNT_TEXT], each_text[AMOUNT_TEXT];

    if (each == 0) {
        error_set(err, ERROR_RANGE, NULL, "a round pays nothing");
        return range("payment.per_round", err);
    }
    if (budget / each < rounds) {
        error_set(err, ERROR_RANGE, "raise the budget, or lower rounds or per_round", "%s does not cover %llu rounds of %s",
                  amount_text(budget, budget_text), (unsigned long long)rounds, amount_text(each, each_text));
        return range("payment.budget", err);
    }
    if (billionths(spec, "payment.terms.trainers") + billionths(spec, "payment.terms.syncers") > DECIMAL_ONE) {
        error_set(err, ERROR_RANGE, NULL, "the shares add up to more than 1");
        return range("payment.terms", err);
    }
    return true;
}

static bool check_names(const json_t *spec, struct error *err)
{
    const char *name, *template = json_string_value(at(spec, "chat_template")), *nearest;
    json_t *value, *imports = at(spec, "imports"), *day = at(spec, "template_date");
    struct hash hash;
    struct date date;

    if (strcmp(template, "model") != 0 && !cid_parse(template, &hash, err))
        return error_at(err, "chat_template");
    if (day && !date_parse(json_string_value(day), &date, err))
        return error_at(err, "template_date");
    if (json_is_true(at(spec, "coalesce")) && at(spec, "reward")) {
        error_set(err, ERROR_UNSUPPORTED, "leave it out", "a run on rollouts has no turns to put together");
        return error_at(err, "coalesce");
    }
    if (json_object_size(imports) > SPEC_IMPORTS) {
        error_set(err, ERROR_RANGE, NULL, "%zu imports, at most %d", json_object_size(imports), SPEC_IMPORTS);
        return error_at(err, "imports");
    }
    json_object_foreach(imports, name, value)
    {
        nearest = json_string_value(value);
        if (!nearest || !cid_parse(nearest, &hash, err)) {
            if (!nearest)
                error_set(err, ERROR_TYPE, NULL, "text is expected");
            return error_at(err, "imports.%s", name);
        }
    }
    return true;
}

bool run_spec_check(const json_t *spec, struct error *err)
{
    json_t *whole = json_copy((json_t *)spec);

    /* A draft is not signed yet; who will sign it is its sponsor. */
    if (!json_object_get(whole, "version"))
        json_object_set_new(whole, "version", json_integer(1));
    if (!json_object_get(whole, "signer"))
        json_object_set(whole, "signer", json_object_get(whole, "sponsor"));

    bool ok = check_offered(whole, err) && schema_check(run_spec_schema(), whole, err) && check_adapter(whole, err) &&
              check_names(whole, err) && check_committee(whole, err) && check_admission(whole, err) &&
              check_trainers(whole, err) && check_regions(whole, err) && check_replicas(whole, err) && check_times(whole, err) &&
              check_money(whole, err);

    if (ok && !json_equal(json_object_get(whole, "signer"), json_object_get(whole, "sponsor")))
        ok = error_set(err, ERROR_SIGNATURE, NULL, "the signer is not the sponsor");
    json_decref(whole);
    return ok;
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

static struct spec_script script_of(const json_t *object)
{
    return (struct spec_script){ document_cid(object, "script"), json_object_get(object, "options") };
}

static struct address address_of(const json_t *text)
{
    struct address out = { { 0 } };

    address_parse(json_string_value(text), &out);
    return out;
}

static void read_scripts(struct run_spec *out, const json_t *json)
{
    const json_t *list = json_object_get(json, "aggregators");
    const char *name;
    json_t *value;

    out->model = script_of(json_object_get(json, "model"));
    out->objective = script_of(json_object_get(json, "objective"));
    out->inner = script_of(json_object_get(json, "inner"));
    out->outer = script_of(json_object_get(json, "outer"));
    out->schedule = script_of(json_object_get(json, "schedule"));
    out->rewarded = json_object_get(json, "reward") != NULL;
    if (out->rewarded)
        out->reward = script_of(json_object_get(json, "reward"));
    out->referenced = json_object_get(json, "reference") != NULL;
    if (out->referenced)
        out->reference = document_cid(json, "reference");
    for (size_t i = 0; i < json_array_size(list); i++)
        out->aggregators[out->aggregator_count++] = script_of(json_array_get(list, i));
    json_object_foreach(json_object_get(json, "imports"), name, value) out->imports[out->import_count++] =
        (struct spec_import){ name, document_cid(json_object_get(json, "imports"), name) };
}

static void read_people(struct run_spec *out, const json_t *json)
{
    const json_t *panel = at(json, "committee.panel"), *allowed = at(json, "trust.admission.allowed");

    document_did(json, "sponsor", &out->sponsor);
    out->account = address_of(json_object_get(json, "account"));
    for (size_t i = 0; i < json_array_size(panel); i++) {
        struct spec_member *one = &out->committee.panel[out->committee.panel_count++];

        document_did(json_array_get(panel, i), "did", &one->did);
        one->account = address_of(json_object_get(json_array_get(panel, i), "account"));
    }
    for (size_t i = 0; i < json_array_size(allowed); i++)
        did_parse_strict(json_string_value(json_array_get(allowed, i)), &out->trust.allowed[out->trust.allowed_count++], NULL);
}

static void read_training(struct run_spec *out, const json_t *json)
{
    const char *nonce = document_text(json, "nonce");

    out->name = document_text(json, "name");
    hex_decode(nonce, strlen(nonce), out->nonce, sizeof out->nonce);
    out->modality = document_text(json, "modality");
    out->base_model = document_cid(json, "base_model");
    out->chat_template = document_text(json, "chat_template");
    out->adapter.kind = json_string_value(at(json, "adapter.kind"));
    out->adapter.rank = (uint32_t)number(json, "adapter.rank");
    out->adapter.alpha = (uint32_t)number(json, "adapter.alpha");
    out->adapter.targets = at(json, "adapter.targets");
    out->adapter.continued = json_object_get(json_object_get(json, "adapter"), "start") != NULL;
    if (out->adapter.continued)
        out->adapter.start = document_cid(json_object_get(json, "adapter"), "start");
    out->rounds = (uint32_t)number(json, "rounds");
    out->batch_tokens = (uint32_t)number(json, "batch_tokens");
    out->dataset.manifest = document_cid(at(json, "dataset"), "manifest");
    out->dataset.shards = (uint32_t)number(json, "dataset.shards");
    out->dataset.corpora = at(json, "dataset.corpora");
    out->kernel_class = document_text(json, "kernel_class");
    out->limits.script_memory = number(json, "limits.script_memory");
    out->limits.script_seconds = number(json, "limits.script_seconds");
    out->limits.payload_bytes = number(json, "limits.payload_bytes");
    out->limits.trainers = (uint32_t)number(json, "limits.trainers");
    out->limits.batches = (uint32_t)number(json, "limits.batches");
}

static void read_rules(struct run_spec *out, const json_t *json)
{
    out->trust.tier = json_string_value(at(json, "trust.tier"));
    out->trust.replicas = (uint32_t)number(json, "trust.replicas");
    out->trust.admission = json_string_value(at(json, "trust.admission.mode"));
    out->trust.spot_check = billionths(json, "trust.spot_check");
    out->trust.challenge_rounds = (uint32_t)number(json, "trust.challenge_rounds");
    out->trust.answer_rounds = (uint32_t)number(json, "trust.answer_rounds");
    out->trust.rollback = strcmp(json_string_value(at(json, "trust.correction")), "rollback") == 0;
    out->seed_lead = (uint32_t)number(json, "seed_lead");
    out->quorum.trainers = (uint32_t)number(json, "quorum.trainers");
    out->quorum.round_ms = number(json, "quorum.round_ms");
    out->quorum.close_ms = number(json, "quorum.close_ms");
    out->quorum.drop_after = (uint32_t)number(json, "quorum.drop_after");
    out->quorum.grace_factor = billionths(json, "quorum.grace.factor");
    out->quorum.grace_min_ms = number(json, "quorum.grace.min_ms");
    out->quorum.grace_max_ms = number(json, "quorum.grace.max_ms");
    out->committee.size = (uint32_t)number(json, "committee.size");
    out->committee.threshold = (uint32_t)number(json, "committee.threshold");
    out->committee.view_ms = number(json, "committee.view_ms");
    out->committee.settle_ms = number(json, "committee.settle_ms");
    out->committee.release_threshold = (uint32_t)number(json, "committee.release_threshold");
}

static void read_payment(struct run_spec *out, const json_t *json)
{
    out->payment.ledger = json_string_value(at(json, "payment.ledger"));
    out->payment.chain = (uint64_t)number(json, "payment.chain");
    out->payment.block_ms = number(json, "payment.block_ms");
    out->payment.contract = address_of(at(json, "payment.contract"));
    out->payment.asset = json_string_value(at(json, "payment.asset"));
    out->payment.budget = amount(json, "payment.budget");
    out->payment.per_round = amount(json, "payment.per_round");
    out->payment.trainers = billionths(json, "payment.terms.trainers");
    out->payment.syncers = billionths(json, "payment.terms.syncers");
    out->payment.expiry_rounds = (uint32_t)number(json, "payment.expiry_rounds");
}

bool run_spec_read(const struct document *run, struct run_spec *out, struct error *err)
{
    *out = (struct run_spec){ 0 };
    if (run->type != DOCUMENT_RUN)
        return error_set(err, ERROR_TYPE, NULL, "a run is needed, this is a %s", document_type_name(run->type));
    if (!run_spec_check(run->json, err))
        return error_at(err, "run");
    out->json = json_incref(run->json);
    out->id = run->id;
    read_scripts(out, out->json);
    read_people(out, out->json);
    read_training(out, out->json);
    read_rules(out, out->json);
    read_payment(out, out->json);
    return true;
}

void run_spec_free(struct run_spec *spec)
{
    json_decref(spec->json);
    *spec = (struct run_spec){ 0 };
}

uint32_t run_spec_settles_after(const struct run_spec *spec)
{
    return spec->trust.challenge_rounds + 2 * (spec->trust.answer_rounds + 1);
}

uint32_t committee_faults(uint32_t n, uint32_t q)
{
    uint32_t forks = 2 * q > n ? 2 * q - n - 1 : 0, waits = n - q;

    return forks < waits ? forks : waits;
}

uint32_t committee_default_threshold(uint32_t n)
{
    return n == 0 ? 0 : n - (n - 1) / 3;
}
