/* Also the table of AArch64, whose vectors need no choice at run time. */
#define CODEC_LOOPS codec_loops_plain
#include "native/codec/codec_loops_body.h"
#include "native/kernel/class.h"

const struct codec_loops *codec_loops(void)
{
#ifdef KERNEL_HAS_X86
    if (kernel_isa() == KERNEL_AVX512)
        return &codec_loops_avx512;
    if (kernel_isa() == KERNEL_AVX2)
        return &codec_loops_avx2;
#endif
    return &codec_loops_plain;
}
