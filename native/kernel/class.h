/* class.h - the kernel class: which instructions run, whether this machine may take part, and its name.
 *
 * Every kernel exists as a scalar definition and as AVX2, AVX-512 and NEON versions that give the same bits. The widest that the machine
 * has is taken; RONDO_ISA = scalar | avx2 | avx512 | neon chooses another (for tests and for comparing machines). What the machine lacks
 * is an error, never a fallback.
 */
#ifndef RONDO_KERNEL_CLASS_H
#define RONDO_KERNEL_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"
#include "native/kernel/pool.h"

/* The wide versions are built where the processor can have them; elsewhere their names stand for NULL and kernel_isa() is always the
 * scalar one. */
#if defined(__x86_64__)
#define KERNEL_HAS_X86
#define KERNEL_X86(name) name
#else
#define KERNEL_X86(name) NULL
#endif
#if defined(__aarch64__)
#define KERNEL_HAS_ARM
#define KERNEL_ARM(name) name
#else
#define KERNEL_ARM(name) NULL
#endif

enum kernel_isa { KERNEL_SCALAR, KERNEL_AVX2, KERNEL_AVX512, KERNEL_NEON, KERNEL_ISAS };

/* One thing for each instruction set, in the order above: `scalar`, name_avx2, ... */
#define KERNEL_TABLE(scalar, name)                                                                                               \
    {                                                                                                                            \
        scalar, KERNEL_X86(name##_avx2), KERNEL_X86(name##_avx512), KERNEL_ARM(name##_neon)                                      \
    }

const char *kernel_isa_name(enum kernel_isa isa);
bool kernel_isa_present(enum kernel_isa isa);

/* What runs now. */
enum kernel_isa kernel_isa(void);

/* From now on; process-wide, between kernel calls only. False: this machine has not got it. */
bool kernel_isa_use(enum kernel_isa isa, struct error *err);

/* To be called once at the start of a process that computes: kernel_choose, kernel_arithmetic and the self-test's start. */
bool kernel_start(struct error *err);

/* Takes what RONDO_ISA names; without it nothing changes. */
bool kernel_choose(struct error *err);

/* Rounding to nearest, subnormals kept, nothing wider than binary32 in between: said by name where it does not hold. A few additions:
 * asked again before each step, for what a library loaded later may have set. */
bool kernel_arithmetic(struct error *err);

/* Runs every kernel on fixed inputs (self_test.h: the start, with `full` all of it) and compares the hashes of the outputs with the
 * table in class_table.h; names the first that differs. */
bool kernel_self_test(struct pool *pool, bool full, struct error *err);

/* "portable-f32-1", and BLAKE2b-256 of the table (self_test_digest): the `kernel_class` of enrolments and contributions. */
const char *kernel_class_name(void);
void kernel_class_digest(uint8_t digest[32]);

#endif
