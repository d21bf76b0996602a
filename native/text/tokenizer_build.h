/* tokenizer_build.h - the inside of a tokenizer, for the two files that fill it (tokenizer_json.c, tokenizer_arrays.c).
 *
 *     bytes   [ all tokens' bytes, one after another ]
 *     offsets [ token id -> where its bytes start ], one more than there are ids; an id without a token has no bytes
 *     flags   [ token id -> what it is ]
 */
#ifndef RONDO_TEXT_TOKENIZER_BUILD_H
#define RONDO_TEXT_TOKENIZER_BUILD_H

#include <jansson.h>

#include "native/text/added_tokens.h"
#include "native/text/bpe.h"
#include "native/text/decoder.h"
#include "native/text/normalizer.h"
#include "native/text/pair_map.h"
#include "native/text/pretokenizer.h"
#include "native/text/tokenizer.h"
#include "native/text/unigram.h"
#include "native/text/wordpiece.h"

enum {
    TOKEN_PRESENT = 1,
    TOKEN_ADDED = 2,       /* matched in the text before it is split */
    TOKEN_SPECIAL = 4,     /* ... only when asked, and left out of decoded text unless asked */
    TOKEN_SINGLE_WORD = 8, /* ... not next to a character of a word */
    TOKEN_LSTRIP = 16,     /* ... with the white space before it */
    TOKEN_RSTRIP = 32,
    TOKEN_NORMALIZED = 64, /* ... in normalised text */
    TOKEN_OF_MODEL = 128,  /* an entry of the model's own vocabulary */
};

enum { TOKENIZER_MAX_AROUND = 16 };

struct tokenizer {
    struct buffer bytes;
    uint32_t *offsets; /* count + 1 */
    uint8_t *flags;    /* count */
    uint32_t count;
    struct pair_map by_bytes; /* hash of the bytes and probe number -> id */
    struct added_tokens added, added_normalized;
    struct normalizer normalizer;
    struct pretokenizer pretokenizer;
    enum { MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDPIECE, MODEL_WORDLEVEL } model;
    struct bpe bpe;
    struct unigram unigram;
    struct wordpiece wordpiece;
    struct decoder decoder;
    bool whole_pieces; /* `ignore_merges`: a piece that is a token is that token */
    uint32_t before[TOKENIZER_MAX_AROUND], after[TOKENIZER_MAX_AROUND]; /* ids put around a text */
    size_t before_count, after_count;
};

/* Text of each id while a tokenizer is filled, and a lookup by the text as the file writes it. */
struct tokenizer_builder {
    struct text_slice *texts; /* by id, borrowed from the file; bytes NULL where absent */
    uint8_t *flags;
    uint32_t count; /* ids below it */
    struct pair_map by_text;
    bool raw_added; /* texts of added tokens are as normalised text has them */
    struct text_slice prefix,
        suffix;        /* of tokens that do not begin a piece, and that end one; plain ASCII; bytes NULL for none */
    bool crossed[256]; /* last bytes of other characters that a merge puts "▁" after */
};

bool builder_start(struct tokenizer_builder *b, size_t ids, struct error *err);
/* Errors: range (id), duplicate (id or text), limit (length). An added token may repeat an entry that is there. */
bool builder_add(struct tokenizer_builder *b, uint64_t id, struct text_slice text, uint8_t flags, struct error *err);
uint32_t builder_find(const struct tokenizer_builder *b, struct text_slice text); /* BPE_NONE if absent */
/* A merge as its two sides; its join, without the right one's prefix, must be an entry. */
bool builder_merge(struct tokenizer_builder *b, struct tokenizer *t, struct text_slice left, struct text_slice right,
                   uint32_t rank, struct error *err);
/* Writes bytes, offsets, flags, ids of bytes and characters, and the added tokens; normaliser, pre-tokenizer and merges must be
 * there. Tokens stand for bytes if the pre-tokenizer has a ByteLevel step. */
bool builder_finish(struct tokenizer_builder *b, struct tokenizer *t, struct error *err);
void builder_set_fallback(struct tokenizer *t, struct text_slice text, uint32_t id); /* of "<0xNN>", which text never gives */
/* SentencePiece's BPE, after builder_finish: pairs whose joined text is a token, the best score first. */
bool builder_merge_by_scores(struct tokenizer_builder *b, struct tokenizer *t, const float *scores, struct error *err);
/* Unigram, after builder_finish: scores of all ids below count. Takes `scores`. */
void builder_set_unigram(const struct tokenizer_builder *b, struct tokenizer *t, double *scores, uint32_t unknown,
                         bool byte_fallback);
void builder_set_cut(const struct tokenizer_builder *b, struct tokenizer *t); /* last: sets bpe.cut */
/* What a model's tokenizer_config.json says besides (tokenizer_config.c); `config` NULL: there is none. Ids that it needs at least;
 * added tokens that tokenizer.json lacks; and after builder_finish and the post-processor, whether BOS and EOS are put around. */
bool config_greatest_id(const json_t *config, size_t *ids, struct error *err);
bool config_add_tokens(struct tokenizer_builder *b, const json_t *config, struct error *err);
void config_surround(const struct tokenizer_builder *b, struct tokenizer *t, const json_t *config);

/* The flags of an added token as a file describes it. */
uint8_t added_token_flags(const json_t *token);
void builder_free(struct tokenizer_builder *b);

/* The members of a tokenizer.json beside the vocabulary (tokenizer_steps.c). The place names the step. */
bool steps_read_normalizer(struct normalizer *n, const json_t *value, struct error *err);
bool steps_read_pretokenizer(struct pretokenizer *p, const json_t *value, struct error *err);
bool steps_read_decoder(struct decoder *d, const json_t *value, struct error *err);
bool steps_read_post_processor(struct tokenizer *t, const json_t *value, struct error *err);

#endif
