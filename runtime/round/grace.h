/* grace.h - how long a round waits for contributions, from when those of the rounds before it came.
 *
 *     arrivals = [ [ ms ] ]        of the contributions accepted in the last three train records
 *     grace    = clamp(median + factor * MAD, min_ms, max_ms); max_ms before anything has come. Lower medians.
 */
#ifndef RONDO_ROUND_GRACE_H
#define RONDO_ROUND_GRACE_H

#include <jansson.h>

#include "runtime/round/rules.h"

/* The arrivals that record r passes on; `accepted` is its contributions when it is a train record, else NULL. New reference. */
json_t *grace_arrivals(const json_t *previous, const json_t *accepted);

/* The window of the next round in milliseconds. */
int64_t grace_of(const struct rules *rules, const json_t *arrivals);

#endif
