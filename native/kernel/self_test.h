/* self_test.h - every kernel on fixed inputs, and the hashes of what it must give; internal to native/kernel, its tests and
 * tools/cross_check.sh.
 *
 *     start    every kernel once, small: what each process runs before it computes, a few milliseconds
 *     full     the shapes and numbers at which versions come apart: empty, 1, primes, 255 / 256 / 257, long and thin, broadcast and
 *              strided, subnormals, infinities, NaN, -0. `rondo doctor` and the cross check run it.
 *
 * A hash is BLAKE2b-128 over the outputs' little-endian bytes. A NaN is read as 7fc00000, but where the operator moves numbers
 * (docs/numerics.md, rule 8): there its own bits count.
 */
#ifndef RONDO_KERNEL_SELF_TEST_H
#define RONDO_KERNEL_SELF_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/kernel/pool.h"

#define SELF_TEST_HEX 33 /* a hash's digits and the closing zero */

/* The checks of class_table.h. `expected`: of the start, or of the full run. */
size_t self_test_count(void);
const char *self_test_name(size_t index);
const char *self_test_expected(size_t index, bool full);

/* The inputs and the memory to work in. Buffers start `shift` floats behind a multiple of 64 bytes. NULL without memory. */
struct self_test;
struct self_test *self_test_new(struct pool *pool, size_t shift);
void self_test_free(struct self_test *test);

/* Runs one with what kernel_isa() says. */
void self_test_hash(struct self_test *test, size_t index, bool full, char hash[SELF_TEST_HEX]);

/* BLAKE2b-256 over the lines "name start full\n" of all checks; `hash` tells a hash of one. */
void self_test_digest(const char *(*hash)(void *context, size_t index, bool full), void *context, uint8_t digest[32]);

#endif
