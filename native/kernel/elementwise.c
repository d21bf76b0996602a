#include "native/kernel/elementwise.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "native/kernel/loops.h"
#include "native/numerics/f32.h"

#define TILE  1024  /* elements gathered at once */
#define SHARE 16384 /* elements a task */

static const struct {
    const char *name;
    unsigned arity;
} ops[ELEMENTWISE_OPS] = {
#define ELEMENTWISE_OP(name, text, arity, formula) [ELEMENTWISE_##name] = { text, arity },
#include "native/kernel/elementwise_ops.h"
#undef ELEMENTWISE_OP
};

size_t space_count(const struct space *space)
{
    size_t count = 1;

    for (unsigned i = 0; i < space->rank; i++)
        count *= space->size[i];
    return count;
}

unsigned elementwise_arity(enum elementwise_op op)
{
    return ops[op].arity;
}

const char *elementwise_name(enum elementwise_op op)
{
    return ops[op].name;
}

bool elementwise_offered(enum elementwise_op op, enum kernel_type type)
{
    switch (op) {
    case ELEMENTWISE_COPY:
    case ELEMENTWISE_NEG:
    case ELEMENTWISE_ABS:
    case ELEMENTWISE_ADD:
    case ELEMENTWISE_SUB:
    case ELEMENTWISE_MUL:
    case ELEMENTWISE_MIN:
    case ELEMENTWISE_MAX:
    case ELEMENTWISE_LT:
    case ELEMENTWISE_LE:
    case ELEMENTWISE_GT:
    case ELEMENTWISE_GE:
    case ELEMENTWISE_EQ:
    case ELEMENTWISE_NE:
    case ELEMENTWISE_WHERE:
        return true;
    case ELEMENTWISE_SQUARE:
    case ELEMENTWISE_SQRT:
    case ELEMENTWISE_DIV:
        return type != KERNEL_I32;
    default:
        return type == KERNEL_F32;
    }
}

static bool is_comparison(enum elementwise_op op)
{
    return op >= ELEMENTWISE_LT && op <= ELEMENTWISE_NE;
}

#define PLAIN_LOOP(type, formula)                                                                                                \
    for (size_t i = 0; i < n; i++) {                                                                                             \
        ((type *)out)[i] = formula;                                                                                              \
    }                                                                                                                            \
    break

static void loop_f64(enum elementwise_op op, size_t n, const void *const in[3], void *out)
{
    const double *x = in[0], *y = in[1], *z = in[2];
    const float *mask = in[0];

    switch (op) {
    case ELEMENTWISE_COPY:
        PLAIN_LOOP(double, x[i]);
    case ELEMENTWISE_NEG:
        PLAIN_LOOP(double, -x[i]);
    case ELEMENTWISE_ABS:
        PLAIN_LOOP(double, __builtin_fabs(x[i]));
    case ELEMENTWISE_SQUARE:
        PLAIN_LOOP(double, x[i] * x[i]);
    case ELEMENTWISE_SQRT:
        PLAIN_LOOP(double, __builtin_sqrt(x[i]));
    case ELEMENTWISE_ADD:
        PLAIN_LOOP(double, x[i] + y[i]);
    case ELEMENTWISE_SUB:
        PLAIN_LOOP(double, x[i] - y[i]);
    case ELEMENTWISE_MUL:
        PLAIN_LOOP(double, x[i] * y[i]);
    case ELEMENTWISE_DIV:
        PLAIN_LOOP(double, x[i] / y[i]);
    case ELEMENTWISE_MIN:
        PLAIN_LOOP(double, x[i] < y[i] ? x[i] : y[i]);
    case ELEMENTWISE_MAX:
        PLAIN_LOOP(double, x[i] > y[i] ? x[i] : y[i]);
    case ELEMENTWISE_LT:
        PLAIN_LOOP(float, x[i] < y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_LE:
        PLAIN_LOOP(float, x[i] <= y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_GT:
        PLAIN_LOOP(float, x[i] > y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_GE:
        PLAIN_LOOP(float, x[i] >= y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_EQ:
        PLAIN_LOOP(float, x[i] == y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_NE:
        PLAIN_LOOP(float, x[i] != y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_WHERE:
        PLAIN_LOOP(double, mask[i] != 0.0f ? y[i] : z[i]);
    default:
        assert(!"operation not offered for f64");
    }
}

static void loop_i32(enum elementwise_op op, size_t n, const void *const in[3], void *out)
{
    const int32_t *x = in[0], *y = in[1], *z = in[2];
    const uint32_t *ux = in[0], *uy = in[1];
    const float *mask = in[0];

    switch (op) {
    case ELEMENTWISE_COPY:
        PLAIN_LOOP(int32_t, x[i]);
    case ELEMENTWISE_NEG:
        PLAIN_LOOP(uint32_t, 0u - ux[i]);
    case ELEMENTWISE_ABS:
        PLAIN_LOOP(uint32_t, x[i] < 0 ? 0u - ux[i] : ux[i]);
    case ELEMENTWISE_ADD:
        PLAIN_LOOP(uint32_t, ux[i] + uy[i]);
    case ELEMENTWISE_SUB:
        PLAIN_LOOP(uint32_t, ux[i] - uy[i]);
    case ELEMENTWISE_MUL:
        PLAIN_LOOP(uint32_t, ux[i] * uy[i]);
    case ELEMENTWISE_MIN:
        PLAIN_LOOP(int32_t, x[i] < y[i] ? x[i] : y[i]);
    case ELEMENTWISE_MAX:
        PLAIN_LOOP(int32_t, x[i] > y[i] ? x[i] : y[i]);
    case ELEMENTWISE_LT:
        PLAIN_LOOP(float, x[i] < y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_LE:
        PLAIN_LOOP(float, x[i] <= y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_GT:
        PLAIN_LOOP(float, x[i] > y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_GE:
        PLAIN_LOOP(float, x[i] >= y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_EQ:
        PLAIN_LOOP(float, x[i] == y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_NE:
        PLAIN_LOOP(float, x[i] != y[i] ? 1.0f : 0.0f);
    case ELEMENTWISE_WHERE:
        PLAIN_LOOP(int32_t, mask[i] != 0.0f ? y[i] : z[i]);
    default:
        assert(!"operation not offered for i32");
    }
}

struct job {
    enum elementwise_op op;
    enum kernel_type type;
    const struct loops *loops;
    unsigned arity;
    size_t element[3], element_out; /* bytes */
    size_t count, row;              /* outputs in all; length of the innermost axis */
    struct space space;             /* axes merged */
    struct view in[3];
    char *out;
};

/* Merges neighbouring axes that every input steps through as one; axes of size 1 go. At least one axis is left. */
static void merge_axes(struct job *job, const struct space *space, const struct view *in)
{
    unsigned rank = 0;

    for (unsigned d = 0; d < space->rank; d++) {
        bool merge = rank > 0;

        if (space->size[d] == 1)
            continue;
        for (unsigned i = 0; i < job->arity && merge; i++)
            merge = job->in[i].stride[rank - 1] == in[i].stride[d] * (ptrdiff_t)space->size[d];
        if (!merge)
            rank++;
        job->space.size[rank - 1] = merge ? job->space.size[rank - 1] * space->size[d] : space->size[d];
        for (unsigned i = 0; i < job->arity; i++)
            job->in[i].stride[rank - 1] = in[i].stride[d];
    }
    if (rank == 0) {
        job->space.size[0] = 1;
        for (unsigned i = 0; i < job->arity; i++)
            job->in[i].stride[0] = 1;
        rank = 1;
    }
    job->space.rank = rank;
    job->row = job->space.size[rank - 1];
}

/* A strided or repeated input, gathered; a repeated one is kept while it does not change. */
struct tile {
    uint64_t data[3][TILE];
    const char *repeated[3];
    size_t filled[3];
};

static void gather(size_t element, size_t n, const char *from, ptrdiff_t stride, void *to)
{
    if (element == 4 && stride == 0) {
        uint32_t value = *(const uint32_t *)from;

        for (size_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = value;
    } else if (element == 4) {
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = *(const uint32_t *)(from + (ptrdiff_t)i * stride * 4);
    } else {
        for (size_t i = 0; i < n; i++)
            ((uint64_t *)to)[i] = *(const uint64_t *)(from + (ptrdiff_t)i * stride * 8);
    }
}

/* `n` outputs from position `column` of one innermost row; `base`: where each input's row starts. */
static void run_tile(const struct job *job, const char *const base[3], size_t column, size_t n, char *out, struct tile *tile)
{
    const void *in[3] = { NULL, NULL, NULL };

    for (unsigned i = 0; i < job->arity; i++) {
        ptrdiff_t stride = job->in[i].stride[job->space.rank - 1];
        const char *from = base[i] + (ptrdiff_t)column * stride * (ptrdiff_t)job->element[i];

        in[i] = stride == 1 ? (const void *)from : tile->data[i];
        if (stride == 1 || (stride == 0 && tile->repeated[i] == from && tile->filled[i] >= n))
            continue;
        gather(job->element[i], n, from, stride, tile->data[i]);
        tile->repeated[i] = stride == 0 ? from : NULL;
        tile->filled[i] = n;
    }
    if (job->op == ELEMENTWISE_COPY)
        memmove(out, in[0], n * job->element_out);
    else if (job->type == KERNEL_F32)
        job->loops->elementwise(job->op, n, in[0], in[1], in[2], (float *)out);
    else if (job->type == KERNEL_F64)
        loop_f64(job->op, n, in, out);
    else
        loop_i32(job->op, n, in, out);
}

/* Where the inputs' innermost rows start that outer position `rest` (row-major over the other axes) names. */
static void find_rows(const struct job *job, size_t rest, const char *base[3])
{
    for (unsigned i = 0; i < job->arity; i++)
        base[i] = job->in[i].data;
    for (unsigned d = job->space.rank - 1; d-- > 0 && rest > 0;) {
        ptrdiff_t at = (ptrdiff_t)(rest % job->space.size[d]);

        rest /= job->space.size[d];
        for (unsigned i = 0; i < job->arity; i++)
            base[i] += at * job->in[i].stride[d] * (ptrdiff_t)job->element[i];
    }
}

static void run_share(void *context, size_t index)
{
    const struct job *job = context;
    size_t position = index * SHARE, end = job->count - position < SHARE ? job->count : position + SHARE;
    bool in_place = true;
    struct tile tile;

    for (unsigned i = 0; i < 3; i++) {
        in_place = in_place && (i >= job->arity || job->in[i].stride[job->space.rank - 1] == 1);
        tile.repeated[i] = NULL;
    }
    while (position < end) {
        size_t column = position % job->row, n = job->row - column < end - position ? job->row - column : end - position;
        const char *base[3] = { NULL, NULL, NULL };

        find_rows(job, position / job->row, base);
        n = in_place || n < TILE ? n : TILE;
        run_tile(job, base, column, n, job->out + position * job->element_out, &tile);
        position += n;
    }
}

/* A copy that reads along another axis than it writes goes by planes of these two axes: the plane's rows are the innermost axis of the
 * output, its columns the axis of the input's unit stride. */
struct planes {
    const struct job *job;
    unsigned axis;   /* of the unit stride */
    size_t to_row;   /* the output's step along it */
    size_t per_task; /* columns of a task */
    size_t cuts;     /* tasks a plane */
};

static void plane_share(void *context, size_t index)
{
    const struct planes *planes = context;
    const struct job *job = planes->job;
    unsigned inner = job->space.rank - 1;
    size_t column = index % planes->cuts * planes->per_task, rest = index / planes->cuts, step = job->row,
           to = column * planes->to_row;
    size_t columns = job->space.size[planes->axis] - column;
    const float *from = (const float *)job->in[0].data + column;

    for (unsigned d = inner; d-- > 0; step *= job->space.size[d]) {
        if (d == planes->axis)
            continue;
        from += (ptrdiff_t)(rest % job->space.size[d]) * job->in[0].stride[d];
        to += rest % job->space.size[d] * step;
        rest /= job->space.size[d];
    }
    columns = columns < planes->per_task ? columns : planes->per_task;
    for (size_t r = 0; r < job->row; r += 64) /* so that the lines written stay in the nearest cache */
        job->loops->transpose(job->row - r < 64 ? job->row - r : 64, columns, from + (ptrdiff_t)r * job->in[0].stride[inner],
                              job->in[0].stride[inner], (float *)job->out + to + r, (ptrdiff_t)planes->to_row);
}

static bool run_planes(struct pool *pool, const struct job *job)
{
    unsigned inner = job->space.rank - 1;
    struct planes planes = { .job = job, .to_row = job->row, .per_task = 64 };

    if (job->op != ELEMENTWISE_COPY || job->element_out != 4 || inner == 0 || job->in[0].stride[inner] == 1 ||
        job->in[0].stride[inner] == 0)
        return false;
    for (planes.axis = inner - 1; job->in[0].stride[planes.axis] != 1; planes.axis--) {
        if (planes.axis == 0)
            return false;
        planes.to_row *= job->space.size[planes.axis];
    }
    planes.cuts = (job->space.size[planes.axis] + planes.per_task - 1) / planes.per_task;
    pool_run(pool, job->count / job->row / job->space.size[planes.axis] * planes.cuts, plane_share, &planes);
    return true;
}

void elementwise_run(struct pool *pool, enum elementwise_op op, enum kernel_type type, const struct space *space,
                     const struct view *in, void *out)
{
    struct job job = {
        .op = op, .type = type, .loops = loops(), .arity = ops[op].arity, .count = space_count(space), .out = out
    };
    size_t element = type == KERNEL_F64 ? 8 : 4;

    assert(elementwise_offered(op, type));
    if (job.count == 0)
        return;
    job.element_out = is_comparison(op) ? 4 : element;
    for (unsigned i = 0; i < job.arity; i++) {
        job.in[i].data = in[i].data;
        job.element[i] = op == ELEMENTWISE_WHERE && i == 0 ? 4 : element;
    }
    merge_axes(&job, space, in);
    if (run_planes(pool, &job))
        return;
    pool_run(pool, (job.count + SHARE - 1) / SHARE, run_share, &job);
}

struct plain {
    int kind;
    enum kernel_type from, to;
    size_t n;
    const void *x;
    void *out;
    float lo, hi;
    atomic_int bad;
};

static void clamp_share(void *context, size_t index)
{
    const struct plain *job = context;
    size_t start = index * SHARE, end = job->n - start < SHARE ? job->n : start + SHARE;
    const float *in = job->x;
    float *out = job->out, lo = job->lo, hi = job->hi;

    for (size_t i = start; i < end; i++) {
        float x = in[i];

        out[i] = x < lo ? lo : x > hi ? hi : x;
    }
}

void elementwise_clamp(struct pool *pool, size_t n, const float *x, float lo, float hi, float *out)
{
    struct plain job = { .n = n, .x = x, .out = out, .lo = lo, .hi = hi };

    pool_run(pool, (n + SHARE - 1) / SHARE, clamp_share, &job);
}

static int32_t i32_from_f64(double x)
{
    return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static void cast_share(void *context, size_t index)
{
    const struct plain *job = context;
    size_t start = index * SHARE, end = job->n - start < SHARE ? job->n : start + SHARE;

    for (size_t i = start; i < end; i++) {
        double x = job->from == KERNEL_F32   ? (double)((const float *)job->x)[i]
                   : job->from == KERNEL_F64 ? ((const double *)job->x)[i]
                                             : (double)((const int32_t *)job->x)[i];

        if (job->to == KERNEL_F32)
            ((float *)job->out)[i] = (float)x;
        else if (job->to == KERNEL_F64)
            ((double *)job->out)[i] = x;
        else
            ((int32_t *)job->out)[i] = i32_from_f64(x);
    }
}

void elementwise_cast(struct pool *pool, enum kernel_type from, enum kernel_type to, size_t n, const void *x, void *out)
{
    struct plain job = { .from = from, .to = to, .n = n, .x = x, .out = out };

    pool_run(pool, (n + SHARE - 1) / SHARE, cast_share, &job);
}

enum half_kind { TO_BF16, FROM_BF16, TO_F16, FROM_F16 };

static void half_share(void *context, size_t index)
{
    const struct plain *job = context;
    size_t start = index * SHARE, end = job->n - start < SHARE ? job->n : start + SHARE;
    const float *wide = job->x;
    const uint16_t *narrow = job->x;

    switch ((enum half_kind)job->kind) {
    case TO_BF16:
        for (size_t i = start; i < end; i++)
            ((uint16_t *)job->out)[i] = bf16_from_f32(wide[i]);
        break;
    case FROM_BF16:
        for (size_t i = start; i < end; i++)
            ((float *)job->out)[i] = f32_from_bf16(narrow[i]);
        break;
    case TO_F16:
        for (size_t i = start; i < end; i++)
            ((uint16_t *)job->out)[i] = f16_from_f32(wide[i]);
        break;
    case FROM_F16:
        for (size_t i = start; i < end; i++)
            ((float *)job->out)[i] = f32_from_f16(narrow[i]);
        break;
    }
}

static void half_run(struct pool *pool, enum half_kind kind, size_t n, const void *x, void *out)
{
    struct plain job = { .kind = (int)kind, .n = n, .x = x, .out = out };

    pool_run(pool, (n + SHARE - 1) / SHARE, half_share, &job);
}

void elementwise_to_bf16(struct pool *pool, size_t n, const float *x, uint16_t *out)
{
    half_run(pool, TO_BF16, n, x, out);
}

void elementwise_from_bf16(struct pool *pool, size_t n, const uint16_t *x, float *out)
{
    half_run(pool, FROM_BF16, n, x, out);
}

void elementwise_to_f16(struct pool *pool, size_t n, const float *x, uint16_t *out)
{
    half_run(pool, TO_F16, n, x, out);
}

void elementwise_from_f16(struct pool *pool, size_t n, const uint16_t *x, float *out)
{
    half_run(pool, FROM_F16, n, x, out);
}

static void finite_share(void *context, size_t index)
{
    struct plain *job = context;
    size_t start = index * SHARE, end = job->n - start < SHARE ? job->n : start + SHARE;
    const float *x = job->x;
    uint32_t finite = 1;

    for (size_t i = start; i < end; i++)
        finite &= f32_is_finite(x[i]);
    if (!finite)
        atomic_store_explicit(&job->bad, 1, memory_order_relaxed);
}

bool elementwise_finite(struct pool *pool, size_t n, const float *x)
{
    struct plain job = { .n = n, .x = x };

    pool_run(pool, (n + SHARE - 1) / SHARE, finite_share, &job);
    return !atomic_load(&job.bad);
}
