/* class.h - the kernel class: which instructions run, whether this machine may take part, and its name.
 *
 * Every kernel exists as a scalar definition and as AVX2 and AVX-512 versions that give the same bits. The widest that the machine has
 * is taken; RONDO_ISA = scalar | avx2 | avx512 chooses another (for tests and for comparing machines). What the machine lacks is an
 * error, never a fallback.
 */
#ifndef RONDO_KERNEL_CLASS_H
#define RONDO_KERNEL_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

/* The wide versions are built where the processor can have them; elsewhere their names stand for NULL and kernel_isa() is always the
 * scalar one. */
#if defined(__x86_64__)
#define KERNEL_HAS_X86
#define KERNEL_X86(name) name
#else
#define KERNEL_X86(name) NULL
#endif

enum kernel_isa { KERNEL_SCALAR, KERNEL_AVX2, KERNEL_AVX512, KERNEL_ISAS };

const char *kernel_isa_name(enum kernel_isa isa);
bool kernel_isa_present(enum kernel_isa isa);

/* What runs now. */
enum kernel_isa kernel_isa(void);

/* From now on; process-wide, between kernel calls only. False: this machine has not got it. */
bool kernel_isa_use(enum kernel_isa isa, struct error *err);

/* To be called once at the start of a process that computes: reads RONDO_ISA, asserts rounding to nearest and that subnormals are kept
 * (MXCSR), runs the self-test. */
bool kernel_start(struct error *err);

/* Runs every kernel on a fixed input and compares the hash of its output with the table in class_table.h; names the first that
 * differs. */
bool kernel_self_test(struct error *err);

/* "portable-f32-1", and BLAKE2b-256 of the table's text: the `kernel_class` of enrolments and contributions. */
const char *kernel_class_name(void);
void kernel_class_digest(uint8_t digest[32]);

#endif
