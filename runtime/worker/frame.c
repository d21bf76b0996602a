#include "runtime/worker/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/json.h"

void frame_add(struct buffer *out, const json_t *value, const void *bytes, size_t size)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t length = strlen(text);

    buffer_add_u32(out, (uint32_t)length);
    buffer_add_u64(out, size);
    buffer_add(out, text, length);
    buffer_add(out, bytes, size);
    free(text);
}

struct head {
    uint32_t json;
    uint64_t bytes;
};

static bool read_head(const uint8_t *bytes, struct head *head, struct error *err)
{
    struct reader r = reader_of(bytes, FRAME_HEAD);

    head->json = reader_u32(&r);
    head->bytes = reader_u64(&r);
    if (head->json > FRAME_JSON_MOST || head->bytes > FRAME_BYTES_MOST)
        return error_set(err, ERROR_LIMIT, NULL, "a frame of %u and %llu bytes", head->json, (unsigned long long)head->bytes);
    return true;
}

bool frame_take(struct buffer *in, json_t **value, struct buffer *bytes, struct error *err)
{
    struct head head;

    error_clear(err);
    if (in->size < FRAME_HEAD || !read_head(in->bytes, &head, err))
        return false;

    size_t whole = FRAME_HEAD + head.json + (size_t)head.bytes;

    if (in->size < whole)
        return false;
    *value = json_read((const char *)in->bytes + FRAME_HEAD, head.json, FRAME_JSON_MOST, err);
    if (!*value)
        return false;
    buffer_add(bytes, in->bytes + FRAME_HEAD + head.json, (size_t)head.bytes);
    memmove(in->bytes, in->bytes + whole, in->size - whole);
    in->size -= whole;
    return true;
}

/* True when `size` bytes were read. An end before the first byte of a frame (`first`) is no fault: false with code none. */
static bool read_all(int fd, void *bytes, size_t size, bool first, struct error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, (char *)bytes + done, size - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, ERROR_IO, NULL, "cannot read a frame: %s", strerror(errno));
        if (got == 0 && done == 0 && first)
            return false;
        if (got == 0)
            return error_set(err, ERROR_TRUNCATED, NULL, "the other side ended inside a frame");
        done += (size_t)got;
    }
    return true;
}

bool frame_read(int fd, json_t **value, struct buffer *bytes, struct error *err)
{
    uint8_t start[FRAME_HEAD];
    struct head head;

    error_clear(err);
    if (!read_all(fd, start, sizeof start, true, err) || !read_head(start, &head, err))
        return false;

    char *text = malloc((size_t)head.json + 1);

    if (!text)
        return error_set(err, ERROR_MEMORY, NULL, "no memory for a frame");
    buffer_reserve(bytes, (size_t)head.bytes + 1);

    bool ok = read_all(fd, text, head.json, false, err) &&
              (head.bytes == 0 || read_all(fd, bytes->bytes + bytes->size, (size_t)head.bytes, false, err));

    if (ok) {
        bytes->size += (size_t)head.bytes;
        *value = json_read(text, head.json, FRAME_JSON_MOST, err);
        ok = *value != NULL;
    }
    free(text);
    return ok;
}

static bool write_all(int fd, const void *bytes, size_t size, struct error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, (const char *)bytes + done, size - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return error_set(err, ERROR_IO, NULL, "cannot write a frame: %s", strerror(errno));
        done += (size_t)put;
    }
    return true;
}

bool frame_write(int fd, const json_t *value, const void *bytes, size_t size, struct error *err)
{
    struct buffer out = { 0 };

    frame_add(&out, value, NULL, 0);
    for (size_t i = 0; i < 8; i++)
        out.bytes[4 + i] = (uint8_t)((uint64_t)size >> (8 * i));

    bool ok = write_all(fd, out.bytes, out.size, err) && write_all(fd, bytes, size, err);

    buffer_free(&out);
    return ok;
}
