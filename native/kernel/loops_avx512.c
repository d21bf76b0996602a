#define LOOPS loops_avx512
#include "native/kernel/loops_body.h"
