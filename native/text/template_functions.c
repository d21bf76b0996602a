#include <stdio.h>
#include <string.h>

#include "native/text/template.h"
#include "native/text/template_interpreter.h"

/* ---- arguments ---- */

bool argument(struct arguments *args, size_t place, const char *name, struct value *value)
{
    if (place < args->count) {
        *value = args->items[place];
        return true;
    }
    for (size_t i = 0; i < args->value_count; i++)
        if (!strcmp(args->names[i], name)) {
            args->used |= 1ull << (i & 63);
            *value = args->values[i];
            return true;
        }
    return false;
}

struct value argument_or(struct arguments *args, size_t place, const char *name, struct value otherwise)
{
    argument(args, place, name, &otherwise);
    return otherwise;
}

struct value argument_need(struct arguments *args, size_t place, const char *name)
{
    struct value v;

    if (!argument(args, place, name, &v))
        template_raise(args->a, ERROR_SCRIPT, "%s() misses the argument '%s'", args->callee, name);
    return v;
}

void arguments_end(struct arguments *args, size_t most)
{
    if (args->count > most)
        template_raise(args->a, ERROR_SCRIPT, "%s() takes at most %zu arguments, %zu are given", args->callee, most, args->count);
    if (args->value_count > 63)
        template_raise(args->a, ERROR_LIMIT, "%s() has too many arguments", args->callee);
    for (size_t i = 0; i < args->value_count; i++)
        if (!(args->used >> i & 1))
            template_raise(args->a, ERROR_SCRIPT, "%s() got an unexpected argument '%.80s'", args->callee, args->names[i]);
}

/* ---- globals ---- */

static struct value run_raise_exception(struct arguments *args)
{
    const struct string *message = value_str(args->a, argument_need(args, 0, "message")).string;

    template_raise(args->a, ERROR_SCRIPT, "%.*s", message->size > 300 ? 300 : (int)message->size, message->bytes);
}

static struct value run_range(struct arguments *args)
{
    int64_t start = 0, stop, step = 1;
    struct value list = value_list(args->a, SHAPE_RANGE), v;

    stop = need_int(args->a, argument_need(args, 0, "stop"), "range");
    if (argument(args, 1, "stop", &v)) {
        start = stop;
        stop = need_int(args->a, v, "range");
    }
    step = need_int(args->a, argument_or(args, 2, "step", value_int(1)), "range");
    arguments_end(args, 3);
    if (step == 0)
        template_raise(args->a, ERROR_SCRIPT, "range() arg 3 must not be zero");
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (list.list->count == TEMPLATE_MAX_RANGE)
            template_raise(args->a, ERROR_LIMIT, "a range of more than %d items", TEMPLATE_MAX_RANGE);
        arena_step(args->a, 1);
        list_add(args->a, list.list, value_int(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return list;
}

static struct value run_dict(struct arguments *args)
{
    struct value v = value_dict(args->a), from;

    if (argument(args, 0, "", &from)) {
        const struct list *pairs = from.kind == VALUE_DICT ? NULL : value_iterate(args->a, from);

        for (size_t i = 0; !pairs && i < from.dict->count; i++)
            dict_set(args->a, v.dict, from.dict->entries[i].key, from.dict->entries[i].value);
        for (size_t i = 0; pairs && i < pairs->count; i++) {
            const struct list *pair = value_iterate(args->a, pairs->items[i]);

            if (pair->count != 2)
                template_raise(args->a, ERROR_SCRIPT, "dict() of items that are no pairs");
            dict_set(args->a, v.dict, pair->items[0], pair->items[1]);
        }
    }
    for (size_t i = 0; i < args->value_count; i++)
        dict_set(args->a, v.dict, value_as_text(args->a, args->names[i]), args->values[i]);
    interpreter_keep_dict(args->in, v.dict);
    return v;
}

static struct value run_namespace(struct arguments *args)
{
    struct value v = run_dict(args);

    v.kind = VALUE_NAMESPACE;
    return v;
}

static const char *const DAYS[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
static const char *const MONTHS[] = { "January", "February", "March",     "April",   "May",      "June",
                                      "July",    "August",   "September", "October", "November", "December" };

static int day_of_week(int year, int month, int day) /* Sakamoto's rule */
{
    static const int shift[] = { 0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4 };

    year -= month < 3;
    return (year + year / 4 - year / 100 + year / 400 + shift[month - 1] + day) % 7;
}

static int day_of_year(int year, int month, int day)
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return before[month - 1] + day + (leap && month > 2);
}

/* One conversion of strftime; English names whatever the locale. */
static bool add_date(struct buffer *out, char c, int year, int month, int day)
{
    switch (c) {
    case 'Y':
        buffer_printf(out, "%04d", year);
        return true;
    case 'y':
        buffer_printf(out, "%02d", year % 100);
        return true;
    case 'm':
        buffer_printf(out, "%02d", month);
        return true;
    case 'd':
        buffer_printf(out, "%02d", day);
        return true;
    case 'e':
        buffer_printf(out, "%2d", day);
        return true;
    case 'j':
        buffer_printf(out, "%03d", day_of_year(year, month, day));
        return true;
    case 'B':
        buffer_add_text(out, MONTHS[month - 1]);
        return true;
    case 'b':
        buffer_add(out, MONTHS[month - 1], 3);
        return true;
    case 'A':
        buffer_add_text(out, DAYS[day_of_week(year, month, day)]);
        return true;
    case 'a':
        buffer_add(out, DAYS[day_of_week(year, month, day)], 3);
        return true;
    case 'H':
    case 'M':
    case 'S':
        buffer_add_text(out, "00");
        return true;
    case 'F':
        buffer_printf(out, "%04d-%02d-%02d", year, month, day);
        return true;
    case 'I':
        buffer_add_text(out, "12");
        return true;
    case 'p':
        buffer_add_text(out, "AM");
        return true;
    case 'h':
        buffer_add(out, MONTHS[month - 1], 3);
        return true;
    case 'f':
        buffer_add_text(out, "000000");
        return true;
    case 'T':
    case 'X':
        buffer_add_text(out, "00:00:00");
        return true;
    case 'R':
        buffer_add_text(out, "00:00");
        return true;
    case 'D':
    case 'x':
        buffer_printf(out, "%02d/%02d/%02d", month, day, year % 100);
        return true;
    case 'w':
        buffer_printf(out, "%d", day_of_week(year, month, day));
        return true;
    case 'u':
        buffer_printf(out, "%d", (day_of_week(year, month, day) + 6) % 7 + 1);
        return true;
    case 'U':
        buffer_printf(out, "%02d", (day_of_year(year, month, day) + 6 - day_of_week(year, month, day)) / 7);
        return true;
    case 'W':
        buffer_printf(out, "%02d", (day_of_year(year, month, day) + 6 - (day_of_week(year, month, day) + 6) % 7) / 7);
        return true;
    case 'c':
        buffer_printf(out, "%.3s %.3s %2d 00:00:00 %04d", DAYS[day_of_week(year, month, day)], MONTHS[month - 1], day, year);
        return true;
    case 'Z':
    case 'z':
        return true;
    case 'n':
    case 't':
        buffer_add_u8(out, c == 'n' ? '\n' : '\t');
        return true;
    case '%':
        buffer_add_text(out, "%");
        return true;
    default:
        return false;
    }
}

/* `%-d`: without zeros or spaces before. */
static void add_unpadded(struct buffer *out, char c, int year, int month, int day)
{
    struct buffer padded = { 0 };
    size_t skip = 0;

    add_date(&padded, c, year, month, day);
    while (skip + 1 < padded.size && strchr(" 0", padded.bytes[skip]))
        skip++;
    buffer_add(out, padded.bytes + skip, padded.size - skip);
    buffer_free(&padded);
}

static struct value run_strftime_now(struct arguments *args)
{
    const struct string *format = need_string(args->a, argument_need(args, 0, "format"), "strftime_now");
    struct buffer *out = arena_buffer(args->a);
    struct date date = interpreter_date(args->in);
    int year = date.year, month = date.month, day = date.day;

    arguments_end(args, 1);
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > 31)
        template_raise(args->a, ERROR_RANGE, "the template asks for the date and the run gives none");
    for (size_t i = 0; i < format->size; i++) {
        if (format->bytes[i] != '%' || i + 1 == format->size)
            buffer_add_u8(out, (uint8_t)format->bytes[i]);
        else if (format->bytes[i + 1] == '-' && i + 2 < format->size && strchr("dmjeHMSI", format->bytes[i + 2]))
            add_unpadded(out, format->bytes[i += 2], year, month, day);
        else if (!add_date(out, format->bytes[++i], year, month, day))
            template_raise(args->a, ERROR_UNSUPPORTED, "strftime_now: %%%c", format->bytes[i]);
    }
    return value_buffer(args->a, out);
}

static const struct function FUNCTIONS[] = {
    { "raise_exception", run_raise_exception }, { "range", run_range }, { "dict", run_dict }, { "namespace", run_namespace },
    { "strftime_now", run_strftime_now },
};

const struct function *function_named(const char *name)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(FUNCTIONS[i].name, name))
            return &FUNCTIONS[i];
    return NULL;
}

/* ---- tests ---- */

static bool is_defined(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind != VALUE_UNDEFINED;
}

static bool is_undefined(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_UNDEFINED;
}

static bool is_none(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_NONE;
}

static bool is_string(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_STRING;
}

static bool is_mapping(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_DICT;
}

static bool is_sequence(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_STRING || v.kind == VALUE_DICT || v.kind == VALUE_UNDEFINED ||
           (v.kind == VALUE_LIST && list_indexed(v.list));
}

static bool is_iterable(struct value v, struct arguments *args)
{
    return is_sequence(v, args) || v.kind == VALUE_LIST || v.kind == VALUE_LOOP;
}

static bool is_true(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_BOOL && v.boolean;
}

static bool is_false(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_BOOL && !v.boolean;
}

static bool is_escaped(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_STRING && v.markup;
}

/* Whether a text names one. */
static bool is_filter(struct value v, struct arguments *args)
{
    return v.kind == VALUE_STRING && filter_named(string_text(args->a, v.string)) != NULL;
}

static bool is_test(struct value v, struct arguments *args)
{
    return v.kind == VALUE_STRING && test_named(string_text(args->a, v.string)) != NULL;
}

static bool is_boolean(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_BOOL;
}

static bool is_integer(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_INT;
}

static bool is_float(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_FLOAT;
}

static bool is_number(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT || v.kind == VALUE_FLOAT;
}

static bool is_callable(struct value v, struct arguments *args)
{
    (void)args;
    return v.kind == VALUE_FUNCTION || v.kind == VALUE_METHOD || v.kind == VALUE_MACRO;
}

static bool is_odd(struct value v, struct arguments *args)
{
    return need_int(args->a, v, "odd") % 2 != 0;
}

static bool is_even(struct value v, struct arguments *args)
{
    return need_int(args->a, v, "even") % 2 == 0;
}

static bool is_divisible(struct value v, struct arguments *args)
{
    int64_t by = need_int(args->a, argument_need(args, 0, "num"), "divisibleby");

    if (by == 0)
        template_raise(args->a, ERROR_SCRIPT, "division by zero");
    return by == -1 || need_int(args->a, v, "divisibleby") % by == 0;
}

static bool is_in(struct value v, struct arguments *args)
{
    return value_contains(args->a, argument_need(args, 0, "seq"), v);
}

static bool is_same(struct value v, struct arguments *args)
{
    struct value other = argument_need(args, 0, "other");

    return v.kind == other.kind &&
           (v.kind == VALUE_LIST || v.kind == VALUE_DICT ? v.dict == other.dict : value_equal(args->a, v, other));
}

static bool is_cased(struct value v, struct arguments *args, bool upper)
{
    struct value text = value_str(args->a, v), mapped = string_case(args->a, text.string, upper),
                 other = string_case(args->a, text.string, !upper);

    return value_equal(args->a, text, mapped) && !value_equal(args->a, text, other);
}

static bool is_lower(struct value v, struct arguments *args)
{
    return is_cased(v, args, false);
}

static bool is_upper(struct value v, struct arguments *args)
{
    return is_cased(v, args, true);
}

#define IS_COMPARED(name, op)                                                                                                    \
    static bool name(struct value v, struct arguments *args)                                                                     \
    {                                                                                                                            \
        return compare(args->a, op, v, argument_need(args, 0, "other"));                                                         \
    }
IS_COMPARED(is_equal, OP_EQUAL)
IS_COMPARED(is_unequal, OP_UNEQUAL)
IS_COMPARED(is_less, OP_LESS)
IS_COMPARED(is_less_equal, OP_LESS_EQUAL)
IS_COMPARED(is_greater, OP_GREATER)
IS_COMPARED(is_greater_equal, OP_GREATER_EQUAL)

static const struct test TESTS[] = {
    { "defined", is_defined },
    { "undefined", is_undefined },
    { "none", is_none },
    { "string", is_string },
    { "mapping", is_mapping },
    { "sequence", is_sequence },
    { "iterable", is_iterable },
    { "true", is_true },
    { "false", is_false },
    { "boolean", is_boolean },
    { "escaped", is_escaped },
    { "filter", is_filter },
    { "test", is_test },
    { "integer", is_integer },
    { "float", is_float },
    { "number", is_number },
    { "callable", is_callable },
    { "odd", is_odd },
    { "even", is_even },
    { "divisibleby", is_divisible },
    { "in", is_in },
    { "sameas", is_same },
    { "lower", is_lower },
    { "upper", is_upper },
    { "eq", is_equal },
    { "equalto", is_equal },
    { "ne", is_unequal },
    { "lt", is_less },
    { "lessthan", is_less },
    { "le", is_less_equal },
    { "gt", is_greater },
    { "greaterthan", is_greater },
    { "ge", is_greater_equal },
    { "==", is_equal },
    { "!=", is_unequal },
    { "<", is_less },
    { "<=", is_less_equal },
    { ">", is_greater },
    { ">=", is_greater_equal },
};

const struct test *test_named(const char *name)
{
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++)
        if (!strcmp(TESTS[i].name, name))
            return &TESTS[i];
    return NULL;
}
