/* template.h - chat templates: the part of Jinja2 that transformers allows, for templates that nobody vouches for.
 *
 *     source ── lexer ──> tokens ── parser ──> tree ── interpreter + context ──> text, and whose text it is
 *
 * The environment is that of transformers' apply_chat_template: trim_blocks and lstrip_blocks on, loop controls and
 * `{% generation %}` blocks, autoescape off, raise_exception and strftime_now, `tojson` as Python's json.dumps with
 * ensure_ascii=False. Printing follows Python (str, repr, float). What is missing is refused by name when the template is
 * parsed: import, include, extends, block, do, autoescape.
 *
 * A rendering is a pure function of template, context and options: no clock, no locale, no environment.
 */
#ifndef RONDO_TEXT_TEMPLATE_H
#define RONDO_TEXT_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/date.h"
#include "native/base/error.h"
#include "native/text/text_range.h"

struct template;

enum {
    TEMPLATE_MAX_SOURCE = 1 << 20,  /* bytes of a template                                          */
    TEMPLATE_MAX_OUTPUT = 64 << 20, /* bytes of one rendering, and of all strings made on the way x 4 */
    TEMPLATE_MAX_STEPS = 20000000,  /* nodes run in one rendering                                   */
    TEMPLATE_MAX_DEPTH = 500,       /* nesting of the source, of macro calls and of values          */
    TEMPLATE_MAX_RANGE = 100000,    /* items of range(), as in Jinja2's sandbox                     */
};

/* NULL with `err`: syntax (place "line 3"), unsupported, limit. */
struct template *template_new(const char *source, size_t size, struct error *err);
void template_free(struct template *t);

struct template_options {
    struct date date; /* what strftime_now prints; hour, minute, second are 0 */
    bool literal;     /* a call's arguments that are a text stay a text, as in transformers */
};

/* The date of a run that names none. */
#define TEMPLATE_DATE ((struct date){ 2026, 1, 1 })

/* Output bytes [start, end). */
struct template_span {
    size_t start, end;
    size_t message; /* index in context.messages, or SIZE_MAX in a generation block outside any message */
};

/* Zero is empty; filled by template_render, free with template_output_free. */
struct template_output {
    struct buffer text;
    struct template_span *generation; /* `{% generation %}` blocks, in order, not nested        */
    size_t generation_count;
    struct template_span *messages; /* what was printed while a loop stood at a message, in order; an inner loop over messages
                                       * attributes to the outer one. Text that was kept while a loop stood at a message and is
                                       * printed outside any is that message's, too (template_origin.h). */
    size_t message_count;
    struct text_range
        *data; /* what texts of messages, tools and documents are in it, ascending, none touching another: no special
                               * token is meant by one that stands there */
    size_t data_count;
};

/* Renders with `context`, an object: messages, tools, add_generation_prompt, bos_token, ... A member that should be None is
 * JSON null; an absent one is undefined.
 *
 * Unless `literal`, tool calls keep their arguments verbatim: where messages[].tool_calls[].function.arguments is a string that holds a JSON
 * object, the template sees a mapping (it may iterate), but printing it or `tojson` gives the string as it stood.
 *
 * Errors: script (the template raised, with its message, or an operation Python refuses; place "line 12"), limit. */
bool template_render(const struct template *t, const json_t *context, const struct template_options *options,
                     struct template_output *out, struct error *err);

void template_output_free(struct template_output *out);

#endif
