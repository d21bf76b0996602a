#include "native/model/bitsandbytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "native/model/nf4.h"
#include "native/numerics/f32.h"
#include "native/numerics/nf4.h"

enum { STATE_LIMIT = 4096, NAME = 1024 };

#define STATE ".quant_state.bitsandbytes__"

/* Reading ----------------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* Part `part` of the weight; it leaves the list by losing its name. NULL when there is none. */
static struct tensor *part_of(struct tensor *tensors, size_t count, const char *weight, const char *part)
{
    char name[NAME];
    const struct tensor wanted = { .name = name };

    if (snprintf(name, sizeof name, "%s%s", weight, part) >= (int)sizeof name)
        return NULL;
    return bsearch(&wanted, tensors, count, sizeof *tensors, by_name);
}

/* The data of a part that must be there, of that type (any: TENSOR_TYPES) and that many bytes. */
static bool take_part(struct tensor *tensors, size_t count, const char *weight, const char *part, enum tensor_type type,
                      uint64_t bytes, const uint8_t **data, struct error *err)
{
    const struct tensor *t = part_of(tensors, count, weight, part);

    if (!t)
        return error_set(err, ERROR_MISSING, "fetch the model again", "the part %s of a 4-bit weight is missing", part);
    if (type != TENSOR_TYPES && t->type != type)
        return error_set(err, ERROR_TYPE, NULL, "the part %s is %s, not %s", part, tensor_type_name(t->type),
                         tensor_type_name(type));
    if (t->size != bytes)
        return error_set(err, ERROR_SHAPE, NULL, "the part %s has %zu bytes, the weight's shape needs %" PRIu64, part, t->size,
                         bytes);
    *data = t->data;
    return true;
}

static bool text_is(const json_t *state, const char *field, const char *wanted)
{
    const char *text = json_string_value(json_object_get(state, field));

    return text && strcmp(text, wanted) == 0;
}

static bool read_shape(const json_t *state, struct tensor *view, struct error *err)
{
    const json_t *shape = json_object_get(state, "shape");

    if (!json_is_array(shape) || json_array_size(shape) > TENSOR_RANK)
        return error_set(err, ERROR_SHAPE, NULL, "quant_state: shape is an array of at most %d sizes", TENSOR_RANK);
    view->rank = (unsigned)json_array_size(shape);
    for (unsigned i = 0; i < view->rank; i++) {
        const json_t *size = json_array_get(shape, i);

        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return error_set(err, ERROR_TYPE, NULL, "quant_state: shape holds integers of at least 0");
        view->dims[i] = (uint64_t)json_integer_value(size);
    }
    return true;
}

/* What the JSON tells: shape, and with double quantisation the mean of the scales. */
static bool read_state(const json_t *state, struct bitsandbytes *b, bool *nested, struct error *err)
{
    const json_t *offset = json_object_get(state, "nested_offset");

    if (!json_is_object(state))
        return error_set(err, ERROR_TYPE, NULL, "quant_state is no object");
    if (!text_is(state, "quant_type", "nf4") || json_integer_value(json_object_get(state, "blocksize")) != NF4_BLOCK)
        return error_set(err, ERROR_UNSUPPORTED, "quantise the original anew: rondo model quantise",
                         "quant_state: NF4 in blocks of %d is read", NF4_BLOCK);
    *nested = offset != NULL;
    if (!read_shape(state, &b->view, err))
        return false;
    if (!offset)
        return true;
    if (!text_is(state, "nested_dtype", "float32") || json_integer_value(json_object_get(state, "nested_blocksize")) != NF4_GROUP)
        return error_set(err, ERROR_UNSUPPORTED, "quantise the original anew: rondo model quantise",
                         "quant_state: scales are read as float32 in blocks of %d", NF4_GROUP);
    b->offset = (float)json_number_value(offset);
    return (json_is_number(offset) && f32_is_finite(b->offset)) ||
           error_set(err, ERROR_NON_FINITE, "fetch the model again", "quant_state: nested_offset is no finite number");
}

static float float_at(const uint8_t *bytes, uint64_t i)
{
    float x;

    memcpy(&x, bytes + 4 * i, sizeof x);
    return x;
}

static bool read_parts(struct tensor *tensors, size_t count, struct bitsandbytes *b, bool nested, struct error *err)
{
    const char *weight = b->view.name;
    const uint8_t *values;
    uint64_t n;

    b->view.type = TENSOR_NF4;
    if (!tensor_measure(TENSOR_NF4, b->view.rank, b->view.dims, SIZE_MAX / 64, &n, &b->view.size, err))
        return false;
    const uint64_t blocks = n / NF4_BLOCK + (n % NF4_BLOCK != 0), groups = blocks / NF4_GROUP + (blocks % NF4_GROUP != 0);

    if (!take_part(tensors, count, weight, "", TENSOR_TYPES, n / 2 + n % 2, &b->codes, err) ||
        !take_part(tensors, count, weight, ".quant_map", TENSOR_F32, sizeof nf4_values, &values, err) ||
        !take_part(tensors, count, weight, ".absmax", nested ? TENSOR_U8 : TENSOR_F32, nested ? blocks : 4 * blocks, &b->absmax,
                   err))
        return false;
    if (memcmp(values, nf4_values, sizeof nf4_values) != 0)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "quant_map: the values are not those of NF4");
    if (!nested)
        return true;
    if (!take_part(tensors, count, weight, ".nested_absmax", TENSOR_F32, 4 * groups, &b->nested, err) ||
        !take_part(tensors, count, weight, ".nested_quant_map", TENSOR_F32, sizeof nf4_scales, &b->map, err))
        return false;
    if (memcmp(b->map, nf4_scales, sizeof nf4_scales) == 0)
        b->view.type = TENSOR_NF4_DQ;
    return tensor_measure(b->view.type, b->view.rank, b->view.dims, SIZE_MAX / 64, &n, &b->view.size, err);
}

static bool read_weight(struct tensor *tensors, size_t count, const struct tensor *state, struct bitsandbytes *b,
                        struct error *err)
{
    json_t *told = json_read(state->data, state->size, STATE_LIMIT, err);
    bool nested = false;
    const bool ok = told && read_state(told, b, &nested, err);

    json_decref(told);
    return ok && read_parts(tensors, count, b, nested, err);
}

/* The weight that the name of a state tells of; NULL when it is no such name. `other`: of a type that is not read. */
static char *weight_of(const struct tensor *t, bool *other)
{
    const char *at = strstr(t->name, STATE);

    *other = at && strcmp(at + strlen(STATE), "nf4") != 0;
    return at ? strndup(t->name, (size_t)(at - t->name)) : NULL;
}

/* Takes the parts out and leaves the weight in the place of its codes. */
static void replace(struct tensor *tensors, size_t count, struct tensor *state, const struct bitsandbytes *b, bool *gone)
{
    static const char *const parts[] = { ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map" };
    struct tensor *codes = part_of(tensors, count, b->view.name, ""), *part;
    char *const name = codes->name;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if ((part = part_of(tensors, count, name, parts[i])))
            gone[part - tensors] = true;
    gone[state - tensors] = true;
    *codes = b->view;
    codes->name = name;
}

static bool fold_one(struct tensor *tensors, size_t count, size_t i, struct bitsandbytes_set *set, bool *gone, struct error *err)
{
    struct bitsandbytes *b = &set->items[set->count];
    bool other;
    char *name = weight_of(&tensors[i], &other);

    if (!name)
        return true;
    b->view.name = name;
    set->count++;
    if (other)
        error_set(err, ERROR_UNSUPPORTED, "quantise the original anew: rondo model quantise", "4-bit weights are read as nf4");
    if (other || !read_weight(tensors, count, &tensors[i], b, err))
        return error_at(err, "%s", name);
    replace(tensors, count, &tensors[i], b, gone);
    return true;
}

bool bitsandbytes_fold(struct tensor *tensors, size_t *count, struct bitsandbytes_set *set, struct error *err)
{
    bool *gone = calloc(*count + 1, sizeof *gone), ok = true, other;
    size_t states = 0, kept = 0;

    qsort(tensors, *count, sizeof *tensors, by_name);
    for (size_t i = 0; i < *count; i++) {
        char *name = weight_of(&tensors[i], &other);

        states += name != NULL;
        free(name);
    }
    *set = (struct bitsandbytes_set){ .items = calloc(states + 1, sizeof *set->items) };
    if (!gone || !set->items) {
        free(gone);
        return error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", *count);
    }
    for (size_t i = 0; ok && i < *count; i++)
        ok = fold_one(tensors, *count, i, set, gone, err);
    for (size_t i = 0; ok && i < *count; i++)
        if (!gone[i])
            tensors[kept++] = tensors[i];
    if (ok)
        *count = kept;
    free(gone);
    return ok;
}

void bitsandbytes_free(struct bitsandbytes_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->items[i].view.name);
    free(set->items);
    *set = (struct bitsandbytes_set){ 0 };
}

const struct bitsandbytes *bitsandbytes_find(const struct bitsandbytes_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->items[i].view.name, name) == 0)
            return &set->items[i];
    return NULL;
}

/* The scale of a block as bitsandbytes restores it. */
static float scale_of(const struct bitsandbytes *b, uint64_t block)
{
    if (!b->nested)
        return float_at(b->absmax, block);
    const float product = float_at(b->nested, block / NF4_GROUP) * float_at(b->map, b->absmax[block]);

    return product + b->offset;
}

static void pack_codes(const struct bitsandbytes *b, uint64_t block, uint64_t bytes, uint8_t *out)
{
    const uint64_t at = block * (NF4_BLOCK / 2), here = bytes - at < NF4_BLOCK / 2 ? bytes - at : NF4_BLOCK / 2;

    memset(out, 7 << 4 | 7, NF4_BLOCK / 2); /* 7 is 0 */
    memcpy(out, b->codes + at, (size_t)here);
}

void bitsandbytes_pack(const struct bitsandbytes *b, enum tensor_type type, void *out)
{
    const uint64_t n = tensor_values(&b->view), bytes = n / 2 + n % 2;
    uint8_t *at = out;

    for (uint64_t block = 0; block * NF4_BLOCK < n; block++) {
        if (type == TENSOR_NF4) {
            const float scale = scale_of(b, block);

            memcpy(at, &scale, sizeof scale);
            at += 4;
        } else {
            if (block % NF4_GROUP == 0) {
                memcpy(at, b->nested + 4 * (block / NF4_GROUP), 4);
                memcpy(at + 4, &b->offset, 4);
                at += 8;
            }
            *at++ = b->absmax[block];
        }
        pack_codes(b, block, bytes, at);
        at += NF4_BLOCK / 2;
    }
}

/* Writing ----------------------------------------------------------------------------------------------------------------- */

static bool new_part(const struct tensor *t, const char *part, enum tensor_type type, uint64_t count, struct tensor *out,
                     struct error *err)
{
    const uint64_t dims[2] = { count, 1 };
    char name[NAME];

    if (snprintf(name, sizeof name, "%s%s", t->name, part) >= (int)sizeof name)
        return error_set(err, ERROR_LIMIT, NULL, "a name is too long: %.80s...", t->name);
    return tensor_new(out, name, type, *part ? 1 : 2, dims, SIZE_MAX / 2, err);
}

static bool split_state(const struct tensor *t, float offset, struct tensor *out, struct error *err)
{
    json_t *shape = json_array();
    char *text;

    for (unsigned i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->dims[i]));

    json_t *state =
        json_pack("{s:s, s:i, s:s, s:o}", "quant_type", "nf4", "blocksize", NF4_BLOCK, "dtype", "float32", "shape", shape);

    if (t->type == TENSOR_NF4_DQ)
        json_object_update_new(state, json_pack("{s:i, s:s, s:f}", "nested_blocksize", NF4_GROUP, "nested_dtype", "float32",
                                                "nested_offset", (double)offset));
    text = json_dumps(state, JSON_COMPACT);
    json_decref(state);
    const bool ok = text ? new_part(t, STATE "nf4", TENSOR_U8, strlen(text), out, err)
                         : error_set(err, ERROR_MEMORY, NULL, "no memory for %s", t->name);

    if (ok)
        memcpy(out->data, text, strlen(text));
    free(text);
    return ok;
}

/* Where block `block` has its scale (or the code of it), the codes of its values after that. */
static const uint8_t *block_of(const struct tensor *t, uint64_t block)
{
    const uint8_t *data = t->data;

    return data + (t->type == TENSOR_NF4 ? 36 * block : 33 * block + 8 * (block / NF4_GROUP + 1));
}

static void split_blocks(const struct tensor *t, struct tensor *codes, struct tensor *absmax, struct tensor *nested)
{
    const uint64_t scale = t->type == TENSOR_NF4 ? 4 : 1;

    for (uint64_t block = 0; block * (NF4_BLOCK / 2) < codes->size; block++) {
        const uint64_t at = block * (NF4_BLOCK / 2), left = codes->size - at;
        const uint8_t *from = block_of(t, block);

        memcpy((uint8_t *)absmax->data + scale * block, from, scale);
        memcpy((uint8_t *)codes->data + at, from + scale, (size_t)(left < NF4_BLOCK / 2 ? left : NF4_BLOCK / 2));
        if (nested && block % NF4_GROUP == 0)
            memcpy((uint8_t *)nested->data + 4 * (block / NF4_GROUP), from - 8, 4);
    }
}

bool bitsandbytes_split(const struct tensor *t, struct tensor parts[BITSANDBYTES_PARTS], size_t *count, struct error *err)
{
    const uint64_t n = tensor_values(t), blocks = n / NF4_BLOCK + (n % NF4_BLOCK != 0);
    const bool nested = t->type == TENSOR_NF4_DQ;
    const float offset = nested && blocks > 0 ? float_at(t->data, 1) : 0;

    memset(parts, 0, BITSANDBYTES_PARTS * sizeof *parts);
    *count = nested ? 6 : 4;
    if (!new_part(t, "", TENSOR_U8, n / 2 + n % 2, &parts[0], err) ||
        !new_part(t, ".absmax", nested ? TENSOR_U8 : TENSOR_F32, blocks, &parts[1], err) ||
        !new_part(t, ".quant_map", TENSOR_F32, 16, &parts[2], err) || !split_state(t, offset, &parts[3], err))
        return false;
    memcpy(parts[2].data, nf4_values, sizeof nf4_values);
    if (nested) {
        if (!new_part(t, ".nested_absmax", TENSOR_F32, blocks / NF4_GROUP + (blocks % NF4_GROUP != 0), &parts[4], err) ||
            !new_part(t, ".nested_quant_map", TENSOR_F32, 256, &parts[5], err))
            return false;
        memcpy(parts[5].data, nf4_scales, sizeof nf4_scales);
    }
    split_blocks(t, &parts[0], &parts[1], nested ? &parts[4] : NULL);
    return true;
}
