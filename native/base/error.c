#include "native/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int status;
    const char *help;
} codes[ERROR_CODES] = {
#define ERROR_CODE(name, text, status, help) [ERROR_##name] = { text, status, help },
#include "native/base/error_codes.h"
#undef ERROR_CODE
};

/* The bytes of one character of UTF-8 (RFC 3629) that may be shown; 0: none such. U+0080 to U+009F are control characters too. */
static size_t character(const unsigned char *at)
{
    const unsigned char c = at[0];
    const size_t size = c >= 0x20 && c < 0x7f   ? 1
                        : c >= 0xc2 && c < 0xe0 ? 2
                        : c >= 0xe0 && c < 0xf0 ? 3
                        : c >= 0xf0 && c < 0xf5 ? 4
                                                : 0;

    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xc2 && at[1] < 0xa0) || (c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] > 0x9f) ||
        (c == 0xf0 && at[1] < 0x90) || (c == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

/* What a peer or a script said may stand in a text, and it may be cut inside a character: nothing that steers a terminal remains, and nothing
 * that is no text in JSON. */
static void clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        size_t size = character(at);

        if (size == 0)
            *at = *at < 0x80 ? ' ' : '?';
        at += size ? size : 1;
    }
}

bool error_set(struct error *err, enum error_code code, const char *hint, const char *format, ...)
{
    if (!err)
        return false;

    va_list args;

    err->code = code;
    err->place[0] = '\0';
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    snprintf(err->hint, sizeof err->hint, "%s", hint ? hint : "");
    clean(err->message);
    clean(err->hint);
    return false;
}

/* "http://a:1/v1/status" tells "http://a:1" too, and "run.lua: spec" "run.lua". */
static bool begins_with_place(const char *inner, const char *outer)
{
    size_t size = strlen(outer);

    return size > 0 && strncmp(inner, outer, size) == 0 && (inner[size] == '\0' || inner[size] == ':' || inner[size] == '/');
}

bool error_at(struct error *err, const char *format, ...)
{
    if (!err)
        return false;

    char outer[sizeof err->place], inner[sizeof err->place];
    va_list args;

    va_start(args, format);
    vsnprintf(outer, sizeof outer, format, args);
    va_end(args);
    memcpy(inner, err->place, sizeof inner);
    if (!begins_with_place(inner, outer))
        snprintf(err->place, sizeof err->place, "%s%s%s", outer, inner[0] ? ": " : "", inner);
    clean(err->place);
    return false;
}

void error_clear(struct error *err)
{
    *err = (struct error){ 0 };
}

const char *error_text(const struct error *err, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s%s%s%s", err->place, err->place[0] ? ": " : "", err->message, err->hint[0] ? " (" : "", err->hint,
             err->hint[0] ? ")" : "");
    clean(text);
    return text;
}

const char *error_name(enum error_code code)
{
    return code < ERROR_CODES ? codes[code].name : "unknown_code";
}

int error_status(enum error_code code)
{
    return code < ERROR_CODES ? codes[code].status : 4;
}

bool error_is_local(enum error_code code)
{
    return error_status(code) == 4 || code == ERROR_ABSENT;
}

const char *error_help(enum error_code code)
{
    return code < ERROR_CODES ? codes[code].help : "";
}
