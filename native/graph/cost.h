/* cost.h - what a step costs, worked out from shapes before anything runs. Internal to native/graph. */
#ifndef RONDO_GRAPH_COST_H
#define RONDO_GRAPH_COST_H

#include "native/graph/plan.h"

/* Name, operations and bytes of one step; its seconds stay 0. */
struct executor_pass cost_of_step(const struct plan *p, const struct plan_step *s);

#endif
