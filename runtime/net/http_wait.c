/* With TLS the library's own epoll runs in circles while a handshake waits for the other side (0.9.75: it never learns that the socket has
 * nothing to read), so one silent client would keep a core busy. There the descriptors that it wants watched are watched by an epoll of ours,
 * level-triggered, and it is told which are ready as select would. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "runtime/net/http_internal.h"

enum { EVENTS = 128, WANTS_READ = 1, WANTS_WRITE = 2 };

struct http_wait {
    int epoll;
    int highest;              /* descriptor with a wish */
    uint8_t want[FD_SETSIZE]; /* what the epoll watches of each descriptor */
};

bool http_wait_new(struct http_server *server, struct error *err)
{
    struct http_wait *wait = calloc(1, sizeof *wait);

    if (!wait)
        abort();
    wait->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (wait->epoll < 0) {
        free(wait);
        return error_set(err, ERROR_IO, NULL, "epoll: %s", strerror(errno));
    }
    server->wait = wait;
    return true;
}

void http_wait_free(struct http_server *server)
{
    if (server->wait)
        close(server->wait->epoll);
    free(server->wait);
    server->wait = NULL;
}

int http_wait_descriptor(const struct http_server *server)
{
    return server->wait->epoll;
}

static void watch(struct http_wait *wait, int fd, uint8_t want)
{
    struct epoll_event event = { .data.fd = fd };

    if (wait->want[fd] == want)
        return;
    event.events = (want & WANTS_READ ? EPOLLIN : 0u) | (want & WANTS_WRITE ? EPOLLOUT : 0u);
    epoll_ctl(wait->epoll, !want ? EPOLL_CTL_DEL : wait->want[fd] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    wait->want[fd] = want;
}

/* Its number may be another connection's next. */
void http_wait_forget(struct http_server *server, int fd)
{
    if (server->wait && fd >= 0 && fd < FD_SETSIZE)
        watch(server->wait, fd, 0);
}

/* What the library wants now. */
static void renew(struct http_server *server)
{
    struct http_wait *wait = server->wait;
    fd_set read, write, except;
    MHD_socket highest = -1;
    int most;

    FD_ZERO(&read);
    FD_ZERO(&write);
    FD_ZERO(&except);
    mhd()->get_fdset2(server->daemon, &read, &write, &except, &highest, FD_SETSIZE);
    most = highest > wait->highest ? highest : wait->highest;
    for (int fd = 0; fd <= most; fd++)
        watch(wait, fd, (uint8_t)((FD_ISSET(fd, &read) ? WANTS_READ : 0) | (FD_ISSET(fd, &write) ? WANTS_WRITE : 0)));
    wait->highest = highest;
}

void http_wait_run(struct http_server *server)
{
    struct epoll_event events[EVENTS];
    fd_set read, write, except;
    int count = epoll_wait(server->wait->epoll, events, EVENTS, 0);

    FD_ZERO(&read);
    FD_ZERO(&write);
    FD_ZERO(&except);
    for (int i = 0; i < count; i++) {
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            FD_SET(events[i].data.fd, &read);
        if (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            FD_SET(events[i].data.fd, &write);
    }
    mhd()->run_from_select(server->daemon, &read, &write, &except);
    renew(server);
}
