/* Calls that are drawn at random among the tokens that may come: always whole, read back, and as the schema wants them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/text/call_form.h"
#include "native/text/token_table.h"
#include "native/text/tool_calls.h"

static struct tokenizer *tokenizer;
static struct token_table table;

static int set_up(void **state)
{
    struct error err = { 0 };

    (void)state;
    tokenizer = tokenizer_read_folder(RONDO_SOURCE "/models/pocket", &err);
    return tokenizer && token_table_of(&table, tokenizer, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    token_table_free(&table);
    tokenizer_free(tokenizer);
    return 0;
}

static json_t *parse(const char *text)
{
    struct error err = { 0 };
    json_t *value = json_read(text, strlen(text), 1 << 20, &err);

    if (!value)
        fail_msg("%s: %s", text, err.message);
    return value;
}

/* ---- the reference: does a value obey a schema ------------------------------------------------------------------------------- */

static bool is_type(const char *type, const json_t *v)
{
    return !strcmp(type, "object")    ? json_is_object(v)
           : !strcmp(type, "array")   ? json_is_array(v)
           : !strcmp(type, "string")  ? json_is_string(v)
           : !strcmp(type, "integer") ? json_is_integer(v)
           : !strcmp(type, "number")  ? json_is_number(v)
           : !strcmp(type, "boolean") ? json_is_boolean(v)
                                      : json_is_null(v);
}

static size_t characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

static bool obeys(const json_t *root, const json_t *schema, const json_t *v);

static bool obeys_type(const json_t *type, const json_t *v)
{
    bool some = false;

    if (json_is_string(type))
        return is_type(json_string_value(type), v);
    for (size_t i = 0; i < json_array_size(type); i++)
        some = some || is_type(json_string_value(json_array_get(type, i)), v);
    return !type || some;
}

static size_t fitting(const json_t *root, const json_t *list, const json_t *v)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        count += obeys(root, json_array_get(list, i), v);
    return count;
}

static bool bounded(const json_t *schema, const char *least, const char *most, double value)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);

    return (!low || value >= json_number_value(low)) && (!high || value <= json_number_value(high));
}

static bool obeys_object(const json_t *root, const json_t *schema, const json_t *v)
{
    const json_t *properties = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *value;

    for (size_t i = 0; i < json_array_size(json_object_get(schema, "required")); i++)
        if (!json_object_get(v, json_string_value(json_array_get(json_object_get(schema, "required"), i))))
            return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        const json_t *one = json_object_get(properties, key);

        if (one ? !obeys(root, one, value) : more && !obeys(root, more, value))
            return false;
    }
    return true;
}

static bool obeys(const json_t *root, const json_t *schema, const json_t *v)
{
    const json_t *values = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const"),
                 *any = json_object_get(schema, "anyOf"), *one = json_object_get(schema, "oneOf"),
                 *reference = json_object_get(schema, "$ref"), *items;
    bool found = !values;

    if (json_is_boolean(schema))
        return json_is_true(schema);
    if (reference)
        return obeys(root, json_object_get(json_object_get(root, "$defs"), strrchr(json_string_value(reference), '/') + 1), v);
    for (size_t i = 0; i < json_array_size(values); i++)
        found = found || json_equal(json_array_get(values, i), v);
    if (!found || (constant && !json_equal(constant, v)) || !obeys_type(json_object_get(schema, "type"), v) ||
        (any && fitting(root, any, v) == 0) || (one && fitting(root, one, v) != 1))
        return false;
    if (json_is_string(v) && !bounded(schema, "minLength", "maxLength", (double)characters(json_string_value(v))))
        return false;
    if (json_is_number(v) && (!bounded(schema, "minimum", "maximum", json_number_value(v)) ||
                              (json_object_get(schema, "exclusiveMinimum") &&
                               json_number_value(v) <= json_number_value(json_object_get(schema, "exclusiveMinimum")))))
        return false;
    items = json_object_get(schema, "items");
    for (size_t i = 0; items && i < json_array_size(v); i++)
        if (!obeys(root, items, json_array_get(v, i)))
            return false;
    if (json_is_array(v) && !bounded(schema, "minItems", "maxItems", (double)json_array_size(v)))
        return false;
    return !json_is_object(v) || obeys_object(root, schema, v);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------------------- */

static uint64_t seed = 88172645463325252u;

static uint32_t drawn(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

/* One of the tokens that may come. */
static bool pick(const uint64_t *bits, uint32_t *id)
{
    uint32_t count = 0, at = 0, wanted;

    for (uint32_t i = 0; i < table.ids; i++)
        count += bits[i / 64] >> i % 64 & 1;
    if (count == 0)
        return false;
    wanted = drawn(count);
    for (uint32_t i = 0; i < table.ids; i++)
        if (bits[i / 64] >> i % 64 & 1 && at++ == wanted)
            *id = i;
    return true;
}

static void add_text(struct call_symbols *out, const char *text)
{
    out->list = calloc(strlen(text) + 1, sizeof *out->list);
    for (out->count = 0; text[out->count]; out->count++)
        out->list[out->count] = (uint8_t)text[out->count];
}

static void form_of(struct call_form *form, const char *head, const char *middle, const char *tail, const char *again)
{
    *form = (struct call_form){ 0 };
    add_text(&form->head, head);
    add_text(&form->middle, middle);
    add_text(&form->tail, tail);
    add_text(&form->again, again);
}

/* What the automaton allows in at most `most` tokens, into `text`. */
static void draw(const struct call_grammar *g, size_t most, struct buffer *text)
{
    struct call_memory memory = { 0 };
    struct call_state s = call_begin(g);
    size_t words = table.ids / 64 + 1, count = 0;
    uint64_t *bits = calloc(words, sizeof *bits);
    struct error err = { 0 };
    uint32_t *ids = calloc(most + 1, sizeof *ids);

    while (!(call_ended(g, &s) && (count == most || drawn(2)))) {
        assert_true(count < most);
        memset(bits, 0, words * sizeof *bits);
        token_table_allow(&table, g, &memory, &s, most - count - 1, bits);
        if (!pick(bits, &ids[count])) {
            assert_true(call_ended(g, &s));
            break;
        }
        assert_true(token_table_feed(&table, g, &memory, &s, ids[count++]));
    }
    assert_true(tokenizer_decode(tokenizer, ids, count, false, text, &err));
    free(ids);
    free(bits);
    call_memory_free(&memory);
}

static const char *const schemas[] = {
    "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"integer\"}, \"unit\": {\"enum\": [\"m\", \"km\", \"mm\"]}}, "
    "\"required\": "
    "[\"x\"]}",
    "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"minLength\": 2, \"maxLength\": 5}, \"ab\": "
    "{\"type\": "
    "\"boolean\"}, \"abc\": {\"type\": [\"number\", \"null\"]}}, \"required\": [\"a\", \"ab\", \"abc\"]}",
    "{\"type\": \"object\", \"properties\": {\"l\": {\"type\": \"array\", \"items\": {\"type\": \"integer\", \"minimum\": -12, "
    "\"maximum\": "
    "1050}, \"minItems\": 2, \"maxItems\": 4}}, \"required\": [\"l\"]}",
    "{\"type\": \"object\", \"properties\": {\"p\": {\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 20.5}, \"q\": "
    "{\"type\": "
    "\"integer\", \"minimum\": 100, \"maximum\": 199}, \"r\": {\"type\": \"integer\", \"maximum\": -7}}, \"required\": [\"p\", "
    "\"q\", \"r\"]}",
    "{\"type\": \"object\"}",
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"minItems\": 1}}",
    "{\"type\": \"object\", \"properties\": {\"v\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"object\", \"properties\": "
    "{\"w\": "
    "{\"type\": \"null\"}}, \"required\": [\"w\"]}, {\"enum\": [1, 12, 123, true]}]}}, \"required\": [\"v\"]}",
    "{\"type\": \"object\", \"properties\": {\"n\": {\"$ref\": \"#/$defs/node\"}, \"m\": {\"$ref\": \"#/$defs/node\"}}, "
    "\"required\": "
    "[\"m\"], \"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"k\": {\"oneOf\": [{\"type\": \"integer\"}, "
    "{\"type\": "
    "\"array\", \"items\": true}]}}, \"required\": [\"k\"]}}}",
    "{\"type\": \"object\", \"properties\": {\"e\": {\"type\": \"string\", \"enum\": [\"a\\\"b\", \"a\\\\\", \"\", 7]}, \"any\": "
    "{}}}",
    "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}",
    "{\"type\": \"object\", \"properties\": {\"o\": {\"oneOf\": [{\"const\": \"a\"}, {\"const\": \"ab\"}, {\"enum\": [null, "
    "3]}]}}, "
    "\"required\": [\"o\"]}",
};

/* The two schemas as tools f and fo: one name begins the other. */
static json_t *tools_of(const char *one, const char *other)
{
    return json_pack("[{s:s, s:{s:s, s:o}}, {s:s, s:o}]", "type", "function", "function", "name", "f", "parameters", parse(one),
                     "name", "fo", "parameters", parse(other));
}

static void check(const json_t *tools, const struct buffer *text, bool several)
{
    struct error err = { 0 };
    json_t *calls = tool_calls_read((const char *)text->bytes, text->size, &err), *call;
    size_t i;

    if (!calls)
        fail_msg("%.*s: %s", (int)text->size, (const char *)text->bytes, err.message);
    assert_in_range(json_array_size(calls), 1, several ? CALL_MOST : 1);
    json_array_foreach(calls, i, call)
    {
        bool second = strcmp(json_string_value(json_object_get(call, "name")), "fo") == 0;
        const json_t *tool = json_array_get(tools, second),
                     *schema = json_object_get(second ? tool : json_object_get(tool, "function"), "parameters");

        if (!obeys(schema, schema, json_object_get(call, "arguments")))
            fail_msg("%.*s", (int)text->size, (const char *)text->bytes);
    }
    json_decref(calls);
}

static void draw_all(const struct call_form *form, bool several)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        json_t *tools = tools_of(schemas[i], schemas[(i + 3) % (sizeof schemas / sizeof *schemas)]);
        struct call_schema schema;
        struct call_grammar g;
        struct error err = { 0 };

        if (!call_schema_read(&schema, tools, &err) || !call_grammar_of(&g, form, &schema, &err))
            fail_msg("%s: %s %s", schemas[i], err.place, err.message);
        for (size_t round = 0; round < 24; round++) {
            struct call_state s = call_begin(&g);
            struct buffer text = { 0 };

            draw(&g, call_rest(&g, &s) + (round % 3 == 0 ? round / 3 : 7 * round), &text);
            check(tools, &text, several);
            buffer_free(&text);
        }
        call_schema_free(&schema);
        json_decref(tools);
    }
}

static void every_call_that_may_be_drawn_is_whole_and_obeys_its_schema(void **state)
{
    struct call_form form;

    (void)state;
    form_of(&form, "<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>",
            "}\n</tool_call>\n<tool_call>\n{\"name\": \"");
    draw_all(&form, true);
    call_form_free(&form);
    form_of(&form, "{\"name\": \"", "\", \"parameters\": ", "}", "");
    draw_all(&form, false);
    call_form_free(&form);
    form_of(&form, "[TOOL_CALLS][{\"name\": \"", "\", \"arguments\": ", "}]", "}, {\"name\": \"");
    draw_all(&form, true);
    call_form_free(&form);
}

/* ---- what is and is not allowed ------------------------------------------------------------------------------------------------ */

static bool accepts(const char *schema, const char *arguments)
{
    json_t *tools = json_pack("[{s:s, s:o}]", "name", "f", "parameters", parse(schema));
    struct call_form form;
    struct call_schema read;
    struct call_grammar g;
    struct call_memory memory = { 0 };
    struct call_state s;
    struct error err = { 0 };
    bool ok;

    form_of(&form, "", ":", ";", "");
    if (!call_schema_read(&read, tools, &err) || !call_grammar_of(&g, &form, &read, &err))
        fail_msg("%s: %s %s", schema, err.place, err.message);
    s = call_begin(&g);
    ok = call_feed(&g, &memory, &s, 'f') && call_feed(&g, &memory, &s, ':');
    for (const char *c = arguments; ok && *c; c++) {
        size_t before = call_rest(&g, &s);

        ok = call_feed(&g, &memory, &s, (uint8_t)*c);
        if (ok)
            assert_true(call_rest(&g, &s) + 1 >= before); /* no symbol shortens the way by more than itself */
    }
    ok = ok && call_feed(&g, &memory, &s, ';') && call_ended(&g, &s);
    call_memory_free(&memory);
    call_schema_free(&read);
    call_form_free(&form);
    json_decref(tools);
    return ok;
}

static void arguments_are_taken_as_the_schema_has_them(void **state)
{
    static const char one[] =
        "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"number\"}, \"s\": {\"type\": \"string\"}, \"i\": "
        "{\"type\": \"integer\", \"minimum\": 5, \"maximum\": 120}}, \"required\": [\"x\"]}";

    (void)state;
    assert_true(accepts(one, "{\"x\": 1}"));
    assert_true(accepts(one, "{\"x\":-0.5e-7,\"s\":\"\"}"));
    assert_true(accepts(one, "{\"s\": \"\xc3\xa9 \\n <\\/tool_call>\", \"x\": 0}"));
    assert_true(accepts(one, "{\"i\": 120, \"x\": 1}"));
    assert_false(accepts(one, "{}"));
    assert_false(accepts(one, "{\"s\": \"\"}"));
    assert_false(accepts(one, "{\"x\": 1, \"x\": 1}"));
    assert_false(accepts(one, "{\"x\": 01}"));
    assert_false(accepts(one, "{\"x\": 1.}"));
    assert_false(accepts(one, "{\"x\":  1}"));
    assert_false(accepts(one, "{\"x\": \"1\"}"));
    assert_false(accepts(one, "{\"i\": 4, \"x\": 1}"));
    assert_false(accepts(one, "{\"i\": 121, \"x\": 1}"));
    assert_false(accepts(one, "{\"y\": 1}"));
    assert_false(accepts(one, "{\"x\": 1,}"));
    assert_false(accepts(one, "{\"s\": \"</tool_call>\", \"x\": 0}"));
    assert_false(accepts(one, "{\"s\": \"\xc3\", \"x\": 0}"));
    assert_false(accepts(one, "{\"s\": \"\xed\xa0\x80\", \"x\": 0}"));
    assert_false(accepts("{\"type\": \"object\"}", "{\"a\": 1, \"a\": 2}"));
    assert_true(accepts("{\"type\": \"object\"}", "{\"a\": {\"a\": [1, {\"b\": null}]}, \"b\": 2}"));
}

static void schemas_that_cannot_be_kept_to_are_refused_by_name(void **state)
{
    static const struct {
        const char *schema, *said;
    } bad[] = {
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"string\", \"pattern\": \"a\"}}}", "pattern" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"text\"}}}", "no type text" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"enum\": []}}}", "no value fits" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}}}",
          "no value fits" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"$ref\": \"#/$defs/x\"}}, \"$defs\": {\"x\": {\"type\": \"array\", "
          "\"items\": "
          "{\"$ref\": \"#/$defs/x\"}}}}",
          "deeper" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"$ref\": \"#/none\"}}}", "points nowhere" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"anyOf\": [{\"type\": \"string\"}, {\"enum\": [\"a\"]}]}}}",
          "begin alike" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"oneOf\": [{}, {\"type\": \"boolean\"}]}}}", "begin alike" },
        { "{\"type\": \"string\"}", "an object" },
        { "{\"type\": \"object\", \"properties\": {\"</tool_call>\": {}}}", "begins or ends a call" },
        { "{\"type\": \"object\", \"properties\": [1]}", "properties" },
        { "{\"type\": \"object\", \"required\": [\"z\", \"z\\u0000\"]}", "required[1]: a name with a zero byte" },
        { "{\"type\": \"object\\u0000\"}", "a name or a list of names" },
        { "{\"type\": \"object\", \"properties\": {\"x\": {\"$ref\": \"#\\u0000\"}}}", "points nowhere" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *tools = json_pack("[{s:s, s:o}]", "name", "f", "parameters", parse(bad[i].schema));
        struct call_schema read;
        struct error err = { 0 };

        if (call_schema_read(&read, tools, &err) || !strstr(err.message, bad[i].said))
            fail_msg("%s: %s", bad[i].schema, err.message);
        assert_non_null(strstr(err.place, "tools[0]"));
        call_schema_free(&read);
        json_decref(tools);
    }
}

/* ---- the form ------------------------------------------------------------------------------------------------------------------ */

static bool learned(const char *source, struct call_form *form, struct error *err)
{
    struct template *template = template_new(source, strlen(source), err);
    json_t *conversation =
        parse("{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": [{\"type\": \"function\", "
              "\"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}}]}");
    struct conversation_format format = { .tokenizer = tokenizer, .template = template, .context = 1000 };
    bool ok;

    assert_non_null(template);
    ok = call_form_read(form, &format, conversation, err);
    template_free(template);
    json_decref(conversation);
    return ok;
}

static void is(const struct call_symbols *symbols, const char *text)
{
    assert_int_equal(symbols->count, strlen(text));
    for (size_t i = 0; i < symbols->count; i++)
        assert_int_equal(symbols->list[i], (uint8_t)text[i]);
}

#define TURNS(calls)                                                                                                             \
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' " \
    "}}" calls "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

static void how_calls_are_printed_is_learned_from_the_template(void **state)
{
    struct call_form form;
    struct error err = { 0 };

    (void)state;
    if (!learned(TURNS("{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"),
                 &form, &err))
        fail_msg("%s", err.message);
    is(&form.head, "<tool_call>\n{\"name\": \"");
    is(&form.middle, "\", \"arguments\": ");
    is(&form.tail, "}\n</tool_call>");
    is(&form.again, "}\n</tool_call><tool_call>\n{\"name\": \"");
    is(&form.later, "<tool_call>\n{\"name\": \"");
    call_form_free(&form);
    if (!learned(TURNS("{% if m.tool_calls %}[TOOL_CALLS]["
                       "{% for c in m.tool_calls %}{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments "
                       "| tojson }}}"
                       "{% if not loop.last %}, {% endif %}{% endfor %}]{% endif %}"),
                 &form, &err))
        fail_msg("%s", err.message);
    is(&form.head, "[TOOL_CALLS][{\"name\": \"");
    is(&form.tail, "}]");
    is(&form.again, "}, {\"name\": \"");
    call_form_free(&form);
    if (!learned(TURNS("{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}"
                       "{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": {{ "
                       "m.tool_calls[0].function.arguments | tojson "
                       "}}}{% endif %}"),
                 &form, &err))
        fail_msg("%s", err.message);
    is(&form.head, "{\"name\": \"");
    is(&form.middle, "\", \"parameters\": ");
    is(&form.again, "");
    is(&form.later, "{\"name\": \"");
    call_form_free(&form);
    if (!learned("{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{% if "
                 "m.tool_calls %}<think>\n\n</think>\n\n{% if m.content "
                 "%}{{ m.content }}\n\n"
                 "{% endif %}<tool_call>{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"arguments\": {{ "
                 "m.tool_calls[0].function.arguments | tojson }}}"
                 "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
                 "%}<|im_start|>assistant\n{% endif %}",
                 &form, &err))
        fail_msg("%s", err.message);
    is(&form.head, "<think>\n\n</think>\n\n<tool_call>{\"name\": \"");
    is(&form.later, "<tool_call>{\"name\": \"");
    call_form_free(&form);
    if (!learned(
            TURNS("{% if m.tool_calls and m.content %}{{ raise_exception('either') }}{% endif %}{% for c in m.tool_calls or [] %}"
                  "<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"),
            &form, &err))
        fail_msg("%s", err.message);
    is(&form.later, ""); /* no text stands before a call there */
    call_form_free(&form);
}

static void calls_that_are_no_json_are_refused(void **state)
{
    struct call_form form;
    struct error err = { 0 };

    (void)state;
    assert_false(learned(
        TURNS("{% for c in m.tool_calls or [] %}<function={{ c.function.name }}>{% for k, v in c.function.arguments | items "
              "%}<{{ k }}>{{ v }}{% endfor %}</function>{% endfor %}"),
        &form, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    call_form_free(&form);
    err = (struct error){ 0 };
    assert_false(learned(TURNS(""), &form, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    call_form_free(&form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_that_may_be_drawn_is_whole_and_obeys_its_schema),
        cmocka_unit_test(arguments_are_taken_as_the_schema_has_them),
        cmocka_unit_test(schemas_that_cannot_be_kept_to_are_refused_by_name),
        cmocka_unit_test(how_calls_are_printed_is_learned_from_the_template),
        cmocka_unit_test(calls_that_are_no_json_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
