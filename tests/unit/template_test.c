#include "native/text/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "native/base/file.h"
#include "native/base/json.h"

static const struct template_options TODAY = { .date = { 2026, 11, 29 } };

/* The rendering, or NULL with `err`. */
static char *render(const char *source, const json_t *context, struct template_output *out, struct error *err)
{
    struct template *t = template_new(source, strlen(source), err);
    struct template_output own = { 0 };
    char *text = NULL;

    if (t && template_render(t, context, &TODAY, out ? out : &own, err))
        text = strdup(buffer_text(out ? &out->text : &own.text));
    template_output_free(&own);
    template_free(t);
    return text;
}

/* template_cases.json: some 190 sources with what Jinja2 3.1 prints for them (tools/oracle/template_cases.py). */
static void every_case_prints_what_jinja_prints(void **state)
{
    struct error err = { 0 };
    json_t *file = json_read_file(RONDO_SOURCE "/tests/golden/text/template_cases.json", 1 << 20, &err);
    const json_t *cases = json_object_get(file, "cases");
    unsigned wrong = 0;

    (void)state;
    assert_true(json_array_size(cases) > 150);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *source = json_string_value(json_array_get(json_array_get(cases, i), 0));
        const char *want = json_string_value(json_array_get(json_array_get(cases, i), 1));
        char message[900] = "";

        error_clear(&err);

        char *got = render(source, json_object_get(file, "context"), NULL, &err);

        if (!got)
            error_text(&err, message, sizeof message);
        if (want ? !got || strcmp(got, want) : got != NULL) {
            wrong++;
            print_message("%s\n  want %s\n  got  %s%s\n", source, want ? want : "a fault", got ? got : "", message);
        }
        free(got);
    }
    json_decref(file);
    assert_int_equal(wrong, 0);
}

static const char *fixture(const char *folder, const char *name, char *path, size_t size)
{
    const char *root = getenv("RONDO_FIXTURES");

    snprintf(path, size, "%s/%s/%s", root ? root : RONDO_SOURCE "/../shared/fixtures", folder, name);
    if (!file_exists(path))
        snprintf(path, size, "%s/tests/golden/text/%s", RONDO_SOURCE, name);
    return path;
}

/* Arguments as objects, as the oracle prepares them; text would be kept verbatim. */
static void parse_arguments(json_t *context)
{
    json_t *messages = json_object_get(context, "messages");

    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls");

        for (size_t j = 0; j < json_array_size(calls); j++) {
            json_t *function = json_object_get(json_array_get(calls, j), "function");
            const char *text = json_string_value(json_object_get(function, "arguments"));

            if (text)
                json_object_set_new(function, "arguments", json_read(text, strlen(text), 1 << 20, NULL));
        }
    }
}

/* template_renderings.txt: 40 published templates, five contexts each, hashes of what Jinja2 renders. */
static void published_templates_render_as_jinja_renders_them(void **state)
{
    FILE *list = fopen(RONDO_SOURCE "/tests/golden/text/template_renderings.txt", "r");
    char template[200], context[200], want[40], path[700];
    unsigned right = 0, wrong = 0;

    (void)state;
    assert_non_null(list);
    while (fscanf(list, "%199s %199s %39s", template, context, want) == 3) {
        struct buffer source = { 0 };
        struct error err = { 0 };
        unsigned char digest[16];
        char hex[33] = "raises";

        if (!file_read(fixture("templates", template, path, sizeof path), 1 << 20, &source, &err)) {
            fclose(list);
            buffer_free(&source);
            skip();
        }

        json_t *values = json_read_file(fixture("contexts", context, path, sizeof path), 1 << 20, &err);
        parse_arguments(values);

        char *got = render(buffer_text(&source), values, NULL, &err);

        if (got) {
            crypto_generichash(digest, sizeof digest, (const unsigned char *)got, strlen(got), NULL, 0);
            sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
        }
        if (strcmp(hex, want)) {
            wrong++;
            print_message("%s with %s: %s, want %s\n", template, context, hex, want);
        } else {
            right++;
        }
        free(got);
        json_decref(values);
        buffer_free(&source);
    }
    fclose(list);
    print_message("%u renderings equal, %u not\n", right, wrong);
    assert_int_equal(wrong, 0);
    assert_true(right >= 200);
}

/* template_random.json: random conversations as transformers renders them (tools/oracle/template_random.py). */
static void random_conversations_render_as_transformers_renders_them(void **state)
{
    static const struct template_options options = { .date = { 2026, 1, 1 }, .literal = true };
    struct error err = { 0 };
    json_t *cases = json_read_file(RONDO_SOURCE "/tests/golden/text/template_random.json", 1 << 20, &err);
    char path[700];
    unsigned wrong = 0;

    (void)state;
    assert_true(json_array_size(cases) >= 40);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i), *want = json_array_get(item, 2);
        const char *name = json_string_value(json_array_get(item, 0));
        struct template_output out = { 0 };
        struct buffer source = { 0 };
        unsigned char digest[16];
        char hex[33];

        if (!file_read(fixture("templates", name, path, sizeof path), 1 << 20, &source, &err)) {
            buffer_free(&source);
            json_decref(cases);
            skip();
        }

        struct template *t = template_new(buffer_text(&source), source.size, &err);
        bool ok = t && template_render(t, json_array_get(item, 1), &options, &out, &err);

        crypto_generichash(digest, sizeof digest, out.text.bytes, out.text.size, NULL, 0);
        sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
        if (ok != json_is_string(want) || (ok && strcmp(hex, json_string_value(want)) != 0)) {
            wrong++;
            print_message("%s, case %zu\n", name, i);
        }
        template_output_free(&out);
        template_free(t);
        buffer_free(&source);
    }
    json_decref(cases);
    assert_int_equal(wrong, 0);
}

static json_t *parse(const char *text)
{
    struct error err = { 0 };
    json_t *json = json_read(text, strlen(text), 1 << 20, &err);

    assert_non_null(json);
    return json;
}

static void arguments_stay_as_they_were_written(void **state)
{
    json_t *context =
        parse("{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":"
              "\"{\\\"b\\\":1,  \\\"a\\\": 1.50}\"}},{\"function\":{\"name\":\"g\",\"arguments\":\"not json\"}}]}]}");
    char *text =
        render("{% for c in messages[0].tool_calls %}{% set a = c.function.arguments %}{{ a }}|{{ a|tojson }}|{{ '>' + a "
               "}}|{% if a is mapping %}{% for k, v in a.items() %}{{ k }}={{ v }},{% endfor %}{% endif %};{% endfor %}",
               context, NULL, NULL);

    (void)state;
    assert_string_equal(text, "{\"b\":1,  \"a\": 1.50}|{\"b\":1,  \"a\": 1.50}|>{\"b\":1,  \"a\": 1.50}|b=1,a=1.5,;"
                              "not json|\"not json\"|>not json|;");
    free(text);
    json_decref(context);
}

static void spans_tell_whose_text_it_is(void **state)
{
    json_t *context =
        parse("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"yo!\"}]}");
    struct template_output out = { 0 };
    char *text =
        render("<{% for m in messages[::1] %}[{{ m.role[0] }}{% for n in messages %}{% endfor %}{% generation %}{{ m.content "
               "}}{% endgeneration %}]{% endfor %}>",
               context, &out, NULL);

    (void)state;
    assert_string_equal(text, "<[uhi][ayo!]>");
    assert_int_equal(out.message_count, 2);
    assert_int_equal(out.messages[1].message, 1);
    assert_memory_equal(text + out.messages[1].start, "[ayo!]", out.messages[1].end - out.messages[1].start);
    assert_int_equal(out.generation_count, 2);
    assert_int_equal(out.generation[1].message, 1);
    assert_memory_equal(text + out.generation[1].start, "yo!", 3);
    template_output_free(&out);
    free(text);
    json_decref(context);
}

static void a_raise_reaches_the_caller_with_its_message(void **state)
{
    json_t *context = parse("{\"messages\":[]}");
    struct error err = { 0 };

    (void)state;
    assert_null(render("a\n{{ raise_exception('roles must alternate') }}", context, NULL, &err));
    assert_int_equal(err.code, ERROR_SCRIPT);
    assert_string_equal(err.message, "roles must alternate");
    assert_string_equal(err.place, "line 2");
    json_decref(context);
}

/* Each would take memory, time or stack without end. */
static void hostile_templates_are_stopped(void **state)
{
    static const char *const sources[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for a in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'x' * 9999999999 }}",
        "{{ [0] * 9999999999 }}",
        "{% for a in range(99999) %}{% for b in range(999) %}0123456789012345678901234567890123456789{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% set ns = namespace(l=[1]) %}{% for a in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for a in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[1], m=[1]) %}{% for a in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}"
        "{% endfor %}{{ ns.l == ns.m }}",
        "{{ 'a' * 99999999 ~ ('b' * 99999999) }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 2 ** 9999999999 }}",
        "{{ 0x10000000000000000 }}",
        "{{ '%999999d' % 1 }}",
        "{{ 'a'|indent(99999999, true) }}",
        "{{ [1]|tojson(indent=99999999) }}",
        "{{ ('a' * 9999999).replace('a', 'a' * 9999) }}",
    };
    json_t *context = parse("{\"messages\":[]}");

    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct error err = { 0 };

        if (render(sources[i], context, NULL, &err))
            fail_msg("not stopped: %s", sources[i]);
        assert_true(err.code == ERROR_LIMIT || err.code == ERROR_UNSUPPORTED || err.code == ERROR_SYNTAX);
    }
    json_decref(context);
}

static void deep_nesting_is_refused(void **state)
{
    static const char *const openings[] = { "(", "[", "{% if 1 %}", "{% for a in b %}", "-", "not ", "{{ a.b" };
    struct error err = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        struct buffer source = { 0 };

        if (openings[i][0] != '{')
            buffer_add_text(&source, "{{ ");
        for (int j = 0; j < 20000; j++)
            buffer_add_text(&source, openings[i]);
        error_clear(&err);
        assert_null(template_new(buffer_text(&source), source.size, &err));
        assert_true(err.code == ERROR_LIMIT || err.code == ERROR_SYNTAX);
        buffer_free(&source);
    }
}

static void what_is_not_offered_is_named(void **state)
{
    struct error err = { 0 };

    (void)state;
    assert_null(template_new("{% include 'x' %}", 17, &err));
    assert_int_equal(err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "include"));
    error_clear(&err);
    assert_null(template_new("\n{{ a|frob }}", 13, &err));
    assert_non_null(strstr(err.message, "frob"));
    assert_string_equal(err.place, "line 2");
    error_clear(&err);
    assert_null(template_new("\xff", 1, &err));
    assert_int_equal(err.code, ERROR_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_prints_what_jinja_prints),
        cmocka_unit_test(published_templates_render_as_jinja_renders_them),
        cmocka_unit_test(random_conversations_render_as_transformers_renders_them),
        cmocka_unit_test(arguments_stay_as_they_were_written),
        cmocka_unit_test(spans_tell_whose_text_it_is),
        cmocka_unit_test(a_raise_reaches_the_caller_with_its_message),
        cmocka_unit_test(hostile_templates_are_stopped),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(what_is_not_offered_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
