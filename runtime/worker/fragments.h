/* fragments.h - rounds that exchange a part of the trained tensors: the schedule's `fragments` and `fragment(param)`, the plan's `fragment`.
 *
 *     layout         q_proj.0 | q_proj.1 | q_proj.2 | ...        fragment      0   1   0
 *     plan of round r says fragment = 1 ──> payload, fold and outer optimiser see q_proj.1 alone
 *     with inner = "keep" what the others moved by is the trainer's own until their turn comes (carry.h); else it is forgotten
 *
 * Internal to runtime/worker. The assignment is a function of the spec: every round and every machine has the same.
 */
#ifndef RONDO_WORKER_FRAGMENTS_H
#define RONDO_WORKER_FRAGMENTS_H

#include "runtime/worker/session.h"

#define FRAGMENT_ALL UINT32_MAX

/* Asks the schedule once for the fragment of every trained tensor. Errors: those of script_plan, script (a tensor without one). */
bool fragments_load(struct session *s, struct error *err);

/* What a round of this plan exchanges; FRAGMENT_ALL: everything. Errors: range (no such fragment, or one without a tensor), script. */
bool fragments_of(struct session *s, const json_t *plan, uint32_t *fragment, struct error *err);

bool fragment_has(uint32_t fragment, const struct layout_parameter *p);

/* Values and tensors of one. */
void fragment_measure(const struct layout *l, uint32_t fragment, uint64_t *values, size_t *tensors);

#endif
