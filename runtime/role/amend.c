#include "runtime/role/amend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/json.h"
#include "runtime/doc/documents.h"
#include "runtime/doc/run_spec.h"
#include "runtime/net/http_client.h"
#include "runtime/net/peer.h"
#include "runtime/role/home.h"
#include "runtime/round/amendment.h"
#include "runtime/round/value.h"

struct amending {
    const struct amend_options *options;
    struct document run;
    struct rules rules;
    json_t *record; /* the last decided one */
    json_t *payload;
    struct document amendment;
};

static json_t *ask(const struct amending *a, const char *format, int64_t number, struct error *err)
{
    char path[200];

    snprintf(path, sizeof path, format, a->options->run, (long long)number);
    return home_ask(a->options->peer, path, a->options->plain, err);
}

/* The record before the one that is open at the peer. */
static json_t *last_record(const struct amending *a, struct error *err)
{
    json_t *status = home_ask(a->options->peer, "/v1/status", a->options->plain, err), *final, *record;
    int64_t open = value_integer(json_object_get(status, "machine"), "round");

    if (!status)
        return NULL;
    json_decref(status);
    if (open < 1) {
        error_set(err, ERROR_REFUSED, "name a syncer or a trainer by --peer, once its first round is over",
                  "the peer has decided no round yet");
        return NULL;
    }
    final = ask(a, "/v1/runs/%s/rounds/%lld", open - 1, err);
    record = json_incref(json_object_get(final, "record"));
    json_decref(final);
    if (!record && final)
        error_set(err, ERROR_SYNTAX, NULL, "the peer's answer holds no record");
    return record;
}

static bool open_run(struct amending *a, struct error *err)
{
    struct hash id;
    json_t *answer;
    bool ok;

    if (!cid_parse(a->options->run, &id, err))
        return error_at(err, "RUN");
    answer = ask(a, "/v1/runs/%s", 0, err);
    ok = answer && document_read_json(answer, &a->run, err) &&
         ((a->run.type == DOCUMENT_RUN && hash_equal(a->run.id, id)) ||
          error_set(err, ERROR_MISMATCH, NULL, "the peer gave another document")) &&
         rules_read(&a->rules, a->run.json, a->options->run, err) && (a->record = last_record(a, err)) != NULL;
    json_decref(answer);
    return ok;
}

/* Why the committee would not take it, before it is sent. */
static bool check(const struct amending *a, struct error *err)
{
    static const char *const words[][2] = {
        { "signer", "only the sponsor's key amends a run" },
        { "amendable", "the spec does not mark such a change (`amendable`), or the value does not fit" },
        { "late", "its first round must be two records ahead, and one that could still train" },
        { "number", "an amendment of that number is in force" },
    };
    const char *code = amendment_code(&a->rules, a->record, a->payload);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(code, words[i][0]) == 0)
            return error_set(err, ERROR_REFUSED, NULL, "%s", words[i][1]);
    return true;
}

static bool make(struct amending *a, const struct key_pair *keys, struct error *err)
{
    json_t *list = json_object_get(a->record, "amendments"), *one;
    int64_t number = 1, from = a->options->from ? a->options->from : value_integer(a->record, "round") + 2 + AMENDMENT_NOTICE;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (value_integer(one, "number") >= number)
            number = value_integer(one, "number") + 1;
    }

    json_t *fields = json_pack("{s:s, s:I, s:I, s:O}", "run", a->options->run, "number", (json_int_t)number, "from",
                               (json_int_t)from, "changes", a->options->changes);
    bool ok = document_make(DOCUMENT_AMENDMENT, fields, &keys->identity, NULL, &a->amendment, err);

    json_decref(fields);
    a->payload = a->amendment.json;
    return ok && check(a, err);
}

/* One member; false when it did not take it. */
static bool push(const struct amending *a, const char *endpoint, struct error *err)
{
    char *url = http_url_join(endpoint, "/v1/documents");
    struct http_call call = { .method = "POST",
                              .url = url,
                              .type = "application/json",
                              .body = a->amendment.bytes.bytes,
                              .size = a->amendment.bytes.size,
                              .total_ms = 10000 };
    struct http_answer answer = { 0 };
    bool ok = http_fetch(&call, a->options->plain, &answer, err) && http_answer_ok(&answer, err);

    buffer_free(&answer.body);
    free(url);
    return ok || error_at(err, "%s", endpoint);
}

/* The newest endpoint of each member of the panel gets it. How many took it; 0 with `err`. */
static size_t push_all(const struct amending *a, struct error *err)
{
    json_t *answer = ask(a, "/v1/runs/%s/enrolments", 0, err), *newest = json_object(), *envelope, *one;
    const char *did;
    size_t i, taken = 0;

    json_array_foreach(json_object_get(answer, "documents"), i, envelope)
    {
        struct document d = { 0 };
        struct error none = { 0 };
        const char *signer = document_read_json(envelope, &d, &none) ? value_text(d.json, "signer") : "";
        const json_t *known = json_object_get(newest, signer);

        if (d.type == DOCUMENT_ENROLMENT && value_find(a->rules.panel, "did", signer) &&
            json_is_string(json_object_get(d.json, "endpoint")) &&
            (!known || value_integer(known, "serial") < value_integer(d.json, "serial")))
            json_object_set(newest, signer, d.json);
        document_free(&d);
    }
    json_object_foreach(newest, did, one)
    {
        char url[PEER_ENDPOINT];

        taken += push(a, home_enrolled_url(one, url), err);
    }
    if (!taken && answer && err->code == ERROR_NONE)
        error_set(err, ERROR_NETWORK, NULL, "the peer knows no member of the committee");
    json_decref(newest);
    json_decref(answer);
    return taken;
}

/* The record that lists it, or null. */
static json_t *await(const struct amending *a)
{
    int64_t round = value_integer(a->record, "round") + 1, number = value_integer(a->payload, "number");
    struct timespec pause = { .tv_nsec = 200000000 };

    for (unsigned waited = 0; waited < a->options->wait_ms; waited += 200) {
        struct error none = { 0 };
        json_t *final = ask(a, "/v1/runs/%s/rounds/%lld", round, &none), *one;
        size_t i;

        if (!final) {
            nanosleep(&pause, NULL);
            continue;
        }
        json_array_foreach(json_object_get(json_object_get(final, "record"), "amendments"), i, one)
        {
            if (value_integer(one, "number") == number) {
                json_t *record = json_incref(json_object_get(one, "record"));

                json_decref(final);
                return record;
            }
        }
        json_decref(final);
        if (++round >= value_integer(a->payload, "from"))
            break;
    }
    return json_null();
}

json_t *amend_run(const struct amend_options *options, const struct key_pair *keys, struct error *err)
{
    struct amending a = { .options = options };
    json_t *result = NULL;
    size_t taken = open_run(&a, err) && make(&a, keys, err) ? push_all(&a, err) : 0;

    if (taken)
        result = json_pack("{s:s, s:O, s:O, s:O, s:I, s:o}", "run", options->run, "number", json_object_get(a.payload, "number"),
                           "from", json_object_get(a.payload, "from"), "changes", options->changes, "members", (json_int_t)taken,
                           "record", await(&a));
    document_free(&a.amendment);
    document_free(&a.run);
    json_decref(a.record);
    rules_free(&a.rules);
    return result;
}
