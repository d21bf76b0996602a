#include "runtime/net/event_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/http_internal.h"

struct event_stream {
    struct http_request *request;
    struct buffer queue;
    size_t sent; /* of the queue */
    bool ended, cut, suspended;
    void (*gone)(void *context);
    void *context;
};

/* Called by the library whenever the socket takes more. With nothing to send the connection sleeps until event_stream_wake. */
static ssize_t on_read(void *context, uint64_t position, char *out, size_t size)
{
    struct event_stream *s = context;
    size_t left = s->queue.size - s->sent;

    (void)position;
    if (s->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!left && (s->ended || s->request->server->closing))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!left) {
        s->suspended = true;
        mhd()->suspend_connection(s->request->handle);
        return 0;
    }
    size = size < left ? size : left;
    memcpy(out, s->queue.bytes + s->sent, size);
    s->sent += size;
    if (s->sent == s->queue.size) {
        buffer_clear(&s->queue);
        s->sent = 0;
    }
    return (ssize_t)size;
}

struct event_stream *event_stream_open(struct http_request *request, void (*gone)(void *context), void *context)
{
    struct http_server *server = request->server;
    struct public_key key;

    if (server->stream_count >= server->limits.streams ||
        (server->stream_count >= (server->limits.streams + 1) / 2 && !http_request_key(request, &key))) {
        http_answer_refusal(request, 503, ERROR_LIMIT, "try again later, or ask another node",
                            "%u event streams are open already", server->stream_count);
        return NULL;
    }

    struct event_stream *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->request = request;
    s->gone = gone;
    s->context = context;
    server->stream_count++;
    request->stream = s;
    http_answer_header(request, "Cache-Control", "no-store");
    http_answer_response(request, 200, "text/event-stream",
                         mhd()->create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, on_read, s, NULL));
    /* Something at once, so that the listener sees its headers before the first event. */
    event_stream_ping(s);
    return s;
}

void event_stream_wake(struct event_stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    http_connection_resume(s->request->server, s->request->handle);
}

static void cut(struct event_stream *s)
{
    s->cut = true;
    buffer_free(&s->queue);
    s->sent = 0;
    http_connection_cut(s->request->connection);
    event_stream_wake(s);
}

static void push(struct event_stream *s, const char *text, size_t size)
{
    if (s->cut || s->ended)
        return;
    if (s->queue.size - s->sent + size > EVENT_STREAM_QUEUE) {
        cut(s);
        return;
    }
    if (s->sent) {
        memmove(s->queue.bytes, s->queue.bytes + s->sent, s->queue.size - s->sent);
        s->queue.size -= s->sent;
        s->sent = 0;
    }
    buffer_add(&s->queue, text, size);
    event_stream_wake(s);
}

void event_stream_ping(struct event_stream *s)
{
    push(s, ":\n\n", 3);
}

void event_stream_send(struct event_stream *s, const char *id, const char *event, const char *data)
{
    struct buffer text = { 0 };

    if (id)
        buffer_printf(&text, "id: %s\n", id);
    if (event)
        buffer_printf(&text, "event: %s\n", event);
    for (;;) {
        size_t line = strcspn(data, "\n");

        buffer_add_text(&text, "data: ");
        buffer_add(&text, data, line);
        buffer_add_text(&text, "\n");
        if (!data[line])
            break;
        data += line + 1;
    }
    buffer_add_text(&text, "\n");
    push(s, (const char *)text.bytes, text.size);
    buffer_free(&text);
}

void event_stream_end(struct event_stream *s)
{
    s->ended = true;
    event_stream_wake(s);
}

void event_stream_gone(struct event_stream *s)
{
    s->request->server->stream_count--;
    s->request->stream = NULL;
    if (s->gone)
        s->gone(s->context);
    buffer_free(&s->queue);
    free(s);
}
