/* batch.h - examples to batches: what a trainer reads in a round, in the order that the seed fixes.
 *
 *     shards of the assignment ── examples ── order(seed) ──> step 0 | step 1 | ...        no step depends on another
 *
 * Two kinds of data. A *conversation* example is one row of its batch, padded at its end: as many consecutive examples as fit
 * into `batch_tokens` after padding to a multiple of BATCH_BUCKET, at least one. *Text* examples are one stream, in order, cut
 * into rows of `context` tokens with batch_tokens / context rows a step; attention crosses documents. When the examples are
 * used up the order is drawn anew with the next lap's number.
 *
 * *Packed* conversations share rows of `context` tokens, batch_tokens / context rows a step: each example stands behind the one before
 * it where it fits whole, else in the next row. Segments count from 1 in a row, positions start anew in each, attention stays inside, and
 * the first token of each has no predecessor. Only objectives that weigh token by token may be packed (packs.h).
 *
 * *Pairs* of conversations or texts stand on consecutive examples, chosen and rejected: of P pairs the first P rows are chosen, the others
 * rejected, all padded alike; `chosen.X` and `rejected.X` are the halves of X, [pair time].
 *
 * *Images* and *series* are a row each, batch_tokens / context rows a step. Their fields are extra: `image` [row channel height width] and
 * `label` (whole numbers) [row]; `series`, `observed` [row time] and `target`, `target.observed` [row horizon]: 0 and 0 where nothing was
 * observed. The fields of tokens are then zeros.
 *
 * Arrays are [row time], row-major. Index t of a field is about token t.
 *     ids, position, segment (from 1, padding 0), real (1 or 0), mask (weight of the token as a target, 0 at t = 0),
 *     scored (1 where a real token has a predecessor), bytes (length of the token's text)
 */
#ifndef RONDO_WORKER_BATCH_H
#define RONDO_WORKER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/text/conversation.h"
#include "runtime/crypto/hash.h"

enum { BATCH_BUCKET = 32 };

/* What a row of the batch is. */
enum batch_kind { BATCH_TOKENS, BATCH_IMAGES, BATCH_SERIES };

/* A further field, of rollouts: [batch time], [batch], or what `prepare` returned. */
struct batch_extra {
    char name[64];
    float *data; /* owned */
    uint64_t count;
};

struct batch {
    int64_t rows, time;
    int32_t *ids, *position, *segment; /* owned, rows * time each */
    float *real, *mask, *scored, *bytes;
    size_t capacity;
    struct batch_extra *extra; /* owned list */
    size_t extra_count;
    uint64_t tokens, trained; /* real tokens, and those with a weight */
};

void batch_free(struct batch *b);

/* Another of the same rows and fields. */
void batch_copy(struct batch *to, const struct batch *from);

/* Room for a further field of `count` values, zeros; an old one of that name is overwritten. Borrowed. */
float *batch_extra(struct batch *b, const char *name, uint64_t count);

/* The field that a graph's input is: "b.mask" -> "mask"; a series' own `observed` and that of its target have one name in graphs. */
const char *batch_input(const char *name);

/* The fields by name ("ids", ...), for graphs and for the batch root; NULL for another name. */
const void *batch_field(const struct batch *b, const char *name);

/* How many values it has, 4 bytes each; 0 for another name. */
uint64_t batch_field_count(const struct batch *b, const char *name);

struct batch_rules {
    const float *token_bytes; /* borrowed; bytes of the text of each id */
    int64_t batch_tokens, context;
    bool stream; /* text rather than conversations */
    bool packed; /* conversations share rows; no example is longer than `context` */
    enum batch_kind kind;
    bool pairs; /* examples 2i and 2i + 1 are the sides of a pair */
};

struct sampler {
    struct batch_rules rules;
    const struct example **examples; /* owned list of borrowed examples */
    uint32_t *order;                 /* owned */
    size_t count, at, inside;        /* next example (of pairs: pair), and the next token of it in a stream */
    uint64_t lap;
    struct hash seed;
};

/* `lists[count]` are the assigned shards' examples in the assignment's order. Errors: range (no example). Free with sampler_free. */
bool sampler_new(struct sampler *s, const struct batch_rules *rules, const struct examples *const *lists, size_t count,
                 struct hash seed, struct error *err);
void sampler_free(struct sampler *s);

/* The next step's batch into `b` (reused); NULL: it is passed over. */
void sampler_next(struct sampler *s, struct batch *b);

/* `count` examples as one batch in that order, for evaluation. */
void batch_of(struct batch *b, const struct batch_rules *rules, const struct example *const *examples, size_t count);

#endif
