/* server.h - `rondo ledger`: the embedded ledger behind JSON-RPC 2.0 over HTTP, with a loop of its own. Methods in docs/ledger.md.
 *
 * While somebody asks, a block is made every block_ms; when nothing was asked and sent for ten seconds, every ten seconds.
 */
#ifndef RONDO_LEDGER_SERVER_H
#define RONDO_LEDGER_SERVER_H

#include <uv.h>

#include "native/base/buffer.h"
#include "runtime/ledger/local.h"

#define LEDGER_REQUEST_LIMIT (256u << 10) /* bytes */

struct ledger_options {
    const char *path;                                        /* of the SQLite file */
    const char *address;                                     /* NULL: 127.0.0.1 */
    uint16_t port;                                           /* 0: the system picks one */
    const uint8_t *tls;                                      /* TLS_SECRET bytes of a key of its own (tls.h); NULL: plain HTTP */
    const struct ledger_genesis *genesis;                    /* may be NULL for an existing file */
    const char *url_file;                                    /* NULL, or the URL is written there once it listens */
    void (*ready)(void *context, const char *url);           /* may be NULL */
    void (*trouble)(void *context, const struct error *err); /* a block could not be written; tried again. May be NULL */
    void *context;
};

/* Serves until SIGTERM or SIGINT, then ends cleanly. Returns true then, false with `err` when it could not begin, or stopped by itself: a block
 * could not be written and the file could not be read again. */
bool ledger_serve(const struct ledger_options *options, struct error *err);

/* The same inside a loop that somebody else runs (tests, one process with more in it). */
struct ledger_server;
struct ledger_server *ledger_server_new(uv_loop_t *loop, const struct ledger_options *options, struct error *err);
const char *ledger_server_url(const struct ledger_server *server);
/* False with `err`: it has closed its port and stopped the loop, since its books are lost (ledger_local_sound). */
bool ledger_server_sound(const struct ledger_server *server, struct error *err);
struct ledger_local *ledger_server_local(struct ledger_server *server); /* borrowed */
void ledger_server_free(struct ledger_server *server);                  /* the loop must run until its handles are closed */

/* One JSON-RPC request to its response, both as bytes: what the HTTP route does, for tests and fuzzing. */
void ledger_answer(struct ledger_local *ledger, const void *request, size_t size, struct buffer *response);

/* The height that must be final before this request may be answered: of `status` with `above`, of `block` with `wait`. 0: none. */
uint64_t ledger_awaits(const void *request, size_t size);

#endif
