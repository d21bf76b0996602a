#include "runtime/role/subscribers.h"

#include <stdlib.h>

#include "runtime/net/event_stream.h"

enum { WAIT_MOST = 60000, WAITERS_MOST = 4096 };

struct waiter {
    struct http_request *request;
    int64_t round;
    struct node *node;
    struct waiter *next;
};

struct listener {
    struct event_stream *stream;
    struct node *node;
    struct listener *next;
};

struct subscribers {
    struct waiter *waiters;
    size_t waiter_count;
    struct listener *listeners;
};

struct subscribers *subscribers_new(void)
{
    return calloc(1, sizeof(struct subscribers));
}

void subscribers_free(struct subscribers *subscribers)
{
    free(subscribers);
}

/* --- decided rounds -------------------------------------------------------------------------------------------------- */

static void waiter_drop(struct waiter *w)
{
    struct subscribers *s = w->node->subscribers;

    for (struct waiter **at = &s->waiters; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            s->waiter_count--;
            break;
        }
    free(w);
}

static void waiter_gone(void *context)
{
    waiter_drop(context);
}

bool subscribers_wait(struct node *node, struct http_request *request, int64_t round, uint64_t wait_ms)
{
    struct subscribers *s = node->subscribers;

    if (wait_ms == 0 || s->waiter_count == WAITERS_MOST)
        return false;
    struct waiter *w = calloc(1, sizeof *w);

    *w = (struct waiter){ .request = request, .round = round, .node = node, .next = s->waiters };
    s->waiters = w;
    s->waiter_count++;
    http_request_defer(request, (unsigned)(wait_ms > WAIT_MOST ? WAIT_MOST : wait_ms), waiter_gone, w);
    return true;
}

void subscribers_final(struct node *node, int64_t round, const json_t *final)
{
    for (struct waiter *w = node->subscribers->waiters, *next; w && final; w = next) {
        next = w->next;
        if (w->round != round)
            continue;
        struct http_request *request = w->request;

        waiter_drop(w);
        http_answer_json(request, 200, final);
    }
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static void listener_gone(void *context)
{
    struct listener *l = context;

    for (struct listener **at = &l->node->subscribers->listeners; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    free(l);
}

void subscribers_listen(struct node *node, struct http_request *request)
{
    struct listener *l = calloc(1, sizeof *l);

    l->node = node;
    l->stream = event_stream_open(request, listener_gone, l);
    if (!l->stream) {
        free(l);
        return;
    }
    l->next = node->subscribers->listeners;
    node->subscribers->listeners = l;
}

void subscribers_event(struct node *node, const char *event, const json_t *body)
{
    if (!node->subscribers->listeners)
        return;
    char *text = json_dumps(body, JSON_COMPACT);

    for (struct listener *l = node->subscribers->listeners, *next; l; l = next) {
        next = l->next;
        event_stream_send(l->stream, NULL, event, text);
    }
    free(text);
}
