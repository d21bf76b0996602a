/* amend.h - a sponsor's amendment of a run that goes on (runtime/round/amendment.h): signed, handed to every member, and awaited.
 *
 *     peer ── run document, open round, last record ──> number and first round ── signature ──> each member's endpoint ── record that lists it
 */
#ifndef RONDO_ROLE_AMEND_H
#define RONDO_ROLE_AMEND_H

#include <jansson.h>

#include "runtime/crypto/keyfile.h"

struct amend_options {
    const char *run, *peer; /* CID; URL of any node of the run */
    json_t *changes;        /* borrowed: name -> value */
    int64_t from;           /* the first round it touches; 0: the first that can be */
    bool plain;             /* plain HTTP to other machines */
    unsigned wait_ms;       /* for the record that lists it */
};

/* { run, number, from, changes, members: how many took it, record: the round that lists it, or null when none did in time }; new reference. NULL
 * with `err`: refused (not the sponsor's key, not amendable, too late), network. */
json_t *amend_run(const struct amend_options *options, const struct key_pair *keys, struct error *err);

#endif
