/* picture.h - a picture's file to the `image` of a row (labelled.h).
 *
 *     P5 (grey) or P6 (colour) of Netpbm, 8 bits a sample         {"shape": [1 or 3, height, width], "bytes": "..."}
 *     raw bytes, where the shape is told                          the same, in the order of that shape
 *
 * Netpbm keeps the samples of a pixel together; rows have channel after channel.
 */
#ifndef RONDO_TEXT_PICTURE_H
#define RONDO_TEXT_PICTURE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

/* `shape`: [channels, height, width] of raw bytes, or NULL for Netpbm. New reference; NULL with `err`: syntax, unsupported (16 bits a sample),
 * range (4,194,304 samples at most), shape (another number of bytes). */
json_t *picture_read(const uint8_t *bytes, size_t size, const json_t *shape, struct error *err);

#endif
