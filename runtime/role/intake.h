/* intake.h - what a node takes of a message (runtime/round/machine.h), and keeps, before its machine sees it.
 *
 *     message ── documents ── signed well? ── may this signer say that now? ── is there room for it? ── journal
 *             └─ blocks ───── expected? (expected.h) ──> store
 *
 * Votes and proposals pass by: only the machine has a use for them.
 */
#ifndef RONDO_ROLE_INTAKE_H
#define RONDO_ROLE_INTAKE_H

#include "runtime/role/node.h"

/* Takes the documents of `message`, then the blocks of them that it carries; `missing` gains the CIDs of blocks that are still to be pushed.
 * What a message brings is one write, also where a part of it is refused. node->course is known; node->driver may be NULL.
 * Errors: of the document that is refused (refused, stale, limit, mismatch, signature, syntax ...), or io. */
bool intake_message(struct node *node, const json_t *message, json_t *missing, struct error *err);

#endif
