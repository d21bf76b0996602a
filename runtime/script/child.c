#include "runtime/script/child.h"

#include <lualib.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native/graph/wire.h"
#include "runtime/script/admit.h"
#include "runtime/script/host.h"
#include "runtime/script/nursery.h"
#include "runtime/script/prelude.h"
#include "runtime/script/resident.h"
#include "runtime/script/sandbox.h"
#include "runtime/script/script_math.h"

/* ---- errors --------------------------------------------------------------------------------------------------------- */

static const char child_key;

struct child *child_of(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&child_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    struct child *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
}

int child_raise(lua_State *L, const struct error *err)
{
    struct child *c = child_of(L);
    c->error = *err;
    c->failed = true;
    lua_pushliteral(L, "raised");
    return lua_error(L);
}

const char *child_line(lua_State *L, char *text, size_t size)
{
    lua_Debug ar;
    *text = 0;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.source[0] != '=' || ar.source[1] == '[' || ar.source[1] == '(' || ar.currentline < 0)
            continue;
        snprintf(text, size, "%s:%d", ar.source + 1, ar.currentline);
        break;
    }
    return text;
}

/* fail(message, hint or nil, code name or nil) */
static int fail(lua_State *L)
{
    struct error err = { .code = ERROR_NONE };
    char line[160];
    enum error_code code = ERROR_SCRIPT;
    for (int i = 0; lua_isstring(L, 3) && i < ERROR_CODES; i++)
        if (!strcmp(error_name((enum error_code)i), lua_tostring(L, 3)))
            code = (enum error_code)i;
    error_set(&err, code, lua_tostring(L, 2), "%s", luaL_checkstring(L, 1));
    const char *place = lua_isstring(L, 4) ? lua_tostring(L, 4) : child_line(L, line, sizeof line);
    if (*place)
        error_at(&err, "%s", place);
    return child_raise(L, &err);
}

static int line_of(lua_State *L)
{
    char text[160];
    lua_pushstring(L, child_line(L, text, sizeof text));
    return 1;
}

static void out_of_memory(struct child *c)
{
    static const char hint[] = "script_memory of the run's limits says how much";
    unsigned long long memory = c->memory >> 20;
    if (c->starved)
        error_set(&c->error, ERROR_MEMORY, "is there enough memory?",
                  "the machine gave a script less than its memory of %llu MiB", memory);
    else if (c->turnover > CHILD_TURNOVER * c->memory)
        error_set(&c->error, ERROR_LIMIT, hint, "the script allocated more than %d times its memory of %llu MiB", CHILD_TURNOVER,
                  memory);
    else
        error_set(&c->error, ERROR_LIMIT, hint, "the script needs more than its memory of %llu MiB", memory);
}

/* What the engine itself raised, "chat_sft.lua@1f2e3d4c:3: attempt to ...", as an error with its place apart. */
static void adopt(struct child *c, int status)
{
    if (c->failed)
        return;
    c->failed = true;
    const char *text = lua_tostring(c->lua, -1), *at = text ? text : "an error that is no text";
    if (status == LUA_ERRMEM) {
        out_of_memory(c);
        return;
    }
    const char *colon = strstr(at, ".lua@");
    const char *number = colon ? strchr(colon, ':') : NULL;
    size_t digits = number ? strspn(number + 1, "0123456789") : 0;
    const char *hint = strstr(at, "attempt to compare")
                           ? "a tensor has no value yet: x:gt(y), x:eq(y) ... compare tensors, where chooses"
                           : NULL;
    if (digits && number[1 + digits] == ':') {
        error_set(&c->error, ERROR_SCRIPT, hint, "%s", number + digits + 3);
        error_at(&c->error, "%.*s", (int)(number + 1 + digits - at), at);
    } else {
        error_set(&c->error, ERROR_SCRIPT, NULL, "%s", at);
    }
}

/* ---- limits --------------------------------------------------------------------------------------------------------- */

static void *allocate(void *context, void *old, size_t old_size, size_t size)
{
    struct child *c = context;
    if (!size) {
        c->used -= old ? old_size : 0;
        free(old);
        return NULL;
    }
    uint64_t used = c->used - (old ? old_size : 0) + size;
    bool grows = !old || size > old_size;
    c->turnover += grows ? size : 0;
    if (grows && (used > c->memory || c->turnover > CHILD_TURNOVER * c->memory))
        return NULL;
    void *new = realloc(old, size);
    if (new)
        c->used = used;
    else
        c->starved = true;
    return new;
}

static void burn(lua_State *L, lua_Debug *ar)
{
    struct child *c = child_of(L);
    (void)ar;
    if (c->fuel >= CHILD_HOOK_PERIOD) {
        c->fuel -= CHILD_HOOK_PERIOD;
        return;
    }
    struct error err = { .code = ERROR_NONE };
    char line[160];
    lua_sethook(L, burn, LUA_MASKCOUNT, 1);
    error_set(&err, ERROR_FUEL, "a loop that does not end? the limit is part of the run", "the script used up its instructions");
    if (*child_line(L, line, sizeof line))
        error_at(&err, "%s", line);
    child_raise(L, &err);
}

/* ---- loading -------------------------------------------------------------------------------------------------------- */

/* compile(source, label, environment) -> function */
static int compile(lua_State *L)
{
    size_t size;
    const char *source = luaL_checklstring(L, 1, &size), *label = luaL_checkstring(L, 2);
    struct error err = { .code = ERROR_NONE };
    char chunk[160];
    if (!admit_source(label, source, size, &err))
        return child_raise(L, &err);
    snprintf(chunk, sizeof chunk, "=%s", label);
    if (luaL_loadbuffer(L, source, size, chunk))
        return lua_error(L);
    lua_pushvalue(L, 3);
    lua_setfenv(L, -2);
    return 1;
}

/* register(name, value): what C finds again in the registry ("tostring", "keys", "list", "serve") */
static int keep(lua_State *L)
{
    lua_settop(L, 2);
    lua_setfield(L, LUA_REGISTRYINDEX, luaL_checkstring(L, 1));
    return 0;
}

/* string_methods(table): what ("x"):method() finds */
static int string_methods(lua_State *L)
{
    lua_pushliteral(L, "");
    if (!lua_getmetatable(L, -1))
        return luaL_error(L, "strings have no methods");
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "__index");
    return 0;
}

static void open_library(lua_State *L, lua_CFunction open, const char *name)
{
    lua_pushcfunction(L, open);
    lua_pushstring(L, name);
    lua_call(L, 1, 0);
}

/* The table `native` of the prelude. */
static void push_native(lua_State *L)
{
    static const luaL_Reg list[] = {
        { "fail", fail }, { "line", line_of }, { "compile", compile }, { "register", keep }, { "string_methods", string_methods },
        { NULL, NULL }
    };
    lua_newtable(L);
    luaL_register(L, NULL, list);
    bind_graph(L);
    bind_text(L);
    lua_newtable(L);
    bind_math(L);
    lua_setfield(L, -2, "math");
}

static int prepare(lua_State *L)
{
    open_library(L, luaopen_base, "");
    open_library(L, luaopen_string, LUA_STRLIBNAME);
    open_library(L, luaopen_table, LUA_TABLIBNAME);
    open_library(L, luaopen_math, LUA_MATHLIBNAME);
    lua_gc(L, LUA_GCSETPAUSE, 150);
    lua_newtable(L);
    push_native(L);
    lua_setfield(L, -2, "native");
    int shared = lua_gettop(L);
    for (const struct prelude_module *m = prelude_modules; m->name; m++) {
        char chunk[64];
        snprintf(chunk, sizeof chunk, "@%s", m->name);
        if (luaL_loadbuffer(L, (const char *)m->source, m->size, chunk))
            return lua_error(L);
        lua_pushvalue(L, shared);
        lua_call(L, 1, 0);
    }
    if (luaL_loadstring(L, "local a, b = ... return a ^ b"))
        return lua_error(L);
    lua_pushnumber(L, 3.7);
    lua_pushnumber(L, 2.2);
    lua_call(L, 2, 1);
    if (lua_tonumber(L, -1) != script_pow(3.7, 2.2))
        return luaL_error(L, "this engine's ^ is not the program's own pow");
    return 0;
}

static int raise_once(lua_State *L)
{
    return luaL_error(L, "the unwinder is set up by its first error");
}

bool child_start(struct child *c)
{
    c->lua = lua_newstate(allocate, c);
    if (!c->lua) {
        out_of_memory(c);
        return false;
    }
    lua_pushlightuserdata(c->lua, (void *)&child_key);
    lua_pushlightuserdata(c->lua, c);
    lua_rawset(c->lua, LUA_REGISTRYINDEX);
    lua_cpcall(c->lua, raise_once, NULL);
    lua_settop(c->lua, 0);
    int status = lua_cpcall(c->lua, prepare, NULL);
    if (status)
        adopt(c, status);
    if (status && c->error.code == ERROR_SCRIPT)
        c->error.code = ERROR_FAULT; /* no script has been read yet */
    return !status;
}

/* ---- one request ---------------------------------------------------------------------------------------------------- */

struct request {
    const struct buffer *body;
    struct buffer *reply;
};

static int serve(lua_State *L)
{
    struct request *r = lua_touserdata(L, 1);
    struct reader in = reader_of(r->body->bytes, r->body->size);
    lua_sethook(L, burn, LUA_MASKCOUNT, CHILD_HOOK_PERIOD);
    lua_getfield(L, LUA_REGISTRYINDEX, "serve");
    bind_value_push(L, &in);
    if (!in.ok || reader_left(&in))
        return luaL_error(L, "a malformed request");
    lua_call(L, 1, 1);
    bind_value_write(L, lua_gettop(L), r->reply, 0);
    return 0;
}

bool child_serve(struct child *c, const struct buffer *request, struct buffer *reply)
{
    int status = lua_cpcall(c->lua, serve, &(struct request){ request, reply });

    if (status)
        adopt(c, status);
    return !status;
}

static bool read_all(void *to, size_t size)
{
    for (char *at = to; size;) {
        ssize_t n = read(0, at, size);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_all(const void *from, size_t size)
{
    for (const char *at = from; size;) {
        ssize_t n = write(1, at, size);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static int answer_error(const struct error *err)
{
    struct buffer out = { 0 };
    buffer_add_u32(&out, CHILD_MAGIC);
    buffer_add_u32(&out, err->code ? err->code : ERROR_FAULT);
    buffer_add_u64(&out, strlen(err->place) + strlen(err->message) + strlen(err->hint) + 3);
    buffer_add(&out, err->place, strlen(err->place) + 1);
    buffer_add(&out, err->message, strlen(err->message) + 1);
    buffer_add(&out, err->hint, strlen(err->hint) + 1);
    return write_all(out.bytes, out.size) ? 0 : 1;
}

static int answer(struct child *c, const struct buffer *value)
{
    struct buffer out = { 0 };
    buffer_add_u32(&out, CHILD_MAGIC);
    buffer_add_u32(&out, ERROR_NONE);
    buffer_add_u64(&out, value->size);
    buffer_add(&out, value->bytes, value->size);
    buffer_add_u32(&out, (uint32_t)c->graph_count);
    for (size_t i = 0; i < c->graph_count; i++) {
        struct buffer one = { 0 };
        graph_encode(c->graphs[i], true, &one);
        buffer_add_u64(&out, one.size);
        buffer_add(&out, one.bytes, one.size);
        buffer_free(&one);
    }
    return write_all(out.bytes, out.size) ? 0 : 1;
}

/* The prelude ran before this request's limits were known. */
static bool fits(struct child *c)
{
    if (c->used > c->memory || c->turnover > CHILD_TURNOVER * c->memory) {
        out_of_memory(c);
        return false;
    }
    return true;
}

/* One request, from its header on; `ready`: the interpreter is there. */
static int run_request(struct child *c, struct reader *header, bool ready)
{
    struct buffer request = { 0 }, reply = { 0 };
    uint32_t seconds = reader_u32(header);
    c->memory = reader_u64(header);
    c->fuel = reader_u64(header);
    c->nodes = reader_u64(header);
    uint64_t size = reader_u64(header);
    if (!sandbox_enter(2 * c->memory + size, seconds, &c->error) || !(ready ? fits(c) : child_start(c)) ||
        !sandbox_seal(&c->error))
        return answer_error(&c->error);
    buffer_reserve(&request, size);
    request.size = size;
    if (!read_all(request.bytes, size))
        return 1;
    return child_serve(c, &request, &reply) ? answer(c, &reply) : answer_error(&c->error);
}

static int run_child(struct child *c, bool ready);

/* CLONE_PARENT: the child is the worker's own, which waits for it and may end it. */
static int run_nursery(struct child *c)
{
    c->memory = UINT64_MAX / CHILD_TURNOVER;
    if (syscall(SYS_close_range, 3U, ~0U, 0U) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || !child_start(c))
        return 1;
    resident_settle();
    for (;;) {
        int fd = script_nursery_take();
        if (fd < 0)
            return 0;
        pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
            return dup2(fd, 0) == 0 && dup2(fd, 1) == 1 ? run_child(c, true) : 1;
        close(fd);
        if (!script_nursery_tell(pid))
            return 1;
    }
}

static int run_child(struct child *c, bool ready)
{
    uint8_t bytes[CHILD_HEADER];
    if (!read_all(bytes, sizeof bytes))
        return 1;
    struct reader header = reader_of(bytes, sizeof bytes);
    uint32_t magic = reader_u32(&header);
    if (magic == CHILD_NURSERY && !ready)
        return run_nursery(c);
    return magic == CHILD_MAGIC ? run_request(c, &header, ready) : 1;
}

int script_child_main(void)
{
    struct child c = { .error = { .code = ERROR_NONE } };
    _exit(run_child(&c, false)); /* no exit handlers: nothing to flush, and what they would call is forbidden */
}
