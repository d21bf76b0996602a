/* template_interpreter.h - runs a tree.
 *
 *     frames   template <- loop iteration <- loop iteration        a name is looked up from the innermost out, then in the
 *                       <- macro call                              context; `set` writes the innermost, `if` makes none
 *     output   main, or the text of a macro, a block set or a filter block being made
 */
#ifndef RONDO_TEXT_TEMPLATE_INTERPRETER_H
#define RONDO_TEXT_TEMPLATE_INTERPRETER_H

#include "native/text/template.h"
#include "native/text/template_call.h"
#include "native/text/template_tree.h"

struct frame {
    struct frame *outer;
    struct variable {
        const char *name; /* interned */
        struct value value;
    } * variables;
    size_t count, capacity;
};

struct macro {
    const struct node *node; /* parameters and body */
    struct frame *frame;     /* where it was defined */
};

struct loop {
    const struct list *list;
    size_t index; /* from 0 */
    size_t depth; /* from 0; that of calls of the loop itself */
    const struct node *node;
    struct frame *outer;  /* where the loop stands */
    struct value changed; /* last arguments of changed(); undefined at first */
    bool has_changed;
};

struct interpreter {
    struct arena *a;
    struct frame *frame;
    const struct dict *context;
    const struct template_options *options;
    struct template_output *output;
    struct buffer *out;
    size_t message; /* 1 + index of the one a loop stands at, or 0 */
    bool made;      /* it stands at a mapping that the template made for that message */
    bool generation;
};

/* Raises by the arena. What is in `output` then is the caller's to free. */
void interpreter_run(struct arena *a, const struct node *root, struct value context, const struct template_options *options,
                     struct template_output *output);

struct value evaluate(struct interpreter *in, const struct node *n);

/* ---- names (template_frames.c) ---- */

struct frame *frame_new(struct interpreter *in, struct frame *outer);
void frame_set(struct interpreter *in, struct frame *f, const char *name, struct value value); /* `name` interned */
struct value frame_lookup(struct interpreter *in, const char *name);                           /* then context, then functions */
void frame_assign(struct interpreter *in, const struct node *target, struct value value);      /* a name, ns.name, or several */

/* ---- operators (template_operators.c) ---- */

struct value operate(struct arena *a, enum operator op, struct value x, struct value y);
bool compare(struct arena *a, enum operator op, struct value x, struct value y);
struct value negate(struct arena *a, enum operator op, struct value x);
struct value value_slice(struct arena *a, struct value v, struct value start, struct value stop, struct value step);

#endif
