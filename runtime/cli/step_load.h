/* step_load.h - a training step at the shapes of SmolLM2-135M, made as a worker makes it: the shipped scripts llama, chat_sft and adamw,
 * the canonical graph, one executor. Random weights and tokens: a step's time does not depend on them.
 */
#ifndef RONDO_CLI_STEP_LOAD_H
#define RONDO_CLI_STEP_LOAD_H

#include <jansson.h>

#include "native/graph/execute.h"

struct step_load_options {
    int64_t rows, time;
    int64_t rank;          /* of the adapters of all linears; 0: every weight is trained */
    int64_t layers;        /* 30 of the real model */
    double trained;        /* share of the tokens that the loss counts */
    enum tensor_type base; /* how frozen weights are stored: TENSOR_F32 or TENSOR_Q4_0 */
    bool traced;           /* what each pass leaves is hashed by tiles */
    uint64_t memory;       /* bytes of the arena at most; 0: no limit */
    unsigned threads;
    executor_profile profile;
    void *profile_context;
};

struct step_load;

/* NULL with `err`. */
struct step_load *step_load_new(const struct step_load_options *options, struct error *err);
void step_load_free(struct step_load *load);

/* One step; its loss in *loss. */
bool step_load_run(struct step_load *load, double *loss, struct error *err);

const struct executor *step_load_executor(const struct step_load *load);

/* The parts of which it is made, for other loads of that model: config.json; values for a node (vectors are ones; what else the model reads is
 * small and random; states of the optimiser begin at zero); and the same as Q4_0, with small scales. The caller frees. */
json_t *step_load_config(int64_t layers);
float *step_load_values(const struct graph_node *n, const char *name);
uint8_t *step_load_blocks(const struct graph_node *n);

#endif
