#include "runtime/cli/commands.h"

const struct command *const commands[] = {
    NULL,
};
