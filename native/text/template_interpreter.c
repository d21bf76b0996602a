#include "native/text/template_interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/template_origin.h"

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

static enum flow run(struct interpreter *in, const struct node *n);
static enum flow run_items(struct interpreter *in, const struct node *n, struct value items, size_t depth);

/* ---- whose text it is ---- */

/* Room for one more in a list that grows by 1, 3, 7 ... */
static void *list_room(void *items, size_t count, size_t size)
{
    void *grown = count & (count + 1) ? items : reallocarray(items, count * 2 + 1, size);

    if (!grown)
        abort();
    return grown;
}

static void note_message(struct interpreter *in, size_t start, size_t end, size_t message)
{
    struct template_output *o = in->output;
    struct template_span *last = o->message_count ? &o->messages[o->message_count - 1] : NULL;

    if (last && last->end == start && last->message == message - 1) {
        last->end = end;
        return;
    }
    o->messages = list_room(o->messages, o->message_count, sizeof *o->messages);
    o->messages[o->message_count++] = (struct template_span){ start, end, message - 1 };
}

static void note_data(struct interpreter *in, size_t start, size_t end)
{
    struct template_output *o = in->output;

    if (o->data_count && o->data[o->data_count - 1].end == start) {
        o->data[o->data_count - 1].end = end;
        return;
    }
    o->data = list_room(o->data, o->data_count, sizeof *o->data);
    o->data[o->data_count++] = (struct text_range){ start, end };
}

/* What was appended from `start` on is of the message that the loop stands at; outside any, and in a mapping that the template
 * made (where turns are merged, say), a string's own origin holds. */
static void note_output(struct interpreter *in, size_t start, const struct string *text)
{
    for (size_t at = start, end; at < in->out->size; at = end) {
        size_t mark = 0, message = in->message;

        end = in->out->size;
        if (text && text->origin) {
            mark = template_origin_at(text, at - start, &end);
            end += start;
            if ((!message || in->made) && mark >> 1)
                message = mark >> 1;
        }
        if (in->out != &in->output->text) {
            template_origin_note(in->a, in->out, at, end, template_mark(message, mark & 1));
            continue;
        }
        if (message)
            note_message(in, at, end, message);
        if (mark & 1)
            note_data(in, at, end);
    }
}

static void print(struct interpreter *in, struct value v)
{
    size_t start = in->out->size;
    struct value text;

    arena_step(in->a, 1);
    if (v.kind == VALUE_UNDEFINED)
        return;
    text = value_str(in->a, v);
    buffer_add(in->out, text.string->bytes, text.string->size);
    note_output(in, start, text.string);
}

void interpreter_keep_dict(struct interpreter *in, struct dict *dict)
{
    if (!in->message)
        return;
    dict->message = in->message;
    dict->made = true;
    for (size_t i = 0; i < dict->count; i++)
        dict->entries[i].value = template_origin_keep(in->a, dict->entries[i].value, in->message);
}

/* ---- calls ---- */

static struct arguments evaluate_arguments(struct interpreter *in, const struct node *n, const char *callee)
{
    struct value *items = arena_array(in->a, n->count + 1, sizeof *items);
    struct value *values = arena_array(in->a, n->value_count + 1, sizeof *values);

    for (size_t i = 0; i < n->count; i++)
        items[i] = evaluate(in, n->items[i]);
    for (size_t i = 0; i < n->value_count; i++)
        values[i] = evaluate(in, n->values[i]);
    return (struct arguments){ .in = in,
                               .a = in->a,
                               .callee = callee,
                               .items = items,
                               .count = n->count,
                               .names = n->names,
                               .values = values,
                               .value_count = n->value_count };
}

/* Runs a body into a string of its own. */
static struct value run_captured(struct interpreter *in, const struct node *body)
{
    struct buffer *outer = in->out, *text = arena_buffer(in->a);

    in->out = text;
    run(in, body);
    in->out = outer;
    return value_buffer(in->a, text);
}

/* What was given beyond the parameters: an error, unless the body reads it. */
static void macro_rest(struct interpreter *in, const struct node *n, struct arguments *args, struct frame *frame)
{
    size_t most = n->count;

    if (n->takes & TAKES_VARARGS) {
        struct value rest = value_list(in->a, SHAPE_TUPLE);

        for (size_t i = n->count; i < args->count; i++)
            list_add(in->a, rest.list, args->items[i]);
        most = SIZE_MAX;
        frame_set(in, frame, n->rest[0], rest);
    }
    if (n->takes & TAKES_KWARGS) {
        struct value rest = value_dict(in->a);

        for (size_t i = 0; i < args->value_count && i < 64; i++)
            if (!(args->used >> i & 1)) {
                dict_set(in->a, rest.dict, value_as_text(in->a, args->names[i]), args->values[i]);
                args->used |= 1ull << i;
            }
        frame_set(in, frame, n->rest[1], rest);
    }
    arguments_end(args, most);
}

static struct value call_macro(struct interpreter *in, const struct macro *macro, struct arguments *args)
{
    const struct node *n = macro->node;
    struct frame *outer = in->frame, *frame = frame_new(in, macro->frame);

    arena_enter(in->a);
    args->callee = n->name;
    for (size_t i = 0; i < n->count; i++) {
        size_t defaults = n->count - n->value_count;
        struct value v;

        if (!argument(args, i, n->items[i]->name, &v)) {
            if (i >= defaults) {
                in->frame = frame;
                v = evaluate(in, n->values[i - defaults]);
                in->frame = outer;
            } else {
                v = value_undefined(n->items[i]->name);
            }
        }
        frame_set(in, frame, n->items[i]->name, v);
    }

    struct value caller;

    for (size_t i = 0; i < args->value_count; i++)
        if (!strcmp(args->names[i], "caller") && argument(args, SIZE_MAX, "caller", &caller))
            frame_set(in, frame, args->names[i], caller);
    macro_rest(in, n, args, frame);
    in->frame = frame;

    struct value text = run_captured(in, n->body);

    in->frame = outer;
    arena_leave(in->a);
    return text;
}

/* A recursive loop over other items: the text of it. */
static struct value call_loop(struct interpreter *in, const struct loop *loop, struct arguments *args)
{
    struct frame *frame = in->frame;
    struct buffer *outer = in->out, *text = arena_buffer(in->a);
    struct value items = argument_need(args, 0, "iterable");

    if (!loop->node->recursive)
        template_raise(in->a, ERROR_SCRIPT, "The loop must have the 'recursive' marker to be called recursively.");
    arguments_end(args, 1);
    arena_enter(in->a);
    in->frame = loop->outer;
    in->out = text;
    run_items(in, loop->node, items, loop->depth + 1);
    in->out = outer;
    in->frame = frame;
    arena_leave(in->a);
    return value_buffer(in->a, text);
}

struct value value_call(struct interpreter *in, struct value callee, struct arguments *args)
{
    switch (callee.kind) {
    case VALUE_FUNCTION:
        args->callee = callee.function->name;
        return callee.function->run(args);
    case VALUE_METHOD:
        args->callee = callee.bound->name;
        return callee.bound->run(callee.bound->self, args);
    case VALUE_MACRO:
        return call_macro(in, callee.macro, args);
    case VALUE_LOOP:
        return call_loop(in, callee.loop, args);
    case VALUE_UNDEFINED:
        template_raise(in->a, ERROR_SCRIPT, "'%.80s' is undefined", callee.name ? callee.name : "value");
    default:
        template_raise(in->a, ERROR_SCRIPT, "'%s' object is not callable", value_type(callee));
    }
}

static struct value call(struct interpreter *in, const struct node *n)
{
    struct value callee = evaluate(in, n->a);
    struct arguments args = evaluate_arguments(in, n, "call");

    in->a->line = n->line;
    return value_call(in, callee, &args);
}

static struct value filter(struct interpreter *in, const struct node *n, struct value v)
{
    struct arguments args = evaluate_arguments(in, n, n->name);

    in->a->line = n->line;
    if (!n->filter)
        template_raise(in->a, ERROR_SCRIPT, "No filter named '%s'.", n->name);
    return n->filter->run(v, &args);
}

static bool test(struct interpreter *in, const struct node *n)
{
    struct value v = evaluate(in, n->a);
    struct arguments args = evaluate_arguments(in, n, n->name);

    in->a->line = n->line;
    if (!n->test)
        template_raise(in->a, ERROR_SCRIPT, "No test named '%s'.", n->name);
    return n->test->run(v, &args) != n->negated;
}

/* ---- expressions ---- */

static struct value evaluate_items(struct interpreter *in, const struct node *n)
{
    struct value v =
        n->kind == NODE_DICT ? value_dict(in->a) : value_list(in->a, n->kind == NODE_LIST ? SHAPE_LIST : SHAPE_TUPLE);

    for (size_t i = 0; i < n->count; i++)
        if (n->kind == NODE_DICT) {
            struct value key = evaluate(in, n->items[i]);

            dict_set(in->a, v.dict, key, evaluate(in, n->items[++i]));
        } else {
            list_add(in->a, v.list, template_origin_keep(in->a, evaluate(in, n->items[i]), in->message));
        }
    if (n->kind == NODE_DICT)
        interpreter_keep_dict(in, v.dict);
    return v;
}

static struct value evaluate_concat(struct interpreter *in, const struct node *n)
{
    struct value *parts = arena_array(in->a, n->count, sizeof *parts);

    for (size_t i = 0; i < n->count; i++)
        parts[i] = evaluate(in, n->items[i]);

    struct buffer *text = arena_buffer(in->a);

    for (size_t i = 0; i < n->count; i++)
        value_print(in->a, parts[i], text);
    arena_step(in->a, text->size / 16);
    return value_buffer(in->a, text);
}

static struct value evaluate_comparison(struct interpreter *in, const struct node *n)
{
    struct value left = evaluate(in, n->a);

    for (size_t i = 0; i < n->count; i++) {
        struct value right = evaluate(in, n->items[i]->b);

        if (!compare(in->a, n->items[i]->op, left, right))
            return value_bool(false);
        left = right;
    }
    return value_bool(true);
}

static struct value evaluate_slice(struct interpreter *in, const struct node *n)
{
    struct value v = evaluate(in, n->a), parts[3];

    for (unsigned i = 0; i < 3; i++)
        parts[i] = n->items[i] ? evaluate(in, n->items[i]) : value_none();
    return value_slice(in->a, v, parts[0], parts[1], parts[2]);
}

static struct value evaluate_binary(struct interpreter *in, const struct node *n)
{
    struct value x = evaluate(in, n->a), y = evaluate(in, n->b);

    in->a->line = n->line;
    return operate(in->a, n->op, x, y);
}

static struct value evaluate_node(struct interpreter *in, const struct node *n)
{
    struct value v;

    switch (n->kind) {
    case NODE_CONSTANT:
        return n->value;
    case NODE_NAME:
        return frame_lookup(in, n->name);
    case NODE_LIST:
    case NODE_TUPLE:
    case NODE_DICT:
        return evaluate_items(in, n);
    case NODE_UNARY:
        return negate(in->a, n->op, evaluate(in, n->a));
    case NODE_BINARY:
        return evaluate_binary(in, n);
    case NODE_AND:
        v = evaluate(in, n->a);
        return value_true(v) ? evaluate(in, n->b) : v;
    case NODE_OR:
        v = evaluate(in, n->a);
        return value_true(v) ? v : evaluate(in, n->b);
    case NODE_NOT:
        return value_bool(!value_true(evaluate(in, n->a)));
    case NODE_COMPARE:
        return evaluate_comparison(in, n);
    case NODE_CONCAT:
        return evaluate_concat(in, n);
    case NODE_CHOICE:
        if (value_true(evaluate(in, n->a)))
            return evaluate(in, n->b);
        return n->c ? evaluate(in, n->c) : value_undefined(NULL);
    case NODE_ATTRIBUTE:
        return value_attribute(in, evaluate(in, n->a), n->name);
    case NODE_ITEM:
        v = evaluate(in, n->a);
        return value_item(in, v, evaluate(in, n->b));
    case NODE_SLICE:
        return evaluate_slice(in, n);
    case NODE_CALL:
        return call(in, n);
    case NODE_FILTER:
        return filter(in, n, evaluate(in, n->a));
    case NODE_TEST:
        return value_bool(test(in, n));
    default:
        template_raise(in->a, ERROR_FAULT, "a statement where an expression is due");
    }
}

struct value evaluate(struct interpreter *in, const struct node *n)
{
    struct value v;

    arena_step(in->a, 1);
    arena_enter(in->a);
    in->a->line = n->line;
    v = evaluate_node(in, n);
    arena_leave(in->a);
    return v;
}

/* ---- statements ---- */

static enum flow run_iteration(struct interpreter *in, const struct node *n, struct loop *loop)
{
    struct value item = loop->list->items[loop->index];
    bool stands = item.kind == VALUE_DICT && item.dict->message && !in->message;
    enum flow flow;

    if (stands) {
        in->message = item.dict->message;
        in->made = item.dict->made;
    }
    flow = run(in, n->body);
    if (stands)
        in->message = 0;
    return flow;
}

/* The items that pass the loop's own `if`, which sees the loop's names. */
static const struct list *loop_items(struct interpreter *in, const struct node *n, struct value items)
{
    const struct list *all = value_iterate(in->a, items);
    struct frame *outer = in->frame;

    if (!n->c)
        return all;

    struct value kept = value_list(in->a, SHAPE_LIST);

    in->frame = frame_new(in, outer);
    for (size_t i = 0; i < all->count; i++) {
        frame_assign(in, n->a, all->items[i]);
        if (value_true(evaluate(in, n->c)))
            list_add(in->a, kept.list, all->items[i]);
    }
    in->frame = outer;
    return kept.list;
}

static enum flow run_items(struct interpreter *in, const struct node *n, struct value items, size_t depth)
{
    struct frame *outer = in->frame;
    struct loop *loop = arena_new(in->a, sizeof *loop);
    struct value shown = { .kind = VALUE_LOOP, .loop = loop };

    *loop = (struct loop){ .list = loop_items(in, n, items), .depth = depth, .node = n, .outer = outer };
    for (; loop->index < loop->list->count; loop->index++) {
        arena_step(in->a, 1);
        in->frame = frame_new(in, outer);
        frame_set(in, in->frame, n->name, shown);
        frame_assign(in, n->a, loop->list->items[loop->index]);
        if (run_iteration(in, n, loop) == FLOW_BREAK)
            break;
    }
    in->frame = outer;
    if (loop->list->count == 0 && n->otherwise) {
        in->frame = frame_new(in, outer);

        enum flow flow = run(in, n->otherwise);

        in->frame = outer;
        return flow;
    }
    return FLOW_ON;
}

static enum flow run_for(struct interpreter *in, const struct node *n)
{
    return run_items(in, n, evaluate(in, n->b), 0);
}

/* Values are those outside: `with a = 1, b = a` does not see its own a. */
static enum flow run_with(struct interpreter *in, const struct node *n)
{
    struct frame *outer = in->frame, *frame = frame_new(in, outer);

    for (size_t i = 0; i < n->count; i += 2)
        frame_set(in, frame, n->items[i]->name, evaluate(in, n->items[i + 1]));
    in->frame = frame;

    enum flow flow = run(in, n->body);

    in->frame = outer;
    return flow;
}

static enum flow run_if(struct interpreter *in, const struct node *n)
{
    for (size_t i = 0; i < n->count; i += 2)
        if (!n->items[i] || value_true(evaluate(in, n->items[i])))
            return run(in, n->items[i + 1]);
    return FLOW_ON;
}

static struct value run_block(struct interpreter *in, const struct node *n)
{
    struct frame *outer = in->frame;
    struct value text;

    in->frame = frame_new(in, outer);
    text = run_captured(in, n->body);
    in->frame = outer;
    return text;
}

/* A filter chain over text made by a block: the innermost filter has no operand. */
static struct value filter_text(struct interpreter *in, const struct node *n, struct value text)
{
    return filter(in, n, n->a ? filter_text(in, n->a, text) : text);
}

static void run_call_block(struct interpreter *in, const struct node *n)
{
    struct value callee = evaluate(in, n->a->a);
    struct arguments args = evaluate_arguments(in, n->a, "call");
    struct macro *body = arena_new(in->a, sizeof *body);
    const char **names = arena_array(in->a, args.value_count + 1, sizeof *names);
    struct value *values = arena_array(in->a, args.value_count + 1, sizeof *values);

    *body = (struct macro){ n, in->frame };
    for (size_t i = 0; i < args.value_count; i++) {
        names[i] = args.names[i];
        values[i] = args.values[i];
    }
    names[args.value_count] = n->name;
    values[args.value_count++] = (struct value){ .kind = VALUE_MACRO, .macro = body };
    args.names = names;
    args.values = values;
    print(in, value_call(in, callee, &args));
}

static void run_generation(struct interpreter *in, const struct node *n)
{
    size_t start = in->output->text.size;
    bool outer = in->generation, records = !outer && in->out == &in->output->text;

    in->generation = true;
    run(in, n->body);
    in->generation = outer;
    if (!records)
        return;
    in->output->generation = list_room(in->output->generation, in->output->generation_count, sizeof *in->output->generation);
    in->output->generation[in->output->generation_count++] = (struct template_span){ start, in->out->size, in->message - 1 };
}

static void run_macro(struct interpreter *in, const struct node *n)
{
    struct macro *macro = arena_new(in->a, sizeof *macro);

    *macro = (struct macro){ n, in->frame };
    frame_set(in, in->frame, n->name, (struct value){ .kind = VALUE_MACRO, .macro = macro });
}

static enum flow run_body(struct interpreter *in, const struct node *n)
{
    enum flow flow = FLOW_ON;

    for (size_t i = 0; i < n->count && flow == FLOW_ON; i++)
        flow = run(in, n->items[i]);
    return flow;
}

static enum flow run_node(struct interpreter *in, const struct node *n)
{
    size_t start = in->out->size;
    struct value v;

    switch (n->kind) {
    case NODE_BODY:
        return run_body(in, n);
    case NODE_TEXT:
        buffer_add(in->out, n->text.bytes, n->text.size);
        note_output(in, start, NULL);
        break;
    case NODE_PRINT:
        print(in, evaluate(in, n->a));
        break;
    case NODE_IF:
        return run_if(in, n);
    case NODE_FOR:
        return run_for(in, n);
    case NODE_WITH:
        return run_with(in, n);
    case NODE_SET:
        frame_assign(in, n->a, template_origin_keep(in->a, evaluate(in, n->b), in->message));
        break;
    case NODE_SET_BLOCK:
        v = run_block(in, n);
        frame_assign(in, n->a, template_origin_keep(in->a, n->b ? filter_text(in, n->b, v) : v, in->message));
        break;
    case NODE_FILTER_BLOCK:
        print(in, filter_text(in, n->b, run_block(in, n)));
        break;
    case NODE_MACRO:
        run_macro(in, n);
        break;
    case NODE_CALL_BLOCK:
        run_call_block(in, n);
        break;
    case NODE_GENERATION:
        run_generation(in, n);
        break;
    case NODE_BREAK:
        return FLOW_BREAK;
    case NODE_CONTINUE:
        return FLOW_CONTINUE;
    default:
        template_raise(in->a, ERROR_FAULT, "an expression where a statement is due");
    }
    return FLOW_ON;
}

static enum flow run(struct interpreter *in, const struct node *n)
{
    enum flow flow;

    arena_step(in->a, 1);
    arena_enter(in->a);
    in->a->line = n->line;
    flow = run_node(in, n);
    if (in->out->size > TEMPLATE_MAX_OUTPUT)
        template_raise(in->a, ERROR_LIMIT, "more than %d bytes of output", TEMPLATE_MAX_OUTPUT);
    arena_leave(in->a);
    return flow;
}

struct date interpreter_date(const struct interpreter *in)
{
    return in->options->date;
}

void interpreter_run(struct arena *a, const struct node *root, struct value context, const struct template_options *options,
                     struct template_output *output)
{
    struct interpreter in = { .a = a, .context = context.dict, .options = options, .output = output, .out = &output->text };

    in.frame = frame_new(&in, NULL);
    run(&in, root);
}
