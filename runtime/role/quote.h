/* quote.h - what a run will take and cost, before anybody signs it: from the run file, on this machine, without a network.
 *
 *     run file ── draft ── names of the absent filled in ──> spec as it would be signed ── worker ──> plans, sizes, a measured step
 *
 * Tokens, steps, bytes and money are exact upper bounds that follow from the spec. Memory is what this machine's worker used, time a
 * band from two measured steps; both are null when nothing was measured.
 */
#ifndef RONDO_ROLE_QUOTE_H
#define RONDO_ROLE_QUOTE_H

#include <jansson.h>

#include "native/base/error.h"

struct quote_options {
    const char *runfile;
    const char *home; /* works in HOME/check, which is removed again */
    bool measure;     /* runs a few training steps */
    bool
        strict; /* what machines like this one could not answer in a dispute is refused, as where it is measured; else a warning */
    unsigned threads;
    const json_t *panel,
        *allowed; /* borrowed: of whom the run is to be (sponsor.h), or NULL: made up where the run file has none */
};

/* { spec, placeholders: [ text ], committee, plans, work, rollouts, bytes, disk, memory, time, money, warnings: [ text ] }; new reference. NULL with
 * `err`: what is wrong with the run file, its place the file and the field's path. */
json_t *quote_of(const struct quote_options *options, struct error *err);

#endif
