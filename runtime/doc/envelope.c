#include "runtime/doc/envelope.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/crypto/keccak.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/did.h"

static const char type_head[] = "application/vnd.rondo.", type_tail[] = "+json", account_head[] = "eip155:";

void envelope_free(struct envelope *e)
{
    buffer_free(&e->payload);
    json_decref(e->json);
    *e = (struct envelope){ 0 };
}

const char *keyid_text(const struct envelope_signer *signer, char text[KEYID_TEXT])
{
    _Static_assert(KEYID_TEXT >= (int)DID_TEXT && KEYID_TEXT >= sizeof account_head + ADDRESS_TEXT, "room for both");
    if (signer->kind == SIGNER_DID)
        return did_text(&signer->did, text);
    memcpy(text, account_head, sizeof account_head);
    address_text(signer->account, text + sizeof account_head - 1);
    return text;
}

bool keyid_parse(const char *text, struct envelope_signer *out, struct error *err)
{
    char exact[KEYID_TEXT];

    if (strncmp(text, account_head, sizeof account_head - 1) != 0) {
        out->kind = SIGNER_DID;
        return did_parse_strict(text, &out->did, err);
    }
    out->kind = SIGNER_ACCOUNT;
    if (!address_parse(text + sizeof account_head - 1, &out->account) || strcmp(keyid_text(out, exact), text) != 0)
        return error_set(err, ERROR_SYNTAX, "it looks like eip155:0x... with the capitals of EIP-55",
                         "\"%.80s\" is not an account's key id", text);
    return true;
}

/* DSSE, section "Signature definition": the bytes that are signed. */
static void encode_pae(const char *type, const struct buffer *payload, struct buffer *out)
{
    size_t length = strlen(type_head) + strlen(type) + strlen(type_tail);

    buffer_printf(out, "DSSEv1 %zu %s%s%s %zu ", length, type_head, type, type_tail, payload->size);
    buffer_add(out, payload->bytes, payload->size);
}

static json_t *base64_of(const void *bytes, size_t size)
{
    size_t capacity = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(capacity);
    json_t *out = text ? json_string(sodium_bin2base64(text, capacity, bytes, size, sodium_base64_VARIANT_ORIGINAL)) : NULL;

    free(text);
    return out;
}

/* Refuses spaces, missing padding and unused bits that are not zero. */
static bool base64_read(const json_t *text, void *bytes, size_t capacity, size_t *size)
{
    const char *end;
    const char *from = json_string_value(text);
    size_t length = json_string_length(text);

    return from && sodium_base642bin(bytes, capacity, from, length, NULL, size, &end, sodium_base64_VARIANT_ORIGINAL) == 0 &&
           end == from + length;
}

void envelope_prepare(json_t *payload, const struct secret_key *identity, const struct account_key *account)
{
    struct envelope_signer signer = { .kind = identity ? SIGNER_DID : SIGNER_ACCOUNT };
    char keyid[KEYID_TEXT];

    if (identity)
        signer.did = public_key_of(identity);
    else
        signer.account = account_address(account);
    json_object_set_new(payload, "version", json_integer(1));
    json_object_set_new(payload, "signer", json_string(keyid_text(&signer, keyid)));
}

static void add_signature(json_t *list, const struct envelope_signer *signer, const void *bytes, size_t size)
{
    char keyid[KEYID_TEXT];

    json_array_append_new(list, json_pack("{s:s, s:o}", "keyid", keyid_text(signer, keyid), "sig", base64_of(bytes, size)));
}

static json_t *sign_pae(const struct buffer *pae, const struct secret_key *identity, const struct account_key *account)
{
    json_t *list = json_array();

    if (identity) {
        struct signature signature = sign_message(identity, pae->bytes, pae->size);

        add_signature(list, &(struct envelope_signer){ .kind = SIGNER_DID, .did = public_key_of(identity) }, signature.bytes,
                      sizeof signature.bytes);
    }
    if (account) {
        struct account_signature signature = account_sign(account, keccak256(pae->bytes, pae->size));

        add_signature(list, &(struct envelope_signer){ .kind = SIGNER_ACCOUNT, .account = account_address(account) },
                      signature.bytes, sizeof signature.bytes);
    }
    return list;
}

bool envelope_make(const char *type, const json_t *payload, const struct secret_key *identity, const struct account_key *account,
                   struct buffer *out, struct error *err)
{
    struct buffer bytes = { 0 }, pae = { 0 };
    char full_type[sizeof type_head + ENVELOPE_TYPE + sizeof type_tail];

    if (!canonical_write(payload, &bytes, err)) {
        buffer_free(&bytes);
        return error_at(err, "%s", type);
    }
    encode_pae(type, &bytes, &pae);
    snprintf(full_type, sizeof full_type, "%s%s%s", type_head, type, type_tail);

    json_t *envelope = json_pack("{s:o, s:s, s:o}", "payload", base64_of(bytes.bytes, bytes.size), "payloadType", full_type,
                                 "signatures", sign_pae(&pae, identity, account));
    /* Not canonical_write: an envelope may be larger than a payload. Its names stand in order already. */
    char *text = envelope ? json_dumps(envelope, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    bool ok = text || error_set(err, ERROR_MEMORY, NULL, "no memory for an envelope");

    if (ok)
        buffer_add_text(out, text);
    free(text);
    json_decref(envelope);
    buffer_free(&bytes);
    buffer_free(&pae);
    return ok;
}

static bool read_type(const json_t *text, char type[ENVELOPE_TYPE], struct error *err)
{
    const char *full = json_string_value(text);
    size_t length = full ? strlen(full) : 0, head = strlen(type_head), tail = strlen(type_tail);

    if (length <= head + tail || length - head - tail >= ENVELOPE_TYPE || strncmp(full, type_head, head) != 0 ||
        strcmp(full + length - tail, type_tail) != 0)
        return error_set(err, ERROR_TYPE, NULL, "payloadType is not application/vnd.rondo.<type>+json");
    memcpy(type, full + head, length - head - tail);
    type[length - head - tail] = '\0';
    for (const char *c = type; *c; c++)
        if (*c < 'a' || *c > 'z')
            return error_set(err, ERROR_TYPE, NULL, "payloadType is not application/vnd.rondo.<type>+json");
    return true;
}

/* Most signatures are of few keys. */
static bool is_known_key(const char *keyid, struct verified *known, struct envelope_signer *signer)
{
    signer->kind = SIGNER_DID;
    return known && did_parse_known(keyid, &signer->did) && verified_has_key(known, &signer->did);
}

static bool check_signature(const json_t *entry, const struct buffer *pae, struct verified *known, struct envelope_signer *signer,
                            struct error *err)
{
    const char *keyid = json_string_value(json_object_get(entry, "keyid"));
    const json_t *text = json_object_get(entry, "sig");
    struct signature plain;
    struct account_signature recoverable;
    struct address address;
    size_t size;

    if (!keyid || json_object_size(entry) != 2)
        return error_set(err, ERROR_SYNTAX, NULL, "a signature holds keyid and sig, no more");
    if (!is_known_key(keyid, known, signer) && !keyid_parse(keyid, signer, err)) /* which looks at the point, too */
        return false;
    if (signer->kind == SIGNER_DID) {
        if (base64_read(text, plain.bytes, sizeof plain.bytes, &size) && size == sizeof plain.bytes &&
            sign_verify_valid(&signer->did, &plain, pae->bytes, pae->size)) {
            if (known)
                verified_add_key(known, &signer->did);
            return true;
        }
    } else if (base64_read(text, recoverable.bytes, sizeof recoverable.bytes, &size) && size == sizeof recoverable.bytes &&
               account_recover(&recoverable, keccak256(pae->bytes, pae->size), &address) &&
               address_equal(address, signer->account)) {
        return true;
    }
    return error_set(err, ERROR_SIGNATURE, NULL, "the signature of %s is not valid", keyid);
}

static bool same_signer(const struct envelope_signer *a, const struct envelope_signer *b)
{
    return a->kind == b->kind &&
           (a->kind == SIGNER_DID ? public_key_equal(&a->did, &b->did) : address_equal(a->account, b->account));
}

/* What the whole envelope is called in the memory: by its text, of which a payload has one. */
static struct hash name_of(const json_t *payload, const json_t *list, const struct verified *known, const char *type)
{
    struct hasher h;
    const json_t *entry;
    size_t index;

    verified_name(known, &h);
    hash_text(&h, type);
    hash_part(&h, json_string_value(payload), json_string_length(payload));
    json_array_foreach((json_t *)(uintptr_t)list, index, entry)
    {
        const json_t *keyid = json_object_get(entry, "keyid"), *signature = json_object_get(entry, "sig");

        hash_part(&h, json_string_value(keyid), json_string_length(keyid));
        hash_part(&h, json_string_value(signature), json_string_length(signature));
        hash_u64(&h, json_object_size(entry));
    }
    return hash_end(&h);
}

/* One that was read a moment ago. */
static bool recall(struct verified *known, struct envelope *out)
{
    const struct verified_read *read = verified_recall(known, out->name);

    if (!read)
        return false;
    out->known = true;
    out->id = read->id;
    out->json = json_incref(read->payload);
    out->signers[0] = (struct envelope_signer){ .kind = SIGNER_DID, .did = read->signer };
    out->signer_count = 1;
    return true;
}

static bool take_known(const json_t *list, struct envelope *out)
{
    bool ok = true;

    out->signer_count = json_array_size(list);
    for (size_t i = 0; ok && i < out->signer_count; i++) {
        const char *keyid = json_string_value(json_object_get(json_array_get(list, i), "keyid"));

        if (did_parse_known(keyid, &out->signers[i].did))
            out->signers[i].kind = SIGNER_DID;
        else
            ok = keyid_parse(keyid, &out->signers[i], NULL);
    }
    return ok;
}

static bool check_signatures(const json_t *list, struct verified *known, struct envelope *out, struct error *err)
{
    struct buffer pae = { 0 };
    size_t count = json_array_size(list);
    bool ok = true;

    if (count < 1 || count > ENVELOPE_SIGNATURES)
        return error_set(err, ERROR_RANGE, NULL, "%zu signatures, 1 to %d are allowed", count, ENVELOPE_SIGNATURES);
    encode_pae(out->type, &out->payload, &pae);
    for (size_t i = 0; ok && i < count; i++) {
        ok = check_signature(json_array_get(list, i), &pae, known, &out->signers[i], err) || error_at(err, "signatures[%zu]", i);
        for (size_t j = 0; ok && j < i; j++)
            if (same_signer(&out->signers[i], &out->signers[j]))
                ok = error_set(err, ERROR_DUPLICATE, NULL, "signatures[%zu] is of the same key as another", i);
    }
    out->signer_count = count;
    buffer_free(&pae);
    return ok;
}

/* Only after the signatures fit is the payload read. */
static bool read_payload(struct envelope *out, struct error *err)
{
    char keyid[KEYID_TEXT];

    out->json = canonical_read(out->payload.bytes, out->payload.size, err);
    if (!out->json)
        return error_at(err, "payload");
    if (json_integer_value(json_object_get(out->json, "version")) != 1)
        return error_set(err, ERROR_UNSUPPORTED, "it may come from a newer program", "payload: version is not 1");

    const char *signer = json_string_value(json_object_get(out->json, "signer"));

    if (!signer || strcmp(signer, keyid_text(&out->signers[0], keyid)) != 0)
        return error_set(err, ERROR_SIGNATURE, NULL, "payload: signer is not the first key that signed");
    return true;
}

static bool read_parts(const json_t *envelope, struct verified *known, struct envelope *out, struct error *err)
{
    const json_t *payload = json_object_get(envelope, "payload"), *signatures = json_object_get(envelope, "signatures");
    size_t capacity = json_string_length(payload) / 4 * 3;

    if (json_object_size(envelope) != 3 || !json_is_string(payload) || !json_is_array(signatures))
        return error_set(err, ERROR_SYNTAX, NULL, "an envelope holds payload, payloadType and signatures, no more");
    if (!read_type(json_object_get(envelope, "payloadType"), out->type, err))
        return false;
    if (known) {
        out->name = name_of(payload, signatures, known, out->type);
        if (recall(known, out))
            return true;
        out->known = verified_has(known, out->name);
    }
    buffer_reserve(&out->payload, capacity + 1);
    if (!base64_read(payload, out->payload.bytes, capacity + 1, &out->payload.size))
        return error_set(err, ERROR_SYNTAX, NULL, "payload is not canonical base64");
    if (out->payload.size > CANONICAL_SIZE)
        return error_set(err, ERROR_LIMIT, NULL, "the payload is larger than %d bytes", CANONICAL_SIZE);
    out->id = hash_block(out->payload.bytes, out->payload.size);
    return (out->known ? take_known(signatures, out) : check_signatures(signatures, known, out, err)) && read_payload(out, err);
}

bool envelope_read_known(const json_t *envelope, struct verified *known, struct envelope *out, struct error *err)
{
    *out = (struct envelope){ 0 };
    if (read_parts(envelope, known, out, err))
        return true;
    envelope_free(out);
    return false;
}

bool envelope_read_json(const json_t *envelope, struct envelope *out, struct error *err)
{
    return envelope_read_known(envelope, NULL, out, err);
}

bool envelope_read(const void *bytes, size_t size, struct envelope *out, struct error *err)
{
    json_t *envelope = json_read(bytes, size, ENVELOPE_SIZE, err);
    bool ok = envelope && envelope_read_json(envelope, out, err);

    if (!envelope)
        *out = (struct envelope){ 0 };
    json_decref(envelope);
    return ok;
}
