/* pretokenizer.h - text to the pieces that the model works on: a chain of steps, each splitting what the one before left.
 *
 *     "It's 12 km"  ── Digits ──>  "It's " "1" "2" " km"  ── GPT-2 ──>  "It" "'s" " " "1" "2" " km"
 *
 * A split cuts at matches; its behaviour says what becomes of them (split on "-" of "a-b--c"):
 *
 *     isolated      a - b - - c        removed    a b c        contiguous   a - b -- c
 *     with previous a- b- - c          with next  a -b - -c    inverted: match and gap change places
 *
 * Steps may also change the text: a space before the first word, spaces written as "▁". Steps after ByteLevel see each byte
 * as the character that stands for it (byte_alphabet.h), as in the library that the files are written for.
 */
#ifndef RONDO_TEXT_PRETOKENIZER_H
#define RONDO_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"
#include "native/text/aligned.h"
#include "native/text/pattern.h"
#include "native/text/split_rule.h"

enum { PRETOKENIZER_MAX_STEPS = 16, PRETOKENIZER_MAX_REPLACEMENT = 16 };

enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_CONTIGUOUS, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT };
enum split_set { SET_DIGITS, SET_PUNCTUATION, SET_SPACES, SET_WORDS /* runs of \w, and of what is neither that nor space */ };
enum prepend_scheme { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS };

struct pretokenizer {
    struct pretokenizer_step {
        enum { STEP_PATTERN, STEP_RULE, STEP_SET, STEP_FIXED, STEP_PREFIX, STEP_METASPACE } kind;
        enum split_behavior behavior;
        bool invert;
        bool bytes; /* after ByteLevel */
        struct pattern *pattern;
        const struct split_rule *rule;
        enum split_set set;
        size_t length; /* of a fixed piece, in characters */
        enum prepend_scheme prepend;
        char replacement[PRETOKENIZER_MAX_REPLACEMENT];
        bool split;
    } steps[PRETOKENIZER_MAX_STEPS];
    size_t count;
    bool byte_level; /* there is a ByteLevel step */
};

/* Each adds at the end of the chain. Errors: syntax, unsupported, limit. */
bool pretokenizer_add_pattern(struct pretokenizer *p, const char *pattern, size_t size, bool literal,
                              enum split_behavior behavior, bool invert, struct error *err);
bool pretokenizer_add_set(struct pretokenizer *p, enum split_set set, enum split_behavior behavior, struct error *err);
bool pretokenizer_add_fixed(struct pretokenizer *p, size_t length, struct error *err);
bool pretokenizer_add_byte_level(struct pretokenizer *p, bool add_prefix_space, bool use_regex, struct error *err);
bool pretokenizer_add_metaspace(struct pretokenizer *p, const char *replacement, enum prepend_scheme scheme, bool split,
                                struct error *err);
void pretokenizer_free(struct pretokenizer *p);

/* Working memory of one thread, kept from text to text. */
struct pretokenizer_work;
struct pretokenizer_work *pretokenizer_work_new(const struct pretokenizer *p); /* NULL: no memory */
void pretokenizer_work_free(struct pretokenizer_work *work);

/* Calls `piece` for each piece of valid UTF-8, in order; none is empty. false with `err` (limit) if a regular expression needs
 * too much. */
bool pretokenizer_split(const struct pretokenizer *p, struct pretokenizer_work *work, const char *text, size_t size,
                        struct origin origin, void (*piece)(void *context, const char *text, size_t size, struct origin origin),
                        void *context, struct error *err);

#endif
