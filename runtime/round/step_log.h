/* step_log.h - what a trainer says about each of its steps, so that anyone can find the first that is wrong.
 *
 *     "RNDL" | u16 version 1 | u16 0 | u32 steps
 *     leaf 0      start root (32), carry in (32)
 *     leaf i      batch root (32), loss f32, root (32) of all that step i + 1 reads        i = 1 .. steps
 *     last leaf   payload body root (32), carry out (32)
 *
 * The root of a leaf is zeros where the run shows it only every so many steps (`checkpoint_every` in the context) and this is not one of
 * them; the last step's is always shown.
 *
 * A contribution names it, repeats its ends, and shows a few steps as probes: the loss and PROBE_VALUES trained parameters, at the
 * steps and positions that the seed draws. Roots are state roots (runtime/crypto/root.h); an absent carry is the empty root.
 */
#ifndef RONDO_ROUND_STEP_LOG_H
#define RONDO_ROUND_STEP_LOG_H

#include <jansson.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "runtime/crypto/hash.h"

enum { STEP_LOG_HEAD = 12, STEP_LOG_ENDS = 64, STEP_LOG_LEAF = 68, STEP_LOG_STEPS = 1 << 20, PROBE_VALUES = 8 };

struct step_leaf {
    struct hash batch, state;
    float loss;
};

struct step_log {
    struct hash start, carry_in, body, carry_out;
    struct step_leaf *leaves; /* owned, `steps` of them */
    uint32_t steps;
};

/* Whether the leaf of step `step`, from 0, shows the state after it. */
bool step_is_shown(const json_t *context, int64_t step, int64_t steps);

/* Bytes of the log of that many steps; of more than STEP_LOG_STEPS, or fewer than none, those of that. */
uint64_t step_log_size(int64_t steps);

void step_log_free(struct step_log *log);

void step_log_encode(const struct step_log *log, struct buffer *out);

/* From hostile bytes. Errors: truncated, syntax, limit, non_finite (a loss). */
bool step_log_decode(const void *bytes, size_t size, struct step_log *out, struct error *err);

/* The first leaf that differs (0 .. steps + 1), or -1. Logs of different length differ at the shorter's end. */
int64_t step_log_difference(const struct step_log *a, const struct step_log *b);

/* Mean of the losses, summed in f64 in ascending order. */
float step_log_loss(const struct step_log *log);

/* Whether a contribution fits its context (assignment.h) and its log: "ok", or the code of the first rule it breaks: "start", "steps", "codec",
 * "carry", "step_log" (also a root where none is shown), "body", "end", "loss", "probes". `body` is the root of the payload's body as it was decoded. Pure: honest members
 * get the same code. */
const char *contribution_code(const json_t *contribution, const json_t *context, const struct step_log *log, struct hash body);

/* Positions of a probe's values among `values` trained parameters, ascending. New reference. */
json_t *probe_positions(const json_t *context, int64_t step, uint64_t values);

#endif
