/* step_tied.c - the gradient of a tied table, for the few words that the lookup names (arrange.h).
 *
 *     word in no row of the lookup      its gradient is that of the head alone: it is there
 *     word in some                      from +0 the rows of the lookup's gradient in ascending order, and onto that, by chunks of 256 rows,
 *                                       its column of d with x: as of `scatter` and `dot_onto`
 */
#include <string.h>

#include "native/graph/step.h"
#include "native/kernel/gather.h"
#include "native/kernel/gemm.h"

/* The gradient of the lookup, a word where it comes first; where each word comes first. */
static void lookup_added(const int32_t *ids, uint64_t count, uint64_t width, const float *y, int32_t *first, float *sums)
{
    memset(sums, 0, count * width * sizeof *sums);
    for (uint64_t i = count; i-- > 0;)
        first[ids[i]] = (int32_t)i;
    for (uint64_t i = 0; i < count; i++) {
        float *sum = sums + (uint64_t)first[ids[i]] * width;
        for (uint64_t c = 0; c < width; c++)
            sum[c] = sum[c] + y[i * width + c];
    }
}

bool step_tied(struct work *w)
{
    const struct graph_node *n = w->n, *columns = step_input(w, 1), *ids_node = step_input(w, 4), *y_node = step_input(w, 3);
    const unsigned rows_rank = columns->rank - 1u, wide = n->rank - 1u, looked = y_node->rank - wide;
    struct graph_axis x_order[GRAPH_AXES], y_order[GRAPH_AXES];
    const uint64_t vocab = n->axis[0].size, width = n->values / vocab, count = ids_node->values;
    memcpy(x_order, columns->axis, rows_rank * sizeof *x_order);
    memcpy(x_order + rows_rank, n->axis + 1, wide * sizeof *x_order);
    memcpy(y_order, y_node->axis, looked * sizeof *y_order);
    memcpy(y_order + looked, n->axis + 1, wide * sizeof *y_order);
    const float *sum = step_own(w, 0), *d = step_own(w, 1);
    const float *x = step_operand(w, 2, x_order, rows_rank + wide, TENSOR_F32);
    const float *y = step_operand(w, 3, y_order, looked + wide, TENSOR_F32);
    const int32_t *ids = step_own(w, 4);
    int32_t *first = step_take(w, vocab * sizeof *first);
    float *sums = step_take(w, count * width * sizeof *sums);
    if (w->measure)
        return true;
    if (gather_check(count, ids, vocab) != count)
        return error_set(w->err, ERROR_RANGE, NULL, "tied: an index outside %llu words", (unsigned long long)vocab);
    float *out = w->data[w->id];
    if (out != sum)
        memcpy(out, sum, n->values * sizeof *out);
    lookup_added(ids, count, width, y, first, sums);
    struct gemm onto = gemm_dense(count, width, columns->values / count, d, 1, x, 0, sums);
    onto.form = GEMM_ONTO;
    onto.onto = sums;
    gemm_run(w->pool, &onto);
    for (uint64_t i = 0; i < count; i++)
        if ((uint64_t)first[ids[i]] == i)
            memcpy(out + (uint64_t)ids[i] * width, sums + i * width, width * sizeof *out);
    return true;
}
