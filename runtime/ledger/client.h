/* client.h - the ledger interface over JSON-RPC 2.0 (docs/ledger.md), for `rondo ledger` on this or another machine.
 *
 * Reads are tried again with growing pauses until `patience_ms` has passed, so a restarted ledger is a delay and no error; answers are
 * matched by id, capped in size and checked field by field. A submitted transaction is sent again, the same bytes, until its
 * receipt is final.
 */
#ifndef RONDO_LEDGER_CLIENT_H
#define RONDO_LEDGER_CLIENT_H

#include "runtime/ledger/ledger.h"
#include "runtime/net/http_client.h"

/* `http` is borrowed and must outlive the ledger; `patience_ms` 0: 30,000. Nothing is asked yet. Free with ledger_free. NULL with `err`. */
struct ledger *ledger_client_new(uv_loop_t *loop, struct http_client *http, const char *url, unsigned patience_ms,
                                 struct error *err);

#endif
