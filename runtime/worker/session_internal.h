/* session_internal.h - what the parts of a session share: session.c (opening a run, its data), session_steps.c (shapes and their executors). */
#ifndef RONDO_WORKER_SESSION_INTERNAL_H
#define RONDO_WORKER_SESSION_INTERNAL_H

#include "runtime/worker/session.h"

/* The model's script, traced for batches of that shape. */
bool session_trace_model(struct session *s, int64_t rows, int64_t time, bool training, struct script_trace *out,
                         struct error *err);

/* As session_shape, to be added to. */
struct session_step *session_shape_kept(struct session *s, int64_t rows, int64_t time, enum session_use use, double clip,
                                        struct error *err);

void session_step_free(struct session_step *step);

#endif
