/* self_test.h - every kernel on a fixed input, and the hash of what it must give; internal to native/kernel and its test. */
#ifndef RONDO_KERNEL_SELF_TEST_H
#define RONDO_KERNEL_SELF_TEST_H

#include <stddef.h>

/* How many checks there are, and the name and expected hash (32 hex digits) of one. */
size_t self_test_count(void);
const char *self_test_name(size_t index);
const char *self_test_expected(size_t index);

/* Runs one with what kernel_isa() says: 32 hex digits of BLAKE2b-128 over the outputs' little-endian bytes, NaN as 7fc00000. */
void self_test_hash(size_t index, char hash[33]);

#endif
