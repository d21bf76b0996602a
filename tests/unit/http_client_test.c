/* http_client_test.c - the client: limits, time-outs, cancelling, where plain HTTP may go. */
#include "tests/unit/http_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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

    return !world_start() || cmocka_run_group_tests(tests, NULL, NULL);
}
