/* call_node.h - places of a schema (call_schema.h): their shortest values, and two of them as one. */
#ifndef RONDO_TEXT_CALL_NODE_H
#define RONDO_TEXT_CALL_NODE_H

#include "native/text/call_schema.h"

/* Bytes of the shortest value of what stands in n; SIZE_MAX: no value fits, or none of its numbers. */
size_t call_node_least(const struct call_node *n);

/* Takes what `one` allows into n as well. Errors: unsupported, where a value's first byte does not say of which of the two it is; a value that both
 * list is refused, too. */
bool call_node_take(struct call_node *n, const struct call_node *one, struct error *err);

#endif
