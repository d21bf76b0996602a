#include "runtime/ledger/transaction.h"

#include <assert.h>
#include <string.h>

#include "native/base/decimal.h"
#include "native/base/hex.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/envelope.h"
#include "runtime/doc/schema.h"

#define SIGNATURE_TEXT (2 * ACCOUNT_SIGNATURE_SIZE + 1)

static const char *const method_names[] = { "create", "release", "refund", "withdraw", NULL };

const char *transaction_method_name(enum transaction_method method)
{
    return method_names[method];
}

/* ---- layouts ---- */

static const char *const assets[] = { "native", NULL };
static const struct schema_field address_item = { .kind = SCHEMA_ADDRESS };
static const struct schema_field amount_item = { .kind = SCHEMA_AMOUNT };
static const struct schema_field signature_item = { .kind = SCHEMA_HEX, .most = ACCOUNT_SIGNATURE_SIZE };

static const struct schema_field create_fields[] = {
    { .name = "amount", .kind = SCHEMA_AMOUNT },
    { "asset", SCHEMA_CHOICE, .choices = assets },
    { "expiry", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
    { "panel", SCHEMA_LIST, .least = 1, .most = LEDGER_PANEL, .item = &address_item },
    { "round", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
    { "run", SCHEMA_HEX, .most = HASH_SIZE },
    { "threshold", SCHEMA_INTEGER, .least = 1, .most = LEDGER_PANEL },
};
static const struct schema_field release_fields[] = {
    { "amounts", SCHEMA_LIST, .least = 1, .most = LEDGER_PAYEES, .item = &amount_item },
    { "deadline", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
    { "id", SCHEMA_HEX, .most = HASH_SIZE },
    { "payees", SCHEMA_LIST, .least = 1, .most = LEDGER_PAYEES, .item = &address_item },
    { "record", SCHEMA_HEX, .most = HASH_SIZE },
    { "signatures", SCHEMA_LIST, .least = 1, .most = LEDGER_PANEL, .item = &signature_item },
};
static const struct schema_field refund_fields[] = {
    { "id", SCHEMA_HEX, .most = HASH_SIZE },
};
static const struct schema_field transaction_fields[] = {
    { .name = "arguments", .kind = SCHEMA_OBJECT },       { "chain", SCHEMA_INTEGER, .least = 1, .most = CANONICAL_INTEGER },
    { "method", SCHEMA_CHOICE, .choices = method_names }, { "nonce", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
    { .name = "signer", .kind = SCHEMA_KEYID },           { "version", SCHEMA_INTEGER, .least = 1, .most = 1 },
};
static const struct schema transaction_schema = SCHEMA(transaction_fields);
static const struct schema argument_schemas[TRANSACTION_METHODS] = {
    [TRANSACTION_CREATE] = SCHEMA(create_fields),
    [TRANSACTION_RELEASE] = SCHEMA(release_fields),
    [TRANSACTION_REFUND] = SCHEMA(refund_fields),
    [TRANSACTION_WITHDRAW] = { NULL, 0 },
};

/* ---- writing ---- */

static json_t *json_hash(struct hash hash)
{
    char text[HASH_TEXT];

    return json_string(hash_hex(hash, text));
}

static json_t *json_address(struct address address)
{
    char text[ADDRESS_TEXT];

    return json_string(address_text(address, text));
}

static json_t *json_amount(unsigned __int128 amount)
{
    char text[AMOUNT_TEXT];

    return json_string(amount_text(amount, text));
}

static json_t *create_json(const struct transaction_create *c)
{
    json_t *panel = json_array();

    for (uint32_t i = 0; i < c->panel_count; i++)
        json_array_append_new(panel, json_address(c->panel[i]));
    return json_pack("{s:o, s:s, s:I, s:o, s:I, s:o, s:I}", "amount", json_amount(c->amount), "asset", "native", "expiry",
                     (json_int_t)c->expiry, "panel", panel, "round", (json_int_t)c->round, "run", json_hash(c->run), "threshold",
                     (json_int_t)c->threshold);
}

static json_t *release_json(const struct transaction_release *r)
{
    json_t *amounts = json_array(), *payees = json_array(), *signatures = json_array();
    char text[SIGNATURE_TEXT];

    for (uint32_t i = 0; i < r->payee_count; i++) {
        json_array_append_new(amounts, json_amount(r->amounts[i]));
        json_array_append_new(payees, json_address(r->payees[i]));
    }
    for (uint32_t i = 0; i < r->signature_count; i++)
        json_array_append_new(signatures, json_string(hex_encode(r->signatures[i].bytes, ACCOUNT_SIGNATURE_SIZE, text)));
    return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o}", "amounts", amounts, "deadline", (json_int_t)r->deadline, "id",
                     json_hash(r->id), "payees", payees, "record", json_hash(r->record), "signatures", signatures);
}

static json_t *arguments_json(const struct transaction *t)
{
    switch (t->method) {
    case TRANSACTION_CREATE:
        return create_json(&t->create);
    case TRANSACTION_RELEASE:
        return release_json(&t->release);
    case TRANSACTION_REFUND:
        return json_pack("{s:o}", "id", json_hash(t->refund));
    default:
        return json_object();
    }
}

bool transaction_sign(const struct transaction *t, const struct account_key *key, struct buffer *out, struct error *err)
{
    if (t->method == TRANSACTION_CREATE && t->create.panel_count > LEDGER_PANEL)
        return error_set(err, ERROR_LIMIT, NULL, "a panel has at most %d members", LEDGER_PANEL);
    if (t->method == TRANSACTION_RELEASE &&
        (t->release.many || t->release.payee_count > LEDGER_PAYEES || t->release.signature_count > LEDGER_PANEL))
        return error_set(err, ERROR_LIMIT, NULL, "a release has at most %d payees and %d signatures", LEDGER_PAYEES,
                         LEDGER_PANEL);

    json_t *payload = json_pack("{s:o, s:I, s:s, s:I}", "arguments", arguments_json(t), "chain", (json_int_t)t->chain, "method",
                                method_names[t->method], "nonce", (json_int_t)t->nonce);
    bool made = false;

    assert(payload);
    envelope_prepare(payload, NULL, key);
    if (schema_check(&transaction_schema, payload, err) &&
        schema_check(&argument_schemas[t->method], json_object_get(payload, "arguments"), err))
        made = envelope_make("transaction", payload, NULL, key, out, err);
    json_decref(payload);
    return made;
}

/* ---- reading: the schema was checked, so every field is there and fits ---- */

static struct hash get_hash(const json_t *object, const char *name)
{
    struct hash hash = { { 0 } };

    hash_parse(json_string_value(json_object_get(object, name)), &hash);
    return hash;
}

static uint64_t get_number(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static uint32_t get_addresses(const json_t *list, struct address *out)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item) address_parse(json_string_value(item), &out[i]);
    return (uint32_t)json_array_size(list);
}

static void read_create(const json_t *a, struct transaction_create *c)
{
    amount_parse(json_string_value(json_object_get(a, "amount")), &c->amount);
    c->expiry = get_number(a, "expiry");
    c->round = get_number(a, "round");
    c->threshold = (uint32_t)get_number(a, "threshold");
    c->run = get_hash(a, "run");
    c->panel_count = get_addresses(json_object_get(a, "panel"), c->panel);
}

static bool read_release(const json_t *a, struct transaction_release *r, struct error *err)
{
    const json_t *amounts = json_object_get(a, "amounts"), *signatures = json_object_get(a, "signatures");
    size_t i;
    json_t *item;

    if (json_array_size(amounts) != json_array_size(json_object_get(a, "payees"))) {
        error_set(err, ERROR_RANGE, NULL, "as many amounts as payees are needed");
        return error_at(err, "amounts");
    }
    json_array_foreach(amounts, i, item) amount_parse(json_string_value(item), &r->amounts[i]);
    json_array_foreach(signatures, i, item)
        hex_decode(json_string_value(item), SIGNATURE_TEXT - 1, r->signatures[i].bytes, ACCOUNT_SIGNATURE_SIZE);
    r->payee_count = get_addresses(json_object_get(a, "payees"), r->payees);
    r->signature_count = (uint32_t)json_array_size(signatures);
    r->deadline = get_number(a, "deadline");
    r->id = get_hash(a, "id");
    r->record = get_hash(a, "record");
    return true;
}

static enum transaction_method method_of(const char *name)
{
    int i = 0;

    while (strcmp(method_names[i], name) != 0)
        i++;
    return (enum transaction_method)i;
}

static bool read_payload(const json_t *json, struct transaction *t, struct error *err)
{
    const json_t *arguments = json_object_get(json, "arguments");

    if (!schema_check(&transaction_schema, json, err))
        return false;
    t->chain = get_number(json, "chain");
    t->nonce = get_number(json, "nonce");
    t->method = method_of(json_string_value(json_object_get(json, "method")));
    if (!schema_check(&argument_schemas[t->method], arguments, err))
        return error_at(err, "arguments");
    if (t->method == TRANSACTION_CREATE)
        read_create(arguments, &t->create);
    else if (t->method == TRANSACTION_RELEASE)
        return read_release(arguments, &t->release, err) || error_at(err, "arguments");
    else if (t->method == TRANSACTION_REFUND)
        t->refund = get_hash(arguments, "id");
    return true;
}

bool transaction_read(const void *bytes, size_t size, struct transaction *t, struct hash *id, struct error *err)
{
    struct envelope e;
    bool read;

    memset(t, 0, sizeof *t);
    if (size > TRANSACTION_LIMIT)
        return error_set(err, ERROR_LIMIT, NULL, "a transaction has at most %u bytes", TRANSACTION_LIMIT);
    if (!envelope_read(bytes, size, &e, err))
        return false;
    if (strcmp(e.type, "transaction") != 0)
        read = error_set(err, ERROR_TYPE, NULL, "a %s, not a transaction", e.type);
    else if (e.signer_count != 1 || e.signers[0].kind != SIGNER_ACCOUNT)
        read =
            error_set(err, ERROR_SIGNATURE, "sign it with the account's key", "a transaction has one signature, of an account");
    else
        read = read_payload(e.json, t, err);
    t->from = e.signers[0].account;
    *id = e.id;
    envelope_free(&e);
    return read;
}

bool transaction_release_digest(const struct release_domain *domain, const struct transaction_release *r, struct hash *digest,
                                struct error *err)
{
    struct release release = { .escrow = r->id, .record = r->record, .deadline = r->deadline };
    const struct address *payees = r->many ? r->many->payees : r->payees;
    const unsigned __int128 *amounts = r->many ? r->many->amounts : r->amounts;

    for (uint32_t i = 0; i < r->payee_count; i++)
        if (__builtin_add_overflow(release.total, amounts[i], &release.total))
            return error_set(err, ERROR_RANGE, NULL, "the amounts add up to more than any ledger holds");
    release.payout_root = release_payout_root(payees, amounts, r->payee_count);
    *digest = release_digest(domain, &release);
    return true;
}
