/* prelude.h - the trusted Lua modules of runtime/lua, compiled into the program; the build makes prelude.c from them. */
#ifndef RONDO_SCRIPT_PRELUDE_H
#define RONDO_SCRIPT_PRELUDE_H

#include <stddef.h>

struct prelude_module {
    const char *name; /* NULL ends the list */
    const unsigned char *source;
    size_t size;
};

extern const struct prelude_module prelude_modules[]; /* in the order they are run */

#endif
