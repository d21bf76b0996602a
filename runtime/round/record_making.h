/* record_making.h - a record on its way, shared by the files that make it. Of no interest outside this folder.
 *
 *     record.c        what the received documents say, who is counted and paid: all that a record lists
 *     record_fold.c   what the round does to the run's state: its plan, its fold, a correction of earlier ones
 */
#ifndef RONDO_ROUND_RECORD_MAKING_H
#define RONDO_ROUND_RECORD_MAKING_H

#include "runtime/round/received.h"
#include "runtime/round/record.h"
#include "runtime/round/seed.h"

/* Everything on the way from input to record. All json_t members but the borrowed ones are released at the end. */
struct making {
    const struct record_input *in;
    const struct rules *rules;
    int64_t round;
    struct quorum quorum;
    struct hash seed;
    json_t *committee, *record, *needs;
    struct record_set *known; /* what the memory has of these received documents; NULL: there is no memory */
    struct received_tally tally;
    json_t *convicted, *barred, *disputes, *openings;
    json_t *upheld, *rejected; /* of this record's verdicts */
    json_t *entries;           /* unsettled, with this round's at the end when it has one */
    json_t *parts;             /* assignment */
    int64_t correct;
    const char *reason; /* "" while the round may still be a train round */
};

/* Both are false while an answer is awaited: it is in `needs`. `*plan` is null for a round without one; borrowed. */
bool record_find_plan(struct making *m, const json_t **plan);

/* Decides train or skip, and moves the state: kind, reason, roots, and the round's open entry. */
bool record_decide(struct making *m, const json_t *contributions, const json_t *plan);

#endif
