#define ATTENTION_FORWARD  attention_forward_avx512
#define ATTENTION_BACKWARD attention_backward_avx512
#include "native/kernel/attention_block.h"
