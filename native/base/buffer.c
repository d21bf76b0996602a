#include "native/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_free(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){ 0 };
}

void buffer_clear(struct buffer *b)
{
    b->size = 0;
}

void buffer_reserve(struct buffer *b, size_t more)
{
    if (more > SIZE_MAX / 2 - b->size)
        abort();
    if (b->size + more <= b->capacity)
        return;

    size_t capacity = b->capacity ? b->capacity : 64;

    while (capacity < b->size + more)
        capacity *= 2;
    b->bytes = realloc(b->bytes, capacity);
    if (!b->bytes)
        abort();
    b->capacity = capacity;
}

void buffer_add(struct buffer *b, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    buffer_reserve(b, size);
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

void buffer_add_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

static void add_little(struct buffer *b, uint64_t value, size_t size)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    buffer_add(b, bytes, size);
}

void buffer_add_u8(struct buffer *b, uint8_t value)
{
    buffer_reserve(b, 1);
    b->bytes[b->size++] = value;
}

void buffer_add_u16(struct buffer *b, uint16_t value)
{
    add_little(b, value, 2);
}

void buffer_add_u32(struct buffer *b, uint32_t value)
{
    add_little(b, value, 4);
}

void buffer_add_u64(struct buffer *b, uint64_t value)
{
    add_little(b, value, 8);
}

void buffer_printf(struct buffer *b, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    buffer_reserve(b, (size_t)size + 1);
    vsnprintf((char *)b->bytes + b->size, (size_t)size + 1, format, again);
    va_end(again);
    b->size += (size_t)size;
}

const char *buffer_text(struct buffer *b)
{
    buffer_reserve(b, 1);
    b->bytes[b->size] = 0;
    return (const char *)b->bytes;
}

struct reader reader_of(const void *bytes, size_t size)
{
    return (struct reader){ bytes, (const uint8_t *)bytes + size, true };
}

size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

const uint8_t *reader_bytes(struct reader *r, size_t size)
{
    if (!r->ok || size > reader_left(r)) {
        r->ok = false;
        r->at = r->end;
        return NULL;
    }

    const uint8_t *bytes = r->at;

    r->at += size;
    return bytes;
}

static uint64_t read_little(struct reader *r, size_t size)
{
    const uint8_t *bytes = reader_bytes(r, size);
    uint64_t value = 0;

    for (size_t i = 0; bytes && i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

uint8_t reader_u8(struct reader *r)
{
    return (uint8_t)read_little(r, 1);
}

uint16_t reader_u16(struct reader *r)
{
    return (uint16_t)read_little(r, 2);
}

uint32_t reader_u32(struct reader *r)
{
    return (uint32_t)read_little(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
    return read_little(r, 8);
}
