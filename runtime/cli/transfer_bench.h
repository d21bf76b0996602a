/* transfer_bench.h - blocks from one process to another over loopback, as `rondo bench network.transfer` measures it.
 *
 *     ours    a node's routes ── GET /v1/blocks/CID, several at once ──> fetch.h: each checked, stored in a folder
 *     theirs  nginx           ── GET /CID, one connection, in turn   ──> curl: into a folder
 *
 * Both send the same files and begin with an empty folder. The folders are in memory where there is /dev/shm: ours are synced, curl's are
 * not, and the disk is not what is compared.
 */
#ifndef RONDO_CLI_TRANSFER_BENCH_H
#define RONDO_CLI_TRANSFER_BENCH_H

#include "runtime/cli/measure.h"

/* Measures and prints the row, or prints that nginx or curl is absent. */
bool transfer_bench(struct measure *m, struct error *err);

#endif
