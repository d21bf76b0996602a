#define LOOPS loops_neon
#include "native/kernel/loops_body.h"
