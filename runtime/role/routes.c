#include "runtime/role/routes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/json.h"
#include "runtime/role/driver.h"
#include "runtime/role/expected.h"
#include "runtime/role/intake.h"
#include "runtime/role/metrics.h"
#include "runtime/role/subscribers.h"
#include "runtime/store/object.h"

enum { MESSAGE_LIMIT = 16 << 20 };

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
    struct node *node = node_of(context);
    struct driver *driver = node->driver;
    struct metrics_machine machine = { 0 };
    struct buffer text = { 0 };

    if (driver) {
        machine.round = driver_round(driver);
        machine.last = json_object_get(driver_final(driver, machine.round - 1), "record");
    }
    json_t *status = driver ? driver_status(driver) : NULL;

    machine.status = status;
    metrics_text(node, status ? &machine : NULL, &text);
    json_decref(status);
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
    } else if (intake_message(node, message, missing, &err)) {
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
    if (!subscribers_wait(node, request, round, wait))
        http_answer_refusal(request, 404, ERROR_MISSING,
                            node->driver ? NULL : "a sponsor takes no part: ask a syncer or a trainer",
                            "round %ld is not decided here", round);
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

static void get_events(struct http_request *request, void *context)
{
    struct node *node = node_of(context);

    if (course_at(request, node))
        subscribers_listen(node, request);
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
