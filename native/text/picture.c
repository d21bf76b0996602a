#include "native/text/picture.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MOST = 1 << 22 };

/* The header's next number; comments run from # to the end of a line. 0 when there is none. */
static uint32_t header_number(const uint8_t *bytes, size_t size, size_t *at)
{
    uint32_t number = 0;

    for (; *at < size; ++*at)
        if (bytes[*at] == '#')
            while (*at + 1 < size && bytes[*at] != '\n')
                ++*at;
        else if (!strchr(" \t\r\n", bytes[*at]) || !bytes[*at])
            break;
    for (; *at < size && bytes[*at] >= '0' && bytes[*at] <= '9' && number <= SAMPLES_MOST; ++*at)
        number = number * 10 + (uint32_t)(bytes[*at] - '0');
    return number;
}

/* Shape and first sample of a Netpbm file. */
static bool read_header(const uint8_t *bytes, size_t size, uint32_t shape[3], size_t *start, struct error *err)
{
    size_t at = 2;
    uint32_t most;

    if (size < 3 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6'))
        return error_set(err, ERROR_UNSUPPORTED, "convert it to PPM or PGM, or give raw bytes with \"shape\"",
                         "neither a P5 nor a P6 file");
    shape[0] = bytes[1] == '6' ? 3 : 1;
    shape[2] = header_number(bytes, size, &at);
    shape[1] = header_number(bytes, size, &at);
    most = header_number(bytes, size, &at);
    if (most != 255)
        return error_set(err, ERROR_UNSUPPORTED, "save it with 8 bits a sample", "the greatest sample is %u, not 255", most);
    *start = at + 1;
    return true;
}

static bool told_shape(const json_t *told, uint32_t shape[3], struct error *err)
{
    for (size_t i = 0; i < 3; i++) {
        const json_int_t size = json_integer_value(json_array_get(told, i));

        if (json_array_size(told) != 3 || size < 1 || size > SAMPLES_MOST)
            return error_set(err, ERROR_RANGE, "\"shape\": [channels, height, width]", "not three sizes") ||
                   error_at(err, "shape");
        shape[i] = (uint32_t)size;
    }
    return true;
}

/* `step`: from a pixel to the next; `plane`: from a channel's first sample to the next channel's. */
static json_t *image(const uint8_t *samples, const uint32_t shape[3], size_t step, size_t plane)
{
    static const char digits[] = "0123456789abcdef";
    const size_t pixels = (size_t)shape[1] * shape[2];
    char *text = malloc(2 * pixels * shape[0] + 1), *to = text;
    json_t *made;

    if (!text)
        abort();
    for (size_t c = 0; c < shape[0]; c++)
        for (size_t i = 0; i < pixels; i++) {
            const uint8_t sample = samples[c * plane + i * step];

            *to++ = digits[sample >> 4];
            *to++ = digits[sample & 15];
        }
    made =
        json_pack("{s:[i,i,i], s:s%}", "shape", (int)shape[0], (int)shape[1], (int)shape[2], "bytes", text, (size_t)(to - text));
    free(text);
    return made;
}

json_t *picture_read(const uint8_t *bytes, size_t size, const json_t *shape, struct error *err)
{
    uint32_t sizes[3];
    size_t start = 0;
    uint64_t pixels;

    if (shape ? !told_shape(shape, sizes, err) : !read_header(bytes, size, sizes, &start, err))
        return NULL;
    pixels = (uint64_t)sizes[1] * sizes[2];
    if (pixels == 0 || pixels > SAMPLES_MOST || pixels * sizes[0] > SAMPLES_MOST)
        return error_set(err, ERROR_RANGE, NULL, "%u x %u x %u samples, 1 to %d can be", sizes[0], sizes[1], sizes[2],
                         SAMPLES_MOST),
               NULL;
    if (start > size || size - start != pixels * sizes[0])
        return error_set(err, ERROR_SHAPE, NULL, "%zu bytes of samples where the shape has %llu", start > size ? 0 : size - start,
                         (unsigned long long)(pixels * sizes[0])),
               NULL;
    return shape ? image(bytes, sizes, 1, (size_t)pixels) : image(bytes + start, sizes, sizes[0], 1);
}
