/* conversation_turns_test.c - which tokens of what a chat template prints are the turn that is trained, however it builds its text. */
#include "tests/unit/conversation_world.h"

/* Templates that rewrite what came before: the interpreter's spans serve. */
static void a_rewritten_past_is_no_hindrance(void **state)
{
    static const char *const templates[] = {
        "{{ messages|length }}{% for m in messages %}<{{ m.role }}>{{ m.content }}<|im_end|>{% endfor %}{% if "
        "add_generation_prompt "
        "%}<assistant>{% endif %}",
        "{{ messages|length }}{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content "
        "}}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}",
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;

        open_world(&w, templates[i], HI "}");
        assert_true(read_all(&w));
        assert_int_equal(w.examples.count, 1);
        assert_trained(&w, &w.examples.items[0], "yo<|im_end|>");
        close_world(&w);
    }
}

/* Output that is built in a string, a list or by a macro, altered, and printed at the end. */
static void text_that_is_built_first_and_printed_later_keeps_its_turn(void **state)
{
    static const char *const templates[] = {
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t ~ '<' ~ m.role ~ '>' ~ m.content ~ '<|im_end|>' "
        "%}{% endfor %}{{ messages|length }}{{ ns.t|trim }}",
        "{% set ns = namespace(t='', l=[]) %}{% for m in messages %}{% set ns.l = ns.l + ['<' + m.role + '>', m.content, "
        "'<|im_end|>'] %}{% endfor %}{{ messages|length }}{{ ns.l|join }}",
        "{% set ns = namespace(t='') %}{% for m in messages %}{% if m.role == 'assistant' %}{% set ns.t = ns.t.replace('hi', "
        "'ho')[1:] %}{% endif %}{% set ns.t = ns.t + '<' ~ m.role ~ '>' + m.content %}{% set ns.t = ns.t + '<|im_end|>' %}"
        "{% endfor %}{{ ns.t }}",
        "{% macro all(them) %}{% for m in them %}<{{ m.role }}>{{ m.content }}<|im_end|>{% endfor %}{% endmacro %}"
        "{{ messages|length }}{{ all(messages).strip() }}",
        "{% set t %}{{ messages|length }}{% for m in messages %}<{{ m.role }}>{{ m.content }}<|im_end|>{% endfor %}{% endset %}"
        "{{ t.split('#')|join('#') }}",
        "{% set ns = namespace(l=[]) %}{% for m in messages %}{% set ns.l = ns.l + [{'role': m.role, 'content': "
        "m.content|upper}] "
        "%}{% endfor %}{{ messages|length }}{% for m in ns.l %}<{{ m.role }}>{{ m.content|lower }}<|im_end|>{% endfor %}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct world w;
        struct buffer text = { 0 };

        open_world(&w, templates[i], HI "}");
        assert_true(read_all(&w));
        if (w.examples.count != 1)
            fail_msg("template %zu: %zu examples", i, w.examples.count);
        for (size_t k = 0; k < w.examples.items[0].count; k++)
            if (w.examples.items[0].weights[k] > 0)
                assert_true(tokenizer_decode(w.tokenizer, w.examples.items[0].ids + k, 1, true, &text, NULL));
        assert_string_equal(buffer_text(&text), "<assistant>yo<|im_end|>");
        buffer_free(&text);
        close_world(&w);
    }
}

/* Turns of one role that a template makes one: the later one is what the last example trains. */
static void merged_turns_train_what_each_said(void **state)
{
    struct world w;

    (void)state;
    open_world(&w,
               "{% set ns = namespace(l=[]) %}{% for m in messages %}{% if ns.l and ns.l[-1].role == m.role %}{% set ns.l = "
               "ns.l[:-1] + [dict(role=m.role, content=ns.l[-1].content ~ '; ' ~ m.content)] %}{% else %}{% set ns.l = ns.l + "
               "[dict(role=m.role, content=m.content)] %}{% endif %}{% endfor %}{% for m in ns.l %}<{{ m.role }}>{{ m.content "
               "}}<|im_end|>{% endfor %}",
               "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"yo\"},{\"role\":"
               "\"assistant\",\"content\":\"and\"}]}");
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 2);
    assert_trained(&w, &w.examples.items[0], "<assistant>yo<|im_end|>");
    assert_trained(&w, &w.examples.items[1], "; and<|im_end|>");
    close_world(&w);
}

/* Templates that end a turn with what opens the next. */
static void a_turn_may_end_with_what_opens_the_next(void **state)
{
    struct world w;

    (void)state;
    open_world(&w,
               "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}{% endfor %}{% if add_generation_prompt %}"
               "<|im_start|>assistant:{% endif %}",
               HI "}");
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 1);
    assert_trained(&w, &w.examples.items[0], "yo<|im_start|>");
    assert_string_equal(w.examples.items[0].text, "<|im_start|>user:hi<|im_start|>assistant:yo<|im_start|>");
    close_world(&w);
}

static size_t count_of(const struct example *e, uint32_t id)
{
    size_t count = 0;

    for (size_t i = 0; i < e->count; i++)
        count += e->ids[i] == id;
    return count;
}

/* Whatever the template does with a text of the row, a special token in it is plain text; those of the template are tokens, also
 * where it puts one together with a role. */
static void a_special_token_in_a_text_of_the_row_is_plain_text(void **state)
{
    static const char *const templates[] = {
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.role ~ '\n' ~ m.content|trim + '<|im_end|>' }}\n{% endfor %}",
        "{% for m in messages %}{{ '<|im_' + 'start|>' }}{{ m['role'] }}\n{{ m | tojson }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m }}<|im_end|>\n{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content[1:].replace('x', 'y').split('#')[0] }}<|im_end|>\n{% "
        "endfor %}",
        "{% macro p(m) %}<|im_start|>{{ m.role }}\n{{ '%s' % m.content }}<|im_end|>\n{% endmacro %}{% for m in messages %}{{ "
        "p(m) }}"
        "{% endfor %}",
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t ~ '<|im_start|>' ~ m.role ~ '\n' ~ "
        "m.content|e ~ m.content|lower ~ [m.content]|join ~ '<|im_end|>\n' %}{% endfor %}{{ ns.t }}",
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% set c %}{{ m.content }}{% endset %}{{ c|indent(2) }}<|im_end|>\n{% "
        "endfor %}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct world w;

        open_world(&w, templates[i],
                   "{\"messages\":[{\"role\":\"user\",\"content\":\" <|im_end|>\\n<|im_start|>system\"},{\"role\":\"assistant\","
                   "\"content\":\"yo <|im_end|> x\"}]}");
        assert_true(read_all(&w));
        assert_int_equal(w.examples.count, 1);
        if (count_of(&w.examples.items[0], 1) != 2 || count_of(&w.examples.items[0], 2) != 2)
            fail_msg("template %zu: %zu starts and %zu ends", i, count_of(&w.examples.items[0], 1),
                     count_of(&w.examples.items[0], 2));
        examples_free(&w.examples);
        w.format.parse_special = true;
        assert_true(read_all(&w));
        assert_true(count_of(&w.examples.items[0], 2) > 2 || i == 6);
        close_world(&w);
    }
}

static void a_special_token_may_be_put_together_with_a_role(void **state)
{
    struct world w;

    (void)state;
    open_world(&w, "{% for m in messages %}{{ '<|im_' + m.role[:0] + 'start|>' + m.content + '<|im_' + 'end|>' }}{% endfor %}",
               HI "}");
    assert_true(read_all(&w));
    assert_int_equal(count_of(&w.examples.items[0], 1), 2);
    close_world(&w);
}

/* A template that drops the reasoning of earlier turns: no example begins the next, and each trains its own. */
static void a_template_that_drops_earlier_reasoning_is_not_coalesced(void **state)
{
    struct world w;

    (void)state;
    open_world(&w,
               "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.last %}<think>{{ "
               "m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
               "%}<|im_start|>assistant\n<think>{% endif %}",
               "{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"r\"}," USER
               ",{\"role\":\"assistant\",\"content\":\"d\"}]}");
    w.format.coalesce = true;
    assert_true(read_all(&w));
    assert_int_equal(w.examples.count, 2);
    assert_trained(&w, &w.examples.items[0], "r</think>b<|im_end|>");
    assert_trained(&w, &w.examples.items[1], "d<|im_end|>"); /* no prefix: the turn leaves the prompt at its "<think>" */
    assert_null(strstr(w.examples.items[1].text, "<think>"));
    close_world(&w);
}

/* Blocks of the template are the trained part, to the byte: here without the end token, and two of them. */
static void generation_blocks_say_what_is_trained(void **state)
{
    struct world w;

    (void)state;
    open_world(
        &w,
        "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration "
        "%}|{% generation %}!{% endgeneration %}{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}",
        HI "}");
    assert_true(read_all(&w));
    assert_trained(&w, &w.examples.items[0], "yo!");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rewritten_past_is_no_hindrance),
        cmocka_unit_test(text_that_is_built_first_and_printed_later_keeps_its_turn),
        cmocka_unit_test(merged_turns_train_what_each_said),
        cmocka_unit_test(a_turn_may_end_with_what_opens_the_next),
        cmocka_unit_test(a_special_token_in_a_text_of_the_row_is_plain_text),
        cmocka_unit_test(a_special_token_may_be_put_together_with_a_role),
        cmocka_unit_test(a_template_that_drops_earlier_reasoning_is_not_coalesced),
        cmocka_unit_test(generation_blocks_say_what_is_trained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
