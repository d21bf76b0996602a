#define ATTENTION_FORWARD  attention_forward_neon
#define ATTENTION_BACKWARD attention_backward_neon
#include "native/kernel/attention_block.h"
