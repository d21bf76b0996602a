/* bind_math.c - math.* of scripts, on script_math and operations that IEEE 754 fixes. */
#include <math.h>

#include "runtime/script/child.h"
#include "runtime/script/script_math.h"

#define FUNCTION(name, call)                                                                                                     \
    static int name(lua_State *L)                                                                                                \
    {                                                                                                                            \
        double x = luaL_checknumber(L, 1);                                                                                       \
        lua_pushnumber(L, call);                                                                                                 \
        return 1;                                                                                                                \
    }

FUNCTION(f_exp, script_exp(x))
FUNCTION(f_log, script_log(x))
FUNCTION(f_log2, script_log2(x))
FUNCTION(f_pow, script_pow(x, luaL_checknumber(L, 2)))
FUNCTION(f_sin, script_sin(x))
FUNCTION(f_cos, script_cos(x))
FUNCTION(f_sqrt, sqrt(x))
FUNCTION(f_floor, floor(x))
FUNCTION(f_ceil, ceil(x))
FUNCTION(f_abs, fabs(x))
FUNCTION(f_fmod, fmod(x, luaL_checknumber(L, 2)))

static int extreme(lua_State *L, int sign)
{
    double best = luaL_checknumber(L, 1);
    for (int i = 2; i <= lua_gettop(L); i++) {
        double x = luaL_checknumber(L, i);
        if (sign > 0 ? x > best : x < best)
            best = x;
    }
    lua_pushnumber(L, best);
    return 1;
}

static int f_max(lua_State *L)
{
    return extreme(L, 1);
}

static int f_min(lua_State *L)
{
    return extreme(L, -1);
}

static int f_clamp(lua_State *L)
{
    double x = luaL_checknumber(L, 1), low = luaL_checknumber(L, 2), high = luaL_checknumber(L, 3);
    lua_pushnumber(L, x < low ? low : x > high ? high : x);
    return 1;
}

void bind_math(lua_State *L)
{
    static const luaL_Reg list[] = { { "exp", f_exp },   { "log", f_log },     { "log2", f_log2 }, { "pow", f_pow },
                                     { "sin", f_sin },   { "cos", f_cos },     { "sqrt", f_sqrt }, { "floor", f_floor },
                                     { "ceil", f_ceil }, { "abs", f_abs },     { "fmod", f_fmod }, { "max", f_max },
                                     { "min", f_min },   { "clamp", f_clamp }, { NULL, NULL } };
    luaL_register(L, NULL, list);
}
