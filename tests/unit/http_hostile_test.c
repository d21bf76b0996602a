/* http_hostile_test.c - bad input, slow and greedy clients, and who is banned. */
#include "runtime/net/request_key.h"
#include "runtime/net/sender.h"
#include "tests/unit/http_world.h"

static void a_body_over_the_limit_is_refused_before_it_is_read(void **state)
{
    assert_refused(*state, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", "413", "\"code\":\"limit\"");
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
    assert_refused(*state, "PUT /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc", "403", "enrol first");
}

static void a_body_of_unknown_length_is_refused(void **state)
{
    assert_refused(*state, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "411",
                   "Content-Length");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    return !world_start() || cmocka_run_group_tests(tests, NULL, NULL);
}
