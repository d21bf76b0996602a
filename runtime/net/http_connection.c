#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/http_internal.h"

#define PING_MS 15000

static void address_text(const struct sockaddr *from, char text[HTTP_ADDRESS])
{
    const void *bytes = from->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)from)->sin_addr
                                                   : (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr;

    if (!inet_ntop(from->sa_family, bytes, text, HTTP_ADDRESS))
        snprintf(text, HTTP_ADDRESS, "?");
}

void http_connection_cut(struct http_connection *c)
{
    if (!c->cut)
        shutdown(c->socket, SHUT_RDWR);
    c->cut = true;
}

/* ---- who gives way ---- */

/* Lower gives way first. A request that proves a key of the run, and a connection that carried one, is not put off by strangers, however many
 * they are; who has just connected has the time of a whole table to say something. */
enum rank { RANK_SILENT, RANK_SENDING, RANK_IDLE, RANK_WAITING, RANK_PROVEN, RANK_BUSY };

static enum rank rank_of(struct http_connection *c)
{
    struct http_request *r = c->request;
    struct public_key key;

    if (!r)
        return c->proven ? RANK_PROVEN : c->served ? RANK_IDLE : RANK_SILENT;
    if (http_request_key(r, &key))
        return RANK_BUSY;
    if (r->stream || r->suspended)
        return RANK_WAITING;
    return r->response ? RANK_BUSY : RANK_SENDING;
}

/* Of those with this address, or of all; the list begins with the newest. */
static void push_out(struct http_server *server, const struct http_connection *newcomer, const char *address)
{
    struct http_connection *first = NULL;
    enum rank lowest = RANK_BUSY;

    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c == newcomer || c->cut || (address && strcmp(c->address, address) != 0))
            continue;

        enum rank rank = rank_of(c);

        if (rank < lowest || (rank == lowest && first && c->since <= first->since)) {
            first = c;
            lowest = rank;
        }
    }
    http_connection_cut(first ? first : (struct http_connection *)(uintptr_t)newcomer);
    server->counts.pushed_out++;
}

static unsigned count_of(const struct http_server *server, const char *address)
{
    unsigned count = 0;

    for (const struct http_connection *c = server->connections; c; c = c->next)
        count += !c->cut && (!address || strcmp(c->address, address) == 0);
    return count;
}

static void make_room(struct http_server *server, const struct http_connection *newcomer)
{
    if (server->connection_count > server->limits.connections_per_address &&
        count_of(server, newcomer->address) > server->limits.connections_per_address)
        push_out(server, newcomer, newcomer->address);
    else if (server->connection_count > server->limits.connections && count_of(server, NULL) > server->limits.connections)
        push_out(server, newcomer, NULL);
}

/* ---- opened, closed ---- */

static void connection_opened(struct http_server *server, struct MHD_Connection *handle, void **slot)
{
    struct http_connection *c = calloc(1, sizeof *c);
    const union MHD_ConnectionInfo *info;
    int on = 1;

    *slot = c;
    if (!c)
        return;
    c->server = server;
    c->since = uv_now(server->loop);
    info = mhd()->get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    c->socket = info ? info->connect_fd : -1;
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    info = mhd()->get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info)
        address_text(info->client_addr, c->address);
    c->next = server->connections;
    if (c->next)
        c->next->previous = c;
    server->connections = c;
    server->connection_count++;
    make_room(server, c);
}

static void connection_closed(struct http_connection *c)
{
    if (!c)
        return;
    assert(!c->request);
    http_wait_forget(c->server, c->socket);
    if (c->previous)
        c->previous->next = c->next;
    else
        c->server->connections = c->next;
    if (c->next)
        c->next->previous = c->previous;
    c->server->connection_count--;
    free(c);
}

void http_connection_notify(void *context, struct MHD_Connection *handle, void **slot, enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_opened(context, handle, slot);
    else
        connection_closed(*slot);
}

/* ---- deadlines ---- */

/* Our own deadlines, since the library's single timeout is put off by every byte that dribbles in. */
void http_connection_sweep(struct http_connection *c, uint64_t now)
{
    struct http_request *request = c->request;
    const struct http_limits *limits = &c->server->limits;

    if (request && request->stream) {
        if (now - c->since >= PING_MS) {
            c->since = now;
            event_stream_ping(request->stream);
        }
        return;
    }
    if (now - c->since < (!request ? limits->idle_ms : request->limit_ms))
        return;
    if (request && request->suspended) {
        void (*gone)(void *) = request->gone;

        request->gone = NULL;
        request->deferred = false;
        if (gone)
            gone(request->gone_context);
        c->since = now;
        request->limit_ms = limits->request_ms;
        http_answer_refusal(request, 504, ERROR_TIMEOUT, "ask again", "no answer within the time limit");
        return;
    }
    c->server->counts.timed_out++;
    http_connection_cut(c);
}
