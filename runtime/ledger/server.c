#include "runtime/ledger/server.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/file.h"
#include "runtime/net/http_server.h"

#define QUIET_MS  10000
#define HELD_MS   20000 /* a request for a block to come is held so long */
#define HELD_MOST 4096

/* A request for a block that is not made yet. */
struct held {
    struct http_request *request;
    uint64_t height;
    struct ledger_server *server;
    struct held *next;
};

struct ledger_server {
    uv_loop_t *loop;
    struct ledger_local *local;
    struct http_server *http;
    uv_timer_t timer;
    uint64_t asked_ms, made_ms; /* loop time of the last request and of the last block */
    struct held *held;
    size_t held_count;
    bool troubled; /* the last block could not be written, and that was told */
    void (*trouble)(void *context, const struct error *err);
    void *context;
    struct error fault; /* the books are lost: it has stopped */
};

static void answer(struct ledger_server *s, struct http_request *request)
{
    struct buffer response = { 0 };
    size_t size;
    const uint8_t *body = http_request_body(request, &size);

    ledger_answer(s->local, body ? (const void *)body : "", size, &response);
    http_answer_buffer(request, 200, "application/json", &response);
}

static void held_drop(struct held *h)
{
    for (struct held **at = &h->server->held; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    h->server->held_count--;
    free(h);
}

static void held_gone(void *context)
{
    held_drop(context);
}

static void hold(struct ledger_server *s, struct http_request *request, uint64_t height)
{
    struct held *h = calloc(1, sizeof *h);

    if (!h)
        abort();
    *h = (struct held){ .request = request, .height = height, .server = s, .next = s->held };
    s->held = h;
    s->held_count++;
    http_request_defer(request, HELD_MS, held_gone, h);
}

static void answer_held(struct ledger_server *s, uint64_t height)
{
    for (struct held *h = s->held, *next; h; h = next) {
        next = h->next;
        if (h->height > height)
            continue;
        struct http_request *request = h->request;

        held_drop(h);
        answer(s, request);
    }
}

static void on_request(struct http_request *request, void *context)
{
    struct ledger_server *s = context;
    size_t size;
    const uint8_t *body = http_request_body(request, &size);
    uint64_t awaited = body ? ledger_awaits(body, size) : 0;

    s->asked_ms = uv_now(s->loop);
    if (awaited > ledger_local_status(s->local).height && s->held_count < HELD_MOST)
        hold(s, request, awaited);
    else
        answer(s, request);
}

static const struct http_route routes[] = {
    { "POST", "/", LEDGER_REQUEST_LIMIT, NULL, on_request },
    { 0 },
};

/* Nobody is told anything from books that are not those of the chain. */
static void stop(struct ledger_server *s, const struct error *fault)
{
    s->fault = *fault;
    uv_timer_stop(&s->timer);
    http_server_free(s->http);
    s->http = NULL;
    uv_stop(s->loop);
}

static void on_tick(uv_timer_t *timer)
{
    struct ledger_server *s = timer->data;
    uint64_t now = uv_now(s->loop);
    struct error err;

    if (!ledger_local_waiting(s->local) && !s->held && now - s->asked_ms > QUIET_MS && now - s->made_ms < QUIET_MS)
        return;
    s->made_ms = now;
    if (ledger_local_make_block(s->local, (uint64_t)time(NULL), &err)) {
        s->troubled = false;
        answer_held(s, ledger_local_status(s->local).height);
        return;
    }
    /* A full disk may get room again: what waits goes on waiting, and the next tick tries anew. */
    if (!s->troubled && s->trouble)
        s->trouble(s->context, &err);
    s->troubled = true;
    if (!ledger_local_sound(s->local, NULL))
        stop(s, &err);
}

static bool tell_url(const struct ledger_server *s, const struct ledger_options *options, struct error *err)
{
    const char *url = http_server_url(s->http);

    if (options->url_file && !file_write(options->url_file, url, strlen(url), 0644, err))
        return false;
    if (options->ready)
        options->ready(options->context, url);
    return true;
}

struct ledger_server *ledger_server_new(uv_loop_t *loop, const struct ledger_options *options, struct error *err)
{
    struct ledger_server *s = calloc(1, sizeof *s);
    struct http_server_options http = {
        .address = options->address, .port = options->port, .routes = routes, .context = s, .tls = options->tls
    };

    if (!s)
        abort();
    s->loop = loop;
    s->trouble = options->trouble;
    s->context = options->context;
    s->asked_ms = s->made_ms = uv_now(loop);
    s->local = ledger_local_open(options->path, options->genesis, err);
    if (s->local)
        s->http = http_server_new(loop, &http, err);
    if (!s->http || !tell_url(s, options, err)) {
        http_server_free(s->http);
        ledger_local_close(s->local);
        free(s);
        return NULL;
    }

    uint32_t block_ms = ledger_local_status(s->local).block_ms;

    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    uv_timer_start(&s->timer, on_tick, block_ms, block_ms);
    return s;
}

const char *ledger_server_url(const struct ledger_server *s)
{
    return http_server_url(s->http);
}

bool ledger_server_sound(const struct ledger_server *s, struct error *err)
{
    if (s->fault.code == ERROR_NONE)
        return true;
    *err = s->fault;
    return false;
}

struct ledger_local *ledger_server_local(struct ledger_server *s)
{
    return s->local;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void ledger_server_free(struct ledger_server *s)
{
    if (!s)
        return;
    http_server_free(s->http);
    ledger_local_close(s->local);
    uv_close((uv_handle_t *)&s->timer, on_closed);
}

/* ---- a process of its own ---- */

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

bool ledger_serve(const struct ledger_options *options, struct error *err)
{
    uv_loop_t loop;
    uv_signal_t terminate, interrupt;
    struct ledger_server *server;
    bool ok = false;

    uv_loop_init(&loop);
    server = ledger_server_new(&loop, options, err);
    if (server) {
        uv_signal_init(&loop, &terminate);
        uv_signal_init(&loop, &interrupt);
        uv_signal_start(&terminate, on_signal, SIGTERM);
        uv_signal_start(&interrupt, on_signal, SIGINT);
        uv_run(&loop, UV_RUN_DEFAULT);
        ok = ledger_server_sound(server, err);
        ledger_server_free(server);
        uv_close((uv_handle_t *)&terminate, NULL);
        uv_close((uv_handle_t *)&interrupt, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return ok;
}
