/* operator.h - the closed set of operators: what each takes and gives.
 *
 * Axes below are names; "=" marks those that carry a size. x is input 0, y input 1, and so on. Numbers are f64, integers i64.
 *
 *   operator        attributes                                   result
 *   input           axes=, type, name                            bound at run time
 *   parameter       axes= (as stored in the model file), name;   f32, bound at run time; the worker makes its first values from init
 *                   integers kind, layer (-1: none), role, number of leading `out` axes, init (PARAMETER_FILL, PARAMETER_NORMAL, PARAMETER_ROW_NORMS);
 *                   numbers: the value to fill, or the deviation
 *   constant        type; numbers value (no NaN)                 scalar
 *   table           axes=, type; numbers, one an element
 *   iota            axis=                                        i32 0, 1, 2, ...
 *   uniform normal  axes=, name (label); integers layer (-1)     f32 in [0, 1); standard normal. One label once a layer and graph
 *   + - ... ne      -                                            axes of the operand that holds those of the other; lt..ne f32 0/1
 *   clamp           numbers low, high (infinite: open)
 *   where           inputs mask, yes, no
 *   sum ... median  axes; input 1: weight                        x without the axes; the axes are kept in the order of x. max, min
 *                                                                and median take the weight as a mask; norm is sqrt(sum w x^2)
 *   logsumexp softmax log_softmax   axes; input 1: mask          where masked softmax and log_softmax give 0, with no gradient
 *   argmax rank     axis                                         i32
 *   topk            axis, new=k                                  values [.. new]; result 1: positions, i32
 *   cumsum          axis; input 1: decay tensor; numbers decay; integers reverse      y[t] = fma(decay[t], y[t-1], x[t])
 *   shift           axis; integers k                             y[t] = x[t-k]
 *   trim pad        axis; integers front, back                   drops so many; adds so many zeros
 *   at              axis; integers position                      axis gone
 *   gather          axis; inputs x, index (i32)                  the index's new axes in place of axis
 *   scatter         axes summed ..., new=; inputs x, index       new in place of the first axis summed (last when none is)
 *   one_hot         new=                                         [.. new]
 *   concat          axis                                         (stack is expand, then concat)
 *   dot             axes; x, y                                   x's other axes, then y's. No axes: the outer product
 *   dot_onto        axes; base, x, y                             base + dot(x, y) as one chain (docs/numerics.md, rule 3)
 *   low_rank        axes; base, x, y; numbers s                  fmaf(s, dot(x, y), base), elementwise
 *   dist2           axis, other                                  f64 [axis other]
 *   factor          axis=r; inputs b, a                          best rank-r b; result 1: a
 *   rename          old, new          split  axis, parts=...     merge  new, axes...           views where memory allows
 *   expand          axes=             transpose  all axes, in their new order in memory
 *   cast            type
 *   rmsnorm         axes; inputs x, weight; numbers eps, offset  x / sqrt(mean x^2 + eps) * (weight + offset);
 *                                                                result 1: 1 / sqrt(mean x^2 + eps), x less axes
 *   layernorm       axes; inputs x, weight [, bias]; numbers eps (x - mean x) / sqrt(variance + eps) * weight + bias;
 *                                                                results 1, 2: the mean and 1 / sqrt(variance + eps), x less axes
 *   rope            axis; inputs x, position (i32) [, factors]; numbers base, factor, low, high, original (of yarn and factors: attention);
 *                   integers width (0: all of axis), interleaved, scaling (enum rope_scaling), inverse
 *   attention       over, feature; inputs q, k, v [, segment i32]; numbers scale, softcap (0: none); integers causal, window (0: none)
 *                                                                [.. feature] as q; result 1: log-sum-exp of the scores, q less feature,
 *                                                                over last
 *   token_logprob   axis; inputs logits, ids (i32)               logits[ids] - logsumexp(logits); result 1: the logsumexp
 *   dropout         numbers rate; integers layer, again (1: the backward pass draws the same once more); name (label)
 *   result          integers which (from 1)                      a further result of input 0
 *   *_grad          what the operator took, then its results as needed, then the gradient of result 0; result 1 of
 *                   layernorm_weight_grad is the gradient of the bias
 *
 *   Internal:
 *   head            inputs any; integers body                    a part of the graph by tiles of rows (body.h). A value without meaning
 *   part            axes=; input a head; integers which, type    an out of its body, from 0
 *   tied            inputs sum [v ..], columns [rows s], x [rows ..], y [s ..], ids [s]
 *                                                                sum, but of the rows v in ids: scatter(y, ids), and columns x onto it
 *
 * Further results exist only through `result` nodes, so an executor that finds none need not keep them.
 */
#ifndef RONDO_GRAPH_OPERATOR_H
#define RONDO_GRAPH_OPERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "native/kernel/rope.h" /* enum rope_scaling */

enum operator_code {
#define OPERATOR(id, name, version, in0, in1, axes0, axes1, numbers, integers, named, flags) OPERATOR_##id,
#include "native/graph/operator_table.h"
#undef OPERATOR
    OPERATOR_CODES,
    OPERATOR_INTERNAL = OPERATOR_HEAD /* from here on: made by the executor alone */
};

enum {
    OPERATOR_TYPED = 1,       /* the request's type is an attribute             */
    OPERATOR_SOURCE = 2,      /* no inputs                                      */
    OPERATOR_ELEMENTWISE = 4, /* one result element from one of each operand    */
    OPERATOR_COMPARE = 8,     /* result is 0 or 1 in f32                        */
    OPERATOR_REDUCTION = 16,  /* drops its axes; input 1 is a weight            */
    OPERATOR_F64 = 32,        /* input 0 may be f64                             */
    OPERATOR_I32 = 64,        /* input 0 may be i32                             */
    OPERATOR_FLAT = 128,      /* its gradient is zero or undefined: none passes */
    OPERATOR_MANY = 255,
};

enum { PARAMETER_MATRIX, PARAMETER_TABLE, PARAMETER_VECTOR };                      /* kind */
enum { PARAMETER_PLAIN, PARAMETER_LORA_A, PARAMETER_LORA_B, PARAMETER_MAGNITUDE }; /* role */
enum { PARAMETER_FILL, PARAMETER_NORMAL, PARAMETER_ROW_NORMS };                    /* init */

struct operator_info {
    const char *name;
    uint8_t version;
    uint8_t inputs_from, inputs_to;
    uint8_t axes_from, axes_to;
    uint8_t numbers, integers, named;
    uint8_t flags;
};

extern const struct operator_info operator_table[OPERATOR_CODES];

/* By its name ("logsumexp"); false when there is none. */
bool operator_find(const char *name, enum operator_code *code);

#endif
