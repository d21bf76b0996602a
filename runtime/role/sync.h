/* sync.h - a run fetched from whoever has it into an empty folder, every record verified, every state computed again.
 *
 *     peer ── run document, enrolments ──> HOME/nodes/NAME
 *     round 0, 1, ...   certificate and record ── documents, payloads ── history_check, plan and fold anew ──> journal, state
 *
 * Only what was verified is kept, so a call that was broken off goes on where it stopped. Peers can withhold, not deceive: what is wrong is
 * refused and asked of the next. The folder serves a node of the same name afterwards.
 */
#ifndef RONDO_ROLE_SYNC_H
#define RONDO_ROLE_SYNC_H

#include <jansson.h>

#include "native/base/error.h"

struct sync_options {
    const char *home, *name, *run;
    const char *peer, *ledger; /* URLs */
    const char *adapter;       /* folder to write what was trained into, in PEFT's layout; NULL: not written */
    bool plain;
    unsigned threads;
    void (*told)(void *context, const char *what, int64_t done); /* may be NULL */
    void *context;
};

/* { run, rounds, finished, state_root, outer, adapter?, verified: { rounds, documents, blocks, plans, folds } }; new reference. NULL with `err`. */
json_t *sync_run(const struct sync_options *options, struct error *err);

#endif
