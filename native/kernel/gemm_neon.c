#define GEMM_BLOCK gemm_block_neon
#include "native/kernel/gemm_block.h"
