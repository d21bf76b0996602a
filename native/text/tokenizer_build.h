/* tokenizer_build.h - the inside of a tokenizer, for the two files that fill it (tokenizer_json.c, tokenizer_arrays.c).
 *
 *     bytes   [ all tokens' bytes, one after another ]
 *     offsets [ token id -> where its bytes start ], one more than there are ids; an id without a token has no bytes
 *     flags   [ token id -> what it is ]
 *     trie    (node << 8 | byte) -> node, node's token: the added tokens, matched longest first
 */
#ifndef RONDO_TEXT_TOKENIZER_BUILD_H
#define RONDO_TEXT_TOKENIZER_BUILD_H

#include "native/text/bpe.h"
#include "native/text/pair_map.h"
#include "native/text/pretokenizer.h"
#include "native/text/tokenizer.h"

enum {
    TOKEN_PRESENT = 1,
    TOKEN_ADDED = 2,   /* matched in the text before it is split */
    TOKEN_SPECIAL = 4, /* ... only when asked, and left out of decoded text unless asked */
};

struct tokenizer {
    struct buffer bytes;
    uint32_t *offsets; /* count + 1 */
    uint8_t *flags;    /* count */
    uint32_t count;
    struct pair_map by_bytes; /* hash of the bytes and probe number -> id */
    struct pair_map trie;     /* edges */
    struct pair_map trie_ids; /* node -> id of the added token that ends there */
    uint32_t trie_nodes;
    bool trie_first[256]; /* bytes an added token begins with */
    struct bpe bpe;
    struct pretokenizer pretokenizer;
    bool whole_pieces; /* `ignore_merges`: a piece that is a token is that token */
};

/* Text of each id while a tokenizer is filled, and a lookup by the text as the file writes it. */
struct tokenizer_builder {
    struct text_slice *texts; /* by id, borrowed from the file; bytes NULL where absent */
    uint8_t *flags;
    uint32_t count; /* ids below it */
    struct pair_map by_text;
};

bool builder_start(struct tokenizer_builder *b, size_t ids, struct error *err);
/* Errors: range (id), duplicate (id or text), limit (length). An added token may repeat an entry that is there. */
bool builder_add(struct tokenizer_builder *b, uint64_t id, struct text_slice text, uint8_t flags, struct error *err);
uint32_t builder_find(const struct tokenizer_builder *b, struct text_slice text); /* BPE_NONE if absent */
/* A merge as its two sides; its join must be an entry. */
bool builder_merge(const struct tokenizer_builder *b, struct tokenizer *t, struct text_slice left, struct text_slice right,
                   uint32_t rank, struct error *err);
/* Writes bytes, offsets, flags, byte ids and the trie of added tokens. */
bool builder_finish(struct tokenizer_builder *b, struct tokenizer *t, struct error *err);
void builder_free(struct tokenizer_builder *b);

#endif
