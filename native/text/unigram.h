/* unigram.h - the split of a piece into tokens of the greatest sum of scores (Kudo, "Subword Regularization", 2018; Viterbi).
 *
 *     trie of all tokens; at each place the best path that ends there:  [ score | where its last token starts | its id ]
 *
 * A character that no token starts with alone may be an unknown one, at the least score of all less 10. Runs of unknown
 * characters become one token, or the tokens of their bytes. Of equal sums the first found stays, as in the Hugging Face library.
 */
#ifndef RONDO_TEXT_UNIGRAM_H
#define RONDO_TEXT_UNIGRAM_H

#include "native/text/added_tokens.h"
#include "native/text/tokens.h"

struct unigram {
    double *scores; /* owned, one an id */
    double least;
    struct added_tokens trie;
    uint32_t unknown; /* id, or UINT32_MAX: a text that needs it is refused */
    bool byte_fallback;
    bool single; /* sums in single precision, as SentencePiece makes them */
    uint32_t fallback_ids[256];
};

void unigram_free(struct unigram *u);

/* Room for pieces. Zero is empty; free with unigram_work_free. */
struct unigram_work {
    struct unigram_node {
        double score;
        uint32_t start, id;
    } * nodes;
    size_t capacity;
};

void unigram_work_free(struct unigram_work *work);

/* Appends the tokens of a piece of valid UTF-8; ends are relative to `start`. false: an unknown character and no token for it. */
bool unigram_encode(const struct unigram *u, const char *piece, size_t size, uint32_t start, struct unigram_work *work,
                    struct tokens *out);

#endif
