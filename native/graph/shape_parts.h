/* shape_parts.h - the words in which shape inference is written: checks that fail with a message, axes put to the result. Internal
 * to native/graph. Each bool function has set the error when it returns false. */
#ifndef RONDO_GRAPH_SHAPE_PARTS_H
#define RONDO_GRAPH_SHAPE_PARTS_H

#include "native/graph/shape.h"

struct shown {
    char text[GRAPH_SHOW];
};

/* "[batch=8 time=512]" in a fresh buffer, so that two stand in one message. */
#define SHOW(s, n) shape_show(s, n, &(struct shown){ { 0 } })

bool shape_fail(struct shape_request *s, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *shape_show(struct shape_request *s, const struct graph_node *n, struct shown *buffer);
const char *shape_name_of(struct shape_request *s, uint32_t name);
const char *shape_type_of(const struct graph_node *n);
bool shape_put(struct shape_request *s, uint32_t name, uint64_t size);
bool shape_put_all(struct shape_request *s, const struct graph_node *n);
bool shape_wanted(const struct shape_request *s, uint32_t name, unsigned count);
bool shape_put_others(struct shape_request *s, const struct graph_node *n, unsigned count);
bool shape_axis_in(struct shape_request *s, unsigned i, const struct graph_node *n);
bool shape_no_axis_twice(struct shape_request *s, unsigned from, unsigned to);
bool shape_axes_in(struct shape_request *s, const struct graph_node *n);
bool shape_holds(const struct graph_node *big, const struct graph_node *small);
bool shape_agree(struct shape_request *s, const struct graph_node *x, const struct graph_node *y);
bool shape_within(struct shape_request *s, const char *what, const struct graph_node *part, const struct graph_node *whole);
bool shape_same_axes(struct shape_request *s, const char *what, const struct graph_node *x, const struct graph_node *y);
bool shape_is_type(struct shape_request *s, const char *what, const struct graph_node *n, enum tensor_type type);
bool shape_integer_in(struct shape_request *s, const char *what, int64_t value, int64_t from, int64_t to);
bool shape_flag_in(struct shape_request *s, const char *what, int64_t value);
bool shape_finite_in(struct shape_request *s, const char *what, double value, double from);
bool shape_common_type(struct shape_request *s, const struct graph_node *x, const struct graph_node *y, uint8_t *type);

/* Input 1 as a weight, mask or decay of input 0; true when there is none. */
bool shape_weight_good(struct shape_request *s, const char *what);

/* by operator */
bool shape_infer_source(struct shape_request *s);
bool shape_infer_elementwise(struct shape_request *s);
bool shape_infer_reduction(struct shape_request *s);
bool shape_infer_softmax(struct shape_request *s);
bool shape_infer_along(struct shape_request *s);
bool shape_infer_product(struct shape_request *s, const struct graph_node *x, const struct graph_node *y);
bool shape_infer_onto(struct shape_request *s);
bool shape_infer_dist2(struct shape_request *s);
bool shape_infer_factor(struct shape_request *s);
bool shape_infer_shape(struct shape_request *s);
bool shape_infer_rmsnorm(struct shape_request *s);
bool shape_infer_layernorm(struct shape_request *s);
bool shape_infer_rope(struct shape_request *s);
bool shape_infer_attention(struct shape_request *s);
bool shape_infer_token_logprob(struct shape_request *s);
bool shape_infer_dropout(struct shape_request *s);
bool shape_infer_result(struct shape_request *s);
bool shape_infer_part(struct shape_request *s);

#endif
