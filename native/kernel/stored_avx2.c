#define STORED_TABLE stored_avx2
#include "native/kernel/stored_body.h"
