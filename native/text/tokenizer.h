/* tokenizer.h - text to token ids and back, exactly as the library that a model's tokenizer file was written for.
 *
 *     text ── added tokens ──┬─> id                                  `<|im_end|>`: matched whole, never split
 *                            └─> text between ── normaliser ── splits ──> pieces ── BPE, Unigram, WordPiece ──> ids
 *
 * The normaliser changes text (normalizer.h), a split cuts it into pieces (pretokenizer.h), and the model gives a piece its
 * tokens (bpe.h, unigram.h, wordpiece.h). Ids go back to text by the decoder's steps (decoder.h).
 *
 * Four sources give the same object: a `tokenizer.json` of the Hugging Face format, a SentencePiece model, tiktoken's ranks, and
 * the arrays in a GGUF file. All are hostile input. What a file asks for and we do not do is refused by name; nothing is
 * approximated. A tokenizer never changes after loading and may be shared between threads.
 *
 * Encoding adds no BOS or EOS: templates write them. tokenizer_surround adds what the file's `post_processor` does.
 */
#ifndef RONDO_TEXT_TOKENIZER_H
#define RONDO_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "native/text/text_range.h"
#include "native/text/tokens.h"

struct tokenizer;

enum {
    TOKENIZER_MAX_FILE = 64 << 20,   /* bytes of a tokenizer.json */
    TOKENIZER_MAX_TOKENS = 1 << 20,  /* entries; ids lie below    */
    TOKENIZER_MAX_TOKEN_SIZE = 1024, /* bytes of one entry        */
    TOKENIZER_MAX_TEXT = 1 << 30,    /* bytes encoded at once     */
};

struct text_slice {
    const char *bytes; /* borrowed, no zero at the end */
    size_t size;
};

/* The vocabulary as a GGUF file holds it (keys tokenizer.ggml.*); all borrowed, and free again after the call. */
struct tokenizer_arrays {
    const char *model;               /* .model: "gpt2", byte-level BPE, or "llama", SentencePiece's BPE         */
    const char *pre;                 /* .pre, the name of the split rule; of "gpt2", where NULL is refused      */
    const struct text_slice *tokens; /* .tokens, in the byte alphabet                                           */
    const int32_t *types;            /* .token_type, one a token (3 control, 4 user-defined ...), NULL if absent */
    size_t token_count;
    const struct text_slice *merges; /* .merges, "left right"; of "gpt2" */
    size_t merge_count;
    const float *scores;       /* .scores, one a token; of "llama" */
    const uint32_t *bos, *eos; /* what the file says is put around a text; NULL for nothing */
    bool no_space_prefix;      /* .add_space_prefix is there and false; of "llama" */
};

/* From the text of a tokenizer.json. NULL with `err`; the place names the member ("pre_tokenizer.pretokenizers[0].type"). */
struct tokenizer *tokenizer_read(const char *json, size_t size, struct error *err);
/* The tokenizer.json in a model's folder, with what its tokenizer_config.json says besides if there is one: added tokens, and whether
 * BOS and EOS are put around a text (transformers 5: where add_bos_token or add_eos_token stands, it holds in place of the
 * post_processor; else the post_processor alone does). */
struct tokenizer *tokenizer_read_folder(const char *folder, struct error *err);
/* Any of these files, told apart by how it begins. */
struct tokenizer *tokenizer_read_file(const char *path, struct error *err);

/* From SentencePiece's own file (`tokenizer.model`; Unigram or BPE), and from a list of ranks as tiktoken has it (lines of base64
 * and a number); the latter does not name its split rule, which is told by the count of ranks: r50k, p50k, cl100k, o200k and
 * Llama 3. NULL with `err`. */
struct tokenizer *tokenizer_read_sentencepiece(const void *bytes, size_t size, struct error *err);
struct tokenizer *tokenizer_read_ranks(const char *text, size_t size, struct error *err);

/* From the arrays of a GGUF file. NULL with `err`. Of models by their rule (.pre), some put BOS before a text unless the file says
 * otherwise. */
bool tokenizer_rule_adds_bos(const char *pre);
struct tokenizer *tokenizer_from_arrays(const struct tokenizer_arrays *arrays, struct error *err);

void tokenizer_free(struct tokenizer *t);

/* Appends the ids of UTF-8 text. With `special` false a special token's text is encoded as ordinary text (other added
 * tokens are always matched, as the Hugging Face library does). Time n log n. A byte the vocabulary has no token for is
 * handled as the file's own library does: replaced by the unknown token if there is one, else left out.
 * Errors: syntax (not UTF-8), limit. */
bool tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool special, struct tokens *out,
                      struct error *err);

/* The same with special tokens but where one lies within a range of `plain` (ascending): text of others in what a template made. */
bool tokenizer_encode_but(const struct tokenizer *t, const char *text, size_t size, const struct text_range *plain, size_t count,
                          struct tokens *out, struct error *err);

/* Puts the ids around a whole text that the file's post_processor names (BOS, EOS). */
void tokenizer_surround(const struct tokenizer *t, struct tokens *tokens);

/* Appends those of these ids that stand in front (BOS): for a text that is gone on with. */
void tokenizer_start(const struct tokenizer *t, struct tokens *tokens);

/* Appends the bytes of the ids: a byte-level token may end inside a character, so the result need not be UTF-8 until a whole
 * text was given. With `special` false special tokens are left out. Errors: range (an id without a token). */
bool tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t count, bool special, struct buffer *out,
                      struct error *err);

/* Decoding token by token, as a model writes: each call appends what is certain of the text so far, in whole characters; bytes
 * that turn out to be none become U+FFFD. Zero but for `tokenizer` and `special` is a start; free with tokenizer_stream_free. */
struct tokenizer_stream {
    const struct tokenizer *tokenizer;
    bool special;
    uint32_t *ids; /* owned: those whose text is out, for what the next depends on, then those whose text is not */
    size_t count, capacity, known;
    size_t told; /* bytes of the text of ids[0..known) */
};
bool tokenizer_stream_feed(struct tokenizer_stream *s, uint32_t id, struct buffer *out, struct error *err); /* range */
void tokenizer_stream_finish(struct tokenizer_stream *s, struct buffer *out); /* what is left, whole or not */
void tokenizer_stream_free(struct tokenizer_stream *s);

uint32_t tokenizer_size(const struct tokenizer *t);                                          /* greatest id + 1 */
bool tokenizer_find(const struct tokenizer *t, const char *text, size_t size, uint32_t *id); /* by its bytes */
bool tokenizer_is_special(const struct tokenizer *t, uint32_t id);                           /* a control token */

/* What ids depend on besides the file: the library of regular expressions and its Unicode tables ("PCRE2 10.42, Unicode
 * 14.0.0"). Two machines that differ here may split text with characters newer than the older tables differently, so it
 * belongs with the kernel digest to what is compared before a run. Returns `text`. */
const char *tokenizer_engine(char *text, size_t size);

#endif
