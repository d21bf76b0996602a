/* reference.h - the model from which a run on rollouts (its KL term) or on pairs measures.
 *
 *     open job ── reference ──> a folder or .gguf file with a model     a second session over its weights
 *                               a folder with an adapter (PEFT)         a second session over the run's own weights
 *                               none                                    the run's first values, in the run's session
 *
 * The model is read by the run's model script and must have the run's vocabulary: ids mean the same to both. It is frozen, so its
 * session keeps nothing that training would need.
 */
#ifndef RONDO_WORKER_REFERENCE_H
#define RONDO_WORKER_REFERENCE_H

#include "runtime/worker/batch.h"
#include "runtime/worker/session.h"

/* Log-probabilities of the batch's tokens under the reference, [batch time], at the run's sampling temperature; `best` as training_logprobs
 * has it. The reference is opened at the first call and kept in the session. Errors: those of session_new and adapter_read, mismatch (another
 * vocabulary). */
bool reference_logprobs(struct session *s, const struct batch *b, float *logprobs, float *best, struct error *err);

/* That the objective reads the reference that the job names, if it names one. Error: unsupported. */
bool reference_check(const struct session *s, struct error *err);

/* Puts `ref_logprobs` into a batch of pairs where the objective reads it, 0 where nothing is trained; other batches stay as they are. `use` and `clip`
 * name the step that will read it. Errors: as above, those of session_step. */
bool reference_add(struct session *s, struct batch *b, enum session_use use, double clip, struct error *err);

void reference_free(struct session_reference *r);

#endif
