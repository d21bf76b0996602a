/* template_origin.h - whose text a string is: which message it is of, and whether it is data, text that the template was given.
 *
 *     {% for m in messages %}{% set ns.out = ns.out ~ '<' ~ m.content ~ '>' %}{% endfor %}{{ ns.out | trim }}
 *
 *         ns.out:    <hi><yo!>
 *         message:   0000 11111       made while the loop stood at that message
 *         data:       dd   ddd        from `messages`, `tools` or `documents` of the context
 *
 * A text gets its message when it is kept while a loop stands at one: by `set`, in a list or a dict, or as the output of a macro
 * or a block; so templates that build their output in a string and print it at the end are followed. Data are the texts of the
 * context from the start: a special token that stands in one is a user's text and no control token.
 *
 * Parts of a text, joins, `replace`, `tojson` and the like take the runs along; where an operation makes new text (numbers,
 * repeats) they are lost. `replace` gives the new text to the message whose text it takes the place of.
 */
#ifndef RONDO_TEXT_TEMPLATE_ORIGIN_H
#define RONDO_TEXT_TEMPLATE_ORIGIN_H

#include "native/text/template_value.h"

struct template_origin {
    const char *bytes; /* what the runs are of; strings that are a part of it share this. NULL: of every text */
    struct template_run {
        size_t end;  /* byte after the run, which begins where the one before ends */
        size_t mark; /* template_mark */
    } const *runs;
    size_t count;
};

/* `message`: 1 + index, or 0: made outside any message. */
static inline size_t template_mark(size_t message, bool data)
{
    return message << 1 | data;
}

/* Of the texts of a context: data of no message. */
extern const struct template_origin TEMPLATE_DATA;

/* The mark of byte `at` of `s`, and where its run ends in `s`. */
size_t template_origin_at(const struct string *s, size_t at, size_t *end);

/* Appends the bytes of `s` with their runs; `out` is of arena_buffer. */
void template_origin_add(struct arena *a, struct buffer *out, const struct string *s);

/* Bytes [start, end) of `out`, which is of arena_buffer, have that mark; the call before had an `end` up to `start`. */
void template_origin_note(struct arena *a, struct buffer *out, size_t start, size_t end, size_t mark);

/* The value; a string's bytes of no message are then of `message`. */
struct value template_origin_keep(struct arena *a, struct value v, size_t message);

#endif
