/* probe_model.h - does a text model look ahead, or across the border of packed documents? Found by running it. */
#ifndef RONDO_SCRIPT_PROBE_MODEL_H
#define RONDO_SCRIPT_PROBE_MODEL_H

#include <stdbool.h>

#include "native/base/error.h"

struct graph;

/* Runs the graph of script_trace_model (inputs `ids`, `position`, `segment`, `real` [row time], at least four positions) on fixed
 * parameters: each row holds two documents. *causal: logits before the last position do not depend on the last token. *apart: those of
 * the second document do not depend on the first. Errors: as executor_new and executor_run. */
bool script_probe_model(const struct graph *g, bool *causal, bool *apart, struct error *err);

#endif
