/* shape_move.c - shapes of operators along an axis, of products, and of what only changes the shape. */
#include "native/graph/shape_parts.h"

#include <math.h>
#include <string.h>

/* ---- along one axis ---- */

static bool infer_topk(struct shape_request *s)
{
    const uint64_t k = s->axes[1].size;
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x) || !shape_put_others(s, s->x, 1) || !shape_put(s, s->axes[1].name, k))
        return false;
    return k <= s->axes[0].size || shape_fail(s, ERROR_RANGE, NULL, "%llu of an axis of %llu in %s", (unsigned long long)k,
                                              (unsigned long long)s->axes[0].size, SHOW(s, s->x));
}

static bool infer_cumsum(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x) || !shape_flag_in(s, "reverse", s->r->integers[0]) || !shape_put_all(s, s->x))
        return false;
    return s->y ? shape_weight_good(s, "decay")
                : isfinite(s->r->numbers[0]) || shape_fail(s, ERROR_RANGE, NULL, "decay must be finite");
}

/* x with another size of attribute axis 0. */
static bool resized(struct shape_request *s, uint64_t size)
{
    if (!shape_put_all(s, s->x))
        return false;
    s->out->axis[graph_axis_find(s->out, s->axes[0].name)].size = size;
    return true;
}

static bool infer_trim_or_pad(struct shape_request *s)
{
    const int64_t front = s->r->integers[0], back = s->r->integers[1], most = INT64_C(1) << 48;
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x) || !shape_integer_in(s, "front", front, 0, most) ||
        !shape_integer_in(s, "back", back, 0, most))
        return false;
    const int64_t size = (int64_t)s->axes[0].size, keep = s->r->op == OPERATOR_TRIM ? size - front - back : size + front + back;
    if (size > most || keep < 1)
        return shape_fail(s, ERROR_RANGE, NULL, "%lld and %lld leave nothing of %s in %s", (long long)front, (long long)back,
                          shape_name_of(s, s->axes[0].name), SHOW(s, s->x));
    return resized(s, (uint64_t)keep);
}

static bool infer_at(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x) || !shape_put_others(s, s->x, 1))
        return false;
    const int64_t i = s->r->integers[0];
    return (i >= 0 && (uint64_t)i < s->axes[0].size) ||
           shape_fail(s, ERROR_RANGE, NULL, "%lld is outside %s=%llu", (long long)i, shape_name_of(s, s->axes[0].name),
                      (unsigned long long)s->axes[0].size);
}

static bool infer_gather(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x) || !shape_is_type(s, "the index", s->y, TENSOR_I32))
        return false;
    const uint32_t axis = s->axes[0].name;
    for (unsigned i = 0; i < s->x->rank; i++) {
        const struct graph_axis a = s->x->axis[i];
        const int shared = graph_axis_find(s->y, a.name);
        if (a.name == axis) {
            for (unsigned k = 0; k < s->y->rank; k++)
                if ((s->y->axis[k].name == axis || graph_axis_find(s->x, s->y->axis[k].name) < 0) &&
                    !shape_put(s, s->y->axis[k].name, s->y->axis[k].size))
                    return false;
        } else if (shared >= 0 && s->y->axis[shared].size != a.size) {
            return shape_fail(s, ERROR_SHAPE, NULL, "axis %s of %s has another size in the index %s", shape_name_of(s, a.name),
                              SHOW(s, s->x), SHOW(s, s->y));
        } else if (!shape_put(s, a.name, a.size)) {
            return false;
        }
    }
    return true;
}

static bool infer_scatter(struct shape_request *s)
{
    const unsigned summed = s->axes_count - 1;
    const struct graph_axis fresh = s->axes[summed];
    bool there = false;
    s->out->type = s->x->type;
    if (!shape_no_axis_twice(s, 0, summed) || !shape_is_type(s, "the index", s->y, TENSOR_I32) ||
        !shape_within(s, "the index", s->y, s->x))
        return false;
    for (unsigned i = 0; i < summed; i++)
        if (!shape_axis_in(s, i, s->x))
            return false;
    for (unsigned i = 0; i < s->x->rank; i++) {
        if (!shape_wanted(s, s->x->axis[i].name, summed)) {
            if (!shape_put(s, s->x->axis[i].name, s->x->axis[i].size))
                return false;
        } else if (!there) {
            there = true;
            if (!shape_put(s, fresh.name, fresh.size))
                return false;
        }
    }
    return there || shape_put(s, fresh.name, fresh.size);
}

static bool infer_concat(struct shape_request *s)
{
    uint64_t total = 0;
    s->out->type = s->x->type;
    if (!shape_axis_in(s, 0, s->x))
        return false;
    for (size_t i = 0; i < s->r->input_count; i++) {
        const struct graph_node *n = &s->g->nodes[s->r->inputs[i]];
        const int at = graph_axis_find(n, s->axes[0].name);
        if (n->type != s->x->type || at < 0 || n->rank != s->x->rank || !shape_holds(n, s->x))
            return shape_fail(s, ERROR_SHAPE, NULL, "%s %s and %s %s differ in more than %s", shape_type_of(s->x), SHOW(s, s->x),
                              shape_type_of(n), SHOW(s, n), shape_name_of(s, s->axes[0].name));
        for (unsigned k = 0; k < n->rank; k++)
            if ((int)k != at && s->x->axis[graph_axis_find(s->x, n->axis[k].name)].size != n->axis[k].size)
                return shape_fail(s, ERROR_SHAPE, NULL, "%s and %s differ off %s", SHOW(s, s->x), SHOW(s, n),
                                  shape_name_of(s, s->axes[0].name));
        if (__builtin_add_overflow(total, n->axis[at].size, &total))
            return shape_fail(s, ERROR_LIMIT, NULL, "the sizes overflow");
    }
    return resized(s, total);
}

bool shape_infer_along(struct shape_request *s)
{
    s->out->type = s->x->type;
    switch (s->r->op) {
    case OPERATOR_ARGMAX:
        s->out->type = TENSOR_I32;
        return shape_axis_in(s, 0, s->x) && shape_put_others(s, s->x, 1);
    case OPERATOR_RANK:
        s->out->type = TENSOR_I32;
        return shape_axis_in(s, 0, s->x) && shape_put_all(s, s->x);
    case OPERATOR_SORT:
        return shape_axis_in(s, 0, s->x) && shape_put_all(s, s->x);
    case OPERATOR_SHIFT:
        return shape_axis_in(s, 0, s->x) && shape_put_all(s, s->x) &&
               shape_integer_in(s, "k", s->r->integers[0], INT32_MIN, INT32_MAX);
    case OPERATOR_TOPK:
        return infer_topk(s);
    case OPERATOR_CUMSUM:
        return infer_cumsum(s);
    case OPERATOR_TRIM:
    case OPERATOR_PAD:
        return infer_trim_or_pad(s);
    case OPERATOR_AT:
        return infer_at(s);
    case OPERATOR_GATHER:
        return infer_gather(s);
    case OPERATOR_SCATTER:
        return infer_scatter(s);
    case OPERATOR_CONCAT:
        return infer_concat(s);
    default: /* one_hot */
        s->out->type = TENSOR_F32;
        return shape_is_type(s, "the tensor", s->x, TENSOR_I32) && shape_put_all(s, s->x) &&
               shape_put(s, s->axes[0].name, s->axes[0].size);
    }
}

/* ---- products ---- */

bool shape_infer_product(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(x, s->axes[i].name) < 0 || graph_axis_find(y, s->axes[i].name) < 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "axis %s must be in both %s and %s", shape_name_of(s, s->axes[i].name),
                              SHOW(s, x), SHOW(s, y));
    if (!shape_agree(s, x, y) || !shape_axes_in(s, x) || !shape_common_type(s, x, y, &s->out->type) ||
        !shape_put_others(s, x, s->axes_count))
        return false;
    if (s->out->type == TENSOR_I32)
        return shape_fail(s, ERROR_TYPE, "cast", "it takes f32 or f64, got i32");
    for (unsigned i = 0; i < y->rank; i++)
        if (graph_axis_find(x, y->axis[i].name) < 0 && !shape_put(s, y->axis[i].name, y->axis[i].size))
            return false;
    return true;
}

bool shape_infer_onto(struct shape_request *s)
{
    if (!shape_infer_product(s, s->y, s->z))
        return false;
    if (s->r->op == OPERATOR_LOW_RANK && !shape_finite_in(s, "scale", s->r->numbers[0], -1e30))
        return false;
    if (s->x->rank != s->out->rank || !shape_holds(s->x, s->out))
        return shape_fail(s, ERROR_SHAPE, NULL, "the base %s has not the axes of the product of %s and %s", SHOW(s, s->x),
                          SHOW(s, s->y), SHOW(s, s->z));
    for (unsigned i = 0; i < s->out->rank; i++)
        if (s->x->axis[graph_axis_find(s->x, s->out->axis[i].name)].size != s->out->axis[i].size)
            return shape_fail(s, ERROR_SHAPE, NULL, "axis %s of the base %s has another size in the product",
                              shape_name_of(s, s->out->axis[i].name), SHOW(s, s->x));
    return true;
}

bool shape_infer_dist2(struct shape_request *s)
{
    s->out->type = TENSOR_F64;
    if (!shape_axis_in(s, 0, s->x))
        return false;
    if (graph_axis_find(s->x, s->axes[1].name) >= 0)
        return shape_fail(s, ERROR_SHAPE, NULL, "the new axis %s is in %s already", shape_name_of(s, s->axes[1].name),
                          SHOW(s, s->x));
    s->axes[1].size = s->axes[0].size;
    return shape_put(s, s->axes[0].name, s->axes[0].size) && shape_put(s, s->axes[1].name, s->axes[0].size);
}

bool shape_infer_factor(struct shape_request *s)
{
    const uint64_t r = s->axes[0].size;
    s->out->type = TENSOR_F32;
    const int b = graph_axis_find(s->x, s->axes[0].name), a = graph_axis_find(s->y, s->axes[0].name);
    if (a < 0 || b < 0 || !shape_agree(s, s->x, s->y) || !shape_is_type(s, "b", s->x, TENSOR_F32) ||
        !shape_is_type(s, "a", s->y, TENSOR_F32))
        return shape_fail(s, ERROR_SHAPE, NULL, "f32 tensors that share %s alone are needed, got %s and %s",
                          shape_name_of(s, s->axes[0].name), SHOW(s, s->x), SHOW(s, s->y));
    for (unsigned i = 0; i < s->x->rank; i++)
        if ((int)i != b && graph_axis_find(s->y, s->x->axis[i].name) >= 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "%s and %s share more than %s", SHOW(s, s->x), SHOW(s, s->y),
                              shape_name_of(s, s->axes[0].name));
    return shape_put_all(s, s->x) && ((s->out->axis[b].size = r) > 0 || shape_fail(s, ERROR_SHAPE, NULL, "the rank is missing"));
}

/* ---- shape ---- */

static bool infer_rename(struct shape_request *s)
{
    if (!shape_axis_in(s, 0, s->x))
        return false;
    if (s->axes[1].size && s->axes[1].size != s->axes[0].size)
        return shape_fail(s, ERROR_SHAPE, NULL, "a renamed axis keeps its size");
    s->axes[1].size = s->axes[0].size;
    for (unsigned i = 0; i < s->x->rank; i++)
        if (!shape_put(s, s->x->axis[i].name == s->axes[0].name ? s->axes[1].name : s->x->axis[i].name, s->x->axis[i].size))
            return false;
    return true;
}

static bool infer_split(struct shape_request *s)
{
    uint64_t known = 1;
    int open = -1;
    if (!shape_axis_in(s, 0, s->x))
        return false;
    for (unsigned i = 1; i < s->axes_count; i++) {
        if (s->axes[i].size == 0 && open >= 0)
            return shape_fail(s, ERROR_SHAPE, NULL, "the sizes of %s and %s are both open", shape_name_of(s, s->axes[open].name),
                              shape_name_of(s, s->axes[i].name));
        if (s->axes[i].size == 0)
            open = (int)i;
        else if (!tensor_multiply(known, s->axes[i].size, &known))
            return shape_fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
    }
    const uint64_t whole = s->axes[0].size;
    if (whole % known != 0 || (open < 0 && known != whole))
        return shape_fail(s, ERROR_SHAPE, NULL, "%s=%llu does not split into parts of %llu", shape_name_of(s, s->axes[0].name),
                          (unsigned long long)whole, (unsigned long long)known);
    if (open >= 0)
        s->axes[open].size = whole / known;
    for (unsigned i = 0; i < s->x->rank; i++) {
        if (s->x->axis[i].name != s->axes[0].name) {
            if (!shape_put(s, s->x->axis[i].name, s->x->axis[i].size))
                return false;
            continue;
        }
        for (unsigned k = 1; k < s->axes_count; k++)
            if (!shape_put(s, s->axes[k].name, s->axes[k].size))
                return false;
    }
    return true;
}

static bool infer_merge(struct shape_request *s)
{
    uint64_t size = 1;
    bool there = false;
    if (!shape_no_axis_twice(s, 1, s->axes_count))
        return false;
    for (unsigned i = 1; i < s->axes_count; i++) {
        if (!shape_axis_in(s, i, s->x))
            return false;
        if (!tensor_multiply(size, s->axes[i].size, &size))
            return shape_fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
    }
    if (s->axes[0].size && s->axes[0].size != size)
        return shape_fail(s, ERROR_SHAPE, NULL, "the merged axis is %llu", (unsigned long long)size);
    s->axes[0].size = size;
    for (unsigned i = 0; i < s->x->rank; i++) {
        bool merged = false;
        for (unsigned k = 1; k < s->axes_count; k++)
            merged = merged || s->axes[k].name == s->x->axis[i].name;
        if (!merged && !shape_put(s, s->x->axis[i].name, s->x->axis[i].size))
            return false;
        if (merged && !there && !shape_put(s, s->axes[0].name, size))
            return false;
        there = there || merged;
    }
    return there || shape_put(s, s->axes[0].name, size);
}

static bool infer_expand(struct shape_request *s)
{
    if (!shape_no_axis_twice(s, 0, s->axes_count) || !shape_put_all(s, s->x))
        return false;
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(s->x, s->axes[i].name) < 0 ? !shape_put(s, s->axes[i].name, s->axes[i].size)
                                                       : !shape_axis_in(s, i, s->x))
            return false;
    return true;
}

bool shape_infer_shape(struct shape_request *s)
{
    s->out->type = s->x->type;
    switch (s->r->op) {
    case OPERATOR_RENAME:
        return infer_rename(s);
    case OPERATOR_SPLIT:
        return infer_split(s);
    case OPERATOR_MERGE:
        return infer_merge(s);
    case OPERATOR_EXPAND:
        return infer_expand(s);
    case OPERATOR_TRANSPOSE:
        if (s->axes_count != s->x->rank || !shape_no_axis_twice(s, 0, s->axes_count))
            return shape_fail(s, ERROR_SHAPE, NULL, "all axes of %s are needed, each once", SHOW(s, s->x));
        for (unsigned i = 0; i < s->axes_count; i++)
            if (!shape_axis_in(s, i, s->x) || !shape_put(s, s->axes[i].name, s->axes[i].size))
                return false;
        return true;
    default: /* detach */
        return shape_put_all(s, s->x);
    }
}
