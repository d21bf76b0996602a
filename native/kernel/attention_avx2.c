#define ATTENTION_FORWARD  attention_forward_avx2
#define ATTENTION_BACKWARD attention_backward_avx2
#include "native/kernel/attention_block.h"
