#define GEMM_BLOCK gemm_block_avx2
#include "native/kernel/gemm_block.h"
