/* heads.h - the parts of arrange_heads: arrange_heads.c (finding them, writing the new graph), arrange_demand.c (which log-probabilities
 * matter), arrange_body.c (what runs by tiles). Only they include it.
 *
 * A region is what hangs together of nodes with rows x vocabulary values (wide), and the nodes that end it (ends): of these every one has
 * a value for each row, or is a sum over the rows.
 *
 *     level 0    what needs nothing that comes after a region's ends
 *     level 1    what needs an end of level 0, by way of the rest of the graph: the gradient of DPO
 *                a level of a region is one body; what it needs of lower levels it computes again
 */
#ifndef RONDO_GRAPH_HEADS_H
#define RONDO_GRAPH_HEADS_H

#include "native/graph/arrange.h"
#include "native/graph/body.h"

enum { HEAD_LEVELS = 4 };

struct region {
    const struct graph_node *like;   /* a wide node; all have its axes in its order: rows, then the vocabulary */
    uint32_t anchor[HEAD_LEVELS];    /* of each level: the first node, where its body is written; GRAPH_NONE: it has none */
    uint32_t columns, words, factor; /* of a tied end, nodes of the new graph: see OPERATOR_TIED */
};

enum node_kind { NODE_PLAIN, NODE_WIDE, NODE_END };

struct heads {
    const struct graph *g;
    struct graph *to;
    struct error *err;
    struct consumers readers;
    uint8_t *kind;  /* per node: enum node_kind */
    uint8_t *ends;  /* of a NODE_END: enum body_kind */
    uint32_t *of;   /* of a node that is not plain: its region */
    uint8_t *level; /* within the region */
    uint8_t *after; /* of a node as the rest of the graph sees it */
    uint8_t *tied;  /* of an end: the lookup's gradient is added in the end */
    struct region *all;
    uint32_t count;
    uint32_t *map;
    uint32_t *from;
    uint32_t from_room;
    struct body *bodies;
    uint32_t body_count;
};

/* What an operand is to a region. */
enum width { WIDTH_SHARED, WIDTH_ROWS, WIDTH_WIDE, WIDTH_OTHER };
enum width width_of(const struct region *r, const struct graph_node *n);

/* A node of the new graph; old: the one whose value it has, or GRAPH_NONE. */
bool heads_made(struct heads *h, const struct graph_request *r, uint32_t old, uint32_t *node);
bool heads_is_output(const struct heads *h, uint32_t node);
/* Whether the end is read by anything but its own region. */
bool heads_end_read(const struct heads *h, uint32_t end);

static inline uint32_t heads_input(const struct heads *h, uint32_t node, uint32_t k)
{
    return graph_inputs(h->g, &h->g->nodes[node])[k];
}

/* arrange_demand.c: a node of the new graph that is not 0 where node x (of the old one) is read; GRAPH_NONE: everywhere, as far as can be
 * told. */
uint32_t heads_demand(struct heads *h, uint32_t x);

/* arrange_body.c */
struct body_plan {
    uint32_t ends[BODY_OUTS], end_count;       /* old nodes, in the order of the outs */
    uint32_t columns_of;                       /* the end that is tied, whose columns are one out more; or GRAPH_NONE */
    uint32_t inputs[BODY_INPUTS], input_count; /* of the head: old nodes */
    uint32_t *members, member_count;           /* nodes computed, ascending; owned */
    struct body *body;                         /* owned until it is taken */
};
/* The body of a level of region r: false when it has no end there that is read. */
bool body_gathered(const struct heads *h, uint32_t r, unsigned level, struct body_plan *p);
/* Its graphs. False: it cannot be (more than the limits of body.h). */
bool body_built(const struct heads *h, uint32_t r, struct body_plan *p);
void body_plan_free(struct body_plan *p);

#endif
