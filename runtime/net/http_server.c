#include "runtime/net/http_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/http_internal.h"

LIBRARY_LOAD(mhd, LIBRARY_MICROHTTPD, MHD_CALLS)

#define SWEEP_MS 250
/* The library takes so many more than the limit: those beyond it take the place of others (http_connection.c). */
#define SLACK 64

const struct http_limits http_limits_default = {
    .connections = 512,
    .connections_per_address = 256,
    .idle_ms = 30000,
    .request_ms = 60000,
    .requests_per_second = 2000,
    .burst = 8000,
    .streams = 64,
    .header_bytes = 32u << 10,
    .body_bytes = 256u << 20,
};

/* ---- listening ---- */

static bool address_read(const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *size, struct error *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *size = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *size = sizeof *v6;
        return true;
    }
    return error_set(err, ERROR_RANGE, "give a numeric address of this machine, such as 127.0.0.1 or ::1",
                     "%s is not a numeric address", text);
}

static bool listen_failed(int fd, const char *address, uint16_t port, struct error *err)
{
    int reason = errno;
    const char *hint = reason == EADDRINUSE      ? "another program listens there: choose another port, or 0 for any free one"
                       : reason == EACCES        ? "ports below 1024 need rights: choose a higher one"
                       : reason == EADDRNOTAVAIL ? "the address is not one of this machine"
                                                 : "check address and port";

    if (fd >= 0)
        close(fd);
    return error_set(err, ERROR_IO, hint, "cannot listen on %s port %u: %s", address, port, strerror(reason));
}

/* The socket is ours and not the library's, so that the reason of a failure and the port picked are known. */
static int listen_open(const char *address, uint16_t port, uint16_t *got, struct error *err)
{
    struct sockaddr_storage where;
    socklen_t size;

    if (!address_read(address, port, &where, &size, err))
        return -1;

    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, (struct sockaddr *)&where, size) ||
        listen(fd, 511) || getsockname(fd, (struct sockaddr *)&where, &size)) {
        listen_failed(fd, address, port, err);
        return -1;
    }
    *got =
        ntohs(where.ss_family == AF_INET ? ((struct sockaddr_in *)&where)->sin_port : ((struct sockaddr_in6 *)&where)->sin6_port);
    return fd;
}

/* ---- requests ---- */

static enum MHD_Result on_access(void *context, struct MHD_Connection *handle, const char *url, const char *method,
                                 const char *version, const char *part, size_t *part_size, void **slot)
{
    struct http_server *server = context;
    struct http_request *request = *slot;

    (void)version;
    if (!request) {
        const union MHD_ConnectionInfo *info = mhd()->get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        if (!info || !info->socket_context)
            return MHD_NO;
        request = http_request_new(server, info->socket_context, handle, url, method);
        *slot = request;
        http_request_begin(request);
        return request->response ? http_request_queue(request) : MHD_YES;
    }
    if (*part_size) {
        bool taken = http_request_take(request, part, *part_size);

        *part_size = 0;
        return taken ? MHD_YES : MHD_NO;
    }
    if (!request->response && !request->deferred)
        http_request_handle(request);
    if (request->response)
        return http_request_queue(request);
    request->suspended = true;
    mhd()->suspend_connection(handle);
    return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *handle, void **slot, enum MHD_RequestTerminationCode code)
{
    struct http_request *request = *slot;

    (void)context, (void)handle, (void)code;
    if (request)
        http_request_free(request);
    *slot = NULL;
}

/* ---- the loop ---- */

static void run(struct http_server *server);

static void on_run_timer(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_again(uv_idle_t *again)
{
    uv_idle_stop(again);
    run(again->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    run(poll->data);
}

static void run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait;
    bool timed;

    server->resumed = false;
    if (server->wait)
        http_wait_run(server);
    else
        mhd()->run(server->daemon);
    timed = mhd()->get_timeout(server->daemon, &wait) == MHD_YES;
    if (server->resumed || (timed && wait == 0))
        uv_idle_start(&server->again, on_again);
    else if (timed)
        uv_timer_start(&server->run_timer, on_run_timer, wait, 0);
    else
        uv_timer_stop(&server->run_timer);
}

/* Resuming alone does not wake the epoll descriptor, so the next turn of the loop is asked for. */
void http_connection_resume(struct http_server *server, struct MHD_Connection *handle)
{
    mhd()->resume_connection(handle);
    server->resumed = true;
    if (!server->closing)
        uv_idle_start(&server->again, on_again);
}

static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = uv_now(server->loop);

    for (struct http_connection *c = server->connections; c; c = c->next)
        http_connection_sweep(c, now);
}

/* ---- life ---- */

static bool daemon_start(struct http_server *server, int fd, bool v6, const struct tls_certificate *tls, struct error *err)
{
    unsigned flags = (tls ? 0u : MHD_USE_EPOLL) | MHD_ALLOW_SUSPEND_RESUME | (v6 ? MHD_USE_IPv6 : 0u) | (tls ? MHD_USE_TLS : 0u);
    struct MHD_OptionItem more[] = {
        { MHD_OPTION_END, 0, NULL }, { MHD_OPTION_END, 0, NULL }, { MHD_OPTION_END, 0, NULL }, { MHD_OPTION_END, 0, NULL }
    };
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

    signal(SIGPIPE, SIG_IGN); /* the library sends files by the kernel only where that is so */
    if (tls) {
        more[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key };
        more[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, tls->chain };
        more[2] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, priorities };
    }

    server->daemon = mhd()->start_daemon(
        flags, 0, NULL, NULL, on_access, server, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
        server->limits.connections + SLACK, MHD_OPTION_CONNECTION_MEMORY_LIMIT, server->limits.header_bytes,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        http_connection_notify, server, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        more, MHD_OPTION_END);
    if (server->daemon)
        return true;
    close(fd);
    return error_set(err, ERROR_FAULT, NULL, "the HTTP library did not start");
}

static void watch(struct http_server *server)
{
    int fd =
        server->wait ? http_wait_descriptor(server) : mhd()->get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;

    uv_poll_init(server->loop, &server->poll, fd);
    uv_idle_init(server->loop, &server->again);
    uv_timer_init(server->loop, &server->run_timer);
    uv_timer_init(server->loop, &server->sweep_timer);
    server->poll.data = server->run_timer.data = server->sweep_timer.data = server->again.data = server;
    server->open_handles = 4;
    uv_poll_start(&server->poll, UV_READABLE, on_poll);
    uv_timer_start(&server->sweep_timer, on_sweep, SWEEP_MS, SWEEP_MS);
    run(server);
}

struct http_server *http_server_new(uv_loop_t *loop, const struct http_server_options *options, struct error *err)
{
    const char *address = options->address ? options->address : "127.0.0.1";
    bool v6 = strchr(address, ':');
    struct http_server *server = calloc(1, sizeof *server);

    if (!server) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for an HTTP server");
        return NULL;
    }
    server->loop = loop;
    server->routes = options->routes;
    server->context = options->context;
    server->limits = options->limits ? *options->limits : http_limits_default;
    server->knows = options->knows;
    server->senders = sender_table_new();
    if (options->endpoint && !request_origin(options->endpoint, server->origin, sizeof server->origin))
        server->origin[0] = '\0';

    int fd = listen_open(address, options->port, &server->port, err);
    struct tls_certificate tls = { 0 };
    bool ok =
        fd >= 0 &&
        (!options->tls || (tls_certificate_make(options->tls, &tls, err) && http_wait_new(server, err)) || (close(fd), false)) &&
        daemon_start(server, fd, v6, options->tls ? &tls : NULL, err);

    snprintf(server->url, sizeof server->url, v6 ? "%s://[%s]:%u" : "%s://%s:%u", options->tls ? "https" : "http", address,
             server->port);
    snprintf(server->pinned, sizeof server->pinned, "%s", server->url);
    if (options->tls)
        tls_pin_add(server->url, tls.fingerprint, server->pinned, sizeof server->pinned);
    tls_certificate_free(&tls);
    if (!ok) {
        http_wait_free(server);
        sender_table_free(server->senders);
        free(server);
        return NULL;
    }
    watch(server);
    return server;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    if (--server->open_handles == 0) {
        sender_table_free(server->senders);
        free(server);
    }
}

/* The library refuses to stop while connections are suspended. */
static void resume_all(struct http_server *server)
{
    for (struct http_connection *c = server->connections; c; c = c->next) {
        struct http_request *request = c->request;

        if (request && request->stream)
            event_stream_wake(request->stream);
        if (request && request->suspended) {
            request->suspended = false;
            http_connection_resume(server, request->handle);
        }
    }
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    server->closing = true;
    resume_all(server);
    uv_poll_stop(&server->poll); /* before the library closes its descriptor */
    uv_close((uv_handle_t *)&server->poll, on_handle_closed);
    uv_close((uv_handle_t *)&server->again, on_handle_closed);
    uv_close((uv_handle_t *)&server->run_timer, on_handle_closed);
    uv_close((uv_handle_t *)&server->sweep_timer, on_handle_closed);
    mhd()->stop_daemon(server->daemon);
    server->daemon = NULL;
    http_wait_free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

const char *http_server_url(const struct http_server *server)
{
    return server->pinned;
}

unsigned http_server_connections(const struct http_server *server)
{
    return server->connection_count;
}

const struct http_counts *http_server_counts(struct http_server *server)
{
    server->counts.banned = sender_table_banned(server->senders, uv_now(server->loop));
    return &server->counts;
}
