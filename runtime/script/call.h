/* call.h - one request to one fresh child: spawn, frame, wait with a deadline, decode. host.h stands on it. */
#ifndef RONDO_SCRIPT_CALL_H
#define RONDO_SCRIPT_CALL_H

#include "runtime/script/host.h"

/* Asks `verb` ("describe", "model", ...) with `args` (an object; the reference is taken over; NULL: none) and fills `out`. */
bool script_call(const struct script_bundle *bundle, const char *verb, json_t *args, const struct script_limits *limits,
                 struct script_trace *out, struct error *err);

/* BLAKE2b-256 of a file as 64 hex digits. */
char *script_hash(const struct script_file *file, char hex[65]);

#endif
