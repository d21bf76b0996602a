#include "native/kernel/class.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "native/kernel/loops.h"
#include "native/kernel/self_test.h"

static atomic_int chosen = -1; /* enum kernel_isa; -1: the widest present */

const char *kernel_isa_name(enum kernel_isa isa)
{
    static const char *const names[KERNEL_ISAS] = { "scalar", "avx2", "avx512", "neon" };

    return names[isa];
}

bool kernel_isa_present(enum kernel_isa isa)
{
    switch (isa) {
    case KERNEL_SCALAR:
        return true;
#ifdef KERNEL_HAS_X86
    case KERNEL_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case KERNEL_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && kernel_isa_present(KERNEL_AVX2);
#endif
#ifdef KERNEL_HAS_ARM
    case KERNEL_NEON:
        return true; /* every AArch64 has it */
#endif
    default:
        break;
    }
    return false;
}

enum kernel_isa kernel_isa(void)
{
    int isa = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (isa < 0) {
        for (isa = KERNEL_ISAS - 1; !kernel_isa_present((enum kernel_isa)isa); isa--)
            ;
        atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    }
    return (enum kernel_isa)isa;
}

bool kernel_isa_use(enum kernel_isa isa, struct error *err)
{
    if (!kernel_isa_present(isa))
        return error_set(err, ERROR_ABSENT, "unset RONDO_ISA to take the widest that is there",
                         "this machine has no %s instructions", kernel_isa_name(isa));
    atomic_store_explicit(&chosen, (int)isa, memory_order_relaxed);
    return true;
}

const struct loops *loops(void)
{
    static const struct loops *const tables[KERNEL_ISAS] = KERNEL_TABLE(&loops_scalar, &loops);

    return tables[kernel_isa()];
}

/* Seen from outside, so that it holds on any processor: rounding to nearest even, subnormal results and operands kept, nothing wider
 * than binary32 in between. */
bool kernel_arithmetic(struct error *err)
{
    volatile float one = 1.0f, half_ulp = 0x1p-24f, more = 0x1.8p-24f, least_normal = 0x1p-126f, half = 0.5f,
                   subnormal = 0x1p-140f;
    const char *hint = "a library built with fast-math may have set the processor's control word: find and replace it";

    if (one + half_ulp - one == half_ulp) /* binary32 gives 0, or 2^-23, whatever the rounding */
        return error_set(err, ERROR_FAULT, "build it without -mfpmath=387 and for SSE2",
                         "this build computes wider than binary32 in between (x87)");
    if (one + half_ulp != 1.0f || one + more != 1.0f + 0x1p-23f || -one - half_ulp != -1.0f)
        return error_set(err, ERROR_FAULT, hint, "the processor does not round to the nearest number");
    if (least_normal * half == 0.0f || subnormal * 0x1p30f == 0.0f)
        return error_set(err, ERROR_FAULT, hint, "the processor flushes subnormal numbers to zero");
    return true;
}

bool kernel_choose(struct error *err)
{
    const char *wanted = getenv("RONDO_ISA");
    int isa = 0;

    if (!wanted || !*wanted)
        return true;
    while (isa < KERNEL_ISAS && strcmp(wanted, kernel_isa_name((enum kernel_isa)isa)) != 0)
        isa++;
    if (isa == KERNEL_ISAS)
        return error_set(err, ERROR_UNKNOWN, "scalar, avx2, avx512 and neon are known",
                         "RONDO_ISA: unknown instruction set \"%s\"", wanted);
    return kernel_isa_use((enum kernel_isa)isa, err) || error_at(err, "RONDO_ISA");
}

static bool self_test(struct self_test *test, bool full, struct error *err)
{
    for (size_t i = 0; i < self_test_count(); i++) {
        char hash[SELF_TEST_HEX];

        self_test_hash(test, i, full, hash);
        if (strcmp(hash, self_test_expected(i, full)) != 0)
            return error_set(err, ERROR_MISMATCH,
                             "this build or this machine cannot take part in runs of this class; report both hashes",
                             "kernel class %s: %s%s gives %s, not %s (%s)", kernel_class_name(), self_test_name(i),
                             full ? " (full)" : "", hash, self_test_expected(i, full), kernel_isa_name(kernel_isa()));
    }
    return true;
}

bool kernel_self_test(struct pool *pool, bool full, struct error *err)
{
    struct self_test *test = self_test_new(pool, 1);
    bool ok = test ? self_test(test, false, err) && (!full || self_test(test, true, err))
                   : error_set(err, ERROR_FAULT, NULL, "no memory for the self-test of the kernels");

    self_test_free(test);
    return ok;
}

bool kernel_start(struct error *err)
{
#ifdef RONDO_FREE_ORDER /* a measuring build (CMakeLists.txt): its bits are nobody's */
    return kernel_choose(err);
#else
    return kernel_choose(err) && kernel_arithmetic(err) && kernel_self_test(NULL, false, err);
#endif
}

const char *kernel_class_name(void)
{
    return "portable-f32-1";
}

static const char *expected(void *context, size_t index, bool full)
{
    (void)context;
    return self_test_expected(index, full);
}

void kernel_class_digest(uint8_t digest[32])
{
    self_test_digest(expected, NULL, digest);
}
