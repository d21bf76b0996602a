/* tls_test.c - a certificate of one's own, pins in URLs, and a server and client that speak TLS on one loop. */
#include "runtime/net/tls.h"
#include "tests/unit/http_world.h"

static const uint8_t secret[TLS_SECRET] = { 1 }, other[TLS_SECRET] = { 2 };
static struct error err;

static int begin_tls(void **state)
{
    return begin_with(state, http_limits_default, secret);
}

static struct http_answer *echo(struct world *w, const char *base, const void *body, size_t size)
{
    return ask_at(w, (struct http_call){ .method = "POST", .body = body, .size = size }, base, "/echo");
}

/* The server's URL with another pin, or none. */
static void repin(const struct world *w, const uint8_t *fingerprint, char out[300])
{
    const char *url = http_server_url(w->server);
    char plain[200];

    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(url, "#"), url);
    if (fingerprint)
        assert_true(tls_pin_add(plain, fingerprint, out, 300));
    else
        snprintf(out, 300, "%s", plain);
}

static void one_secret_has_one_fingerprint(void **state)
{
    struct tls_certificate a, b, c;

    (void)state;
    assert_true(tls_certificate_make(secret, &a, &err));
    assert_true(tls_certificate_make(secret, &b, &err));
    assert_true(tls_certificate_make(other, &c, &err));
    assert_memory_equal(a.fingerprint, b.fingerprint, TLS_FINGERPRINT);
    assert_memory_not_equal(a.fingerprint, c.fingerprint, TLS_FINGERPRINT);
    assert_string_equal(a.key, b.key);
    tls_certificate_free(&a), tls_certificate_free(&b), tls_certificate_free(&c);
}

static void a_pin_is_read_as_it_was_added(void **state)
{
    uint8_t fingerprint[TLS_FINGERPRINT], again[TLS_FINGERPRINT];
    char url[200];
    size_t length;
    bool pinned;

    (void)state;
    for (uint8_t i = 0; i < TLS_FINGERPRINT; i++)
        fingerprint[i] = (uint8_t)(i * 7);
    assert_true(tls_pin_add("https://x:1", fingerprint, url, sizeof url));
    assert_true(tls_pin_split(url, &length, &pinned, again, &err));
    assert_true(pinned);
    assert_int_equal(length, strlen("https://x:1"));
    assert_memory_equal(fingerprint, again, TLS_FINGERPRINT);
    assert_true(tls_pin_split("http://x:1", &length, &pinned, again, &err));
    assert_false(pinned);
    assert_false(tls_pin_add("https://x:1", fingerprint, url, 50));
}

static void what_is_no_pin_is_refused(void **state)
{
    static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    char url[300];
    const char *const bad[] = { "https://x#", "https://x#sha256=", "https://x#sha256=00", "https://x#top" };
    uint8_t fingerprint[TLS_FINGERPRINT];
    size_t length;
    bool pinned;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tls_pin_split(bad[i], &length, &pinned, fingerprint, &err));
    snprintf(url, sizeof url, "http://x#sha256=%s", digits);
    assert_false(tls_pin_split(url, &length, &pinned, fingerprint, &err));
    snprintf(url, sizeof url, "https://x#sha256=%s0", digits);
    assert_false(tls_pin_split(url, &length, &pinned, fingerprint, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
}

static void a_pinned_server_is_spoken_to(void **state)
{
    struct world *w = *state;
    size_t size = 3u << 19;
    uint8_t *body = malloc(size);

    assert_memory_equal(http_server_url(w->server), "https://127.0.0.1:", 18);
    randombytes_buf(body, size);
    for (int i = 0; i < 3; i++) {
        struct http_answer *answer = echo(w, http_server_url(w->server), body, size);

        assert_int_equal(answer->status, 200);
        assert_int_equal(answer->body.size, size);
        assert_memory_equal(answer->body.bytes, body, size);
    }
    assert_int_equal(http_server_connections(w->server), 1);
    free(body);
}

static void another_key_than_promised_is_refused_by_name(void **state)
{
    struct world *w = *state;
    struct tls_certificate wrong;
    char url[300];

    assert_true(tls_certificate_make(other, &wrong, &err));
    assert_int_equal(echo(w, http_server_url(w->server), "x", 1)->status, 200); /* no connection of it is reused */
    repin(w, wrong.fingerprint, url);

    struct http_answer *answer = echo(w, url, "x", 1);

    assert_int_equal(answer->status, 0);
    assert_int_equal(answer->error.code, ERROR_MISMATCH);
    assert_non_null(strstr(answer->error.message, "not the one that was promised"));
    tls_certificate_free(&wrong);
}

static void a_certificate_of_its_own_without_a_pin_is_not_trusted(void **state)
{
    struct world *w = *state;
    char url[300];

    repin(w, NULL, url);
    assert_int_equal(echo(w, url, "x", 1)->error.code, ERROR_NETWORK);
}

static void plain_http_gets_nothing_from_a_server_with_tls(void **state)
{
    struct world *w = *state;
    char url[300], plain[300];

    repin(w, NULL, url);
    snprintf(plain, sizeof plain, "http%s", url + 5);
    assert_int_equal(echo(w, plain, "x", 1)->error.code, ERROR_NETWORK);
    assert_int_equal(echo(w, http_server_url(w->server), "x", 1)->status, 200);
}

#define TLS(name) cmocka_unit_test_setup_teardown(name, begin_tls, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_secret_has_one_fingerprint),    cmocka_unit_test(a_pin_is_read_as_it_was_added),
        cmocka_unit_test(what_is_no_pin_is_refused),         TLS(a_pinned_server_is_spoken_to),
        TLS(another_key_than_promised_is_refused_by_name),   TLS(a_certificate_of_its_own_without_a_pin_is_not_trusted),
        TLS(plain_http_gets_nothing_from_a_server_with_tls),
    };

    return sodium_init() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
