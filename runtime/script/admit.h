/* admit.h - whether a file may be given to the engine at all. Needs no engine.
 *
 * The engines differ in what they accept beyond Lua 5.1 (`5LL` makes an FFI object in every LuaJIT; newer ones read `+=`, `?.`,
 * `const`), and all of them load bytecode. So the language is defined here: strict Lua 5.1 tokens, UTF-8, at most 64 KiB, brackets and
 * blocks at most 64 deep, at most 4096 constants. What this admits, the engine still has to parse.
 */
#ifndef RONDO_SCRIPT_ADMIT_H
#define RONDO_SCRIPT_ADMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "native/base/error.h"

enum { ADMIT_BYTES = 65536, ADMIT_DEPTH = 64, ADMIT_CONSTANTS = 4096 };

/* `name` is what errors say before ":line" ("chat_sft.lua@1f2e3d4c"). Errors: limit, syntax. */
bool admit_source(const char *name, const char *source, size_t size, struct error *err);

#endif
