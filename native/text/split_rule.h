/* split_rule.h - the split rules of nearly all models, without a regular expression engine.
 *
 * The rules of GPT-2, cl100k, Llama 3, Qwen, o200k, Tekken and DeepSeek are one idea with a few choices: contractions, words
 * with one character before them, numbers, runs of other signs, line ends, spaces. A rule here gives what its pattern gives;
 * unicode.h tells the characters apart.
 */
#ifndef RONDO_TEXT_SPLIT_RULE_H
#define RONDO_TEXT_SPLIT_RULE_H

#include <stddef.h>

struct split_rule;

/* The rule for a pattern as files write it, NULL if there is none. */
const struct split_rule *split_rule_find(const char *pattern, size_t size);

/* Bytes of the match that begins at `at` (at < end, valid UTF-8), 0 if none does. */
size_t split_rule_match(const struct split_rule *rule, const char *at, const char *end);

extern const char SPLIT_GPT2[], SPLIT_LLAMA3[], SPLIT_QWEN2[], SPLIT_CL100K[], SPLIT_R50K[], SPLIT_O200K[], SPLIT_QWEN35[],
    SPLIT_TEKKEN[], SPLIT_DEEPSEEK3[];

#endif
