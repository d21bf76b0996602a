/* step_factor.c - the best factors of rank r of a product that is given by its factors.
 *
 *     b [m k], a [k n]:  b = Qb Rb, a' = Qa Ra (Gram-Schmidt, each vector twice);  Rb Ra' = U S V' (one-sided Jacobi, Hestenes 1958,
 *     30 sweeps over the pairs in ascending order);  result b: Qb U sqrt(S), a: sqrt(S) V' Qa', greatest singular values first, equal
 *     ones by position. All in binary64 with + - * / and sqrt, sums ascending; rounded to f32 at the end. k is small.
 */
#include <string.h>

#include "native/graph/step.h"

enum { SWEEPS = 30 };

/* Column c of a [rows, k] matrix. */
#define AT(x, k, row, c) (x)[(uint64_t)(row) * (k) + (c)]

static double columns_dot(const double *x, uint64_t rows, uint64_t k, uint64_t c, uint64_t d)
{
    double sum = 0;
    for (uint64_t i = 0; i < rows; i++)
        sum += AT(x, k, i, c) * AT(x, k, i, d);
    return sum;
}

/* q becomes orthonormal columns (or zero ones), r [k, k] upper: q r is what q was. */
static void orthogonal(double *q, double *r, uint64_t rows, uint64_t k)
{
    memset(r, 0, k * k * sizeof *r);
    for (uint64_t c = 0; c < k; c++) {
        const double before = __builtin_sqrt(columns_dot(q, rows, k, c, c));
        for (unsigned twice = 0; twice < 2; twice++)
            for (uint64_t d = 0; d < c; d++) {
                const double s = columns_dot(q, rows, k, d, c);
                AT(r, k, d, c) += s;
                for (uint64_t i = 0; i < rows; i++)
                    AT(q, k, i, c) -= s * AT(q, k, i, d);
            }
        const double norm = __builtin_sqrt(columns_dot(q, rows, k, c, c)), kept = norm > before * 1e-12 ? norm : 0;
        AT(r, k, c, c) = kept;
        for (uint64_t i = 0; i < rows; i++)
            AT(q, k, i, c) = kept == 0 ? 0 : AT(q, k, i, c) / kept;
    }
}

static void rotate(double *x, uint64_t k, uint64_t p, uint64_t q, double c, double s)
{
    for (uint64_t i = 0; i < k; i++) {
        const double a = AT(x, k, i, p), b = AT(x, k, i, q);
        AT(x, k, i, p) = c * a - s * b;
        AT(x, k, i, q) = s * a + c * b;
    }
}

/* u [k, k] becomes u v with orthogonal columns; v the rotation. */
static void jacobi(double *u, double *v, uint64_t k)
{
    memset(v, 0, k * k * sizeof *v);
    for (uint64_t i = 0; i < k; i++)
        AT(v, k, i, i) = 1;
    for (unsigned sweep = 0; sweep < SWEEPS; sweep++)
        for (uint64_t p = 0; p + 1 < k; p++)
            for (uint64_t q = p + 1; q < k; q++) {
                const double a = columns_dot(u, k, k, p, p), b = columns_dot(u, k, k, q, q), g = columns_dot(u, k, k, p, q);
                if (g == 0)
                    continue;
                const double zeta = (b - a) / (2 * g), size = zeta < 0 ? -zeta : zeta;
                const double t = (zeta < 0 ? -1 : 1) / (size + __builtin_sqrt(1 + zeta * zeta));
                const double c = 1 / __builtin_sqrt(1 + t * t);
                rotate(u, k, p, q, c, c * t);
                rotate(v, k, p, q, c, c * t);
            }
}

/* out [rows, r] = q [rows, k] times column order[j] of w [k, k], scaled. Strides of out: row, column. */
static void written(const double *q, const double *w, const double *scale, const uint64_t *order, uint64_t rows, uint64_t k,
                    uint64_t r, float *out, uint64_t row, uint64_t column)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < r; j++) {
            double sum = 0;
            for (uint64_t d = 0; j < k && d < k; d++)
                sum += AT(q, k, i, d) * AT(w, k, d, order[j]);
            out[i * row + j * column] = j < k ? (float)(sum * scale[j]) : 0;
        }
}

struct factors {
    uint64_t m, n, k, r;
    double *qb, *qa, *rb, *ra, *core, *v, *sigma, *scale;
    uint64_t *order;
};

static void factorise(struct factors *f, float *b, float *a)
{
    const uint64_t k = f->k;
    orthogonal(f->qb, f->rb, f->m, k);
    orthogonal(f->qa, f->ra, f->n, k);
    for (uint64_t i = 0; i < k; i++)
        for (uint64_t j = 0; j < k; j++) {
            double sum = 0;
            for (uint64_t d = 0; d < k; d++)
                sum += AT(f->rb, k, i, d) * AT(f->ra, k, j, d);
            AT(f->core, k, i, j) = sum;
        }
    jacobi(f->core, f->v, k);
    for (uint64_t i = 0; i < k; i++) {
        f->sigma[i] = __builtin_sqrt(columns_dot(f->core, k, k, i, i));
        uint64_t at = i;
        for (; at > 0 && f->sigma[f->order[at - 1]] < f->sigma[i]; at--)
            f->order[at] = f->order[at - 1];
        f->order[at] = i;
    }
    for (uint64_t j = 0; j < k; j++) /* columns of core are U S: divided by sqrt(S) */
        f->scale[j] = f->sigma[f->order[j]] == 0 ? 0 : 1 / __builtin_sqrt(f->sigma[f->order[j]]);
    written(f->qb, f->core, f->scale, f->order, f->m, k, f->r, b, f->r, 1);
    for (uint64_t j = 0; j < k; j++)
        f->scale[j] = __builtin_sqrt(f->sigma[f->order[j]]);
    written(f->qa, f->v, f->scale, f->order, f->n, k, f->r, a, 1, f->n);
}

bool step_factor(struct work *w)
{
    const struct graph_node *b = step_input(w, 0), *a = step_input(w, 1);
    const struct graph_axis given = graph_axes(w->g, w->n)[0];
    struct graph_axis rows[GRAPH_AXES], columns[GRAPH_AXES], out[GRAPH_AXES];
    const unsigned m = axes_without(b, &given, 1, rows), n = axes_without(a, &given, 1, columns);
    rows[m] = columns[n] = b->axis[graph_axis_find(b, given.name)];
    struct factors f = { .m = axes_product(rows, m), .n = axes_product(columns, n), .k = rows[m].size, .r = given.size };
    const uint64_t square = f.k * f.k * sizeof(double);
    const float *x = step_operand(w, 0, rows, m + 1, TENSOR_F32), *y = step_operand(w, 1, columns, n + 1, TENSOR_F32);
    f.qb = step_take(w, f.m * f.k * sizeof(double));
    f.qa = step_take(w, f.n * f.k * sizeof(double));
    f.rb = step_take(w, square);
    f.ra = step_take(w, square);
    f.core = step_take(w, square);
    f.v = step_take(w, square);
    f.sigma = step_take(w, f.k * sizeof(double));
    f.scale = step_take(w, f.k * sizeof(double));
    f.order = step_take(w, f.k * sizeof(uint64_t));
    rows[m].size = given.size;
    const struct result left = step_result(w, w->id, rows, m + 1);
    out[0] = given;
    memcpy(out + 1, columns, n * sizeof *out);
    const struct result right = step_result(w, step_extra(w, 1), out, n + 1);
    if (w->measure)
        return true;
    for (uint64_t i = 0; i < f.m * f.k; i++)
        f.qb[i] = x[i];
    for (uint64_t i = 0; i < f.n * f.k; i++)
        f.qa[i] = y[i];
    factorise(&f, left.at, right.at);
    step_settle(w, &left);
    step_settle(w, &right);
    return true;
}
