#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/carried.h"
#include "runtime/role/driver_internal.h"
#include "runtime/role/fetch.h"

/* --- messages and the blocks they name ---------------------------------------------------------------------------------- */

/* The machine repeats what matters, so a message that finds too many before it on the way to the same machine is left out: a peer that is
 * slow costs little memory, one that is away a single attempt at a time. */
enum { ON_THE_WAY = 16, MISSING_MOST = 65536, BLOCKS_AT_ONCE = 4 };

/* One message on its way to one machine; then the blocks it lacks, some at a time. */
struct delivery {
    struct driver *driver;
    char did[DID_TEXT];
    char *endpoint;
    struct hash name;      /* of machine and text */
    uint64_t begun;        /* loop time */
    json_t *documents;     /* CIDs to acknowledge; empty: nothing is pushed */
    json_t *missing;       /* blocks still to push */
    json_t *pushed;        /* CID -> true: no block is pushed twice, whatever the other side says */
    unsigned asked;        /* calls that are not answered yet */
    bool failed;           /* it ends with the last of them */
    struct delivery *next; /* in driver->deliveries */
};

static void deliver_next(struct delivery *v);

static void delivery_free(struct delivery *v)
{
    for (struct delivery **at = &v->driver->deliveries; *at; at = &(*at)->next)
        if (*at == v) {
            *at = v->next;
            break;
        }
    free(v->endpoint);
    json_decref(v->documents);
    json_decref(v->missing);
    json_decref(v->pushed);
    free(v);
}

/* What another node or the own client refuses is worth a line, once for each machine and code. */
static void tell_refusal(struct delivery *v, const struct error *err)
{
    char key[DID_TEXT + 32], text[1024];

    snprintf(key, sizeof key, "%s %s", v->did, error_name(err->code));
    if (json_object_get(v->driver->told, key) || json_object_size(v->driver->told) >= 1024)
        return;
    json_object_set_new(v->driver->told, key, json_true());
    node_tell(
        v->driver->node, "refused",
        json_pack("{s:s, s:s, s:s}", "by", v->did, "code", error_name(err->code), "error", error_text(err, text, sizeof text)));
}

static void call(struct delivery *v, const char *method, const char *path, const void *body, size_t size,
                 void (*done)(void *, struct http_answer *))
{
    struct error err = { 0 };
    char *url = http_url_join(v->endpoint, path);
    struct http_call c = { .method = method,
                           .url = url,
                           .body = body,
                           .size = size,
                           .connect_ms = 3000,
                           .total_ms = 60000,
                           .type = strcmp(method, "PUT") == 0 ? "application/vnd.ipld.raw" : "application/json" };

    if (http_client_send(v->driver->node->client, &c, done, v, &err)) {
        v->asked++;
    } else {
        tell_refusal(v, &err);
        v->failed = true;
    }
    free(url);
}

/* Appends the answer's missing blocks; false when the call failed. */
static bool take_missing(struct delivery *v, struct http_answer *answer)
{
    struct error err = { 0 };
    json_t *value;

    if (!http_answer_ok(answer, &err)) {
        if (answer->status >= 400 && answer->status < 500)
            tell_refusal(v, &err);
        else
            peer_list_note(v->driver->node->peers, v->did, PEER_SILENT, uv_now(&v->driver->node->loop));
        return false;
    }
    peer_list_note(v->driver->node->peers, v->did, PEER_GOOD, uv_now(&v->driver->node->loop));
    value = json_read((const char *)answer->body.bytes, answer->body.size, HTTP_ANSWER_LIMIT, &err);
    if (json_array_size(v->documents)) /* only then is anything pushed */
        json_array_extend(v->missing, json_object_get(value, "missing"));
    json_decref(value);
    return json_array_size(v->missing) <= MISSING_MOST;
}

static void pushed(void *context, struct http_answer *answer)
{
    struct delivery *v = context;

    v->asked--;
    v->failed = !take_missing(v, answer) || v->failed;
    deliver_next(v);
}

/* The last block of the list, on its way. */
static void push_block(struct delivery *v)
{
    size_t last = json_array_size(v->missing) - 1;
    const char *cid = json_string_value(json_array_get(v->missing, last));
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;
    char path[128];
    bool ok = cid && !json_object_get(v->pushed, cid) && cid_parse(cid, &id, &err) &&
              block_get(&v->driver->node->blocks, id, &bytes, &err);

    if (ok) {
        snprintf(path, sizeof path, "/v1/blocks/%s", cid);
        json_object_set_new(v->pushed, cid, json_true());
        call(v, "PUT", path, bytes.bytes, bytes.size, pushed);
    }
    v->failed = !ok || v->failed;
    json_array_remove(v->missing, last);
    buffer_free(&bytes);
}

/* Pushes the next blocks; after the last answer the documents are acknowledged. */
static void deliver_next(struct delivery *v)
{
    struct driver *d = v->driver;
    size_t index;
    json_t *each;

    while (!v->failed && json_array_size(v->missing) && v->asked < BLOCKS_AT_ONCE)
        push_block(v);
    if (v->asked)
        return;
    if (!v->failed) {
        d->said[d->said_next++ % DRIVER_SAID] = (struct driver_said){ v->name, uv_now(&d->node->loop) };
        json_array_foreach(v->documents, index, each)
        {
            driver_feed(d, EVENT_ACKNOWLEDGED, json_pack("{s:O, s:s}", "cid", each, "did", v->did));
        }
    }
    delivery_free(v);
}

/* CIDs of the documents with blocks that this node made itself, and the objects that they name. Members fetch from each other. */
struct own_documents {
    json_t *cids;
    struct hash objects[8];
    size_t count;
};

static void add_own(struct own_documents *own, const struct document *document)
{
    static const struct {
        enum document_type type;
        const char *objects[2];
    } named[] = { { DOCUMENT_CONTRIBUTION, { "payload", "step_log" } },
                  { DOCUMENT_COMMITMENT, { NULL } },
                  { DOCUMENT_OPENING, { "trace" } },
                  { DOCUMENT_PICK, { "evidence" } } };
    char cid[CID_TEXT];

    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (document->type != named[i].type)
            continue;
        json_array_append_new(own->cids, json_string(cid_text(document->id, cid)));
        for (size_t k = 0; k < 2 && named[i].objects[k]; k++)
            if (own->count < sizeof own->objects / sizeof *own->objects && document_text(document->json, named[i].objects[k]))
                own->objects[own->count++] = document_cid(document->json, named[i].objects[k]);
    }
}

static struct own_documents own_with_blocks(struct driver *d, const json_t *message)
{
    struct own_documents own = { .cids = json_array() };
    json_t *envelope;
    size_t index;

    json_array_foreach(json_object_get(message, "documents"), index, envelope)
    {
        struct document document = { 0 };
        struct error err = { 0 };

        if (!d->is_member && document_open(envelope, d->node->known, &document, &err))
            add_own(&own, &document);
        document_free(&document);
    }
    return own;
}

/* The message as it is sent, with the blocks that it may carry. */
static char *text_of(struct driver *d, const json_t *message, const struct own_documents *own)
{
    json_t *whole = json_copy((json_t *)(uintptr_t)message), *blocks = json_array();
    size_t room = CARRIED_MOST;

    for (size_t i = 0; i < own->count; i++)
        carried_add(&d->node->blocks, own->objects[i], blocks, &room);
    if (json_array_size(blocks))
        json_object_set(whole, "blocks", blocks);
    char *text = json_dumps(whole, JSON_COMPACT);

    json_decref(blocks);
    json_decref(whole);
    return text;
}

/* Whether another message to this machine may start. Contributions push blocks: one of them at a time. */
static bool may_send(const struct driver *d, const char *did, bool pushes)
{
    const struct peer *peer = peer_list_find(d->node->peers, did);
    size_t most = peer && peer->failures > 1 ? 1 : ON_THE_WAY, count = 0;

    for (const struct delivery *v = d->deliveries; v; v = v->next)
        if (strcmp(v->did, did) == 0) {
            if (pushes && json_array_size(v->documents))
                return false;
            count++;
        }
    return count < most;
}

/* The machines repeat themselves four times a view, for messages that are lost. What the other side took less than half a view ago, or is
 * just taking, is left out: it would only forget it by ending. */
static bool was_said(const struct driver *d, struct hash name)
{
    const uint64_t half = (uint64_t)d->course->spec.committee.view_ms / 2, now = uv_now(&d->node->loop);

    for (const struct delivery *v = d->deliveries; v; v = v->next)
        if (now - v->begun < 2 * half && hash_equal(v->name, name))
            return true;
    for (size_t i = 0; i < DRIVER_SAID; i++)
        if (now - d->said[i].at < half && hash_equal(d->said[i].name, name))
            return true;
    return false;
}

static struct hash name_of(const char *did, const char *text, size_t size)
{
    struct hasher h;

    hash_start(&h, NULL);
    hash_text(&h, did);
    hash_part(&h, text, size);
    return hash_end(&h);
}

/* A record travels to everybody from everybody: who has it by then need not read it again (docs/protocol.md, section 10). */
static const char *path_of(struct driver *d, const json_t *message, char path[160])
{
    const json_t *finals = json_object_get(message, "finals"), *record = json_object_get(json_array_get(finals, 0), "record");
    int64_t round = json_integer_value(json_object_get(record, "round"));
    struct hash id, certificate;
    char cid[CID_TEXT];

    if (json_object_size(message) == 1 && json_array_size(finals) == 1 && round >= 0 &&
        journal_final(d->node->journal, d->course->id, (uint32_t)round, &id, &certificate, NULL))
        snprintf(path, 160, "/v1/documents?round=%lld&record=%s", (long long)round, cid_text(id, cid));
    else
        snprintf(path, 160, "/v1/documents");
    return path;
}

static void send_to(struct driver *d, const char *did, const char *endpoint, const char *path, const char *text, json_t *blocks)
{
    const size_t size = strlen(text);
    const struct hash name = name_of(did, text, size);

    if (!json_array_size(blocks) && was_said(d, name))
        return;
    struct delivery *v = calloc(1, sizeof *v);

    *v = (struct delivery){ .driver = d,
                            .name = name,
                            .begun = uv_now(&d->node->loop),
                            .documents = json_incref(blocks),
                            .missing = json_array(),
                            .pushed = json_object() };
    snprintf(v->did, sizeof v->did, "%s", did);
    v->endpoint = strdup(endpoint);
    v->next = d->deliveries;
    d->deliveries = v;
    call(v, "POST", path, text, size, pushed);
    if (v->failed)
        delivery_free(v);
}

void driver_send(struct driver *d, const json_t *body)
{
    const json_t *message = json_object_get(body, "message");
    struct own_documents own = own_with_blocks(d, message);
    json_t *to = json_object_get(body, "to"), *each;
    char *text = NULL, path[160];
    size_t index;

    path_of(d, message, path);
    json_array_foreach(to, index, each)
    {
        const char *did = json_string_value(each), *endpoint = course_endpoint(d->course, did);

        if (!endpoint || strcmp(did, d->node->did) == 0 || !may_send(d, did, json_array_size(own.cids) > 0))
            continue;
        text = text ? text : text_of(d, message, &own);
        send_to(d, did, endpoint, path, text, own.cids);
    }
    json_decref(own.cids);
    free(text);
}

/* --- asking for what is missing ------------------------------------------------------------------------------------------ */

struct question {
    struct driver *driver;
    char key[96]; /* in asked_rounds */
    enum { ASKED_ROUND, ASKED_DOCUMENT, ASKED_CLOSED } what;
    struct question *next; /* in driver->questions */
};

static void question_free(struct question *q)
{
    for (struct question **at = &q->driver->questions; *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    json_object_del(q->driver->asked_rounds, q->key);
    free(q);
}

/* Any panel member but this node, in turn; NULL when no endpoint is known. */
static const char *some_member(struct driver *d)
{
    const struct run_spec *spec = &d->course->spec;

    for (size_t i = 0; i < spec->committee.panel_count; i++) {
        char did[DID_TEXT];
        const char *endpoint;

        did_text(&spec->committee.panel[d->turn++ % spec->committee.panel_count].did, did);
        endpoint = course_endpoint(d->course, did);
        if (endpoint && strcmp(did, d->node->did) != 0)
            return endpoint;
    }
    return d->node->options.peer;
}

static void told(void *context, struct http_answer *answer)
{
    const struct question q = *(const struct question *)context;
    struct driver *d = q.driver;
    struct error err = { 0 };
    json_t *value = NULL;

    question_free(context); /* what the machine does with the answer may be to ask again */
    if (http_answer_ok(answer, &err))
        value = json_read((const char *)answer->body.bytes, answer->body.size, 16 << 20, &err);
    if (value && q.what == ASKED_CLOSED) {
        driver_feed(d, EVENT_MESSAGE, json_pack("{s:O?}", "documents", json_object_get(value, "documents")));
    } else if (value && q.what == ASKED_DOCUMENT) {
        struct document document = { 0 };
        char cid[CID_TEXT];

        if (document_read_known(value, d->node->known, &document, &err) && strcmp(cid_text(document.id, cid), q.key) == 0 &&
            journal_put_document(d->node->journal, &document, &err))
            driver_feed(d, EVENT_MESSAGE, json_pack("{s:[O]}", "documents", value));
        document_free(&document);
    } else if (value) {
        driver_feed(d, EVENT_MESSAGE, json_pack("{s:[O]}", "finals", value));
    }
    json_decref(value);
}

static void ask(struct driver *d, const char *key, const char *path, int what)
{
    const char *endpoint = some_member(d);
    struct error err = { 0 };

    if (!endpoint || json_object_get(d->asked_rounds, key))
        return;
    struct question *q = calloc(1, sizeof *q);
    char *url = http_url_join(endpoint, path);
    /* A member that is slow to say what it closed must not cost the trainer the rest of the round: another is asked. */
    const int total_ms = what == ASKED_CLOSED ? 3000 : 30000;
    struct http_call c = { .method = "GET", .url = url, .limit = 16 << 20, .connect_ms = 3000, .total_ms = total_ms };

    *q = (struct question){ .driver = d, .what = what, .next = d->questions };
    snprintf(q->key, sizeof q->key, "%s", key);
    d->questions = q;
    json_object_set_new(d->asked_rounds, key, json_true());
    if (!http_client_send(d->node->client, &c, told, q, &err))
        question_free(q);
    free(url);
}

static void fetch_document(struct driver *d, const char *cid)
{
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    struct hash id;
    char path[128];

    if (!cid_parse(cid, &id, &err))
        return;
    if (journal_get_document(d->node->journal, id, &bytes, &err)) {
        json_t *envelope = json_read((const char *)bytes.bytes, bytes.size, SIZE_MAX, &err);

        if (envelope)
            driver_feed(d, EVENT_MESSAGE, json_pack("{s:[o]}", "documents", envelope));
    } else {
        snprintf(path, sizeof path, "/v1/documents/%s", cid);
        ask(d, cid, path, ASKED_DOCUMENT);
    }
    buffer_free(&bytes);
}

void driver_fetch(struct driver *d, const json_t *body)
{
    json_t *documents = json_object_get(body, "documents"), *cid;
    size_t index;
    char key[32], path[160];

    json_array_foreach(documents, index, cid)
    {
        fetch_document(d, json_string_value(cid));
    }
    if (documents)
        return;
    bool closed = json_object_get(body, "closed");

    snprintf(key, sizeof key, "%lld%s", (long long)json_integer_value(json_object_get(body, closed ? "closed" : "round")),
             closed ? "/closed" : "");
    snprintf(path, sizeof path, "/v1/runs/%s/rounds/%s%s", d->course->run, key, closed ? "" : "?wait=20000");
    ask(d, key, path, closed ? ASKED_CLOSED : ASKED_ROUND);
}

void driver_deliveries_free(struct driver *d)
{
    while (d->deliveries)
        delivery_free(d->deliveries);
    while (d->questions)
        question_free(d->questions);
}
