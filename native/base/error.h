/* error.h - what went wrong, where, and what to do about it.
 *
 * A function that can fail takes a `struct error *` last and returns false (or NULL) after filling it.
 * The first failure is the one that is told: a caller adds the place it knows and passes it on.
 *
 *     if (!spec_read(text, size, &spec, err))
 *         return error_at(err, "%s", path);                    // run.lua: trust.tier: unknown tier "opne"
 *
 * Codes are stable: they are the `code` of HTTP problems, of refusals in records, and of tests.
 * Every code stands once, in the table of error_codes.h, with its exit status and its text for the manual.
 */
#ifndef RONDO_BASE_ERROR_H
#define RONDO_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum error_code {
#define ERROR_CODE(name, text, status, help) ERROR_##name,
#include "native/base/error_codes.h"
#undef ERROR_CODE
    ERROR_CODES
};

struct error {
    enum error_code code;
    char place[256];   /* innermost last: "run.lua: trust.tier" */
    char message[400]; /* one sentence, no full stop            */
    char hint[240];    /* what to do next; may be empty         */
};

/* Both return false, so that a failing function ends in one line. `error_at` puts a place before those already there,
 * unless they begin with it. All three texts are UTF-8 without control characters, whatever was given.
 * `hint` may be NULL. `err` may be NULL: then nothing is kept. */
bool error_set(struct error *err, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool error_at(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

void error_clear(struct error *err);

/* "place: message (hint)", for people; at most `size` bytes with the end. Returns `text`. */
const char *error_text(const struct error *err, char *text, size_t size);

/* The stable name of a code ("truncated"), its exit status (3 refused input, 4 fault) and a line for the manual. */
const char *error_name(enum error_code code);
int error_status(enum error_code code);

/* Whether the code speaks of this machine, not of what it read: those of status 4, and what it lacks. */
bool error_is_local(enum error_code code);
const char *error_help(enum error_code code);

#endif
