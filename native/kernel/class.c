#include "native/kernel/class.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "native/kernel/loops.h"

static atomic_int chosen = -1; /* enum kernel_isa; -1: the widest present */

const char *kernel_isa_name(enum kernel_isa isa)
{
    static const char *const names[KERNEL_ISAS] = { "scalar", "avx2", "avx512" };

    return names[isa];
}

bool kernel_isa_present(enum kernel_isa isa)
{
    switch (isa) {
    case KERNEL_SCALAR:
        return true;
    case KERNEL_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case KERNEL_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && kernel_isa_present(KERNEL_AVX2);
    case KERNEL_ISAS:
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
    static const struct loops *const tables[KERNEL_ISAS] = { &loops_scalar, &loops_avx2, &loops_avx512 };

    return tables[kernel_isa()];
}
