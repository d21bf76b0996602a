/* http_client.h - HTTP requests that never block the loop: libcurl's multi interface on the node's libuv loop.
 *
 *     http_client_send(client, &call, done, context, err)  ──>  done(context, &answer)    once, later, from the loop
 *
 * Connections are kept alive and shared by all calls of a client. Redirects are not followed, proxies of the environment not used,
 * and no protocol but HTTP and HTTPS is spoken. Plain HTTP goes to loopback addresses only, unless the client was made with
 * `plain`; HTTPS is verified against the pin that the URL ends with (tls.h), else against the system's certificates. An unexpected key: mismatch.
 * An answer larger than its limit ends the call.
 */
#ifndef RONDO_NET_HTTP_CLIENT_H
#define RONDO_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/crypto/sign.h"

struct http_client;
struct http_transfer;

struct http_call {
    const char *method; /* GET, HEAD, PUT, POST */
    const char *url;
    const char *type;     /* content type of the body; NULL: none */
    const void *body;     /* copied */
    size_t size;          /* of the body, bytes */
    size_t limit;         /* of the answer's body, bytes; 0: HTTP_ANSWER_LIMIT */
    bool bulk;            /* the answer is large: it is taken from the socket in large pieces */
    struct buffer *space; /* memory for the answer, which is taken; NULL: none */
    unsigned connect_ms;  /* 0: 5,000 */
    unsigned slow_bytes;  /* a second: fewer for three seconds end the call (timeout). 0: no such limit */
    unsigned total_ms;    /* 0: 30,000 */
    const struct secret_key
        *identity; /* whose request it is (request_key.h); NULL: the client's, or nobody's. Borrowed for the call */
};

#define HTTP_ANSWER_LIMIT (2u << 20)

struct http_answer {
    int status;         /* 0 when there was none: see error */
    char type[64];      /* content type, "" when absent */
    struct buffer body; /* http_client_send: lent to `done`, which may take it by zeroing the struct */
    struct error error; /* network, timeout, limit; code ERROR_NONE when an answer came, whatever its status */
};

/* True for a status 2xx. Otherwise false, with the code and detail of a problem document in the body put into `err`, or
 * `network` with the status; the answer's own error when there was no answer. */
bool http_answer_ok(const struct http_answer *answer, struct error *err);

struct http_client_options {
    bool plain;                        /* plain HTTP to addresses other than loopback */
    unsigned connections;              /* in all, 0: 64 */
    unsigned connections_per_host;     /* 0: 8; more calls wait their turn */
    const struct secret_key *identity; /* of every call; borrowed for the client's life; NULL: none */
};

/* `options` may be NULL. NULL with `err` (memory). */
struct http_client *http_client_new(uv_loop_t *loop, const struct http_client_options *options, struct error *err);

/* Drops what is on its way without calling `done`. The loop must run until its handles are closed. NULL is fine. May be called
 * from within `done`. */
void http_client_free(struct http_client *client);

/* Starts a call. `done` runs once, later, never from within this function. The transfer is valid until then and may be ignored.
 * NULL with `err` (syntax: the URL; refused: plain HTTP to another machine); `done` is then not called. */
struct http_transfer *http_client_send(struct http_client *client, const struct http_call *call,
                                       void (*done)(void *context, struct http_answer *answer), void *context, struct error *err);

/* Ends a call that is not done: `done` will not run. */
void http_transfer_cancel(struct http_transfer *transfer);

/* For the command line, where there is no loop: sends and waits. `plain` as above. False with `err` = answer->error when no answer
 * came. The caller frees answer->body. */
bool http_fetch(const struct http_call *call, bool plain, struct http_answer *answer, struct error *err);

/* True for http://127.x.y.z, http://[::1] and http://localhost, with or without port and path. */
bool http_url_is_loopback(const char *url);

/* base without slashes at its end + path; a pin stays at the end. The caller frees. */
char *http_url_join(const char *base, const char *path);

#endif
