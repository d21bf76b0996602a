#include "runtime/cli/commands.h"

/* In the order of the help; one a line, so that additions do not collide. */
/* clang-format off */
const struct command *const commands[] = {
    &command_local,
    &command_fit,
    &command_replay,
    &command_audit,
    &command_why,
    &command_sync,
    &command_status,
    &command_run_check,
    &command_run_create,
    &command_run_show,
    &command_run_list,
    &command_run_stop,
    &command_run_refund,
    &command_withdraw,
    &command_script_check,
    &command_script_describe,
    &command_script_try,
    &command_data_check,
    &command_data_preview,
    &command_model_inspect,
    &command_eval,
    &command_sample,
    &command_trainer,
    &command_syncer,
    &command_sponsor,
    &command_ledger,
    &command_key_new,
    &command_key_show,
    &command_bench,
    &command_doctor,
    &command_lua,
    NULL,
};
/* clang-format on */
