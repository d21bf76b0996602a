/* pretokenizer.h - text to the pieces that BPE works on: a chain of regular expressions, each splitting what the one before
 * left.
 *
 *     "It's 12 km"  ── \p{N} ──>  "It's " "1" "2" " km"  ── GPT-2 ──>  "It" "'s" " " "1" "2" " km"
 *
 * Matches and the gaps between them become pieces ("isolated"). The regular expressions of tokenizer.json are Oniguruma's;
 * they run on PCRE2 with Unicode properties, which agrees on the constructs let through. Constructs that the two read
 * differently, and any that could run long, are refused by name.
 */
#ifndef RONDO_TEXT_PRETOKENIZER_H
#define RONDO_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

enum {
    PRETOKENIZER_MAX_SPLITS = 8,
    PRETOKENIZER_MAX_PATTERN = 4096, /* bytes of a regular expression */
};

extern const char PRETOKENIZER_GPT2[], PRETOKENIZER_LLAMA3[], PRETOKENIZER_QWEN2[];

struct pretokenizer {
    void *splits[PRETOKENIZER_MAX_SPLITS]; /* compiled, owned */
    size_t count;
};

/* Adds a split at the end of the chain. Errors: syntax, unsupported, limit. */
bool pretokenizer_add(struct pretokenizer *p, const char *pattern, size_t size, bool literal, struct error *err);
void pretokenizer_free(struct pretokenizer *p);

/* Calls `piece` for each piece of UTF-8 text, in order; none is empty. false with `err` (limit) if a regular expression
 * needs too much. Safe from several threads at once. */
bool pretokenizer_split(const struct pretokenizer *p, const char *text, size_t size,
                        void (*piece)(void *context, const char *text, size_t size), void *context, struct error *err);

#endif
