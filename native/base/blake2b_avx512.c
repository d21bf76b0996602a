#define BLAKE2B_WIDTH 8
#define BLAKE2B_GROUP blake2b_group_avx512
#include "native/base/blake2b_lanes.h"
