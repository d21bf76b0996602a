#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/kernel/class.h"
#include "native/model/source.h"
#include "native/text/template.h"
#include "native/text/tokenizer.h"
#include "runtime/cli/commands.h"
#include "runtime/role/run_file.h"
#include "runtime/script/host.h"

enum { JSON_LIMIT = 64 << 20 };
#define TOKENIZER "rondo.tokenizer"

/* Functions with `raises` in their name do not return when something is wrong: they raise a Lua error. Nothing may be owned then. */

static int raises_error(lua_State *l, const struct error *err)
{
    char text[1024];

    lua_pushstring(l, error_text(err, text, sizeof text));
    return lua_error(l);
}

/* The JSON text at `index`, or NULL when the argument is absent. */
static json_t *json_argument_raises(lua_State *l, int index)
{
    struct error err = { 0 };
    size_t size;
    const char *text = lua_isnoneornil(l, index) ? NULL : luaL_checklstring(l, index, &size);
    json_t *value = text ? json_read(text, size, JSON_LIMIT, &err) : NULL;

    if (text && !value)
        raises_error(l, &err);
    return value;
}

/* Takes the reference of `value`. */
static int push_json_raises(lua_State *l, json_t *value, const struct error *err)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

    json_decref(value);
    if (!text)
        return raises_error(l, err);
    lua_pushstring(l, text);
    free(text);
    return 1;
}

/* --- scripts -------------------------------------------------------------------------------------------------------------- */

/* script_describe(file, options?) and script_check(file, options?, config?): arguments and results are JSON text. */
static int script_raises(lua_State *l, bool check)
{
    const char *file = luaL_checkstring(l, 1);
    json_t *options = json_argument_raises(l, 2), *config = check ? json_argument_raises(l, 3) : NULL, *meta = NULL;
    struct script_set set = { 0 };
    struct error err = { 0 };
    char folder[4096];

    if (script_set_read(run_file_scripts(folder), file, options, &set, &err))
        meta = check ? script_check(&set.bundle, config, NULL, &err) : script_describe(&set.bundle, NULL, &err);
    script_set_free(&set);
    json_decref(options);
    json_decref(config);
    return push_json_raises(l, meta, &err);
}

static int describe_raises(lua_State *l)
{
    return script_raises(l, false);
}

static int check_raises(lua_State *l)
{
    return script_raises(l, true);
}

/* --- text ----------------------------------------------------------------------------------------------------------------- */

/* render(template, context): the text of a chat template with a JSON context. */
static int render_raises(lua_State *l)
{
    size_t size;
    const char *source = luaL_checklstring(l, 1, &size);
    const struct template_options options = { .date = TEMPLATE_DATE };
    struct template_output out = { 0 };
    struct error err = { 0 };
    json_t *context = json_argument_raises(l, 2);
    struct template *template = template_new(source, size, &err);
    bool ok = template && template_render(template, context, &options, &out, &err);

    if (ok)
        lua_pushlstring(l, (const char *)out.text.bytes, out.text.size);
    template_output_free(&out);
    template_free(template);
    json_decref(context);
    return ok ? 1 : raises_error(l, &err);
}

/* tokenizer(model): of a folder or .gguf file. */
static int tokenizer_raises(lua_State *l)
{
    struct error err = { 0 };
    struct model_source *model = model_open(luaL_checkstring(l, 1), &err);
    struct tokenizer **held = lua_newuserdata(l, sizeof *held);

    *held = model ? model_tokenizer(model, &err) : NULL;
    model_close(model);
    if (!*held)
        return raises_error(l, &err);
    luaL_getmetatable(l, TOKENIZER);
    lua_setmetatable(l, -2);
    return 1;
}

static struct tokenizer *tokenizer_argument_raises(lua_State *l)
{
    return *(struct tokenizer **)luaL_checkudata(l, 1, TOKENIZER);
}

/* t:encode(text): a list of ids. */
static int encode_raises(lua_State *l)
{
    struct tokenizer *t = tokenizer_argument_raises(l);
    struct tokens tokens = { 0 };
    struct error err = { 0 };
    size_t size;
    const char *text = luaL_checklstring(l, 2, &size);

    if (!tokenizer_encode(t, text, size, true, &tokens, &err)) {
        tokens_free(&tokens);
        return raises_error(l, &err);
    }
    lua_createtable(l, (int)tokens.count, 0);
    for (size_t i = 0; i < tokens.count; i++) {
        lua_pushinteger(l, tokens.ids[i]);
        lua_rawseti(l, -2, (int)i + 1);
    }
    tokens_free(&tokens);
    return 1;
}

/* t:decode(ids): their text, special tokens included. */
static int decode_raises(lua_State *l)
{
    struct tokenizer *t = tokenizer_argument_raises(l);
    struct buffer text = { 0 };
    struct error err = { 0 };
    bool ok = true;

    luaL_checktype(l, 2, LUA_TTABLE);
    for (size_t i = 1; ok && i <= lua_objlen(l, 2); i++) {
        lua_rawgeti(l, 2, (int)i);
        uint32_t id = (uint32_t)lua_tointeger(l, -1);

        ok = tokenizer_decode(t, &id, 1, true, &text, &err);
        lua_pop(l, 1);
    }
    if (ok)
        lua_pushlstring(l, text.bytes ? (const char *)text.bytes : "", text.size);
    buffer_free(&text);
    return ok ? 1 : raises_error(l, &err);
}

static int release(lua_State *l)
{
    tokenizer_free(tokenizer_argument_raises(l));
    return 0;
}

/* --- the command ---------------------------------------------------------------------------------------------------------- */

static void open_rondo(lua_State *l)
{
    static const luaL_Reg functions[] = { { "script_describe", describe_raises },
                                          { "script_check", check_raises },
                                          { "render", render_raises },
                                          { "tokenizer", tokenizer_raises },
                                          { NULL, NULL } };
    static const luaL_Reg methods[] = {
        { "encode", encode_raises }, { "decode", decode_raises }, { "__gc", release }, { NULL, NULL }
    };

    luaL_newmetatable(l, TOKENIZER);
    lua_pushvalue(l, -1);
    lua_setfield(l, -2, "__index");
    luaL_register(l, NULL, methods);
    lua_pop(l, 1);
    luaL_register(l, "rondo", functions);
    lua_pushstring(l, RONDO_VERSION);
    lua_setfield(l, -2, "version");
    lua_pushstring(l, kernel_class_name());
    lua_setfield(l, -2, "kernel_class");
    lua_pop(l, 1);
}

static int lua_main(struct invocation *in)
{
    struct error err = { 0 };
    lua_State *l = luaL_newstate();
    int status = EXIT_OK;

    if (!l) {
        error_set(&err, ERROR_MEMORY, NULL, "no memory for Lua");
        return command_fail(in, &err);
    }
    luaL_openlibs(l);
    open_rondo(l);
    lua_createtable(l, (int)in->arguments, 0);
    for (size_t i = 0; i < in->arguments; i++) {
        lua_pushstring(l, in->argument[i]);
        lua_rawseti(l, -2, (int)i); /* arg[0] is the file, as of luajit */
    }
    lua_setglobal(l, "arg");
    if (luaL_loadfile(l, in->argument[0])) {
        error_set(&err, ERROR_SCRIPT, NULL, "%s", lua_tostring(l, -1));
        status = command_fail(in, &err);
    } else {
        for (size_t i = 1; i < in->arguments; i++)
            lua_pushstring(l, in->argument[i]);
        if (lua_pcall(l, (int)in->arguments - 1, 0, 0)) {
            const char *text = lua_tostring(l, -1);

            error_set(&err, ERROR_SCRIPT, NULL, "%s", text ? text : "an error that is no text");
            status = command_fail(in, &err);
        }
    }
    lua_close(l);
    return status;
}

const struct command command_lua = {
    "lua",
    "FILE [ARG] ...",
    "run a trusted Lua file with the runtime's bindings",
    "rondo lua check_all.lua\nrondo lua tool.lua -- --its-own-flag",
    "The file is trusted: plain LuaJIT with all its libraries, no sandbox; for tests and tools, never for scripts of others. Its "
    "table\n"
    "`rondo` has: version, kernel_class; script_describe(file, options) and script_check(file, options, config), with JSON text "
    "for\n"
    "arguments and results; render(template, context); tokenizer(model) with t:encode(text) and t:decode(ids). Faults are Lua "
    "errors.",
    NULL,
    lua_main,
};
