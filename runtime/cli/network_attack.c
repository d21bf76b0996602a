#include "runtime/cli/network_attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 5, DRIBBLE_TICKS = 200, ADDRESSES = 8, GARBAGE_MOST = 64 };

static int open_one(unsigned port, unsigned address)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
                       from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000100u + 2 + address % ADDRESSES) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_over(int fd)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN);
}

/* Of every two one says nothing, the other a request line without end. Who is thrown out comes again. */
static void hold(int *held, int count, unsigned port, unsigned tick)
{
    for (int i = 0; i < count; i++) {
        if ((unsigned)i % DRIBBLE_TICKS != tick % DRIBBLE_TICKS)
            continue;
        if (held[i] >= 0 && is_over(held[i])) {
            close(held[i]);
            held[i] = -1;
        }
        if (held[i] < 0)
            held[i] = open_one(port, (unsigned)i);
        else if (i % 2)
            (void)!send(held[i], tick < DRIBBLE_TICKS ? "G" : "E", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void send_garbage(int fd, unsigned number)
{
    static const char *const texts[] = {
        "POST /v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{\"documents\"}",
        "PUT /v1/blocks/bafk HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        "GET /v1/runs/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n[[[[[[[[",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "GARBAGE\r\n\r\n",
    };
    const char *text = texts[number % (sizeof texts / sizeof *texts)];

    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void attack(unsigned port, int connections, int garbage_per_second)
{
    int *held = calloc((size_t)connections + 1, sizeof *held), garbage[GARBAGE_MOST];
    unsigned sent = 0;
    double due = 0;

    for (int i = 0; i < connections; i++)
        held[i] = -1;
    for (int i = 0; i < GARBAGE_MOST; i++)
        garbage[i] = -1;
    for (unsigned tick = 0;; tick++) {
        hold(held, connections, port, tick);
        for (due += (double)garbage_per_second * TICK_MS / 1000; due >= 1; due--, sent++) {
            int *slot = &garbage[sent % GARBAGE_MOST];

            if (*slot >= 0)
                close(*slot);
            *slot = open_one(port, sent);
            if (*slot >= 0)
                send_garbage(*slot, sent);
        }
        nanosleep(&(struct timespec){ 0, TICK_MS * 1000000L }, NULL);
    }
}

pid_t network_attack_start(const char *endpoint, int connections, int garbage_per_second)
{
    const char *colon = strrchr(endpoint, ':');
    struct rlimit files;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    attack(colon ? (unsigned)atoi(colon + 1) : 0, connections, garbage_per_second);
    _exit(0);
}
