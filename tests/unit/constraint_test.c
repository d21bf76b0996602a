/* Which tokens may come where an answer is a call or free text, with the pocket model's tokenizer and template. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/model/source.h"
#include "runtime/worker/constraint.h"
#include "runtime/worker/session.h"
#include "tests/fixture/fixture.h"

enum { MOST = 200 };

static struct session session;
static struct token_table table;
static json_t *conversation;

/* A constraint after an answer that begins with `text`, and the bits of what may come next. */
struct answer {
    struct constraint c;
    struct tokens tokens;
    uint64_t *bits;
};

static void begin(struct answer *a, const char *text, uint64_t most)
{
    struct error err = { 0 };
    struct generation g = { 0 };
    uint32_t ends[1];

    *a = (struct answer){ .bits = calloc(table.ids / 64 + 1, sizeof *a->bits) };
    FIXTURE_OK(tokenizer_encode(session.tokenizer, text, strlen(text), true, &a->tokens, &err), &err);
    FIXTURE_OK(constraint_new(&a->c, &session, &table, conversation, true, most, &err), &err);
    g.tokens = a->tokens.ids;
    for (g.count = 0;; g.count++) { /* token by token, as they are drawn */
        memset(a->bits, 0, (table.ids / 64 + 1) * sizeof *a->bits);
        assert_true(tokenizer_find(session.tokenizer, "<|im_end|>", 10, &ends[0]));
        constraint_allow(&a->c, &table, &g, most, ends, 1, a->bits);
        if (g.count == a->tokens.count)
            return;
        assert_true(a->bits[g.tokens[g.count] / 64] >> g.tokens[g.count] % 64 & 1);
    }
}

static void end(struct answer *a)
{
    constraint_free(&a->c);
    tokens_free(&a->tokens);
    free(a->bits);
}

static bool may(const struct answer *a, uint32_t id)
{
    return a->bits[id / 64] >> id % 64 & 1;
}

static uint32_t id_of(const char *token)
{
    uint32_t id = 0;

    assert_true(tokenizer_find(session.tokenizer, token, strlen(token), &id));
    return id;
}

static size_t count_allowed(const struct answer *a)
{
    size_t count = 0;

    for (uint32_t id = 0; id < table.ids; id++)
        count += may(a, id);
    return count;
}

static void text_is_free_and_may_end_anywhere(void **state)
{
    static const char *const texts[] = { "", "Hello", "Hello <tool_call>{\"names\": \"nothing", "<tool_call> no",
                                         "<tool_call><tool_call>{" };
    struct answer a;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        begin(&a, texts[i], MOST);
        assert_int_equal(count_allowed(&a), table.ids);
        assert_true(may(&a, id_of("<|im_end|>")));
        end(&a);
    }
}

static void only_names_may_come(const char *text)
{
    struct answer a;

    begin(&a, text, MOST);
    assert_false(may(&a, id_of("<|im_end|>")));
    assert_true(count_allowed(&a) > 0);
    for (uint32_t id = 0; id < table.ids; id++)
        if (may(&a, id)) {
            const struct token_entry *e = &table.list[table.place[id] - 1];
            bool begins = false;

            for (uint32_t i = 0; i < a.c.schema.names.count; i++)
                begins |= strncmp(a.c.schema.names.list[i].bytes, e->bytes,
                                  e->size < a.c.schema.names.list[i].size ? e->size : a.c.schema.names.list[i].size) == 0;
            assert_true(begins);
        }
    end(&a);
}

static void behind_the_opening_stands_a_call_wherever_it_is(void **state)
{
    (void)state;
    only_names_may_come("<tool_call>{\"name\": \"");
    only_names_may_come("Let me look.\n<tool_call>{\"name\": \"");
    only_names_may_come("<tool_call>{\"<tool_call>{\"name\": \"");
    only_names_may_come("<tool_call><tool_call>{\"name\": \"");
}

/* A text behind which the whole call of the row's own tool stands ends there, and nowhere within the call. */
static void a_call_behind_text_is_whole_and_ends_the_turn(void **state)
{
    struct answer a;
    char text[400];

    (void)state;
    begin(&a, "Yes. ", MOST);
    snprintf(text, sizeof text, "Yes. <tool_call>{\"name\": \"%s", a.c.schema.names.list[0].bytes);
    end(&a);
    begin(&a, text, MOST);
    assert_false(may(&a, id_of("<|im_end|>")));
    assert_true(may(&a, id_of("\"")));
    assert_false(may(&a, id_of("}")));
    end(&a);
}

/* Behind text made of pieces of the opening, which hold none that is whole, an opening is found, and not before. */
static void an_opening_is_found_among_pieces_of_it(void **state)
{
    static const char opening[] = "<tool_call>{\"name\": \"";
    size_t tried = 0;

    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        struct answer a;
        char text[96];
        size_t size = 0;

        while (size < 40) {
            const float drawn = fixture_weight("pieces", round * 64 + (uint32_t)size, 2) + 1; /* [0, 2) */

            size += (size_t)snprintf(text + size, sizeof text - size, "%.*s%s", 1 + (int)(drawn * 10), opening,
                                     (int)(drawn * 64) % 3 ? "" : "x");
            text[size] = 0;
        }
        strcat(text, opening);
        if (strstr(text, opening) != text + size)
            continue;
        begin(&a, text, MOST);
        assert_true(a.c.place.calls);
        end(&a);
        text[size] = 0;
        begin(&a, text, MOST);
        assert_false(a.c.place.calls);
        end(&a);
        tried++;
    }
    assert_true(tried > 20);
}

/* One symbol before the opening ends: text may part from it, but nothing may end it otherwise than a call does. */
static void no_call_is_begun_that_is_none_or_has_no_room(void **state)
{
    struct answer a;

    (void)state;
    for (uint64_t most = 16; most <= MOST; most += MOST - 16) {
        begin(&a, "<tool_call>{\"name\": ", most);
        assert_true(may(&a, id_of("a")));
        assert_true(may(&a, id_of("<|im_end|>")));
        assert_int_equal(may(&a, id_of("\"")), most == MOST);
        for (size_t i = 0; i < table.count; i++)
            if (table.list[i].bytes[0] == '"' && table.list[i].size > 1 && strchr(" ,:}", table.list[i].bytes[1]))
                assert_false(may(&a, table.list[i].id));
        end(&a);
    }
}

static int setup(void **state)
{
    struct error err = { 0 };
    struct rows rows;
    const char *source;

    (void)state;
    session.model = model_open(RONDO_SOURCE "/models/pocket", &err);
    FIXTURE_OK(session.model != NULL, &err);
    session.tokenizer = model_tokenizer(session.model, &err);
    FIXTURE_OK(session.tokenizer != NULL, &err);
    source = model_chat_template(session.model);
    session.template = template_new(source, strlen(source), &err);
    FIXTURE_OK(session.template != NULL, &err);
    session.variables = json_deep_copy(model_template_variables(session.model));
    session.date = TEMPLATE_DATE;
    session.rules.context = 1024;
    FIXTURE_OK(token_table_of(&table, session.tokenizer, &err), &err);
    FIXTURE_OK(rows_open(&rows, RONDO_SOURCE "/models/pocket/tools/held_out.jsonl", &err), &err);
    conversation = rows_read(&rows, 0, &err);
    FIXTURE_OK(conversation != NULL, &err);
    json_array_remove(json_object_get(conversation, "messages"), json_array_size(json_object_get(conversation, "messages")) - 1);
    rows_free(&rows);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(conversation);
    token_table_free(&table);
    json_decref(session.variables);
    template_free(session.template);
    tokenizer_free(session.tokenizer);
    model_close(session.model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_free_and_may_end_anywhere),
        cmocka_unit_test(behind_the_opening_stands_a_call_wherever_it_is),
        cmocka_unit_test(a_call_behind_text_is_whole_and_ends_the_turn),
        cmocka_unit_test(an_opening_is_found_among_pieces_of_it),
        cmocka_unit_test(no_call_is_begun_that_is_none_or_has_no_room),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
