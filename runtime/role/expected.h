/* expected.h - which blocks may be pushed to a node: those that an accepted document names, until its round is over.
 *
 *     document ── expected_object ──> manifest ── expected_take ──> its chunks ── expected_take ──> the node's store
 *
 * Whatever else is pushed is refused: nobody stores what he likes here.
 */
#ifndef RONDO_ROLE_EXPECTED_H
#define RONDO_ROLE_EXPECTED_H

#include "runtime/role/node.h"

struct expected;

struct expected *expected_new(void);
void expected_free(struct expected *e); /* NULL is fine */

/* Expects what the store lacks of an object of at most `limit` bytes; appends those CIDs to `missing`. Members, of whom there are so many, are
 * bounded by how many documents each may send; all others (`member` false) together by 8,192 blocks a round, the rest of which is refused. */
void expected_object(struct node *node, struct hash id, uint64_t limit, int64_t round, bool member, json_t *missing);

/* Stores a block that is expected, or there already; `missing` gains the chunks that a manifest brings. Errors: refused, mismatch, io. */
bool expected_take(struct node *node, struct hash id, const void *bytes, size_t size, json_t *missing, struct error *err);

/* A round is decided: what only earlier ones needed is expected no more. */
void expected_expire(struct expected *e, int64_t round);

#endif
