/* nursery.h - a process that has the interpreter and the trusted prelude ready, and splits off one child for each request.
 *
 *     worker ── socket ──> nursery (exec'd once: program loaded, prelude run, no script ever)
 *        │  a pair's end ───>   │ clone
 *        └── request, reply ──> child: a fresh process, a child of the worker like one that it exec'd, which enters the sandbox,
 *                               reads its request and ends
 *
 * What a request finds is what an exec'd child makes for itself, at a tenth of the cost: most of a script's call is the loading of a
 * program. Children differ in nothing but their number; none sees another, or the worker's socket.
 */
#ifndef RONDO_SCRIPT_NURSERY_H
#define RONDO_SCRIPT_NURSERY_H

#include <stdbool.h>
#include <sys/types.h>

#include "native/base/error.h"

struct script_nursery;

/* Nothing is started before the first child. Never NULL. */
struct script_nursery *script_nursery_new(void);
void script_nursery_free(struct script_nursery *nursery);       /* ends its process; NULL is fine */
pid_t script_nursery_pid(const struct script_nursery *nursery); /* -1: none runs */

/* A child of the calling process that waits for a request on a stream: its number, to be waited for, and this side of the stream. Starts
 * the nursery, again where it has died. Errors: io, fault. */
bool script_nursery_child(struct script_nursery *nursery, const char *program, pid_t *pid, int *fd, struct error *err);

/* Starts `program --script-child` on a stream, which is both its standard input and output. Errors: io. */
bool script_spawn(const char *program, pid_t *pid, int *fd, struct error *err);

/* In the nursery: the next child's end of a stream, -1 when the worker is gone; and the number of the child, told to the worker. */
int script_nursery_take(void);
bool script_nursery_tell(pid_t pid);

#endif
