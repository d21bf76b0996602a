/* payload.h - what a trainer sends: an outer gradient (start minus end), quantised (docs/protocol.md, section 12).
 *
 *     +------+---------+------+------+----------+-------+----------+---------+-----+ +---------------------------------+
 *     | RNDP | version | bits | kind | fragment | round | run (32) | length  | DID | | tensors, in bytewise name order |
 *     |      | u16 = 1 | u8   | u8   | u32      | u32   |          | u16     |     | | each as quantise.h writes it    |
 *     +------+---------+------+------+----------+-------+----------+---------+-----+ +---------------------------------+
 *       header                                                                         body
 *
 * Kind 0: all values. Bit 0 of the kind: the largest of every chunk; after the DID stand u16 keep and u16 of, and tensors are as topk.h writes
 * them. Bit 1: after that stands u16 tile, and what is written are the coefficients of each tensor (transform.h) in place of its values.
 * Names and shapes are not in it: they are the plan's. The header makes payloads of two trainers differ even where their
 * gradients are equal; bodies are compared to find copies, and the body's root is the last leaf of the step log.
 * Each tensor starts a new block. A payload has exactly the length that its header and the plan give.
 */
#ifndef RONDO_CODEC_PAYLOAD_H
#define RONDO_CODEC_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/buffer.h"
#include "native/base/error.h"
#include "native/tensor/tensor.h"

enum {
    PAYLOAD_VERSION = 1,
    PAYLOAD_DID = 256, /* most bytes of a DID, without a zero */
};

struct payload_header {
    unsigned bits;     /* 32, 16, 8 or 4 */
    unsigned keep, of; /* of every chunk of `of` values the `keep` largest (topk.h); both 0: all values */
    unsigned tile;     /* the longest side of a tile that is transformed, 2 to 256; 0: values as they are */
    uint32_t fragment, round;
    uint8_t run[32];
    char did[PAYLOAD_DID + 1];
};

/* Bytes of the body for tensors of these shapes (their data is not read). False when they do not fit 64 bits. */
bool payload_body_size(const struct payload_header *header, const struct tensor *tensors, size_t count, uint64_t *bytes);

/* Appends header and body to `out`; *body is where the body starts in it. The tensors are f32, named, in any order.
 * Errors, the place naming the tensor: type, missing (no name), duplicate (a name twice), non_finite, range (of values or coefficients; keep, tile), unsupported (bits), memory. */
bool payload_encode(const struct payload_header *header, const struct tensor *tensors, size_t count, struct buffer *out,
                    size_t *body, struct error *err);

/* Reads the header of hostile bytes; *body is where the body starts. Errors, the place naming the field: truncated, syntax (not a
 * payload), unsupported (version, bits, kind), range (keep, of or tile, a DID of wrong length or with bytes that are not printable
 * ASCII). */
bool payload_read_header(const void *bytes, size_t size, struct payload_header *header, size_t *body, struct error *err);

/* Reads a whole payload, which must have the header that the plan expects, into the data of `tensors` (f32, named, allocated, in
 * any order); *body as above. Errors besides those of the header: mismatch (run, round, fragment, bits, keep, of, tile or DID differ), truncated,
 * limit (bytes after the last tensor), and those of quantise_decode or topk_decode, range (a value that coefficients give is beyond 2^60), the place naming tensor and block. On failure the data of
 * the tensors is undefined. */
bool payload_decode(const void *bytes, size_t size, const struct payload_header *expected, struct tensor *tensors, size_t count,
                    size_t *body, struct error *err);

#endif
