#include "native/text/dialect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/base/json.h"

/* Rows are written with ' for " and ` for '. */
static json_t *parse(const char *text)
{
    struct error err = { 0 };
    char *row = strdup(text);
    json_t *value;

    for (char *at = row; *at; at++)
        *at = *at == '\'' ? '"' : *at == '`' ? '\'' : *at;
    value = json_read(row, strlen(row), 1 << 20, &err);
    if (!value)
        fail_msg("%s: %s in %s", err.place, err.message, row);
    free(row);
    return value;
}

static void becomes(enum dialect dialect, const char *from, const char *to)
{
    struct error err = { 0 };
    json_t *row = parse(from), *want = parse(to), *got = dialect_convert(row, dialect, &err);
    char *text = got ? json_dumps(got, JSON_COMPACT) : NULL;

    if (!got || !json_equal(got, want))
        fail_msg("%s\nbecomes %s\nnot     %s\n%s %s", from, text, to, err.place, err.message);
    free(text);
    json_decref(row);
    json_decref(want);
    json_decref(got);
}

static void refused(enum dialect dialect, const char *from, const char *place, const char *message)
{
    struct error err = { 0 };
    json_t *row = parse(from), *got = dialect_convert(row, dialect, &err);
    char text[1024];

    assert_null(got);
    error_text(&err, text, sizeof text);
    if (strcmp(err.place, place) || !strstr(err.message, message) || !err.hint[0])
        fail_msg("%s\ngives \"%s\", wanted \"%s: %s (a hint)\"", from, text, place, message);
    json_decref(row);
}

static void openai_parts_are_joined_and_old_functions_become_tools(void **state)
{
    (void)state;
    becomes(DIALECT_OPENAI,
            "{'id':7,'messages':[{'role':'user','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]},"
            "{'role':'assistant','content':null,'function_call':{'name':'f','arguments':'{}'}},"
            "{'role':'function','name':'f','content':'1'},{'role':'assistant','content':'c','refusal':null,'weight':0}],"
            "'functions':[{'name':'f','parameters':{}}]}",
            "{'messages':[{'role':'user','content':'ab'},{'role':'assistant','content':null,'tool_calls':[{'type':'function',"
            "'function':{'name':'f','arguments':'{}'}}]},{'role':'tool','name':'f','content':'1'},{'role':'assistant',"
            "'content':'c','weight':0}],'tools':[{'type':'function','function':{'name':'f','parameters':{}}}]}");
}

static void our_own_shape_stays_as_it_is(void **state)
{
    const char *row = "{'messages':[{'role':'system','content':'s'},{'role':'user','content':'a'},{'role':'assistant',"
                      "'content':null,'tool_calls':[{'id':'1','type':'function','function':{'name':'f','arguments':{'x':1}}}]},"
                      "{'role':'tool','tool_call_id':'1','content':'ok'}],'tools':[{'type':'function','function':{'name':'f'}}]}";

    (void)state;
    becomes(DIALECT_AUTO, row, row);
}

static void sharegpt_turns_get_our_roles(void **state)
{
    (void)state;
    becomes(DIALECT_SHAREGPT,
            "{'system':'s','tools':'[{\\'name\\':\\'f\\'}]','conversations':[{'from':'human','value':'a'},"
            "{'from':'function_call','value':'{\\'name\\':\\'f\\',\\'arguments\\':{\\'x\\':1}}'},"
            "{'from':'observation','value':'2'},{'from':'gpt','value':'c','weight':1}]}",
            "{'messages':[{'role':'system','content':'s'},{'role':'user','content':'a'},{'role':'assistant','content':null,"
            "'tool_calls':[{'type':'function','function':{'name':'f','arguments':{'x':1}}}]},{'role':'tool','content':'2'},"
            "{'role':'assistant','content':'c','weight':1}],'tools':[{'type':'function','function':{'name':'f'}}]}");
    /* a tag in a ShareGPT text is text */
    becomes(DIALECT_SHAREGPT, "{'conversations':[{'from':'user','value':'a'},{'from':'gpt','value':'<tool_call>{}'}]}",
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'<tool_call>{}'}]}");
}

static void hermes_tags_become_tools_calls_and_results(void **state)
{
    (void)state;
    becomes(DIALECT_AUTO,
            "{'conversations':[{'from':'system','value':'You may call. Tools are within <tools></tools> tags. <tools>\\n"
            "{\\'type\\':\\'function\\',\\'function\\':{\\'name\\':\\'f\\'}}\\n{\\'name\\':\\'g\\'}\\n</tools> Use them.'},"
            "{'from':'human','value':'a'},{'from':'gpt','value':'Let me see.\\n<tool_call>\\n{\\'name\\':\\'f\\',"
            "\\'arguments\\':{\\'x\\':1}}\\n</tool_call>\\n<tool_call>\\n{`arguments`: {`q`: `it\\\\`s \\'so\\'`, `b`: True, "
            "`n`: None}, `name`: `g`}\\n</tool_call>'},{'from':'tool','value':'<tool_response>\\n1\\n</tool_response>\\n"
            "<tool_response>\\n2\\n</tool_response>'},{'from':'gpt','value':'c'}]}",
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'Let me see.','tool_calls':[{'type':"
            "'function','function':{'name':'f','arguments':{'x':1}}},{'type':'function','function':{'name':'g','arguments':"
            "{'q':'it`s \\'so\\'','b':true,'n':null}}}]},{'role':'tool','content':'1'},{'role':'tool','content':'2'},"
            "{'role':'assistant','content':'c'}],'tools':[{'type':'function','function':{'name':'f'}},{'type':'function',"
            "'function':{'name':'g'}}]}");
}

static void a_bad_conversation_is_named_with_its_field_and_a_remedy(void **state)
{
    (void)state;
    refused(DIALECT_AUTO, "{'text':'a'}", "conversations", "no list of turns");
    refused(DIALECT_OPENAI, "{'messages':[{'role':'assistant','content':'a'}]}", "messages[0].role", "starts with the assistant");
    refused(DIALECT_OPENAI,
            "{'messages':[{'role':'system','content':'a'},{'role':'user','content':'a'},{'role':'system','content':'b'}]}",
            "messages[2].role", "a second system turn");
    refused(DIALECT_OPENAI, "{'messages':[{'role':'narrator','content':'a'}]}", "messages[0].role", "unknown role \"narrator\"");
    refused(DIALECT_OPENAI, "{'messages':[{'role':'user','content':'a'},{'role':'tool','content':'1'}]}", "messages[1]",
            "a result without a call");
    refused(DIALECT_OPENAI, "{'messages':[{'role':'user','content':[{'type':'image_url'}]}]}", "messages[0]",
            "content[0] is no text");
    refused(DIALECT_SHAREGPT, "{'conversations':[{'from':'narrator','value':'a'}]}", "conversations[0]: from",
            "unknown role \"narrator\"");
    refused(DIALECT_SHAREGPT, "{'conversations':[{'from':'human'}]}", "conversations[0]: value", "missing");
    refused(DIALECT_SHAREGPT, "{'conversations':[{'from':'gpt','value':'a'}]}", "messages[0].role", "starts with the assistant");
    refused(DIALECT_HERMES, "{'conversations':[{'from':'human','value':'a'},{'from':'gpt','value':'<tool_call>{'}]}",
            "conversations[1]: value", "<tool_call> without </tool_call>");
    refused(DIALECT_HERMES,
            "{'conversations':[{'from':'human','value':'a'},{'from':'gpt','value':'<tool_call>{f}</tool_call>'}]}",
            "conversations[1]: value", "neither JSON nor Python's notation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_parts_are_joined_and_old_functions_become_tools),
        cmocka_unit_test(our_own_shape_stays_as_it_is),
        cmocka_unit_test(sharegpt_turns_get_our_roles),
        cmocka_unit_test(hermes_tags_become_tools_calls_and_results),
        cmocka_unit_test(a_bad_conversation_is_named_with_its_field_and_a_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
