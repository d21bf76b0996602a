#include "native/text/labelled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "native/text/conversation_row.h"

enum { VALUES_MOST = 1 << 22, LABEL_MOST = 1 << 24 };

/* A list of finite numbers, or null where `gaps`; `out` has room for all. */
static bool read_numbers(const json_t *list, bool gaps, float *out, struct error *err)
{
    json_t *item;
    size_t index;

    json_array_foreach(list, index, item)
    {
        const float value = (float)json_number_value(item);

        if (gaps && json_is_null(item)) {
            out[index] = NAN;
            continue;
        }
        if (!json_is_number(item))
            return error_set(err, ERROR_TYPE, gaps ? "null where nothing was observed" : NULL, "value %zu is no number", index);
        if (!isfinite(value))
            return error_set(err, ERROR_RANGE, NULL, "value %zu has no binary32", index);
        out[index] = value;
    }
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_bytes(const char *text, size_t count, float *out, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return error_set(err, ERROR_SYNTAX, NULL, "byte %zu is not two hexadecimal digits", i);
        out[i] = (float)(16 * high + low) / 127.5F - 1;
    }
    return true;
}

static float *room(size_t count)
{
    float *values = calloc(count + 1, sizeof *values);

    if (!values)
        abort();
    return values;
}

/* The product of the shape's three sizes; 0 with `err`. */
static size_t read_shape(const json_t *shape, uint32_t out[3], struct error *err)
{
    size_t count = 1;

    if (!json_is_array(shape) || json_array_size(shape) != 3)
        return error_set(err, shape ? ERROR_TYPE : ERROR_MISSING, "\"shape\": [channels, height, width]", "not three sizes"), 0;
    for (size_t i = 0; i < 3; i++) {
        const json_int_t size = json_integer_value(json_array_get(shape, i));

        if (size < 1 || size > VALUES_MOST || (count *= (size_t)size) > VALUES_MOST)
            return error_set(err, ERROR_RANGE, NULL, "sizes from 1, %d values at most", VALUES_MOST), 0;
        out[i] = (uint32_t)size;
    }
    return count;
}

static bool read_image(const json_t *image, struct example *e, struct error *err)
{
    const json_t *values = json_object_get(image, "values"), *bytes = json_object_get(image, "bytes");

    if (json_is_string(image))
        return error_set(err, ERROR_TYPE, "rondo data convert puts its picture into the row", "a path, not a picture") ||
               error_at(err, "image");
    if (!json_is_object(image))
        return error_set(err, ERROR_TYPE, "{\"shape\": [...], \"values\": [...]}", "not an object") || error_at(err, "image");
    e->count = read_shape(json_object_get(image, "shape"), e->shape, err);
    if (!e->count)
        return error_at(err, "image.shape");
    e->values = room(e->count);
    if (bytes && !values)
        return (json_is_string(bytes) && json_string_length(bytes) == 2 * e->count
                    ? read_bytes(json_string_value(bytes), e->count, e->values, err)
                    : error_set(err, ERROR_SHAPE, NULL, "not %zu hexadecimal digits", 2 * e->count)) ||
               error_at(err, "image.bytes");
    return (json_is_array(values) && json_array_size(values) == e->count && !bytes
                ? read_numbers(values, false, e->values, err)
                : error_set(err, ERROR_SHAPE, "values or bytes, in the order of the shape", "not %zu numbers", e->count)) ||
           error_at(err, "image.values");
}

static bool image_example(const json_t *row, struct example *e, struct error *err)
{
    const json_t *label = json_object_get(row, "label");

    if (!read_image(json_object_get(row, "image"), e, err))
        return false;
    if (!json_is_integer(label) || json_integer_value(label) < 0 || json_integer_value(label) > LABEL_MOST)
        return error_set(err, label ? ERROR_TYPE : ERROR_MISSING, "classes count from 0", "not a class's number") ||
               error_at(err, "label");
    e->target = room(1);
    e->target[0] = (float)json_integer_value(label);
    e->target_count = 1;
    return true;
}

static bool series_part(const json_t *row, const char *name, float **values, size_t *count, struct error *err)
{
    const json_t *list = json_object_get(row, name);

    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > VALUES_MOST)
        return error_set(err, list ? ERROR_TYPE : ERROR_MISSING, NULL, "not a list of 1 to %d numbers", VALUES_MOST) ||
               error_at(err, "%s", name);
    *count = json_array_size(list);
    *values = room(*count);
    return read_numbers(list, true, *values, err) || error_at(err, "%s", name);
}

bool labelled_example(const json_t *row, uint32_t line, struct examples *out, struct error *err)
{
    struct example *e = examples_add(out);

    e->line = line;
    return json_object_get(row, "image") ? image_example(row, e, err)
                                         : series_part(row, "series", &e->values, &e->count, err) &&
                                               series_part(row, "target", &e->target, &e->target_count, err);
}
