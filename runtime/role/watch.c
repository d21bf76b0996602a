#include "runtime/role/watch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/decimal.h"
#include "runtime/doc/documents.h"
#include "runtime/role/home.h"
#include "runtime/round/value.h"

static const int64_t KNOWN = INT64_MAX;

enum { NODES_MOST = 256, RESTS = 5, ROUNDS_A_LOOK = 256, LATE_VIEW = 2, RECENT = 5 };

struct watch {
    char home[4096];
    bool plain;
    char run[CID_TEXT];
    json_t *spec;     /* payload of the run document */
    json_t *nodes;    /* did -> { name, did, role, endpoint, rests, answers, status } */
    json_t *rounds;   /* decided rounds, each as watch_look gives it */
    json_t *paid;     /* did -> amount */
    json_t *last;     /* the newest record, or NULL */
    int64_t heard_at; /* monotonic seconds of the newest record */
};

static int64_t seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* --- who is asked --------------------------------------------------------------------------------------------------------- */

/* `serial` orders what is told of one node: the newest enrolment holds, and what this machine or the caller knows (KNOWN) before any. */
static void add_node(struct watch *w, const char *name, const char *did, const char *role, const char *endpoint, int64_t serial)
{
    json_t *node = json_object_get(w->nodes, did);

    if (!node && json_object_size(w->nodes) < NODES_MOST) {
        json_object_set_new(w->nodes, did,
                            json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:b}", "name", name, "did", did, "role", role, "endpoint",
                                      endpoint, "serial", (json_int_t)serial, "rests", 0, "answers", 0));
    } else if (node && endpoint[0] && value_integer(node, "serial") <= serial) {
        json_object_set_new(node, "endpoint", json_string(endpoint));
        json_object_set_new(node, "serial", json_integer(serial));
    }
}

static void add_home(struct watch *w)
{
    size_t count = 0;
    struct home_node *nodes = home_nodes(w->home, &count);

    for (size_t i = 0; i < count; i++) {
        const json_t *running = nodes[i].running;
        const char *run = value_text(running, "run");

        if (!running || (w->run[0] && strcmp(run, w->run) != 0))
            continue;
        snprintf(w->run, sizeof w->run, "%s", run);
        add_node(w, nodes[i].name, value_text(running, "did"), value_text(running, "role"), value_text(running, "endpoint"),
                 KNOWN);
    }
    home_nodes_free(nodes, count);
}

static json_t *ask(struct watch *w, const char *endpoint, struct error *err, const char *format, const char *of)
{
    char path[256];

    snprintf(path, sizeof path, format, w->run, of);
    return home_ask(endpoint, path, w->plain, err);
}

/* Machines that enrolled: the last characters of a DID are its name here, where no folder gives one. */
static void add_enrolled(struct watch *w, const char *endpoint)
{
    struct error none = { 0 };
    json_t *answer = ask(w, endpoint, &none, "/v1/runs/%s/enrolments", ""), *envelope;
    size_t index;

    json_array_foreach(json_object_get(answer, "documents"), index, envelope)
    {
        struct document d = { 0 };
        char did[DID_TEXT], url[PEER_ENDPOINT];

        error_clear(&none);
        if (document_read_json(envelope, &d, &none) && d.type == DOCUMENT_ENROLMENT) {
            did_text(&d.signer, did);
            add_node(w, did + (strlen(did) > 8 ? strlen(did) - 8 : 0), did, value_text(d.json, "role"),
                     home_enrolled_url(d.json, url), value_integer(d.json, "serial"));
        }
        document_free(&d);
    }
    json_decref(answer);
}

static bool learn_run(struct watch *w, const char *endpoint, struct error *err)
{
    json_t *status = home_ask(endpoint, "/v1/status", w->plain, err), *envelope = NULL;
    struct document d = { 0 };
    const char *run = value_text(status, "run");
    struct hash id;
    bool ok = status != NULL;

    if (ok && !cid_parse(run, &id, NULL))
        ok = error_set(err, ERROR_MISSING, "name a node that takes part in a run", "this node tells of no run");
    if (ok) {
        snprintf(w->run, sizeof w->run, "%s", run);
        add_node(w, value_text(status, "role"), value_text(status, "did"), value_text(status, "role"), endpoint, KNOWN);
        envelope = ask(w, endpoint, err, "/v1/runs/%s", "");
        ok = envelope && document_read_json(envelope, &d, err) &&
             ((d.type == DOCUMENT_RUN && hash_equal(d.id, id)) ||
              error_set(err, ERROR_MISMATCH, NULL, "it gave another document than that of the run"));
    }
    if (ok)
        w->spec = json_incref(d.json);
    document_free(&d);
    json_decref(envelope);
    json_decref(status);
    return ok || error_at(err, "%s", endpoint);
}

struct watch *watch_new(const char *home, const char *url, bool plain, struct error *err)
{
    struct watch *w = calloc(1, sizeof *w);
    const char *did;
    json_t *node;

    w->plain = plain;
    w->nodes = json_object();
    w->rounds = json_array();
    w->paid = json_object();
    w->heard_at = seconds();
    if (url) {
        learn_run(w, url, err);
    } else {
        snprintf(w->home, sizeof w->home, "%s", home);
        add_home(w);
        if (home_may_read(home, err) && json_object_size(w->nodes) == 0)
            error_set(err, ERROR_MISSING, "give the URL of a node, or the home of nodes that run by --home", "no node runs in %s",
                      home);
        json_object_foreach(w->nodes, did, node)
        {
            char endpoint[PEER_ENDPOINT]; /* the node's own may be replaced on the way */

            snprintf(endpoint, sizeof endpoint, "%s", value_text(node, "endpoint"));
            error_clear(err);
            if (!endpoint[0])
                error_set(err, ERROR_MISSING, "give the URL of another node of the run", "no node in %s listens", home);
            else if (learn_run(w, endpoint, err))
                break;
        }
    }
    if (w->spec)
        return w;
    watch_free(w);
    return NULL;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    json_decref(w->spec);
    json_decref(w->nodes);
    json_decref(w->rounds);
    json_decref(w->paid);
    json_decref(w->last);
    free(w);
}

/* --- records ---------------------------------------------------------------------------------------------------------------- */

/* Mean of what the accepted contributions say; null when their documents are not to be had. */
static json_t *loss_of(struct watch *w, const char *endpoint, const json_t *record)
{
    json_t *each;
    size_t index;
    double sum = 0;
    int known = 0;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        struct error none = { 0 };
        struct document d = { 0 };
        char path[200];
        json_t *envelope;

        if (!value_is(each, "code", "ok") || index >= NODES_MOST)
            continue;
        snprintf(path, sizeof path, "/v1/documents/%.120s", value_text(each, "cid"));
        envelope = home_ask(endpoint, path, w->plain, &none);
        if (envelope && document_read_json(envelope, &d, &none) && d.type == DOCUMENT_CONTRIBUTION) {
            sum += (double)document_float(json_object_get(d.json, "loss"));
            known++;
        }
        document_free(&d);
        json_decref(envelope);
    }
    return known && isfinite(sum) ? json_real(sum / known) : json_null();
}

static json_t *count_codes(const json_t *record, json_int_t *accepted)
{
    json_t *refused = json_object(), *each;
    size_t index;

    *accepted = 0;
    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        const char *code = value_text(each, "code");

        if (strcmp(code, "ok") == 0)
            ++*accepted;
        else
            json_object_set_new(refused, code, json_integer(value_integer(refused, code) + 1));
    }
    return refused;
}

static void add_paid(struct watch *w, const json_t *settled)
{
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(settled, "paid"), index, each)
    {
        const char *did = value_text(each, "did");
        unsigned __int128 had = 0, more = 0;
        char text[AMOUNT_TEXT];

        amount_parse(value_text(w->paid, did), &had); /* what is no amount counts as none */
        amount_parse(value_text(each, "amount"), &more);
        json_object_set_new(w->paid, did, json_string(amount_text(had + more, text)));
    }
}

static void take_record(struct watch *w, const char *endpoint, json_t *record)
{
    json_t *settled = json_array(), *each, *refused;
    json_int_t accepted;
    size_t index;

    json_array_foreach(json_object_get(record, "settled"), index, each)
    {
        json_array_append(settled, json_object_get(each, "round"));
        add_paid(w, each);
    }
    refused = count_codes(record, &accepted);
    json_array_append_new(w->rounds,
                          json_pack("{s:I, s:s, s:s, s:I, s:o, s:o, s:I, s:o}", "round", (json_int_t)json_array_size(w->rounds),
                                    "kind", value_text(record, "kind"), "reason", value_text(record, "reason"), "accepted",
                                    accepted, "refused", refused, "loss", loss_of(w, endpoint, record), "disputes",
                                    (json_int_t)json_array_size(json_object_get(record, "disputes")), "settled", settled));
    json_decref(w->last);
    w->last = json_incref(record);
    w->heard_at = seconds();
}

/* True when the node had the next round. */
static bool next_record(struct watch *w, const char *endpoint)
{
    struct error none = { 0 };
    char round[24];
    json_t *final, *record;
    bool took = false;

    snprintf(round, sizeof round, "%zu", json_array_size(w->rounds));
    final = ask(w, endpoint, &none, "/v1/runs/%s/rounds/%s", round);
    record = json_object_get(final, "record");
    if (record && value_integer(record, "round") == (int64_t)json_array_size(w->rounds)) {
        take_record(w, endpoint, record);
        took = true;
    }
    json_decref(final);
    return took;
}

/* --- alerts ------------------------------------------------------------------------------------------------------------------- */

static void alert(json_t *alerts, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(alerts, json_string(text));
}

static void alerts_of_nodes(struct watch *w, json_t *alerts)
{
    const char *did;
    json_t *node;

    json_object_foreach(w->nodes, did, node)
    {
        const json_t *machine = json_object_get(json_object_get(node, "status"), "machine");

        if (value_is(node, "role", "syncer") && !json_is_true(json_object_get(node, "answers")))
            alert(alerts, "syncer %s does not answer", value_text(node, "name"));
        if (value_is(machine, "phase", "halted"))
            alert(alerts, "%s has halted: two records are certified for one round", value_text(node, "name"));
        if (value_integer(machine, "view") >= LATE_VIEW)
            alert(alerts, "%s is in view %lld of round %lld: the committee does not agree", value_text(node, "name"),
                  (long long)value_integer(machine, "view"), (long long)value_integer(machine, "round"));
    }
}

static void alerts_of_rounds(struct watch *w, json_t *alerts)
{
    size_t count = json_array_size(w->rounds);
    int64_t round_ms = value_integer(json_object_get(w->spec, "quorum"), "round_ms"), quiet = seconds() - w->heard_at;
    json_t *each, *n;
    const char *code;
    size_t index;

    for (size_t i = count > RECENT ? count - RECENT : 0; i < count; i++) {
        each = json_array_get(w->rounds, i);
        if (value_is(each, "kind", "skip"))
            alert(alerts, "round %zu was skipped: %s", i, value_text(each, "reason"));
        json_object_foreach(json_object_get(each, "refused"), code, n)
        {
            alert(alerts, "round %zu: %lld refused (%s)", i, (long long)json_integer_value(n), code);
        }
    }
    json_array_foreach(json_object_get(w->last, "disputes"), index, each)
    {
        alert(alerts, "a dispute is open about %s", value_text(each, "did"));
    }
    json_array_foreach(json_object_get(w->last, "convicted"), index, each)
    {
        alert(alerts, "%s is convicted", value_text(each, "did"));
    }
    if (round_ms > 0 && quiet * 1000 > 2 * round_ms)
        alert(alerts, "no record for %lld s", (long long)quiet);
}

/* --- one look ------------------------------------------------------------------------------------------------------------------ */

static void ask_node(struct watch *w, json_t *node)
{
    struct error none = { 0 };
    int64_t rests = value_integer(node, "rests");
    json_t *status;

    if (rests > 0 || !value_text(node, "endpoint")[0]) {
        json_object_set_new(node, "rests", json_integer(rests - 1));
        return;
    }
    status = home_ask(value_text(node, "endpoint"), "/v1/status", w->plain, &none);
    json_object_set_new(node, "answers", json_boolean(status != NULL));
    json_object_set_new(node, "rests", json_integer(status ? 0 : RESTS));
    json_object_set_new(node, "status", status ? status : json_null());
}

static json_t *node_line(const json_t *node)
{
    const json_t *machine = json_object_get(json_object_get(node, "status"), "machine");
    bool answers = json_is_true(json_object_get(node, "answers"));

    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:I}", "name", value_text(node, "name"), "did", value_text(node, "did"),
                     "role", value_text(node, "role"), "endpoint", value_text(node, "endpoint"), "answers", answers, "phase",
                     answers ? (machine ? value_text(machine, "phase") : "serving") : "", "round",
                     (json_int_t)value_integer(machine, "round"), "view", (json_int_t)value_integer(machine, "view"));
}

static json_t *node_lines(struct watch *w)
{
    static const char *const roles[] = { "sponsor", "syncer", "trainer", "auditor" };
    json_t *lines = json_array(), *node;
    const char *did;

    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++)
        json_object_foreach(w->nodes, did, node) if (value_is(node, "role", roles[r]))
            json_array_append_new(lines, node_line(node));
    return lines;
}

json_t *watch_look(struct watch *w)
{
    json_t *alerts = json_array(), *node, *lines;
    const char *did;
    char source[PEER_ENDPOINT] = "";
    bool done = false;
    void *next;

    if (w->home[0])
        add_home(w);
    json_object_foreach_safe(w->nodes, next, did, node)
    {
        ask_node(w, node);
        if (json_is_true(json_object_get(node, "answers")) && !value_is(node, "role", "sponsor"))
            snprintf(source, sizeof source, "%s", value_text(node, "endpoint"));
        done = done || value_is(json_object_get(json_object_get(node, "status"), "machine"), "phase", "done");
    }
    if (source[0])
        add_enrolled(w, source);
    json_object_foreach_safe(w->nodes, next, did, node)
    {
        if (!json_object_get(node, "status")) /* just heard of: silent is only who was asked */
            ask_node(w, node);
    }
    for (int i = 0; source[0] && i < ROUNDS_A_LOOK && next_record(w, source); i++)
        ;
    alerts_of_nodes(w, alerts);
    alerts_of_rounds(w, alerts);
    lines = node_lines(w);
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:b, s:o, s:O, s:O, s:O?, s:o}", "run", w->run, "name",
                     value_text(w->spec, "name"), "rounds_planned", (json_int_t)value_integer(w->spec, "rounds"), "asset",
                     value_text(json_object_get(w->spec, "payment"), "asset"), "round",
                     (json_int_t)json_array_size(w->rounds) - 1, "finished", done, "nodes", lines, "rounds", w->rounds, "paid",
                     w->paid, "convicted", json_object_get(w->last, "convicted"), "alerts", alerts);
}
