/* machine_limit.h - what this machine can do at most: measured, since no document says what a shared or virtual core gets. */
#ifndef RONDO_CLI_MACHINE_LIMIT_H
#define RONDO_CLI_MACHINE_LIMIT_H

/* GFLOP/s of a loop of nothing but fused multiplications and additions on registers, on that many threads; 0 where it is not known. */
double machine_limit_arithmetic(unsigned threads);

/* GB/s read and written by adding one large array onto another, on that many threads. */
double machine_limit_memory(unsigned threads);

#endif
