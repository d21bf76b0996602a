/* shaper.c - the network between hosts, for kernels without netem: each host's server is reached through one of these.
 *
 *     client ── connect ──> 127.0.0.1:PORT ── shaper ── 127.0.0.1:TARGET (the host's server)
 *
 * usage: rondo_shaper PORT TARGET RATE_BITS DELAY_MS LOSS_PER_MILLE SEED
 *
 * What goes in or comes out waits its turn on the host's link (RATE_BITS a second each way, shared by all connections) and then DELAY_MS. A
 * connection's first bytes wait two delays more: its handshake. Of segments of 1448 bytes LOSS_PER_MILLE are lost: they, and what follows
 * them on that connection, are there a round trip later, as after a fast retransmission; the last segment of what was sent, which nothing
 * follows, after 200 ms and a round trip (the retransmission timer). On SIGTERM it prints the bytes that went each way and the losses.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { SEGMENT = 1448, TIMEOUT_MS = 200 };

struct link {
    double rate;    /* bytes a ms */
    double free_at; /* when what is before us is through */
    uint64_t bytes;
};

static uv_loop_t loop;
static struct link in_link, out_link;
static double delay_ms;
static unsigned loss, target;
static uint64_t chance, losses;

static unsigned drawn(unsigned below)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((chance >> 33) % below);
}

/* Bytes that will be written at a time. */
struct parcel {
    uv_write_t write;
    double at;
    size_t size;
    struct parcel *next;
    char bytes[];
};

struct pair;

struct side {
    uv_tcp_t socket;
    struct pair *pair;
    struct side *other;
    struct link *link;           /* on which what is read here travels */
    double last;                 /* when the parcel before arrives */
    struct parcel *first, **end; /* what was read here, on its way to the other side */
    uv_timer_t timer;
    bool over; /* nothing more will be read here */
};

struct pair {
    struct side client, server;
    int open; /* handles */
    bool closing, connected;
    uv_connect_t connect;
};

static double now(void)
{
    return (double)uv_hrtime() / 1e6;
}

static void closed(uv_handle_t *handle)
{
    struct side *s = handle->data;

    if (--s->pair->open > 0)
        return;
    for (struct side *each = &s->pair->client;; each = &s->pair->server) {
        for (struct parcel *p = each->first, *next; p; p = next) {
            next = p->next;
            free(p);
        }
        if (each == &s->pair->server)
            break;
    }
    free(s->pair);
}

static void pair_close(struct pair *p)
{
    if (p->closing)
        return;
    p->closing = true;
    uv_close((uv_handle_t *)&p->client.socket, closed);
    uv_close((uv_handle_t *)&p->server.socket, closed);
    uv_close((uv_handle_t *)&p->client.timer, closed);
    uv_close((uv_handle_t *)&p->server.timer, closed);
}

static void written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
}

static void deliver(uv_timer_t *timer);

static void wait_next(struct side *s)
{
    double left = s->first ? s->first->at - now() : 0;

    if (s->first)
        uv_timer_start(&s->timer, deliver, left > 0 ? (uint64_t)(left + 0.5) : 0, 0);
    else if (s->over)
        pair_close(s->pair);
}

static void deliver(uv_timer_t *timer)
{
    struct side *s = timer->data;

    while (s->first && s->first->at <= now() + 0.5) {
        struct parcel *p = s->first;
        uv_buf_t buf = uv_buf_init(p->bytes, (unsigned)p->size);

        s->first = p->next;
        if (!s->first)
            s->end = &s->first;
        p->write.data = p;
        if (uv_write(&p->write, (uv_stream_t *)&s->other->socket, &buf, 1, written) != 0)
            free(p);
    }
    wait_next(s);
}

/* When bytes that are read now will be on the other side. */
static double arrival(struct side *s, size_t size)
{
    struct link *l = s->link;
    double at = now() > l->free_at ? now() : l->free_at, late = 0;
    size_t segments = (size + SEGMENT - 1) / SEGMENT;

    l->free_at = at += (double)size / l->rate;
    l->bytes += size;
    for (size_t i = 0; i < segments; i++)
        if (drawn(1000) < loss) {
            double again = 2 * delay_ms + (i + 1 == segments ? TIMEOUT_MS : 0);

            losses++;
            late = again > late ? again : late;
        }
    at += delay_ms + late;
    if (s->last < 0) /* the handshake */
        at += s == &s->pair->client ? 2 * delay_ms : 0;
    s->last = at > s->last ? at : s->last;
    return s->last;
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(malloc(suggested), (unsigned)suggested);
}

static void heard(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct side *s = stream->data;

    if (size > 0) {
        struct parcel *p = malloc(sizeof *p + (size_t)size);

        *p = (struct parcel){ .at = arrival(s, (size_t)size), .size = (size_t)size };
        memcpy(p->bytes, buf->base, (size_t)size);
        *s->end = p;
        s->end = &p->next;
    }
    free(buf->base);
    if (size < 0) {
        s->over = true;
        uv_read_stop(stream);
    }
    if (s->pair->connected)
        wait_next(s);
}

static void connected(uv_connect_t *connect, int status)
{
    struct pair *p = connect->data;

    if (status < 0) {
        pair_close(p);
        return;
    }
    p->connected = true;
    uv_read_start((uv_stream_t *)&p->server.socket, give_space, heard);
    wait_next(&p->client);
}

static void side_init(struct pair *p, struct side *s, struct side *other, struct link *link)
{
    uv_tcp_init(&loop, &s->socket);
    uv_timer_init(&loop, &s->timer);
    s->socket.data = s->timer.data = s;
    s->pair = p;
    s->other = other;
    s->link = link;
    s->last = -1;
    s->end = &s->first;
}

static void called(uv_stream_t *server, int status)
{
    struct pair *p = calloc(1, sizeof *p);
    struct sockaddr_in to;

    if (status < 0 || !p) {
        free(p);
        return;
    }
    side_init(p, &p->client, &p->server, &in_link);
    side_init(p, &p->server, &p->client, &out_link);
    p->open = 4;
    p->connect.data = p;
    uv_ip4_addr("127.0.0.1", (int)target, &to);
    if (uv_accept(server, (uv_stream_t *)&p->client.socket) != 0 ||
        uv_tcp_connect(&p->connect, &p->server.socket, (const struct sockaddr *)&to, connected) != 0) {
        pair_close(p);
        return;
    }
    uv_tcp_nodelay(&p->client.socket, 1);
    uv_tcp_nodelay(&p->server.socket, 1);
    uv_read_start((uv_stream_t *)&p->client.socket, give_space, heard);
}

static void ended(uv_signal_t *signal, int number)
{
    (void)signal, (void)number;
    printf("{\"in\":%llu,\"out\":%llu,\"losses\":%llu}\n", (unsigned long long)in_link.bytes, (unsigned long long)out_link.bytes,
           (unsigned long long)losses);
    fflush(stdout);
    exit(0);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at;
    uv_tcp_t server;
    uv_signal_t terminate;

    if (argc != 7) {
        fprintf(stderr, "usage: rondo_shaper PORT TARGET RATE_BITS DELAY_MS LOSS_PER_MILLE SEED\n");
        return 2;
    }
    target = (unsigned)atoi(argv[2]);
    in_link.rate = out_link.rate = atof(argv[3]) / 8 / 1000;
    delay_ms = atof(argv[4]);
    loss = (unsigned)atoi(argv[5]);
    chance = (uint64_t)atoll(argv[6]);
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    uv_tcp_init(&loop, &server);
    uv_signal_init(&loop, &terminate);
    uv_signal_start(&terminate, ended, SIGTERM);
    uv_ip4_addr("127.0.0.1", atoi(argv[1]), &at);
    if (uv_tcp_bind(&server, (const struct sockaddr *)&at, 0) != 0 || uv_listen((uv_stream_t *)&server, 511, called) != 0) {
        fprintf(stderr, "rondo_shaper: cannot listen on port %s\n", argv[1]);
        return 4;
    }
    return uv_run(&loop, UV_RUN_DEFAULT);
}
