#include "runtime/cli/commands.h"

const struct command *const commands[] = {
    &command_local,
    &command_fit,
    &command_replay,
    &command_audit,
    &command_trainer,
    &command_syncer,
    &command_sponsor,
    &command_ledger,
    &command_key_new,
    &command_key_show,
    &command_doctor,
    NULL,
};
