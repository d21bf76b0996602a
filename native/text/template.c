#include "native/text/template.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/template_interpreter.h"
#include "native/text/utf8.h"

enum { PARSE_MEMORY = 64 << 20, PARSE_STEPS = 50000000, RENDER_MEMORY = 4 * TEMPLATE_MAX_OUTPUT };

struct template
{
    struct arena arena;
    struct names names;
    struct node *root;
};

/* Apart from template_new, so that nothing it holds lives across the longjmp. */
static bool parse(struct template *t, const char *source, size_t size)
{
    if (setjmp(t->arena.fault))
        return false;
    t->root = template_parse(&t->arena, &t->names, source, size);
    return true;
}

struct template *template_new(const char *source, size_t size, struct error *err)
{
    struct template *t = NULL;
    size_t fault;

    if (size > TEMPLATE_MAX_SOURCE) {
        error_set(err, ERROR_LIMIT, NULL, "a template of %zu bytes, at most %d are read", size, TEMPLATE_MAX_SOURCE);
    } else if (!utf8_valid(source, size, &fault)) {
        error_set(err, ERROR_SYNTAX, "save it as UTF-8", "not UTF-8 at byte %zu", fault);
    } else if (!(t = calloc(1, sizeof *t))) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for a template");
    } else {
        t->arena = (struct arena){ .limit = PARSE_MEMORY, .step_limit = PARSE_STEPS, .err = err, .line = 1 };
        if (!parse(t, source, size)) {
            template_free(t);
            return NULL;
        }
    }
    return t;
}

void template_free(struct template *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    free(t);
}

static bool run(struct arena *arena, const struct template *t, const json_t *context, const struct template_options *options,
                struct template_output *out)
{
    if (setjmp(arena->fault))
        return false;
    interpreter_run(arena, t->root, value_of_context(arena, context, options->literal), options, out);
    return true;
}

bool template_render(const struct template *t, const json_t *context, const struct template_options *options,
                     struct template_output *out, struct error *err)
{
    struct arena arena = { .limit = RENDER_MEMORY, .step_limit = TEMPLATE_MAX_STEPS, .err = err, .line = 1 };
    bool ok;

    if (!json_is_object(context))
        return error_set(err, ERROR_TYPE, NULL, "the context of a template is an object");
    ok = run(&arena, t, context, options, out);
    arena_free(&arena);
    if (!ok)
        template_output_free(out);
    return ok;
}

void template_output_free(struct template_output *out)
{
    buffer_free(&out->text);
    free(out->generation);
    free(out->messages);
    free(out->data);
    *out = (struct template_output){ 0 };
}
