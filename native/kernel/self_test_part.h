/* self_test_part.h - what the checks share: inputs, and the hash that outputs go into; internal to the self-test. */
#ifndef RONDO_KERNEL_SELF_TEST_PART_H
#define RONDO_KERNEL_SELF_TEST_PART_H

#include "native/kernel/attention.h"
#include "native/kernel/dct.h"
#include "native/kernel/digest.h"
#include "native/kernel/elementwise.h"
#include "native/kernel/gather.h"
#include "native/kernel/gemm.h"
#include "native/kernel/norm.h"
#include "native/kernel/order.h"
#include "native/kernel/reduce.h"
#include "native/kernel/rope.h"
#include "native/kernel/self_test.h"
#include "native/kernel/softmax.h"
#include "native/kernel/stored.h"

#define SELF_TEST_DRAWN ((size_t)8192)    /* inputs drawn; beyond them they come again in another order */
#define SELF_TEST_ROOM  ((size_t)1 << 17) /* floats of each buffer */

struct self_test {
    struct pool *pool;
    float *x, *y, *z, *mask, *out, *more; /* x, y, z: numbers of the usual sizes; mask: 0 and 1; a check may write into all */
    int32_t *index;                       /* in [0, 37) */
    struct digest hash;
    float *drawn; /* x, y, z, mask, index as drawn */
    void *memory;
};

/* Into the hash: numbers with every NaN alike; numbers bit by bit; 32-bit words. */
void self_test_keep(struct self_test *test, const float *x, size_t n);
void self_test_keep_bits(struct self_test *test, const void *words, size_t n);

/* The same memory for binary64. */
static inline double *self_test_doubles(float *buffer)
{
    return (double *)(((uintptr_t)buffer + 7) / 8 * 8);
}

/* Outer products of `count` rows of x and y, by index, into the hash. */
void self_test_outer(struct self_test *test, size_t count, size_t rows, size_t columns);

/* x, y and z far out: among the usual numbers infinities, NaN with payloads, -0, subnormals, the largest and the smallest. One in
 * `every`. */
void self_test_make_wild(struct self_test *test, size_t every);

#define CLASS_CHECK(name, function, parameter, start, full)                                                                      \
    void self_test_run_##function(struct self_test *test, int parameter_value);                                                  \
    void self_test_full_##function(struct self_test *test, int parameter_value);
#include "native/kernel/class_table.h"
#undef CLASS_CHECK

#endif
