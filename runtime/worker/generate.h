/* generate.h - tokens that a model goes on with, for many prompts at once.
 *
 *     prompts ── prefill, 256 tokens at a time ──> keys and values kept (native/graph/cache.h) ──┐
 *        ^  a place that falls free takes the next prompt                                     v
 *        └──────────────────── up to `rows` sequences, one token each a pass ── logits ── draw ── tokens
 *
 * What a prompt begins with as the one before it, all of it perhaps, is not computed again. What a sequence gets follows from model, values, prompt, rule and seed
 * alone: not from the other sequences, their number or order, nor from threads.
 *
 * A draw, over logits x and tokens so far:
 *     repetition r: x of every token that the sequence holds becomes x / r where above 0, else x r
 *     w_i = exp((x_i - max x) / temperature)                      temperature 0: the first greatest x is taken, and that is all
 *     top_k: the k greatest x, of equal ones the lower ids; top_p: of those by descending x the first whose w reach p of the sum;
 *     min_p: those with w of at least min_p (the greatest has 1)
 *     u from Philox4x32-10, key the seed, counter the token's number; the first id, ascending, at which the sum of w passes u times
 *     the whole sum
 * What may not come (`allow`) has the logit minus infinity in all this.
 * (Keskar et al. 2019; Fan et al. 2018; Holtzman et al. 2020; Nguyen et al. 2024.) A token's log-probability is that of the logits as the model
 * gave them, by the definition of token_logprob: the bits of a training pass over the whole sequence.
 */
#ifndef RONDO_WORKER_GENERATE_H
#define RONDO_WORKER_GENERATE_H

#include "runtime/worker/session.h"

struct generate_rule {
    double temperature; /* from 0 */
    uint32_t top_k;     /* 0: all */
    double top_p;       /* above 0; from 1: all */
    double min_p;       /* from 0, below 1 */
    double repetition;  /* above 0; 1: none */
};

enum generate_end { GENERATE_RUNNING, GENERATE_END_OF_TURN, GENERATE_LENGTH, GENERATE_CONTEXT, GENERATE_STOPPED };

/* One sequence. The first part is the caller's. */
struct generation {
    const uint32_t *prompt; /* borrowed; at least one */
    uint32_t prompt_count, most;
    uint64_t seed;

    uint32_t *tokens; /* owned, free with generation_free; without the token that ended the turn */
    float *logprobs;  /* of each, and of the token that ended the turn where one did: `drawn` in all */
    uint32_t count, drawn;
    uint32_t ended_by; /* that token, with GENERATE_END_OF_TURN */
    enum generate_end end;
};

struct generate_options {
    struct generate_rule rule;
    const uint32_t *ends; /* tokens that end a turn */
    size_t end_count;
    uint32_t rows; /* sequences at once, at most 4096; 0: 8 */
    /* Before each draw: sets the bits of the tokens that may come, of those of the model and of the tokenizer; `bits` is all zero. NULL: all may. */
    void (*allow)(void *context, const struct generation *g, uint64_t *bits);
    void *allow_context;
    /* After each token of g; false ends the sequence (GENERATE_STOPPED). May be NULL. With an error set everything ends. */
    bool (*token)(void *context, const struct generation *g, struct error *err);
    void *context;
};

/* `values` are the trained ones, as session_genesis gives them. Errors: missing (an empty prompt), limit (a prompt as long as the context),
 * unsupported (a model whose tokens depend on each other by more than causal attention; no token that may come), non_finite, memory, those of tracing. */
bool generate(struct session *s, const float *values, const struct generate_options *options, struct generation *list,
              size_t count, struct error *err);
void generation_free(struct generation *g);

/* The tokens that end a turn of the model: the one the template knows as eos_token, and those of the configuration. Returns how many. */
enum { GENERATE_ENDS = 16 };
size_t generate_ends(const struct session *s, uint32_t ends[GENERATE_ENDS]);

/* What tokens say, as UTF-8: what can be no character becomes U+FFFD; an unfinished one at the end waits unless `all`. */
bool generate_text(const struct session *s, const uint32_t *ids, size_t count, bool all, struct buffer *text, struct error *err);

/* The index that a number in [0, 1) picks. `logits` may be changed; `seen` are the ids of the sequence, for the repetition. */
uint32_t generate_pick(float *logits, uint32_t count, const struct generate_rule *rule, const uint32_t *seen, size_t seen_count,
                       double uniform);

/* The number in [0, 1) of a token. */
double generate_uniform(uint64_t seed, uint32_t token);

#endif
