/* codec_loops.h - the inner loops of the codec, one table an instruction set. Internal to native/codec.
 *
 * One text (codec_loops_body.h), plain loops over values that do not depend on one another, compiled once for each instruction set: every
 * table gives the same bits. Magnitudes are compared as the bits of |x|, whose order is that of the numbers, NaN above infinity.
 */
#ifndef RONDO_CODEC_LOOPS_H
#define RONDO_CODEC_LOOPS_H

#include <stddef.h>
#include <stdint.h>

struct codec_loops {
    /* The largest bits of |x|; 0 for none. */
    uint32_t (*largest)(size_t n, const float *x);
    /* How many |x| have bits of at least `least`. */
    size_t (*reaching)(size_t n, const float *x, uint32_t least);
    /* flag[i] = whether |x| reaches it, 1 or 0. */
    void (*flags)(size_t n, const float *x, uint32_t least, uint8_t *flag);
    /* codes[i] = x / scale to nearest, ties to even, held within -most..most; scale > 0 and |x / scale| < 2^22. */
    void (*codes)(size_t n, const float *x, float scale, int most, int8_t *codes);
    /* Two codes a byte, the even one in the low half; n counts bytes. And back, sign extended. */
    void (*pack)(size_t n, const int8_t *codes, uint8_t *bytes);
    void (*unpack)(size_t n, const uint8_t *bytes, int8_t *codes);
    /* The least code. */
    int (*least)(size_t n, const int8_t *codes);
    /* x = scale * code; x = x - scale * code, the product rounded first. */
    void (*values)(size_t n, const int8_t *codes, float scale, float *x);
    void (*subtract)(size_t n, const int8_t *codes, float scale, float *x);
    /* bf16 and back; x = x - what its bf16 stands for. */
    void (*half)(size_t n, const float *x, uint16_t *out);
    void (*whole)(size_t n, const uint16_t *x, float *out);
    void (*subtract_half)(size_t n, float *x);
    /* rest = fma(decay, rest, update). */
    void (*carry)(size_t n, float decay, const float *update, float *rest);
};

extern const struct codec_loops codec_loops_plain, codec_loops_avx2, codec_loops_avx512;

/* The table of kernel_isa(). */
const struct codec_loops *codec_loops(void);

#endif
