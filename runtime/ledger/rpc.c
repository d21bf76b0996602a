/* rpc.c - one JSON-RPC 2.0 request to its response. Strict: no batches, no notifications, no unknown members. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/schema.h"
#include "runtime/ledger/server.h"
#include "runtime/ledger/wire.h"

enum { RPC_PARSE = -32700, RPC_REQUEST = -32600, RPC_METHOD = -32601, RPC_PARAMS = -32602, RPC_REFUSED = -32000 };

#define ID_SIZE 64

/* ---- methods: params were checked against their schema; NULL with `err` ---- */

static json_t *answer_status(struct ledger_local *l, const json_t *params, struct error *err)
{
    struct ledger_status status = ledger_local_status(l);

    (void)params, (void)err;
    return wire_status(&status);
}

static json_t *answer_block(struct ledger_local *l, const json_t *params, struct error *err)
{
    const json_t *height = json_object_get(params, "height");
    struct ledger_block block;

    if (!ledger_local_block(l, height ? (uint64_t)json_integer_value(height) : LEDGER_FINAL, &block, err))
        return NULL;
    return wire_block(&block);
}

static json_t *answer_escrow(struct ledger_local *l, const json_t *params, struct error *err)
{
    struct ledger_escrow escrow;

    (void)err;
    if (!ledger_local_escrow(l, wire_get_address(params, "sponsor"), wire_get_hash(params, "ref"), &escrow))
        return json_null();
    return wire_escrow(&escrow);
}

static json_t *answer_account(struct ledger_local *l, const json_t *params, struct error *err)
{
    struct ledger_account account = ledger_local_account(l, wire_get_address(params, "account"));

    (void)err;
    return wire_account(&account);
}

static json_t *answer_events(struct ledger_local *l, const json_t *params, struct error *err)
{
    struct ledger_event *events = calloc(LEDGER_EVENTS, sizeof *events);
    struct hash run = { { 0 } };
    bool one = json_object_get(params, "run") != NULL;
    uint64_t next;

    (void)err;
    if (!events)
        abort();
    if (one)
        run = wire_get_hash(params, "run");

    size_t count = ledger_local_events(l, one ? &run : NULL, (uint64_t)json_integer_value(json_object_get(params, "from")),
                                       (uint64_t)json_integer_value(json_object_get(params, "to")), events, &next);
    json_t *result = wire_events(events, count, next);

    free(events);
    return result;
}

static json_t *answer_submit(struct ledger_local *l, const json_t *params, struct error *err)
{
    const json_t *bytes = json_object_get(params, "transaction");
    struct hash id;
    char text[CID_TEXT];

    if (!ledger_local_add(l, json_string_value(bytes), json_string_length(bytes), &id, err))
        return NULL;
    return json_pack("{s:s}", "id", cid_text(id, text));
}

static json_t *answer_receipt(struct ledger_local *l, const json_t *params, struct error *err)
{
    struct ledger_receipt receipt;

    (void)err;
    if (!ledger_local_receipt(l, wire_get_cid(params, "id"), &receipt))
        return json_null();
    return wire_receipt(&receipt);
}

/* ---- the table ---- */

static const struct schema_field status_params[] = {
    { "above", SCHEMA_INTEGER, .most = CANONICAL_INTEGER - 1, .optional = true },
};
static const struct schema_field block_params[] = {
    { "height", SCHEMA_INTEGER, .most = CANONICAL_INTEGER, .optional = true },
    { .name = "wait", .kind = SCHEMA_FLAG, .optional = true },
};
static const struct schema_field escrow_params[] = {
    { "ref", SCHEMA_HEX, .most = HASH_SIZE },
    { .name = "sponsor", .kind = SCHEMA_ADDRESS },
};
static const struct schema_field account_params[] = {
    { .name = "account", .kind = SCHEMA_ADDRESS },
};
static const struct schema_field events_params[] = {
    { "from", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
    { "run", SCHEMA_HEX, .most = HASH_SIZE, .optional = true },
    { "to", SCHEMA_INTEGER, .most = CANONICAL_INTEGER },
};
static const struct schema_field submit_params[] = {
    { "transaction", SCHEMA_TEXT, .least = 1, .most = TRANSACTION_LIMIT },
};
static const struct schema_field receipt_params[] = {
    { .name = "id", .kind = SCHEMA_CID },
};

static const struct {
    const char *name;
    struct schema params;
    json_t *(*answer)(struct ledger_local *ledger, const json_t *params, struct error *err);
} methods[] = {
    { "status", SCHEMA(status_params), answer_status },    { "block", SCHEMA(block_params), answer_block },
    { "escrow", SCHEMA(escrow_params), answer_escrow },    { "account", SCHEMA(account_params), answer_account },
    { "events", SCHEMA(events_params), answer_events },    { "submit", SCHEMA(submit_params), answer_submit },
    { "receipt", SCHEMA(receipt_params), answer_receipt },
};

/* ---- the envelope ---- */

static void write_response(const json_t *id, json_t *result, int code, const struct error *err, struct buffer *out)
{
    char text[sizeof err->place + sizeof err->message + sizeof err->hint + 8], *bytes;
    json_t *response = json_object();

    json_object_set_new(response, "jsonrpc", json_string("2.0"));
    json_object_set_new(response, "id", id ? json_deep_copy(id) : json_null());
    if (result) {
        json_object_set_new(response, "result", result);
    } else {
        json_object_set_new(response, "error",
                            json_pack("{s:i, s:s, s:{s:s, s:s}}", "code", code, "message", error_text(err, text, sizeof text),
                                      "data", "code", error_name(err->code), "hint", err->hint));
    }
    bytes = json_dumps(response, JSON_COMPACT);
    json_decref(response);
    if (!bytes)
        abort();
    buffer_add_text(out, bytes);
    free(bytes);
}

static bool id_sound(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_SIZE);
}

static bool request_sound(const json_t *request, struct error *err)
{
    const char *key, *version = json_string_value(json_object_get(request, "jsonrpc"));
    json_t *value;

    if (json_is_array(request))
        return error_set(err, ERROR_UNSUPPORTED, "send one request at a time", "batches are not taken");
    if (!json_is_object(request))
        return error_set(err, ERROR_TYPE, NULL, "a request is an object");
    if (!version || strcmp(version, "2.0") != 0)
        return error_set(err, ERROR_MISSING, NULL, "jsonrpc must be \"2.0\"");
    if (!id_sound(json_object_get(request, "id")))
        return error_set(err, ERROR_MISSING, NULL, "id must be an integer or a text of at most %d bytes", ID_SIZE);
    if (!json_is_string(json_object_get(request, "method")))
        return error_set(err, ERROR_MISSING, NULL, "method must be a text");
    json_object_foreach((json_t *)request, key, value) if (strcmp(key, "jsonrpc") && strcmp(key, "id") && strcmp(key, "method") &&
                                                           strcmp(key, "params")) return error_set(err, ERROR_UNKNOWN, NULL,
                                                                                                   "unknown member %.64s", key);
    return true;
}

static void answer_request(struct ledger_local *l, const json_t *request, struct buffer *response)
{
    const char *name = json_string_value(json_object_get(request, "method"));
    const json_t *id = json_object_get(request, "id"), *params = json_object_get(request, "params");
    json_t *none = json_object(), *result = NULL;
    struct error err = { 0 };
    int code = RPC_METHOD;

    error_set(&err, ERROR_UNKNOWN, "the methods stand in docs/ledger.md", "unknown method %.64s", name);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, name) != 0)
            continue;
        code = RPC_PARAMS;
        if (params && !json_is_object(params)) {
            error_set(&err, ERROR_TYPE, NULL, "params must be an object");
        } else if (!schema_check(&methods[i].params, params ? params : none, &err)) {
            error_at(&err, "params");
        } else {
            code = RPC_REFUSED;
            result = ledger_local_sound(l, &err) ? methods[i].answer(l, params ? params : none, &err) : NULL;
        }
    }
    write_response(id, result, code, &err, response);
    json_decref(none);
}

void ledger_answer(struct ledger_local *l, const void *bytes, size_t size, struct buffer *response)
{
    struct error err = { 0 };
    json_t *request = json_read(bytes, size, LEDGER_REQUEST_LIMIT, &err);

    if (!request)
        write_response(NULL, NULL, RPC_PARSE, &err, response);
    else if (!request_sound(request, &err))
        write_response(id_sound(json_object_get(request, "id")) ? json_object_get(request, "id") : NULL, NULL, RPC_REQUEST, &err,
                       response);
    else
        answer_request(l, request, response);
    json_decref(request);
}

uint64_t ledger_awaits(const void *bytes, size_t size)
{
    json_t *request = json_read(bytes, size, LEDGER_REQUEST_LIMIT, NULL);
    const char *method = json_string_value(json_object_get(request, "method"));
    const json_t *params = json_object_get(request, "params"), *above = json_object_get(params, "above"),
                 *height = json_object_get(params, "height");
    json_int_t awaited = 0;

    if (method && strcmp(method, "status") == 0 && json_is_integer(above))
        awaited = json_integer_value(above) + 1;
    else if (method && strcmp(method, "block") == 0 && json_is_true(json_object_get(params, "wait")))
        awaited = json_integer_value(height);
    json_decref(request);
    return awaited > 0 && awaited <= CANONICAL_INTEGER ? (uint64_t)awaited : 0;
}
