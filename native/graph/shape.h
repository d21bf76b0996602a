/* shape.h - type and axes of a result from the operands and attributes of a request. Used by graph.c alone. */
#ifndef RONDO_GRAPH_SHAPE_H
#define RONDO_GRAPH_SHAPE_H

#include "native/graph/graph.h"

/* A request being worked out. */
struct shape_request {
    struct graph *g;
    const struct graph_request *r;
    const struct graph_node *x, *y, *z, *t; /* the first four inputs, NULL where absent; borrowed from g */
    struct graph_axis
        axes[GRAPH_ATTRIBUTE_AXES]; /* of the attributes: interned; sizes get filled in and the order made canonical */
    unsigned axes_count;
    struct graph_node *out; /* gets type, rank, axis, values */
    struct error *err;
};

/* Everything but arity, which graph_add checks from the table before. */
bool shape_infer(struct shape_request *s);

#endif
