/* course_join.h - how a node comes into a run, and learns who else takes part.
 *
 *     node ── status, run document, enrolments ── the peer it was told of        once, at start
 *          ── its own enrolment ────────────────> that peer                      until it has it
 *          ── enrolments ─────────────────────── every peer known, in turn       now and then
 */
#ifndef RONDO_ROLE_COURSE_JOIN_H
#define RONDO_ROLE_COURSE_JOIN_H

#include "runtime/role/course.h"

/* The run from the node's own folder, else from `node->options.peer`, into node->course. */
bool course_take_part(struct node *node, const char *run, struct error *err);

/* Gets the run document and enrolments from `node->options.peer` (synchronously, at start), into journal and course. */
bool course_join(struct node *node, const char *run, struct error *err);

/* Takes what is new in somebody's list of enrolments, and refuses the rest in silence. What is longer than what a node keeps is no honest
 * list. One write of the journal. */
void course_take_enrolments(struct course *course, const json_t *list);

/* Asks the peer and a few others for enrolments; a repeated, quiet call. Everybody known has a turn, from a random one on: whoever leaves
 * an enrolment out of its list hides nothing for long. */
void course_refresh(struct course *course);
/* Who has the next turn: not one that is left alone for a while. NULL when there is none. Borrowed. */
const struct peer *course_next_peer(struct course *course, uint64_t now_ms);

#endif
