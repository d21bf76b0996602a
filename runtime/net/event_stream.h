/* event_stream.h - server-sent events (WHATWG HTML, 9.2) with a bounded queue per listener.
 *
 *     handler: stream = event_stream_open(request, gone, context)
 *     later:   event_stream_send(stream, id, "record", "{...}")      id: 12
 *                                                                    event: record
 *                                                                    data: {...}
 *
 * A comment line goes out every 15 seconds, so that proxies keep the connection and a vanished listener is noticed. A
 * listener that lets more than EVENT_STREAM_QUEUE bytes pile up is cut off; it comes back with Last-Event-ID and is told what it
 * missed by whoever kept it.
 */
#ifndef RONDO_NET_EVENT_STREAM_H
#define RONDO_NET_EVENT_STREAM_H

#include "runtime/net/http_server.h"

#define EVENT_STREAM_QUEUE (1u << 20) /* bytes */

struct event_stream;

/* Answers `request` with a stream. `gone` is called once when the listener is gone, cut off, or the server closes; after
 * it the stream must not be touched. NULL when limits.streams are open already: then the request has been answered with 503. */
struct event_stream *event_stream_open(struct http_request *request, void (*gone)(void *context), void *context);

/* `id` and `event` may be NULL; `data` may hold line feeds. Never blocks. What does not fit the queue ends the stream (`gone`
 * follows from the loop, not from within this call). */
void event_stream_send(struct event_stream *stream, const char *id, const char *event, const char *data);

/* Ends the stream after what is queued; `gone` follows. */
void event_stream_end(struct event_stream *stream);

#endif
