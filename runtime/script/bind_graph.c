/* bind_graph.c - the prelude's way to native/graph: graphs by number, nodes by id, tensors as opaque userdata.
 *
 * A tensor that a script holds is a userdata whose environment table is its record: only `unbox` reads it, and no script has `unbox`.
 */
#include <stdlib.h>
#include <string.h>

#include "native/graph/graph.h"
#include "runtime/script/child.h"

enum { LIST_MAX = 65536 };

static struct graph *graph_at(lua_State *L, int index)
{
    struct child *c = child_of(L);
    size_t i = (size_t)luaL_checknumber(L, index);
    luaL_argcheck(L, i < c->graph_count, index, "no such graph");
    return c->graphs[i];
}

/* graph_new() -> number of the graph, from 0 */
static int new_graph(lua_State *L)
{
    struct child *c = child_of(L);
    struct graph_limits limits = graph_limits_default;
    limits.nodes = (uint32_t)c->nodes;
    if (c->graph_count == CHILD_GRAPHS)
        return luaL_error(L, "more than %d graphs", CHILD_GRAPHS);
    struct graph **grown = realloc(c->graphs, (c->graph_count + 1) * sizeof *grown);
    if (grown)
        c->graphs = grown;
    if (!grown || !(grown[c->graph_count] = graph_new(&limits)))
        return luaL_error(L, "not enough memory");
    lua_pushnumber(L, (lua_Number)c->graph_count++);
    return 1;
}

static size_t list_size(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index))
        return 0;
    luaL_checktype(L, index, LUA_TTABLE);
    size_t n = lua_objlen(L, index);
    if (n > LIST_MAX)
        luaL_error(L, "a list of more than %d", LIST_MAX);
    return n;
}

/* Memory that the collector owns, so that an error leaks nothing. */
static void *scratch(lua_State *L, size_t count, size_t size)
{
    return lua_newuserdata(L, count * size + 1);
}

static uint32_t *read_inputs(lua_State *L, int index, size_t *count)
{
    *count = list_size(L, index);
    uint32_t *out = scratch(L, *count, sizeof *out);
    for (size_t i = 0; i < *count; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, index, (int)i + 1);
        out[i] = (uint32_t)lua_tonumber(L, -1);
    }
    return out;
}

/* { name, size, name, size, ... }, size 0: not given */
static struct graph_word *read_axes(lua_State *L, int index, size_t *count)
{
    *count = list_size(L, index) / 2;
    struct graph_word *out = scratch(L, *count, sizeof *out);
    for (size_t i = 0; i < *count; i++, lua_pop(L, 2)) {
        lua_rawgeti(L, index, (int)(2 * i + 1));
        lua_rawgeti(L, index, (int)(2 * i + 2));
        double size = lua_tonumber(L, -1);
        out[i].name = lua_tostring(L, -2); /* kept alive by the list */
        if (!(size >= 0 && size <= 0x1p53) || !out[i].name)
            luaL_error(L, "a bad axis");
        out[i].size = (uint64_t)size;
    }
    return out;
}

static double *read_numbers(lua_State *L, int index, size_t *count)
{
    *count = list_size(L, index);
    double *out = scratch(L, *count, sizeof *out);
    for (size_t i = 0; i < *count; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, index, (int)i + 1);
        if (lua_type(L, -1) != LUA_TNUMBER)
            luaL_error(L, "item %d of a list is no number", (int)i + 1);
        out[i] = lua_tonumber(L, -1);
    }
    return out;
}

static int64_t *read_integers(lua_State *L, int index, size_t *count)
{
    size_t n;
    double *from = read_numbers(L, index, &n);
    int64_t *out = scratch(L, n, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        if (!(from[i] >= -0x1p53 && from[i] <= 0x1p53) || (double)(int64_t)from[i] != from[i])
            luaL_error(L, "an integer was needed");
        out[i] = (int64_t)from[i];
    }
    *count = n;
    return out;
}

/* Pushes { axis names in memory order }, { name = size }. */
static void push_shape(lua_State *L, const struct graph *g, const struct graph_node *n)
{
    lua_createtable(L, n->rank, 0);
    lua_createtable(L, 0, n->rank);
    for (int i = 0; i < n->rank; i++) {
        lua_pushstring(L, graph_text(g, n->axis[i].name));
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, i + 1);
        lua_pushnumber(L, (lua_Number)n->axis[i].size);
        lua_rawset(L, -3);
    }
}

/* graph_add(graph, operator, inputs, axes, numbers, integers, name, type) -> id, type, names, sizes */
static int add(lua_State *L)
{
    struct graph *g = graph_at(L, 1);
    struct graph_request r = { .note = NULL };
    struct error err = { .code = ERROR_NONE };
    char line[160];
    if (!operator_find(luaL_checkstring(L, 2), &r.op))
        return luaL_error(L, "no operator %s", lua_tostring(L, 2));
    lua_settop(L, 8);
    r.inputs = read_inputs(L, 3, &r.input_count);
    r.axes = read_axes(L, 4, &r.axes_count);
    r.numbers = read_numbers(L, 5, &r.numbers_count);
    r.integers = read_integers(L, 6, &r.integers_count);
    r.name = lua_tostring(L, 7);
    if (!lua_isnil(L, 8) && !tensor_type_find(luaL_checkstring(L, 8), &r.type))
        return luaL_error(L, "no type %s", lua_tostring(L, 8));
    child_line(L, line, sizeof line);
    r.note = *line ? line : NULL;
    uint32_t node;
    if (!graph_add(g, &r, &node, &err))
        return child_raise(L, &err);
    const struct graph_node *n = &g->nodes[node];
    lua_pushnumber(L, node);
    lua_pushstring(L, tensor_type_name((enum tensor_type)n->type));
    push_shape(L, g, n);
    return 4;
}

/* graph_output(graph, name, id) */
static int output(lua_State *L)
{
    struct error err = { .code = ERROR_NONE };
    if (!graph_output(graph_at(L, 1), luaL_checkstring(L, 2), (uint32_t)luaL_checknumber(L, 3), &err))
        return child_raise(L, &err);
    return 0;
}

/* graph_size(graph) -> nodes */
static int size(lua_State *L)
{
    lua_pushnumber(L, graph_at(L, 1)->node_count);
    return 1;
}

/* box(record, metatable) -> opaque value */
static int box(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_newuserdata(L, 1);
    lua_pushvalue(L, 1);
    lua_setfenv(L, -2);
    lua_pushvalue(L, 2);
    lua_setmetatable(L, -2);
    return 1;
}

/* unbox(anything) -> record or nil; the only userdata that live longer than a call are boxes */
static int unbox(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TUSERDATA)
        lua_getfenv(L, 1);
    else
        lua_pushnil(L);
    return 1;
}

void bind_graph(lua_State *L)
{
    static const luaL_Reg list[] = {
        { "graph_new", new_graph }, { "graph_add", add }, { "graph_output", output }, { "graph_size", size }, { "box", box },
        { "unbox", unbox },         { NULL, NULL }
    };
    luaL_register(L, NULL, list);
}
