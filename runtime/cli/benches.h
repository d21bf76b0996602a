/* benches.h - the parts of `rondo bench`, one file each (cmd_bench_*.c), listed in cmd_bench.c.
 *
 * A part measures and prints its rows (measure.h). What it cannot measure for want of a peer it prints with measure_absent. An error
 * is a fault of ours: no memory, a kernel class that this machine cannot honour.
 */
#ifndef RONDO_CLI_BENCHES_H
#define RONDO_CLI_BENCHES_H

#include "runtime/cli/measure.h"

bool bench_aggregate(struct measure *m, struct error *err);
bool bench_attention(struct measure *m, struct error *err);
bool bench_codec(struct measure *m, struct error *err);
bool bench_decode(struct measure *m, struct error *err);
bool bench_functions(struct measure *m, struct error *err);
bool bench_gemm(struct measure *m, struct error *err);
bool bench_hash(struct measure *m, struct error *err);
bool bench_network(struct measure *m, struct error *err);
bool bench_step(struct measure *m, struct error *err);
bool bench_tokenize(struct measure *m, struct error *err);

#endif
