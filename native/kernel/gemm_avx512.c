#define GEMM_BLOCK gemm_block_avx512
#include "native/kernel/gemm_block.h"
