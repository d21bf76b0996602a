/* wordpiece.h - the longest token first, again and again (Wu et al., "Google's Neural Machine Translation System", 2016).
 *
 *     "unaffable"  ──>  "un" "##aff" "##able"        a word that does not come out is one unknown token
 */
#ifndef RONDO_TEXT_WORDPIECE_H
#define RONDO_TEXT_WORDPIECE_H

#include "native/text/added_tokens.h"
#include "native/text/tokens.h"

struct wordpiece {
    struct added_tokens first, rest; /* tokens, and what stands after the prefix in those that go on a word */
    uint32_t unknown;
    size_t longest; /* characters of a word that is tried */
};

void wordpiece_free(struct wordpiece *w);
void wordpiece_encode(const struct wordpiece *w, const char *word, size_t size, uint32_t start, struct tokens *out);

#endif
