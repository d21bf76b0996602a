/* backward_rules.h - what one operator adds to the gradients of its operands. Used by backward.c alone. */
#ifndef RONDO_GRAPH_BACKWARD_RULES_H
#define RONDO_GRAPH_BACKWARD_RULES_H

#include "native/graph/graph.h"

/* A contribution to the gradient of a node; lists are kept in ascending order of consumer and operand. */
struct backward_part {
    uint32_t node, next; /* next: index + 1 into parts; 0 ends the list */
};

struct backward {
    struct graph *g;
    struct error *err;
    bool failed;         /* sticky: after the first failure every helper returns GRAPH_NONE */
    const uint8_t *live; /* per node: a wanted node lies behind it */
    uint32_t *first;     /* per node: index + 1 of its first part */
    struct backward_part *parts;
    size_t part_count, part_room;
};

/* Puts `part` in front of the contributions to `operand`, in the type and the memory order of operand. */
void backward_give(struct backward *b, uint32_t operand, uint32_t part);

/* Adds to the operands of node `id` what follows from the gradient `gradient` of its result. */
void backward_rule(struct backward *b, uint32_t id, uint32_t gradient);

/* Nodes, or GRAPH_NONE after a failure. */
uint32_t backward_constant(struct backward *b, uint32_t like, double value); /* a scalar of the type of `like` */
uint32_t backward_spread(struct backward *b, uint32_t x, uint32_t like);     /* x over all axes of `like`, in its order */
uint32_t backward_add(struct backward *b, const struct graph_request *r);

#endif
