/* record_memory.h - what was found out about a set of received documents, for whoever makes a record of the same set again: record_of is asked
 * first what it needs, then once more when that is there.
 *
 * All that is kept follows from what it is kept under: the set by its CIDs, the record before it, the seed. Nothing of results or documents.
 */
#ifndef RONDO_ROUND_RECORD_MEMORY_H
#define RONDO_ROUND_RECORD_MEMORY_H

#include "runtime/crypto/hash.h"
#include "runtime/doc/cid.h"
#include "runtime/round/received.h"

struct record_memory {
    json_t *names; /* owned; NULL: empty */
    char before[CID_TEXT];
    struct hash seed;
    struct received_tally tally; /* owned lists; of documents that belong to the round, each of which received_check passes */
    json_t *parts;               /* owned: assignment_draw */
};

/* `memory` where it holds this set, else NULL; so too where it or `names` is NULL. `before`: NULL for "". */
const struct record_memory *record_memory_find(const struct record_memory *memory, const json_t *names, const char *before,
                                               struct hash seed);

/* New references to what it holds; false for NULL. */
bool record_memory_give(const struct record_memory *memory, struct received_tally *tally, json_t **parts);

/* In place of what it held; new references are taken. Nothing without `memory` or `names`. */
void record_memory_keep(struct record_memory *memory, const json_t *names, const char *before, struct hash seed,
                        const struct received_tally *tally, json_t *parts);

void record_memory_clear(struct record_memory *memory);

#endif
