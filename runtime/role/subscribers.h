/* subscribers.h - who waits at a node: requests for a round that is not decided yet, and listeners of the run's events.
 *
 *     GET /v1/runs/{run}/rounds/{n}?wait=MS ── subscribers_wait ──┐
 *                                                                 ├── a decided round ── subscribers_final: the answer
 *     GET /v1/runs/{run}/events ── subscribers_listen ────────────┴── subscribers_event: server-sent events
 */
#ifndef RONDO_ROLE_SUBSCRIBERS_H
#define RONDO_ROLE_SUBSCRIBERS_H

#include "runtime/role/node.h"

struct subscribers;

/* Freed after the server, which tells all of them that it is gone. */
struct subscribers *subscribers_new(void);
void subscribers_free(struct subscribers *subscribers);

/* Holds the request until the round is decided or `wait_ms` (at most a minute) have passed. False when it may not wait: for no time, or where
 * too many do already. */
bool subscribers_wait(struct node *node, struct http_request *request, int64_t round, uint64_t wait_ms);

/* A round was decided: answers whoever waits for it. `final`: { record, certificate }, borrowed; NULL answers nobody. */
void subscribers_final(struct node *node, int64_t round, const json_t *final);

/* Answers the request with the stream of the run's events. */
void subscribers_listen(struct node *node, struct http_request *request);

/* To every listener. */
void subscribers_event(struct node *node, const char *event, const json_t *body);

#endif
