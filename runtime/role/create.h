/* create.h - a run made, signed and paid for by its sponsor.
 *
 *     run file, panel, allow-list ──> HOME/nodes/NAME/{blocks, documents} ──> an escrow a round on the ledger
 *
 * A panel file is a JSON list of { "did", "account" }, an allow file a JSON list of DIDs; both come from `rondo key show --json` of those
 * who take part. What the run file has itself needs no file.
 */
#ifndef RONDO_ROLE_CREATE_H
#define RONDO_ROLE_CREATE_H

#include <jansson.h>

#include "native/base/error.h"

struct create_options {
    const char *what;          /* a run file, or the id of a run made here whose funding was broken off */
    const char *home, *name;   /* HOME/nodes/NAME with key.json */
    const char *ledger;        /* URL */
    const char *panel, *allow; /* files or NULL */
    const char *passphrase;    /* of key.json, or NULL */
    bool plain;
    bool quiet; /* no line of progress */
};

/* { run, name, sponsor, account, rounds, escrowed, asset }; new reference. NULL with `err`: the run file's faults with its path and field,
 * a ledger that is away, an account that does not have the budget (range), a spec whose disputes nobody could answer (limit; quote.h). Nothing is
 * signed or kept then. */
json_t *create_run(const struct create_options *options, struct error *err);

#endif
