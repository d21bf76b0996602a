/* http_world.h - server and client on one loop over loopback, with a route for each thing that a handler may do, and raw sockets for clients that
 * misbehave. Tests run in it by T (the limits of a node), STRICT (short deadlines, small bodies) or FEW (few requests and connections). */
#ifndef RONDO_TESTS_HTTP_WORLD_H
#define RONDO_TESTS_HTTP_WORLD_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "runtime/net/event_stream.h"
#include "runtime/net/http_client.h"
#include "runtime/net/http_server.h"
#include "tests/unit/loop_run.h"

enum { RAW_ANSWER = 2048 };

struct world {
    uv_loop_t loop;
    struct http_server *server;
    struct http_client *client;
    struct http_request *held;
    struct event_stream *stream;
    unsigned gone, stream_gone, handled, done;
    char file[64];
    struct http_answer last;
};

/* ---- routes ---- */

static inline void on_echo(struct http_request *request, void *context)
{
    struct world *w = context;
    size_t size;
    const uint8_t *body = http_request_body(request, &size);

    w->handled++;
    http_answer_bytes(request, 200, "application/octet-stream", body ? body : (const uint8_t *)"", size);
}

static inline void on_block(struct http_request *request, void *context)
{
    char text[256];
    const char *from = http_request_query(request, "from");

    (void)context;
    snprintf(text, sizeof text, "%s %s %s %s", http_request_method(request), http_request_parameter(request, "cid"),
             from ? from : "-", http_request_address(request));
    http_answer_header(request, "Cache-Control", "immutable");
    http_answer_bytes(request, 200, "text/plain", text, strlen(text));
}

static inline void on_round(struct http_request *request, void *context)
{
    json_t *value =
        json_pack("{s:s, s:s}", "run", http_request_parameter(request, "run"), "n", http_request_parameter(request, "n"));

    (void)context;
    http_answer_json(request, 200, value);
    json_decref(value);
}

static inline void on_gone(void *context)
{
    struct world *w = context;

    w->gone++;
    w->held = NULL;
}

static inline void on_later(struct http_request *request, void *context)
{
    struct world *w = context;

    w->held = request;
    http_request_defer(request, 300, on_gone, w);
}

static inline void on_stream_gone(void *context)
{
    struct world *w = context;

    w->stream = NULL;
    w->stream_gone++;
}

static inline void on_events(struct http_request *request, void *context)
{
    struct world *w = context;

    w->stream = event_stream_open(request, on_stream_gone, w);
}

static inline void on_file(struct http_request *request, void *context)
{
    struct world *w = context;

    const int fd = open(w->file, O_RDONLY);
    struct stat about;

    assert_return_code(fstat(fd, &about), errno);
    http_answer_file(request, 200, "application/octet-stream", fd, (uint64_t)about.st_size);
}

static inline void on_nothing(struct http_request *request, void *context)
{
    (void)request, (void)context;
}

static inline void on_refuse(struct http_request *request, void *context)
{
    (void)context;
    http_answer_refusal(request, 400, ERROR_SYNTAX, NULL, "not well formed");
}

static inline void admit_none(struct http_request *request, void *context)
{
    (void)context;
    http_answer_refusal(request, 403, ERROR_REFUSED, "enrol first", "no such block is expected");
}

static const struct http_route routes[] = {
    { "POST", "/echo", 4u << 20, NULL, on_echo },
    { "PUT", "/echo", 1000, NULL, on_echo },
    { "PUT", "/closed", 1u << 20, admit_none, on_echo },
    { "GET", "/v1/blocks/{cid}", 0, NULL, on_block },
    { "GET", "/v1/runs/{run}/rounds/{n}", 0, NULL, on_round },
    { "GET", "/later", 0, NULL, on_later },
    { "GET", "/events", 0, NULL, on_events },
    { "GET", "/file", 0, NULL, on_file },
    { "GET", "/nothing", 0, NULL, on_nothing },
    { "POST", "/refuse", 1000, NULL, on_refuse },
    { 0 },
};

/* ---- the world ---- */

static struct secret_key enrolled, stranger;

static inline bool knows(const struct public_key *key, void *context)
{
    struct public_key known = public_key_of(&enrolled);

    (void)context;
    return public_key_equal(key, &known);
}

/* `tls`: the server's secret, or NULL. */
static inline int begin_with(void **state, struct http_limits limits, const uint8_t *tls)
{
    struct world *w = calloc(1, sizeof *w);
    struct error err;
    struct http_server_options options = { .routes = routes, .context = w, .limits = &limits, .knows = knows, .tls = tls };

    uv_loop_init(&w->loop);
    w->server = http_server_new(&w->loop, &options, &err);
    w->client = http_client_new(&w->loop, NULL, &err);
    snprintf(w->file, sizeof w->file, "/tmp/rondo-http-%d", getpid());
    *state = w;
    return !w->server || !w->client;
}

static inline int begin(void **state)
{
    return begin_with(state, http_limits_default, NULL);
}

static inline int begin_strict(void **state)
{
    struct http_limits limits = http_limits_default;

    limits.idle_ms = 400;
    limits.request_ms = 800;
    limits.connections = 300;
    limits.streams = 1;
    limits.header_bytes = 8192;
    limits.body_bytes = 400000;
    return begin_with(state, limits, NULL);
}

static inline int begin_few(void **state)
{
    struct http_limits limits = http_limits_default;

    limits.requests_per_second = 1;
    limits.burst = 5;
    limits.connections_per_address = 3;
    return begin_with(state, limits, NULL);
}

static inline int end(void **state)
{
    struct world *w = *state;

    http_client_free(w->client);
    http_server_free(w->server);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&w->loop))
        return 1;
    buffer_free(&w->last.body);
    unlink(w->file);
    free(w);
    return 0;
}

static inline void run_for(struct world *w, unsigned ms)
{
    loop_run(&w->loop, ms);
}

static inline void on_done(void *context, struct http_answer *answer)
{
    struct world *w = context;

    w->done++;
    buffer_free(&w->last.body);
    w->last = *answer;
    answer->body = (struct buffer){ 0 };
}

static inline struct http_answer *ask_at(struct world *w, struct http_call call, const char *base, const char *path)
{
    char *url = http_url_join(base, path);
    unsigned before = w->done;
    struct error err;

    call.url = url;
    assert_non_null(http_client_send(w->client, &call, on_done, w, &err));
    free(url);
    for (int i = 0; i < 10000 && w->done == before; i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(w->done, before + 1);
    return &w->last;
}

static inline struct http_answer *ask(struct world *w, struct http_call call, const char *path)
{
    return ask_at(w, call, http_server_url(w->server), path);
}

static inline struct http_answer *get(struct world *w, const char *path)
{
    return ask(w, (struct http_call){ .method = "GET" }, path);
}

static inline void assert_problem(struct http_answer *answer, int status, const char *code)
{
    char wanted[80];

    assert_int_equal(answer->status, status);
    assert_string_equal(answer->type, "application/problem+json");
    snprintf(wanted, sizeof wanted, "\"code\":\"%s\"", code);
    assert_non_null(strstr(buffer_text(&answer->body), wanted));
}

static inline int raw_open(struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(http_server_port(w->server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static inline void raw_send(int fd, const char *text)
{
    send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* What has arrived until now; -1 when the other end has closed and nothing is left. */
static inline ssize_t raw_read(int fd, char *out, size_t size)
{
    ssize_t got = recv(fd, out, size - 1, MSG_DONTWAIT);

    out[got > 0 ? got : 0] = '\0';
    return got == 0 ? -1 : got < 0 ? 0 : got;
}

/* Sends it; what has come back 50 ms later. */
static inline ssize_t raw_ask(struct world *w, int fd, const char *request, char answer[RAW_ANSWER])
{
    raw_send(fd, request);
    run_for(w, 50);
    return raw_read(fd, answer, RAW_ANSWER);
}

/* No handler sees it; its answer has both texts. */
static inline void assert_refused(struct world *w, const char *request, const char *status, const char *says)
{
    char answer[RAW_ANSWER];
    int fd = raw_open(w);

    raw_ask(w, fd, request, answer);
    assert_non_null(strstr(answer, status));
    assert_non_null(strstr(answer, says));
    assert_int_equal(w->handled, 0);
    close(fd);
}

/* Before the tests: the keys that sign requests. */
static inline bool world_start(void)
{
    if (sodium_init() < 0)
        return false;
    secret_key_new(&enrolled);
    secret_key_new(&stranger);
    return true;
}

#define T(name)      cmocka_unit_test_setup_teardown(name, begin, end)
#define STRICT(name) cmocka_unit_test_setup_teardown(name, begin_strict, end)
#define FEW(name)    cmocka_unit_test_setup_teardown(name, begin_few, end)

#endif
