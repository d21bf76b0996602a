/* tool_calls.h - tool calls in what a model wrote, and whether they are right by the rules of the Berkeley leaderboard.
 *
 *     text  <tool_call>{"name": "f", "arguments": {"x": 5}}</tool_call>   ── tool_calls_read ──>  [{ name, arguments }]
 *     tools [{ function: { name: "f", parameters: { properties: { x: { type: "integer" } } } } }] ┐
 *     accepted [{ "f": { "x": [5, "five"], "unit": ["", "m"] } }]                                 ┴─ tool_calls_right ──> yes or no
 *
 * `accepted` lists for each argument every value that is right; "" among them: the argument may be left out.
 */
#ifndef RONDO_TEXT_TOOL_CALLS_H
#define RONDO_TEXT_TOOL_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

/* A new list of { name: text, arguments: object }, empty where the text calls nothing. Read are: every <tool_call>...</tool_call>, the last
 * perhaps unclosed; else what follows [TOOL_CALLS]; else the text if it is JSON as a whole. Each is one call or a list of calls; the
 * arguments' name is `arguments` or `parameters`, and they may be a JSON text. Whatever else such a place holds makes the whole list
 * NULL with `err` (syntax, type): what cannot be called is not half right. */
json_t *tool_calls_read(const char *text, size_t size, struct error *err);

/* The turn's own calls as `accepted`: each argument has its one value. New reference; NULL with `err` (type, syntax). `calls` as in messages:
 * { function: { name, arguments } }. */
json_t *tool_calls_accepted(const json_t *calls, struct error *err);

/* Whether `calls` are as many as `accepted` and each of those is met by a call of its own, in any order. `why`, which may be NULL, is set to
 * a word: "right", "count", "name", "missing", "unexpected", "type" or "value" (of the last try, when several were made).
 *
 * Rules: a required argument must be there, as must one without "" among its values; one that the tool or `accepted` does not know must not.
 * Types are those of the tool's schema, exactly, entries of lists included, but an integer serves as a number that is no entry; a value whose type is not the schema's but that of
 * the first accepted value passes, too, and must then equal one. Texts compare in lower case, without any of " ,./-_*^", with ' as ",
 * also inside lists and objects (one level). Lists and objects otherwise are equal or not; a list of objects goes object by object, an
 * object key by key with the accepted values of each key. A parameter without a type takes texts.
 * Source: bfcl-eval, eval_checker/ast_eval/ast_checker.py, the rules for Python. */
bool tool_calls_right(const json_t *tools, const json_t *calls, const json_t *accepted, const char **why);

#endif
