/* body.h - the part of a graph that has a value for every row and every word, run for some rows at a time. Internal to native/graph.
 *
 *     in the graph                                        in a body                               between the two: an operator `head`
 *     h [row time embed] ──┐                              i0 [tile_rows=256 embed]                inputs   h, E, ids, g ...
 *     E [vocab embed] ─────┴─ logits [row time vocab]     i1 [vocab embed]                        `part`s  logprob, dh, dE ...
 *                              │ cap, bias, adapter       logits [tile_rows vocab]
 *                              ├─ logprob [row time]      o0 [tile_rows]
 *                              └─ dlogits ─┬─ dh          o1 [tile_rows embed]
 *                                          └─ dE          a2 [vocab embed] ── dot_onto ── o2, which is a2 of the next tile
 *
 * Rows do not meet but in sums over all of them. A product summed over rows goes by chunks of 256 added in ascending order, of which a
 * tile has one or two; a sum over rows goes by 32 lanes, row i to lane i mod 32, which a tile adds to. So tiles change no bit.
 */
#ifndef RONDO_GRAPH_BODY_H
#define RONDO_GRAPH_BODY_H

#include "native/graph/plan.h"

enum {
    BODY_CHUNK = 256,    /* rows of a chunk of a product: tiles are one or two */
    BODY_FEW = 1 << 13,  /* words whose part of a table stays in the cache from tile to tile */
    BODY_MANY = 1 << 16, /* words at most whose logits may be there for two chunks */
    BODY_PART = 64,      /* of chosen rows: the last ones */
    BODY_LANES = 32,     /* of a sum over rows */
    BODY_BLOCK = 4096,   /* rows whose lanes are added up together */
    BODY_SIZES = 2,
    BODY_OUTS = STEP_EXTRA,
    BODY_INPUTS = 32
};

enum body_side { BODY_ROWS, BODY_SHARED, BODY_START };
struct body_input {
    enum body_side side;
    uint32_t from; /* which input of the head; of a start the out that begins there */
};

enum body_kind {
    BODY_ROW, /* rows first */
    BODY_SUM, /* a product summed over rows */
    BODY_LANE /* a sum over rows */
};
struct body_out {
    enum body_kind kind;
    uint32_t start; /* input of the head that a BODY_SUM goes on from; GRAPH_NONE: +0 */
};

struct body_axis {
    char name[64];
    uint64_t size;
};

struct body {
    uint64_t rows; /* of the whole: the product of these axes */
    struct body_axis axis[GRAPH_AXES];
    unsigned rank;
    struct graph *g[BODY_SIZES];           /* for so many rows as below; owned until they are planned */
    struct plan plan[BODY_SIZES];          /* owned */
    uint64_t tile[BODY_SIZES];             /* 0: there is none */
    struct body_input inputs[BODY_INPUTS]; /* of the bound nodes of g */
    uint32_t input_count;
    struct body_out outs[BODY_OUTS];
    uint32_t out_count;
    bool chosen;            /* rows may be taken from anywhere: there is no sum */
    bool skips;             /* a row where both of these are 0 matters to nothing */
    uint32_t slope, demand; /* inputs of the head; GRAPH_NONE: there is none, that is 0 everywhere */
};

/* Plans the graphs of the bodies of `p`, whose stored types are known. */
bool bodies_planned(struct plan *p, struct error *err);
void bodies_free(struct body *bodies, uint32_t count);

#endif
