/* liar.h - a node that lies: the program itself, linked so that a few of its functions pass through here first (ld --wrap).
 *
 *     RONDO_LIE=LIE rondo_liar trainer RUN ...        the same commands and options as rondo
 *
 *     trainer   truncated   the payload lacks its last bytes
 *               non_finite  a scale of the payload is infinite
 *               quantised   a value of the payload is one that its codec never writes
 *               stale       the payload and log of the round before
 *               copied      the payload and log of another trainer; RONDO_LIE_FROM is its folder
 *               noise       values are moved before step 2; log and payload are consistent with that
 *               rewards     every other completion gets the full reward; the rest is honest work on that
 *               tokens      completions are drawn by other seeds than the run's; likewise
 *               tile        one element of one value inside of step 2 is moved; all that is said of it afterwards is consistent with that
 *               first       the same inside of step 1 of round 2, which reads what the trainer kept of round 1
 *               silent      trains and says nothing
 *     syncer    vote        votes for a record that nobody proposed
 *               propose     proposes a second record to some
 *               late        hears and sends no proposal of views 0 to 3 of round 1
 *     either    die/PHASE/ROUND[/leads]    kills itself when its machine tells this phase; /leads: only as the leader of view 0
 *               die_before/...             the same, before anything that was asked for in that step is done
 *
 * trainer.c, syncer.c: what the machines are told and ask for. worker.c: inside the worker's process.
 */
#ifndef LIAR_H
#define LIAR_H

#include "runtime/role/driver.h"
#include "runtime/round/machine.h"

/* Whether this is today's lie. */
bool liar_tells(const char *lie);

/* The node of this process, once its driver starts. */
struct node *liar_node(void);

/* Kills this process when the actions tell the phase that was named. */
void liar_die_at(const struct actions *out);

#endif
