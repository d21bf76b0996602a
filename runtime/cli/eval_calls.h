/* eval_calls.h - tool calls that a model really writes, judged by the Berkeley leaderboard's rules (native/text/tool_calls.h).
 *
 *     row { messages: [..., assistant(tool_calls)], tools, accepted? } ── all before that turn ── greedy text ── calls ── right or why not
 *
 * `accepted` lists the values that are right, [{ NAME: { ARGUMENT: [values] } }]; a row without takes those of its own turn.
 */
#ifndef RONDO_CLI_EVAL_CALLS_H
#define RONDO_CLI_EVAL_CALLS_H

#include "runtime/cli/speaker.h"

struct eval_calls {
    const char *data;
    int64_t most;       /* rows; 0: all */
    int64_t batch;      /* sequences at once: what is written does not depend on it */
    int64_t max_tokens; /* of an answer */
    bool each;
    const char *constrain; /* as the job's; NULL: not */
};

/* { data, cases, right, accuracy, why: { WORD: count }, prompt_tokens, tokens, seconds, tokens_per_second } over the rows whose last turn calls
 * a tool. The words are those of tool_calls_right, "none" where no call was written, "syntax" where it cannot be read and "context" where
 * question or answer reached the model's longest sequence. The seconds are those of reading prompts and writing answers, the rate that
 * of the tokens written. With `each` also each: [{ row, right, why, text }]. New reference; NULL with `err`: missing (no such row), those
 * of reading the data and of answering.h. */
json_t *eval_calls(struct invocation *in, struct speaker *speaker, const struct eval_calls *how, struct error *err);

#endif
