#include "runtime/role/course.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/net/tls.h"
#include "runtime/role/driver.h"
#include "runtime/round/membership.h"
#include "runtime/store/object.h"

enum { SCRIPT_LIMIT = 64 << 10, DOCUMENT_ANSWER = 8 << 20, ENROLMENTS_ANSWER = 1 << 20, ASKED_AT_ONCE = 4 };

/* The panel, the trainers and the sponsor: whoever may be in a list of enrolments. */
enum { MACHINES_MOST = SPEC_PANEL + SPEC_TRAINERS + 1 };

/* Documents that are kept of one signer: of one round (two contributions are proof of a lie, and enough of one), or of all rounds. */
enum { CONTRIBUTIONS_MOST = 2, RECEIVED_MOST = 256, ENROLMENTS_MOST = 256, OTHERS_MOST = 1024 };

static bool read_spec(struct course *c, struct error *err)
{
    return run_spec_read(&c->document, &c->spec, err) && rules_read(&c->rules, c->spec.json, c->run, err);
}

bool course_admits(const struct course *c, const struct document *document, const char **code)
{
    *code = membership_code(&c->rules, NULL, "enrolment", document->json);
    return strcmp(*code, "ok") == 0;
}

static bool load_enrolments(struct course *c, struct error *err)
{
    struct hash *ids = NULL;
    size_t count = 0;
    bool ok = journal_list_documents(c->node->journal, c->id, DOCUMENT_ENROLMENT, -1, &ids, &count, err);

    for (size_t i = 0; ok && i < count; i++) {
        struct buffer bytes = { 0 };
        struct document document = { 0 };
        struct error useless = { 0 };
        const char *code;

        ok = journal_get_document(c->node->journal, ids[i], &bytes, err) &&
             document_read_as(DOCUMENT_ENROLMENT, bytes.bytes, bytes.size, &document, err);
        if (ok && course_admits(c, &document, &code))
            course_enrol(c, &document, &useless); /* one that gives no usable endpoint stays out, as when it came */
        document_free(&document);
        buffer_free(&bytes);
    }
    free(ids);
    return ok;
}

bool course_of(struct node *node, const char *run, const void *bytes, size_t size, struct course *c, struct error *err)
{
    *c = (struct course){ .node = node, .enrolments = json_object(), .turn = randombytes_random() };
    snprintf(c->run, sizeof c->run, "%s", run);
    return (cid_parse(run, &c->id, err) && document_read_as(DOCUMENT_RUN, bytes, size, &c->document, err) &&
            (hash_equal(c->document.id, c->id) || error_set(err, ERROR_MISMATCH, NULL, "the document is another run's")) &&
            read_spec(c, err)) ||
           error_at(err, "run %s", run);
}

bool course_load(struct node *node, const char *run, struct course *c, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = cid_parse(run, &id, err) && journal_get_document(node->journal, id, &bytes, err) &&
              course_of(node, run, bytes.bytes, bytes.size, c, err) && load_enrolments(c, err);

    buffer_free(&bytes);
    return ok;
}

void course_free(struct course *c)
{
    json_decref(c->enrolments);
    json_decref(c->shards);
    json_decref(c->open);
    rules_free(&c->rules);
    run_spec_free(&c->spec);
    document_free(&c->document);
    *c = (struct course){ 0 };
}

const char *course_endpoint(const struct course *c, const char *did)
{
    const char *endpoint = json_string_value(json_object_get(json_object_get(c->enrolments, did), "url"));

    return endpoint && endpoint[0] ? endpoint : NULL;
}

/* The endpoint with the fingerprint as its pin. False (syntax) when they do not go together. */
static bool pinned_endpoint(const struct document *enrolment, char url[PEER_ENDPOINT], struct error *err)
{
    const char *endpoint = document_text(enrolment->json, "endpoint"),
               *fingerprint = document_text(enrolment->json, "fingerprint");
    uint8_t bytes[TLS_FINGERPRINT];
    size_t length;
    bool pinned;

    snprintf(url, PEER_ENDPOINT, "%s", endpoint ? endpoint : "");
    if (!endpoint || !endpoint[0] || !fingerprint)
        return true;
    return (hex_decode(fingerprint, strlen(fingerprint), bytes, sizeof bytes) &&
            tls_pin_add(endpoint, bytes, url, PEER_ENDPOINT) && tls_pin_split(url, &length, &pinned, bytes, err)) ||
           error_set(err, ERROR_SYNTAX, "a fingerprint belongs to an https endpoint",
                     "endpoint and fingerprint do not go together");
}

bool course_enrol(struct course *c, const struct document *document, struct error *err)
{
    char did[DID_TEXT], url[PEER_ENDPOINT];
    json_t *envelope;

    if (!hash_equal(document->run, c->id))
        return error_set(err, ERROR_MISMATCH, NULL, "an enrolment for another run");
    did_text(&document->signer, did);
    if (document_integer(document->json, "serial") <
        document_integer(json_object_get(json_object_get(c->enrolments, did), "payload"), "serial"))
        return true; /* an old one that comes late */
    if (!pinned_endpoint(document, url, err))
        return false;
    envelope = json_read((const char *)document->bytes.bytes, document->bytes.size, DOCUMENT_ANSWER, err);
    if (!envelope)
        return false;
    if (url[0] && strcmp(did, c->node->did) != 0 && !peer_list_put(c->node->peers, did, url, uv_now(&c->node->loop), err)) {
        json_decref(envelope);
        return false;
    }
    json_object_set_new(c->enrolments, did,
                        json_pack("{s:o, s:O, s:s}", "envelope", envelope, "payload", document->json, "url", url));
    return true;
}

uint64_t course_carry_limit(const struct course *c)
{
    return 64 * (uint64_t)c->spec.limits.payload_bytes;
}

/* Such documents are dated by the round that they are about, which admit_document keeps near. */
static bool is_of_round(enum document_type type)
{
    return type == DOCUMENT_CONTRIBUTION || type == DOCUMENT_RECEIVED || type == DOCUMENT_CHALLENGE || type == DOCUMENT_OPENING ||
           type == DOCUMENT_PICK || type == DOCUMENT_COMMITMENT;
}

bool course_has_room(const struct course *c, const struct document *document)
{
    bool of_round = is_of_round(document->type);
    size_t count = 0, most = document->type == DOCUMENT_CONTRIBUTION ? CONTRIBUTIONS_MOST
                             : document->type == DOCUMENT_COMMITMENT ? CONTRIBUTIONS_MOST
                             : document->type == DOCUMENT_RECEIVED   ? RECEIVED_MOST
                             : document->type == DOCUMENT_ENROLMENT  ? ENROLMENTS_MOST
                                                                     : OTHERS_MOST;
    struct error none = { 0 };

    return journal_has_document(c->node->journal, document->id) ||
           (journal_count_documents(c->node->journal, c->id, document->type, of_round ? (int64_t)document->round : -1,
                                    &document->signer, &count, &none) &&
            count < most);
}

bool course_knows(const struct course *c, const struct public_key *signer)
{
    char did[DID_TEXT];

    if (public_key_equal(signer, &c->spec.sponsor) || json_object_get(c->enrolments, did_text(signer, did)))
        return true;
    for (size_t i = 0; i < c->spec.committee.panel_count; i++)
        if (public_key_equal(signer, &c->spec.committee.panel[i].did))
            return true;
    return false;
}

bool course_invites(const struct course *c, const struct public_key *key)
{
    const struct run_spec *spec = &c->spec;

    for (size_t i = 0; i < spec->trust.allowed_count; i++)
        if (public_key_equal(key, &spec->trust.allowed[i]))
            return true;
    return course_knows(c, key);
}

/* --- joining -------------------------------------------------------------------------------------------------------- */

static json_t *ask(const struct node *node, const char *path, struct buffer *raw, struct error *err)
{
    char *url = http_url_join(node->options.peer, path);
    struct http_call call = {
        .method = "GET", .url = url, .limit = DOCUMENT_ANSWER, .total_ms = 10000, .identity = &node->keys.identity
    };
    struct http_answer answer = { 0 };
    json_t *value = NULL;

    if (http_fetch(&call, node->options.plain, &answer, err) && http_answer_ok(&answer, err)) {
        value = json_read((const char *)answer.body.bytes, answer.body.size, DOCUMENT_ANSWER, err);
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

static void take_enrolment(struct course *c, json_t *envelope)
{
    struct node *node = c->node;
    struct document document = { 0 };
    struct error err = { 0 };
    const char *code;

    if (document_read_known(envelope, node->known, &document, &err) && document.type == DOCUMENT_ENROLMENT &&
        hash_equal(document.run, c->id) && course_admits(c, &document, &code) &&
        !journal_has_document(node->journal, document.id) && course_has_room(c, &document) &&
        journal_put_document(node->journal, &document, &err) && course_enrol(c, &document, &err) && node->driver) {
        json_t *message = json_pack("{s:[O]}", "documents", envelope);

        driver_message(node->driver, message);
        json_decref(message);
    }
    document_free(&document);
}

void course_take_enrolments(struct course *c, const json_t *list)
{
    json_t *envelope;
    size_t index;

    if (json_array_size(list) > MACHINES_MOST)
        return;
    json_array_foreach((json_t *)(uintptr_t)list, index, envelope)
    {
        if (!is_held(c, envelope)) /* a signature takes longer to verify than all this */
            take_enrolment(c, envelope);
    }
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

/* --- what a worker needs -------------------------------------------------------------------------------------------- */

struct wants {
    struct fetch_want *list;
    size_t count;
};

static void want(struct wants *w, struct hash id, bool object)
{
    w->list = realloc(w->list, (w->count + 1) * sizeof *w->list);
    w->list[w->count++] = (struct fetch_want){ .id = id, .object = object };
}

static json_t *read_block(struct course *c, struct hash id, struct error *err)
{
    struct buffer bytes = { 0 };
    json_t *value =
        block_get(&c->node->blocks, id, &bytes, err) ? json_read((const char *)bytes.bytes, bytes.size, BLOCK_SIZE, err) : NULL;

    buffer_free(&bytes);
    return value;
}

static void want_scripts(struct course *c, struct wants *w)
{
    const struct run_spec *s = &c->spec;
    const struct hash own[] = { s->model.cid, s->objective.cid, s->inner.cid, s->outer.cid, s->schedule.cid };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        want(w, own[i], false);
    if (s->rewarded)
        want(w, s->reward.cid, false);
    for (size_t i = 0; i < s->aggregator_count; i++)
        want(w, s->aggregators[i].cid, false);
    for (size_t i = 0; i < s->import_count; i++)
        want(w, s->imports[i].cid, false);
}

/* A name inside the model's folder: no path. */
bool course_plain_name(const char *name)
{
    return name && name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 200;
}

/* The manifest of a model, or of an adapter, and what it names once it is here: *complete says whether it was. */
static bool want_model(struct course *c, struct wants *w, struct hash id, bool *complete, struct error *err)
{
    json_t *model, *file;
    size_t index;
    bool ok = true;

    want(w, id, false);
    if (!block_has(&c->node->blocks, id)) {
        *complete = false;
        return true;
    }
    model = read_block(c, id, err);
    ok = model != NULL;
    json_array_foreach(json_object_get(model, "files"), index, file)
    {
        const char *cid = json_string_value(json_object_get(file, "object"));
        struct hash object;

        ok = ok && course_plain_name(json_string_value(json_object_get(file, "name"))) && cid_parse(cid ? cid : "", &object, err);
        if (ok)
            want(w, object, true);
    }
    if (!ok && err->code == ERROR_NONE)
        error_set(err, ERROR_SYNTAX, NULL, "the model's manifest names no usable file");
    json_decref(model);
    return ok;
}

bool course_wants(struct course *c, struct fetch_want **wants, size_t *count, bool *complete, struct error *err)
{
    struct wants w = { 0 };
    struct hash template;
    bool ok;

    *complete = true;
    want_scripts(c, &w);
    want(&w, c->spec.dataset.manifest, false);
    if (strcmp(c->spec.chat_template, "model") != 0 && cid_parse(c->spec.chat_template, &template, err))
        want(&w, template, false);
    ok = want_model(c, &w, c->spec.base_model, complete, err) &&
         (!c->spec.referenced || want_model(c, &w, c->spec.reference, complete, err)) &&
         (!c->spec.adapter.continued || want_model(c, &w, c->spec.adapter.start, complete, err));
    *wants = w.list;
    *count = w.count;
    return ok;
}

/* One that is there and whole stays: it may be large. */
static bool lay_out_file(struct course *c, struct hash object, const char *at, struct error *err)
{
    struct error fault = { 0 };

    return (file_exists(at) && object_is_file(MODEL_MEDIA, object, at, &fault)) ||
           object_get_file(&c->node->blocks, object, NULL, COURSE_OBJECT_LIMIT, at, err);
}

/* `list` gets what was laid out: [ [path, CID of the object] ]. */
static bool lay_out_model(struct course *c, struct hash id, json_t *list, char path[4096], struct error *err)
{
    char cid[CID_TEXT], at[4400];
    json_t *model = read_block(c, id, err), *files = json_object_get(model, "files"), *file;
    size_t index;
    bool ok = model != NULL, gguf = false;

    snprintf(path, 4096, "%.3900s/models/%s", c->node->folder, cid_text(id, cid));
    ok = ok && file_make_folder(path, err);
    json_array_foreach(files, index, file)
    {
        const char *name = json_string_value(json_object_get(file, "name"));
        struct hash object;

        if (!ok || !course_plain_name(name)) {
            ok = ok && error_set(err, ERROR_SYNTAX, NULL, "the model's manifest names no usable file");
            break;
        }
        snprintf(at, sizeof at, "%s/%s", path, name);
        gguf = gguf || (json_array_size(files) == 1 && strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".gguf") == 0);
        ok =
            ok && cid_parse(json_string_value(json_object_get(file, "object")), &object, err) && lay_out_file(c, object, at, err);
        if (ok)
            json_array_append_new(list, json_pack("[s, O]", at, json_object_get(file, "object")));
    }
    if (ok && gguf)
        snprintf(path, 4096, "%s", at);
    json_decref(model);
    return ok;
}

static bool add_script(struct course *c, json_t *scripts, struct hash id, const char *name, struct error *err)
{
    struct buffer bytes = { 0 };
    char cid[CID_TEXT];

    if (!block_get(&c->node->blocks, id, &bytes, err))
        return error_at(err, "script %s", name);
    if (bytes.size > SCRIPT_LIMIT) {
        buffer_free(&bytes);
        return error_set(err, ERROR_LIMIT, NULL, "script %s is larger than 64 KiB", name);
    }
    json_t *source = json_stringn((const char *)bytes.bytes, bytes.size);

    buffer_free(&bytes);
    if (!source)
        return error_set(err, ERROR_SYNTAX, NULL, "script %s is not UTF-8", name);
    json_object_set_new(scripts, cid_text(id, cid), json_pack("{s:s, s:o}", "name", name, "source", source));
    return true;
}

static bool add_scripts(struct course *c, json_t *scripts, struct error *err)
{
    const struct run_spec *s = &c->spec;
    const struct {
        struct hash id;
        const char *name;
    } own[] = { { s->model.cid, "model" },
                { s->objective.cid, "objective" },
                { s->inner.cid, "inner" },
                { s->outer.cid, "outer" },
                { s->schedule.cid, "schedule" } };
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
        ok = add_script(c, scripts, own[i].id, own[i].name, err);
    if (ok && s->rewarded)
        ok = add_script(c, scripts, s->reward.cid, "reward", err);
    for (size_t i = 0; ok && i < s->aggregator_count; i++)
        ok = add_script(c, scripts, s->aggregators[i].cid, "aggregator", err);
    for (size_t i = 0; ok && i < s->import_count; i++)
        ok = add_script(c, scripts, s->imports[i].cid, s->imports[i].name, err);
    return ok;
}

static bool read_shards(struct course *c, struct error *err)
{
    json_t *manifest = read_block(c, c->spec.dataset.manifest, err), *list = json_object_get(manifest, "shards"), *shard;
    struct hash object;
    size_t index;

    c->shards = json_array();
    json_array_foreach(list, index, shard)
    {
        const char *cid = json_string_value(json_object_get(shard, "object"));

        if (!cid || !cid_parse(cid, &object, err))
            break;
        json_array_append(c->shards, json_object_get(shard, "object"));
    }

    bool ok = manifest && json_array_size(c->shards) == c->spec.dataset.shards;

    json_decref(manifest);
    return ok || error_set(err, ERROR_MISMATCH, NULL, "the dataset's manifest does not list the spec's %u shards",
                           c->spec.dataset.shards);
}

bool course_prepare(struct course *c, struct error *err)
{
    char path[4096], reference[4096], adapter[4096];
    json_t *scripts = json_object(), *laid = json_array();
    struct buffer template = { 0 };
    struct hash id;
    bool ok = lay_out_model(c, c->spec.base_model, laid, path, err) &&
              (!c->spec.referenced || lay_out_model(c, c->spec.reference, laid, reference, err)) &&
              (!c->spec.adapter.continued || lay_out_model(c, c->spec.adapter.start, laid, adapter, err)) &&
              add_scripts(c, scripts, err) && read_shards(c, err);

    if (ok && strcmp(c->spec.chat_template, "model") != 0)
        ok = cid_parse(c->spec.chat_template, &id, err) && block_get(&c->node->blocks, id, &template, err);
    if (ok)
        c->open =
            json_pack("{s:s, s:s, s:O, s:s, s:o, s:O, s:O}", "job", "open", "run", c->run, "spec", c->spec.json, "model", path,
                      "template", template.size ? json_stringn((const char *)template.bytes, template.size) : json_null(),
                      "scripts", scripts, "files", laid);
    if (c->open && c->spec.referenced)
        json_object_set_new(c->open, "reference", json_string(reference));
    if (c->open && c->spec.adapter.continued)
        json_object_set_new(c->open, "adapter", json_string(adapter));
    buffer_free(&template);
    json_decref(scripts);
    json_decref(laid);
    return ok && (c->open || error_set(err, ERROR_SYNTAX, NULL, "the chat template is not UTF-8"));
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
