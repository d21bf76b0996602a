/* buffer.h - bytes that grow, and a reader that never runs past an end.
 *
 *     struct buffer b = { 0 };                    zero is empty and owns nothing
 *     buffer_add(&b, bytes, size); ... buffer_free(&b);
 *
 * Growth that fails aborts: sizes from outside are checked against limits before they reach a buffer.
 */
#ifndef RONDO_BASE_BUFFER_H
#define RONDO_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *bytes; /* owned */
    size_t size, capacity;
};

void buffer_free(struct buffer *b);
void buffer_clear(struct buffer *b); /* size 0, capacity kept */
void buffer_reserve(struct buffer *b, size_t more);
void buffer_add(struct buffer *b, const void *bytes, size_t size);
void buffer_add_text(struct buffer *b, const char *text);
void buffer_add_u8(struct buffer *b, uint8_t value);
void buffer_add_u16(struct buffer *b, uint16_t value); /* little-endian, these three */
void buffer_add_u32(struct buffer *b, uint32_t value);
void buffer_add_u64(struct buffer *b, uint64_t value);
void buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The bytes as a C string: a zero is put after them and not counted. */
const char *buffer_text(struct buffer *b);

/* Reads from borrowed bytes. After the first read past the end `ok` is false and everything reads as 0. */
struct reader {
    const uint8_t *at, *end;
    bool ok;
};

struct reader reader_of(const void *bytes, size_t size);
size_t reader_left(const struct reader *r);
const uint8_t *reader_bytes(struct reader *r, size_t size); /* borrowed; NULL past the end */
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

#endif
