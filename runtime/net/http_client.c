#include "runtime/net/http_client.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "native/base/json.h"
#include "native/base/library.h"
#include "runtime/net/request_key.h"
#include "runtime/net/tls.h"

#define CURL_CALLS(CALL)                                                                                                         \
    CALL(curl_, easy_cleanup)                                                                                                    \
    CALL(curl_, easy_getinfo)                                                                                                    \
    CALL(curl_, easy_init)                                                                                                       \
    CALL(curl_, easy_perform)                                                                                                    \
    CALL(curl_, easy_setopt)                                                                                                     \
    CALL(curl_, easy_strerror)                                                                                                   \
    CALL(curl_, free)                                                                                                            \
    CALL(curl_, multi_add_handle)                                                                                                \
    CALL(curl_, multi_assign)                                                                                                    \
    CALL(curl_, multi_cleanup)                                                                                                   \
    CALL(curl_, multi_info_read)                                                                                                 \
    CALL(curl_, multi_init)                                                                                                      \
    CALL(curl_, multi_remove_handle)                                                                                             \
    CALL(curl_, multi_setopt)                                                                                                    \
    CALL(curl_, multi_socket_action)                                                                                             \
    CALL(curl_, slist_append)                                                                                                    \
    CALL(curl_, slist_free_all)                                                                                                  \
    CALL(curl_, url)                                                                                                             \
    CALL(curl_, url_cleanup)                                                                                                     \
    CALL(curl_, url_get)                                                                                                         \
    CALL(curl_, url_set)

LIBRARY_CALLS(curl, CURL_CALLS)
LIBRARY_LOAD(curl, LIBRARY_CURL, CURL_CALLS)

#define PROBLEM_LIMIT 65536
#define BULK_PIECE    (256l << 10)

/* One call on its way; in the client's list from send until `done` or cancel. */
struct http_transfer {
    struct http_transfer *next, *previous;
    struct http_client *client; /* NULL for http_fetch */
    CURL *easy;
    struct curl_slist *headers;
    struct http_answer answer;
    size_t limit;
    bool over; /* the answer passed its limit */
    char reason[CURL_ERROR_SIZE];
    struct buffer body; /* what is sent */
    void (*done)(void *context, struct http_answer *answer);
    void *context;
};

/* A socket the library wants watched. */
struct watch {
    uv_poll_t poll;
    struct http_client *client;
    curl_socket_t socket;
};

struct http_client {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    bool plain, closing, inside, timer_closed;
    unsigned watches; /* not yet closed */
    const struct secret_key *identity;
    struct http_transfer *transfers;
};

/* ---- URLs ---- */

bool http_url_is_loopback(const char *url)
{
    CURLU *parts = curl()->url();
    char *host = NULL, *user = NULL;
    unsigned a, b, c, d;
    bool loopback = false;
    char end;

    if (!parts)
        return false;
    if (!curl()->url_set(parts, CURLUPART_URL, url, 0) && !curl()->url_get(parts, CURLUPART_HOST, &host, 0)) {
        loopback = strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
                   (sscanf(host, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &end) == 4 && a == 127);
        if (!curl()->url_get(parts, CURLUPART_USER, &user, 0))
            loopback = false;
    }
    curl()->free(host);
    curl()->free(user);
    curl()->url_cleanup(parts);
    return loopback;
}

char *http_url_join(const char *base, const char *path)
{
    size_t size = strcspn(base, "#"), more = strlen(path);
    const char *pin = base + size;
    char *url;

    while (size && base[size - 1] == '/')
        size--;
    url = malloc(size + more + strlen(pin) + 1);
    if (!url)
        abort();
    memcpy(url, base, size);
    memcpy(url + size, path, more);
    strcpy(url + size + more, pin);
    return url;
}

static bool url_admit(const char *url, bool plain, struct error *err)
{
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return error_set(err, ERROR_SYNTAX, "begin it with https:// or http://", "%.200s is not an HTTP address", url);
    if (strncasecmp(url, "http://", 7) == 0 && !plain && !http_url_is_loopback(url))
        return error_set(err, ERROR_REFUSED, "use https://, or allow plain HTTP", "plain HTTP to another machine: %.200s", url);
    return true;
}

/* ---- one transfer ---- */

/* All of an announced answer at once, in place of copies of what grows. */
static void make_room(struct http_transfer *t)
{
    curl_off_t announced;

    if (!curl()->easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced) && announced > 0 &&
        (uint64_t)announced <= t->limit)
        buffer_reserve(&t->answer.body, (size_t)announced);
}

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
    struct http_transfer *t = context;

    (void)one;
    if (size > t->limit - t->answer.body.size) {
        t->over = true;
        return 0;
    }
    if (!t->answer.body.size)
        make_room(t);
    buffer_add(&t->answer.body, bytes, size);
    return size;
}

static void header_add(struct http_transfer *t, const char *line)
{
    struct curl_slist *longer = curl()->slist_append(t->headers, line);

    if (!longer)
        abort();
    t->headers = longer;
}

static void set_body(struct http_transfer *t, const struct http_call *call)
{
    char type[128];

    buffer_add(&t->body, call->body, call->size);
    snprintf(type, sizeof type, "Content-Type: %s", call->type ? call->type : "application/octet-stream");
    header_add(t, type);
    header_add(
        t, "Expect:"); /* a refusal comes fast enough; the wait for 100 would cost a second with servers that do not send it */
    curl()->easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl()->easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->body.bytes ? (const char *)t->body.bytes : "");
    curl()->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.size);
}

/* A child that is started while a call is on its way must not inherit the connection. */
static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)context, (void)purpose;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void set_options(struct http_transfer *t, const struct http_call *call)
{
    CURL *e = t->easy;

    curl()->easy_setopt(e, CURLOPT_URL, call->url);
    curl()->easy_setopt(e, CURLOPT_PRIVATE, t);
    curl()->easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl()->easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl()->easy_setopt(e, CURLOPT_ERRORBUFFER, t->reason);
    curl()->easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl()->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl()->easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl()->easy_setopt(e, CURLOPT_PROXY, "");
    curl()->easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl()->easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl()->easy_setopt(e, CURLOPT_USERAGENT, "rondo/" RONDO_VERSION);
    curl()->easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)(call->connect_ms ? call->connect_ms : 5000));
    curl()->easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, (long)call->slow_bytes);
    curl()->easy_setopt(e, CURLOPT_LOW_SPEED_TIME, call->slow_bytes ? 3L : 0L);
    curl()->easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(call->total_ms ? call->total_ms : 30000));
    if (call->bulk)
        curl()->easy_setopt(e, CURLOPT_BUFFERSIZE, BULK_PIECE);
    if (strcmp(call->method, "HEAD") == 0)
        curl()->easy_setopt(e, CURLOPT_NOBODY, 1L);
    else if (strcmp(call->method, "GET") != 0)
        set_body(t, call);
    if (strcmp(call->method, "PUT") == 0)
        curl()->easy_setopt(e, CURLOPT_CUSTOMREQUEST, "PUT");
    curl()->easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
}

/* The pinned key alone counts: neither name nor dates nor authority. */
static bool set_pin(struct http_transfer *t, const char *url, struct error *err)
{
    uint8_t fingerprint[TLS_FINGERPRINT];
    char text[16 + sodium_base64_ENCODED_LEN(TLS_FINGERPRINT, sodium_base64_VARIANT_ORIGINAL)] = "sha256//";
    size_t length;
    bool pinned;

    if (!tls_pin_split(url, &length, &pinned, fingerprint, err))
        return false;
    if (!pinned)
        return true;
    sodium_bin2base64(text + strlen(text), sizeof text - strlen(text), fingerprint, sizeof fingerprint,
                      sodium_base64_VARIANT_ORIGINAL);
    curl()->easy_setopt(t->easy, CURLOPT_PINNEDPUBLICKEY, text);
    curl()->easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl()->easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    return true;
}

static void transfer_free(struct http_transfer *t)
{
    if (!t)
        return;
    curl()->easy_cleanup(t->easy);
    curl()->slist_free_all(t->headers);
    buffer_free(&t->body);
    buffer_free(&t->answer.body);
    free(t);
}

static void set_identity(struct http_transfer *t, const struct http_call *call, const struct secret_key *identity)
{
    char value[REQUEST_KEY_TEXT], line[REQUEST_KEY_TEXT + 16];

    if (!request_key_make(identity, call->method, call->url, call->body, call->size, value))
        return; /* the library refuses such an address itself */
    snprintf(line, sizeof line, "Authorization: %s", value);
    header_add(t, line);
}

static struct http_transfer *transfer_new(const struct http_call *call, bool plain, const struct secret_key *identity,
                                          struct error *err)
{
    if (!url_admit(call->url, plain, err))
        return NULL;

    struct http_transfer *t = calloc(1, sizeof *t);

    if (t)
        t->easy = curl()->easy_init();
    if (!t || !t->easy) {
        free(t);
        error_set(err, ERROR_MEMORY, NULL, "no memory for an HTTP request");
        return NULL;
    }
    if (call->space) {
        t->answer.body = *call->space;
        t->answer.body.size = 0;
        *call->space = (struct buffer){ 0 };
    }
    t->limit = call->limit ? call->limit : HTTP_ANSWER_LIMIT;
    if (!set_pin(t, call->url, err)) {
        transfer_free(t);
        return NULL;
    }
    if (call->identity || identity)
        set_identity(t, call, call->identity ? call->identity : identity);
    set_options(t, call);
    return t;
}

/* Turns the library's result into the answer's status, type and error. */
static void transfer_finish(struct http_transfer *t, CURLcode result)
{
    char *url = NULL, *type = NULL;
    long status = 0;

    curl()->easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    if (t->over) {
        error_set(&t->answer.error, ERROR_LIMIT, NULL, "the answer is larger than %zu bytes", t->limit);
    } else if (result == CURLE_OPERATION_TIMEDOUT) {
        error_set(&t->answer.error, ERROR_TIMEOUT, "is it running, and reachable from here?", "no answer in time");
    } else if (result == CURLE_SSL_PINNEDPUBKEYNOTMATCH) {
        error_set(&t->answer.error, ERROR_MISMATCH,
                  "somebody else answers there, or its key has changed: ask its owner for the fingerprint",
                  "the certificate is not the one that was promised");
    } else if (result != CURLE_OK) {
        const char *hint = result == CURLE_COULDNT_CONNECT ? "is it running, and reachable from here?"
                           : result == CURLE_URL_MALFORMAT ? "check the address"
                           : result == CURLE_PEER_FAILED_VERIFICATION
                               ? "is #sha256=... missing at the end of the URL? A node prints its own with it"
                               : NULL;

        error_set(&t->answer.error, ERROR_NETWORK, hint, "%s", t->reason[0] ? t->reason : curl()->easy_strerror(result));
    } else {
        curl()->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        curl()->easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
        t->answer.status = (int)status;
        snprintf(t->answer.type, sizeof t->answer.type, "%s", type ? type : "");
        return;
    }
    buffer_clear(&t->answer.body); /* half an answer is none */
    error_at(&t->answer.error, "%.200s", url ? url : "");
}

bool http_answer_ok(const struct http_answer *answer, struct error *err)
{
    const char *code = NULL, *detail = NULL;

    if (answer->error.code != ERROR_NONE) {
        if (err)
            *err = answer->error;
        return false;
    }
    if (answer->status >= 200 && answer->status < 300)
        return true;

    json_t *problem = strncmp(answer->type, "application/problem+json", 24) == 0
                          ? json_read((const char *)answer->body.bytes, answer->body.size, PROBLEM_LIMIT, NULL)
                          : NULL;
    enum error_code found = ERROR_NETWORK;

    if (problem && !json_unpack(problem, "{s:s, s:s}", "code", &code, "detail", &detail))
        for (int i = ERROR_NONE + 1; i < ERROR_CODES; i++) /* a failure stays one, whatever the peer calls it */
            if (strcmp(code, error_name((enum error_code)i)) == 0)
                found = (enum error_code)i;
    error_set(err, found, NULL, "status %d%s%.300s", answer->status, detail ? ": " : "", detail ? detail : "");
    json_decref(problem);
    return false;
}

bool http_fetch(const struct http_call *call, bool plain, struct http_answer *answer, struct error *err)
{
    struct http_transfer *t;

    *answer = (struct http_answer){ 0 };
    t = transfer_new(call, plain, NULL, &answer->error);
    if (t) {
        transfer_finish(t, curl()->easy_perform(t->easy));
        *answer = t->answer;
        t->answer.body = (struct buffer){ 0 };
        transfer_free(t);
    }
    if (answer->error.code != ERROR_NONE && err)
        *err = answer->error;
    return answer->error.code == ERROR_NONE;
}

/* ---- the loop ---- */

static void client_release(struct http_client *client)
{
    if (client->closing && client->timer_closed && client->watches == 0 && !client->inside)
        free(client);
}

static void transfer_unlink(struct http_transfer *t)
{
    if (t->previous)
        t->previous->next = t->next;
    else
        t->client->transfers = t->next;
    if (t->next)
        t->next->previous = t->previous;
    curl()->multi_remove_handle(t->client->multi, t->easy);
}

/* Hands finished transfers to their owners, who may start, cancel or free anything. */
static void deliver(struct http_client *client)
{
    CURLMsg *message;
    int left;

    client->inside = true;
    while (!client->closing && (message = curl()->multi_info_read(client->multi, &left))) {
        struct http_transfer *t = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl()->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        transfer_finish(t, result);
        transfer_unlink(t);
        t->done(t->context, &t->answer);
        transfer_free(t);
    }
    client->inside = false;
    client_release(client);
}

static void on_timer(uv_timer_t *timer)
{
    struct http_client *client = timer->data;
    int running;

    curl()->multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    deliver(client);
}

static int on_want_timer(CURLM *multi, long ms, void *context)
{
    struct http_client *client = context;

    (void)multi;
    if (client->closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&client->timer);
    else
        uv_timer_start(&client->timer, on_timer, (uint64_t)ms, 0);
    return 0;
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct http_client *client = watch->client;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0, running;

    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    curl()->multi_socket_action(client->multi, watch->socket, flags, &running);
    deliver(client);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct http_client *client = watch->client;

    free(watch);
    client->watches--;
    client_release(client);
}

static int on_want_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *slot)
{
    struct http_client *client = context;
    struct watch *watch = slot;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (!watch)
            return 0;
        curl()->multi_assign(client->multi, socket, NULL);
        uv_poll_stop(&watch->poll);
        uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        return 0;
    }
    if (!watch) {
        watch = calloc(1, sizeof *watch);
        if (!watch)
            abort();
        watch->client = client;
        watch->socket = socket;
        uv_poll_init_socket(client->loop, &watch->poll, socket);
        watch->poll.data = watch;
        client->watches++;
        curl()->multi_assign(client->multi, socket, watch);
    }
    uv_poll_start(&watch->poll, (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0), on_socket);
    return 0;
}

/* ---- life ---- */

struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *options, struct error *err)
{
    struct http_client *client = calloc(1, sizeof *client);
    long all = options && options->connections ? (long)options->connections : 64;
    long host = options && options->connections_per_host ? (long)options->connections_per_host : 8;

    if (client)
        client->multi = curl()->multi_init();
    if (!client || !client->multi) {
        free(client);
        error_set(err, ERROR_MEMORY, NULL, "no memory for an HTTP client");
        return NULL;
    }
    client->loop = loop;
    client->plain = options && options->plain;
    client->identity = options ? options->identity : NULL;
    curl()->multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_want_socket);
    curl()->multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl()->multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
    curl()->multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl()->multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, all);
    curl()->multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS, host);
    /* Otherwise it keeps four for each call on its way: a node with nothing to say would close what it needs a moment later. */
    curl()->multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, all);
    uv_timer_init(loop, &client->timer);
    client->timer.data = client;
    return client;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct http_client *client = handle->data;

    client->timer_closed = true;
    client_release(client);
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    while (client->transfers) {
        struct http_transfer *t = client->transfers;

        transfer_unlink(t);
        transfer_free(t);
    }
    client->closing = true;
    curl()->multi_cleanup(client->multi);
    uv_close((uv_handle_t *)&client->timer, on_timer_closed);
}

struct http_transfer *http_client_send(struct http_client *client, const struct http_call *call,
                                       void (*done)(void *context, struct http_answer *answer), void *context, struct error *err)
{
    struct http_transfer *t = transfer_new(call, client->plain, client->identity, err);

    if (!t)
        return NULL;
    t->client = client;
    t->done = done;
    t->context = context;
    t->next = client->transfers;
    if (t->next)
        t->next->previous = t;
    client->transfers = t;
    curl()->multi_add_handle(client->multi, t->easy); /* asks for a timer: the first byte leaves from the loop */
    return t;
}

void http_transfer_cancel(struct http_transfer *t)
{
    transfer_unlink(t);
    transfer_free(t);
}
