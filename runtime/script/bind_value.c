#include <math.h>
#include <string.h>

#include "runtime/script/child.h"
#include "runtime/script/value.h"

static double read_f64(struct reader *in)
{
    uint64_t bits = reader_u64(in);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void push_text(lua_State *L, struct reader *in)
{
    uint32_t size = reader_u32(in);
    const uint8_t *bytes = reader_bytes(in, size);
    lua_pushlstring(L, bytes ? (const char *)bytes : "", bytes ? size : 0);
}

void bind_value_push(lua_State *L, struct reader *in)
{
    luaL_checkstack(L, 4, "a value nested too deep");
    switch (reader_u8(in)) {
    case VALUE_FALSE:
        lua_pushboolean(L, 0);
        return;
    case VALUE_TRUE:
        lua_pushboolean(L, 1);
        return;
    case VALUE_NUMBER:
        lua_pushnumber(L, read_f64(in));
        return;
    case VALUE_TEXT:
        push_text(L, in);
        return;
    case VALUE_LIST: {
        uint32_t count = reader_u32(in);
        lua_newtable(L);
        for (uint32_t i = 1; i <= count && in->ok; i++) {
            bind_value_push(L, in);
            lua_rawseti(L, -2, (int)i);
        }
        return;
    }
    case VALUE_MAP: {
        uint32_t count = reader_u32(in);
        lua_newtable(L);
        for (uint32_t i = 0; i < count && in->ok; i++) {
            push_text(L, in);
            bind_value_push(L, in);
            lua_rawset(L, -3);
        }
        return;
    }
    default:
        lua_pushnil(L);
    }
}

static void refuse(lua_State *L, const char *what)
{
    struct error err = { .code = ERROR_NONE };
    error_set(&err, ERROR_TYPE, "results are numbers, text, flags, lists and tables with text keys", "%s", what);
    child_raise(L, &err);
}

static void write_text(struct buffer *out, const char *text, size_t size)
{
    buffer_add_u32(out, (uint32_t)size);
    buffer_add(out, text, size);
}

static bool is_list(lua_State *L, int index)
{
    if (lua_getmetatable(L, index)) {
        lua_getfield(L, LUA_REGISTRYINDEX, "list");
        bool marked = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        if (marked)
            return true;
    }
    return lua_objlen(L, index) > 0;
}

/* Number of keys; each must be an integer from 1 to n (a list) or text (a map). */
static uint32_t count_keys(lua_State *L, int index, bool list, size_t n)
{
    uint32_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), count++) {
        if (!list && lua_type(L, -2) != LUA_TSTRING)
            refuse(L, "a table with keys that are neither 1, 2, 3 ... nor all text");
        lua_Number k = list && lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (list && !(k >= 1 && k <= (lua_Number)n && floor(k) == k))
            refuse(L, "a list with other keys or with holes");
    }
    return count;
}

static int push_sorted_keys(lua_State *L, int index)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "keys");
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    return lua_gettop(L);
}

static void write_table(lua_State *L, int index, struct buffer *out, int depth)
{
    luaL_checkstack(L, 8, "a value nested too deep");
    size_t n = lua_objlen(L, index);
    bool list = is_list(L, index);
    uint32_t count = count_keys(L, index, list, n);
    buffer_add_u8(out, list ? VALUE_LIST : VALUE_MAP);
    buffer_add_u32(out, count);
    if (list) {
        if (count != n)
            refuse(L, "a list with holes");
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(L, index, (int)i);
            bind_value_write(L, lua_gettop(L), out, depth + 1);
            lua_pop(L, 1);
        }
        return;
    }
    int keys = push_sorted_keys(L, index);
    for (uint32_t i = 1; i <= count; i++) {
        size_t size;
        lua_rawgeti(L, keys, (int)i);
        const char *key = lua_tolstring(L, -1, &size);
        write_text(out, key, size);
        lua_rawget(L, index);
        bind_value_write(L, lua_gettop(L), out, depth + 1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void bind_value_write(lua_State *L, int index, struct buffer *out, int depth)
{
    if (depth > VALUE_DEPTH)
        refuse(L, "a result nested too deep, or one that holds itself");
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        buffer_add_u8(out, VALUE_NIL);
        return;
    case LUA_TBOOLEAN:
        buffer_add_u8(out, lua_toboolean(L, index) ? VALUE_TRUE : VALUE_FALSE);
        return;
    case LUA_TNUMBER: {
        double x = lua_tonumber(L, index);
        uint64_t bits;
        if (x != x)
            refuse(L, "a result is not a number (NaN)");
        memcpy(&bits, &x, sizeof bits);
        buffer_add_u8(out, VALUE_NUMBER);
        buffer_add_u64(out, bits);
        return;
    }
    case LUA_TSTRING: {
        size_t size;
        const char *text = lua_tolstring(L, index, &size);
        buffer_add_u8(out, VALUE_TEXT);
        write_text(out, text, size);
        return;
    }
    case LUA_TTABLE:
        write_table(L, index, out, depth);
        return;
    default:
        refuse(L, "a result is a function or a tensor");
    }
}
