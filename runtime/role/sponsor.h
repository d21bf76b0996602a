/* sponsor.h - from a run file to a signed run: scripts, model and data become blocks, names become content ids.
 *
 *     run file (run_file.h) ── { spec, network } ──> draft ── names -> CIDs, keys, fallbacks ──> run document ── escrows on the ledger
 *
 * In a draft a script is a name ("chat_sft": found in the scripts folder) or a path, `base_model` a folder or a .gguf file,
 * `adapter.start` a PEFT folder (what the draft leaves open of the adapter is then taken from it),
 * `chat_template` "model" or a file, `dataset` names JSONL files (dataset.h). What those scripts import is found by name and pinned in
 * `imports`.
 */
#ifndef RONDO_ROLE_SPONSOR_H
#define RONDO_ROLE_SPONSOR_H

#include "runtime/crypto/keyfile.h"
#include "runtime/doc/run_spec.h"
#include "runtime/ledger/ledger.h"
#include "runtime/store/block.h"
#include "runtime/store/journal.h"

struct sponsor_setting {
    const char *scripts;              /* folder of scripts, with objectives/, models/, ... */
    const struct block_store *blocks; /* where everything is put */
    const struct key_pair *keys;      /* of the sponsor */
    const json_t *panel;              /* [ { did, account } ], or NULL when the draft has them */
    const json_t *allowed;            /* [ did ] of trainers, or NULL */
    const char *nonce;                /* 32 hex digits, or NULL: drawn */
    uint64_t chain;
    struct address contract;
};

/* Puts everything the draft names into the store and makes the signed run document. `draft` is changed. */
bool sponsor_make_run(const struct sponsor_setting *setting, json_t *draft, struct document *run, struct error *err);

/* Creates the escrow of every round and waits until all are final. Blocking: runs a loop of its own. Escrows that exist already are left
 * alone, so it may be repeated. `journal` keeps each transaction before it is sent. `plain`: plain HTTP to another machine. */
bool sponsor_fund(const struct run_spec *spec, const struct key_pair *keys, const char *ledger, bool plain,
                  struct journal *journal, struct error *err);

/* How many rounds of a run sponsor_fund saw an escrow of; false when this journal never funded it: then it is not its sponsor's. */
bool sponsor_funded(struct journal *journal, struct hash run, uint32_t *rounds);

#endif
