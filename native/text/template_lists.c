/* Jinja2's filters of lists and mappings (jinja2/filters.py 3.1). */
#include <string.h>

#include "native/text/template_filters.h"
#include "native/text/template_interpreter.h"
#include "native/text/utf8.h"

static struct value f_length(struct value v, struct arguments *args)
{
    arguments_end(args, 0);
    switch (v.kind) {
    case VALUE_UNDEFINED:
        return value_int(0);
    case VALUE_STRING:
        return value_int((int64_t)utf8_count(v.string->bytes, v.string->size));
    case VALUE_DICT:
        return value_int((int64_t)v.dict->count);
    case VALUE_LIST:
        if (v.list->shape != SHAPE_GENERATOR)
            return value_int((int64_t)v.list->count);
        /* fall through */
    default:
        template_raise(args->a, ERROR_SCRIPT, "object of type '%s' has no len()", value_type(v));
    }
}

static struct value list_from(struct arena *a, const struct list *items, enum list_shape shape)
{
    struct value v = value_list(a, shape);

    for (size_t i = 0; i < items->count; i++)
        list_add(a, v.list, items->items[i]);
    return v;
}

static struct value f_list(struct value v, struct arguments *args)
{
    arguments_end(args, 0);
    return list_from(args->a, value_iterate(args->a, v), SHAPE_LIST);
}

static struct value f_first(struct value v, struct arguments *args)
{
    const struct list *items = value_iterate(args->a, v);

    arguments_end(args, 0);
    return items->count ? items->items[0] : value_undefined("the first item of nothing");
}

static struct value f_last(struct value v, struct arguments *args)
{
    if (v.kind == VALUE_LIST && v.list->shape == SHAPE_GENERATOR)
        template_raise(args->a, ERROR_SCRIPT, "'generator' object is not reversible");

    const struct list *items = value_iterate(args->a, v);

    arguments_end(args, 0);
    return items->count ? items->items[items->count - 1] : value_undefined("the last item of nothing");
}

static struct value f_reverse(struct value v, struct arguments *args)
{
    const struct list *items = value_iterate(args->a, v);
    struct value out = value_list(args->a, SHAPE_GENERATOR);
    struct buffer *text;

    arguments_end(args, 0);
    for (size_t i = items->count; i-- > 0;)
        list_add(args->a, out.list, items->items[i]);
    if (v.kind != VALUE_STRING)
        return out;
    text = arena_buffer(args->a);
    for (size_t i = 0; i < out.list->count; i++)
        value_print(args->a, out.list->items[i], text);
    return value_buffer(args->a, text);
}

static struct value f_items(struct value v, struct arguments *args)
{
    struct value out = value_list(args->a, SHAPE_GENERATOR);

    arguments_end(args, 0);
    if (v.kind == VALUE_UNDEFINED)
        return out;
    if (v.kind != VALUE_DICT)
        template_raise(args->a, ERROR_SCRIPT, "Can only get item pairs from a mapping.");
    for (size_t i = 0; i < v.dict->count; i++) {
        struct value pair = value_list(args->a, SHAPE_TUPLE);

        list_add(args->a, pair.list, v.dict->entries[i].key);
        list_add(args->a, pair.list, v.dict->entries[i].value);
        list_add(args->a, out.list, pair);
    }
    return out;
}

static struct value f_default(struct value v, struct arguments *args)
{
    struct value otherwise = argument_or(args, 0, "default_value", value_string(args->a, "", 0));
    bool falsy = value_true(argument_or(args, 1, "boolean", value_bool(false)));

    arguments_end(args, 2);
    return v.kind == VALUE_UNDEFINED || (falsy && !value_true(v)) ? otherwise : v;
}

static struct value f_attr(struct value v, struct arguments *args)
{
    struct value name = argument_need(args, 0, "name"), out;
    const struct string *s = need_string(args->a, name, "attr");
    char *text = arena_new(args->a, s->size + 1);

    memcpy(text, s->bytes, s->size);
    arguments_end(args, 1);
    if (v.kind == VALUE_DICT) /* only attributes, not items */
        return method_of(args->a, v, text, &out) ? out : value_undefined(text);
    return value_attribute(args->in, v, text);
}

/* What sorting and uniqueness look at: an attribute, and strings without case unless asked. */
static struct value sort_key(struct arguments *args, struct value v, struct value attribute, bool cased)
{
    if (attribute.kind != VALUE_NONE)
        v = value_member(args->in, v, attribute);
    return v.kind == VALUE_STRING && !cased ? string_case(args->a, v.string, false) : v;
}

/* The key of sort(attribute='a,b'): a tuple. */
static struct value sort_keys_of(struct arguments *args, struct value v, struct value attributes, bool cased)
{
    struct value key = value_list(args->a, SHAPE_TUPLE);

    if (attributes.kind != VALUE_STRING) {
        list_add(args->a, key.list, sort_key(args, v, attributes, cased));
        return key;
    }

    const char *at = attributes.string->bytes, *end = at + attributes.string->size;

    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));

        list_add(args->a, key.list, sort_key(args, v, value_string(args->a, at, (size_t)((comma ? comma : end) - at)), cased));
        if (!comma)
            return key;
        at = comma + 1;
    }
}

/* Stable, by keys; merge sort so that the order does not hang on a library. */
static void sort_by(struct arena *a, struct value *items, struct value *keys, size_t count, bool reverse)
{
    if (count < 2)
        return;

    size_t half = count / 2, i = 0, j = half, k = 0;
    struct value *items_out = arena_array(a, count, sizeof *items_out), *keys_out = arena_array(a, count, sizeof *keys_out);

    sort_by(a, items, keys, half, reverse);
    sort_by(a, items + half, keys + half, count - half, reverse);
    while (k < count) {
        bool right =
            i == half || (j < count && (reverse ? value_order(a, keys[i], keys[j]) < 0 : value_order(a, keys[j], keys[i]) < 0));
        size_t from = right ? j++ : i++;

        items_out[k] = items[from];
        keys_out[k++] = keys[from];
    }
    memcpy(items, items_out, count * sizeof *items);
    memcpy(keys, keys_out, count * sizeof *keys);
}

static struct value f_sort(struct value v, struct arguments *args)
{
    bool reverse = value_true(argument_or(args, 0, "reverse", value_bool(false)));
    bool cased = value_true(argument_or(args, 1, "case_sensitive", value_bool(false)));
    struct value attribute = argument_or(args, 2, "attribute", value_none());
    struct value out = list_from(args->a, value_iterate(args->a, v), SHAPE_LIST);
    struct value *keys = arena_array(args->a, out.list->count, sizeof *keys);

    arguments_end(args, 3);
    for (size_t i = 0; i < out.list->count; i++)
        keys[i] = sort_keys_of(args, out.list->items[i], attribute, cased);
    sort_by(args->a, out.list->items, keys, out.list->count, reverse);
    return out;
}

static struct value f_dictsort(struct value v, struct arguments *args)
{
    bool cased = value_true(argument_or(args, 0, "case_sensitive", value_bool(false)));
    struct value by = argument_or(args, 1, "by", value_as_text(args->a, "key"));
    bool reverse = value_true(argument_or(args, 2, "reverse", value_bool(false)));
    struct arguments none = { .in = args->in, .a = args->a, .callee = "dictsort" };
    struct value out = list_from(args->a, f_items(v, &none).list, SHAPE_LIST);
    struct value *keys = arena_array(args->a, out.list->count, sizeof *keys);
    size_t part = string_is(need_string(args->a, by, "dictsort"), "value");

    arguments_end(args, 3);
    if (!part && !string_is(by.string, "key"))
        template_raise(args->a, ERROR_SCRIPT, "You can only sort by either \"key\" or \"value\"");
    for (size_t i = 0; i < out.list->count; i++)
        keys[i] = sort_key(args, out.list->items[i].list->items[part], value_none(), cased);
    sort_by(args->a, out.list->items, keys, out.list->count, reverse);
    return out;
}

static struct value f_unique(struct value v, struct arguments *args)
{
    bool cased = value_true(argument_or(args, 0, "case_sensitive", value_bool(false)));
    struct value attribute = argument_or(args, 1, "attribute", value_none());
    const struct list *items = value_iterate(args->a, v);
    struct value out = value_list(args->a, SHAPE_GENERATOR), keys = value_list(args->a, SHAPE_LIST);

    arguments_end(args, 2);
    for (size_t i = 0; i < items->count; i++) {
        struct value key = sort_key(args, items->items[i], attribute, cased);

        if (value_contains(args->a, keys, key))
            continue;
        list_add(args->a, keys.list, key);
        list_add(args->a, out.list, items->items[i]);
    }
    return out;
}

static struct value extreme(struct value v, struct arguments *args, bool greatest)
{
    bool cased = value_true(argument_or(args, 0, "case_sensitive", value_bool(false)));
    struct value attribute = argument_or(args, 1, "attribute", value_none());
    const struct list *items = value_iterate(args->a, v);
    struct value best = value_undefined("the extreme of nothing"), best_key = value_none();

    arguments_end(args, 2);
    for (size_t i = 0; i < items->count; i++) {
        struct value key = sort_key(args, items->items[i], attribute, cased);

        if (i && (greatest ? value_order(args->a, key, best_key) <= 0 : value_order(args->a, key, best_key) >= 0))
            continue;
        best = items->items[i];
        best_key = key;
    }
    return best;
}

static struct value f_min(struct value v, struct arguments *args)
{
    return extreme(v, args, false);
}

static struct value f_max(struct value v, struct arguments *args)
{
    return extreme(v, args, true);
}

static struct value f_sum(struct value v, struct arguments *args)
{
    struct value attribute = argument_or(args, 0, "attribute", value_none()), sum = argument_or(args, 1, "start", value_int(0));
    const struct list *items = value_iterate(args->a, v);

    arguments_end(args, 2);
    if (sum.kind == VALUE_STRING)
        template_raise(args->a, ERROR_SCRIPT, "sum() can't sum strings [use ''.join(seq) instead]");
    for (size_t i = 0; i < items->count; i++)
        sum = value_add(args->a, sum,
                        attribute.kind == VALUE_NONE ? items->items[i] : value_member(args->in, items->items[i], attribute));
    return sum;
}

/* The arguments after the first `skip`, for a filter or test that is named by one. */
static struct arguments rest(struct arguments *args, size_t skip, const char *callee)
{
    struct arguments own = *args;

    own.callee = callee;
    own.items += skip < args->count ? skip : args->count;
    own.count -= skip < args->count ? skip : args->count;
    return own;
}

static const char *name_of(struct arguments *args, size_t place, const char *what)
{
    if (place >= args->count)
        template_raise(args->a, ERROR_SCRIPT, "%s: the name of a %s is missing", args->callee, what);

    const struct string *s = need_string(args->a, args->items[place], args->callee);
    char *name = arena_new(args->a, s->size + 1);

    memcpy(name, s->bytes, s->size);
    return name;
}

static struct value f_map(struct value v, struct arguments *args)
{
    struct value out = value_list(args->a, SHAPE_GENERATOR), attribute, otherwise;
    const struct filter *by = NULL;
    bool has_default = false;

    if (!value_true(v))
        return out;

    const struct list *items = value_iterate(args->a, v);
    bool member = !args->count && argument(args, SIZE_MAX, "attribute", &attribute);

    if (member) {
        has_default = argument(args, SIZE_MAX, "default", &otherwise);
        arguments_end(args, 0);
    } else {
        const char *name = name_of(args, 0, "filter");

        by = filter_named(name);
        if (!by)
            template_raise(args->a, ERROR_SCRIPT, "No filter named '%.80s'.", name);
    }
    for (size_t i = 0; i < items->count; i++) {
        struct arguments own = rest(args, 1, by ? by->name : "map");
        struct value item = member ? value_member(args->in, items->items[i], attribute) : by->run(items->items[i], &own);

        list_add(args->a, out.list, has_default && item.kind == VALUE_UNDEFINED ? otherwise : item);
    }
    return out;
}

/* select, reject, selectattr, rejectattr: a test, or truth if none is named. */
static struct value choose(struct value v, struct arguments *args, bool keep, bool member)
{
    struct value out = value_list(args->a, SHAPE_GENERATOR);
    const struct test *test = NULL;
    size_t place = member ? 1 : 0;

    if (!value_true(v))
        return out;

    const struct list *items = value_iterate(args->a, v);

    if (member && !args->count)
        template_raise(args->a, ERROR_SCRIPT, "%s: the name of an attribute is missing", args->callee);
    if (args->count > place) {
        const char *name = name_of(args, place, "test");

        test = test_named(name);
        if (!test)
            template_raise(args->a, ERROR_SCRIPT, "No test named '%.80s'.", name);
    }
    for (size_t i = 0; i < items->count; i++) {
        struct value item = member ? value_member(args->in, items->items[i], args->items[0]) : items->items[i];
        struct arguments own = rest(args, place + 1, args->callee);

        if ((test ? test->run(item, &own) : value_true(item)) == keep)
            list_add(args->a, out.list, items->items[i]);
    }
    return out;
}

static struct value f_select(struct value v, struct arguments *args)
{
    return choose(v, args, true, false);
}

static struct value f_reject(struct value v, struct arguments *args)
{
    return choose(v, args, false, false);
}

static struct value f_selectattr(struct value v, struct arguments *args)
{
    return choose(v, args, true, true);
}

static struct value f_rejectattr(struct value v, struct arguments *args)
{
    return choose(v, args, false, true);
}

static struct value f_batch(struct value v, struct arguments *args)
{
    int64_t size = need_int(args->a, argument_need(args, 0, "linecount"), "batch");
    struct value fill = argument_or(args, 1, "fill_with", value_none()), out = value_list(args->a, SHAPE_GENERATOR), row = { 0 };
    const struct list *items = value_iterate(args->a, v);

    arguments_end(args, 2);
    if (size < 1)
        template_raise(args->a, ERROR_SCRIPT, "batch: rows of at least one item");
    for (size_t i = 0; i < items->count; i++) {
        if ((int64_t)i % size == 0) {
            row = value_list(args->a, SHAPE_LIST);
            list_add(args->a, out.list, row);
        }
        list_add(args->a, row.list, items->items[i]);
    }
    while (items->count && fill.kind != VALUE_NONE && (int64_t)row.list->count < size) {
        arena_step(args->a, 1);
        list_add(args->a, row.list, fill);
    }
    return out;
}

/* Columns: the first ones have one item more; the others take fill_with. */
static struct value f_slice(struct value v, struct arguments *args)
{
    int64_t slices = need_int(args->a, argument_need(args, 0, "slices"), "slice");
    struct value fill = argument_or(args, 1, "fill_with", value_none()), out = value_list(args->a, SHAPE_GENERATOR);
    const struct list *items = value_iterate(args->a, v);
    size_t at = 0;

    arguments_end(args, 2);
    if (slices < 1)
        template_raise(args->a, ERROR_SCRIPT, "slice: at least one column");
    for (int64_t i = 0; i < slices; i++) {
        struct value column = value_list(args->a, SHAPE_LIST);
        size_t more = items->count % (size_t)slices, size = items->count / (size_t)slices + ((size_t)i < more);

        arena_step(args->a, 1);
        while (size--)
            list_add(args->a, column.list, items->items[at++]);
        if (fill.kind != VALUE_NONE && (size_t)i >= more)
            list_add(args->a, column.list, fill);
        list_add(args->a, out.list, column);
    }
    return out;
}

/* Pairs of an attribute's value and the items that have it, ordered by the value. */
static struct value f_groupby(struct value v, struct arguments *args)
{
    struct value attribute = argument_need(args, 0, "attribute"), otherwise = argument_or(args, 1, "default", value_none());
    bool cased = value_true(argument_or(args, 2, "case_sensitive", value_bool(false)));
    struct value items = list_from(args->a, value_iterate(args->a, v), SHAPE_LIST), out = value_list(args->a, SHAPE_LIST), group;
    size_t count = items.list->count;
    struct value *keys = arena_array(args->a, count + 1, sizeof *keys);

    arguments_end(args, 3);
    for (size_t i = 0; i < count; i++) {
        keys[i] = value_member(args->in, items.list->items[i], attribute);
        if (keys[i].kind == VALUE_UNDEFINED && otherwise.kind != VALUE_NONE)
            keys[i] = otherwise;
        keys[i] = sort_key(args, keys[i], value_none(), cased);
    }
    sort_by(args->a, items.list->items, keys, count, false);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !value_equal(args->a, keys[i], keys[i - 1])) {
            struct value spelt = value_member(args->in, items.list->items[i], attribute);

            group = value_list(args->a, SHAPE_TUPLE);
            group.list->group = true;
            list_add(args->a, group.list, spelt.kind == VALUE_UNDEFINED && otherwise.kind != VALUE_NONE ? otherwise : spelt);
            list_add(args->a, group.list, value_list(args->a, SHAPE_LIST));
            list_add(args->a, out.list, group);
        }
        list_add(args->a, out.list->items[out.list->count - 1].list->items[1].list, items.list->items[i]);
    }
    return out;
}

const struct filter LIST_FILTERS[] = {
    { "length", f_length },
    { "count", f_length },
    { "list", f_list },
    { "default", f_default },
    { "d", f_default },
    { "items", f_items },
    { "map", f_map },
    { "select", f_select },
    { "reject", f_reject },
    { "selectattr", f_selectattr },
    { "rejectattr", f_rejectattr },
    { "dictsort", f_dictsort },
    { "sort", f_sort },
    { "unique", f_unique },
    { "first", f_first },
    { "last", f_last },
    { "reverse", f_reverse },
    { "sum", f_sum },
    { "min", f_min },
    { "max", f_max },
    { "batch", f_batch },
    { "slice", f_slice },
    { "groupby", f_groupby },
    { "attr", f_attr },
};

const size_t LIST_FILTER_COUNT = sizeof LIST_FILTERS / sizeof *LIST_FILTERS;
