#include "native/graph/shape_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- helpers ---- */

bool shape_fail(struct shape_request *s, enum error_code code, const char *hint, const char *format, ...)
{
    char text[380];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(s->err, code, hint, "%s: %s", operator_table[s->r->op].name, text);
}

/* "[batch=8 time=512]" of a node of the graph; a fresh buffer a call, so that two stand in one message. */
const char *shape_show(struct shape_request *s, const struct graph_node *n, struct shown *buffer)
{
    return graph_show(s->g, (uint32_t)(n - s->g->nodes), buffer->text, sizeof buffer->text);
}
const char *shape_name_of(struct shape_request *s, uint32_t name)
{
    return s->g->names[name];
}
const char *shape_type_of(const struct graph_node *n)
{
    return tensor_type_name((enum tensor_type)n->type);
}

bool shape_put(struct shape_request *s, uint32_t name, uint64_t size)
{
    struct graph_node *out = s->out;
    if (out->rank == GRAPH_AXES)
        return shape_fail(s, ERROR_SHAPE, "merge some", "the result has more than %d axes", GRAPH_AXES);
    if (graph_axis_find(out, name) >= 0)
        return shape_fail(s, ERROR_SHAPE, "rename one", "the result has axis %s twice", shape_name_of(s, name));
    if (size == 0)
        return shape_fail(s, ERROR_SHAPE, NULL, "axis %s needs a size", shape_name_of(s, name));
    out->axis[out->rank++] = (struct graph_axis){ name, size };
    return true;
}

bool shape_put_all(struct shape_request *s, const struct graph_node *n)
{
    for (unsigned i = 0; i < n->rank; i++)
        if (!shape_put(s, n->axis[i].name, n->axis[i].size))
            return false;
    return true;
}

bool shape_wanted(const struct shape_request *s, uint32_t name, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (s->axes[i].name == name)
            return true;
    return false;
}

/* Axes of n that are not among the first `count` attribute axes. */
bool shape_put_others(struct shape_request *s, const struct graph_node *n, unsigned count)
{
    for (unsigned i = 0; i < n->rank; i++)
        if (!shape_wanted(s, n->axis[i].name, count) && !shape_put(s, n->axis[i].name, n->axis[i].size))
            return false;
    return true;
}

/* Attribute axis i exists in n; a size that is given must be right, one that is not is filled in. */
bool shape_axis_in(struct shape_request *s, unsigned i, const struct graph_node *n)
{
    const int at = graph_axis_find(n, s->axes[i].name);
    if (at < 0)
        return shape_fail(s, ERROR_SHAPE, NULL, "no axis %s in %s", shape_name_of(s, s->axes[i].name), SHOW(s, n));
    if (s->axes[i].size && s->axes[i].size != n->axis[at].size)
        return shape_fail(s, ERROR_SHAPE, NULL, "axis %s is %llu in %s, not %llu", shape_name_of(s, s->axes[i].name),
                          (unsigned long long)n->axis[at].size, SHOW(s, n), (unsigned long long)s->axes[i].size);
    s->axes[i].size = n->axis[at].size;
    return true;
}

bool shape_no_axis_twice(struct shape_request *s, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        for (unsigned k = from; k < i; k++)
            if (s->axes[i].name == s->axes[k].name)
                return shape_fail(s, ERROR_SHAPE, NULL, "axis %s is named twice", shape_name_of(s, s->axes[i].name));
    return true;
}

/* All attribute axes are axes of n, each once; they are put in the order of n, the canonical one. */
bool shape_axes_in(struct shape_request *s, const struct graph_node *n)
{
    struct graph_axis ordered[GRAPH_ATTRIBUTE_AXES];
    unsigned count = 0;
    if (!shape_no_axis_twice(s, 0, s->axes_count))
        return false;
    for (unsigned i = 0; i < s->axes_count; i++)
        if (!shape_axis_in(s, i, n))
            return false;
    for (unsigned i = 0; i < n->rank; i++)
        if (shape_wanted(s, n->axis[i].name, s->axes_count))
            ordered[count++] = n->axis[i];
    memcpy(s->axes, ordered, count * sizeof *ordered);
    return true;
}

bool shape_holds(const struct graph_node *big, const struct graph_node *small)
{
    for (unsigned i = 0; i < small->rank; i++)
        if (graph_axis_find(big, small->axis[i].name) < 0)
            return false;
    return true;
}

/* Axes of one name have one size in both. */
bool shape_agree(struct shape_request *s, const struct graph_node *x, const struct graph_node *y)
{
    for (unsigned i = 0; i < x->rank; i++) {
        const int at = graph_axis_find(y, x->axis[i].name);
        if (at >= 0 && y->axis[at].size != x->axis[i].size)
            return shape_fail(s, ERROR_SHAPE, NULL, "axis %s is %llu and %llu: %s and %s", shape_name_of(s, x->axis[i].name),
                              (unsigned long long)x->axis[i].size, (unsigned long long)y->axis[at].size, SHOW(s, x), SHOW(s, y));
    }
    return true;
}

/* `part` lies within `whole`, with the same sizes. */
bool shape_within(struct shape_request *s, const char *what, const struct graph_node *part, const struct graph_node *whole)
{
    if (!shape_holds(whole, part))
        return shape_fail(s, ERROR_SHAPE, NULL, "%s %s must lie within %s", what, SHOW(s, part), SHOW(s, whole));
    return shape_agree(s, whole, part);
}

bool shape_same_axes(struct shape_request *s, const char *what, const struct graph_node *x, const struct graph_node *y)
{
    if (x->rank != y->rank || !shape_holds(x, y))
        return shape_fail(s, ERROR_SHAPE, NULL, "%s %s must have the axes of %s", what, SHOW(s, y), SHOW(s, x));
    return shape_agree(s, x, y);
}

bool shape_is_type(struct shape_request *s, const char *what, const struct graph_node *n, enum tensor_type type)
{
    if (n->type == type)
        return true;
    return shape_fail(s, ERROR_TYPE, "cast it", "%s is %s, not %s", what, shape_type_of(n), tensor_type_name(type));
}

bool shape_integer_in(struct shape_request *s, const char *what, int64_t value, int64_t from, int64_t to)
{
    if (value >= from && value <= to)
        return true;
    return shape_fail(s, ERROR_RANGE, NULL, "%s %lld is not within %lld to %lld", what, (long long)value, (long long)from,
                      (long long)to);
}

bool shape_flag_in(struct shape_request *s, const char *what, int64_t value)
{
    return shape_integer_in(s, what, value, 0, 1);
}

bool shape_finite_in(struct shape_request *s, const char *what, double value, double from)
{
    if (isfinite(value) && value >= from)
        return true;
    return shape_fail(s, ERROR_RANGE, NULL, "%s must be finite and at least %g", what, from);
}
