/* plan.h - a round's plan as the schedule made it: { steps, clip, fragment, codec, ... } (docs/scripting.md). */
#ifndef RONDO_WORKER_PLAN_H
#define RONDO_WORKER_PLAN_H

#include "native/base/json.h"

/* A number of a plan: a JSON number or a decimal string; `otherwise` when absent. */
static inline double plan_number(const json_t *plan, const char *name, double otherwise)
{
    return json_decimal(json_object_get(plan, name), otherwise);
}

#endif
