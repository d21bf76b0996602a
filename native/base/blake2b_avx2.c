#define BLAKE2B_WIDTH 4
#define BLAKE2B_GROUP blake2b_group_avx2
#include "native/base/blake2b_lanes.h"
