/* watch.h - a run as its nodes tell it: phases, records, losses, payments, and what somebody should look at.
 *
 *     home or URL ── run, enrolments ──> nodes ── status, records, contributions ──> one JSON value a look
 *
 * Everything is asked from the nodes and taken as they say it; `rondo audit` and `rondo sync` are what proves it. Answers are bounded,
 * and a node that does not answer is asked seldom.
 */
#ifndef RONDO_ROLE_WATCH_H
#define RONDO_ROLE_WATCH_H

#include <jansson.h>

#include "native/base/error.h"

struct watch;

/* `url` NULL: the nodes that run in `home`. NULL with `err` when nobody of a run answers. */
struct watch *watch_new(const char *home, const char *url, bool plain, struct error *err);
void watch_free(struct watch *watch);

/* Asks everybody once. New reference:
 *   { run, name, rounds_planned, asset, round, finished,
 *     nodes:  [ { name, did, role, endpoint, answers, phase, round, view } ],      in order of role and name
 *     rounds: [ { round, kind, reason, accepted, refused: { code: n }, loss, disputes, settled: [ n ] } ],   all that are decided
 *     paid:   { did: amount }, convicted: [ { did, round, ... } ],
 *     alerts: [ text ] } */
json_t *watch_look(struct watch *watch);

#endif
