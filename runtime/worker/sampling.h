/* sampling.h - text that a model goes on with: one token after the other, for trying a model out.
 *
 *     prompt ── tokens ──> generate.h ── tokens ──> text, as it comes, to the first stop string
 *
 * job    { outer: CID | null, adapter: folder | null, prompt: text | conversation: { messages, tools? }, max_tokens,
 *          temperature?: number (0, or none: the most likely token), top_k?, top_p?, min_p?, repetition?: as in generate.h,
 *          as_model?: true (what is not said is as the model's generation_config.json says), stop?: [ text ],
 *          constrain?: "tools" or "tools-or-text": constraint.h, seed }
 * report { text }, what has come since the last report; never half a character
 * result { text, tokens, prompt_tokens, ids: [ number ], logprobs: [ number ], end: "end_of_turn" | "stop" | "length" | "context" }
 *
 * job    { outer, adapter, prompt or conversation: as above, choices: [ text ] }        "choose": how likely each is as what comes next
 * result { choices: [ { logprob, tokens, bytes } ] }, sums over each choice's tokens
 *
 * After a text, prompt and choice are tokenised as one where that begins with the prompt's own tokens; else, and after a conversation,
 * the choice is tokenised by itself.
 *
 * Values: values.h. The same seed gives the same text on every machine. Many conversations at once: answering.h.
 */
#ifndef RONDO_WORKER_SAMPLING_H
#define RONDO_WORKER_SAMPLING_H

#include "runtime/worker/generate.h"
#include "runtime/worker/jobs.h"

/* New reference; NULL with `err`: missing (weights), range (the rule), shape (an adapter of another model), those of generate and of the
 * chat template. */
json_t *job_sample(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err);

/* New reference; NULL with `err`: missing (weights, a choice without tokens), limit (longer than the context), those of job_sample's prompt. */
json_t *job_choose(struct session *s, const json_t *job, struct error *err);

/* What every job that draws reads: the tokens of `prompt` or `conversation` (missing: none; those of the chat template), the rule of drawing
 * (range; missing: as_model without that file), and the word for how a sequence ended. */
bool sampling_prompt(const struct session *s, const json_t *from, struct tokens *tokens, struct error *err);
bool sampling_rule(const struct session *s, const json_t *job, struct generate_rule *rule, struct error *err);
const char *sampling_end(enum generate_end end);

#endif
