/* adapter_head.h - whole copies of an embedding that is its base's head as well.
 *
 *     base_model.model.model.embed_tokens.weight     the copy
 *     base_model.model.lm_head.weight                the same values again, for PEFT has two modules: without ensure_weight_tying they
 *                                                    train apart, and a base whose head is its embedding cannot be given both
 */
#ifndef RONDO_MODEL_ADAPTER_HEAD_H
#define RONDO_MODEL_ADAPTER_HEAD_H

#include "native/model/adapter.h"
#include "native/model/safetensors.h"

/* Whether what the file has of embedding and head can be one tensor; `again`: the head's, to be passed over, or NULL. Borrowed. Errors: mismatch. */
bool adapter_head_check(const struct safetensors *file, const struct adapter_kind *kind, const struct tensor **again,
                        struct error *err);

#endif
