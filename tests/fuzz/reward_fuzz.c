/* What a model wrote, before a reward script: with a zero byte a pattern and the text that the linear matcher looks through, else a text for
 * the JSON reader. Both are held against libraries that know the same: PCRE2 must find a match where the matcher does and nowhere
 * else, jansson must take what the reader takes. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/script/child.h"
#include "runtime/script/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char script[] = "return reward { score = function(r)\n"
                             "  if not r.reference then return json.decode(r.text) ~= nil and 1 or 0 end\n"
                             "  text.last(r.text, r.reference)\n"
                             "  return text.match(r.text, r.reference) and 1 or 0\n"
                             "end }\n";

enum { REQUESTS = 500, MOST = 400, UNKNOWN = -1 };

/* 1 or 0 as the script says, UNKNOWN where it fails. A new interpreter now and then: it keeps the patterns it has compiled. */
static int scored(const char *text, size_t size, json_t *reference)
{
    static struct child c;
    static unsigned served = REQUESTS;
    struct buffer request = { 0 }, reply = { 0 };
    char *json = reference ? json_dumps(reference, JSON_ENCODE_ANY) : NULL;
    json_t *value =
               json_pack("{s:s, s:[{s:s, s:s, s:s}], s:{}, s:{s:[{s:s, s:s, s:s%, s:i, s:b, s:i}]}}", "verb", "score", "files",
                         "name", "fuzz", "hash", "0000000000000000", "source", script, "options", "args", "completions", "prompt",
                         "null", "reference", json ? json : "null", "text", text, size, "tokens", 1, "truncated", 0, "round", 1),
           *answer;
    int result = UNKNOWN;

    free(json);
    if (!value || !value_write(&request, value, NULL))
        abort(); /* both are UTF-8 */
    json_decref(value);
    if (served++ == REQUESTS) {
        if (c.lua)
            lua_close(c.lua);
        c = (struct child){ .memory = 256u << 20, .nodes = 1 };
        served = 0;
        if (!child_start(&c))
            abort();
    }
    c.failed = false;
    c.turnover = 0;
    c.fuel = 50000000;
    if (child_serve(&c, &request, &reply)) {
        struct reader in = reader_of(reply.bytes, reply.size);

        answer = value_read(&in, NULL);
        result = (int)json_integer_value(json_array_get(answer, 0));
        json_decref(answer);
    }
    buffer_free(&request);
    buffer_free(&reply);
    return result;
}

/* Whether PCRE2 reads it otherwise: its \\v is more than one character, and it has classes with a name. */
static bool is_other(const char *pattern, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if ((pattern[i] == '\\' && pattern[i + 1] == 'v') || (pattern[i] == '[' && strchr(":.=", pattern[i + 1])))
            return true;
    return false;
}

/* 1 or 0, UNKNOWN where PCRE2 has another language or gives up: it goes back and tries again where the matcher does not. */
static int matched(const char *pattern, size_t pattern_size, const char *text, size_t size)
{
    size_t at;
    int code, result = UNKNOWN;
    pcre2_code *p = pcre2_compile((PCRE2_SPTR)pattern, pattern_size, PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *found = p ? pcre2_match_data_create_from_pattern(p, NULL) : NULL;

    pcre2_set_match_limit(limits, 200000);
    if (p) {
        code = pcre2_match(p, (PCRE2_SPTR)text, size, 0, 0, found, limits);
        result = code >= 0 ? 1 : code == PCRE2_ERROR_NOMATCH ? 0 : UNKNOWN;
    }
    pcre2_match_data_free(found);
    pcre2_match_context_free(limits);
    pcre2_code_free(p);
    return result;
}

/* Lists within lists deeper than the reader goes. */
static bool is_deep(const char *text, size_t size)
{
    size_t open = 0;

    for (size_t i = 0; i < size; i++)
        open += text[i] == '[' || text[i] == '{';
    return open > 60;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *text = (const char *)bytes, *zero = size ? memchr(bytes, 0, size) : NULL;
    json_t *whole = size <= MOST && !zero ? json_stringn(text, size) : NULL, *pattern = NULL, *rest = NULL;
    int ours, theirs;

    if (whole) {
        json_t *value =
            json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);

        ours = scored(text, size, NULL);
        if (ours == UNKNOWN || (ours != (value != NULL) && !is_deep(text, size)))
            __builtin_trap();
        json_decref(value);
    }
    if (zero && size <= MOST) {
        size_t before = (size_t)(zero - text);

        pattern = before ? json_stringn(text, before) : NULL;
        rest = pattern ? json_stringn(zero + 1, size - before - 1) : NULL;
    }
    if (rest) {
        ours = scored(json_string_value(rest), json_string_length(rest), pattern);
        theirs = ours == UNKNOWN ? UNKNOWN : matched(text, (size_t)(zero - text), zero + 1, json_string_length(rest));
        if (theirs != UNKNOWN && ours != theirs && !is_other(text, (size_t)(zero - text)))
            __builtin_trap();
    }
    json_decref(whole);
    json_decref(pattern);
    json_decref(rest);
    return 0;
}
