/* step.h - one training step as one graph: model, objective, backward pass, clipping, optimiser.
 *
 *     batch ─ model script ─ logits ─ token log-probabilities ─ objective script ─ loss
 *                 │                                                                 │ backward
 *        trained parameters p <── optimiser script (p, g, lr, state) <── clip <── gradients
 *
 * Inputs of the graph, by name: `ids position segment real` [batch time] of the model (of images `image`, of series `series observed`), the parameters by their names in the
 * file, `b.FIELD` of the objective, `b.progress`, `lr`, `s.PARAMETER.NAME` of the optimiser. Outputs: `loss`, `norm` (of the gradient before
 * clipping), `metric.NAME`, `p.PARAMETER`, `s.PARAMETER.NAME`. The graph is canonical (native/graph/rewrite.h): its hash names the
 * arithmetic of a step.
 *
 * loss = Σ coef · sum / count over the objective's terms and the model's. A log-probability of token t comes from the logits at
 * t - 1; at t = 0 it is 0.
 */
#ifndef RONDO_WORKER_STEP_H
#define RONDO_WORKER_STEP_H

#include "native/graph/graph.h"
#include "runtime/script/host.h"
#include "runtime/worker/layout.h"

/* Borrowed: traces of the same shape, and the optimiser's over the layout's parameters. */
struct step_parts {
    const struct script_trace *model, *objective;
    const struct script_trace *optimiser; /* NULL: forward pass and loss only */
    const struct layout *layout;
    double lora_plus;   /* rate of an adapter's B over that of every other parameter; 0 is 1 */
    double clip;        /* greatest norm of the whole gradient; 0: not clipped */
    double temperature; /* log-probabilities and entropies are of logits / temperature; 0 is 1 */
};

/* A new canonical graph. Errors: unsupported (a field that this version does not offer, an operator without a backward), shape. */
struct graph *step_graph(const struct step_parts *parts, struct error *err);

/* For evaluation: outputs `logprobs` and `best` [batch time]: log-probability of token t, and whether it is the arg max (1 or 0)
 * given the tokens before it; at t = 0 both are 0. */
struct graph *step_evaluation_graph(const struct script_trace *model, double temperature, struct error *err);

/* For generation: output `logits` [row time vocab], of the token after each place. */
struct graph *step_sampling_graph(const struct script_trace *model, struct error *err);

#endif
