#include "native/codec/feedback.h"

#include "native/codec/codec_loops.h"

enum { PIECE = TOPK_CHUNK }; /* values at a time: they stay in the cache between the steps */

_Static_assert(PIECE % QUANTISE_BLOCK == 0, "pieces do not cut blocks");

static bool encode_rest(const struct topk *codec, float *values, uint64_t count, struct buffer *out)
{
    return codec->keep ? topk_encode_rest(codec, values, count, out, NULL)
                       : quantise_encode_rest(codec->bits, values, count, out, NULL);
}

bool feedback_encode(const struct topk *codec, float decay, const float *update, float *rest, uint64_t count, struct buffer *out,
                     struct error *err)
{
    const uint64_t piece = codec->keep ? codec->of : PIECE;
    const size_t before = out->size;

    if (!(codec->keep ? topk_known(codec) : quantise_known(codec->bits)))
        return error_set(err, ERROR_UNSUPPORTED, NULL, "a codec that keeps %u of %u values with %u bits", codec->keep, codec->of,
                         codec->bits);
    if (!(decay >= 0 && decay <= 1))
        return error_set(err, ERROR_RANGE, NULL, "a decay of %g, it lies in 0..1", (double)decay);
    for (uint64_t i = 0; i < count; i += piece) {
        const uint64_t n = count - i < piece ? count - i : piece;

        codec_loops()->carry((size_t)n, decay, update + i, rest + i);
        if (!encode_rest(codec, rest + i, n, out)) {
            out->size = before;
            return quantise_check(rest + i, n, i, err);
        }
    }
    return true;
}
