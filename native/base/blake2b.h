/* blake2b.h - BLAKE2b-256 of many inputs of one size at once: one input a lane of a vector register.
 *
 *     bytes      |--size--|..|--size--|..|--size--|..     input i starts at bytes + i * stride
 *                    |            |           |
 *     lanes        0            1           2      ...    2 (NEON), 4 (AVX2) or 8 (AVX-512), chosen at run time
 *                    v            v           v
 *     out        [32 bytes]   [32 bytes]  [32 bytes]      what libsodium gives for each alone
 *
 * For leaves of trees and tiles of traces: they are independent, and one compression of all lanes costs little more than one of one.
 * RFC 7693; digest of 32 bytes, no key, no salt, a personalisation (section 2.8 of the BLAKE2 paper).
 */
#ifndef RONDO_BASE_BLAKE2B_H
#define RONDO_BASE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_SIZE = 32, BLAKE2B_PERSONAL = 16, BLAKE2B_LANES = 8 };

/* Writes `count` digests one after another. An output may overwrite inputs of lower or the same index, never of a higher one: so a level
 * of a tree can replace the level below it. `personal` has BLAKE2B_PERSONAL bytes. */
void blake2b_many(const uint8_t *personal, const void *bytes, size_t stride, size_t size, size_t count, uint8_t *out);

/* The same for inputs that lie anywhere. */
void blake2b_each(const uint8_t *personal, const void *const *inputs, size_t size, size_t count, uint8_t *out);

/* The lanes that this machine has: 1 is libsodium, one input after another. */
size_t blake2b_lanes(void);

/* The same with 1, 2, 4 or 8 lanes, at most as many as there are: for tests and measurements. */
void blake2b_many_by(size_t lanes, const uint8_t *personal, const void *bytes, size_t stride, size_t size, size_t count,
                     uint8_t *out);

#endif
