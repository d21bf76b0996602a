#include "native/codec/payload.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "native/codec/topk.h"
#include "native/codec/transform.h"

static const char MAGIC[4] = { 'R', 'N', 'D', 'P' };

enum { KIND_TOPK = 1, KIND_TRANSFORM = 2, KINDS = 4 }; /* bits; 0: all values as they are */

/* Codecs ----------------------------------------------------------------------------------------------------------------- */

static struct topk topk_of(const struct payload_header *header)
{
    return (struct topk){ .keep = header->keep, .of = header->of, .bits = header->bits };
}

static bool is_topk(const struct payload_header *header)
{
    return header->keep != 0 || header->of != 0;
}

static bool check_codec(const struct payload_header *header, struct error *err)
{
    const struct topk topk = topk_of(header);

    if (!quantise_known(header->bits)) {
        error_set(err, ERROR_UNSUPPORTED, "32, 16, 8 and 4 are known", "payloads of %u bits", header->bits);
        return error_at(err, "bits");
    }
    if (is_topk(header) && !topk_known(&topk)) {
        error_set(err, ERROR_RANGE, NULL, "%u of every %u values: 1 to all of 2 to %d can be kept", header->keep, header->of,
                  TOPK_CHUNK);
        return error_at(err, "keep");
    }
    if (header->tile == 1 || header->tile > TRANSFORM_TILE) {
        error_set(err, ERROR_RANGE, NULL, "tiles have sides of at most 2 to %d, not %u", TRANSFORM_TILE, header->tile);
        return error_at(err, "tile");
    }
    return true;
}

static bool values_size(const struct payload_header *header, uint64_t count, uint64_t *bytes)
{
    const struct topk topk = topk_of(header);

    return is_topk(header) ? topk_size(&topk, count, bytes) : quantise_size(header->bits, count, bytes);
}

static bool encode_array(const struct payload_header *header, const float *values, uint64_t count, struct buffer *out,
                         struct error *err)
{
    const struct topk topk = topk_of(header);

    return is_topk(header) ? topk_encode(&topk, values, count, out, err) : quantise_encode(header->bits, values, count, out, err);
}

static bool decode_array(const struct payload_header *header, struct reader *in, float *values, uint64_t count, struct error *err)
{
    const struct topk topk = topk_of(header);

    return is_topk(header) ? topk_decode(&topk, in, count, values, err) : quantise_decode(header->bits, in, count, values, err);
}

static float *new_coefficients(const struct tensor *t, struct error *err)
{
    float *values = malloc((size_t)(tensor_values(t) + 1) * sizeof *values);

    if (!values)
        error_set(err, ERROR_MEMORY, NULL, "no memory for the coefficients");
    return values;
}

static bool encode_values(const struct payload_header *header, const struct tensor *t, struct buffer *out, struct error *err)
{
    const uint64_t count = tensor_values(t);

    if (header->tile == 0)
        return encode_array(header, t->data, count, out, err);
    float *coefficients = new_coefficients(t, err);
    const bool ok = coefficients && quantise_check(t->data, count, 0, err) &&
                    transform_forward(t, header->tile, coefficients, err) && encode_array(header, coefficients, count, out, err);

    free(coefficients);
    return ok;
}

static bool decode_values(const struct payload_header *header, struct reader *in, const struct tensor *t, struct error *err)
{
    const uint64_t count = tensor_values(t);

    if (header->tile == 0)
        return decode_array(header, in, t->data, count, err);
    float *coefficients = new_coefficients(t, err);
    const bool ok = coefficients && decode_array(header, in, coefficients, count, err) &&
                    transform_inverse(coefficients, header->tile, t, err) && quantise_check(t->data, count, 0, err);

    free(coefficients);
    return ok;
}

/* Order ------------------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct tensor *const *)a)->name, (*(const struct tensor *const *)b)->name);
}

static bool check_tensor(const struct tensor *t, size_t index, struct error *err)
{
    if (!t->name)
        return error_set(err, ERROR_MISSING, NULL, "tensor %zu has no name", index);
    if (t->type == TENSOR_F32)
        return true;
    error_set(err, ERROR_TYPE, NULL, "a payload holds f32, not %s", tensor_type_name(t->type));
    return error_at(err, "%s", t->name);
}

/* The tensors in name order (free it), or NULL with `err`. */
static const struct tensor **in_order(const struct tensor *tensors, size_t count, struct error *err)
{
    const struct tensor **order = malloc((count + 1) * sizeof *order);

    if (!order) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", count);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &tensors[i];
        if (!check_tensor(&tensors[i], i, err)) {
            free(order);
            return NULL;
        }
    }
    qsort(order, count, sizeof *order, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0) {
            error_set(err, ERROR_DUPLICATE, NULL, "two tensors have the name %s", order[i]->name);
            free(order);
            return NULL;
        }
    return order;
}

bool payload_body_size(const struct payload_header *header, const struct tensor *tensors, size_t count, uint64_t *bytes)
{
    uint64_t total = 0, size;

    for (size_t i = 0; i < count; i++)
        if (!values_size(header, tensor_values(&tensors[i]), &size) || __builtin_add_overflow(total, size, &total))
            return false;
    *bytes = total;
    return true;
}

/* Header ----------------------------------------------------------------------------------------------------------------- */

static bool check_did(const char *did, size_t length, struct error *err)
{
    if (length == 0 || length > PAYLOAD_DID)
        return error_set(err, ERROR_RANGE, NULL, "a DID has 1 to %d bytes, not %zu", PAYLOAD_DID, length);
    for (size_t i = 0; i < length; i++)
        if (did[i] < '!' || did[i] > '~')
            return error_set(err, ERROR_RANGE, NULL, "byte %zu of the DID is not printable ASCII", i);
    return true;
}

static bool write_header(const struct payload_header *header, struct buffer *out, struct error *err)
{
    const size_t length = strnlen(header->did, sizeof header->did);

    if (!check_codec(header, err))
        return false;
    if (!check_did(header->did, length, err))
        return error_at(err, "did");
    buffer_add(out, MAGIC, sizeof MAGIC);
    buffer_add_u16(out, PAYLOAD_VERSION);
    buffer_add_u8(out, (uint8_t)header->bits);
    buffer_add_u8(out, (uint8_t)((is_topk(header) ? KIND_TOPK : 0) | (header->tile ? KIND_TRANSFORM : 0)));
    buffer_add_u32(out, header->fragment);
    buffer_add_u32(out, header->round);
    buffer_add(out, header->run, sizeof header->run);
    buffer_add_u16(out, (uint16_t)length);
    buffer_add(out, header->did, length);
    if (is_topk(header)) {
        buffer_add_u16(out, (uint16_t)header->keep);
        buffer_add_u16(out, (uint16_t)header->of);
    }
    if (header->tile)
        buffer_add_u16(out, (uint16_t)header->tile);
    return true;
}

static bool read_did(struct reader *in, struct payload_header *header, struct error *err)
{
    const uint16_t length = reader_u16(in);
    const char *did = (const char *)reader_bytes(in, length);

    if (!in->ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "the payload ends inside its header");
    if (!check_did(did, length, err))
        return error_at(err, "did");
    memcpy(header->did, did, length);
    header->did[length] = 0;
    return true;
}

static bool read_kept(struct reader *in, uint8_t kind, struct payload_header *header, struct error *err)
{
    header->keep = kind & KIND_TOPK ? reader_u16(in) : 0;
    header->of = kind & KIND_TOPK ? reader_u16(in) : 0;
    header->tile = kind & KIND_TRANSFORM ? reader_u16(in) : 0;
    if (!in->ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "the payload ends inside its header");
    if ((kind & KIND_TRANSFORM) && header->tile == 0) {
        error_set(err, ERROR_RANGE, NULL, "tiles without a side");
        return error_at(err, "tile");
    }
    if ((kind & KIND_TOPK) && !is_topk(header)) {
        error_set(err, ERROR_RANGE, NULL, "0 of every 0 values");
        return error_at(err, "keep");
    }
    return true;
}

bool payload_read_header(const void *bytes, size_t size, struct payload_header *header, size_t *body, struct error *err)
{
    struct reader in = reader_of(bytes, size);
    const uint8_t *magic = reader_bytes(&in, sizeof MAGIC);

    if (magic && memcmp(magic, MAGIC, sizeof MAGIC) != 0)
        return error_set(err, ERROR_SYNTAX, NULL, "not a payload: it does not start with RNDP");
    const uint16_t version = reader_u16(&in);

    header->bits = reader_u8(&in);
    const uint8_t kind = reader_u8(&in);

    header->fragment = reader_u32(&in);
    header->round = reader_u32(&in);
    const uint8_t *run = reader_bytes(&in, sizeof header->run);

    if (!in.ok)
        return error_set(err, ERROR_TRUNCATED, NULL, "the payload ends inside its header");
    if (version != PAYLOAD_VERSION) {
        error_set(err, ERROR_UNSUPPORTED, "both sides need the same protocol version", "payload version %u", version);
        return error_at(err, "version");
    }
    if (kind >= KINDS) {
        error_set(err, ERROR_UNSUPPORTED, "0 to 3 are known", "payloads of kind %u", kind);
        return error_at(err, "kind");
    }
    memcpy(header->run, run, sizeof header->run);
    if (!read_did(&in, header, err) || !read_kept(&in, kind, header, err) || !check_codec(header, err))
        return false;
    *body = size - reader_left(&in);
    return true;
}

static bool differs(struct error *err, const char *field, uint64_t is, uint64_t expected)
{
    error_set(err, ERROR_MISMATCH, NULL, "%" PRIu64 ", the plan says %" PRIu64, is, expected);
    return error_at(err, "%s", field);
}

static bool compare_headers(const struct payload_header *is, const struct payload_header *expected, struct error *err)
{
    if (memcmp(is->run, expected->run, sizeof is->run) != 0) {
        error_set(err, ERROR_MISMATCH, NULL, "the payload belongs to another run");
        return error_at(err, "run");
    }
    if (is->round != expected->round)
        return differs(err, "round", is->round, expected->round);
    if (is->fragment != expected->fragment)
        return differs(err, "fragment", is->fragment, expected->fragment);
    if (is->bits != expected->bits)
        return differs(err, "bits", is->bits, expected->bits);
    if (is->keep != expected->keep)
        return differs(err, "keep", is->keep, expected->keep);
    if (is->of != expected->of)
        return differs(err, "of", is->of, expected->of);
    if (is->tile != expected->tile)
        return differs(err, "tile", is->tile, expected->tile);
    if (strcmp(is->did, expected->did) != 0) {
        error_set(err, ERROR_MISMATCH, NULL, "%s, its sender is %s", is->did, expected->did);
        return error_at(err, "did");
    }
    return true;
}

/* Whole payloads --------------------------------------------------------------------------------------------------------- */

bool payload_encode(const struct payload_header *header, const struct tensor *tensors, size_t count, struct buffer *out,
                    size_t *body, struct error *err)
{
    const struct tensor **order = in_order(tensors, count, err);
    bool ok = order && write_header(header, out, err);

    if (ok)
        *body = out->size;
    for (size_t i = 0; ok && i < count; i++) {
        ok = encode_values(header, order[i], out, err);
        if (!ok)
            error_at(err, "%s", order[i]->name);
    }
    free(order);
    return ok;
}

static bool decode_body(struct reader *in, const struct payload_header *header, const struct tensor **order, size_t count,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!decode_values(header, in, order[i], err))
            return error_at(err, "%s", order[i]->name);
    return true;
}

static bool check_length(const struct payload_header *header, const struct tensor *tensors, size_t count, size_t have,
                         struct error *err)
{
    uint64_t need;

    if (!payload_body_size(header, tensors, count, &need))
        return error_set(err, ERROR_LIMIT, NULL, "the sizes of the tensors do not fit 64 bits");
    if (have == need)
        return true;
    return error_set(err, have < need ? ERROR_TRUNCATED : ERROR_LIMIT, NULL,
                     "the body has %zu bytes, %" PRIu64 " are the tensors of the plan", have, need);
}

bool payload_decode(const void *bytes, size_t size, const struct payload_header *expected, struct tensor *tensors, size_t count,
                    size_t *body, struct error *err)
{
    struct payload_header header;

    if (!payload_read_header(bytes, size, &header, body, err) || !compare_headers(&header, expected, err) ||
        !check_length(&header, tensors, count, size - *body, err))
        return false;
    const struct tensor **order = in_order(tensors, count, err);

    if (!order)
        return false;
    struct reader in = reader_of((const uint8_t *)bytes + *body, size - *body);
    const bool ok = decode_body(&in, &header, order, count, err);

    assert(!ok || reader_left(&in) == 0);
    free(order);
    return ok;
}
