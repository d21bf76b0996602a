/* child.h - inside the script's process: one Lua state, its limits, and the C functions that the trusted prelude calls.
 *
 *     request   u32 magic (CHILD_NURSERY: be a nursery, the rest is 0), u32 seconds, u64 memory, u64 fuel, u64 nodes, u64 size | value (value.h)
 *     reply     u32 magic, u32 error code (0: none)
 *               0:      u64 size, value;  u32 graphs; each u64 size, bytes (native/graph/wire.h, with notes)
 *               other:  u64 size, place 0 message 0 hint 0
 *
 * All functions below that take a lua_State may raise a Lua error, which ends the process's one request: neither prelude nor scripts have
 * a pcall. So memory that an error would leak does not matter here.
 */
#ifndef RONDO_SCRIPT_CHILD_H
#define RONDO_SCRIPT_CHILD_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"

enum { CHILD_MAGIC = 0x31435352, CHILD_NURSERY = 0x3152554e, CHILD_HEADER = 40, CHILD_GRAPHS = 16384, CHILD_HOOK_PERIOD = 1000 };

/* What a script may allocate in all, in multiples of its memory: what is kept alive costs the collector time with every piece of garbage. */
enum { CHILD_TURNOVER = 4 };

struct graph;

struct child {
    lua_State *lua;
    uint64_t memory, used; /* bytes of the Lua heap: limit, now */
    uint64_t turnover;     /* bytes allocated since the start */
    bool starved;          /* the machine refused memory below that limit */
    uint64_t fuel;         /* instructions left */
    uint64_t nodes;        /* of one graph at most */
    struct graph **graphs; /* owned */
    size_t graph_count;
    struct error error; /* what ended the request, when `failed` */
    bool failed;
};

/* An interpreter with the prelude, within the limits that are set in `c`; and the one request of a process on it, a value to a value. False:
 * c->error. */
bool child_start(struct child *c);
bool child_serve(struct child *c, const struct buffer *request, struct buffer *reply);

struct child *child_of(lua_State *L); /* borrowed */

/* Raises `error` of the child: fills it from `err` and unwinds. Never returns. */
int child_raise(lua_State *L, const struct error *err);

/* "chat_sft.lua@1f2e3d4c:14" of the innermost frame of a script; "" when there is none. */
const char *child_line(lua_State *L, char *text, size_t size);

/* Each adds functions to the table on top of the stack, which the prelude gets. */
void bind_graph(lua_State *L); /* graph_new graph_add graph_output box unbox */
void bind_text(lua_State *L);  /* number_text to_number format */
void bind_math(lua_State *L);  /* exp log log2 pow sin cos sqrt floor ceil fmod */

/* Pushes the value; a map's nil items are left out. */
void bind_value_push(lua_State *L, struct reader *in);
/* Appends the Lua value at `index`: tables with keys 1..n (or marked by the metatable in the registry under "list") are lists. */
void bind_value_write(lua_State *L, int index, struct buffer *out, int depth);

#endif
