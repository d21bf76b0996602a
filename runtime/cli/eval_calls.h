/* eval_calls.h - tool calls that a model really writes, judged by the Berkeley leaderboard's rules (native/text/tool_calls.h).
 *
 *     row { messages: [..., assistant(tool_calls)], tools, accepted? } ── all before that turn ── greedy text ── calls ── right or why not
 *
 * `accepted` lists the values that are right, [{ NAME: { ARGUMENT: [values] } }]; a row without takes those of its own turn.
 */
#ifndef RONDO_CLI_EVAL_CALLS_H
#define RONDO_CLI_EVAL_CALLS_H

#include "runtime/cli/speaker.h"

/* { data, cases, right, accuracy, why: { WORD: count } } over the rows whose last turn calls a tool, `most` of them at most (0: all). The
 * words are those of tool_calls_right, "none" where no call was written and "syntax" where it cannot be read. With `each` also each: [{ row,
 * right, why, text }]. New reference; NULL with `err`: missing (no such row), those of reading the data and of sampling. */
json_t *eval_calls(struct invocation *in, struct speaker *speaker, const char *data, int64_t most, bool each, struct error *err);

#endif
