#include "runtime/doc/documents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/doc/canonical.h"

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
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s is signed by a DID first", document_type_name(type));
    if (e->signer_count != (document_type_has_account(type) ? 2 : 1))
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s has %s", document_type_name(type),
                         document_type_has_account(type) ? "two signatures, of the DID and of its account" : "one signature");
    if (document_type_has_account(type) && (e->signers[1].kind != SIGNER_ACCOUNT || !account ||
                                            !address_parse(account, &address) || !address_equal(address, e->signers[1].account)))
        return error_set(err, ERROR_SIGNATURE, NULL, "a %s is signed second by the account it names", document_type_name(type));
    return true;
}

/* What is small and of one key may come again soon. */
static void keep_read(struct verified *known, const struct document *d, struct hash name, const json_t *value)
{
    if (json_string_length(json_object_get(value, "payload")) <= VERIFIED_READ_MOST &&
        json_array_size(json_object_get(value, "signatures")) == 1)
        verified_keep(known, &(struct verified_read){ .name = name, .id = d->id, .signer = d->signer, .payload = d->json });
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
    if (!document_type_parse(e.type, &out->type) || document_type_is_bare(out->type)) {
        error_set(err, ERROR_UNKNOWN, "it may come from a newer program", "unknown document type \"%s\"", e.type);
        envelope_free(&e);
        return false;
    }
    out->json = json_incref(e.json);
    out->id = e.id;
    out->has_signer = true;
    out->signer = e.signers[0].did;

    bool ok =
        e.known || (schema_check_known(document_schema(out->type), out->json, known, err) && check_signers(&e, out->type, err));

    envelope_free(&e);
    return ok || error_at(err, "%s", document_type_name(out->type));
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

    if (!type || !document_type_parse(type, &out->type) || !document_type_is_bare(out->type))
        return error_set(err, ERROR_TYPE, NULL, "neither an envelope, nor a record, nor a certificate");
    out->json = json_incref((json_t *)value);
    if (known && canonical_write_most(value, most_of(out->type), &text, NULL)) {
        struct hasher h;

        verified_name(known, &h);
        hash_part(&h, text.bytes, text.size);
        *name = hash_end(&h);
        *good = verified_has(known, *name);
    }
    ok = *good || schema_check_known(document_schema(out->type), value, known, err);
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
    if (good || check_content(out, known, err)) {
        if (known && !good)
            verified_add(known, name);
        if (known && is_envelope)
            keep_read(known, out, name, value);
        return true;
    }
    error_at(err, "%s", document_type_name(out->type));
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
    if (document_type_is_bare(out->type) && !hash_equal(out->id, hash_block(bytes, size))) {
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

bool document_open(const json_t *value, struct verified *known, struct document *out, struct error *err)
{
    return read_value(value, known, out, err);
}

bool document_add_bytes(struct document *document, const json_t *value, struct error *err)
{
    char *text;

    if (document_type_is_bare(document->type))
        return canonical_write_most(value, most_of(document->type), &document->bytes, err);
    text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a document");
    buffer_add_text(&document->bytes, text);
    free(text);
    return true;
}

bool document_read_known(const json_t *value, struct verified *known, struct document *out, struct error *err)
{
    if (!read_value(value, known, out, err))
        return false;
    if (document_add_bytes(out, value, err))
        return true;
    document_free(out);
    return false;
}

bool document_read_as(enum document_type type, const void *bytes, size_t size, struct document *out, struct error *err)
{
    return document_read_as_known(type, bytes, size, NULL, out, err);
}

bool document_read_as_known(enum document_type type, const void *bytes, size_t size, struct verified *known, struct document *out,
                            struct error *err)
{
    if (!document_read_bytes(bytes, size, known, out, err))
        return false;
    if (out->type == type)
        return true;
    error_set(err, ERROR_TYPE, NULL, "a %s is needed, this is a %s", document_type_name(type), document_type_name(out->type));
    document_free(out);
    return false;
}

bool document_make(enum document_type type, const json_t *fields, const struct secret_key *identity,
                   const struct account_key *account, struct document *out, struct error *err)
{
    return document_make_known(type, fields, identity, account, NULL, out, err);
}

bool document_make_known(enum document_type type, const json_t *fields, const struct secret_key *identity,
                         const struct account_key *account, struct verified *known, struct document *out, struct error *err)
{
    json_t *payload = json_deep_copy(fields);
    struct buffer bytes = { 0 };
    bool ok;

    if (document_type_is_bare(type)) {
        json_object_set_new(payload, "version", json_integer(1));
        json_object_set_new(payload, "type", json_string(document_type_name(type)));
        ok = canonical_write_most(payload, most_of(type), &bytes, err);
    } else {
        assert(identity && !account == !document_type_has_account(type));
        envelope_prepare(payload, identity, NULL);
        ok = envelope_make(document_type_name(type), payload, identity, account, &bytes, err);
    }
    *out = (struct document){ 0 };
    ok = ok && document_read_bytes(bytes.bytes, bytes.size, known, out, err);
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
