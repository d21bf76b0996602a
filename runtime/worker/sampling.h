/* sampling.h - text that a model goes on with: one token after the other, for trying a model out.
 *
 *     prompt ── tokens ──> [t0 t1 ... tn] ── forward pass of the whole sequence ──> logits of the next token ── draw ──> t(n+1)
 *                                 ^──────────────────────────────────────────────────────────────────────────────────────┘
 *
 * job    { outer: CID | null, adapter: folder | null, prompt: text | conversation: { messages, tools? }, max_tokens,
 *          temperature: number (0: the most likely token), seed }
 * report { text }, what has come since the last report; never half a character
 * result { text, tokens, prompt_tokens, end: "end_of_turn" | "length" | "context" }
 *
 * Values: of the outer state; else the model's own, under the adapter's where one is given. A draw takes Philox4x32-10 with
 * the seed as its key and the token's number as its counter, so the same seed gives the same text on every machine. Nothing is kept from
 * token to token: sequences are padded to a power of two, so that few shapes are traced.
 */
#ifndef RONDO_WORKER_SAMPLING_H
#define RONDO_WORKER_SAMPLING_H

#include "runtime/worker/jobs.h"

/* New reference; NULL with `err`: missing (weights, a prompt), limit (a prompt as long as the context), shape (an adapter of another
 * model), those of tracing and of the chat template. */
json_t *job_sample(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);

/* The index that a number in [0, 1) picks among softmax(logits / temperature); of temperature 0 the first greatest logit. */
uint32_t sampling_pick(const float *logits, uint32_t count, double temperature, double uniform);

#endif
