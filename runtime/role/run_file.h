/* run_file.h - run files: where they and what they name are found, and how one is read.
 *
 *     scripts/runs/quickstart.lua ── the script child runs it ──> { spec: the draft (sponsor.h), network: of a local run }
 */
#ifndef RONDO_ROLE_RUN_FILE_H
#define RONDO_ROLE_RUN_FILE_H

#include <jansson.h>

#include "native/base/error.h"

enum { RUN_FILE_TRAINERS = 60, RUN_FILE_SYNCERS = 32 }; /* the most of a local network */

/* The folder of scripts: $RONDO_SCRIPTS, else ./scripts when it is there, else ../share/rondo/scripts beside the program. */
const char *run_file_scripts(char path[4096]);

/* Where a file that a run file names lies: as named, from the current folder, or else beside the folder of scripts (the checkout, or
 * share/rondo of an installation). The name itself when it is in neither. */
const char *run_file_find(const char *path, char found[4096]);

/* { spec, network }, new reference; `scripts`: the folder of scripts. NULL with `err`: missing, those of scripts. */
json_t *run_file_read(const char *path, const char *scripts, struct error *err);

/* The fields of its `network` (NULL: none), but for `eval`. */
bool run_file_check_network(const json_t *network, struct error *err);

#endif
