#include "runtime/role/course.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/net/tls.h"
#include "runtime/role/driver.h"
#include "runtime/round/membership.h"
#include "runtime/round/value.h"

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

static bool learn(struct course *c, const struct document *document, struct error *err);

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
            learn(c, &document, &useless); /* one that gives no usable endpoint stays out, as when it came */
        document_free(&document);
        buffer_free(&bytes);
    }
    free(ids);
    return ok;
}

bool course_of(struct node *node, const char *run, const void *bytes, size_t size, struct course *c, struct error *err)
{
    *c = (struct course){ .node = node, .enrolments = json_object(), .displaced = json_object(), .turn = randombytes_random() };
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
    json_decref(c->displaced);
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

/* The newest of a machine; all that lie in the journal are counted among its documents. */
static bool learn(struct course *c, const struct document *document, struct error *err)
{
    char did[DID_TEXT], url[PEER_ENDPOINT], cid[CID_TEXT];
    const json_t *known;
    json_t *envelope, *ids;

    if (!hash_equal(document->run, c->id))
        return error_set(err, ERROR_MISMATCH, NULL, "an enrolment for another run");
    known = json_object_get(c->enrolments, did_text(&document->signer, did));
    ids = json_object_get(known, "ids");
    if (!value_lists(ids, cid_text(document->id, cid)))
        json_array_append_new(ids, json_string(cid));
    if (document_integer(document->json, "serial") < document_integer(json_object_get(known, "payload"), "serial"))
        return true; /* an old one that comes late */
    if (!pinned_endpoint(document, url, err))
        return false;
    envelope = json_read((const char *)document->bytes.bytes, document->bytes.size, COURSE_DOCUMENT, err);
    if (!envelope)
        return false;
    if (url[0] && strcmp(did, c->node->did) != 0 && !peer_list_put(c->node->peers, did, url, uv_now(&c->node->loop), err)) {
        json_decref(envelope);
        return false;
    }
    ids = ids ? json_incref(ids) : json_pack("[s]", cid);
    json_object_set_new(
        c->enrolments, did,
        json_pack("{s:o, s:O, s:s, s:o}", "envelope", envelope, "payload", document->json, "url", url, "ids", ids));
    return true;
}

/* ---- who gives way ------------------------------------------------------------------------------------------------------ */

static const json_t *newest_record(const struct course *c)
{
    const struct driver *d = c->node->driver;

    return d ? json_object_get(driver_final(d, driver_round(d) - 1), "record") : NULL;
}

static bool is_concerned(const struct course *c, const char *did)
{
    return membership_concerns(newest_record(c), did);
}

/* By the spec or the newest record, or this node itself. */
static bool is_named(const struct course *c, const char *did)
{
    return strcmp(did, c->node->did) == 0 || value_find(c->rules.panel, "did", did) || value_lists(c->rules.allowed, did) ||
           is_concerned(c, did);
}

static bool has_seat(const struct course *c, const char *did, const json_t *entry)
{
    json_t *cid;
    size_t i;

    if (is_named(c, did))
        return true;
    json_array_foreach(json_object_get(entry, "ids"), i, cid)
    {
        if (driver_holds(c->node->driver, json_string_value(cid)))
            return true;
    }
    return false;
}

/* False when nobody does. Until its machine runs, a node does not know who has a seat; a sponsor's, which has none, never does. */
static bool one_gives_way(struct course *c)
{
    const char *did;
    json_t *entry, *cid;
    size_t i;

    if (!c->node->driver || !driver_runs(c->node->driver))
        return false;
    json_object_foreach(c->enrolments, did, entry)
    {
        if (has_seat(c, did, entry))
            continue;
        json_array_foreach(json_object_get(entry, "ids"), i, cid)
            json_object_set_new(c->displaced, json_string_value(cid), json_string(did));
        peer_list_remove(c->node->peers, did);
        json_object_del(c->enrolments, did);
        return true;
    }
    return false;
}

bool course_enrol(struct course *c, const struct document *document, struct error *err)
{
    char did[DID_TEXT];

    did_text(&document->signer, did);
    while (json_object_size(c->enrolments) >= COURSE_MACHINES && !json_object_get(c->enrolments, did) && !is_named(c, did))
        if (!one_gives_way(c))
            return error_set(err, ERROR_LIMIT, NULL, "as many machines as are kept here have enrolled");
    return learn(c, document, err);
}

bool course_takes_hearsay(const struct course *c, const struct public_key *signer)
{
    char did[DID_TEXT];

    return json_object_size(c->enrolments) < COURSE_MACHINES || json_object_get(c->enrolments, did_text(signer, did)) ||
           is_named(c, did);
}

static bool is_listed(const struct course *c, const char *cid)
{
    for (int64_t round = driver_round(c->node->driver); round-- > 0;)
        if (value_find(json_object_get(json_object_get(driver_final(c->node->driver, round), "record"), "items"), "cid", cid))
            return true;
    return false;
}

void course_forget_displaced(struct course *c)
{
    const size_t most = json_object_size(c->displaced);
    struct hash *ids = most ? calloc(most, sizeof *ids) : NULL;
    struct error err = { 0 };
    const char *cid;
    json_t *did;
    size_t count = 0;

    if (!most)
        return;
    json_object_foreach(c->displaced, cid, did)
    {
        const json_t *back = json_object_get(json_object_get(c->enrolments, json_string_value(did)), "ids");

        if (!value_lists(back, cid) && !is_listed(c, cid) && cid_parse(cid, &ids[count], &err))
            count++;
    }
    if (journal_forget_documents(c->node->journal, ids, count, &err))
        json_object_clear(c->displaced);
    free(ids);
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

    if (public_key_equal(signer, &c->spec.sponsor) || json_object_get(c->enrolments, did_text(signer, did)) ||
        is_concerned(c, did))
        return true;
    for (size_t i = 0; i < c->spec.committee.panel_count; i++)
        if (public_key_equal(signer, &c->spec.committee.panel[i].did))
            return true;
    return false;
}

bool course_names(const struct course *c, const struct public_key *signer)
{
    char did[DID_TEXT];

    return is_named(c, did_text(signer, did));
}

bool course_invites(const struct course *c, const struct public_key *key)
{
    const struct run_spec *spec = &c->spec;

    for (size_t i = 0; i < spec->trust.allowed_count; i++)
        if (public_key_equal(key, &spec->trust.allowed[i]))
            return true;
    return course_knows(c, key);
}
