/* http_test.c - server and client on one loop over loopback, and raw sockets for clients that misbehave. */
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

#include "native/base/file.h"
#include "runtime/net/event_stream.h"
#include "runtime/net/http_client.h"
#include "runtime/net/http_server.h"
#include "runtime/net/request_key.h"
#include "runtime/net/sender.h"

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

static void on_echo(struct http_request *request, void *context)
{
    struct world *w = context;
    size_t size;
    const uint8_t *body = http_request_body(request, &size);

    w->handled++;
    http_answer_bytes(request, 200, "application/octet-stream", body ? body : (const uint8_t *)"", size);
}

static void on_block(struct http_request *request, void *context)
{
    char text[256];
    const char *from = http_request_query(request, "from");

    (void)context;
    snprintf(text, sizeof text, "%s %s %s %s", http_request_method(request), http_request_parameter(request, "cid"),
             from ? from : "-", http_request_address(request));
    http_answer_header(request, "Cache-Control", "immutable");
    http_answer_bytes(request, 200, "text/plain", text, strlen(text));
}

static void on_round(struct http_request *request, void *context)
{
    json_t *value =
        json_pack("{s:s, s:s}", "run", http_request_parameter(request, "run"), "n", http_request_parameter(request, "n"));

    (void)context;
    http_answer_json(request, 200, value);
    json_decref(value);
}

static void on_gone(void *context)
{
    struct world *w = context;

    w->gone++;
    w->held = NULL;
}

static void on_later(struct http_request *request, void *context)
{
    struct world *w = context;

    w->held = request;
    http_request_defer(request, 300, on_gone, w);
}

static void on_stream_gone(void *context)
{
    struct world *w = context;

    w->stream = NULL;
    w->stream_gone++;
}

static void on_events(struct http_request *request, void *context)
{
    struct world *w = context;

    w->stream = event_stream_open(request, on_stream_gone, w);
}

static void on_file(struct http_request *request, void *context)
{
    struct world *w = context;

    const int fd = open(w->file, O_RDONLY);
    struct stat about;

    assert_return_code(fstat(fd, &about), errno);
    http_answer_file(request, 200, "application/octet-stream", fd, (uint64_t)about.st_size);
}

static void on_nothing(struct http_request *request, void *context)
{
    (void)request, (void)context;
}

static void on_refuse(struct http_request *request, void *context)
{
    (void)context;
    http_answer_refusal(request, 400, ERROR_SYNTAX, NULL, "not well formed");
}

static void admit_none(struct http_request *request, void *context)
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

static bool knows(const struct public_key *key, void *context)
{
    struct public_key known = public_key_of(&enrolled);

    (void)context;
    return public_key_equal(key, &known);
}

static int begin_with(void **state, struct http_limits limits)
{
    struct world *w = calloc(1, sizeof *w);
    struct error err;
    struct http_server_options options = { .routes = routes, .context = w, .limits = &limits, .knows = knows };

    uv_loop_init(&w->loop);
    w->server = http_server_new(&w->loop, &options, &err);
    w->client = http_client_new(&w->loop, NULL, &err);
    snprintf(w->file, sizeof w->file, "/tmp/rondo-http-%d", getpid());
    *state = w;
    return !w->server || !w->client;
}

static int begin(void **state)
{
    return begin_with(state, http_limits_default);
}

static int begin_strict(void **state)
{
    struct http_limits limits = http_limits_default;

    limits.idle_ms = 400;
    limits.request_ms = 800;
    limits.connections = 300;
    limits.streams = 1;
    limits.header_bytes = 8192;
    limits.body_bytes = 400000;
    return begin_with(state, limits);
}

static int begin_few(void **state)
{
    struct http_limits limits = http_limits_default;

    limits.requests_per_second = 1;
    limits.burst = 5;
    limits.connections_per_address = 3;
    return begin_with(state, limits);
}

static int end(void **state)
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

static void on_turn(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop for so long. */
static void run_for(struct world *w, unsigned ms)
{
    bool over = false;
    uv_timer_t timer;

    uv_timer_init(&w->loop, &timer);
    timer.data = &over;
    uv_timer_start(&timer, on_turn, ms, 0);
    while (!over)
        uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void on_done(void *context, struct http_answer *answer)
{
    struct world *w = context;

    w->done++;
    buffer_free(&w->last.body);
    w->last = *answer;
    answer->body = (struct buffer){ 0 };
}

static struct http_answer *ask(struct world *w, struct http_call call, const char *path)
{
    char *url = http_url_join(http_server_url(w->server), path);
    unsigned before = w->done;
    struct error err;

    call.url = url;
    assert_non_null(http_client_send(w->client, &call, on_done, w, &err));
    free(url);
    for (int i = 0; i < 1000 && w->done == before; i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(w->done, before + 1);
    return &w->last;
}

static struct http_answer *get(struct world *w, const char *path)
{
    return ask(w, (struct http_call){ .method = "GET" }, path);
}

static void assert_problem(struct http_answer *answer, int status, const char *code)
{
    char wanted[80];

    assert_int_equal(answer->status, status);
    assert_string_equal(answer->type, "application/problem+json");
    snprintf(wanted, sizeof wanted, "\"code\":\"%s\"", code);
    assert_non_null(strstr(buffer_text(&answer->body), wanted));
}

static int raw_open(struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(http_server_port(w->server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void raw_send(int fd, const char *text)
{
    send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* What has arrived until now; -1 when the other end has closed and nothing is left. */
static ssize_t raw_read(int fd, char *out, size_t size)
{
    ssize_t got = recv(fd, out, size - 1, MSG_DONTWAIT);

    out[got > 0 ? got : 0] = '\0';
    return got == 0 ? -1 : got < 0 ? 0 : got;
}

/* ---- tests: the ordinary ---- */

static void a_route_gets_its_parameters_query_and_address(void **state)
{
    struct world *w = *state;
    struct http_answer *answer = get(w, "/v1/blocks/bafk123?from=7");

    assert_int_equal(answer->status, 200);
    assert_string_equal(buffer_text(&answer->body), "GET bafk123 7 127.0.0.1");
    answer = get(w, "/v1/runs/abc/rounds/12");
    assert_string_equal(answer->type, "application/json");
    assert_string_equal(buffer_text(&answer->body), "{\"run\":\"abc\",\"n\":\"12\"}");
}

static void head_is_answered_by_the_get_route_without_a_body(void **state)
{
    struct http_answer *answer = ask(*state, (struct http_call){ .method = "HEAD" }, "/v1/blocks/bafk123");

    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->body.size, 0);
}

static void unknown_paths_and_methods_are_problems(void **state)
{
    static const char *const unknown[] = {
        "/", "/v1", "/v1/blocks/", "/v1/blocks/a/b", "/v1/blocks/a/", "/v1/runs//rounds/1", "/v1/blocksx"
    };

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_problem(get(*state, unknown[i]), 404, "unknown");
    assert_problem(ask(*state, (struct http_call){ .method = "POST" }, "/v1/blocks/a"), 405, "unknown");
}

static void a_body_of_a_megabyte_comes_back_whole(void **state)
{
    size_t size = 1u << 20;
    uint8_t *body = malloc(size);

    for (size_t i = 0; i < size; i++)
        body[i] = (uint8_t)(i * 7 + i / 255);

    struct http_answer *answer = ask(*state, (struct http_call){ .method = "POST", .body = body, .size = size }, "/echo");

    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->body.size, size);
    assert_memory_equal(answer->body.bytes, body, size);
    free(body);
}

static void a_file_is_sent_whole(void **state)
{
    struct world *w = *state;
    struct error err;

    assert_true(file_write(w->file, "content", 7, 0600, &err));
    assert_string_equal(buffer_text(&get(w, "/file")->body), "content");
}

static void connections_are_kept_between_calls(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 20; i++)
        assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
    assert_int_equal(http_server_connections(w->server), 1);
}

/* ---- tests: answers that come later ---- */

static void a_deferred_request_is_answered_from_the_loop(void **state)
{
    struct world *w = *state;
    char *url = http_url_join(http_server_url(w->server), "/later");
    struct http_call call = { .method = "GET", .url = url };
    struct error err;

    assert_non_null(http_client_send(w->client, &call, on_done, w, &err));
    free(url);
    run_for(w, 50);
    assert_non_null(w->held);
    assert_int_equal(w->done, 0);
    http_answer_bytes(w->held, 200, "text/plain", "now", 3);
    run_for(w, 50);
    assert_int_equal(w->done, 1);
    assert_string_equal(buffer_text(&w->last.body), "now");
    assert_int_equal(w->gone, 0);
}

static void a_deferred_request_that_nobody_answers_gets_504(void **state)
{
    struct world *w = *state;

    assert_problem(get(w, "/later"), 504, "timeout");
    assert_int_equal(w->gone, 1);
}

static void closing_the_server_tells_deferred_requests_and_streams(void **state)
{
    struct world *w = *state;
    int a = raw_open(w), b = raw_open(w);

    raw_send(a, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_send(b, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    run_for(w, 50);
    assert_non_null(w->held);
    assert_non_null(w->stream);
    http_server_free(w->server);
    w->server = NULL;
    assert_int_equal(w->gone, 1);
    assert_int_equal(w->stream_gone, 1);
    close(a);
    close(b);
}

static void a_handler_that_forgets_to_answer_gives_500(void **state)
{
    assert_problem(get(*state, "/nothing"), 500, "fault");
}

/* ---- tests: events ---- */

static void events_arrive_as_they_are_sent(void **state)
{
    struct world *w = *state;
    char text[2048];
    int fd = raw_open(w);

    raw_send(fd, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    run_for(w, 50);
    assert_true(raw_read(fd, text, sizeof text) > 0);
    assert_non_null(strstr(text, "text/event-stream"));
    assert_non_null(strstr(text, ":\n\n"));
    event_stream_send(w->stream, "12", "record", "{\"a\":1}\nsecond");
    run_for(w, 50);
    raw_read(fd, text, sizeof text);
    assert_non_null(strstr(text, "id: 12\nevent: record\ndata: {\"a\":1}\ndata: second\n\n"));
    event_stream_end(w->stream);
    run_for(w, 50);
    assert_int_equal(w->stream_gone, 1);
    close(fd);
}

static void a_listener_that_does_not_read_is_cut_off(void **state)
{
    struct world *w = *state;
    int fd = raw_open(w);
    char *line = malloc(65537);

    memset(line, 'x', 65536);
    line[65536] = '\0';
    raw_send(fd, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    run_for(w, 50);
    for (int i = 0; i < 400 && w->stream; i++) {
        event_stream_send(w->stream, NULL, NULL, line);
        if (i % 8 == 7)
            run_for(w, 1);
    }
    run_for(w, 50);
    assert_int_equal(w->stream_gone, 1);
    assert_int_equal(http_server_connections(w->server), 0);
    free(line);
    close(fd);
}

static void more_streams_than_allowed_get_503(void **state)
{
    struct world *w = *state;
    int fd = raw_open(w);

    raw_send(fd, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    run_for(w, 50);
    assert_problem(get(w, "/events"), 503, "limit");
    close(fd);
}

/* ---- tests: bad input and slow clients ---- */

static void a_body_over_the_limit_is_refused_before_it_is_read(void **state)
{
    struct world *w = *state;
    char text[2048];
    int fd = raw_open(w);

    raw_send(fd, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
    run_for(w, 50);
    assert_true(raw_read(fd, text, sizeof text) > 0);
    assert_non_null(strstr(text, "413"));
    assert_non_null(strstr(text, "\"code\":\"limit\""));
    assert_int_equal(w->handled, 0);
    close(fd);
}

static void bodies_that_are_only_announced_keep_nobody_out(void **state)
{
    struct world *w = *state;
    char text[2048], *body = calloc(1, 100001);
    int silent[4], fd;

    for (int i = 0; i < 4; i++) {
        silent[i] = raw_open(w);
        raw_send(silent[i], "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc");
    }
    run_for(w, 50);
    fd = raw_open(w);
    memset(body, 'x', 100000);
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    raw_send(fd, body);
    run_for(w, 100);
    assert_true(raw_read(fd, text, sizeof text) > 0);
    assert_non_null(strstr(text, "200"));
    close(fd);

    fd = raw_open(w); /* what is held counts */
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 250000\r\n\r\n");
    for (int i = 0; i < 5; i++) {
        body[50000] = 0;
        raw_send(fd, body);
        run_for(w, 50);
    }
    run_for(w, 50);
    assert_true(raw_read(fd, text, sizeof text) > 0);
    assert_non_null(strstr(text, "503"));
    close(fd);
    for (int i = 0; i < 4; i++)
        close(silent[i]);
    free(body);
}

static void a_refusal_at_the_headers_ends_the_upload(void **state)
{
    struct world *w = *state;
    char text[2048];
    int fd = raw_open(w);

    raw_send(fd, "PUT /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
    run_for(w, 50);
    raw_read(fd, text, sizeof text);
    assert_non_null(strstr(text, "403"));
    assert_non_null(strstr(text, "enrol first"));
    assert_int_equal(w->handled, 0);
    close(fd);
}

static void a_body_of_unknown_length_is_refused(void **state)
{
    struct world *w = *state;
    char text[2048];
    int fd = raw_open(w);

    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    run_for(w, 50);
    raw_read(fd, text, sizeof text);
    assert_non_null(strstr(text, "411"));
    close(fd);
}

static void garbage_gets_an_error_and_the_server_lives(void **state)
{
    static const char *const garbage[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "\x16\x03\x01\x02",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /%00%ff%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    struct world *w = *state;
    int fds[8];

    for (size_t i = 0; i < 8; i++) {
        fds[i] = raw_open(w);
        raw_send(fds[i], garbage[i]);
    }
    run_for(w, 100);
    assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
    assert_int_equal(w->handled, 0);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
}

static void headers_over_the_limit_are_refused(void **state)
{
    struct world *w = *state;
    char text[2048], line[1024];
    int fd = raw_open(w);

    raw_send(fd, "GET /v1/blocks/a HTTP/1.1\r\nHost: x\r\n");
    memset(line, 'y', sizeof line);
    memcpy(line, "X-A: ", 5);
    memcpy(line + sizeof line - 3, "\r\n", 3);
    for (int i = 0; i < 40; i++)
        raw_send(fd, line);
    run_for(w, 100);
    raw_read(fd, text, sizeof text);
    assert_non_null(strstr(text, "431"));
    close(fd);
}

static void a_client_that_dribbles_its_headers_is_cut_off(void **state)
{
    struct world *w = *state;
    char text[256];
    int fd = raw_open(w);

    raw_send(fd, "GET / HTTP/1.1\r\nX: ");
    for (int i = 0; i < 16; i++) {
        raw_send(fd, "a");
        run_for(w, 50);
    }
    assert_int_equal(raw_read(fd, text, sizeof text), -1);
    assert_int_equal(http_server_connections(w->server), 0);
    close(fd);
}

static void a_client_that_dribbles_its_body_is_cut_off(void **state)
{
    struct world *w = *state;
    int fd = raw_open(w);

    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n");
    for (int i = 0; i < 24; i++) {
        raw_send(fd, "a");
        run_for(w, 50);
    }
    assert_int_equal(http_server_connections(w->server), 0);
    assert_int_equal(w->handled, 0);
    close(fd);
}

static void many_idle_connections_do_not_stop_others(void **state)
{
    struct world *w = *state;
    int fds[200];

    for (int i = 0; i < 200; i++)
        fds[i] = raw_open(w);
    assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
    assert_int_equal(http_server_connections(w->server), 201);
    run_for(w, 900);
    assert_int_equal(http_server_connections(w->server), 0);
    assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
    for (int i = 0; i < 200; i++)
        close(fds[i]);
}

static void too_many_requests_from_one_address_get_429(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
    assert_problem(get(w, "/v1/blocks/a"), 429, "limit");
}

static void of_too_many_connections_from_one_address_the_oldest_silent_give_way(void **state)
{
    struct world *w = *state;
    char text[16];
    int fds[5];

    for (int i = 0; i < 5; i++)
        fds[i] = raw_open(w);
    run_for(w, 50);
    assert_int_equal(http_server_connections(w->server), 3);
    for (int i = 0; i < 5; i++) /* those that were silent longest give way */
        assert_int_equal(raw_read(fds[i], text, sizeof text), i < 2 ? -1 : 0);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
}

static void a_thousand_silent_connections_keep_nobody_out(void **state)
{
    struct world *w = *state;
    int fds[700];
    unsigned opened = 0, most = 0;

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 700; i++) {
            fds[i] = raw_open(w);
            opened++;
            if (i % 7 == 0)
                raw_send(fds[i], "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nabc");
            if (i % 50 == 49) {
                run_for(w, 10); /* client and server are one thread here: let it accept */
                assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
                if (http_server_connections(w->server) > most)
                    most = http_server_connections(w->server);
            }
        }
        for (int i = 0; i < 700; i++)
            close(fds[i]);
        run_for(w, 20);
    }
    assert_int_equal(opened, 1400);
    assert_true(most <= http_limits_default.connections_per_address + 64);
    assert_true(http_server_counts(w->server)->pushed_out > 0);
}

static const struct secret_key *caller; /* whose calls `send_garbage` makes */

static struct http_answer *send_garbage(struct world *w)
{
    return ask(w, (struct http_call){ .method = "POST", .body = "{", .size = 1, .identity = caller }, "/refuse");
}

/* Garbage from this address until it is banned. */
static void earn_ban(struct world *w)
{
    for (int i = 0; i < SENDER_BAN / 10; i++)
        assert_problem(send_garbage(w), 400, "syntax");
    for (int i = 0; i < 5; i++) /* what was forgotten meanwhile */
        send_garbage(w);
    assert_problem(send_garbage(w), 429, "banned");
    assert_int_equal(http_server_counts(w->server)->banned, 1);
}

static void who_sends_garbage_is_banned_from_sending_and_may_still_read(void **state)
{
    struct world *w = *state;

    caller = NULL;
    earn_ban(w);
    assert_problem(ask(w, (struct http_call){ .method = "POST", .body = "x", .size = 1 }, "/echo"), 429, "banned");
    for (int i = 0; i < 20; i++)
        assert_int_equal(get(w, "/v1/blocks/a")->status, 200);
}

static void a_known_key_is_heard_from_a_banned_address(void **state)
{
    struct world *w = *state;
    struct http_call call = { .method = "POST", .body = "x", .size = 1, .identity = &enrolled };

    caller = NULL;
    earn_ban(w);
    assert_int_equal(ask(w, call, "/echo")->status, 200);
    call.identity = &stranger;
    assert_problem(ask(w, call, "/echo"), 429, "banned");
    call.identity = &enrolled;
    assert_int_equal(ask(w, call, "/echo")->status, 200);
}

static void a_key_that_sends_garbage_is_banned_and_its_address_is_not(void **state)
{
    struct world *w = *state;

    caller = &enrolled;
    for (int i = 0; i < SENDER_BAN / 10 + 5; i++)
        send_garbage(w);
    caller = NULL;
    assert_problem(send_garbage(w), 400, "syntax");
    assert_int_equal(http_server_counts(w->server)->banned, 1);
    assert_int_equal(ask(w, (struct http_call){ .method = "POST", .body = "x", .size = 1 }, "/echo")->status, 200);
}

static void nobody_is_framed_with_anothers_header(void **state)
{
    struct world *w = *state;
    char value[REQUEST_KEY_TEXT], url[128], text[1024], answer[1024];

    snprintf(url, sizeof url, "%s/refuse", http_server_url(w->server));
    assert_true(request_key_make(&enrolled, "POST", url, "good", 4, value));
    snprintf(text, sizeof text, "POST /refuse HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 4\r\n\r\nevil", value);
    for (int i = 0; i < SENDER_BAN / 10 + 10; i++) {
        int fd = raw_open(w);

        raw_send(fd, text);
        run_for(w, 2);
        raw_read(fd, answer, sizeof answer);
        close(fd);
    }
    assert_int_equal(http_server_counts(w->server)->banned, 1); /* the address */
    assert_int_equal(
        ask(w, (struct http_call){ .method = "POST", .body = "x", .size = 1, .identity = &enrolled }, "/echo")->status, 200);
}

static void a_port_in_use_is_told_with_a_hint(void **state)
{
    struct world *w = *state;
    struct error err;
    struct http_server_options options = { .routes = routes, .port = http_server_port(w->server) };

    assert_null(http_server_new(&w->loop, &options, &err));
    assert_int_equal(err.code, ERROR_IO);
    assert_non_null(strstr(err.hint, "another port"));
    options.address = "localhost";
    assert_null(http_server_new(&w->loop, &options, &err));
    assert_int_equal(err.code, ERROR_RANGE);
}

/* ---- tests: the client ---- */

static void an_answer_over_the_limit_ends_the_call(void **state)
{
    char body[2000] = { 0 };
    struct http_answer *answer =
        ask(*state, (struct http_call){ .method = "POST", .body = body, .size = sizeof body, .limit = 1999 }, "/echo");

    assert_int_equal(answer->error.code, ERROR_LIMIT);
    assert_int_equal(answer->body.size, 0);
}

static void a_server_that_is_silent_times_out(void **state)
{
    struct http_answer *answer = ask(*state, (struct http_call){ .method = "GET", .total_ms = 100 }, "/later");

    assert_int_equal(answer->error.code, ERROR_TIMEOUT);
}

static void no_connection_is_inherited_by_children(void **state)
{
    struct world *w = *state;
    unsigned sockets = 0;

    get(w, "/v1/blocks/a");
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in at;
        socklen_t size = sizeof at;

        if (getsockname(fd, (struct sockaddr *)&at, &size) || at.sin_family != AF_INET)
            continue;
        sockets++;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(sockets, 3); /* listening, and both ends of one connection */
}

static void nobody_listening_is_a_network_error(void **state)
{
    struct world *w = *state;
    struct http_call call = { .method = "GET", .url = "http://127.0.0.1:1/" };
    struct error err;

    assert_non_null(http_client_send(w->client, &call, on_done, w, &err));
    run_for(w, 100);
    assert_int_equal(w->done, 1);
    assert_int_equal(w->last.error.code, ERROR_NETWORK);
}

static void a_cancelled_call_is_never_done(void **state)
{
    struct world *w = *state;
    char *url = http_url_join(http_server_url(w->server), "/later");
    struct http_call call = { .method = "GET", .url = url };
    struct error err;
    struct http_transfer *transfer = http_client_send(w->client, &call, on_done, w, &err);

    run_for(w, 50);
    http_transfer_cancel(transfer);
    run_for(w, 400);
    assert_int_equal(w->done, 0);
    free(url);
}

static void on_done_free(void *context, struct http_answer *answer)
{
    struct world *w = context;

    (void)answer;
    w->done++;
    http_client_free(w->client);
    w->client = NULL;
}

static void the_client_may_be_freed_from_within_done(void **state)
{
    struct world *w = *state;
    char *url = http_url_join(http_server_url(w->server), "/v1/blocks/a");
    struct http_call call = { .method = "GET", .url = url };
    struct error err;

    for (int i = 0; i < 3; i++)
        assert_non_null(http_client_send(w->client, &call, on_done_free, w, &err));
    run_for(w, 100);
    assert_int_equal(w->done, 1);
    free(url);
}

static void plain_http_goes_to_loopback_only(void **state)
{
    static const char *const near[] = { "http://127.0.0.1", "http://127.3.2.1:80/x", "http://localhost:1", "http://[::1]:5/" };
    static const char *const far[] = { "http://10.0.0.1", "http://127.0.0.1.example", "http://localhost.example",
                                       "http://127.0.0.1@example" };
    struct world *w = *state;
    struct error err;

    for (int i = 0; i < 4; i++) {
        struct http_call call = { .method = "GET", .url = far[i] };

        assert_true(http_url_is_loopback(near[i]));
        assert_false(http_url_is_loopback(far[i]));
        assert_null(http_client_send(w->client, &call, on_done, w, &err));
        assert_int_equal(err.code, ERROR_REFUSED);
    }

    struct http_call call = { .method = "GET", .url = "file:///etc/passwd" };

    assert_null(http_client_send(w->client, &call, on_done, w, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
}

static void a_problem_becomes_an_error_with_its_code(void **state)
{
    struct error err;

    assert_false(http_answer_ok(ask(*state, (struct http_call){ .method = "PUT", .body = "x", .size = 1 }, "/closed"), &err));
    assert_int_equal(err.code, ERROR_REFUSED);
    assert_non_null(strstr(err.message, "no such block is expected"));
}

static void fetch_without_a_loop_tells_what_went_wrong(void **state)
{
    struct http_call call = { .method = "GET", .url = "http://127.0.0.1:1/" };
    struct http_answer answer;
    struct error err;

    (void)state;
    assert_false(http_fetch(&call, false, &answer, &err));
    assert_int_equal(err.code, ERROR_NETWORK);
    buffer_free(&answer.body);
}

#define T(name)      cmocka_unit_test_setup_teardown(name, begin, end)
#define STRICT(name) cmocka_unit_test_setup_teardown(name, begin_strict, end)
#define FEW(name)    cmocka_unit_test_setup_teardown(name, begin_few, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_route_gets_its_parameters_query_and_address),
        T(head_is_answered_by_the_get_route_without_a_body),
        T(unknown_paths_and_methods_are_problems),
        T(a_body_of_a_megabyte_comes_back_whole),
        T(a_file_is_sent_whole),
        T(connections_are_kept_between_calls),
        T(a_deferred_request_is_answered_from_the_loop),
        T(a_deferred_request_that_nobody_answers_gets_504),
        T(closing_the_server_tells_deferred_requests_and_streams),
        T(a_handler_that_forgets_to_answer_gives_500),
        T(events_arrive_as_they_are_sent),
        T(a_listener_that_does_not_read_is_cut_off),
        STRICT(more_streams_than_allowed_get_503),
        STRICT(bodies_that_are_only_announced_keep_nobody_out),
        T(a_body_over_the_limit_is_refused_before_it_is_read),
        T(a_refusal_at_the_headers_ends_the_upload),
        T(a_body_of_unknown_length_is_refused),
        T(garbage_gets_an_error_and_the_server_lives),
        STRICT(headers_over_the_limit_are_refused),
        STRICT(a_client_that_dribbles_its_headers_is_cut_off),
        STRICT(a_client_that_dribbles_its_body_is_cut_off),
        STRICT(many_idle_connections_do_not_stop_others),
        FEW(too_many_requests_from_one_address_get_429),
        FEW(of_too_many_connections_from_one_address_the_oldest_silent_give_way),
        T(a_thousand_silent_connections_keep_nobody_out),
        T(who_sends_garbage_is_banned_from_sending_and_may_still_read),
        T(a_known_key_is_heard_from_a_banned_address),
        T(a_key_that_sends_garbage_is_banned_and_its_address_is_not),
        T(nobody_is_framed_with_anothers_header),
        T(a_port_in_use_is_told_with_a_hint),
        T(an_answer_over_the_limit_ends_the_call),
        T(a_server_that_is_silent_times_out),
        T(no_connection_is_inherited_by_children),
        T(nobody_listening_is_a_network_error),
        T(a_cancelled_call_is_never_done),
        T(the_client_may_be_freed_from_within_done),
        T(plain_http_goes_to_loopback_only),
        T(a_problem_becomes_an_error_with_its_code),
        T(fetch_without_a_loop_tells_what_went_wrong),
    };

    if (sodium_init() < 0)
        return 1;
    secret_key_new(&enrolled);
    secret_key_new(&stranger);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
