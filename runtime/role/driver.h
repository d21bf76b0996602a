/* driver.h - runs a round machine in a node: its events come from here, its actions are carried out here.
 *
 *     fetch what the run needs ── workers open it ── genesis ── machine (member or trainer)
 *         │ event in, actions out, in order: PERSIST on disk before the next is begun
 *         ├─ SEND, FETCH        HTTP to the endpoints of enrolled machines
 *         ├─ CHECK, REPLAY, COMPUTE, TRAIN     jobs of the workers
 *         └─ AWAIT_BLOCK, HEAD, RELEASE        the ledger
 */
#ifndef RONDO_ROLE_DRIVER_H
#define RONDO_ROLE_DRIVER_H

#include "runtime/role/course.h"

struct driver;

/* Starts a syncer's member machine, or a trainer's. node->course is loaded and the node listens. NULL with `err`. What goes wrong
 * later stops the node. */
struct driver *driver_new(struct node *node, bool member, struct error *err);
void driver_free(struct driver *d);

/* A message that came in, its documents verified and kept already. Borrowed. */
void driver_message(struct driver *d, const json_t *message);
/* Whether a message of this many bytes can be taken now: until the machine runs few are kept. Counts it when it can. */
bool driver_takes(struct driver *d, size_t size);

/* The round that is open here: 0 until the opening record is known. */
int64_t driver_round(const struct driver *d);

/* What members of the open round said to hold when they closed it for commitments (replicated tier). New reference. */
json_t *driver_commitments_closed(const struct driver *d, int64_t round);

/* { record, certificate } of a decided round, borrowed; NULL when it is not decided here. */
const json_t *driver_final(const struct driver *d, int64_t round);

/* Whether its round machine has begun, and whether that holds the document of this CID now. */
bool driver_runs(const struct driver *d);
bool driver_holds(const struct driver *d, const char *cid);

/* { phase, round, view, ... }; new reference. */
json_t *driver_status(const struct driver *d);

/* A trainer leaves the run: kept, so that it goes on after a restart. It works until a record lists that, answers for what it did until that is
 * settled, and stops the node. False for a member of the panel, which cannot. */
bool driver_leave(struct driver *d);

/* A release signature of another panel member: { round, signer address, signature } verified against its digest. */
void driver_release_signature(struct driver *d, int64_t round, const json_t *body);

#endif
