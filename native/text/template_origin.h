/* template_origin.h - whose text a string is, for templates that build their output in a string and print it at the end.
 *
 *     {% for m in messages %}{% set ns.out = ns.out ~ '<' ~ m.content ~ '>' %}{% endfor %}{{ ns.out | trim }}
 *
 *         ns.out:   <hi><yo!>
 *         runs:     ....^ ...^        bytes [0, 4) were made while the loop stood at message 0, [4, 9) at message 1
 *
 * A text gets its message when it is kept while a loop stands at one: by `set`, in a list or a dict, or as the output of a macro
 * or a block. Parts of it, joins, `replace` and the like take the runs along; where an operation makes new text (tojson, numbers,
 * repeats) they are lost, and the text belongs to the message at which it is kept. `replace` gives the new text to the message
 * whose text it takes the place of.
 */
#ifndef RONDO_TEXT_TEMPLATE_ORIGIN_H
#define RONDO_TEXT_TEMPLATE_ORIGIN_H

#include "native/text/template_value.h"

struct origin {
    const char *bytes; /* what the runs are of; strings that are a part of it share this */
    struct run {
        size_t end;     /* byte after the run, which begins where the one before ends */
        size_t message; /* 1 + index, or 0: made outside any message                  */
    } * runs;
    size_t count;
};

/* The message of byte `at` of `s` (1 + index, or 0), and where its run ends in `s`. */
size_t origin_at(const struct string *s, size_t at, size_t *end);

/* Appends the bytes of `s` with their runs; `out` is of arena_buffer. */
void origin_add(struct arena *a, struct buffer *out, const struct string *s);

/* Bytes [start, end) of `out`, which is of arena_buffer, are of `message`; the call before had an `end` up to `start`. */
void origin_note(struct arena *a, struct buffer *out, size_t start, size_t end, size_t message);

/* The value; a string's bytes of no message are then of `message`. */
struct value origin_keep(struct arena *a, struct value v, size_t message);

#endif
