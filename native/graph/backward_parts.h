/* backward_parts.h - the words in which gradient rules are written. Internal to native/graph. Node-making functions give GRAPH_NONE
 * after a failure, and for an operand that is GRAPH_NONE. */
#ifndef RONDO_GRAPH_BACKWARD_PARTS_H
#define RONDO_GRAPH_BACKWARD_PARTS_H

#include "native/graph/backward_rules.h"

/* A node whose operands are to get their gradients. A copy, since nodes move while the graph grows. */
struct backward_site {
    struct graph_node n;
    uint32_t id, g; /* the node and the gradient of its result */
    uint32_t in[4]; /* its first operands, GRAPH_NONE where absent */
    uint32_t shape; /* operand 0: the axes that a reduction drops are there */
    bool need[4];   /* whether the operand wants a gradient */
    struct graph_word axes[GRAPH_ATTRIBUTE_AXES];
    double numbers[8];
    int64_t integers[8];
};

/* Nodes by their form: elementwise; `factor` times x; an operator over axes; node r again with other operands or operator. */
uint32_t backward_unary(struct backward *b, enum operator_code op, uint32_t x);
uint32_t backward_binary(struct backward *b, enum operator_code op, uint32_t x, uint32_t y);
uint32_t backward_where(struct backward *b, uint32_t mask, uint32_t yes, uint32_t no);
uint32_t backward_scaled(struct backward *b, uint32_t x, double factor);
size_t backward_words_of(const struct graph *g, const struct graph_node *n, struct graph_word *words);
uint32_t backward_over(struct backward *b, enum operator_code op, uint32_t x, const struct graph_word *axes, size_t count);
struct backward_site backward_rule_of(struct backward *b, uint32_t id, uint32_t gradient);
uint32_t backward_again(struct backward *b, const struct backward_site *r, enum operator_code op, const uint32_t *inputs,
                        size_t count);
void backward_refused(struct backward *b, const struct backward_site *r, const char *hint, const char *what);
/* Rules by group. */
void backward_rule_concat(struct backward *b, uint32_t id, const struct backward_site *r);
void backward_rule_along(struct backward *b, const struct backward_site *r);
void backward_rule_product(struct backward *b, const struct backward_site *r);
void backward_rule_shape(struct backward *b, const struct backward_site *r);
uint32_t backward_result_of(struct backward *b, uint32_t x, int64_t which);
void backward_rule_layer(struct backward *b, const struct backward_site *r);

#endif
