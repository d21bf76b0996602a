#define LOOPS loops_avx2
#include "native/kernel/loops_body.h"
