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
    for (char *at = err->message; *at; at++) /* what a peer said may stand in it: no control characters reach a terminal */
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = ' ';
    snprintf(err->hint, sizeof err->hint, "%s", hint ? hint : "");
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

const char *error_help(enum error_code code)
{
    return code < ERROR_CODES ? codes[code].help : "";
}
