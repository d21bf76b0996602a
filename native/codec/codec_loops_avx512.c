#define CODEC_LOOPS codec_loops_avx512
#include "native/codec/codec_loops_body.h"
