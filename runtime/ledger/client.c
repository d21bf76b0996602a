#include "runtime/ledger/client.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/cid.h"
#include "runtime/ledger/wire.h"

#define PATIENCE_MS    30000
#define PAUSE_FIRST_MS 50
#define PAUSE_MOST_MS  2000
#define POLL_MS        10
#define CALL_MS        5000
#define HELD_MS        25000 /* a call that the ledger holds back, which it does for 20 s */

enum kind { ASK_STATUS, ASK_BLOCK, ASK_ESCROW, ASK_ACCOUNT, ASK_EVENTS, ASK_RECEIPT, ASK_SUBMIT };

static const char *const method_names[] = { "status", "block", "escrow", "account", "events", "receipt", "submit" };

struct client {
    struct ledger ledger;
    uv_loop_t *loop;
    struct http_client *http;
    char *url;
    unsigned patience_ms;
    json_int_t next_id;
    struct question *questions;
    unsigned open; /* questions whose timer is not closed yet */
    bool closing;
};

/* One question until it is answered: sent, sent again after a pause, and for a transaction followed by asking for its receipt. */
struct question {
    struct question *next, *previous;
    struct client *client;
    struct ledger_then then;
    enum kind kind;           /* of the request on its way; a submission becomes ASK_RECEIPT and perhaps ASK_SUBMIT again */
    bool submission, held;    /* held: the ledger may answer late */
    json_t *params;           /* owned */
    json_t *submit, *receipt; /* owned: params of the two requests of a submission */
    json_int_t id;
    uv_timer_t timer;
    uint64_t deadline;
    unsigned pause;
    struct http_transfer *transfer;
    struct error error; /* what went wrong last */
};

static void on_send(uv_timer_t *timer);

/* ---- ends ---- */

static void client_release(struct client *c)
{
    if (!c->closing || c->open)
        return;
    free(c->url);
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct question *q = handle->data;
    struct client *c = q->client;

    json_decref(q->params);
    json_decref(q->submit);
    json_decref(q->receipt);
    free(q);
    c->open--;
    client_release(c);
}

static void question_end(struct question *q)
{
    if (q->transfer)
        http_transfer_cancel(q->transfer);
    q->transfer = NULL;
    if (q->previous)
        q->previous->next = q->next;
    else
        q->client->questions = q->next;
    if (q->next)
        q->next->previous = q->previous;
    uv_close((uv_handle_t *)&q->timer, on_closed);
}

static void finish(struct question *q, const struct ledger_answer *answer)
{
    struct ledger_then then = q->then;

    question_end(q);
    if (then.done)
        then.done(then.context, answer);
}

static void fail(struct question *q)
{
    struct error err = q->error;

    error_at(&err, "ledger");
    finish(q, &(struct ledger_answer){ .error = &err });
}

/* ---- asking ---- */

static void ask_after(struct question *q, uint64_t ms)
{
    uv_timer_start(&q->timer, on_send, ms, 0);
}

/* Nobody answered: again after a growing pause, until patience is over. */
static void ask_again(struct question *q)
{
    q->pause = q->pause ? q->pause * 2 : PAUSE_FIRST_MS;
    if (q->pause > PAUSE_MOST_MS)
        q->pause = PAUSE_MOST_MS;
    if (uv_now(q->client->loop) + q->pause > q->deadline)
        fail(q);
    else
        ask_after(q, q->pause);
}

/* ---- answers ---- */

static void answer_events(struct question *q, const json_t *result)
{
    struct ledger_event *events = calloc(LEDGER_EVENTS, sizeof *events);
    struct ledger_answer answer = { .events = events };

    if (!events)
        abort();
    if (wire_read_events(result, events, &answer.event_count, &answer.next, &q->error))
        finish(q, &answer);
    else
        fail(q);
    free(events);
}

static void turn_to(struct question *q, enum kind kind, uint64_t wait)
{
    q->kind = kind;
    json_decref(q->params);
    q->params = json_incref(kind == ASK_SUBMIT ? q->submit : q->receipt);
    if (uv_now(q->client->loop) + wait > q->deadline) {
        error_set(&q->error, ERROR_TIMEOUT, "send the same bytes again", "the transaction is not in a final block yet");
        fail(q);
        return;
    }
    ask_after(q, wait);
}

static void answer_submit(struct question *q, const json_t *result)
{
    const char *id = json_string_value(json_object_get(result, "id"));
    struct hash hash;

    if (!id || !cid_parse(id, &hash, &q->error)) {
        error_set(&q->error, ERROR_SYNTAX, NULL, "the answer holds no transaction id");
        fail(q);
        return;
    }
    json_decref(q->receipt);
    q->receipt = json_pack("{s:s}", "id", id);
    turn_to(q, ASK_RECEIPT, POLL_MS);
}

static void answer_receipt(struct question *q, const json_t *result)
{
    struct ledger_receipt receipt;
    bool known = !json_is_null(result);

    if (known && !wire_read_receipt(result, &receipt, &q->error)) {
        fail(q);
        return;
    }
    if (!q->submission || (known && receipt.final))
        finish(q, &(struct ledger_answer){ .receipt = known ? &receipt : NULL });
    else
        turn_to(q, known ? ASK_RECEIPT : ASK_SUBMIT, POLL_MS); /* forgotten by a restart: the same bytes again */
}

static void answer_value(struct question *q, const json_t *result)
{
    struct ledger_status status;
    struct ledger_block block;
    struct ledger_account account;
    struct ledger_escrow escrow;
    struct ledger_answer answer = { 0 };
    bool read;

    if (q->kind == ASK_STATUS) {
        read = wire_read_status(result, &status, &q->error);
        answer.status = &status;
    } else if (q->kind == ASK_BLOCK) {
        read = wire_read_block(result, &block, &q->error);
        answer.block = &block;
    } else if (q->kind == ASK_ACCOUNT) {
        read = wire_read_account(result, &account, &q->error);
        answer.account = &account;
    } else {
        read = json_is_null(result) || wire_read_escrow(result, &escrow, &q->error);
        answer.escrow = json_is_null(result) ? NULL : &escrow;
    }
    if (read)
        finish(q, &answer);
    else
        fail(q);
}

static void answer_error(struct question *q, const json_t *error)
{
    const json_t *data = json_object_get(error, "data");
    const char *code = json_string_value(json_object_get(data, "code")),
               *message = json_string_value(json_object_get(error, "message"));

    error_set(&q->error, code ? wire_code(code, ERROR_REFUSED) : ERROR_REFUSED, NULL, "%.390s", message ? message : "refused");
    /* The ledger's own trouble (a full disk, too much waiting) passes; a rule does not. */
    if (error_status(q->error.code) == 4 || (q->kind == ASK_SUBMIT && q->error.code == ERROR_LIMIT))
        ask_again(q);
    else
        fail(q);
}

static void answer_read(struct question *q, const json_t *response)
{
    const json_t *id = json_object_get(response, "id"), *result = json_object_get(response, "result"),
                 *error = json_object_get(response, "error");

    if (!json_is_integer(id) || json_integer_value(id) != q->id || !result == !error) {
        error_set(&q->error, ERROR_SYNTAX, "is this the address of a rondo ledger?", "the answer is not one to the question");
        fail(q);
        return;
    }
    q->pause = 0;
    if (error)
        answer_error(q, error);
    else if (q->kind == ASK_SUBMIT)
        answer_submit(q, result);
    else if (q->kind == ASK_RECEIPT)
        answer_receipt(q, result);
    else if (q->kind == ASK_EVENTS)
        answer_events(q, result);
    else
        answer_value(q, result);
}

static void on_answer(void *context, struct http_answer *answer)
{
    struct question *q = context;
    json_t *response;

    q->transfer = NULL;
    if (!http_answer_ok(answer, &q->error)) {
        ask_again(q);
        return;
    }
    response = json_read((const char *)answer->body.bytes, answer->body.size, HTTP_ANSWER_LIMIT, &q->error);
    if (response)
        answer_read(q, response);
    else
        fail(q);
    json_decref(response);
}

static void on_send(uv_timer_t *timer)
{
    struct question *q = timer->data;
    struct client *c = q->client;
    struct http_call call = {
        .method = "POST", .url = c->url, .type = "application/json", .total_ms = q->held ? HELD_MS : CALL_MS
    };
    json_t *request;
    char *bytes;

    q->id = ++c->next_id;
    request =
        json_pack("{s:s, s:I, s:s, s:O}", "jsonrpc", "2.0", "id", q->id, "method", method_names[q->kind], "params", q->params);
    bytes = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    if (!bytes)
        abort();
    call.body = bytes;
    call.size = strlen(bytes);
    q->transfer = http_client_send(c->http, &call, on_answer, q, &q->error);
    free(bytes);
    if (!q->transfer)
        fail(q);
}

/* ---- the methods ---- */

static struct question *ask(struct ledger *ledger, enum kind kind, json_t *params, struct ledger_then then)
{
    struct client *c = (struct client *)ledger;
    struct question *q = calloc(1, sizeof *q);

    if (!q || !params)
        abort();
    q->client = c;
    q->then = then;
    q->kind = kind;
    q->params = params;
    q->deadline = uv_now(c->loop) + c->patience_ms;
    q->next = c->questions;
    if (q->next)
        q->next->previous = q;
    c->questions = q;
    c->open++;
    uv_timer_init(c->loop, &q->timer);
    q->timer.data = q;
    ask_after(q, 0);
    return q;
}

static void client_status(struct ledger *ledger, struct ledger_then then)
{
    ask(ledger, ASK_STATUS, json_object(), then);
}

static void client_next(struct ledger *ledger, uint64_t above, struct ledger_then then)
{
    ask(ledger, ASK_STATUS, json_pack("{s:I}", "above", (json_int_t)above), then)->held = true;
}

static void client_block(struct ledger *ledger, uint64_t height, bool wait, struct ledger_then then)
{
    json_t *params = height == LEDGER_FINAL ? json_object() : json_pack("{s:I}", "height", (json_int_t)height);

    if (wait)
        json_object_set_new(params, "wait", json_true());
    ask(ledger, ASK_BLOCK, params, then)->held = wait;
}

static void client_escrow(struct ledger *ledger, struct address sponsor, struct hash ref, struct ledger_then then)
{
    char address[ADDRESS_TEXT], hash[HASH_TEXT];

    ask(ledger, ASK_ESCROW, json_pack("{s:s, s:s}", "sponsor", address_text(sponsor, address), "ref", hash_hex(ref, hash)), then);
}

static void client_account(struct ledger *ledger, struct address address, struct ledger_then then)
{
    char text[ADDRESS_TEXT];

    ask(ledger, ASK_ACCOUNT, json_pack("{s:s}", "account", address_text(address, text)), then);
}

static void client_events(struct ledger *ledger, const struct hash *run, uint64_t from, uint64_t to, struct ledger_then then)
{
    char hash[HASH_TEXT];
    json_t *params =
        json_pack("{s:I, s:I}", "from", (json_int_t)from, "to", (json_int_t)(to < CANONICAL_INTEGER ? to : CANONICAL_INTEGER));

    if (run)
        json_object_set_new(params, "run", json_string(hash_hex(*run, hash)));
    ask(ledger, ASK_EVENTS, params, then);
}

static void client_receipt(struct ledger *ledger, struct hash id, struct ledger_then then)
{
    char text[CID_TEXT];

    ask(ledger, ASK_RECEIPT, json_pack("{s:s}", "id", cid_text(id, text)), then);
}

static void client_submit(struct ledger *ledger, const void *bytes, size_t size, struct ledger_then then)
{
    json_t *params = json_pack("{s:s%}", "transaction", (const char *)bytes, size);
    struct question *q = ask(ledger, ASK_SUBMIT, params, then);

    q->submission = true;
    q->submit = json_incref(params);
}

static void client_free(struct ledger *ledger)
{
    struct client *c = (struct client *)ledger;

    while (c->questions)
        question_end(c->questions);
    c->closing = true;
    client_release(c);
}

static const struct ledger_methods client_methods = {
    .status = client_status,
    .next = client_next,
    .block = client_block,
    .escrow = client_escrow,
    .account = client_account,
    .events = client_events,
    .submit = client_submit,
    .receipt = client_receipt,
    .free = client_free,
};

struct ledger *ledger_client_new(uv_loop_t *loop, struct http_client *http, const char *url, unsigned patience_ms,
                                 struct error *err)
{
    struct client *c = calloc(1, sizeof *c);

    if (!c) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a ledger client");
        return NULL;
    }
    c->ledger.methods = &client_methods;
    c->loop = loop;
    c->http = http;
    c->url = http_url_join(url, "/");
    c->patience_ms = patience_ms ? patience_ms : PATIENCE_MS;
    return &c->ledger;
}
