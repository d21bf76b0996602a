/* token_table.h - the tokens of a vocabulary by the bytes they stand for, and those of them that an automaton lets pass.
 *
 *     sorted   "a" "ab" "abc" "b"       with each how much it has in common with the one before it
 *     walk     a state for each byte of the token at hand: the next token goes on from where the two part
 *
 * A token's bytes are what it adds to a text that stands before it. Special tokens have none; neither have tokens that add nothing, or
 * what is no whole text of the file's own (U+FFFD).
 */
#ifndef RONDO_TEXT_TOKEN_TABLE_H
#define RONDO_TEXT_TOKEN_TABLE_H

#include "native/text/call_automaton.h"
#include "native/text/tokenizer.h"

struct token_entry {
    const char *bytes; /* in the table's text */
    uint32_t size, common, id;
};

struct token_table {
    struct token_entry *list; /* owned, sorted by bytes, then id */
    size_t count;
    uint32_t *place; /* owned: of each id, in the list, from 1; 0: it has no bytes */
    uint32_t ids;
    struct buffer text;
    uint32_t longest;
    bool single[256]; /* whether a token is that byte alone */
    bool continues;   /* every byte that goes on a character of UTF-8 is: a token may end within one */
};

/* Errors: unsupported (printable ASCII that no token is alone), those of decoding. Free with token_table_free, after a failure too. */
bool token_table_of(struct token_table *t, const struct tokenizer *tokenizer, struct error *err);
void token_table_free(struct token_table *t);

/* Sets the bit of every token after which the shortest right answer takes at most `most` symbols: bytes' tokens, and special ones that the
 * grammar has next. `bits` has room for all ids and is all zero. `memory` is left as it was. */
void token_table_allow(const struct token_table *t, const struct call_grammar *g, struct call_memory *memory,
                       const struct call_state *state, size_t most, uint64_t *bits);

/* Reads a token; false: it may not come. */
bool token_table_feed(const struct token_table *t, const struct call_grammar *g, struct call_memory *memory,
                      struct call_state *state, uint32_t id);

#endif
