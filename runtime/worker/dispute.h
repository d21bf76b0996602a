/* dispute.h - the moves of a dispute about one step of a contribution (docs/protocol.md, section 7), and who is right.
 *
 *     leaf i of the step log is wrong     challenge
 *     dispute_open      the trainer:      the step once more, the hash of every tile of every value of its graph   -> opening
 *     dispute_opening   anyone:           does it have the shape of that graph, and leaf i's state and loss as its results?
 *     dispute_pick      the challenger:   the first tile that differs, and the parts of its operands, with proofs   -> pick
 *     dispute_judge     anyone:           that tile alone, computed from those parts
 *
 *     opening   "RNDO" | u16 version 1 | u16 0 | u32 step | u64 tiles | tile hash (32) each
 *     pick      "RNDK" | u16 version 1 | u16 0 | u32 step | u32 entry | u64 tile | u32 tensors | tensor root (32) each | parts
 *
 * An entry is a value of the step's graph (runtime/worker/step.h): every node that is computed, in ascending order, then each result that
 * lies in another's memory. Its tiles are 256 KiB of its row-major bytes, hashed as in runtime/crypto/merkle.h. How many there are
 * follows from the graph, the graph from spec, seed and shards; so nothing in an opening needs to be believed.
 *
 * A part is what merkle_part writes: the leaves that the tile needs of one operand's memory, ascending by node. Of values of the step it
 * is proved by the trainer's own opening; of trained values and optimiser state by leaf i - 1, through the roots of all its tensors (`tensors` is 0
 * where none is needed). What everybody knows is not shown: batch, learning rate, frozen weights, and at step 1 the start. Nor is an operand of more
 * than 16 MiB where what it is made of is less (dispute_reads.h): logits of a large vocabulary, which the judge makes from hidden states.
 *
 * A dispute by tiles is offered for steps of runs on given text that show the state after every step. The last leaf, steps on rollouts and those
 * of step logs with gaps are judged by a replay. Whoever challenges
 * leaf 0 of a contribution that begins with a carry asks for that carry: its opening's trace is the carry's object (carry.h).
 */
#ifndef RONDO_WORKER_DISPUTE_H
#define RONDO_WORKER_DISPUTE_H

#include "runtime/round/step_log.h"
#include "runtime/worker/reporter.h"
#include "runtime/worker/session.h"

#define OPENING_MEDIA "application/vnd.rondo.opening"
#define PICK_MEDIA    "application/vnd.rondo.pick"

enum { DISPUTE_OBJECT = 64 << 20 /* bytes of an opening or a pick at most */ };

/* Whether leaf `index` of a log of `steps` is disputed by tiles: in a run that shows every step's state. */
bool dispute_by_tiles(const struct session *s, int64_t index, int64_t steps);

/* What is disputed: a trainer's context and shards, and the leaf, from 1. `log` is the trainer's, NULL for dispute_open. */
struct dispute_case {
    const json_t *context, *shards; /* borrowed */
    int64_t index;
    const struct step_log *log; /* borrowed */
    const json_t *carry;        /* as in running.h; borrowed, NULL: none. A judge needs it at step 1 alone */
};

/* The trainer's opening of the case. */
bool dispute_open(struct session *s, const struct dispute_case *c, const struct job_reporter *to, struct buffer *opening,
                  struct error *err);

/* What a verdict says. */
struct dispute_verdict {
    const char *code;          /* static: "ok" (of an opening), "upheld", "rejected" */
    const char *why;           /* static */
    const char *operator_name; /* static: the disputed value's, or NULL */
    uint32_t entry;
    uint64_t tile;
};

/* Of an opening from outside: "ok", or "upheld" because it is malformed or its results are not leaf i's. False with `err` when this machine cannot
 * tell (data is missing, memory). */
bool dispute_opening(struct session *s, const struct dispute_case *c, const void *opening, size_t size,
                     struct dispute_verdict *out, struct error *err);

/* The challenger's pick against a well-formed opening. out->code: "ok" with `pick` filled, or "rejected": the opening is right. */
bool dispute_pick(struct session *s, const struct dispute_case *c, const void *opening, size_t opening_size,
                  const struct job_reporter *to, struct buffer *pick, struct dispute_verdict *out, struct error *err);

/* Of a pick from outside against a well-formed opening: "upheld" or "rejected". */
bool dispute_judge(struct session *s, const struct dispute_case *c, const void *opening, size_t opening_size, const void *pick,
                   size_t pick_size, struct dispute_verdict *out, struct error *err);

/* Where two openings of one leaf part: out->code "ok" with the first value and tile that differ, or "rejected": they are equal. Errors: syntax
 * (one has not the shape of the step). c->log is not read. */
bool dispute_compare(struct session *s, const struct dispute_case *c, const void *a, size_t a_size, const void *b, size_t b_size,
                     struct dispute_verdict *out, struct error *err);

#endif
