/* routes.h - the HTTP interface of a node (docs/protocol.md, section 10). */
#ifndef RONDO_ROLE_ROUTES_H
#define RONDO_ROLE_ROUTES_H

#include "runtime/role/node.h"

extern const struct http_route node_routes[];

/* What the routes remember: blocks that may be pushed, requests that wait, listeners. Freed after the server. */
struct route_state *routes_new(void);
void routes_free(struct route_state *routes);

/* A round was decided: answers whoever waits for it. */
void routes_final(struct node *node, int64_t round);

/* To every listener of the run's events. */
void routes_event(struct node *node, const char *event, const json_t *body);

#endif
