#include "runtime/ledger/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "native/base/decimal.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/schema.h"

static const char *const entropies[] = { "random", "test", NULL };
static const char *const escrow_states[] = { "funded", "released", "refunded", NULL };
static const char *const event_kinds[] = { "created", "released", "paid", "refunded", "withdrawn", NULL };

#define NUMBER(field)                                                                                                            \
    {                                                                                                                            \
        field, SCHEMA_INTEGER, .most = CANONICAL_INTEGER                                                                         \
    }
#define HASH(field)                                                                                                              \
    {                                                                                                                            \
        field, SCHEMA_HEX, .most = HASH_SIZE                                                                                     \
    }

static const struct schema_field address_item = { .kind = SCHEMA_ADDRESS };
static const struct schema_field status_fields[] = {
    { "block_ms", SCHEMA_INTEGER, .most = UINT32_MAX }, NUMBER("chain"),  { .name = "contract", .kind = SCHEMA_ADDRESS },
    { "entropy", SCHEMA_CHOICE, .choices = entropies }, NUMBER("height"), NUMBER("time"),
};
static const struct schema_field block_fields[] = { HASH("entropy"), HASH("hash"), NUMBER("height"), HASH("previous"),
                                                    NUMBER("time") };
static const struct schema_field escrow_fields[] = {
    { .name = "amount", .kind = SCHEMA_AMOUNT },
    NUMBER("created"),
    NUMBER("expiry"),
    HASH("id"),
    { "panel", SCHEMA_LIST, .least = 1, .most = LEDGER_PANEL, .item = &address_item },
    HASH("payout"),
    HASH("record"),
    HASH("ref"),
    { .name = "refunded", .kind = SCHEMA_FLAG },
    { .name = "released", .kind = SCHEMA_AMOUNT },
    NUMBER("round"),
    HASH("run"),
    { .name = "sponsor", .kind = SCHEMA_ADDRESS },
    { "status", SCHEMA_CHOICE, .choices = escrow_states },
    { "threshold", SCHEMA_INTEGER, .least = 1, .most = LEDGER_PANEL },
};
static const struct schema_field account_fields[] = { { .name = "balance", .kind = SCHEMA_AMOUNT },
                                                      { .name = "credit", .kind = SCHEMA_AMOUNT },
                                                      NUMBER("nonce") };
static const struct schema_field receipt_fields[] = {
    { "code", SCHEMA_TEXT, .most = 32 },  { .name = "final", .kind = SCHEMA_FLAG }, NUMBER("height"),
    { .name = "id", .kind = SCHEMA_CID }, { "message", SCHEMA_TEXT, .most = 159 },
};
static const struct schema_field event_fields[] = {
    { .name = "account", .kind = SCHEMA_ADDRESS },
    { .name = "amount", .kind = SCHEMA_AMOUNT },
    NUMBER("height"),
    HASH("id"),
    { "index", SCHEMA_INTEGER, .most = UINT32_MAX },
    { "kind", SCHEMA_CHOICE, .choices = event_kinds },
    HASH("payout"),
    HASH("record"),
    HASH("ref"),
    NUMBER("round"),
    HASH("run"),
};

static const struct schema status_schema = SCHEMA(status_fields), block_schema = SCHEMA(block_fields),
                           escrow_schema = SCHEMA(escrow_fields), account_schema = SCHEMA(account_fields),
                           receipt_schema = SCHEMA(receipt_fields), event_schema = SCHEMA(event_fields);
static const struct schema_field event_item = { .kind = SCHEMA_OBJECT, .of = &event_schema };
static const struct schema_field events_fields[] = {
    { "events", SCHEMA_LIST, .most = LEDGER_EVENTS, .item = &event_item },
    NUMBER("next"),
};
static const struct schema events_schema = SCHEMA(events_fields);

/* ---- fields ---- */

static void put_number(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void put_hash(json_t *o, const char *name, struct hash hash)
{
    char text[HASH_TEXT];

    json_object_set_new(o, name, json_string(hash_hex(hash, text)));
}

static void put_address(json_t *o, const char *name, struct address address)
{
    char text[ADDRESS_TEXT];

    json_object_set_new(o, name, json_string(address_text(address, text)));
}

static void put_amount(json_t *o, const char *name, unsigned __int128 amount)
{
    char text[AMOUNT_TEXT];

    json_object_set_new(o, name, json_string(amount_text(amount, text)));
}

static void put_text(json_t *o, const char *name, const char *text)
{
    json_object_set_new(o, name, json_string(text));
}

static uint64_t get_number(const json_t *o, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(o, name));
}

static unsigned __int128 get_amount(const json_t *o, const char *name)
{
    unsigned __int128 amount = 0;

    amount_parse(json_string_value(json_object_get(o, name)), &amount);
    return amount;
}

static int get_choice(const json_t *o, const char *name, const char *const *choices)
{
    const char *text = json_string_value(json_object_get(o, name));
    int i = 0;

    while (strcmp(choices[i], text) != 0)
        i++;
    return i;
}

struct hash wire_get_hash(const json_t *o, const char *name)
{
    struct hash hash = { { 0 } };

    hash_parse(json_string_value(json_object_get(o, name)), &hash);
    return hash;
}

struct hash wire_get_cid(const json_t *o, const char *name)
{
    struct hash hash = { { 0 } };

    cid_parse(json_string_value(json_object_get(o, name)), &hash, NULL);
    return hash;
}

struct address wire_get_address(const json_t *o, const char *name)
{
    struct address address = { { 0 } };

    address_parse(json_string_value(json_object_get(o, name)), &address);
    return address;
}

enum error_code wire_code(const char *name, enum error_code otherwise)
{
    for (int i = 0; i < ERROR_CODES; i++)
        if (strcmp(name, error_name((enum error_code)i)) == 0)
            return (enum error_code)i;
    return otherwise;
}

/* ---- status, block, account, receipt ---- */

json_t *wire_status(const struct ledger_status *s)
{
    json_t *o = json_object();

    put_number(o, "block_ms", s->block_ms);
    put_number(o, "chain", s->chain);
    put_address(o, "contract", s->contract);
    put_text(o, "entropy", entropies[s->test_entropy]);
    put_number(o, "height", s->height);
    put_number(o, "time", s->time);
    return o;
}

bool wire_read_status(const json_t *o, struct ledger_status *s, struct error *err)
{
    if (!schema_check(&status_schema, o, err))
        return false;
    *s = (struct ledger_status){ .block_ms = (uint32_t)get_number(o, "block_ms"),
                                 .chain = get_number(o, "chain"),
                                 .contract = wire_get_address(o, "contract"),
                                 .test_entropy = get_choice(o, "entropy", entropies) == 1,
                                 .height = get_number(o, "height"),
                                 .time = get_number(o, "time") };
    return true;
}

json_t *wire_block(const struct ledger_block *b)
{
    json_t *o = json_object();

    put_hash(o, "entropy", b->entropy);
    put_hash(o, "hash", b->hash);
    put_number(o, "height", b->height);
    put_hash(o, "previous", b->previous);
    put_number(o, "time", b->time);
    return o;
}

bool wire_read_block(const json_t *o, struct ledger_block *b, struct error *err)
{
    if (!schema_check(&block_schema, o, err))
        return false;
    *b = (struct ledger_block){ .entropy = wire_get_hash(o, "entropy"),
                                .hash = wire_get_hash(o, "hash"),
                                .height = get_number(o, "height"),
                                .previous = wire_get_hash(o, "previous"),
                                .time = get_number(o, "time") };
    return true;
}

json_t *wire_account(const struct ledger_account *a)
{
    json_t *o = json_object();

    put_amount(o, "balance", a->balance);
    put_amount(o, "credit", a->credit);
    put_number(o, "nonce", a->nonce);
    return o;
}

bool wire_read_account(const json_t *o, struct ledger_account *a, struct error *err)
{
    if (!schema_check(&account_schema, o, err))
        return false;
    *a = (struct ledger_account){ get_amount(o, "balance"), get_amount(o, "credit"), get_number(o, "nonce") };
    return true;
}

json_t *wire_receipt(const struct ledger_receipt *r)
{
    json_t *o = json_object();
    char id[CID_TEXT];

    put_text(o, "code", error_name(r->code));
    json_object_set_new(o, "final", json_boolean(r->final));
    put_number(o, "height", r->height);
    put_text(o, "id", cid_text(r->id, id));
    put_text(o, "message", r->message);
    return o;
}

bool wire_read_receipt(const json_t *o, struct ledger_receipt *r, struct error *err)
{
    if (!schema_check(&receipt_schema, o, err))
        return false;
    *r = (struct ledger_receipt){ .id = wire_get_cid(o, "id"),
                                  .height = get_number(o, "height"),
                                  .final = json_is_true(json_object_get(o, "final")),
                                  .code = wire_code(json_string_value(json_object_get(o, "code")), ERROR_REFUSED) };
    snprintf(r->message, sizeof r->message, "%s", json_string_value(json_object_get(o, "message")));
    return true;
}

/* ---- escrow ---- */

json_t *wire_escrow(const struct ledger_escrow *e)
{
    json_t *o = json_object(), *panel = json_array();
    char text[ADDRESS_TEXT];

    for (uint32_t i = 0; i < e->panel_count; i++)
        json_array_append_new(panel, json_string(address_text(e->panel[i], text)));
    put_amount(o, "amount", e->amount);
    put_number(o, "created", e->created);
    put_number(o, "expiry", e->expiry);
    put_hash(o, "id", e->id);
    json_object_set_new(o, "panel", panel);
    put_hash(o, "payout", e->payout);
    put_hash(o, "record", e->record);
    put_hash(o, "ref", e->ref);
    json_object_set_new(o, "refunded", json_boolean(e->refunded));
    put_amount(o, "released", e->released);
    put_number(o, "round", e->round);
    put_hash(o, "run", e->run);
    put_address(o, "sponsor", e->sponsor);
    put_text(o, "status", escrow_states[e->status]);
    put_number(o, "threshold", e->threshold);
    return o;
}

bool wire_read_escrow(const json_t *o, struct ledger_escrow *e, struct error *err)
{
    const json_t *panel = json_object_get(o, "panel"), *item;

    if (!schema_check(&escrow_schema, o, err))
        return false;
    *e = (struct ledger_escrow){ .id = wire_get_hash(o, "id"),
                                 .ref = wire_get_hash(o, "ref"),
                                 .run = wire_get_hash(o, "run"),
                                 .round = get_number(o, "round"),
                                 .sponsor = wire_get_address(o, "sponsor"),
                                 .amount = get_amount(o, "amount"),
                                 .released = get_amount(o, "released"),
                                 .panel_count = (uint32_t)json_array_size(panel),
                                 .threshold = (uint32_t)get_number(o, "threshold"),
                                 .expiry = get_number(o, "expiry"),
                                 .created = get_number(o, "created"),
                                 .status = (enum ledger_escrow_status)get_choice(o, "status", escrow_states),
                                 .refunded = json_is_true(json_object_get(o, "refunded")),
                                 .record = wire_get_hash(o, "record"),
                                 .payout = wire_get_hash(o, "payout") };
    for (uint32_t i = 0; i < e->panel_count; i++) {
        item = json_array_get(panel, i);
        address_parse(json_string_value(item), &e->panel[i]);
    }
    return true;
}

/* ---- events ---- */

static json_t *event_json(const struct ledger_event *e)
{
    json_t *o = json_object();

    put_address(o, "account", e->account);
    put_amount(o, "amount", e->amount);
    put_number(o, "height", e->height);
    put_hash(o, "id", e->id);
    put_number(o, "index", e->index);
    put_text(o, "kind", event_kinds[e->kind]);
    put_hash(o, "payout", e->payout);
    put_hash(o, "record", e->record);
    put_hash(o, "ref", e->ref);
    put_number(o, "round", e->round);
    put_hash(o, "run", e->run);
    return o;
}

json_t *wire_events(const struct ledger_event *events, size_t count, uint64_t next)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, event_json(&events[i]));
    json_object_set_new(o, "events", list);
    put_number(o, "next", next);
    return o;
}

bool wire_read_events(const json_t *o, struct ledger_event events[LEDGER_EVENTS], size_t *count, uint64_t *next,
                      struct error *err)
{
    const json_t *list = json_object_get(o, "events");

    if (!schema_check(&events_schema, o, err))
        return false;
    *count = json_array_size(list);
    *next = get_number(o, "next");
    for (size_t i = 0; i < *count; i++) {
        const json_t *e = json_array_get(list, i);

        events[i] = (struct ledger_event){ .kind = (enum ledger_event_kind)get_choice(e, "kind", event_kinds),
                                           .height = get_number(e, "height"),
                                           .index = (uint32_t)get_number(e, "index"),
                                           .round = get_number(e, "round"),
                                           .id = wire_get_hash(e, "id"),
                                           .ref = wire_get_hash(e, "ref"),
                                           .run = wire_get_hash(e, "run"),
                                           .record = wire_get_hash(e, "record"),
                                           .payout = wire_get_hash(e, "payout"),
                                           .account = wire_get_address(e, "account"),
                                           .amount = get_amount(e, "amount") };
    }
    return true;
}
