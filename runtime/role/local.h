/* local.h - a whole network on one machine: ledger, sponsor, syncers and trainers as processes of their own.
 *
 *     HOME/{ run.json, ledger/, nodes/{sponsor, syncer-1.., trainer-1..}/, runs/RUN/{adapter/, metrics.jsonl}, result.json }
 *
 * The network lives as long as local_run: a process that dies is started again, Ctrl-C ends all of them, and the same call on the same
 * home goes on where it stopped. On a finished home it gives the result again.
 */
#ifndef RONDO_ROLE_LOCAL_H
#define RONDO_ROLE_LOCAL_H

#include <jansson.h>

#include "native/base/error.h"

struct local_options {
    const char *runfile;
    const char *home;
    const char *ledger_seed; /* NULL: real entropy and keys */
    unsigned threads;        /* of each worker; 0: shared out among the machine's cores */
    bool json, quiet;
};

/* The result object (docs/researcher.md); new reference. NULL with `err`; code none when it was interrupted. */
json_t *local_run(const struct local_options *options, struct error *err);

#endif
