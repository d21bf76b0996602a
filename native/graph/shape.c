#include "native/graph/shape.h"

#include <math.h>

#include "native/graph/shape_parts.h"

/* ---- sources ---- */

static bool sized(struct shape_request *s)
{
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!shape_put(s, s->axes[i].name, s->axes[i].size))
            return false;
    return true;
}

static bool infer_parameter(struct shape_request *s)
{
    const int64_t *k = s->r->integers;
    return sized(s) && shape_integer_in(s, "kind", k[0], PARAMETER_MATRIX, PARAMETER_VECTOR) &&
           shape_integer_in(s, "layer", k[1], -1, INT32_MAX) &&
           shape_integer_in(s, "role", k[2], PARAMETER_PLAIN, PARAMETER_MAGNITUDE) &&
           shape_integer_in(s, "number of out axes", k[3], 0, s->axes_count) &&
           shape_integer_in(s, "init", k[4], PARAMETER_FILL, PARAMETER_ROW_NORMS) &&
           shape_finite_in(s, "init", s->r->numbers[0], -1e30);
}

static bool number_fits(struct shape_request *s, double v, enum tensor_type type)
{
    if (isnan(v))
        return shape_fail(s, ERROR_NON_FINITE, NULL, "a constant is never NaN");
    if (type == TENSOR_I32 && !(v >= INT32_MIN && v <= INT32_MAX && floor(v) == v))
        return shape_fail(s, ERROR_TYPE, "cast the tensor to f32", "%.17g is no i32", v);
    return true;
}

bool shape_infer_source(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    switch (s->r->op) {
    case OPERATOR_PARAMETER:
        return infer_parameter(s);
    case OPERATOR_IOTA:
        s->out->type = TENSOR_I32;
        return sized(s);
    case OPERATOR_UNIFORM:
    case OPERATOR_NORMAL:
        return sized(s) && shape_integer_in(s, "layer", s->r->integers[0], -1, INT32_MAX);
    case OPERATOR_CONSTANT:
    case OPERATOR_TABLE: {
        uint64_t values = 1;
        s->out->type = (uint8_t)s->r->type;
        for (size_t i = 0; i < s->r->numbers_count; i++)
            if (!number_fits(s, s->r->numbers[i], s->r->type))
                return false;
        if (!sized(s))
            return false;
        for (unsigned i = 0; i < s->axes_count; i++)
            if (!tensor_multiply(values, s->axes[i].size, &values))
                return shape_fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
        return values == s->r->numbers_count ||
               shape_fail(s, ERROR_SHAPE, NULL, "%llu values, got %zu", (unsigned long long)values, s->r->numbers_count);
    }
    default:
        s->out->type = (uint8_t)s->r->type;
        return sized(s);
    }
}

/* ---- elementwise ---- */

static const struct graph_node *joined(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    const struct graph_node *big = shape_holds(x, y) ? x : shape_holds(y, x) ? y : NULL;
    if (!big)
        shape_fail(s, ERROR_SHAPE, "expand one of them, or is dot meant?", "%s and %s: neither holds all axes of the other",
                   SHOW(s, x), SHOW(s, y));
    return big && shape_agree(s, x, y) ? big : NULL;
}

bool shape_common_type(struct shape_request *s, const struct graph_node *x, const struct graph_node *y, uint8_t *type)
{
    *type = x->type == y->type ? x->type : TENSOR_F64;
    if (x->type != y->type && (x->type == TENSOR_I32 || y->type == TENSOR_I32))
        return shape_fail(s, ERROR_TYPE, "cast one of them", "%s meets %s", shape_type_of(x), shape_type_of(y));
    if (*type == TENSOR_F64 && !(operator_table[s->r->op].flags & OPERATOR_F64))
        return shape_fail(s, ERROR_TYPE, "cast to f32", "it takes f32, got f64");
    return true;
}

static bool infer_where(struct shape_request *s)
{
    const struct graph_node *big = joined(s, s->y, s->z);
    if (!shape_is_type(s, "the mask", s->x, TENSOR_F32) || !big || !shape_common_type(s, s->y, s->z, &s->out->type))
        return false;
    big = joined(s, big, s->x);
    return big && shape_put_all(s, big);
}

bool shape_infer_elementwise(struct shape_request *s)
{
    if (s->r->op == OPERATOR_WHERE)
        return infer_where(s);
    if (s->r->input_count == 2) {
        const struct graph_node *big = joined(s, s->x, s->y);
        if (!big || !shape_common_type(s, s->x, s->y, &s->out->type) || !shape_put_all(s, big))
            return false;
    } else {
        s->out->type = s->x->type;
        if (!shape_put_all(s, s->x))
            return false;
    }
    if (operator_table[s->r->op].flags & OPERATOR_COMPARE)
        s->out->type = TENSOR_F32;
    if (s->r->op == OPERATOR_CAST)
        s->out->type = (uint8_t)s->r->type;
    if (s->r->op == OPERATOR_CLAMP && !(s->r->numbers[0] <= s->r->numbers[1]))
        return shape_fail(s, ERROR_RANGE, NULL, "from %g to %g is no range", s->r->numbers[0], s->r->numbers[1]);
    return true;
}

/* ---- reductions and softmax ---- */

bool shape_weight_good(struct shape_request *s, const char *what)
{
    if (!s->y)
        return true;
    if (!shape_within(s, what, s->y, s->x))
        return false;
    if (s->y->type != TENSOR_F32 && s->y->type != s->x->type)
        return shape_fail(s, ERROR_TYPE, "cast it", "%s is %s, the tensor %s", what, shape_type_of(s->y), shape_type_of(s->x));
    return true;
}

bool shape_infer_reduction(struct shape_request *s)
{
    s->out->type = s->x->type;
    return shape_axes_in(s, s->x) && shape_weight_good(s, s->r->op == OPERATOR_LOGSUMEXP ? "mask" : "weight") &&
           shape_put_others(s, s->x, s->axes_count);
}

bool shape_infer_softmax(struct shape_request *s)
{
    s->out->type = s->x->type;
    return shape_axes_in(s, s->x) && shape_weight_good(s, "mask") && shape_put_all(s, s->x);
}

/* ---- all ---- */

static bool infer_by_operator(struct shape_request *s)
{
    const unsigned flags = operator_table[s->r->op].flags;
    if (flags & OPERATOR_SOURCE)
        return shape_infer_source(s);
    if (s->x->type == TENSOR_F64 && !(flags & OPERATOR_F64))
        return shape_fail(s, ERROR_TYPE, "cast to f32", "it takes %s, got f64", flags & OPERATOR_I32 ? "f32 or i32" : "f32");
    if (s->x->type == TENSOR_I32 && !(flags & OPERATOR_I32))
        return shape_fail(s, ERROR_TYPE, "cast to f32", "it takes %s, got i32", flags & OPERATOR_F64 ? "f32 or f64" : "f32");
    if (flags & OPERATOR_ELEMENTWISE)
        return shape_infer_elementwise(s);
    if (flags & OPERATOR_REDUCTION)
        return shape_infer_reduction(s);
    switch (s->r->op) {
    case OPERATOR_SOFTMAX:
    case OPERATOR_LOG_SOFTMAX:
        return shape_infer_softmax(s);
    case OPERATOR_DOT:
        return shape_infer_product(s, s->x, s->y);
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        return shape_infer_onto(s);
    case OPERATOR_DIST2:
        return shape_infer_dist2(s);
    case OPERATOR_FACTOR:
        return shape_infer_factor(s);
    case OPERATOR_RENAME:
    case OPERATOR_SPLIT:
    case OPERATOR_MERGE:
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
    case OPERATOR_DETACH:
        return shape_infer_shape(s);
    case OPERATOR_RMSNORM:
    case OPERATOR_RMSNORM_GRAD:
    case OPERATOR_RMSNORM_WEIGHT_GRAD:
        return shape_infer_rmsnorm(s);
    case OPERATOR_LAYERNORM:
    case OPERATOR_LAYERNORM_GRAD:
    case OPERATOR_LAYERNORM_WEIGHT_GRAD:
        return shape_infer_layernorm(s);
    case OPERATOR_ROPE:
        return shape_infer_rope(s);
    case OPERATOR_ATTENTION:
    case OPERATOR_ATTENTION_GRAD:
        return shape_infer_attention(s);
    case OPERATOR_TOKEN_LOGPROB:
    case OPERATOR_TOKEN_LOGPROB_GRAD:
        return shape_infer_token_logprob(s);
    case OPERATOR_DROPOUT:
        return shape_infer_dropout(s);
    case OPERATOR_RESULT:
        return shape_infer_result(s);
    case OPERATOR_HEAD:
        s->out->type = TENSOR_F32;
        return true;
    case OPERATOR_PART:
        return shape_infer_part(s);
    case OPERATOR_TIED:
        s->out->type = TENSOR_F32;
        return shape_put_all(s, s->x);
    default:
        return shape_infer_along(s);
    }
}

/* Matrices for each token, and outer products: a plan mostly does without them (inside.h), and looks at the limit itself. */
static bool rarely_made(const struct shape_request *s)
{
    return s->r->op == OPERATOR_GATHER || (s->r->op == OPERATOR_DOT && s->axes_count == 0);
}

bool shape_infer(struct shape_request *s)
{
    uint64_t dims[GRAPH_AXES];
    size_t bytes;
    if (!infer_by_operator(s))
        return false;
    for (unsigned i = 0; i < s->out->rank; i++)
        dims[i] = s->out->axis[i].size;
    if (!tensor_measure((enum tensor_type)s->out->type, s->out->rank, dims, SIZE_MAX, &s->out->values, &bytes, NULL) ||
        (bytes > s->g->limits.node_bytes && !rarely_made(s)))
        return shape_fail(s, ERROR_LIMIT, NULL, "a result larger than the limit of %llu bytes",
                          (unsigned long long)s->g->limits.node_bytes);
    return true;
}
