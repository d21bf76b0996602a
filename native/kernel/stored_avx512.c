#define STORED_TABLE stored_avx512
#include "native/kernel/stored_body.h"
