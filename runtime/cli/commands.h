/* commands.h - every command's row, one file a topic. */
#ifndef RONDO_CLI_COMMANDS_H
#define RONDO_CLI_COMMANDS_H

#include "runtime/cli/command.h"

extern const struct command command_attest_data, command_attest_pack, command_attest_verify;
extern const struct command command_audit;
extern const struct command command_auditor;
extern const struct command command_bisect;
extern const struct command command_bench;
extern const struct command command_challenge;
extern const struct command command_chat;
extern const struct command command_data_check;
extern const struct command command_data_convert;
extern const struct command command_data_preview;
extern const struct command command_deposit;
extern const struct command command_doctor;
extern const struct command command_eval;
extern const struct command command_fit;
extern const struct command command_node_gc;
extern const struct command command_node_pin;
extern const struct command command_key_new;
extern const struct command command_leave;
extern const struct command command_watch;
extern const struct command command_node_check, command_node_backup;
extern const struct command command_key_show;
extern const struct command command_ledger;
extern const struct command command_local;
extern const struct command command_lua;
extern const struct command command_model_inspect;
extern const struct command command_model_merge;
extern const struct command command_model_quantise;
extern const struct command command_replay;
extern const struct command command_rollouts;
extern const struct command command_run_check;
extern const struct command command_run_create;
extern const struct command command_run_list;
extern const struct command command_run_refund;
extern const struct command command_run_show;
extern const struct command command_run_amend;
extern const struct command command_run_stop;
extern const struct command command_sample;
extern const struct command command_script_check;
extern const struct command command_script_describe;
extern const struct command command_script_try;
extern const struct command command_simulate;
extern const struct command command_sponsor;
extern const struct command command_status;
extern const struct command command_sync;
extern const struct command command_syncer;
extern const struct command command_tokenize;
extern const struct command command_render;
extern const struct command command_trainer;
extern const struct command command_why;
extern const struct command command_withdraw;

/* An auditor in a run that goes on, until it is over: exit status 0 when all that it replayed was right. Options as those of `auditor`. */
int audit_live(struct invocation *in, int64_t share);

#endif
