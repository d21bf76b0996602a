/* commands.h - every command's row, one file a topic. */
#ifndef RONDO_CLI_COMMANDS_H
#define RONDO_CLI_COMMANDS_H

#include "runtime/cli/command.h"

extern const struct command command_audit, command_doctor, command_fit, command_key_new, command_key_show, command_ledger, command_local,
    command_replay, command_sponsor, command_syncer, command_trainer;

#endif
