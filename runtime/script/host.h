/* host.h - the parent's side of a script: it starts the sandboxed child, asks one thing, checks the answer.
 *
 *     worker / command line                         child: `rondo --script-child` (exec of the same program)
 *       script_trace_*  -- framed request, fd 0 -->    admission, Lua, trusted prelude, the script
 *       decoded graphs  <-- framed reply,  fd 1 --     meta value + encoded graphs
 *
 * Every call starts a fresh process (exec'd, or split off one that ran the prelude alone: nursery.h) and runs the file anew, so nothing leaks from one trace to the next. A reply is hostile
 * input: it is decoded with limits (value.h, native/graph/wire.h) before anything trusts it. Numbers in `meta` are exact:
 * integers as JSON integers, others as decimal strings of the shortest form that reads back to the same binary64
 * ("0.7"; "inf" and "-inf" may occur, NaN never).
 *
 * Errors: code `script` (or `fuel`, `limit`, `timeout`, `shape`), place "chat_sft.lua@1f2e3d4c:14", message with operator and
 * shapes, hint. The eight digits start the BLAKE2b-256 of the file. A call costs a few milliseconds; graphs are meant to be kept
 * by the caller as long as scripts, options and sizes stay.
 */
#ifndef RONDO_SCRIPT_HOST_H
#define RONDO_SCRIPT_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/script/call.h"

/* --- describing ---------------------------------------------------------------------------------------------------- */

/* meta: { kind: "objective" | "aggregator" | "optimiser" | "model" | "schedule" | "reward" | "run" | "module",
 *         hash: 64 hex digits of the file, imports: [ { name, hash } ] in order of name, those really imported,
 *         options: [ { name, type, default, value, min, max, choices, help } ] in order of declaration, imports' too,
 *         and by kind: data, heads, rollout (objective), over, robust, trains, state (aggregator), architectures, data (model),
 *         fragments, state (schedule) }. The caller owns it; NULL with `err`. */
json_t *script_describe(const struct script_bundle *bundle, const struct script_limits *limits, struct error *err);

/* --- models -------------------------------------------------------------------------------------------------------- */

struct script_model_request {
    json_t *config;     /* config.json, borrowed */
    int64_t rows, time; /* of `row` and `time`; images and series: see `sizes` */
    int64_t length;     /* of the longest sequence: scalings of positions that depend on it take it (nn.rope); 0: time */
    json_t *sizes;      /* further axes of the input ("channel", "height", "width"); NULL: none; borrowed */
    int64_t rank;       /* LoRA rank; 0: no adapters */
    double scale;       /* what the product of the adapter is multiplied by: adapter_scale */
    bool dora;          /* with magnitudes */
    json_t
        *patterns; /* { ranks: [ [end of a name, rank] ], alphas: alike, alpha, root }: modules of others; NULL: none; borrowed */
    const char *const *targets; /* ends of module names that get adapters ("q_proj"); NULL: every linear but lm_head */
    size_t target_count;
    const json_t *whole; /* [ end of a module's name ]: trained as they are beside adapters; NULL: none; borrowed */
    bool train_all; /* every parameter carries a gradient; else the adapters and whole modules alone (with rank 0: every one) */
    bool training;  /* dropout is on */
};
/* One graph. Inputs and parameters (by name): of text `ids`, `position`, `segment` i32 and `real` f32 [row time], those that are read; and every
 * parameter by its name in the model file ("model.layers.0.self_attn.q_proj.weight"; adapters
 * "model.layers.0.self_attn.q_proj.lora_A.weight" and ".lora_B.weight", PEFT's layout: A [rank in], B [out rank],
 * y = x W' + scale (x A') B', of DoRA times m / ||W + scale B A|| of each row, m ".lora_magnitude_vector" [out]). Outputs: `logits` [row time vocab] (or `forecast`), `hidden` [row time embed], and for the
 * averages that blocks add `aux.0.sum`, `aux.0.count`, ...
 * meta: { data, graph: 0, hashes: [ hex ], inputs: [ { name, axes, type } ], outputs: [ { name, axes } ],
 *         axes (config's sizes), layers, unread (keys of config never read),
 *         params: [ { name, axes, kind: matrix|table|vector, layer?, role? (lora_a|lora_b|magnitude), module?, out?, inp?, trained, head? (true: an embedding that is the head, too),
 *                     init: { fill: value } | { normal: deviation } | { row_norms: name of a matrix } } ] in order of first use,
 *         aux: [ { coef, sum, count } ] with names of outputs }. An `expert` matrix stands once as "a.*.b.weight" with
 * axis `expert` first; the file's tensors are a.0.b.weight, ... */
bool script_trace_model(const struct script_bundle *bundle, const struct script_model_request *request,
                        const struct script_limits *limits, struct script_trace *out, struct error *err);

/* --- objectives ---------------------------------------------------------------------------------------------------- */

/* Sizes of one micro-batch. `data` of the script decides which matter: batch time vocab embed (chat, text, labelled), pair time
 * vocab embed (pairs; `rejected_time` where the two sides differ), prompt sample time (rollouts: prepare sees these, loss sees `batch` of
 * their rows), batch class (images), batch horizon quantile (series), k (top-k teachers). `whole_batch`: rows of the whole batch, which
 * prepare sees; 0: as `batch`. Zero elsewhere: a field that needs it is refused. */
struct script_objective_request {
    int64_t batch, time, vocab, embed, pair, rejected_time, prompt, sample, classes, horizon, quantile, k, whole_batch;
};
/* Graph "loss" and, where the script has `prepare`, graph "prepare".
 * Inputs: exactly the fields that were read, as `b.logprobs` (`b.chosen.logprobs` of pairs). A field that carries a gradient is
 * named in `gradients`. Outputs of loss: for every term `loss.0.sum` and `loss.0.count` (f32 scalars): the step's loss is
 * sum over terms of coef * (sum over micro-batches of sum) / (sum over micro-batches of count). Metrics are outputs
 * `metric.NAME.0.sum` and `.count` alike. Outputs of prepare: `b.NAME`, inputs of loss.
 * meta: { data, heads, rollout, fields: [ names read, both graphs ], gradients: [ names ], loss: { graph, inputs: [ { name, axes, type, gradient } ],
 *         terms: [ { coef, sum, count } ], metrics: [ { name, terms: [ { coef, sum, count } ] } ], nodes },
 *         prepare?: { graph, inputs, outputs, nodes },
 *         hashes: [ one a graph ], warnings: [ text ] }. A total has one term without `count`. */
bool script_trace_objective(const struct script_bundle *bundle, const struct script_objective_request *request,
                            const struct script_limits *limits, struct script_trace *out, struct error *err);

/* --- optimisers ---------------------------------------------------------------------------------------------------- */

/* `params`: an array of parameter objects as in the meta of script_trace_model (name, axes, kind, layer, role, module, out, inp).
 * Parameters that an optimiser cannot tell apart but by name share a graph when their graphs are equal.
 * Graph init: input `p`; outputs `s.NAME`. Graph step: inputs `p`, `g`, `lr`, `agreement` (scalars), `s.NAME` (`lr`,
 * `agreement` only when read); outputs `p`, `s.NAME`, `metric.NAME`. `outer`: g is start less end, `agreement` exists.
 * meta: { params: [ { name, init?: graph, step: graph, state: [ { name, axes, type } ], metrics: [ names ] } ],
 *         hashes: [ one a graph ], warnings }. */
bool script_trace_optimiser(const struct script_bundle *bundle, json_t *params, bool outer, const struct script_limits *limits,
                            struct script_trace *out, struct error *err);

/* --- aggregators --------------------------------------------------------------------------------------------------- */

struct script_aggregator_request {
    int64_t peers;  /* of [peer ...], ascending by DID */
    json_t *params; /* the trained parameters, as above; their element counts give `n` for over = "whole" */
    int64_t n;      /* over = "whole": elements; 0: from params */
    int64_t round;
};
/* over "whole": one graph; inputs `u` [peer n] and what is read of `c.weight` `c.tokens` `c.quality` [peer], `c.sent` [peer n],
 * `c.anchor` [n]; outputs `u` ([n], or [peer n]: a pre-aggregator), `s.NAME`, `metric.NAME`. over "tensor": one graph a parameter, `u` [peer
 * ...axes]. over "adapter": one graph an adapter pair, inputs `u.a.start`, `u.a.update`, `u.b.start`, `u.b.update`; outputs `u.a`, `u.b`.
 * Inputs of state are `s.NAME`; graph init gives the first.
 * meta: { over, robust, keeps_peer, trains?: [ names ], calls: [ { params: [ names ], init?: graph, combine: graph, inputs: [ of c ],
 *         state: [ ... ], keeps_peer, metrics } ], hashes, warnings }. */
bool script_trace_aggregator(const struct script_bundle *bundle, const struct script_aggregator_request *request,
                             const struct script_limits *limits, struct script_trace *out, struct error *err);

/* --- schedules ----------------------------------------------------------------------------------------------------- */

/* `context`: { round, rounds, peers, layers, last: false | { loss, agreement, norm, seconds, bytes } } (decimal strings or numbers);
 * `state`: what the last call returned, or NULL on round 0 (then `init` makes it).
 * Result: { plan: { steps, outer_lr, codec: {...}, ... } every field checked against the known ones, state: {...} | null,
 *           fragments?, fragment?: { param name: i } when `params` was given, stages?: [ layers ] }. */
json_t *script_plan(const struct script_bundle *bundle, json_t *context, json_t *state, json_t *params,
                    const struct script_limits *limits, struct error *err);

/* The inner rates of steps first .. first + count - 1 (from 0 over the run) into `lr`, exactly as the script gave them. */
bool script_rates(const struct script_bundle *bundle, json_t *context, uint64_t first, size_t count, double *lr,
                  const struct script_limits *limits, struct error *err);

/* --- rewards ------------------------------------------------------------------------------------------------------- */

/* `completions`: a list of { prompt, reference: JSON as text, text, tokens, truncated, round }. Result: a list of one reward each, an
 * integer or decimal text, or false where the script returned nil. A failure at one of them is a failure of the call. */
json_t *script_score(const struct script_bundle *bundle, json_t *completions, const struct script_limits *limits,
                     struct error *err);

/* --- run files ----------------------------------------------------------------------------------------------------- */

/* A plain table { spec =, network = } as JSON, checked for known kinds of value only (runtime/doc checks the spec). */
json_t *script_run_file(const struct script_bundle *bundle, const struct script_limits *limits, struct error *err);

/* --- files --------------------------------------------------------------------------------------------------------- */

/* Scripts of a folder such as share/rondo/scripts: `path` is a file, or a name found in one of the kinds' folders; every other script below
 * `folder` becomes a candidate for import. `set` owns the bytes; its `bundle` points into them. */
struct script_set {
    struct script_bundle bundle;
    struct script_file *files;
    size_t count;
};
bool script_set_read(const char *folder, const char *path, json_t *options, struct script_set *set, struct error *err);
void script_set_free(struct script_set *set);

/* `rondo script check FILE`: describe, then trace with small sizes, twice in fresh processes whose answers must be equal (hashes of the
 * graphs among them). `config`: of models; NULL for a small decoder. The result is script_describe's and, by kind, fields, gradients,
 * warnings [ text ], unread (keys of config), plan, causal and packed_apart (text models), graphs [ { name, nodes, hash, bytes,
 * operations } ] at those small sizes. `fault` { message, hint } is there when the script is admitted but wrong: a text model that looks
 * ahead or across documents. Errors: what script_describe and the traces refuse; mismatch (the two traces differ). */
json_t *script_check(const struct script_bundle *bundle, json_t *config, const struct script_limits *limits, struct error *err);

/* What the program runs when its one argument is `--script-child`; returns the exit status and never returns to a parent's state. */
int script_child_main(void);

#endif
