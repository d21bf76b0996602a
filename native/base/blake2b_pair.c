/* Two lanes: NEON, SSE2, or whatever the compiler makes of vectors of 16 bytes. */
#define BLAKE2B_WIDTH 2
#define BLAKE2B_GROUP blake2b_group_2
#include "native/base/blake2b_lanes.h"
