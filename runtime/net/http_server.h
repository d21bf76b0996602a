/* http_server.h - HTTP/1.1 for one node: a table of routes served from the node's own libuv loop.
 *
 *     uv loop ── uv_poll(epoll descriptor) ── libmicrohttpd ── route table ── handler ── answer (now, or later)
 *
 *     GET  /v1/blocks/{cid}     {name} takes one path segment, never an empty one
 *     HEAD is answered by the GET route; an unknown path is 404, a known path with another method 405
 *
 * A handler answers each request exactly once with one of the http_answer_ functions: before it returns, or later on the
 * same loop after http_request_defer. Bodies are held in memory up to the route's limit; a larger one gets 413 before a byte of
 * it is read. A slow, greedy or silent client is cut off at the limits below, never waited for.
 *
 * All functions are for the loop's thread only. Errors leave as `application/problem+json` (RFC 9457) with the members type,
 * title, status, code (stable, error_codes.h) and detail.
 */
#ifndef RONDO_NET_HTTP_SERVER_H
#define RONDO_NET_HTTP_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/crypto/sign.h"

struct http_server;
struct http_request;

/* A table of these ends with one whose method is NULL; it is borrowed for the server's life. */
struct http_route {
    const char *method;  /* GET, PUT, POST */
    const char *pattern; /* "/v1/blocks/{cid}": at most 4 parameters */
    size_t body_limit;   /* bytes; 0: no body is taken */
    /* Optional; called when the headers are there and before any of the body is read. It may answer (then the body is never
     * read and the connection ends), or leave the request to `handle`. It must not defer. */
    void (*admit)(struct http_request *request, void *context);
    void (*handle)(struct http_request *request, void *context);
};

struct http_limits {
    unsigned connections;             /* in all; the next one takes the place of one that does less (http_connection.c) */
    unsigned connections_per_address; /* likewise */
    unsigned idle_ms;                 /* from connecting, or from the last answer, to the next complete header */
    unsigned request_ms;              /* from the request line to the last byte of the answer; streams excepted */
    unsigned requests_per_second;     /* from one sender (sender.h), on average ... */
    unsigned burst;                   /* ... and at once; more get 429 */
    unsigned streams;                 /* event streams open at a time; more get 503. Strangers have half of them */
    size_t header_bytes;              /* request line and headers; more get 431 */
    size_t body_bytes;                /* of all bodies held at a time; more get 503. Strangers have half of it */
};

extern const struct http_limits http_limits_default;

struct http_server_options {
    const char *address; /* numeric IPv4 or IPv6; NULL: 127.0.0.1 */
    uint16_t port;       /* 0: the system picks one, see http_server_port */
    const struct http_route *routes;
    void *context;                    /* handed to every handler */
    const struct http_limits *limits; /* NULL: http_limits_default */
    /* Whose requests count for their key and not for their address (request_key.h). NULL: nobody's, and nobody is banned. */
    bool (*knows)(const struct public_key *key, void *context);
    const uint8_t *tls;   /* TLS_SECRET bytes, borrowed for the call (tls.h); NULL: plain HTTP */
    const char *endpoint; /* URL that others reach it by, when that is not address and port; NULL: none */
};

/* Listens. NULL with `err`: io (address in use, with a hint; not allowed; not of this machine), range (not a numeric address). */
struct http_server *http_server_new(uv_loop_t *loop, const struct http_server_options *options, struct error *err);

/* Stops listening, ends every connection (deferred requests get their `gone`), releases everything. The loop must still run
 * until its handles are closed (uv_run) before uv_loop_close. NULL is fine. Not to be called from within a handler. */
void http_server_free(struct http_server *server);

uint16_t http_server_port(const struct http_server *server);
/* "http://127.0.0.1:4711", without a slash at the end; with TLS "https://127.0.0.1:4711#sha256=..." (tls.h). Borrowed. */
const char *http_server_url(const struct http_server *server);
unsigned http_server_connections(const struct http_server *server);

/* Answers since it listens, by status, and problems among them, by code; connections cut for a deadline, or to make room; senders that are
 * banned now. Borrowed. */
enum { HTTP_STATUSES = 600 };
struct http_counts {
    uint64_t status[HTTP_STATUSES], problem[ERROR_CODES], timed_out, pushed_out;
    unsigned banned;
};
const struct http_counts *http_server_counts(struct http_server *server);

/* ---- the request; everything is borrowed and lives until it is answered ---- */

const char *http_request_method(const struct http_request *request);
const char *http_request_path(const struct http_request *request);
const char *http_request_address(const struct http_request *request); /* the peer's, numeric */
const char *http_request_parameter(const struct http_request *request,
                                   const char *name); /* of the pattern; never NULL if named there */
const char *http_request_query(const struct http_request *request, const char *name);  /* NULL when absent; decoded */
const char *http_request_header(const struct http_request *request, const char *name); /* NULL when absent; any case */
/* The key that the request proves, of those that the server knows. Looked at once, when first asked for. */
bool http_request_key(struct http_request *request, struct public_key *key);
const uint8_t *http_request_body(const struct http_request *request, size_t *size);

/* A whole decimal number in the query, or `otherwise` when absent. False with `err` (syntax, range; place: the name). */
bool http_request_query_number(const struct http_request *request, const char *name, uint64_t otherwise, uint64_t *value,
                               struct error *err);

/* The answer will come later. `gone` (may be NULL) is called instead if the request ends first: limits.request_ms has passed
 * (the client is told 504) or the server closes. After it, as after the answer, the request must not be touched.
 * `limit_ms` 0 keeps limits.request_ms; otherwise it replaces it for this request, for long polls. */
void http_request_defer(struct http_request *request, unsigned limit_ms, void (*gone)(void *context), void *context);

/* ---- answers ---- */

/* A header of the answer to come, at most 4. */
void http_answer_header(struct http_request *request, const char *name, const char *value);

void http_answer_bytes(struct http_request *request, int status, const char *type, const void *bytes, size_t size); /* copied */
void http_answer_buffer(struct http_request *request, int status, const char *type,
                        struct buffer *body);                                         /* emptied, not copied */
void http_answer_json(struct http_request *request, int status, const json_t *value); /* borrowed */
void http_answer_empty(struct http_request *request, int status);

/* An open file's first `size` bytes, sent by the kernel without a copy in this process. The descriptor is taken, and closed. */
void http_answer_file(struct http_request *request, int status, const char *type, int fd, uint64_t size);

/* The problem document of `err`. Status 0 picks the usual one of its code (http_status_of). */
void http_answer_problem(struct http_request *request, int status, const struct error *err);
int http_status_of(enum error_code code);

/* http_answer_problem with error_set's arguments. */
void http_answer_refusal(struct http_request *request, int status, enum error_code code, const char *hint, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));

#endif
