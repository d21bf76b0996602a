/* bind_text.c - text of numbers, numbers of text, and string.format, alike under every engine and in every locale. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/script/child.h"
#include "runtime/script/value.h"

static int refuse(lua_State *L, const char *hint, const char *what)
{
    struct error err = { .code = ERROR_NONE };
    char line[128];
    error_set(&err, ERROR_SCRIPT, hint, "%s", what);
    error_at(&err, "%s", child_line(L, line, sizeof line));
    return child_raise(L, &err);
}

static int number_text(lua_State *L)
{
    char text[32];
    lua_pushstring(L, value_number_text(luaL_checknumber(L, 1), text));
    return 1;
}

/* Optional blanks and sign; decimal with an exponent, or 0x and hexadecimal digits. Anything else gives nil. */
static int to_number(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size), *at = text;
    static const char digits[] = "0123456789";
    at += strspn(at, " \t\n\r");
    const char *start = at;
    at += *at == '-' || *at == '+';
    size_t whole, part = 0;
    if (at[0] == '0' && (at[1] | 32) == 'x') {
        at += 2;
        whole = strspn(at, "0123456789abcdefABCDEF");
        at += whole;
    } else {
        whole = strspn(at, digits);
        at += whole;
        if (*at == '.') {
            part = strspn(++at, digits);
            at += part;
        }
        if ((whole || part) && (*at | 32) == 'e') {
            const char *power = at + 1 + (at[1] == '-' || at[1] == '+');
            size_t n = strspn(power, digits);
            if (!n)
                whole = part = 0;
            at = power + n;
        }
    }
    at += strspn(at, " \t\n\r");
    if ((!whole && !part) || (size_t)(at - text) != size || size > 64)
        return lua_pushnil(L), 1;
    lua_pushnumber(L, strtod(start, NULL));
    return 1;
}

static void quoted(struct buffer *out, const char *text, size_t size)
{
    buffer_add_u8(out, '"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            buffer_printf(out, "\\%c", c);
        else if (c < 32)
            buffer_printf(out, "\\%03d", c);
        else
            buffer_add_u8(out, c);
    }
    buffer_add_u8(out, '"');
}

/* One conversion: `spec` is "%", flags, width, precision; `kind` its letter. */
static void convert(lua_State *L, struct buffer *out, char *spec, size_t n, char kind, int arg)
{
    char text[512];
    size_t size;
    if (strchr("di", kind) || strchr("ux", kind)) {
        double x = lua_tonumber(L, arg);
        if (!lua_isnumber(L, arg) || floor(x) != x || fabs(x) > 0x1p53 || (strchr("ux", kind) && x < 0))
            refuse(L, "round it, or use %g", "format: %d and its like need an integer");
        snprintf(spec + n, 4, "ll%c", kind == 'i' ? 'd' : kind);
        snprintf(text, sizeof text, spec, (long long)x);
        buffer_add_text(out, text);
    } else if (strchr("gfe", kind)) {
        if (!lua_isnumber(L, arg))
            refuse(L, NULL, "format: %g needs a number");
        spec[n] = kind;
        spec[n + 1] = 0;
        if (n == 1 && kind == 'g')
            value_number_text(lua_tonumber(L, arg), text);
        else
            snprintf(text, sizeof text, spec, lua_tonumber(L, arg));
        buffer_add_text(out, text);
    } else if (kind == 's' || kind == 'q') {
        lua_getfield(L, LUA_REGISTRYINDEX, "tostring");
        lua_pushvalue(L, arg);
        lua_call(L, 1, 1);
        const char *s = lua_tolstring(L, -1, &size);
        if (kind == 'q')
            quoted(out, s, size);
        else if (n == 1)
            buffer_add(out, s, size);
        else
            refuse(L, NULL, "format: %s takes no width");
        lua_pop(L, 1);
    } else {
        refuse(L, "d i u x g f e s q and %% exist", "format: an unknown conversion");
    }
}

static int format(lua_State *L)
{
    size_t size;
    const char *f = luaL_checklstring(L, 1, &size), *end = f + size;
    struct buffer out = { 0 };
    int arg = 1;
    while (f < end) {
        if (*f != '%') {
            buffer_add_u8(&out, (uint8_t)*f++);
            continue;
        }
        if (f + 1 < end && f[1] == '%') {
            buffer_add_u8(&out, '%');
            f += 2;
            continue;
        }
        char spec[16] = "%";
        size_t n = 1;
        for (f++; f < end && n < 8 && *f && strchr("-+ 0#.123456789", *f); f++)
            spec[n++] = *f;
        const char *point = strchr(spec, '.');
        if (strtoul(spec + 1 + strspn(spec + 1, "-+ 0#"), NULL, 10) > 99 || (point && strtoul(point + 1, NULL, 10) > 99))
            refuse(L, NULL, "format: a width or precision above 99");
        if (f >= end || ++arg > lua_gettop(L))
            refuse(L, NULL, "format: an argument is missing");
        convert(L, &out, spec, n, *f++, arg);
    }
    lua_pushlstring(L, (const char *)out.bytes, out.size);
    buffer_free(&out);
    return 1;
}

void bind_text(lua_State *L)
{
    static const luaL_Reg list[] = {
        { "number_text", number_text }, { "to_number", to_number }, { "format", format }, { NULL, NULL }
    };
    luaL_register(L, NULL, list);
}
