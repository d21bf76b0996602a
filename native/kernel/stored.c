#include "native/kernel/class.h"

#define STORED_TABLE stored_scalar
#include "native/kernel/stored_body.h"

stored_read *stored_reader(enum stored_type type)
{
#ifdef KERNEL_HAS_X86
    if (kernel_isa() == KERNEL_AVX2)
        return stored_avx2[type];
    if (kernel_isa() == KERNEL_AVX512)
        return stored_avx512[type];
#endif
    return stored_scalar[type];
}
