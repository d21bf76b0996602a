#include "runtime/role/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/home.h"
#include "runtime/round/membership.h"
#include "runtime/round/value.h"

enum { POLICY_LIMIT = 1 << 20, PEERS_MOST = 64, LIST_MOST = 1024, RUNS_A_PEER = 64 };

static const struct schema_field text = FIELD("", TEXT, .least = 1, .most = 500), did = FIELD("", DID), cid = FIELD("", CID);

static const struct schema_field accepted_fields[] = {
    FIELD("sponsors", LIST, .item = &did, .most = LIST_MOST, .optional = true),
    FIELD("runs", LIST, .item = &cid, .most = LIST_MOST, .optional = true),
    FIELD("objectives", LIST, .item = &cid, .most = LIST_MOST, .optional = true),
    FIELD("licences", LIST, .item = &text, .most = LIST_MOST, .optional = true),
    FIELD("modalities", LIST, .item = &text, .most = LIST_MOST, .optional = true),
    FIELD("asset", TEXT, .least = 1, .most = 64, .optional = true),
};
static const struct schema accepted = SCHEMA(accepted_fields);
static const struct schema_field refused_fields[] = {
    FIELD("sponsors", LIST, .item = &did, .most = LIST_MOST, .fallback = "[]"),
    FIELD("runs", LIST, .item = &cid, .most = LIST_MOST, .fallback = "[]"),
};
static const struct schema refused = SCHEMA(refused_fields);
static const struct schema_field policy_fields[] = {
    FIELD("peers", LIST, .item = &text, .least = 1, .most = PEERS_MOST),
    FIELD("ledger", TEXT, .least = 1, .most = 500, .fallback = "\"http://127.0.0.1:8645\""),
    FIELD("accept", OBJECT, .of = &accepted, .fallback = "{}"),
    FIELD("refuse", OBJECT, .of = &refused, .fallback = "{}"),
    FIELD("least_pay", AMOUNT, .fallback = "\"0\""),
    FIELD("most_rounds", INTEGER, .least = 1, .most = INT32_MAX, .fallback = "2147483647"),
    FIELD("most_download", INTEGER, .least = 1, .most = INT64_MAX, .fallback = "9223372036854775807"),
    FIELD("every", INTEGER, .least = 1, .most = 86400, .fallback = "30"),
};
static const struct schema policy_schema = SCHEMA(policy_fields);

json_t *policy_read(const char *path, struct error *err)
{
    json_t *policy = json_read_file(path, POLICY_LIMIT, err);

    if (!policy)
        return NULL;
    if (json_is_object(policy)) {
        schema_complete(&policy_schema, policy);
        if (schema_check(&policy_schema, policy, err))
            return policy;
    } else {
        error_set(err, ERROR_TYPE, NULL, "a policy is a JSON object");
    }
    error_at(err, "%s", path);
    json_decref(policy);
    return NULL;
}

/* --- judging one run ---------------------------------------------------------------------------------------------------------- */

static const char *because(char why[240], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, 240, format, args);
    va_end(args);
    return why;
}

/* A list that is absent takes anything. */
static bool takes(const json_t *yes, const char *name, const char *what)
{
    const json_t *list = json_object_get(yes, name);

    return !list || value_lists(list, what);
}

static const char *judge_data(const json_t *policy, const struct run_spec *spec, char why[240])
{
    const json_t *licences = json_object_get(json_object_get(policy, "accept"), "licences");
    json_t *corpus;
    size_t index;

    if (!licences)
        return "";
    if (json_array_size(spec->dataset.corpora) == 0)
        return because(why, "its data names no licence");
    json_array_foreach(spec->dataset.corpora, index, corpus)
    {
        if (!value_lists(licences, value_text(corpus, "licence")))
            return because(why, "licence %.100s of corpus %.100s is not accepted", value_text(corpus, "licence"),
                           value_text(corpus, "name"));
    }
    return "";
}

static const char *judge_admission(const struct run_spec *spec, const char *own, const char *account, char why[240])
{
    struct rules rules = { 0 };
    struct error none = { 0 };
    char run[CID_TEXT];
    json_t *enrolment =
        json_pack("{s:s, s:s, s:s, s:s}", "signer", own, "role", "trainer", "account", account, "run", cid_text(spec->id, run));
    const bool read = rules_read(&rules, spec->json, run, &none);

    rules.replicas = 1; /* its account's signature comes when it enrols */
    const char *code = read ? membership_code(&rules, NULL, "enrolment", enrolment) : "spec";

    because(why, "it does not let this machine in (%s)", code);
    json_decref(enrolment);
    rules_free(&rules);
    return strcmp(code, "ok") == 0 ? "" : why;
}

unsigned __int128 policy_pay(const struct run_spec *spec)
{
    uint32_t trainers = spec->trust.allowed_count && spec->trust.allowed_count < spec->limits.trainers
                            ? (uint32_t)spec->trust.allowed_count
                            : spec->limits.trainers;

    return spec->payment.per_round / DECIMAL_ONE * (unsigned __int128)spec->payment.trainers / trainers +
           spec->payment.per_round % DECIMAL_ONE * (unsigned __int128)spec->payment.trainers / DECIMAL_ONE / trainers;
}

const char *policy_judge(const json_t *policy, const struct run_spec *spec, const char *own, const char *account,
                         uint64_t download, char why[240])
{
    const json_t *yes = json_object_get(policy, "accept"), *no = json_object_get(policy, "refuse");
    char run[CID_TEXT], objective[CID_TEXT], sponsor[DID_TEXT], pay[AMOUNT_TEXT];
    const char *asset = value_text(yes, "asset"), *fault;
    unsigned __int128 least = 0;

    cid_text(spec->id, run);
    did_text(&spec->sponsor, sponsor);
    cid_text(spec->objective.cid, objective);
    amount_parse(value_text(policy, "least_pay"), &least);
    if (value_lists(json_object_get(no, "runs"), run) || !takes(yes, "runs", run))
        return because(why, "the policy does not take this run");
    if (value_lists(json_object_get(no, "sponsors"), sponsor) || !takes(yes, "sponsors", sponsor))
        return because(why, "the policy does not take sponsor %s", sponsor);
    if (!takes(yes, "objectives", objective))
        return because(why, "the policy does not take objective %s", objective);
    if (!takes(yes, "modalities", spec->modality))
        return because(why, "the policy does not take modality %s", spec->modality);
    if (asset[0] && strcmp(asset, spec->payment.asset) != 0)
        return because(why, "it pays in %.60s", spec->payment.asset);
    if (policy_pay(spec) < least)
        return because(why, "less than least_pay, %s", amount_text(least, pay));
    if ((int64_t)spec->rounds > value_integer(policy, "most_rounds"))
        return because(why, "it has %u rounds, most_rounds is %lld", spec->rounds,
                       (long long)value_integer(policy, "most_rounds"));
    if (download > (uint64_t)value_integer(policy, "most_download"))
        return because(why, "its model and data are %llu bytes, most_download is %lld", (unsigned long long)download,
                       (long long)value_integer(policy, "most_download"));
    fault = judge_data(policy, spec, why);
    return fault[0] ? fault : judge_admission(spec, own, account, why);
}

/* --- asking for runs ----------------------------------------------------------------------------------------------------------- */

struct survey {
    const json_t *policy;
    const char *did, *account, *peer;
    bool plain;
    json_t *list;
};

static void add(struct survey *s, const char *run, const char *name, const char *pay, const char *reason)
{
    json_t *known = run[0] ? value_find(s->list, "run", run) : NULL;

    if (!known)
        json_array_append_new(s->list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "run", run, "name", name, "peer", s->peer, "pay",
                                                 pay, "reason", reason));
}

/* Sizes that a manifest's block claims; UINT64_MAX when it cannot be had. */
static uint64_t sum_sizes(struct survey *s, struct hash manifest, const char *list)
{
    char path[160], name[CID_TEXT];
    struct error none = { 0 };
    uint64_t sum = 0;
    json_t *value, *each;
    size_t index;

    snprintf(path, sizeof path, "/v1/blocks/%s", cid_text(manifest, name));
    value = home_ask(s->peer, path, s->plain, &none);
    if (!json_is_array(json_object_get(value, list)))
        sum = UINT64_MAX;
    json_array_foreach(json_object_get(value, list), index, each)
    {
        int64_t size = value_integer(each, "size");

        sum = size < 0 || sum > UINT64_MAX / 2 ? UINT64_MAX : sum + (uint64_t)size;
    }
    json_decref(value);
    return sum;
}

static uint64_t download_of(struct survey *s, const struct run_spec *spec)
{
    uint64_t model, data;

    if (value_integer(s->policy, "most_download") == INT64_MAX)
        return 0; /* nobody asks */
    model = sum_sizes(s, spec->base_model, "files");
    data = sum_sizes(s, spec->dataset.manifest, "shards");
    return model > UINT64_MAX - data ? UINT64_MAX : model + data;
}

static void look_at(struct survey *s, const char *run)
{
    struct error err = { 0 };
    struct document document = { 0 };
    struct run_spec spec = { 0 };
    char path[160], why[1024], pay[AMOUNT_TEXT];
    struct hash id;
    json_t *envelope = NULL;
    bool ok = cid_parse(run, &id, &err);

    if (ok) {
        snprintf(path, sizeof path, "/v1/runs/%s", run);
        envelope = home_ask(s->peer, path, s->plain, &err);
        ok = envelope && document_read_json(envelope, &document, &err) && document.type == DOCUMENT_RUN &&
             (hash_equal(document.id, id) || error_set(&err, ERROR_MISMATCH, NULL, "it gave another run's document")) &&
             run_spec_read(&document, &spec, &err);
    }
    if (ok)
        add(s, run, spec.name, amount_text(policy_pay(&spec), pay),
            policy_judge(s->policy, &spec, s->did, s->account, download_of(s, &spec), why));
    else
        add(s, "", "", "0", error_text(&err, why, sizeof why));
    run_spec_free(&spec);
    document_free(&document);
    json_decref(envelope);
}

static void ask_peer(struct survey *s)
{
    struct error err = { 0 };
    char reason[1024];
    json_t *answer = home_ask(s->peer, "/v1/runs", s->plain, &err), *run;
    size_t index;

    if (!answer)
        add(s, "", "", "0", error_text(&err, reason, sizeof reason));
    json_array_foreach(json_object_get(answer, "runs"), index, run) if (index < RUNS_A_PEER && json_is_string(run))
        look_at(s, json_string_value(run));
    json_decref(answer);
}

static int compare(const void *a, const void *b)
{
    const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
    bool no_left = value_text(left, "reason")[0], no_right = value_text(right, "reason")[0];
    unsigned __int128 pay_left = 0, pay_right = 0;

    if (no_left != no_right)
        return no_left - no_right;
    amount_parse(value_text(left, "pay"), &pay_left);
    amount_parse(value_text(right, "pay"), &pay_right);
    return pay_left != pay_right ? (pay_left > pay_right ? -1 : 1) : strcmp(value_text(left, "run"), value_text(right, "run"));
}

static json_t *sorted(json_t *list)
{
    size_t count = json_array_size(list);
    json_t **each = calloc(count + 1, sizeof *each), *out = json_array();

    for (size_t i = 0; i < count; i++)
        each[i] = json_array_get(list, i);
    qsort(each, count, sizeof *each, compare);
    for (size_t i = 0; i < count; i++)
        json_array_append(out, each[i]);
    free(each);
    json_decref(list);
    return out;
}

json_t *policy_survey(const json_t *policy, const char *own, const char *account, bool plain)
{
    struct survey s = { .policy = policy, .did = own, .account = account, .plain = plain, .list = json_array() };
    json_t *peer;
    size_t index;

    json_array_foreach(json_object_get(policy, "peers"), index, peer)
    {
        s.peer = json_string_value(peer);
        ask_peer(&s);
    }
    return sorted(s.list);
}
