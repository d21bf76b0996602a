/* home.h - the nodes of a home, and which of them run.
 *
 *     HOME/nodes/NAME/running.json    { "did", "endpoint" (null: it listens nowhere), "pid", "role", "run" }   while a process serves the folder
 */
#ifndef RONDO_ROLE_HOME_H
#define RONDO_ROLE_HOME_H

#include <jansson.h>

#include "runtime/role/node.h"

struct home_node {
    char name[64];
    char folder[4200];
    json_t *running; /* owned; NULL: no process serves it */
};

/* In order of name. A home without nodes gives none. The caller frees with home_nodes_free. */
struct home_node *home_nodes(const char *home, size_t *count);
void home_nodes_free(struct home_node *nodes, size_t count);

/* Refuses a home that this user may not look into: it would seem to hold no nodes and no keys. */
bool home_may_read(const char *home, struct error *err);

/* Whether the process that running.json names is still that node: pids are used again, but a node holds its journal. */
bool home_serves(const struct home_node *node);

/* A name of a node of the home stands for its DID: written into `did`, and returned. Any other word is returned as it is. */
const char *home_did(const char *home, const char *word, char did[DID_TEXT]);

/* Says that this process serves the node, and that it no longer does. */
bool home_running_put(const struct node *node, struct error *err);
void home_running_remove(const struct node *node);

/* The endpoint that an enrolment (its payload) gives, with its fingerprint as a pin (tls.h), into `url`; "" when it listens nowhere. */
const char *home_enrolled_url(const json_t *enrolment, char url[PEER_ENDPOINT]);

/* GET of a JSON answer from a node. New reference; NULL with `err`, the place being the URL. */
json_t *home_ask(const char *endpoint, const char *path, bool plain, struct error *err);

#endif
