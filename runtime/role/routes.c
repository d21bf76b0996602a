#include "runtime/role/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/role/carried.h"
#include "runtime/role/driver.h"
#include "runtime/role/expected.h"
#include "runtime/role/metrics.h"
#include "runtime/round/dispute.h"
#include "runtime/round/step_log.h"
#include "runtime/store/object.h"

enum { MESSAGE_LIMIT = 16 << 20, WAIT_MOST = 60000, WAITERS_MOST = 4096 };

static struct node *node_of(void *context)
{
    return context;
}

static struct course *course_at(struct http_request *request, struct node *node)
{
    const char *run = http_request_parameter(request, "run");

    if (node->course && strcmp(run, node->course->run) == 0)
        return node->course;
    http_answer_refusal(request, 404, ERROR_UNKNOWN, NULL, "this node does not take part in run %s", run);
    return NULL;
}

static void get_status(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    json_t *status =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s?}", "version", 1, "did", node->did, "role", node->role, "software",
                  "rondo " RONDO_VERSION, "endpoint", node_endpoint(node), "run", node->course ? node->course->run : NULL);

    if (node->driver)
        json_object_set_new(status, "machine", driver_status(node->driver));
    http_answer_json(request, 200, status);
    json_decref(status);
}

static void get_metrics(struct http_request *request, void *context)
{
    struct buffer text = { 0 };

    metrics_text(node_of(context), &text);
    http_answer_buffer(request, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
    buffer_free(&text);
}

static bool parse_cid(struct http_request *request, struct hash *id)
{
    struct error err = { 0 };

    if (cid_parse(http_request_parameter(request, "cid"), id, &err))
        return true;
    http_answer_problem(request, 400, &err);
    return false;
}

/* Hashed when it is first asked for since this process began, or was changed; whoever gets it checks it as well. */
static bool is_sound(struct node *node, struct hash id, const struct stat *about, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hasher h;
    struct hash name;
    bool sound;

    verified_name(node->known, &h);
    hash_text(&h, "block");
    hash_fixed(&h, id.bytes, sizeof id.bytes);
    hash_u64(&h, about->st_ino);
    hash_u64(&h, (uint64_t)about->st_size);
    hash_u64(&h, (uint64_t)about->st_mtim.tv_sec);
    hash_u64(&h, (uint64_t)about->st_mtim.tv_nsec);
    name = hash_end(&h);
    if (verified_has(node->known, name))
        return true;
    sound = block_get(&node->blocks, id, &bytes, err);
    buffer_free(&bytes);
    if (sound)
        verified_add(node->known, name);
    return sound;
}

static void get_block(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct error err = { 0 };
    struct hash id;
    struct stat about;
    int fd;

    if (!parse_cid(request, &id))
        return;
    if (!block_open(&node->blocks, id, &fd, &about, &err)) {
        http_answer_problem(request, 0, &err);
    } else if (is_sound(node, id, &about, &err)) {
        http_answer_file(request, 200, "application/vnd.ipld.raw", fd, (uint64_t)about.st_size);
    } else {
        close(fd);
        http_answer_problem(request, 0, &err);
    }
}

/* --- what is pushed, who waits ---------------------------------------------------------------------------------------- */

struct waiter {
    struct http_request *request;
    int64_t round;
    struct node *node;
    struct waiter *next;
};

struct listener {
    struct event_stream *stream;
    struct node *node;
    struct listener *next;
};

struct route_state {
    struct waiter *waiters;
    size_t waiter_count;
    struct listener *listeners;
};

/* Without a disk a node can promise nothing: it stops. */
static void stop_without_disk(struct node *node, const struct error *err)
{
    if (err->code == ERROR_IO)
        node_stop(node, err);
}

static void put_block(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct error err = { 0 };
    struct hash id;
    size_t size;
    const uint8_t *body = http_request_body(request, &size);

    if (!parse_cid(request, &id))
        return;
    json_t *missing = json_array(), *answer = json_pack("{s:O}", "missing", missing);

    if (expected_take(node, id, body, size, missing, &err)) {
        http_answer_json(request, 200, answer);
    } else {
        http_answer_problem(request, 0, &err);
        stop_without_disk(node, &err);
    }
    json_decref(answer);
    json_decref(missing);
}

static void get_document(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;

    if (!parse_cid(request, &id))
        return;
    if (journal_get_document(node->journal, id, &bytes, &err))
        http_answer_buffer(request, 200, "application/json", &bytes);
    else
        http_answer_problem(request, 0, &err);
    buffer_free(&bytes);
}

/* Of a round that is over, or soon is. */
static bool is_claim(enum document_type type)
{
    return type == DOCUMENT_CHALLENGE || type == DOCUMENT_OPENING || type == DOCUMENT_PICK || type == DOCUMENT_EQUIVOCATION ||
           type == DOCUMENT_LEAVE;
}

/* Who may say something here, and when. */
static bool admit_document(struct node *node, const struct document *d, struct error *err)
{
    const struct course *course = node->course;
    int64_t open = node->driver ? driver_round(node->driver) : 0;

    if (!hash_equal(d->run, course->id))
        return error_set(err, ERROR_MISMATCH, NULL, "a document of another run");
    if (d->type == DOCUMENT_ENROLMENT) {
        const char *code;

        if (course_admits(course, d, &code) && !course_knows(course, &d->signer) &&
            json_object_size(course->enrolments) >= COURSE_MACHINES)
            return error_set(err, ERROR_LIMIT, NULL, "as many machines as are kept here have enrolled");
        return course_admits(course, d, &code) ||
               error_set(err, ERROR_REFUSED, "the spec's panel and allow-list say who takes part", "enrolment refused: %s", code);
    }
    if (!d->has_signer || !course_knows(course, &d->signer))
        return error_set(err, ERROR_REFUSED, "enrol first", "the signer is not enrolled in this run");
    const bool works = d->type == DOCUMENT_CONTRIBUTION || d->type == DOCUMENT_COMMITMENT;

    if (works && !node->driver)
        return error_set(err, ERROR_REFUSED, "push to the members of the committee", "this node takes no contributions");
    if (is_claim(d->type) && d->has_round && d->round > open + 1)
        return error_set(err, ERROR_STALE, NULL, "round %u is not open here: round %lld is", d->round, (long long)open);
    if (is_claim(d->type) && d->has_round && d->type != DOCUMENT_LEAVE && d->type != DOCUMENT_EQUIVOCATION &&
        d->round + course->spec.payment.expiry_rounds + 4 < open)
        return error_set(err, ERROR_STALE, NULL, "round %u was settled long ago", d->round);
    if (works && (d->round < open || d->round > open + 1))
        return error_set(err, ERROR_STALE, NULL, "round %u is not open here: round %lld is", d->round, (long long)open);
    return true;
}

/* Objects are large, and whoever takes part could name any: only what a record asks for may be pushed. */
static void expect_move(struct node *node, const struct document *d, json_t *missing)
{
    const int64_t open = driver_round(node->driver);
    const bool opens = d->type == DOCUMENT_OPENING;
    const json_t *before = driver_final(node->driver, (int64_t)d->round - 1), *last = driver_final(node->driver, open - 1);

    if (disputes_ask(json_object_get(before, "record"), json_object_get(last, "record"), document_type_name(d->type), d->json))
        expected_object(node, document_cid(d->json, opens ? "trace" : "evidence"),
                        opens && document_integer(d->json, "index") == 0 ? course_carry_limit(node->course)
                                                                         : COURSE_DISPUTE_LIMIT,
                        open, missing);
}

/* What is beyond a signer's room goes to the machine, which has limits of its own, or nowhere, but not to the disk. */
static bool keep_document(struct node *node, const struct document *d, json_t *missing, struct error *err)
{
    const struct run_spec *spec = &node->course->spec;
    int64_t open = node->driver ? driver_round(node->driver) : 0;

    switch (d->type) {
    case DOCUMENT_VOTE:
    case DOCUMENT_PROPOSAL:
    case DOCUMENT_CLOSED:
        return true;
    case DOCUMENT_RECEIVED:
        if (d->round + 1 < open || d->round > open + 1 || !course_has_room(node->course, d))
            return true; /* asked for when it is needed */
        break;
    case DOCUMENT_CONTRIBUTION:
        if (!course_has_room(node->course, d))
            return error_set(err, ERROR_LIMIT, NULL, "too many contributions of one trainer to one round");
        expected_object(node, document_cid(d->json, "payload"), (uint64_t)spec->limits.payload_bytes, d->round, missing);
        expected_object(node, document_cid(d->json, "step_log"), step_log_size(document_integer(d->json, "steps")), d->round,
                        missing);
        break;
    default:
        if (!course_has_room(node->course, d))
            return error_set(err, ERROR_LIMIT, NULL, "too many documents of this kind from one signer");
        if (node->driver && (d->type == DOCUMENT_OPENING || d->type == DOCUMENT_PICK))
            expect_move(node, d, missing);
    }
    return (d->type != DOCUMENT_ENROLMENT || course_enrol(node->course, d, err)) && journal_put_document(node->journal, d, err);
}

static bool take_document(struct node *node, const json_t *envelope, json_t *missing, struct error *err)
{
    struct document d = { 0 };
    bool ok = document_read_known(envelope, node->known, &d, err) && admit_document(node, &d, err) &&
              keep_document(node, &d, missing, err);

    if (ok)
        metrics_count(node, METRIC_DOCUMENTS, document_type_name(d.type), NULL);
    document_free(&d);
    return ok;
}

/* One of the blocks that came with the documents that name them. */
static bool take_carried(struct node *node, const json_t *carried, json_t *missing, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = carried_read(carried, &id, &bytes, err) && expected_take(node, id, bytes.bytes, bytes.size, missing, err);

    buffer_free(&bytes);
    return ok;
}

/* Takes what a message brings: its documents, then the blocks of them that it carries. `missing`: what is still to be pushed. */
static bool take_message(struct node *node, const json_t *message, json_t *missing, struct error *err)
{
    json_t *each;
    size_t index;

    if (!json_is_object(message))
        return error_set(err, ERROR_TYPE, NULL, "a message is a JSON object");
    json_array_foreach(json_object_get(message, "documents"), index, each)
    {
        if (!take_document(node, each, missing, err))
            return error_at(err, "documents[%zu]", index);
    }
    json_array_foreach(json_object_get(message, "blocks"), index, each)
    {
        if (!take_carried(node, each, missing, err))
            return error_at(err, "blocks[%zu]", index);
    }
    for (size_t i = json_array_size(missing); i-- > 0;) {
        struct hash id;

        if (cid_parse(json_string_value(json_array_get(missing, i)), &id, err) && block_has(&node->blocks, id))
            json_array_remove(missing, i);
    }
    return true;
}

/* Statements of members can be had from the others again: they survive a power cut with what this node says itself. */
static bool is_small_talk(const json_t *message)
{
    static const char *const types[] = { "received", "proposal", "vote" };
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(message, "documents"), index, each)
    {
        const char *type = document_text(each, "payloadType");
        bool small = false;

        for (size_t i = 0; type && i < sizeof types / sizeof *types; i++) {
            char full[64];

            snprintf(full, sizeof full, "application/vnd.rondo.%s+json", types[i]);
            small = small || strcmp(type, full) == 0;
        }
        if (!small)
            return false;
    }
    return !json_object_get(message, "blocks");
}

/* What a message brings is one write, also where a part of it is refused. */
static bool keep_message(struct node *node, const json_t *message, json_t *missing, struct error *err)
{
    bool small = is_small_talk(message),
         begun = small ? journal_begin_lazily(node->journal, err) : journal_begin(node->journal, err),
         taken = begun && take_message(node, message, missing, err);
    struct error fault = { 0 };

    if (!begun || journal_end(node->journal, true, &fault))
        return taken;
    *err = fault; /* of this node's disk: more than what is wrong with the message */
    return false;
}

/* Whether the message is a record that was decided here, by its name: then it is not read. Who calls another message so wastes it. */
static bool is_decided(struct http_request *request, struct node *node)
{
    const char *record = http_request_query(request, "record");
    struct hash claimed, id, certificate;
    uint64_t round;

    return record && node->course && node->driver && http_request_query_number(request, "round", UINT32_MAX, &round, NULL) &&
           (int64_t)round < driver_round(node->driver) && cid_parse(record, &claimed, NULL) &&
           journal_final(node->journal, node->course->id, (uint32_t)round, &id, &certificate, NULL) && hash_equal(id, claimed);
}

static void post_documents(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct error err = { 0 };

    if (is_decided(request, node)) {
        json_t *nothing = json_pack("{s:[]}", "missing");

        http_answer_json(request, 200, nothing);
        json_decref(nothing);
        return;
    }
    size_t size;
    const uint8_t *body = http_request_body(request, &size);
    json_t *message = json_read((const char *)body, size, MESSAGE_LIMIT, &err), *missing = json_array();

    if (json_object_get(message, "payloadType"))
        message = json_pack("{s:[o]}", "documents", message);
    if (!message) {
        http_answer_problem(request, 400, &err);
    } else if (!node->course) {
        http_answer_refusal(request, 404, ERROR_UNKNOWN, NULL, "this node takes part in no run yet");
    } else if (node->driver && !driver_takes(node->driver, size)) {
        http_answer_refusal(request, 503, ERROR_LIMIT, "try again in a moment", "this node still prepares for the run");
    } else if (keep_message(node, message, missing, &err)) {
        json_t *answer = json_pack("{s:O}", "missing", missing);

        http_answer_json(request, 200, answer);
        json_decref(answer);
        json_object_del(message, "blocks");
        if (node->driver)
            driver_message(node->driver, message);
    } else {
        http_answer_problem(request, 0, &err);
        stop_without_disk(node, &err);
    }
    json_decref(missing);
    json_decref(message);
}

static void get_runs(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    json_t *runs = json_pack("{s:i, s:[]}", "version", 1, "runs");

    if (node->course)
        json_array_append_new(json_object_get(runs, "runs"), json_string(node->course->run));
    http_answer_json(request, 200, runs);
    json_decref(runs);
}

static void get_run(struct http_request *request, void *context)
{
    struct course *course = course_at(request, node_of(context));

    if (course)
        http_answer_bytes(request, 200, "application/json", course->document.bytes.bytes, course->document.bytes.size);
}

static void get_enrolments(struct http_request *request, void *context)
{
    struct course *course = course_at(request, node_of(context));
    const char *did;
    json_t *entry;

    if (!course)
        return;
    json_t *list = json_array();

    json_object_foreach(course->enrolments, did, entry) json_array_append(list, json_object_get(entry, "envelope"));
    json_t *answer = json_pack("{s:o}", "documents", list);

    http_answer_json(request, 200, answer);
    json_decref(answer);
}

/* --- decided rounds -------------------------------------------------------------------------------------------------- */

static void waiter_drop(struct waiter *w)
{
    struct route_state *routes = w->node->routes;

    for (struct waiter **at = &routes->waiters; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            routes->waiter_count--;
            break;
        }
    free(w);
}

static void waiter_gone(void *context)
{
    waiter_drop(context);
}

static void get_round(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct course *course = course_at(request, node);
    struct error err = { 0 };
    uint64_t wait;
    char *end;

    if (!course)
        return;
    long round = strtol(http_request_parameter(request, "n"), &end, 10);

    if (*end || round < 0) {
        http_answer_refusal(request, 400, ERROR_RANGE, NULL, "a round is a whole number");
        return;
    }
    if (!http_request_query_number(request, "wait", 0, &wait, &err)) {
        http_answer_problem(request, 400, &err);
        return;
    }
    const json_t *final = node->driver ? driver_final(node->driver, round) : NULL;

    if (final) {
        http_answer_json(request, 200, final);
        return;
    }
    if (wait == 0 || node->routes->waiter_count == WAITERS_MOST) {
        http_answer_refusal(request, 404, ERROR_MISSING, NULL, "round %ld is not decided here", round);
        return;
    }
    struct waiter *w = calloc(1, sizeof *w);

    *w = (struct waiter){ .request = request, .round = round, .node = node, .next = node->routes->waiters };
    node->routes->waiters = w;
    node->routes->waiter_count++;
    http_request_defer(request, (unsigned)(wait > WAIT_MOST ? WAIT_MOST : wait), waiter_gone, w);
}

void routes_final(struct node *node, int64_t round)
{
    const json_t *final = driver_final(node->driver, round);

    expected_expire(node->expected, round);
    for (struct waiter *w = node->routes->waiters, *next; w && final; w = next) {
        next = w->next;
        if (w->round != round)
            continue;
        struct http_request *request = w->request;

        waiter_drop(w);
        http_answer_json(request, 200, final);
    }
}

static void get_closed(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    char *end;

    if (!course_at(request, node))
        return;
    long round = strtol(http_request_parameter(request, "n"), &end, 10);

    if (*end || round < 0) {
        http_answer_refusal(request, 400, ERROR_RANGE, NULL, "a round is a whole number");
        return;
    }
    json_t *answer =
        json_pack("{s:o}", "documents", node->driver ? driver_commitments_closed(node->driver, round) : json_array());

    http_answer_json(request, 200, answer);
    json_decref(answer);
}

static void listener_gone(void *context)
{
    struct listener *l = context;

    for (struct listener **at = &l->node->routes->listeners; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    free(l);
}

static void get_events(struct http_request *request, void *context)
{
    struct node *node = node_of(context);

    if (!course_at(request, node))
        return;
    struct listener *l = calloc(1, sizeof *l);

    l->node = node;
    l->stream = event_stream_open(request, listener_gone, l);
    if (!l->stream) {
        free(l);
        return;
    }
    l->next = node->routes->listeners;
    node->routes->listeners = l;
}

void routes_event(struct node *node, const char *event, const json_t *body)
{
    if (!node->routes->listeners)
        return;
    char *text = json_dumps(body, JSON_COMPACT);

    for (struct listener *l = node->routes->listeners, *next; l; l = next) {
        next = l->next;
        event_stream_send(l->stream, NULL, event, text);
    }
    free(text);
}

static void post_release(struct http_request *request, void *context)
{
    struct node *node = node_of(context);
    struct course *course = course_at(request, node);
    struct error err = { 0 };
    size_t size;
    const uint8_t *body = http_request_body(request, &size);

    if (!course)
        return;
    json_t *value = json_read((const char *)body, size, 4096, &err);

    if (!value) {
        http_answer_problem(request, 400, &err);
        return;
    }
    http_answer_empty(request, 202);
    if (node->driver)
        driver_release_signature(node->driver, strtol(http_request_parameter(request, "n"), NULL, 10), value);
    json_decref(value);
}

const struct http_route node_routes[] = {
    { "GET", "/metrics", 0, NULL, get_metrics },
    { "GET", "/v1/status", 0, NULL, get_status },
    { "GET", "/v1/blocks/{cid}", 0, NULL, get_block },
    { "PUT", "/v1/blocks/{cid}", BLOCK_SIZE, NULL, put_block },
    { "GET", "/v1/documents/{cid}", 0, NULL, get_document },
    { "POST", "/v1/documents", MESSAGE_LIMIT, NULL, post_documents },
    { "GET", "/v1/runs", 0, NULL, get_runs },
    { "GET", "/v1/runs/{run}", 0, NULL, get_run },
    { "GET", "/v1/runs/{run}/enrolments", 0, NULL, get_enrolments },
    { "GET", "/v1/runs/{run}/rounds/{n}", 0, NULL, get_round },
    { "GET", "/v1/runs/{run}/rounds/{n}/closed", 0, NULL, get_closed },
    { "GET", "/v1/runs/{run}/events", 0, NULL, get_events },
    { "POST", "/v1/runs/{run}/releases/{n}", 4096, NULL, post_release },
    { NULL, NULL, 0, NULL, NULL },
};

struct route_state *routes_new(void)
{
    return calloc(1, sizeof(struct route_state));
}

void routes_free(struct route_state *routes)
{
    free(routes);
}
