#include <string.h>

#include "native/text/template_interpreter.h"

void frame_set(struct interpreter *in, struct frame *f, const char *name, struct value value)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->variables[i].name == name) {
            f->variables[i].value = value;
            return;
        }
    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? f->capacity * 2 : 4;
        struct variable *grown = arena_array(in->a, capacity, sizeof *grown);

        if (f->count)
            memcpy(grown, f->variables, f->count * sizeof *grown);
        f->variables = grown;
        f->capacity = capacity;
    }
    f->variables[f->count++] = (struct variable){ name, value };
}

struct value frame_lookup(struct interpreter *in, const char *name)
{
    struct value found;

    for (const struct frame *f = in->frame; f; f = f->outer)
        for (size_t i = 0; i < f->count; i++)
            if (f->variables[i].name == name)
                return f->variables[i].value;
    if (dict_get_text(in->context, name, &found))
        return found;

    const struct function *function = function_named(name);

    if (function)
        return (struct value){ .kind = VALUE_FUNCTION, .function = function };
    return value_undefined(name);
}

struct frame *frame_new(struct interpreter *in, struct frame *outer)
{
    struct frame *f = arena_new(in->a, sizeof *f);

    f->outer = outer;
    return f;
}

void frame_assign(struct interpreter *in, const struct node *target, struct value value)
{
    if (target->kind == NODE_NAME) {
        frame_set(in, in->frame, target->name, value);
    } else if (target->kind == NODE_ATTRIBUTE) {
        struct value object = evaluate(in, target->a);

        if (object.kind != VALUE_NAMESPACE)
            template_raise(in->a, ERROR_SCRIPT, "cannot assign attribute on non-namespace object");
        dict_set(in->a, object.dict, value_as_text(in->a, target->name), value);
    } else {
        const struct list *parts = value_iterate(in->a, value);

        if (parts->count != target->count)
            template_raise(in->a, ERROR_SCRIPT, "%zu values for %zu names", parts->count, target->count);
        for (size_t i = 0; i < target->count; i++)
            frame_assign(in, target->items[i], parts->items[i]);
    }
}
