/* run_spec_schema.h - the fields of a run spec, their ranges and fallbacks, and how a draft is completed by them (docs/run-spec.md). */
#ifndef RONDO_DOC_RUN_SPEC_SCHEMA_H
#define RONDO_DOC_RUN_SPEC_SCHEMA_H

#include "runtime/doc/schema.h"

/* How many of each a spec may name. */
enum { SPEC_AGGREGATORS = 8, SPEC_IMPORTS = 32, SPEC_PANEL = 32, SPEC_TRAINERS = 60, SPEC_TARGETS = 4096, SPEC_REGIONS = 32 };

/* The fields of the payload of a `run` document. */
const struct schema *run_spec_schema(void);

/* Puts in the fallbacks, and writes numbers as the signed bytes want them: a fraction 0.05 becomes "0.05". `draft` is changed. */
void run_spec_complete(json_t *draft);

#endif
