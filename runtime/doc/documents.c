#include "runtime/doc/documents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/hex.h"
#include "native/base/json.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/run_spec.h"

/* ---- Tables ------------------------------------------------------------------------------------------------------------- */

#define ROUNDS 10000000

/* Every envelope's payload begins with these. */
#define SIGNED     FIELD("version", INTEGER, .least = 1, .most = 1), FIELD("signer", DID)
#define BARE(name) FIELD("version", INTEGER, .least = 1, .most = 1), FIELD("type", CHOICE, .choices = name)
#define OF_RUN     FIELD("run", CID)
#define OF_ROUND   OF_RUN, FIELD("round", INTEGER, .most = ROUNDS)

static const struct schema_field any = { .kind = SCHEMA_ANY };
static const struct schema_field a_cid = { .kind = SCHEMA_CID };
static const struct schema_field a_did = { .kind = SCHEMA_DID };
static const struct schema_field a_float = { .kind = SCHEMA_FLOAT };
static const struct schema_field an_envelope = { .kind = SCHEMA_OBJECT };

static const struct schema_field identity_fields[] = {
    SIGNED,
    FIELD("account", ADDRESS),
    FIELD("previous", CID, .nullable = true),
};

static const char *const roles[] = { "trainer", "syncer", "auditor", NULL };
static const struct schema_field capacity_fields[] = {
    FIELD("memory", INTEGER),
    FIELD("threads", INTEGER, .least = 1, .most = 65536),
    FIELD("devices", INTEGER, .most = 65536),
    FIELD("batches", INTEGER, .least = 1, .most = 65536, .optional = true),
};
static const struct schema capacity = SCHEMA(capacity_fields);
static const struct schema_field enrolment_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("round", INTEGER, .most = ROUNDS, .optional = true),
    FIELD("role", CHOICE, .choices = roles),
    FIELD("account", ADDRESS),
    FIELD("identity", CID, .optional = true, .nullable = true),
    FIELD("kernel_class", HEX, .most = 32),
    FIELD("capacity", OBJECT, .of = &capacity),
    FIELD("endpoint", TEXT, .most = 256, .nullable = true),
    FIELD("serial", INTEGER, .most = 1000000000, .optional = true),
    FIELD("fingerprint", HEX, .most = 32, .optional = true, .nullable = true),
    FIELD("nonce", HEX, .most = 16, .optional = true),
    FIELD("region", TEXT, .least = 1, .most = 32, .optional = true),
};

static const struct schema_field leave_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("round", INTEGER, .most = ROUNDS, .optional = true),
};

static const struct schema_field probe_fields[] = {
    FIELD("step", INTEGER),
    FIELD("loss", FLOAT),
    FIELD("values", LIST, .item = &a_float, .most = 256),
};
static const struct schema probe = SCHEMA(probe_fields);
static const struct schema_field a_probe = { .kind = SCHEMA_OBJECT, .of = &probe };
static const struct schema_field codec_fields[] = {
    FIELD("bits", INTEGER, .least = 1, .most = 32),
    FIELD("block", INTEGER, .least = 1, .most = 1 << 20),
    FIELD("keep", INTEGER, .least = 1, .most = 4096, .optional = true),
    FIELD("of", INTEGER, .least = 2, .most = 4096, .optional = true),
    FIELD("tile", INTEGER, .least = 2, .most = 256, .optional = true),
};
static const struct schema codec = SCHEMA(codec_fields);
static const struct schema_field contribution_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("fragment", INTEGER, .most = 65535, .optional = true, .nullable = true),
    FIELD("start", HEX, .most = 32),
    FIELD("end", HEX, .most = 32),
    FIELD("carry_in", HEX, .most = 32),
    FIELD("carry_out", HEX, .most = 32),
    FIELD("carry", CID, .optional = true),
    FIELD("body", HEX, .most = 32),
    FIELD("payload", CID),
    FIELD("payload_bytes", INTEGER, .least = 1),
    FIELD("codec", OBJECT, .of = &codec),
    FIELD("tokens", INTEGER),
    FIELD("steps", INTEGER, .least = 1, .most = 1 << 24),
    FIELD("loss", FLOAT),
    FIELD("probes", LIST, .item = &a_probe, .most = 4096),
    FIELD("step_log", CID),
    FIELD("salt", HEX, .most = 32, .optional = true),
};

static const struct schema_field commitment_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("digest", HEX, .most = 32),
};

static const struct schema_field closed_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("commitments", LIST, .item = &a_cid, .most = 4096),
};

static const struct schema_field head_fields[] = {
    FIELD("height", INTEGER),
    FIELD("time", INTEGER),
};
static const struct schema head = SCHEMA(head_fields);
static const struct schema_field item_fields[] = {
    FIELD("cid", CID),
    FIELD("code", TEXT, .least = 1, .most = 32),
    FIELD("ms", INTEGER),
};
static const struct schema item = SCHEMA(item_fields);
static const struct schema_field an_item = { .kind = SCHEMA_OBJECT, .of = &item };

static const char *const phases[] = { "prepare", "commit", NULL };
static const struct schema_field vote_fields[] = {
    SIGNED, OF_ROUND, FIELD("view", INTEGER, .most = UINT32_MAX), FIELD("phase", CHOICE, .choices = phases), FIELD("record", CID),
};

static const char *const certificate_type[] = { "certificate", NULL };
static const struct schema_field certificate_fields[] = {
    BARE(certificate_type),
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("phase", CHOICE, .choices = phases),
    FIELD("record", CID),
    FIELD("votes", LIST, .item = &an_envelope, .least = 1, .most = 1000),
};
static const struct schema certificate = SCHEMA(certificate_fields);

static const struct schema_field received_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("head", OBJECT, .of = &head),
    FIELD("funded", INTEGER),
    FIELD("items", LIST, .item = &an_item, .most = 4096),
    FIELD("checked", LIST, .item = &a_cid, .most = 4096),
    FIELD("lock", OBJECT, .of = &certificate, .nullable = true),
};

static const struct schema_field proposal_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("view", INTEGER, .most = UINT32_MAX),
    FIELD("record", CID),
    FIELD("justification", OBJECT, .of = &certificate, .nullable = true),
};

/* The parts of a record are checked by recomputing it (record_of); here only what a reader relies on before that. */
static const char *const kinds[] = { "open", "train", "skip", "close", NULL };
static const struct schema_field block_fields[] = {
    FIELD("height", INTEGER),
    FIELD("hash", HEX, .most = 32),
    FIELD("entropy", HEX, .most = 32),
};
static const struct schema block = SCHEMA(block_fields);
static const char *const record_type[] = { "record", NULL };
static const struct schema_field record_fields[] = {
    BARE(record_type),
    OF_ROUND,
    FIELD("kind", CHOICE, .choices = kinds),
    FIELD("reason", TEXT, .most = 64, .optional = true, .nullable = true),
    FIELD("previous", CID, .nullable = true),
    FIELD("seed", HEX, .most = 32, .nullable = true),
    FIELD("block", OBJECT, .of = &block, .nullable = true),
    FIELD("committee", LIST, .item = &a_did, .least = 1, .most = 1000),
    FIELD("received", LIST, .item = &a_cid, .least = 1, .most = 1000),
    FIELD("height", INTEGER),
    FIELD("time", INTEGER),
    FIELD("funded", INTEGER),
    FIELD("next_height", INTEGER),
    FIELD("start", ANY),
    FIELD("contributions", LIST, .item = &any),
    FIELD("items", LIST, .item = &any),
    FIELD("plan", ANY),
    FIELD("aggregate", ANY),
    FIELD("outer", ANY),
    FIELD("state", ANY),
    FIELD("telemetry", ANY),
    FIELD("members", LIST, .item = &any),
    FIELD("unreturned", LIST, .item = &any),
    FIELD("undealt", LIST, .item = &any, .optional = true),
    FIELD("arrivals", LIST, .item = &any),
    FIELD("grace_ms", INTEGER),
    FIELD("unsettled", LIST, .item = &any),
    FIELD("correct", INTEGER),
    FIELD("convicted", LIST, .item = &any),
    FIELD("barred", LIST, .item = &a_did),
    FIELD("disputes", LIST, .item = &any),
    FIELD("openings", LIST, .item = &any, .optional = true),
    FIELD("settled", LIST, .item = &any),
    FIELD("amendments", LIST, .item = &any, .optional = true),
    FIELD("deposits", LIST, .item = &any, .optional = true),
    FIELD("returned", LIST, .item = &any, .optional = true),
};

static const struct schema_field challenge_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("contribution", CID),
    FIELD("index", INTEGER, .most = 1 << 24),
};

static const struct schema_field opening_fields[] = {
    SIGNED, OF_ROUND, FIELD("contribution", CID), FIELD("index", INTEGER, .most = 1 << 24), FIELD("trace", CID),
};

static const struct schema_field pick_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("contribution", CID),
    FIELD("index", INTEGER, .most = 1 << 24),
    FIELD("trace", CID),
    FIELD("evidence", CID),
};

/* What may be changed, and to what, the round machines know (runtime/round/amendment.h). */
static const struct schema_field amendment_fields[] = {
    SIGNED,
    OF_RUN,
    FIELD("number", INTEGER, .least = 1, .most = 1000000),
    FIELD("from", INTEGER, .least = 1, .most = ROUNDS),
    FIELD("changes", OBJECT),
};

static const struct schema_field equivocation_fields[] = {
    SIGNED,
    OF_ROUND,
    FIELD("did", DID),
    FIELD("statements", LIST, .item = &an_envelope, .least = 2, .most = 2),
};

static const struct {
    const char *name;
    struct schema schema;
    bool bare, with_account; /* signed by nobody; also signed by the account in its field `account` */
} types[DOCUMENT_TYPES] = {
    [DOCUMENT_IDENTITY] = { .name = "identity", .schema = SCHEMA(identity_fields), .with_account = true },
    [DOCUMENT_RUN] = { .name = "run", .with_account = true },
    [DOCUMENT_ENROLMENT] = { .name = "enrolment", .schema = SCHEMA(enrolment_fields) },
    [DOCUMENT_LEAVE] = { .name = "leave", .schema = SCHEMA(leave_fields) },
    [DOCUMENT_CONTRIBUTION] = { .name = "contribution", .schema = SCHEMA(contribution_fields) },
    [DOCUMENT_COMMITMENT] = { .name = "commitment", .schema = SCHEMA(commitment_fields) },
    [DOCUMENT_CLOSED] = { .name = "closed", .schema = SCHEMA(closed_fields) },
    [DOCUMENT_RECEIVED] = { .name = "received", .schema = SCHEMA(received_fields) },
    [DOCUMENT_PROPOSAL] = { .name = "proposal", .schema = SCHEMA(proposal_fields) },
    [DOCUMENT_VOTE] = { .name = "vote", .schema = SCHEMA(vote_fields) },
    [DOCUMENT_CERTIFICATE] = { .name = "certificate", .schema = SCHEMA(certificate_fields), .bare = true },
    [DOCUMENT_RECORD] = { .name = "record", .schema = SCHEMA(record_fields), .bare = true },
    [DOCUMENT_CHALLENGE] = { .name = "challenge", .schema = SCHEMA(challenge_fields) },
    [DOCUMENT_OPENING] = { .name = "opening", .schema = SCHEMA(opening_fields) },
    [DOCUMENT_AMENDMENT] = { .name = "amendment", .schema = SCHEMA(amendment_fields) },
    [DOCUMENT_PICK] = { .name = "pick", .schema = SCHEMA(pick_fields) },
    [DOCUMENT_EQUIVOCATION] = { .name = "equivocation", .schema = SCHEMA(equivocation_fields) },
};

const char *document_type_name(enum document_type type)
{
    return types[type].name;
}

bool document_type_parse(const char *name, enum document_type *out)
{
    for (size_t i = 0; i < DOCUMENT_TYPES; i++)
        if (strcmp(name, types[i].name) == 0) {
            *out = (enum document_type)i;
            return true;
        }
    return false;
}

const struct schema *document_schema(enum document_type type)
{
    return type == DOCUMENT_RUN ? run_spec_schema() : &types[type].schema;
}

/* ---- What no table says ---------------------------------------------------------------------------------------------------- */

static bool same_text(const json_t *a, const json_t *b, const char *name)
{
    const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

    return (!x && !y) || json_equal(x, y); /* a proposal has no phase, a contribution neither phase nor view */
}

/* Votes for exactly what the certificate says, of distinct signers in ascending order. */
static bool check_votes(const json_t *json, struct verified *known, struct error *err)
{
    static const char *const same[] = { "run", "round", "view", "phase", "record" };
    const json_t *votes = json_object_get(json, "votes");
    struct document before = { 0 };
    bool ok = true;

    for (size_t i = 0; ok && i < json_array_size(votes); i++) {
        struct document vote;

        ok = document_read_known(json_array_get(votes, i), known, &vote, err);
        if (ok && vote.type != DOCUMENT_VOTE)
            ok = error_set(err, ERROR_TYPE, NULL, "a %s stands among the votes", document_type_name(vote.type));
        for (size_t j = 0; ok && j < sizeof same / sizeof *same; j++)
            if (!same_text(json, vote.json, same[j]))
                ok = error_set(err, ERROR_MISMATCH, NULL, "the vote has another %s than its certificate", same[j]);
        if (ok && i && did_compare(&before.signer, &vote.signer) >= 0)
            ok = error_set(err, ERROR_DUPLICATE, NULL, "votes do not ascend by signer");
        if (!ok)
            error_at(err, "votes[%zu]", i);
        document_free(&before);
        before = vote;
    }
    document_free(&before);
    return ok;
}

static bool may_equivocate(enum document_type type)
{
    return type == DOCUMENT_VOTE || type == DOCUMENT_PROPOSAL || type == DOCUMENT_RECEIVED || type == DOCUMENT_CONTRIBUTION ||
           type == DOCUMENT_COMMITMENT || type == DOCUMENT_CLOSED;
}

/* Two different statements of one key for one (run, round, view, phase). Contributions, commitments and `closed` have no view. */
static bool check_pair(const struct document *e, const struct document *a, const struct document *b, struct error *err)
{
    struct public_key did;

    if (!document_did(e->json, "did", &did) || !public_key_equal(&a->signer, &did) || !public_key_equal(&b->signer, &did))
        return error_set(err, ERROR_SIGNATURE, NULL, "a statement is not signed by who is accused");
    if (a->type != b->type || !may_equivocate(a->type))
        return error_set(err, ERROR_TYPE, NULL, "the statements are not two of one kind that must be unique");
    if (!hash_equal(a->run, e->run) || !hash_equal(b->run, e->run) || a->round != e->round || b->round != e->round ||
        !same_text(a->json, b->json, "view") || !same_text(a->json, b->json, "phase"))
        return error_set(err, ERROR_MISMATCH, NULL, "the statements do not speak of one run, round, view and phase");
    if (hash_equal(a->id, b->id))
        return error_set(err, ERROR_DUPLICATE, NULL, "both statements are the same");
    return true;
}

static bool check_equivocation(const struct document *e, struct verified *known, struct error *err)
{
    const json_t *statements = json_object_get(e->json, "statements");
    struct document a = { 0 }, b = { 0 };
    bool ok = document_read_known(json_array_get(statements, 0), known, &a, err) &&
              document_read_known(json_array_get(statements, 1), known, &b, err) && check_pair(e, &a, &b, err);

    document_free(&a);
    document_free(&b);
    return ok || error_at(err, "statements");
}

static bool check_content(const struct document *d, struct verified *known, struct error *err)
{
    static const char *const nested[] = { "lock", "justification" };

    for (size_t i = 0; i < 2; i++) {
        const json_t *inner = json_object_get(d->json, nested[i]);

        if (json_is_object(inner) && !check_votes(inner, known, err))
            return error_at(err, "%s", nested[i]);
    }
    if (d->type == DOCUMENT_CERTIFICATE)
        return check_votes(d->json, known, err);
    return d->type != DOCUMENT_EQUIVOCATION || check_equivocation(d, known, err);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

static void read_common(struct document *d)
{
    const json_t *round = json_object_get(d->json, "round");

    d->run = d->type == DOCUMENT_RUN ? d->id : document_cid(d->json, "run");
    d->has_round = json_is_integer(round);
    d->round = d->has_round ? (uint32_t)json_integer_value(round) : 0;
}

/* identity and run: exactly two signatures, the second by the account the payload names. All others: exactly one. */
static bool check_signers(const struct envelope *e, enum document_type type, struct error *err)
{
    const char *account = json_string_value(json_object_get(e->json, "account"));
    struct address address;

    if (e->signers[0].kind != SIGNER_DID)
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s is signed by a DID first", types[type].name);
    if (e->signer_count != (types[type].with_account ? 2 : 1))
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s has %s", types[type].name,
                         types[type].with_account ? "two signatures, of the DID and of its account" : "one signature");
    if (types[type].with_account && (e->signers[1].kind != SIGNER_ACCOUNT || !account || !address_parse(account, &address) ||
                                     !address_equal(address, e->signers[1].account)))
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s is signed second by the account it names", types[type].name);
    return true;
}

/* *name and *good: what the memory calls it, and whether it was found good before. */
static bool read_signed(const json_t *value, struct verified *known, struct document *out, struct hash *name, bool *good,
                        struct error *err)
{
    struct envelope e;

    if (!envelope_read_known(value, known, &e, err))
        return false;
    *name = e.name;
    *good = e.known;
    if (!document_type_parse(e.type, &out->type) || types[out->type].bare) {
        error_set(err, ERROR_UNKNOWN, "it may come from a newer program", "unknown document type \"%s\"", e.type);
        envelope_free(&e);
        return false;
    }
    out->json = json_incref(e.json);
    out->id = e.id;
    out->has_signer = true;
    out->signer = e.signers[0].did;

    bool ok = e.known || (schema_check(document_schema(out->type), out->json, err) && check_signers(&e, out->type, err));

    envelope_free(&e);
    return ok || error_at(err, "%s", types[out->type].name);
}

/* Bytes of a bare document's text; envelopes have their own limit. */
static size_t most_of(enum document_type type)
{
    return type == DOCUMENT_RECORD ? DOCUMENT_SIZE : CANONICAL_SIZE;
}

static bool read_bare(const json_t *value, struct verified *known, struct document *out, struct hash *name, bool *good,
                      struct error *err)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    struct buffer text = { 0 };
    bool ok;

    if (!type || !document_type_parse(type, &out->type) || !types[out->type].bare)
        return error_set(err, ERROR_TYPE, NULL, "neither an envelope, nor a record, nor a certificate");
    out->json = json_incref((json_t *)value);
    if (known && canonical_write_most(value, most_of(out->type), &text, NULL)) {
        struct hasher h;

        verified_name(known, &h);
        hash_part(&h, text.bytes, text.size);
        *name = hash_end(&h);
        *good = verified_has(known, *name);
    }
    ok = *good || schema_check(document_schema(out->type), value, err);
    buffer_clear(&text);
    ok = ok && canonical_write_most(value, most_of(out->type), &text, err);
    if (ok)
        out->id = hash_block(text.bytes, text.size);
    buffer_free(&text);
    return ok || error_at(err, "%s", type);
}

/* `bytes` of the result stay empty: the callers know them. */
static bool read_value(const json_t *value, struct verified *known, struct document *out, struct error *err)
{
    bool is_envelope = json_object_get(value, "payload") != NULL, good = false;
    struct hash name = { 0 };

    *out = (struct document){ 0 };
    if (!(is_envelope ? read_signed(value, known, out, &name, &good, err) : read_bare(value, known, out, &name, &good, err)))
        goto refused;
    read_common(out);
    if (good)
        return true;
    if (check_content(out, known, err)) {
        if (known)
            verified_add(known, name);
        return true;
    }
    error_at(err, "%s", types[out->type].name);
refused:
    document_free(out);
    return false;
}

/* Bytes from outside: a bare document must be canonical as it lies there, since its bytes give its id. */
bool document_read_bytes(const void *bytes, size_t size, struct verified *known, struct document *out, struct error *err)
{
    json_t *value = json_read(bytes, size, DOCUMENT_SIZE, err);
    bool ok = value && read_value(value, known, out, err);

    if (!value)
        *out = (struct document){ 0 };
    json_decref(value);
    if (!ok)
        return false;
    if (types[out->type].bare && !hash_equal(out->id, hash_block(bytes, size))) {
        document_free(out);
        return error_set(err, ERROR_SYNTAX, NULL, "the JSON text is not canonical");
    }
    buffer_add(&out->bytes, bytes, size);
    return true;
}

bool document_read(const void *bytes, size_t size, struct document *out, struct error *err)
{
    return document_read_bytes(bytes, size, NULL, out, err);
}

bool document_read_json(const json_t *value, struct document *out, struct error *err)
{
    return document_read_known(value, NULL, out, err);
}

bool document_read_known(const json_t *value, struct verified *known, struct document *out, struct error *err)
{
    if (!read_value(value, known, out, err))
        return false;

    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);

    if (!text) {
        document_free(out);
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a document");
    }
    if (types[out->type].bare)
        canonical_write_most(value, most_of(out->type), &out->bytes, NULL);
    else
        buffer_add_text(&out->bytes, text);
    free(text);
    return true;
}

bool document_read_as(enum document_type type, const void *bytes, size_t size, struct document *out, struct error *err)
{
    if (!document_read(bytes, size, out, err))
        return false;
    if (out->type == type)
        return true;
    error_set(err, ERROR_TYPE, NULL, "a %s is needed, this is a %s", types[type].name, types[out->type].name);
    document_free(out);
    return false;
}

bool document_make(enum document_type type, const json_t *fields, const struct secret_key *identity,
                   const struct account_key *account, struct document *out, struct error *err)
{
    json_t *payload = json_deep_copy(fields);
    struct buffer bytes = { 0 };
    bool ok;

    if (types[type].bare) {
        json_object_set_new(payload, "version", json_integer(1));
        json_object_set_new(payload, "type", json_string(types[type].name));
        ok = canonical_write_most(payload, most_of(type), &bytes, err);
    } else {
        assert(identity && !account == !types[type].with_account);
        envelope_prepare(payload, identity, NULL);
        ok = envelope_make(types[type].name, payload, identity, account, &bytes, err);
    }
    *out = (struct document){ 0 };
    ok = ok && document_read(bytes.bytes, bytes.size, out, err);
    json_decref(payload);
    buffer_free(&bytes);
    return ok;
}

void document_free(struct document *d)
{
    buffer_free(&d->bytes);
    json_decref(d->json);
    *d = (struct document){ 0 };
}

/* ---- Fields ---------------------------------------------------------------------------------------------------------------- */

const char *document_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

int64_t document_integer(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

struct hash document_cid(const json_t *object, const char *name)
{
    const char *text = document_text(object, name);
    struct hash hash;

    return text && cid_parse(text, &hash, NULL) ? hash : (struct hash){ { 0 } };
}

struct hash document_hash(const json_t *object, const char *name)
{
    const char *text = document_text(object, name);
    struct hash hash;

    return text && hash_parse(text, &hash) ? hash : (struct hash){ { 0 } };
}

bool document_did(const json_t *object, const char *name, struct public_key *out)
{
    const char *text = document_text(object, name);

    return text && did_parse_strict(text, out, NULL);
}

json_t *document_json_cid(struct hash hash)
{
    char text[CID_TEXT];

    return json_string(cid_text(hash, text));
}

json_t *document_json_hash(struct hash hash)
{
    char text[HASH_TEXT];

    return json_string(hash_hex(hash, text));
}

json_t *document_json_did(const struct public_key *key)
{
    char text[DID_TEXT];

    return json_string(did_text(key, text));
}

json_t *document_json_float(float value)
{
    uint32_t bits;
    char text[9];

    memcpy(&bits, &value, sizeof bits);
    snprintf(text, sizeof text, "%08x", bits);
    return json_string(text);
}

float document_float(const json_t *text)
{
    uint8_t bytes[4] = { 0 };
    uint32_t bits;
    float value;

    hex_decode(json_string_value(text), json_string_length(text), bytes, sizeof bytes);
    bits = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    memcpy(&value, &bits, sizeof value);
    return value;
}
