#include "native/graph/shape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- helpers ---- */

static bool fail(struct shape_request *s, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool fail(struct shape_request *s, enum error_code code, const char *hint, const char *format, ...)
{
    char text[380];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(s->err, code, hint, "%s: %s", operator_table[s->r->op].name, text);
}

struct shown {
    char text[GRAPH_SHOW];
};

/* "[batch=8 time=512]" of a node of the graph; a fresh buffer a call, so that two stand in one message. */
static const char *show(struct shape_request *s, const struct graph_node *n, struct shown *buffer)
{
    return graph_show(s->g, (uint32_t)(n - s->g->nodes), buffer->text, sizeof buffer->text);
}
#define SHOW(s, n) show(s, n, &(struct shown){ { 0 } })

static const char *name_of(struct shape_request *s, uint32_t name)
{
    return s->g->names[name];
}
static const char *type_of(const struct graph_node *n)
{
    return tensor_type_name((enum tensor_type)n->type);
}

static bool put(struct shape_request *s, uint32_t name, uint64_t size)
{
    struct graph_node *out = s->out;
    if (out->rank == GRAPH_AXES)
        return fail(s, ERROR_SHAPE, "merge some", "the result has more than %d axes", GRAPH_AXES);
    if (graph_axis_find(out, name) >= 0)
        return fail(s, ERROR_SHAPE, "rename one", "the result has axis %s twice", name_of(s, name));
    if (size == 0)
        return fail(s, ERROR_SHAPE, NULL, "axis %s needs a size", name_of(s, name));
    out->axis[out->rank++] = (struct graph_axis){ name, size };
    return true;
}

static bool put_all(struct shape_request *s, const struct graph_node *n)
{
    for (unsigned i = 0; i < n->rank; i++)
        if (!put(s, n->axis[i].name, n->axis[i].size))
            return false;
    return true;
}

static bool wanted(const struct shape_request *s, uint32_t name, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (s->axes[i].name == name)
            return true;
    return false;
}

/* Axes of n that are not among the first `count` attribute axes. */
static bool put_others(struct shape_request *s, const struct graph_node *n, unsigned count)
{
    for (unsigned i = 0; i < n->rank; i++)
        if (!wanted(s, n->axis[i].name, count) && !put(s, n->axis[i].name, n->axis[i].size))
            return false;
    return true;
}

/* Attribute axis i exists in n; a size that is given must be right, one that is not is filled in. */
static bool axis_in(struct shape_request *s, unsigned i, const struct graph_node *n)
{
    const int at = graph_axis_find(n, s->axes[i].name);
    if (at < 0)
        return fail(s, ERROR_SHAPE, NULL, "no axis %s in %s", name_of(s, s->axes[i].name), SHOW(s, n));
    if (s->axes[i].size && s->axes[i].size != n->axis[at].size)
        return fail(s, ERROR_SHAPE, NULL, "axis %s is %llu in %s, not %llu", name_of(s, s->axes[i].name),
                    (unsigned long long)n->axis[at].size, SHOW(s, n), (unsigned long long)s->axes[i].size);
    s->axes[i].size = n->axis[at].size;
    return true;
}

static bool no_axis_twice(struct shape_request *s, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        for (unsigned k = from; k < i; k++)
            if (s->axes[i].name == s->axes[k].name)
                return fail(s, ERROR_SHAPE, NULL, "axis %s is named twice", name_of(s, s->axes[i].name));
    return true;
}

/* All attribute axes are axes of n, each once; they are put in the order of n, the canonical one. */
static bool axes_in(struct shape_request *s, const struct graph_node *n)
{
    struct graph_axis ordered[GRAPH_ATTRIBUTE_AXES];
    unsigned count = 0;
    if (!no_axis_twice(s, 0, s->axes_count))
        return false;
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!axis_in(s, i, n))
            return false;
    for (unsigned i = 0; i < n->rank; i++)
        if (wanted(s, n->axis[i].name, s->axes_count))
            ordered[count++] = n->axis[i];
    memcpy(s->axes, ordered, count * sizeof *ordered);
    return true;
}

static bool holds(const struct graph_node *big, const struct graph_node *small)
{
    for (unsigned i = 0; i < small->rank; i++)
        if (graph_axis_find(big, small->axis[i].name) < 0)
            return false;
    return true;
}

/* Axes of one name have one size in both. */
static bool agree(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    for (unsigned i = 0; i < x->rank; i++) {
        const int at = graph_axis_find(y, x->axis[i].name);
        if (at >= 0 && y->axis[at].size != x->axis[i].size)
            return fail(s, ERROR_SHAPE, NULL, "axis %s is %llu and %llu: %s and %s", name_of(s, x->axis[i].name),
                        (unsigned long long)x->axis[i].size, (unsigned long long)y->axis[at].size, SHOW(s, x), SHOW(s, y));
    }
    return true;
}

/* `part` lies within `whole`, with the same sizes. */
static bool within(struct shape_request *s, const char *what, const struct graph_node *part, const struct graph_node *whole)
{
    if (!holds(whole, part))
        return fail(s, ERROR_SHAPE, NULL, "%s %s must lie within %s", what, SHOW(s, part), SHOW(s, whole));
    return agree(s, whole, part);
}

static bool same_axes(struct shape_request *s, const char *what, const struct graph_node *x, const struct graph_node *y)
{
    if (x->rank != y->rank || !holds(x, y))
        return fail(s, ERROR_SHAPE, NULL, "%s %s must have the axes of %s", what, SHOW(s, y), SHOW(s, x));
    return agree(s, x, y);
}

static bool is_type(struct shape_request *s, const char *what, const struct graph_node *n, enum tensor_type type)
{
    if (n->type == type)
        return true;
    return fail(s, ERROR_TYPE, "cast it", "%s is %s, not %s", what, type_of(n), tensor_type_name(type));
}

static bool integer_in(struct shape_request *s, const char *what, int64_t value, int64_t from, int64_t to)
{
    if (value >= from && value <= to)
        return true;
    return fail(s, ERROR_RANGE, NULL, "%s %lld is not within %lld to %lld", what, (long long)value, (long long)from,
                (long long)to);
}

static bool flag_in(struct shape_request *s, const char *what, int64_t value)
{
    return integer_in(s, what, value, 0, 1);
}

static bool finite_in(struct shape_request *s, const char *what, double value, double from)
{
    if (isfinite(value) && value >= from)
        return true;
    return fail(s, ERROR_RANGE, NULL, "%s must be finite and at least %g", what, from);
}

/* ---- sources ---- */

static bool sized(struct shape_request *s)
{
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!put(s, s->axes[i].name, s->axes[i].size))
            return false;
    return true;
}

static bool infer_parameter(struct shape_request *s)
{
    const int64_t *k = s->r->integers;
    return sized(s) && integer_in(s, "kind", k[0], PARAMETER_MATRIX, PARAMETER_VECTOR) &&
           integer_in(s, "layer", k[1], -1, INT32_MAX) && integer_in(s, "role", k[2], PARAMETER_PLAIN, PARAMETER_LORA_B) &&
           integer_in(s, "number of out axes", k[3], 0, s->axes_count) &&
           integer_in(s, "init", k[4], PARAMETER_FILL, PARAMETER_NORMAL) && finite_in(s, "init", s->r->numbers[0], -1e30);
}

static bool number_fits(struct shape_request *s, double v, enum tensor_type type)
{
    if (isnan(v))
        return fail(s, ERROR_NON_FINITE, NULL, "a constant is never NaN");
    if (type == TENSOR_I32 && !(v >= INT32_MIN && v <= INT32_MAX && floor(v) == v))
        return fail(s, ERROR_TYPE, "cast the tensor to f32", "%.17g is no i32", v);
    return true;
}

static bool infer_source(struct shape_request *s)
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
        return sized(s) && integer_in(s, "layer", s->r->integers[0], -1, INT32_MAX);
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
                return fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
        return values == s->r->numbers_count ||
               fail(s, ERROR_SHAPE, NULL, "%llu values, got %zu", (unsigned long long)values, s->r->numbers_count);
    }
    default:
        s->out->type = (uint8_t)s->r->type;
        return sized(s);
    }
}

/* ---- elementwise ---- */

static const struct graph_node *joined(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    const struct graph_node *big = holds(x, y) ? x : holds(y, x) ? y : NULL;
    if (!big)
        fail(s, ERROR_SHAPE, "expand one of them, or is dot meant?", "%s and %s: neither holds all axes of the other", SHOW(s, x),
             SHOW(s, y));
    return big && agree(s, x, y) ? big : NULL;
}

static bool common_type(struct shape_request *s, const struct graph_node *x, const struct graph_node *y, uint8_t *type)
{
    *type = x->type == y->type ? x->type : TENSOR_F64;
    if (x->type != y->type && (x->type == TENSOR_I32 || y->type == TENSOR_I32))
        return fail(s, ERROR_TYPE, "cast one of them", "%s meets %s", type_of(x), type_of(y));
    if (*type == TENSOR_F64 && !(operator_table[s->r->op].flags & OPERATOR_F64))
        return fail(s, ERROR_TYPE, "cast to f32", "it takes f32, got f64");
    return true;
}

static bool infer_where(struct shape_request *s)
{
    const struct graph_node *big = joined(s, s->y, s->z);
    if (!is_type(s, "the mask", s->x, TENSOR_F32) || !big || !common_type(s, s->y, s->z, &s->out->type))
        return false;
    big = joined(s, big, s->x);
    return big && put_all(s, big);
}

static bool infer_elementwise(struct shape_request *s)
{
    if (s->r->op == OPERATOR_WHERE)
        return infer_where(s);
    if (s->r->input_count == 2) {
        const struct graph_node *big = joined(s, s->x, s->y);
        if (!big || !common_type(s, s->x, s->y, &s->out->type) || !put_all(s, big))
            return false;
    } else {
        s->out->type = s->x->type;
        if (!put_all(s, s->x))
            return false;
    }
    if (operator_table[s->r->op].flags & OPERATOR_COMPARE)
        s->out->type = TENSOR_F32;
    if (s->r->op == OPERATOR_CAST)
        s->out->type = (uint8_t)s->r->type;
    if (s->r->op == OPERATOR_CLAMP && !(s->r->numbers[0] <= s->r->numbers[1]))
        return fail(s, ERROR_RANGE, NULL, "from %g to %g is no range", s->r->numbers[0], s->r->numbers[1]);
    return true;
}

/* ---- reductions and softmax ---- */

static bool weight_good(struct shape_request *s, const char *what)
{
    if (!s->y)
        return true;
    if (!within(s, what, s->y, s->x))
        return false;
    if (s->y->type != TENSOR_F32 && s->y->type != s->x->type)
        return fail(s, ERROR_TYPE, "cast it", "%s is %s, the tensor %s", what, type_of(s->y), type_of(s->x));
    return true;
}

static bool infer_reduction(struct shape_request *s)
{
    s->out->type = s->x->type;
    return axes_in(s, s->x) && weight_good(s, s->r->op == OPERATOR_LOGSUMEXP ? "mask" : "weight") &&
           put_others(s, s->x, s->axes_count);
}

static bool infer_softmax(struct shape_request *s)
{
    s->out->type = s->x->type;
    return axes_in(s, s->x) && weight_good(s, "mask") && put_all(s, s->x);
}

/* ---- along one axis ---- */

static bool infer_topk(struct shape_request *s)
{
    const uint64_t k = s->axes[1].size;
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x) || !put_others(s, s->x, 1) || !put(s, s->axes[1].name, k))
        return false;
    return k <= s->axes[0].size || fail(s, ERROR_RANGE, NULL, "%llu of an axis of %llu in %s", (unsigned long long)k,
                                        (unsigned long long)s->axes[0].size, SHOW(s, s->x));
}

static bool infer_cumsum(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x) || !flag_in(s, "reverse", s->r->integers[0]) || !put_all(s, s->x))
        return false;
    return s->y ? weight_good(s, "decay") : isfinite(s->r->numbers[0]) || fail(s, ERROR_RANGE, NULL, "decay must be finite");
}

/* x with another size of attribute axis 0. */
static bool resized(struct shape_request *s, uint64_t size)
{
    if (!put_all(s, s->x))
        return false;
    s->out->axis[graph_axis_find(s->out, s->axes[0].name)].size = size;
    return true;
}

static bool infer_trim_or_pad(struct shape_request *s)
{
    const int64_t front = s->r->integers[0], back = s->r->integers[1], most = INT64_C(1) << 48;
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x) || !integer_in(s, "front", front, 0, most) || !integer_in(s, "back", back, 0, most))
        return false;
    const int64_t size = (int64_t)s->axes[0].size, keep = s->r->op == OPERATOR_TRIM ? size - front - back : size + front + back;
    if (size > most || keep < 1)
        return fail(s, ERROR_RANGE, NULL, "%lld and %lld leave nothing of %s in %s", (long long)front, (long long)back,
                    name_of(s, s->axes[0].name), SHOW(s, s->x));
    return resized(s, (uint64_t)keep);
}

static bool infer_at(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x) || !put_others(s, s->x, 1))
        return false;
    const int64_t i = s->r->integers[0];
    return (i >= 0 && (uint64_t)i < s->axes[0].size) || fail(s, ERROR_RANGE, NULL, "%lld is outside %s=%llu", (long long)i,
                                                             name_of(s, s->axes[0].name), (unsigned long long)s->axes[0].size);
}

static bool infer_gather(struct shape_request *s)
{
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x) || !is_type(s, "the index", s->y, TENSOR_I32))
        return false;
    const uint32_t axis = s->axes[0].name;
    for (unsigned i = 0; i < s->x->rank; i++) {
        const struct graph_axis a = s->x->axis[i];
        const int shared = graph_axis_find(s->y, a.name);
        if (a.name == axis) {
            for (unsigned k = 0; k < s->y->rank; k++)
                if ((s->y->axis[k].name == axis || graph_axis_find(s->x, s->y->axis[k].name) < 0) &&
                    !put(s, s->y->axis[k].name, s->y->axis[k].size))
                    return false;
        } else if (shared >= 0 && s->y->axis[shared].size != a.size) {
            return fail(s, ERROR_SHAPE, NULL, "axis %s of %s has another size in the index %s", name_of(s, a.name), SHOW(s, s->x),
                        SHOW(s, s->y));
        } else if (!put(s, a.name, a.size)) {
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
    if (!no_axis_twice(s, 0, summed) || !is_type(s, "the index", s->y, TENSOR_I32) || !within(s, "the index", s->y, s->x))
        return false;
    for (unsigned i = 0; i < summed; i++)
        if (!axis_in(s, i, s->x))
            return false;
    for (unsigned i = 0; i < s->x->rank; i++) {
        if (!wanted(s, s->x->axis[i].name, summed)) {
            if (!put(s, s->x->axis[i].name, s->x->axis[i].size))
                return false;
        } else if (!there) {
            there = true;
            if (!put(s, fresh.name, fresh.size))
                return false;
        }
    }
    return there || put(s, fresh.name, fresh.size);
}

static bool infer_concat(struct shape_request *s)
{
    uint64_t total = 0;
    s->out->type = s->x->type;
    if (!axis_in(s, 0, s->x))
        return false;
    for (size_t i = 0; i < s->r->input_count; i++) {
        const struct graph_node *n = &s->g->nodes[s->r->inputs[i]];
        const int at = graph_axis_find(n, s->axes[0].name);
        if (n->type != s->x->type || at < 0 || n->rank != s->x->rank || !holds(n, s->x))
            return fail(s, ERROR_SHAPE, NULL, "%s %s and %s %s differ in more than %s", type_of(s->x), SHOW(s, s->x), type_of(n),
                        SHOW(s, n), name_of(s, s->axes[0].name));
        for (unsigned k = 0; k < n->rank; k++)
            if ((int)k != at && s->x->axis[graph_axis_find(s->x, n->axis[k].name)].size != n->axis[k].size)
                return fail(s, ERROR_SHAPE, NULL, "%s and %s differ off %s", SHOW(s, s->x), SHOW(s, n),
                            name_of(s, s->axes[0].name));
        if (__builtin_add_overflow(total, n->axis[at].size, &total))
            return fail(s, ERROR_LIMIT, NULL, "the sizes overflow");
    }
    return resized(s, total);
}

static bool infer_along(struct shape_request *s)
{
    s->out->type = s->x->type;
    switch (s->r->op) {
    case OPERATOR_ARGMAX:
        s->out->type = TENSOR_I32;
        return axis_in(s, 0, s->x) && put_others(s, s->x, 1);
    case OPERATOR_RANK:
        s->out->type = TENSOR_I32;
        return axis_in(s, 0, s->x) && put_all(s, s->x);
    case OPERATOR_SORT:
        return axis_in(s, 0, s->x) && put_all(s, s->x);
    case OPERATOR_SHIFT:
        return axis_in(s, 0, s->x) && put_all(s, s->x) && integer_in(s, "k", s->r->integers[0], INT32_MIN, INT32_MAX);
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
        return is_type(s, "the tensor", s->x, TENSOR_I32) && put_all(s, s->x) && put(s, s->axes[0].name, s->axes[0].size);
    }
}

/* ---- products ---- */

static bool infer_product(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(x, s->axes[i].name) < 0 || graph_axis_find(y, s->axes[i].name) < 0)
            return fail(s, ERROR_SHAPE, NULL, "axis %s must be in both %s and %s", name_of(s, s->axes[i].name), SHOW(s, x),
                        SHOW(s, y));
    if (!agree(s, x, y) || !axes_in(s, x) || !common_type(s, x, y, &s->out->type) || !put_others(s, x, s->axes_count))
        return false;
    if (s->out->type == TENSOR_I32)
        return fail(s, ERROR_TYPE, "cast", "it takes f32 or f64, got i32");
    for (unsigned i = 0; i < y->rank; i++)
        if (graph_axis_find(x, y->axis[i].name) < 0 && !put(s, y->axis[i].name, y->axis[i].size))
            return false;
    return true;
}

static bool infer_onto(struct shape_request *s)
{
    if (!infer_product(s, s->y, s->z))
        return false;
    if (s->r->op == OPERATOR_LOW_RANK && !finite_in(s, "scale", s->r->numbers[0], -1e30))
        return false;
    if (s->x->rank != s->out->rank || !holds(s->x, s->out))
        return fail(s, ERROR_SHAPE, NULL, "the base %s has not the axes of the product of %s and %s", SHOW(s, s->x),
                    SHOW(s, s->y), SHOW(s, s->z));
    for (unsigned i = 0; i < s->out->rank; i++)
        if (s->x->axis[graph_axis_find(s->x, s->out->axis[i].name)].size != s->out->axis[i].size)
            return fail(s, ERROR_SHAPE, NULL, "axis %s of the base %s has another size in the product",
                        name_of(s, s->out->axis[i].name), SHOW(s, s->x));
    return true;
}

static bool infer_dist2(struct shape_request *s)
{
    s->out->type = TENSOR_F64;
    if (!axis_in(s, 0, s->x))
        return false;
    if (graph_axis_find(s->x, s->axes[1].name) >= 0)
        return fail(s, ERROR_SHAPE, NULL, "the new axis %s is in %s already", name_of(s, s->axes[1].name), SHOW(s, s->x));
    s->axes[1].size = s->axes[0].size;
    return put(s, s->axes[0].name, s->axes[0].size) && put(s, s->axes[1].name, s->axes[0].size);
}

static bool infer_factor(struct shape_request *s)
{
    const uint64_t r = s->axes[0].size;
    s->out->type = TENSOR_F32;
    const int b = graph_axis_find(s->x, s->axes[0].name), a = graph_axis_find(s->y, s->axes[0].name);
    if (a < 0 || b < 0 || !agree(s, s->x, s->y) || !is_type(s, "b", s->x, TENSOR_F32) || !is_type(s, "a", s->y, TENSOR_F32))
        return fail(s, ERROR_SHAPE, NULL, "f32 tensors that share %s alone are needed, got %s and %s",
                    name_of(s, s->axes[0].name), SHOW(s, s->x), SHOW(s, s->y));
    for (unsigned i = 0; i < s->x->rank; i++)
        if ((int)i != b && graph_axis_find(s->y, s->x->axis[i].name) >= 0)
            return fail(s, ERROR_SHAPE, NULL, "%s and %s share more than %s", SHOW(s, s->x), SHOW(s, s->y),
                        name_of(s, s->axes[0].name));
    return put_all(s, s->x) && ((s->out->axis[b].size = r) > 0 || fail(s, ERROR_SHAPE, NULL, "the rank is missing"));
}

/* ---- shape ---- */

static bool infer_rename(struct shape_request *s)
{
    if (!axis_in(s, 0, s->x))
        return false;
    if (s->axes[1].size && s->axes[1].size != s->axes[0].size)
        return fail(s, ERROR_SHAPE, NULL, "a renamed axis keeps its size");
    s->axes[1].size = s->axes[0].size;
    for (unsigned i = 0; i < s->x->rank; i++)
        if (!put(s, s->x->axis[i].name == s->axes[0].name ? s->axes[1].name : s->x->axis[i].name, s->x->axis[i].size))
            return false;
    return true;
}

static bool infer_split(struct shape_request *s)
{
    uint64_t known = 1;
    int open = -1;
    if (!axis_in(s, 0, s->x))
        return false;
    for (unsigned i = 1; i < s->axes_count; i++) {
        if (s->axes[i].size == 0 && open >= 0)
            return fail(s, ERROR_SHAPE, NULL, "the sizes of %s and %s are both open", name_of(s, s->axes[open].name),
                        name_of(s, s->axes[i].name));
        if (s->axes[i].size == 0)
            open = (int)i;
        else if (!tensor_multiply(known, s->axes[i].size, &known))
            return fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
    }
    const uint64_t whole = s->axes[0].size;
    if (whole % known != 0 || (open < 0 && known != whole))
        return fail(s, ERROR_SHAPE, NULL, "%s=%llu does not split into parts of %llu", name_of(s, s->axes[0].name),
                    (unsigned long long)whole, (unsigned long long)known);
    if (open >= 0)
        s->axes[open].size = whole / known;
    for (unsigned i = 0; i < s->x->rank; i++) {
        if (s->x->axis[i].name != s->axes[0].name) {
            if (!put(s, s->x->axis[i].name, s->x->axis[i].size))
                return false;
            continue;
        }
        for (unsigned k = 1; k < s->axes_count; k++)
            if (!put(s, s->axes[k].name, s->axes[k].size))
                return false;
    }
    return true;
}

static bool infer_merge(struct shape_request *s)
{
    uint64_t size = 1;
    bool there = false;
    if (!no_axis_twice(s, 1, s->axes_count))
        return false;
    for (unsigned i = 1; i < s->axes_count; i++) {
        if (!axis_in(s, i, s->x))
            return false;
        if (!tensor_multiply(size, s->axes[i].size, &size))
            return fail(s, ERROR_LIMIT, NULL, "the product of the sizes overflows");
    }
    if (s->axes[0].size && s->axes[0].size != size)
        return fail(s, ERROR_SHAPE, NULL, "the merged axis is %llu", (unsigned long long)size);
    s->axes[0].size = size;
    for (unsigned i = 0; i < s->x->rank; i++) {
        bool merged = false;
        for (unsigned k = 1; k < s->axes_count; k++)
            merged = merged || s->axes[k].name == s->x->axis[i].name;
        if (!merged && !put(s, s->x->axis[i].name, s->x->axis[i].size))
            return false;
        if (merged && !there && !put(s, s->axes[0].name, size))
            return false;
        there = there || merged;
    }
    return there || put(s, s->axes[0].name, size);
}

static bool infer_expand(struct shape_request *s)
{
    if (!no_axis_twice(s, 0, s->axes_count) || !put_all(s, s->x))
        return false;
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(s->x, s->axes[i].name) < 0 ? !put(s, s->axes[i].name, s->axes[i].size) : !axis_in(s, i, s->x))
            return false;
    return true;
}

static bool infer_shape(struct shape_request *s)
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
        if (s->axes_count != s->x->rank || !no_axis_twice(s, 0, s->axes_count))
            return fail(s, ERROR_SHAPE, NULL, "all axes of %s are needed, each once", SHOW(s, s->x));
        for (unsigned i = 0; i < s->axes_count; i++)
            if (!axis_in(s, i, s->x) || !put(s, s->axes[i].name, s->axes[i].size))
                return false;
        return true;
    default: /* detach */
        return put_all(s, s->x);
    }
}

/* ---- layers ---- */

/* The reciprocal root mean square has the axes of x but for those that are normed. */
static bool rstd_good(struct shape_request *s, const struct graph_node *rstd)
{
    if (rstd->type != TENSOR_F32 || rstd->rank + s->axes_count != s->x->rank || !within(s, "the scale", rstd, s->x))
        return fail(s, ERROR_SHAPE, NULL, "%s is not the scale of %s", SHOW(s, rstd), SHOW(s, s->x));
    for (unsigned i = 0; i < s->axes_count; i++)
        if (graph_axis_find(rstd, s->axes[i].name) >= 0)
            return fail(s, ERROR_SHAPE, NULL, "the scale %s has an axis that is normed", SHOW(s, rstd));
    return true;
}

static bool infer_rmsnorm(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    if (!axes_in(s, s->x) || !is_type(s, "the tensor", s->x, TENSOR_F32) || !is_type(s, "input 1", s->y, TENSOR_F32) ||
        !finite_in(s, "eps", s->r->numbers[0], 0) || !finite_in(s, "offset", s->r->numbers[1], -1e30))
        return false;
    if (s->r->op == OPERATOR_RMSNORM_WEIGHT_GRAD) {
        for (unsigned i = 0; i < s->axes_count; i++)
            if (!put(s, s->axes[i].name, s->axes[i].size))
                return false;
        return rstd_good(s, s->y) && same_axes(s, "gradient", s->x, s->z) && is_type(s, "gradient", s->z, TENSOR_F32);
    }
    for (unsigned i = 0; i < s->y->rank; i++)
        if (!wanted(s, s->y->axis[i].name, s->axes_count))
            return fail(s, ERROR_SHAPE, NULL, "the weight %s has axes beside those that are normed", SHOW(s, s->y));
    if (s->y->rank != s->axes_count)
        return fail(s, ERROR_SHAPE, NULL, "the weight %s lacks axes that are normed in %s", SHOW(s, s->y), SHOW(s, s->x));
    if (s->t && !(rstd_good(s, s->z) && same_axes(s, "gradient", s->x, s->t) && is_type(s, "gradient", s->t, TENSOR_F32)))
        return false;
    return agree(s, s->x, s->y) && put_all(s, s->x);
}

static bool infer_rope(struct shape_request *s)
{
    const int64_t *k = s->r->integers;
    const double *v = s->r->numbers;
    s->out->type = TENSOR_F32;
    if (!axis_in(s, 0, s->x) || !is_type(s, "the tensor", s->x, TENSOR_F32) || !is_type(s, "position", s->y, TENSOR_I32) ||
        !within(s, "position", s->y, s->x) || !put_all(s, s->x))
        return false;
    if (graph_axis_find(s->y, s->axes[0].name) >= 0)
        return fail(s, ERROR_SHAPE, NULL, "position %s holds the rotated axis", SHOW(s, s->y));
    const int64_t width = k[0] ? k[0] : (int64_t)s->axes[0].size;
    if (width < 0 || width % 2 || (uint64_t)width > s->axes[0].size)
        return fail(s, ERROR_RANGE, NULL, "a width of %lld in %s", (long long)width, SHOW(s, s->x));
    if (!flag_in(s, "interleaved", k[1]) || !integer_in(s, "scaling", k[2], ROPE_NONE, ROPE_LLAMA3) ||
        !flag_in(s, "inverse", k[3]) || !finite_in(s, "base", v[0], 1))
        return false;
    if (k[2] != ROPE_NONE && !finite_in(s, "factor", v[1], 1e-6))
        return false;
    return k[2] != ROPE_LLAMA3 || (finite_in(s, "low_freq_factor", v[2], 1e-6) && finite_in(s, "high_freq_factor", v[3], 1e-6) &&
                                   finite_in(s, "original_max_position_embeddings", v[4], 1) &&
                                   (v[3] > v[2] || fail(s, ERROR_RANGE, NULL, "high_freq_factor must be above low_freq_factor")));
}

static bool infer_attention(struct shape_request *s)
{
    const bool backward = s->r->op == OPERATOR_ATTENTION_GRAD;
    const struct graph_node *q = s->x, *k = s->y, *v = s->z;
    const struct graph_node *segment = backward ? (s->r->input_count == 7 ? s->t : NULL) : s->t;
    s->out->type = TENSOR_F32;
    if (!is_type(s, "q", q, TENSOR_F32) || !is_type(s, "k", k, TENSOR_F32) || !is_type(s, "v", v, TENSOR_F32))
        return false;
    if (s->axes[0].name == s->axes[1].name || !axis_in(s, 0, q) || !axis_in(s, 1, q) || !axis_in(s, 0, k) || !axis_in(s, 1, k))
        return fail(s, ERROR_SHAPE, NULL, "%s and %s must be two axes of q %s and k %s", name_of(s, s->axes[0].name),
                    name_of(s, s->axes[1].name), SHOW(s, q), SHOW(s, k));
    if (!within(s, "k", k, q) || !same_axes(s, "v", k, v))
        return false;
    if (segment) {
        if (!is_type(s, "segment", segment, TENSOR_I32) || !within(s, "segment", segment, k))
            return false;
        if (graph_axis_find(segment, s->axes[0].name) < 0 || graph_axis_find(segment, s->axes[1].name) >= 0)
            return fail(s, ERROR_SHAPE, NULL, "segment %s must have %s, not %s", SHOW(s, segment), name_of(s, s->axes[0].name),
                        name_of(s, s->axes[1].name));
    }
    if (backward) {
        const size_t at = s->r->input_count - 3;
        const struct graph_node *y = &s->g->nodes[s->r->inputs[at]], *g = &s->g->nodes[s->r->inputs[at + 2]];
        if (!same_axes(s, "result", q, y) || !same_axes(s, "gradient", q, g))
            return false;
        const struct graph_node *lse = &s->g->nodes[s->r->inputs[at + 1]];
        if (lse->type != TENSOR_F32 || lse->rank + 1 != q->rank || !within(s, "log-sum-exp", lse, q) ||
            graph_axis_find(lse, s->axes[1].name) >= 0)
            return fail(s, ERROR_SHAPE, NULL, "%s is not the log-sum-exp of %s", SHOW(s, lse), SHOW(s, q));
    }
    const double scale = s->r->numbers[0], softcap = s->r->numbers[1];
    return finite_in(s, "scale", scale, -1e30) && finite_in(s, "softcap", softcap, 0) &&
           flag_in(s, "causal", s->r->integers[0]) && integer_in(s, "window", s->r->integers[1], 0, INT32_MAX) && put_all(s, q);
}

static bool infer_token_logprob(struct shape_request *s)
{
    s->out->type = TENSOR_F32;
    if (!axis_in(s, 0, s->x) || !is_type(s, "logits", s->x, TENSOR_F32) || !is_type(s, "ids", s->y, TENSOR_I32))
        return false;
    if (s->y->rank + 1 != s->x->rank || !within(s, "ids", s->y, s->x) || graph_axis_find(s->y, s->axes[0].name) >= 0)
        return fail(s, ERROR_SHAPE, NULL, "ids %s must have the axes of %s less %s", SHOW(s, s->y), SHOW(s, s->x),
                    name_of(s, s->axes[0].name));
    if (s->r->op == OPERATOR_TOKEN_LOGPROB)
        return put_others(s, s->x, 1);
    return same_axes(s, "logsumexp", s->y, s->z) && same_axes(s, "gradient", s->y, s->t) &&
           is_type(s, "logsumexp", s->z, TENSOR_F32) && is_type(s, "gradient", s->t, TENSOR_F32) && put_all(s, s->x);
}

static bool infer_dropout(struct shape_request *s)
{
    const double rate = s->r->numbers[0];
    s->out->type = TENSOR_F32;
    if (!(rate >= 0 && rate < 1))
        return fail(s, ERROR_RANGE, NULL, "a rate of %g is not within 0 to 1", rate);
    return integer_in(s, "layer", s->r->integers[0], -1, INT32_MAX) && flag_in(s, "again", s->r->integers[1]) && put_all(s, s->x);
}

/* ---- further results ---- */

static bool without(struct shape_request *s, const struct graph_node *n, const struct graph_axis *axes, unsigned count)
{
    for (unsigned i = 0; i < n->rank; i++) {
        bool dropped = false;
        for (unsigned k = 0; k < count; k++)
            dropped = dropped || axes[k].name == n->axis[i].name;
        if (!dropped && !put(s, n->axis[i].name, n->axis[i].size))
            return false;
    }
    return true;
}

static bool infer_result(struct shape_request *s)
{
    const struct graph_node *n = s->x;
    const struct graph *g = s->g;
    const int64_t which = s->r->integers[0];
    const struct graph_axis *axes = graph_axes(g, n);
    s->out->type = TENSOR_F32;
    if (n->op == OPERATOR_TOPK && which == 1) {
        s->out->type = TENSOR_I32;
        return put_all(s, n);
    }
    if (n->op == OPERATOR_FACTOR && which == 1) {
        const struct graph_node *a = &g->nodes[graph_inputs(g, n)[1]];
        return put_all(s, a) && ((s->out->axis[graph_axis_find(a, axes[0].name)].size = axes[0].size) > 0);
    }
    if (n->op == OPERATOR_ATTENTION && which == 1)
        return without(s, n, axes, 2) && put(s, axes[0].name, axes[0].size);
    if (n->op == OPERATOR_RMSNORM && which == 1)
        return without(s, n, axes, n->axes_count);
    if (n->op == OPERATOR_TOKEN_LOGPROB && which == 1)
        return put_all(s, n);
    if (n->op == OPERATOR_ATTENTION_GRAD && (which == 1 || which == 2))
        return put_all(s, &g->nodes[graph_inputs(g, n)[which]]);
    return fail(s, ERROR_RANGE, NULL, "%s has no result %lld", operator_table[n->op].name, (long long)which);
}

/* ---- all ---- */

static bool infer_by_operator(struct shape_request *s)
{
    const unsigned flags = operator_table[s->r->op].flags;
    if (flags & OPERATOR_SOURCE)
        return infer_source(s);
    if (s->x->type == TENSOR_F64 && !(flags & OPERATOR_F64))
        return fail(s, ERROR_TYPE, "cast to f32", "it takes %s, got f64", flags & OPERATOR_I32 ? "f32 or i32" : "f32");
    if (s->x->type == TENSOR_I32 && !(flags & OPERATOR_I32))
        return fail(s, ERROR_TYPE, "cast to f32", "it takes %s, got i32", flags & OPERATOR_F64 ? "f32 or f64" : "f32");
    if (flags & OPERATOR_ELEMENTWISE)
        return infer_elementwise(s);
    if (flags & OPERATOR_REDUCTION)
        return infer_reduction(s);
    switch (s->r->op) {
    case OPERATOR_SOFTMAX:
    case OPERATOR_LOG_SOFTMAX:
        return infer_softmax(s);
    case OPERATOR_DOT:
        return infer_product(s, s->x, s->y);
    case OPERATOR_DOT_ONTO:
    case OPERATOR_LOW_RANK:
        return infer_onto(s);
    case OPERATOR_DIST2:
        return infer_dist2(s);
    case OPERATOR_FACTOR:
        return infer_factor(s);
    case OPERATOR_RENAME:
    case OPERATOR_SPLIT:
    case OPERATOR_MERGE:
    case OPERATOR_EXPAND:
    case OPERATOR_TRANSPOSE:
    case OPERATOR_DETACH:
        return infer_shape(s);
    case OPERATOR_RMSNORM:
    case OPERATOR_RMSNORM_GRAD:
    case OPERATOR_RMSNORM_WEIGHT_GRAD:
        return infer_rmsnorm(s);
    case OPERATOR_ROPE:
        return infer_rope(s);
    case OPERATOR_ATTENTION:
    case OPERATOR_ATTENTION_GRAD:
        return infer_attention(s);
    case OPERATOR_TOKEN_LOGPROB:
    case OPERATOR_TOKEN_LOGPROB_GRAD:
        return infer_token_logprob(s);
    case OPERATOR_DROPOUT:
        return infer_dropout(s);
    case OPERATOR_RESULT:
        return infer_result(s);
    default:
        return infer_along(s);
    }
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
        bytes > s->g->limits.node_bytes)
        return fail(s, ERROR_LIMIT, NULL, "a result larger than the limit of %llu bytes",
                    (unsigned long long)s->g->limits.node_bytes);
    return true;
}
