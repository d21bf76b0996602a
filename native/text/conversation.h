/* conversation.h - rows of a data file to training examples: token ids and a loss weight each.
 *
 *     {"messages": [system, user, assistant(call), tool, assistant], "tools": [...]}     two examples:
 *
 *         <system, tools> <user> <assistant prompt>  call <end>                                       weights 0 0 0 1 1
 *         <system, tools> <user> <assistant call> <tool> <assistant prompt>  answer <end>             weights 0 0 0 0 0 1 1
 *
 * Each assistant turn, tool calls included, is one example, rendered by the run's chat template against all earlier turns.
 * Trained are the assistant's tokens only, its end-of-turn token included; what the template prints after that token is cut.
 *
 *     {"text": "..."}                          pre-training: one example, every weight 1
 *     {"parts": [["text", 0.1], ["text", 1]]}  pre-training with a weight a part; each part is tokenised alone
 *
 *     {"prompt" or "messages", "chosen", "rejected"}   preferences: two examples (preference.h)
 *     {"image", "label"}, {"series", "target"}         one example of numbers (labelled.h)
 *
 * An assistant message may have "weight", 0 to 1: what its tokens count; 0 leaves the turn out. No example is ever cut: one that
 * is longer than the context is dropped, and counted.
 *
 * How the trained part is found: messages [0, k] are rendered, and the interpreter keeps which bytes each message printed.
 *   1. Where the template has `{% generation %}` blocks in the message, they are the trained part, to the byte.
 *   2. Else it begins where the turn leaves the generation prompt that messages [0, k) are given, and ends with the last special
 *      token. Where that prompt is a beginning of the rendering this is the rest of it; where the template writes earlier turns
 *      otherwise once there is another (drops their reasoning, merges turns), the bytes that the message itself printed say it,
 *      those it built in a string and printed later, too (template_origin.h).
 *      A template that ends a turn with what opens the next (GLM's <|user|>, <|observation|>) prints no end with the last one:
 *      the end is then the special token that it prints behind the turn once the conversation goes on.
 * The whole text is tokenised once, and a token is trained if it lies in the trained part. A special token's text that stands in a
 * text of the row ("<|im_end|>" in what a user wrote) is plain text: only the template writes control tokens (`parse_special`).
 *
 * With `coalesce`, an example whose tokens begin the next one of its row goes into it with its weights: the same positions are
 * trained after the same tokens, once, so that loss and gradient are the same and the shared tokens are computed once.
 *
 * Two kinds of bad rows. A *fault* is a row that is no conversation (bad JSON, a missing role, a result without a call): the
 * call fails with file, line and field. A *drop* is a sound row that cannot be an example here: counted with its reason.
 */
#ifndef RONDO_TEXT_CONVERSATION_H
#define RONDO_TEXT_CONVERSATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "native/base/error.h"
#include "native/text/rows.h"
#include "native/text/template.h"
#include "native/text/tokenizer.h"

struct conversation_format {
    const struct tokenizer *tokenizer; /* borrowed */
    const struct template *template;   /* borrowed; NULL refuses rows with messages */
    const json_t *variables;           /* more for the template (bos_token, eos_token, ...), an object, or NULL; borrowed */
    struct template_options options;
    size_t context; /* most tokens an example may have */
    bool coalesce;
    bool surround;      /* rows of text get what the tokenizer's file puts around a text (BOS, EOS) */
    bool parse_special; /* special tokens in the texts of messages and tools are these tokens; else plain text */
};

enum conversation_drop {
    CONVERSATION_TOO_LONG,              /* more tokens than the context                       */
    CONVERSATION_TOOLS_NOT_PRINTED,     /* the template prints nothing for the row's tools    */
    CONVERSATION_CALLS_NOT_PRINTED,     /* nor for a tool call                                */
    CONVERSATION_REASONING_NOT_PRINTED, /* nor for reasoning of the turn to train             */
    CONVERSATION_NOTHING_TRAINED,       /* no assistant turn, or no text in it, or weight 0   */
    CONVERSATION_TEMPLATE_RAISED,       /* the template refused the row                       */
    CONVERSATION_NO_TURN,               /* the turn's text cannot be told from what is around */
    CONVERSATION_NO_END,                /* the template prints no end-of-turn token           */
    CONVERSATION_DROPS
};

const char *conversation_drop_name(enum conversation_drop reason); /* "too_long"; stable */
const char *conversation_drop_text(enum conversation_drop reason); /* a sentence with a remedy */

struct conversation_counts {
    uint64_t rows, examples, tokens, trained; /* `trained`: tokens with a weight above 0 */
    uint64_t turns;                           /* examples before coalescing              */
    uint64_t dropped[CONVERSATION_DROPS];     /* examples; a whole row counts once        */
    struct {
        uint32_t line;    /* the first of its kind, 0 if none         */
        char detail[200]; /* "messages[2]: 300 tokens, context 256"    */
    } first[CONVERSATION_DROPS];
};

enum example_side { EXAMPLE_ALONE, EXAMPLE_CHOSEN, EXAMPLE_REJECTED };

struct example {
    uint32_t *ids;  /* owned by the list, `count` */
    float *weights; /* loss weight of each token as a target, 0 to 1 */
    size_t count;
    bool call;                               /* the trained turn calls a tool */
    enum example_side side;                  /* of a pair: the chosen stands before its rejected */
    uint32_t line, turn;                     /* where it comes from: line of the file, index in messages (0 for text) */
    char *text;                              /* what was tokenised, and the bytes of it that are trained; for previews */
    size_t size, trained_start, trained_end; /* from the first trained byte to the last */
    uint32_t *ends;                          /* byte of `text` where each token ends */
    float *values, *target; /* owned: of images and series (labelled.h) `count` values in place of ids and weights */
    size_t target_count;
    uint32_t shape[3]; /* of an image */
};

struct examples {
    struct example *items;
    size_t count, capacity;
};

void examples_free(struct examples *list);

/* From example `first` on: one whose tokens begin the next gives its weights to that one and goes. */
void examples_coalesce(struct examples *list, size_t first);

/* What a row is by its fields. Rows of text are one stream, cut into rows of the context later. */
enum row_kind { ROW_TEXT, ROW_CHAT, ROW_PAIR, ROW_IMAGE, ROW_SERIES };
enum row_kind row_kind(const json_t *row);

/* Appends the examples of row `index`; adds to `counts`. false with `err` on a fault: "data.jsonl:3: messages[1].role". */
bool conversation_examples(const struct conversation_format *format, const struct rows *rows, size_t index, struct examples *out,
                           struct conversation_counts *counts, struct error *err);

/* The text to continue (tokens of the conversation with add_generation_prompt), for sampling and evaluation.
 * `conversation` is an object with messages and perhaps tools; `tokens` is appended to. */
bool conversation_prompt(const struct conversation_format *format, const json_t *conversation, struct tokens *tokens,
                         struct error *err);

/* How examples are shown. */
struct conversation_show {
    size_t limit; /* of the examples; all rows are read and counted */
    bool colour;  /* what is trained in colour, else between ⟦ ⟧; a weight below 1 stands behind it */
    bool tokens;  /* a line a token instead: place, id, weight, text */
    FILE *out;    /* for people: the examples, then counts and drops with their reasons; or NULL */
    json_t *list; /* for programs: example_json of each is appended; or NULL */
};

/* All rows are read, so it is the check, too. Stops at the first fault. */
bool conversation_preview(const struct conversation_format *format, const struct rows *rows, const struct conversation_show *show,
                          struct conversation_counts *counts, struct error *err);

/* { line, turn, side (of a pair), call, ids, weights, ends, text }: `ends` are bytes of the text; of images and series { line, shape (of an image), values, target }. The caller owns it. */
json_t *example_json(const struct example *e);

/* Reads every row and counts; no output. */
bool conversation_check(const struct conversation_format *format, const struct rows *rows, struct conversation_counts *counts,
                        struct error *err);

#endif
