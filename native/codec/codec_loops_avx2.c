#define CODEC_LOOPS codec_loops_avx2
#include "native/codec/codec_loops_body.h"
