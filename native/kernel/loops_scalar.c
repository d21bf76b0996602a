#define LOOPS loops_scalar
#define LANES_PLAIN
#include "native/kernel/loops_body.h"
