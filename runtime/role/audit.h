/* audit.h - a whole run walked again from what its nodes kept and what its ledger says; nothing of it is believed.
 *
 * The home is only read. What is worked with lies in a folder below $TMPDIR, or /tmp, until the audit is over.
 *
 *     copies       every block and document of every node hashed again, every signature verified       audit_copies.c
 *     ledger       every block of the chain, its transactions and books                                runtime/ledger/local.h
 *     rounds       certificate, link, seed, committee, record recomputed, plans and folds too           verify.h
 *     work         payload and step log of every accepted contribution; a share replayed bit for bit    audit_work.c
 *     money        every escrow and release against the record that settled the round                   audit_money.c
 */
#ifndef RONDO_ROLE_AUDIT_H
#define RONDO_ROLE_AUDIT_H

#include <jansson.h>

#include "runtime/role/archive.h"

struct audit_options {
    const char *home;
    const char *run;    /* NULL: the one of the home */
    const char *ledger; /* URL; NULL: HOME/ledger */
    bool plain;         /* plain HTTP to a ledger on another machine */
    bool quick;         /* plans and folds are not computed again */
    int64_t recompute;  /* share of the accepted contributions to replay, in billionths */
    unsigned threads;
    void (*told)(void *context, const char *what, int64_t done, int64_t of); /* progress; may be NULL */
    void *context;
};

/* { ok, run, rounds, checked: { counts }, findings: [ { place, code, message } ], incomplete: [ the same ] }; new reference. `incomplete`
 * is what no node of the home has, each once: what needs it is not checked, and `ok` is false as with findings. NULL with `err` when the audit itself
 * could not be done (no such home, a node runs, no memory, the ledger does not answer). */
json_t *audit_run(const struct audit_options *options, struct error *err);

/* Every copy of every node; `err` is the first that is damaged. */
bool audit_archive(struct archive *a, struct error *err);

#endif
