#include "runtime/round/plan_codec.h"

#include <string.h>

#include "native/base/json.h"

/* A whole number from `least` to `most`; `otherwise` where the codec has none. */
static bool read_whole(const json_t *codec, const char *name, unsigned least, unsigned most, unsigned otherwise, unsigned *out,
                       struct error *err)
{
    const json_t *value = json_object_get(codec, name);
    const double number = json_decimal(value, otherwise);

    if (value && (!(number >= least && number <= most) || number != (double)(unsigned)number)) {
        error_set(err, ERROR_RANGE, NULL, "%g is no whole number from %u to %u", number, least, most);
        return error_at(err, "codec.%s", name);
    }
    *out = (unsigned)number;
    return true;
}

/* The least whole number of values that is that share of a chunk. */
static bool read_share(const json_t *share, struct plan_codec *codec, struct error *err)
{
    const double part = json_decimal(share, 0) * codec->of;

    if (!(part > 0 && part <= codec->of)) {
        error_set(err, ERROR_RANGE, NULL, "a share is above 0 and at most 1");
        return error_at(err, "codec.keep_share");
    }
    codec->keep = (unsigned)part;
    if ((double)codec->keep < part)
        codec->keep++;
    return true;
}

static bool read_kept(const json_t *fields, struct plan_codec *codec, struct error *err)
{
    const json_t *keep = json_object_get(fields, "keep"), *share = json_object_get(fields, "keep_share");

    if (!keep && !share && !json_object_get(fields, "of"))
        return true;
    if ((keep != NULL) == (share != NULL)) {
        error_set(err, ERROR_CONFLICT, "of = 4096 with keep, or keep_share",
                  "a codec keeps a number of every `of` values or a share of them");
        return error_at(err, "codec");
    }
    if (!read_whole(fields, "of", 2, PLAN_CODEC_CHUNK, PLAN_CODEC_CHUNK, &codec->of, err))
        return false;
    return share ? read_share(share, codec, err) : read_whole(fields, "keep", 1, codec->of, 0, &codec->keep, err);
}

static bool read_tile(const json_t *fields, struct plan_codec *codec, struct error *err)
{
    const json_t *transform = json_object_get(fields, "transform");

    if (!transform && !json_object_get(fields, "tile"))
        return true;
    if (!json_is_string(transform) || strcmp(json_string_value(transform), "dct") != 0) {
        error_set(err, ERROR_UNSUPPORTED, "transform = \"dct\" is known", "a codec with tiles or another transform");
        return error_at(err, "codec.transform");
    }
    return read_whole(fields, "tile", 2, PLAN_CODEC_TILE, 64, &codec->tile, err);
}

static bool read_feedback(const json_t *plan, const json_t *fields, float *out, struct error *err)
{
    const json_t *value = json_object_get(fields, "feedback");
    const char *inner = json_string_value(json_object_get(plan, "inner"));
    const double decay = json_decimal(value, 0);

    if (!value)
        return true;
    if (!(decay > 0 && decay <= 1)) {
        error_set(err, ERROR_RANGE, "leave it out for none", "a feedback of %g: above 0 and at most 1", decay);
        return error_at(err, "codec.feedback");
    }
    *out = (float)decay;
    return (inner && strcmp(inner, "keep") == 0) ||
           error_set(err, ERROR_UNSUPPORTED, "inner = \"keep\", or set the schedule's option to 0",
                     "a codec with feedback, which inner = \"reset\" would not carry to the next round");
}

bool plan_codec_read(const json_t *plan, struct plan_codec *codec, struct error *err)
{
    const json_t *fields = json_object_get(plan, "codec");
    const double bits = json_decimal(json_object_get(fields, "bits"), 32),
                 block = json_decimal(json_object_get(fields, "block"), PLAN_CODEC_BLOCK);

    *codec = (struct plan_codec){ 0 };
    if (block != PLAN_CODEC_BLOCK || (bits != 32 && bits != 16 && bits != 8 && bits != 4))
        return error_set(err, ERROR_UNSUPPORTED, "bits are 32, 16, 8 or 4 in blocks of 256", "a codec of %g bits in blocks of %g",
                         bits, block);
    codec->bits = (unsigned)bits;
    return read_kept(fields, codec, err) && read_tile(fields, codec, err) && read_feedback(plan, fields, &codec->feedback, err);
}

json_t *plan_codec_document(const struct plan_codec *codec)
{
    json_t *document = json_pack("{s:i, s:i}", "bits", (int)codec->bits, "block", PLAN_CODEC_BLOCK);

    if (codec->keep)
        json_object_update_new(document, json_pack("{s:i, s:i}", "keep", (int)codec->keep, "of", (int)codec->of));
    if (codec->tile)
        json_object_set_new(document, "tile", json_integer(codec->tile));
    return document;
}

bool plan_codec_fits(const json_t *document, const json_t *plan)
{
    struct error ignored = { 0 };
    struct plan_codec codec;
    json_t *wanted = plan_codec_read(plan, &codec, &ignored) ? plan_codec_document(&codec) : NULL;
    const bool fits = wanted && json_equal(document, wanted);

    json_decref(wanted);
    return fits;
}
