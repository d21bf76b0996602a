/* http_test.c - what a handler may answer, now, later or as a stream of events. */
#include "native/base/file.h"
#include "tests/unit/http_world.h"

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

static const char events[] = "GET /events HTTP/1.1\r\nHost: x\r\n\r\n";

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
    raw_send(b, events);
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
    char text[RAW_ANSWER];
    int fd = raw_open(w);

    assert_true(raw_ask(w, fd, events, text) > 0);
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
    raw_send(fd, events);
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

    raw_send(fd, events);
    run_for(w, 50);
    assert_problem(get(w, "/events"), 503, "limit");
    close(fd);
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
        T(a_port_in_use_is_told_with_a_hint),
    };

    return !world_start() || cmocka_run_group_tests(tests, NULL, NULL);
}
