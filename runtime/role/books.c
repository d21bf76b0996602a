#include "runtime/role/books.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "runtime/ledger/client.h"

struct books {
    struct ledger_local *file; /* borrowed; NULL: by URL */
    uv_loop_t loop;
    struct http_client *http;
    struct ledger *ledger;
};

/* One question on its way: `take` copies what the answer lends. */
struct asked {
    struct books *books;
    void (*take)(struct asked *asked, const struct ledger_answer *answer);
    void *out, *more;
    struct error *err;
    bool ok;
};

static void answered(void *context, const struct ledger_answer *answer)
{
    struct asked *a = context;

    a->ok = !answer->error;
    if (a->ok)
        a->take(a, answer);
    else
        *a->err = *answer->error;
    uv_stop(&a->books->loop);
}

static bool wait_for(struct asked *a)
{
    uv_run(&a->books->loop, UV_RUN_DEFAULT);
    return a->ok;
}

struct books *books_of_file(struct ledger_local *ledger)
{
    struct books *b = calloc(1, sizeof *b);

    b->file = ledger;
    return b;
}

struct books *books_of_url(const char *url, bool plain, struct error *err)
{
    struct books *b = calloc(1, sizeof *b);

    uv_loop_init(&b->loop);
    b->http = http_client_new(&b->loop, &(struct http_client_options){ .plain = plain }, err);
    b->ledger = b->http ? ledger_client_new(&b->loop, b->http, url, 0, err) : NULL;
    if (b->ledger)
        return b;
    error_at(err, "ledger %s", url);
    books_free(b);
    return NULL;
}

void books_free(struct books *b)
{
    if (!b)
        return;
    if (!b->file) {
        ledger_free(b->ledger);
        http_client_free(b->http);
        uv_run(&b->loop, UV_RUN_DEFAULT);
        uv_loop_close(&b->loop);
    }
    free(b);
}

static void take_status(struct asked *a, const struct ledger_answer *answer)
{
    *(struct ledger_status *)a->out = *answer->status;
}

bool books_status(struct books *b, struct ledger_status *status, struct error *err)
{
    struct asked a = { .books = b, .take = take_status, .out = status, .err = err };

    if (b->file) {
        *status = ledger_local_status(b->file);
        return true;
    }
    ledger_status(b->ledger, (struct ledger_then){ answered, &a });
    return wait_for(&a);
}

static void take_block(struct asked *a, const struct ledger_answer *answer)
{
    *(struct ledger_block *)a->out = *answer->block;
}

bool books_block(struct books *b, uint64_t height, struct ledger_block *block, struct error *err)
{
    struct asked a = { .books = b, .take = take_block, .out = block, .err = err };

    if (b->file)
        return ledger_local_block(b->file, height, block, err);
    ledger_block(b->ledger, height, (struct ledger_then){ answered, &a });
    return wait_for(&a);
}

static void take_escrow(struct asked *a, const struct ledger_answer *answer)
{
    *(bool *)a->more = answer->escrow != NULL;
    if (answer->escrow)
        *(struct ledger_escrow *)a->out = *answer->escrow;
}

bool books_escrow(struct books *b, struct address sponsor, struct hash ref, struct ledger_escrow *escrow, bool *found,
                  struct error *err)
{
    struct asked a = { .books = b, .take = take_escrow, .out = escrow, .more = found, .err = err };

    if (b->file) {
        *found = ledger_local_escrow(b->file, sponsor, ref, escrow);
        return true;
    }
    ledger_escrow(b->ledger, sponsor, ref, (struct ledger_then){ answered, &a });
    return wait_for(&a);
}

struct page {
    struct ledger_event events[LEDGER_EVENTS];
    size_t count;
    uint64_t next;
};

static void take_events(struct asked *a, const struct ledger_answer *answer)
{
    struct page *page = a->out;

    page->count = answer->event_count < LEDGER_EVENTS ? answer->event_count : LEDGER_EVENTS;
    memcpy(page->events, answer->events, page->count * sizeof *page->events);
    page->next = answer->next;
}

static bool page_of(struct books *b, struct hash run, uint64_t from, uint64_t to, struct page *page, struct error *err)
{
    struct asked a = { .books = b, .take = take_events, .out = page, .err = err };

    if (b->file) {
        page->count = ledger_local_events(b->file, &run, from, to, page->events, &page->next);
        return true;
    }
    ledger_events(b->ledger, &run, from, to, (struct ledger_then){ answered, &a });
    return wait_for(&a);
}

bool books_events(struct books *b, struct hash run, struct ledger_event **events, size_t *count, struct error *err)
{
    struct ledger_status status;
    struct page *page = calloc(1, sizeof *page);
    bool ok = books_status(b, &status, err);

    *events = NULL;
    *count = 0;
    for (uint64_t from = 0; ok && from <= status.height; from = page->next) {
        ok = page_of(b, run, from, status.height, page, err);
        if (ok && page->next <= from)
            ok = error_set(err, ERROR_RANGE, NULL, "the ledger's list of events does not go on");
        if (!ok)
            break;
        *events = realloc(*events, (*count + page->count + 1) * sizeof **events);
        memcpy(*events + *count, page->events, page->count * sizeof **events);
        *count += page->count;
    }
    free(page);
    return ok;
}

static void take_account(struct asked *a, const struct ledger_answer *answer)
{
    *(struct ledger_account *)a->out = *answer->account;
}

bool books_account(struct books *b, struct address address, struct ledger_account *account, struct error *err)
{
    struct asked a = { .books = b, .take = take_account, .out = account, .err = err };

    if (b->file) {
        *account = ledger_local_account(b->file, address);
        return true;
    }
    ledger_account(b->ledger, address, (struct ledger_then){ answered, &a });
    return wait_for(&a);
}

static void take_receipt(struct asked *a, const struct ledger_answer *answer)
{
    *(struct ledger_receipt *)a->out = *answer->receipt;
}

bool books_send(struct books *b, struct transaction *t, const struct account_key *key, struct error *err)
{
    struct ledger_receipt receipt = { 0 };
    struct asked a = { .books = b, .take = take_receipt, .out = &receipt, .err = err };
    struct ledger_status status;
    struct ledger_account account;
    struct buffer bytes = { 0 };
    bool ok = !b->file || error_set(err, ERROR_REFUSED, "give --ledger URL", "a ledger's file is only read here");

    ok = ok && books_status(b, &status, err) && books_account(b, account_address(key), &account, err);
    if (ok) {
        t->chain = status.chain;
        t->nonce = account.nonce;
        ok = transaction_sign(t, key, &bytes, err);
    }
    if (ok) {
        ledger_submit(b->ledger, bytes.bytes, bytes.size, (struct ledger_then){ answered, &a });
        ok = wait_for(&a);
    }
    if (ok && receipt.code != ERROR_NONE)
        ok = error_set(err, receipt.code, NULL, "%s", receipt.message);
    buffer_free(&bytes);
    return ok;
}
