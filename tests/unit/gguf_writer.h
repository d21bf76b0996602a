/* gguf_writer.h - a writer of GGUF files, as small as the tests need.
 *
 *     put_start ── keys: put_u32, put_f32, put_string, put_strings ── put_tensor for each ── put_padding ── the tensors' bytes
 */
#ifndef RONDO_TESTS_GGUF_WRITER_H
#define RONDO_TESTS_GGUF_WRITER_H

#include <string.h>

#include "native/base/buffer.h"
#include "native/model/gguf.h"

static inline void put_text(struct buffer *b, const char *text)
{
    buffer_add_u64(b, strlen(text));
    buffer_add_text(b, text);
}

static inline void put_start(struct buffer *b, uint64_t tensors, uint64_t values)
{
    buffer_add_text(b, "GGUF");
    buffer_add_u32(b, 3);
    buffer_add_u64(b, tensors);
    buffer_add_u64(b, values);
}

static inline void put_u32(struct buffer *b, const char *key, uint32_t value)
{
    put_text(b, key);
    buffer_add_u32(b, GGUF_U32);
    buffer_add_u32(b, value);
}

static inline void put_f32(struct buffer *b, const char *key, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    put_text(b, key);
    buffer_add_u32(b, GGUF_F32);
    buffer_add_u32(b, bits);
}

static inline void put_string(struct buffer *b, const char *key, const char *value)
{
    put_text(b, key);
    buffer_add_u32(b, GGUF_STRING);
    put_text(b, value);
}

static inline void put_strings(struct buffer *b, const char *key, const char *const *values, uint64_t count)
{
    put_text(b, key);
    buffer_add_u32(b, GGUF_ARRAY);
    buffer_add_u32(b, GGUF_STRING);
    buffer_add_u64(b, count);
    for (uint64_t i = 0; i < count; i++)
        put_text(b, values[i]);
}

/* Entry of a tensor; `rows` 0 makes a vector. */
static inline void put_tensor(struct buffer *b, const char *name, uint64_t rows, uint64_t columns, uint32_t type, uint64_t offset)
{
    put_text(b, name);
    buffer_add_u32(b, rows ? 2 : 1);
    buffer_add_u64(b, columns);
    if (rows)
        buffer_add_u64(b, rows);
    buffer_add_u32(b, type);
    buffer_add_u64(b, offset);
}

static inline void put_padding(struct buffer *b)
{
    while (b->size % 32 != 0)
        buffer_add_u8(b, 0);
}

#endif
