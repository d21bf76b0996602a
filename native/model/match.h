/* match.h - do the tensors of a model's files belong to the model that its script makes of config.json? */
#ifndef RONDO_MODEL_MATCH_H
#define RONDO_MODEL_MATCH_H

#include <jansson.h>

#include "native/model/source.h"

/* `params`: [ { name, axes: "embed=8 kv=2 dim=4", role? } ... ], those of the model. Every one without a role (adapters have one) must be in
 * the files, of that shape: a file's axis may be several of the model's in a row, and axes of size 1 do not count. The files may hold
 * nothing else but a head (lm_head.weight) that the configuration ties to the embedding. True when the files hold no tensor at all.
 * Errors: missing, unknown (an extra tensor), shape; place: the tensor. */
bool model_match(const struct model_source *model, const json_t *params, struct error *err);

#endif
