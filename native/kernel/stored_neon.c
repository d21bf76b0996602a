#define STORED_TABLE stored_neon
#include "native/kernel/stored_body.h"
