/* decode_load.h - tokens of a model with the shapes of SmolLM2-135M, one pass a token with kept keys and values. Random weights.
 */
#ifndef RONDO_CLI_DECODE_LOAD_H
#define RONDO_CLI_DECODE_LOAD_H

#include "native/graph/execute.h"

struct decode_load;

/* `rows` sequences at once; weights stored as `base`: TENSOR_F32 or TENSOR_Q4_0. NULL with `err`. */
struct decode_load *decode_load_new(int64_t rows, enum tensor_type base, unsigned threads, struct error *err);
void decode_load_free(struct decode_load *load);

/* Sequences of one token go on by `tokens` each, always the most likely. */
bool decode_load_run(struct decode_load *load, size_t tokens, struct error *err);

#endif
