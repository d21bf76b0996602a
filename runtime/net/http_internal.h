/* http_internal.h - what http_server, http_request and event_stream share; not for other folders.
 *
 *     server ─< connection (one socket) ── request (at most one at a time) ── stream (at most one)
 *
 * libmicrohttpd calls back: connection_notify (socket opened, closed), access (headers, body parts, end), completed.
 */
#ifndef RONDO_NET_HTTP_INTERNAL_H
#define RONDO_NET_HTTP_INTERNAL_H

#include <microhttpd.h>

#include "native/base/library.h"
#include "runtime/net/http_server.h"
#include "runtime/net/request_key.h"
#include "runtime/net/sender.h"
#include "runtime/net/tls.h"

#define MHD_CALLS(CALL)                                                                                                          \
    CALL(MHD_, add_response_header)                                                                                              \
    CALL(MHD_, create_response_from_buffer)                                                                                      \
    CALL(MHD_, create_response_from_callback)                                                                                    \
    CALL(MHD_, create_response_from_fd64)                                                                                        \
    CALL(MHD_, destroy_response)                                                                                                 \
    CALL(MHD_, get_connection_info)                                                                                              \
    CALL(MHD_, get_daemon_info)                                                                                                  \
    CALL(MHD_, get_fdset2)                                                                                                       \
    CALL(MHD_, get_reason_phrase_for)                                                                                            \
    CALL(MHD_, get_timeout)                                                                                                      \
    CALL(MHD_, lookup_connection_value)                                                                                          \
    CALL(MHD_, queue_response)                                                                                                   \
    CALL(MHD_, resume_connection)                                                                                                \
    CALL(MHD_, run)                                                                                                              \
    CALL(MHD_, run_from_select)                                                                                                  \
    CALL(MHD_, start_daemon)                                                                                                     \
    CALL(MHD_, stop_daemon)                                                                                                      \
    CALL(MHD_, suspend_connection)

LIBRARY_CALLS(mhd, MHD_CALLS)

#define HTTP_PARAMETERS     4
#define HTTP_ANSWER_HEADERS 4
#define HTTP_ADDRESS        64

struct http_connection {
    struct http_connection *next, *previous;
    struct http_server *server;
    struct http_request *request; /* NULL between requests */
    uint64_t since;               /* loop time: connected, last answer sent, or headers complete */
    int socket;
    bool cut;    /* shut down by us, not yet closed by the library */
    bool served; /* a request of it was answered */
    bool proven; /* one proved a key that the server knows: `key` */
    struct public_key key;
    char address[HTTP_ADDRESS];
};

struct http_request {
    struct http_server *server;
    struct http_connection *connection;
    struct MHD_Connection *handle;
    const struct http_route *route;
    const char *method;
    char *path;                              /* owned */
    char *segments;                          /* owned copy of the path that the parameters point into */
    const char *parameters[HTTP_PARAMETERS]; /* in the order of the pattern */
    struct buffer body;
    size_t expected; /* Content-Length */
    struct MHD_Response *response;
    int status;
    struct {
        char name[48], value[512];
    } headers[HTTP_ANSWER_HEADERS];
    unsigned header_count;
    bool suspended, deferred;
    bool key_asked; /* whether it proves a key has been looked at */
    unsigned limit_ms;
    void (*gone)(void *context);
    void *gone_context;
    struct event_stream *stream;
};

struct http_server {
    struct http_counts counts;
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t run_timer, sweep_timer;
    uv_idle_t again;        /* the library has more to do: at the next turn of the loop */
    unsigned open_handles;  /* the four above, until each is closed */
    struct http_wait *wait; /* with TLS; NULL: the library waits for itself */
    const struct http_route *routes;
    void *context;
    struct http_limits limits;
    struct http_connection *connections;
    unsigned connection_count, stream_count;
    size_t body_bytes;
    uint16_t port;
    char url[96];                   /* without a pin: what requests are made to */
    char pinned[96 + TLS_PIN_TEXT]; /* with it, where there is one */
    bool closing;
    bool resumed;                 /* a connection was resumed: the library must run again */
    struct sender_table *senders; /* owned */
    bool (*knows)(const struct public_key *key, void *context);
    char origin[288]; /* of the endpoint that others reach it by; empty: none but url */
};

/* http_request.c */
struct http_request *http_request_new(struct http_server *server, struct http_connection *connection,
                                      struct MHD_Connection *handle, const char *path, const char *method);
void http_request_free(struct http_request *request);  /* calls `gone` when deferred and not answered */
void http_request_begin(struct http_request *request); /* headers are there: route, limits, admit */
bool http_request_take(struct http_request *request, const char *bytes, size_t size);
void http_request_handle(struct http_request *request);
enum MHD_Result http_request_queue(struct http_request *request); /* hands the stored response to the library */
void http_answer_response(struct http_request *request, int status, const char *type, struct MHD_Response *response);

/* http_connection.c */
void http_connection_notify(void *context, struct MHD_Connection *handle, void **slot, enum MHD_ConnectionNotificationCode code);
void http_connection_sweep(struct http_connection *connection, uint64_t now); /* our own deadlines */
void http_connection_cut(struct http_connection *connection); /* shuts the socket down; the library then ends the request */

/* http_server.c */
void http_connection_resume(struct http_server *server, struct MHD_Connection *handle);

/* http_wait.c */
bool http_wait_new(struct http_server *server, struct error *err);
void http_wait_free(struct http_server *server);
int http_wait_descriptor(const struct http_server *server); /* readable when there is something to do */
void http_wait_run(struct http_server *server);
void http_wait_forget(struct http_server *server, int fd); /* about to be closed */

/* event_stream.c */
void event_stream_ping(struct event_stream *stream);
void event_stream_wake(struct event_stream *stream); /* resumes a suspended stream */
void event_stream_gone(struct event_stream *stream); /* the connection is over: tells the owner, frees */

#endif
