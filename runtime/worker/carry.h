/* carry.h - what a trainer takes from one round into the next where the plan says inner = "keep" (docs/protocol.md, section 7).
 *
 *     end of round r         optimiser state, and with feedback what the payload left out ──> state object; its root is the carry out
 *     its next contribution  ──> carry in: what its steps and its payload begin with
 *
 *     l.PARAMETER            f32, of the parameter's shape; only where the schedule has fragments: what it moved by since its was exchanged
 *     r.PARAMETER            f32, of the parameter's shape; only with feedback
 *     s.PARAMETER.NAME       as in states.h
 *
 * Nobody but its trainer has the object until the trainer shows it (runtime/round/dispute.h); what it holds is the trainer's word, held to
 * what it said a round before.
 */
#ifndef RONDO_WORKER_CARRY_H
#define RONDO_WORKER_CARRY_H

#include "runtime/worker/states.h"

/* The carry that a contribution begins with, { root, object }: the context's, unless the contribution says that it took none. `document` NULL:
 * the trainer's own, about to be made. NULL: none. Borrowed. */
const json_t *carry_of(const json_t *context, const json_t *document);

/* The object's bytes and root; nothing and the empty root where there is nothing to keep. `rest` NULL: no feedback; `moved` NULL: no fragments. */
bool carry_encode(const struct session *s, const struct states *states, const float *rest, const float *moved, struct buffer *out,
                  struct hash *root, struct error *err);

/* Fills `states`, and `rest` and `moved` (zeros where the carry has none, NULL: not wanted), from the store. Errors: missing, mismatch (another root than
 * `carry` says), those of state_decode, shape (not the tensors of this run), non_finite. */
bool carry_read(struct session *s, const json_t *carry, struct states *states, float *rest, float *moved, struct error *err);

/* Whether the object that a trainer shows is what its contribution begins with: "ok" or "upheld". NULL with `err` where this machine cannot tell. */
const char *carry_judge(struct session *s, const json_t *carry, struct error *err);

#endif
