/* routes.h - the HTTP interface of a node (docs/protocol.md, section 10). */
#ifndef RONDO_ROLE_ROUTES_H
#define RONDO_ROLE_ROUTES_H

#include "runtime/role/node.h"

/* Their context is the node. */
extern const struct http_route node_routes[];

#endif
