/* commands.h - every command's row, one file each. */
#ifndef RONDO_CLI_COMMANDS_H
#define RONDO_CLI_COMMANDS_H

#include "runtime/cli/command.h"

#endif
