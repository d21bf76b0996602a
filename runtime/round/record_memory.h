/* record_memory.h - what was found out about content: assignments, sets of received documents, the records made of them. A machine asks for the
 * same several times a round: record_of first says what it needs, then again when that is there, and once more to judge what another made of
 * the same; each spot check, dispute and audit of a round needs that round's assignment.
 *
 *     sound    received document                                 -> that received_check passes it
 *     draws    record before, seed                               -> assignment
 *     sets     received documents, record before, seed           -> tally, assignment
 *              the same, forced, answers on the way              -> record, or the next thing to ask for
 *
 * Everything is kept under the names of all that it follows from: documents and records by CID, answers of workers by value. So it holds nothing
 * of who asked, and many machines of one run in one process may have one memory (simulation.h) as long as none of them changes what it was
 * given: what stands here is shared with records that were made.
 */
#ifndef RONDO_ROUND_RECORD_MEMORY_H
#define RONDO_ROUND_RECORD_MEMORY_H

#include "runtime/crypto/hash.h"
#include "runtime/doc/cid.h"
#include "runtime/round/received.h"
#include "runtime/round/rules.h"

/* Of the latest; the oldest goes first, of CIDs all at once. */
enum { RECORD_DRAWS = 3, RECORD_SETS = 3, RECORD_SOUND = 1024 };

struct record_draw {
    char before[CID_TEXT]; /* "": empty */
    struct hash seed;
    json_t *parts;
};

struct record_set {
    json_t *names; /* owned; NULL: empty */
    char before[CID_TEXT];
    struct hash seed;
    struct received_tally tally; /* owned lists; of documents that belong to the round, each of which received_check passes */
    json_t *parts;               /* owned */
    json_t *block;               /* of what follows; owned */
    bool forced;
    json_t *
        steps; /* [ { hash, request, answer } ]: what was asked on the way, in order; no answer: it was not there yet. Owned, or NULL */
    json_t *made; /* the record that the answers give; owned, or NULL */
};

struct record_memory {
    struct record_draw draws[RECORD_DRAWS];
    struct record_set sets[RECORD_SETS];
    size_t draw_count, set_count;
    json_t *sound; /* CID -> true; owned, NULL: none yet */
};

/* received_check of the document `cid`. */
bool record_memory_sound(struct record_memory *memory, const char *cid, const json_t *payload);

/* assignment_draw of the round after `previous`, whose CID is `before`; drawn anew where either is NULL or "". New reference. */
json_t *record_memory_parts(struct record_memory *memory, const struct rules *rules, const char *before, const json_t *previous,
                            struct hash seed);

/* assignment_context_in of a decided round, `before` and `record` its records; NULL where they are not held. New reference. */
json_t *record_memory_context(struct record_memory *memory, const struct rules *rules, const json_t *before, const json_t *record,
                              const char *did);

/* The set, or NULL; so too where `memory` or `names` is NULL. `before`: NULL for "". */
struct record_set *record_memory_find(struct record_memory *memory, const json_t *names, const char *before, struct hash seed);

/* The set from now on; new references are taken. NULL without `memory` or `names`. */
struct record_set *record_memory_keep(struct record_memory *memory, const json_t *names, const char *before, struct hash seed,
                                      const struct received_tally *tally, json_t *parts);

/* What is known of the record of this set where `results` (request hash -> { code, result }) answer as they did then: RECORD_SET_MADE, the record;
 * RECORD_SET_ASKS, { hash, request } that `results` do not answer; RECORD_SET_NOTHING. `*out` is a new reference. */
enum record_set_known { RECORD_SET_NOTHING, RECORD_SET_ASKS, RECORD_SET_MADE };
enum record_set_known record_set_recall(const struct record_set *set, const json_t *block, bool forced, const json_t *results,
                                        json_t **out);

/* A new try at making it, what it asked, what came of it. `answer` NULL: it was not there. Nothing where `set` is NULL. */
void record_set_begin(struct record_set *set, const json_t *block, bool forced);
void record_set_ask(struct record_set *set, const char *hash, json_t *request, const json_t *answer);
void record_set_make(struct record_set *set, json_t *record);

void record_memory_clear(struct record_memory *memory);

#endif
