#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/driver_internal.h"
#include "runtime/round/hardware.h"

/* --- keys for the machine ------------------------------------------------------------------------------------------- */

/* Statements of which a key makes one for a (run, round, view, phase): two would be an equivocation. */
static bool said_once(enum document_type type)
{
    return type == DOCUMENT_RECEIVED || type == DOCUMENT_PROPOSAL || type == DOCUMENT_VOTE || type == DOCUMENT_CLOSED;
}

static bool keep_statement(struct driver *d, const struct document *document, struct error *err)
{
    const char *phase = document_text(document->json, "phase"), *type = document_type_name(document->type);
    char id[HASH_TEXT];

    if (document->type == DOCUMENT_CONTRIBUTION || document->type == DOCUMENT_COMMITMENT)
        return journal_sign_once(d->node->journal, d->course->id, document->round, 0,
                                 &(struct statement){ type, "", document->id }, err);
    if (said_once(document->type)) /* written with the variables of the round, at the PERSIST that follows */
        json_array_append_new(d->statements,
                              json_pack("{s:s, s:I, s:I, s:s, s:s, s:s%}", "type", type, "round", (json_int_t)document->round,
                                        "view", (json_int_t)document_integer(document->json, "view"), "phase", phase ? phase : "",
                                        "id", hash_hex(document->id, id), "text", (const char *)document->bytes.bytes,
                                        document->bytes.size));
    return true;
}

/* The first enrolment is made before there is a machine (driver_start.c): one that the machine signs follows a drop, or a seat that another DID of its
 * hardware had first. */
static bool keep_enrolment(struct driver *d, const struct document *document, struct error *err)
{
    const json_t *record = json_object_get(driver_final(d, driver_round(d) - 1), "record");
    char reason[80], root[HASH_TEXT];

    if (document->type != DOCUMENT_ENROLMENT)
        return true;
    if (!course_enrol(d->course, document, err))
        return false;
    d->course->announced = false;
    if (hardware_held(json_object_get(record, "members"), hardware_root(document->json, root), d->node->did))
        snprintf(reason, sizeof reason, "its hardware takes part under another DID");
    else
        snprintf(reason, sizeof reason, "dropped after %lld missed rounds", (long long)d->course->rules.drop_after);
    node_tell(d->node, "enrolling_again",
              json_pack("{s:s, s:I}", "reason", reason, "serial", (json_int_t)document_integer(document->json, "serial")));
    return true;
}

/* One write for both. */
static bool keep_signed(struct driver *d, const struct document *document, struct error *err)
{
    struct journal *journal = d->node->journal;

    if (said_once(document->type))
        return keep_statement(d, document, err);
    return journal_begin(journal, err) &&
           journal_end(journal, keep_statement(d, document, err) && journal_put_document(journal, document, err), err);
}

static json_t *sign(void *context, const char *type, json_t *payload, struct error *err)
{
    struct driver *d = context;
    enum document_type t;
    struct document document = { 0 };
    json_t *envelope = NULL;

    if (!document_type_parse(type, &t)) {
        error_set(err, ERROR_UNKNOWN, NULL, "no document type %s", type);
        return NULL;
    }
    if (document_make_known(t, payload, &d->node->keys.identity, NULL, d->node->known, &document, err) &&
        keep_signed(d, &document, err) && keep_enrolment(d, &document, err))
        envelope = json_read((const char *)document.bytes.bytes, document.bytes.size, SIZE_MAX, err);
    document_free(&document);
    return envelope;
}

static json_t *open_envelope(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err)
{
    const struct driver *d = context;
    struct document document = { 0 };
    json_t *payload = NULL;

    if (document_open(envelope, d->node->known, &document, err)) {
        snprintf(type, 32, "%s", document_type_name(document.type));
        cid_text(document.id, cid);
        payload = json_incref(document.json);
    }
    document_free(&document);
    return payload;
}

struct signing driver_signing(struct driver *d)
{
    return (struct signing){ .context = d, .sign = sign, .open = open_envelope };
}

/* --- what must be on disk first -------------------------------------------------------------------------------------- */

bool driver_put_number(struct driver *d, const char *name, uint32_t number, struct error *err)
{
    char key[128], text[16];

    snprintf(key, sizeof key, "%s/%s", name, d->course->run);
    snprintf(text, sizeof text, "%u", number);
    return journal_put_note(d->node->journal, key, text, strlen(text), err);
}

uint32_t driver_get_number(struct driver *d, const char *name)
{
    char key[128];
    struct buffer text = { 0 };
    struct error none = { 0 };
    uint32_t number = 0;

    snprintf(key, sizeof key, "%s/%s", name, d->course->run);
    if (journal_get_note(d->node->journal, key, &text, &none))
        number = (uint32_t)strtoul(buffer_text(&text), NULL, 10);
    buffer_free(&text);
    return number;
}

static bool persist_final(struct driver *d, uint32_t round, const json_t *value, struct error *err)
{
    struct document record = { 0 }, certificate = { 0 };
    bool ok = document_make_known(DOCUMENT_RECORD, json_object_get(value, "record"), NULL, NULL, d->node->known, &record, err) &&
              document_make_known(DOCUMENT_CERTIFICATE, json_object_get(value, "certificate"), NULL, NULL, d->node->known,
                                  &certificate, err) &&
              journal_put_document(d->node->journal, &record, err) && journal_put_document(d->node->journal, &certificate, err) &&
              journal_finish_round(d->node->journal, d->course->id, round, record.id, certificate.id, err);

    if (ok && json_array_size(d->finals) == round)
        json_array_append_new(d->finals, json_pack("{s:O, s:O}", "record", json_object_get(value, "record"), "certificate",
                                                   json_object_get(value, "certificate")));
    if (ok &&
        json_is_true(json_object_get(value, "verified"))) /* recomputed here, in order: the number of such rounds says it all */
        ok = driver_put_number(d, "verified", d->verified = round + 1, err);
    document_free(&record);
    document_free(&certificate);
    return ok;
}

/* Records list `received` documents: others will ask for them. Votes and proposals are of no use later. */
static bool keep_received(struct driver *d, const json_t *statement, struct error *err)
{
    const json_t *text = json_object_get(statement, "text");
    struct document document = { 0 };
    bool ok = strcmp(document_text(statement, "type"), "received") != 0 ||
              (document_read_bytes(json_string_value(text), json_string_length(text), d->node->known, &document, err) &&
               journal_put_document(d->node->journal, &document, err));

    document_free(&document);
    return ok;
}

/* Whether the round's variables, those of view `view`, hold what the statement says. */
static bool is_held(const json_t *value, int64_t view, const json_t *statement)
{
    const char *type = document_text(statement, "type");

    if (strcmp(type, "closed") == 0) /* of the whole round */
        return json_object_get(value, type);
    return json_integer_value(json_object_get(statement, "view")) == view &&
           json_object_get(json_object_get(value, "own"), strcmp(type, "vote") == 0 ? document_text(statement, "phase") : type);
}

/* The open round's variables and the statements that follow from them, in one write. A step may sign more than these variables hold yet:
 * that stays until its own PERSIST, so that a crash in between leaves nothing signed that the variables do not know. */
static bool persist_round(struct driver *d, const json_t *value, struct error *err)
{
    size_t count = json_array_size(d->statements), used = 0;
    struct statement *statements = calloc(count + 1, sizeof *statements);
    int64_t round = json_integer_value(json_object_get(value, "round")),
            view = json_integer_value(json_object_get(value, "view"));
    json_t *later = json_array(), *s;
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    size_t index;
    bool ok = true;

    json_array_foreach(d->statements, index, s)
    {
        int64_t at = json_integer_value(json_object_get(s, "round")), in = json_integer_value(json_object_get(s, "view"));

        if (at == round && is_held(value, view, s)) {
            ok = ok && keep_received(d, s, err);
            statements[used] = (struct statement){ .kind = document_text(s, "type"), .phase = document_text(s, "phase") };
            hash_parse(document_text(s, "id"), &statements[used++].id);
        } else if (at > round || (at == round && in >= view)) {
            json_array_append(later, s);
        }
    }

    ok = ok && journal_save_round(d->node->journal, d->course->id, (uint32_t)round, (uint32_t)(view < 0 ? 0 : view), text,
                                  strlen(text), statements, used, err);

    json_decref(d->statements);
    d->statements = later;
    free(statements);
    free(text);
    return ok;
}

static bool persist_parts(struct driver *d, const json_t *body, struct error *err)
{
    const char *key = document_text(body, "key");
    const json_t *value = json_object_get(body, "value");

    if (strncmp(key, "final/", 6) == 0)
        return persist_final(d, (uint32_t)strtoul(key + 6, NULL, 10), value, err);
    if (strncmp(key, "released/", 9) == 0) /* the escrow's signature itself is kept once, in driver_ledger.c */
        return driver_put_number(d, "released", (uint32_t)strtoul(key + 9, NULL, 10), err);
    return persist_round(d, value, err);
}

/* Of a conflict both sides stay: they are evidence. */
bool driver_persist(struct driver *d, const json_t *body, struct error *err)
{
    bool begun = journal_begin(d->node->journal, err), ok = begun && persist_parts(d, body, err);

    return begun && journal_end(d->node->journal, ok || err->code == ERROR_CONFLICT, ok ? err : NULL) && ok;
}

/* --- what was kept, at the next start ------------------------------------------------------------------------------------ */

bool driver_load_finals(struct driver *d, struct error *err)
{
    uint32_t last, verified = d->verified = driver_get_number(d, "verified");
    struct error none = { 0 };

    if (!journal_last_final(d->node->journal, d->course->id, &last, &none))
        return none.code == ERROR_MISSING || (*err = none, false);
    for (uint32_t round = 0; round <= last; round++) {
        struct hash record, certificate;
        struct buffer a = { 0 }, b = { 0 };
        struct document r = { 0 }, c = { 0 };
        bool ok = journal_final(d->node->journal, d->course->id, round, &record, &certificate, err) &&
                  journal_get_document(d->node->journal, record, &a, err) &&
                  journal_get_document(d->node->journal, certificate, &b, err) &&
                  document_read_as(DOCUMENT_RECORD, a.bytes, a.size, &r, err) &&
                  document_read_as(DOCUMENT_CERTIFICATE, b.bytes, b.size, &c, err);

        if (ok)
            json_array_append_new(d->finals, json_pack("{s:O, s:O}", "record", r.json, "certificate", c.json));
        if (ok && round < verified)
            json_object_set_new(json_array_get(d->finals, round), "verified", json_true());
        document_free(&r);
        document_free(&c);
        buffer_free(&a);
        buffer_free(&b);
        if (!ok)
            return error_at(err, "round %u", round);
    }
    return true;
}
