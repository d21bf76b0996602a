#include "runtime/role/course_join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/driver.h"

enum { ENROLMENTS_ANSWER = 16 << 20, ASKED_AT_ONCE = 4, MADE_UP_MOST = 4 };

static json_t *ask(const struct node *node, const char *path, struct buffer *raw, struct error *err)
{
    char *url = http_url_join(node->options.peer, path);
    struct http_call call = {
        .method = "GET", .url = url, .limit = COURSE_DOCUMENT, .total_ms = 10000, .identity = &node->keys.identity
    };
    struct http_answer answer = { 0 };
    json_t *value = NULL;

    if (http_fetch(&call, node->options.plain, &answer, err) && http_answer_ok(&answer, err)) {
        value = json_read((const char *)answer.body.bytes, answer.body.size, COURSE_DOCUMENT, err);
        if (raw)
            buffer_add(raw, answer.body.bytes, answer.body.size);
    }
    buffer_free(&answer.body);
    if (!value)
        error_at(err, "%s", url);
    free(url);
    return value;
}

static bool is_held(const struct course *c, const json_t *envelope)
{
    const char *did;
    json_t *entry;

    json_object_foreach(c->enrolments, did, entry)
    {
        if (json_equal(json_object_get(entry, "envelope"), envelope))
            return true;
    }
    return false;
}

static bool take_enrolment(struct course *c, json_t *envelope, unsigned *made_up)
{
    struct node *node = c->node;
    struct document document = { 0 };
    struct error err = { 0 };
    const char *code = "";
    char did[DID_TEXT];
    bool taken =
        document_read_known(envelope, node->known, &document, &err) && document.type == DOCUMENT_ENROLMENT &&
        hash_equal(document.run, c->id) && course_admits(c, &document, &code) &&
        !(json_object_get(c->enrolments, did_text(&document.signer, did)) && journal_has_document(node->journal, document.id)) &&
        course_takes_hearsay(c, &document.signer) && course_has_room(c, &document) && course_enrol(c, &document, &err) &&
        journal_put_document(node->journal, &document, &err);

    *made_up += !strcmp(code, "evidence");
    document_free(&document);
    return taken;
}

/* Evidence that does not stand takes a millisecond to refuse, and whoever keeps an enrolment has looked at it: of a list with more of it the rest
 * is left. */
void course_take_enrolments(struct course *c, const json_t *list)
{
    json_t *envelope, *taken;
    struct error err = { 0 };
    unsigned made_up = 0;
    size_t index;

    if (json_array_size(list) > 2 * COURSE_MACHINES || !journal_begin(c->node->journal, &err))
        return;
    taken = json_array();
    json_array_foreach((json_t *)(uintptr_t)list, index, envelope)
    {
        if (made_up > MADE_UP_MOST)
            break;
        if (!is_held(c, envelope) && take_enrolment(c, envelope, &made_up)) /* a signature takes longer to verify than all this */
            json_array_append(taken, envelope);
    }
    if (journal_end(c->node->journal, true, &err) && c->node->driver && json_array_size(taken)) {
        json_t *message = json_pack("{s:O}", "documents", taken);

        driver_message(c->node->driver, message);
        json_decref(message);
    }
    json_decref(taken);
    course_forget_displaced(c);
}

bool course_join(struct node *node, const char *run, struct error *err)
{
    struct hash id;
    struct buffer raw = { 0 };
    struct course course = { 0 };
    char path[160];
    json_t *status, *value = NULL, *list = NULL;
    const char *did;

    if (!cid_parse(run, &id, err))
        return error_at(err, "run");
    status = ask(node, "/v1/status", NULL, err);
    if (!status)
        return false;
    did = json_string_value(json_object_get(status, "did"));

    bool ok = (did || error_set(err, ERROR_SYNTAX, NULL, "%s does not say its DID", node->options.peer)) &&
              peer_list_put(node->peers, did, node->options.peer, uv_now(&node->loop), err);

    snprintf(path, sizeof path, "/v1/runs/%s", run);
    ok = ok && (value = ask(node, path, &raw, err)) && course_of(node, run, raw.bytes, raw.size, &course, err) &&
         journal_put_document(node->journal, &course.document, err);
    snprintf(path, sizeof path, "/v1/runs/%s/enrolments", run);
    ok = ok && (list = ask(node, path, NULL, err));
    if (ok)
        course_take_enrolments(&course, json_object_get(list, "documents"));
    course_free(&course);
    json_decref(status);
    json_decref(value);
    json_decref(list);
    buffer_free(&raw);
    return ok;
}

static void refreshed(void *context, struct http_answer *answer)
{
    struct course *c = context;
    struct error err = { 0 };

    if (!http_answer_ok(answer, &err))
        return;
    json_t *list = json_read((const char *)answer->body.bytes, answer->body.size, ENROLMENTS_ANSWER, &err);

    course_take_enrolments(c, json_object_get(list, "documents"));
    json_decref(list);
}

static void refresh_from(struct course *c, const char *endpoint)
{
    char path[160];
    struct error err = { 0 };

    snprintf(path, sizeof path, "/v1/runs/%s/enrolments", c->run);

    char *url = http_url_join(endpoint, path);
    struct http_call call = { .method = "GET", .url = url, .limit = ENROLMENTS_ANSWER, .total_ms = 5000 };

    http_client_send(c->node->client, &call, refreshed, c, &err); /* a call that cannot start is tried again next time */
    free(url);
}

static void announced(void *context, struct http_answer *answer)
{
    struct course *c = context;
    struct error err = { 0 };

    c->announced = http_answer_ok(answer, &err);
}

/* The peer that this node began with tells others of it. */
static void announce(struct course *c)
{
    json_t *own = json_object_get(json_object_get(c->enrolments, c->node->did), "envelope"), *message;
    struct error err = { 0 };
    char *url, *text;

    if (c->announced || !own || !c->node->options.peer)
        return;
    message = json_pack("{s:[O]}", "documents", own);
    text = json_dumps(message, JSON_COMPACT);
    url = http_url_join(c->node->options.peer, "/v1/documents");

    struct http_call call = {
        .method = "POST", .url = url, .type = "application/json", .body = text, .size = strlen(text), .total_ms = 5000
    };

    http_client_send(c->node->client, &call, announced, c, &err); /* tried again at the next refresh */
    json_decref(message);
    free(text);
    free(url);
}

const struct peer *course_next_peer(struct course *c, uint64_t now_ms)
{
    size_t count = peer_list_count(c->node->peers);

    for (size_t i = 0; i < count; i++) {
        const struct peer *peer = peer_list_at(c->node->peers, c->turn++ % count);

        if (now_ms >= peer->retry_ms)
            return peer;
    }
    return NULL;
}

void course_refresh(struct course *c)
{
    size_t count = peer_list_count(c->node->peers);

    announce(c);
    if (c->node->options.peer)
        refresh_from(c, c->node->options.peer);
    for (size_t i = 0; i < count && i < ASKED_AT_ONCE; i++) {
        const struct peer *peer = course_next_peer(c, uv_now(&c->node->loop));

        if (peer)
            refresh_from(c, peer->endpoint);
    }
}

bool course_take_part(struct node *node, const char *run, struct error *err)
{
    struct hash id;

    if (!cid_parse(run, &id, err))
        return error_at(err, "RUN");
    const bool known = journal_has_document(node->journal, id);

    if (!node->options.peer && !known)
        return error_set(err, ERROR_MISSING,
                         strcmp(node->role, "sponsor") == 0 ? "serve it from the folder in which rondo run create made it"
                                                            : "name a node of the run to fetch it from: --peer URL",
                         "the folder %s does not know the run", node->options.folder);
    if (node->options.peer && !course_join(node, run, err)) {
        if (!known)
            return false;
        error_clear(err); /* the peer is away, but everything needed is here */
    }
    node->course = calloc(1, sizeof *node->course);
    return course_load(node, run, node->course, err);
}
