/* bpe.h - byte-pair encoding of one piece of text.
 *
 * Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016): the piece starts as one symbol
 * a byte, or a character; the adjacent pair of lowest rank is joined, leftmost on ties, until no pair has a rank.
 *
 *     symbols   t  h  e        a linked list in arrays: prev, next, id, end
 *     heap     (rank, place)   entries that a join made stale are skipped when they come up
 *
 * Where a file marks places (CLIP: "o</w>" ends a word), the symbols at them are other tokens than within a piece.
 *
 * Short pieces look for the minimum in the list instead, which is faster; both give the same result.
 */
#ifndef RONDO_TEXT_BPE_H
#define RONDO_TEXT_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/text/pair_map.h"
#include "native/text/tokens.h"

enum {
    BPE_NONE = UINT32_MAX,        /* no id */
    BPE_BARRIER = UINT32_MAX - 1, /* a symbol that joins with nothing and gives no token */
};

struct bpe {
    uint32_t byte_ids[256];       /* id of the token of one byte, or BPE_NONE; of characters: below 0x80 only */
    bool characters;              /* symbols are characters */
    struct pair_map by_character; /* their code points -> id */
    bool byte_fallback;           /* a character without a token is its bytes' tokens `<0xNN>`, if all are there */
    uint32_t fallback_ids[256];   /* of these, or BPE_NONE */
    char cut[8];                  /* a character ("▁") before which text may be cut without a change of tokens, or empty ... */
    bool crossed[256];            /* ... unless it follows itself or one of these bytes */
    bool placed;                  /* which symbol it is depends on its place: */
    struct pair_map by_place;     /* place << 32 | byte or code point -> id; place: 1 not the first, 2 the last, 3 both */
    struct pair_map merges;       /* (left id, right id) -> rank << 32 | id of the join */
    uint32_t unknown;             /* id for bytes without a token, or BPE_NONE */
    bool fuse_unknown;            /* a run of unknown bytes is one token */
    bool keep_unknown;            /* an unknown byte that gives no token still keeps its neighbours apart (llama.cpp) */
};

void bpe_set_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t joined);

/* Room for pieces, kept from one piece to the next. Zero is empty; free with bpe_work_free. */
struct bpe_work {
    struct bpe_symbol {
        uint32_t id, end, prev, next;
    } * symbols;
    uint64_t *heap;
    size_t symbol_capacity, heap_capacity, heap_count;
};

void bpe_work_free(struct bpe_work *work);

/* Appends the tokens of a piece; `start` is its offset in the text, for tokens.ends. */
void bpe_encode(const struct bpe *bpe, const uint8_t *piece, size_t size, uint32_t start, struct bpe_work *work,
                struct tokens *out);

#endif
