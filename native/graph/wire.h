/* wire.h - a graph as bytes: what a script's process sends to the worker, what is hashed, what stands in blocks.
 *
 *     "RGR1"
 *     u8   notes follow (0 or 1)
 *     u32  names;   each u8 length, bytes             in the order of first use, none unused
 *     u32  nodes;   each
 *          u8 operator   u8 version   u8 type         type is 0 where it is no attribute
 *          u16 inputs;   u32 node each
 *          u8 axes;      u32 name, u64 size each
 *          u32 numbers;  u64 bits each
 *          u8 integers;  u64 each
 *          u32 name + 1                               0: none
 *     u32  outputs; each u32 name, u32 node
 *     notes, when they follow: u32 count; each u16 length, bytes; then for each node u32 note + 1
 *
 * Little-endian. The encoding is canonical: decoding refuses bytes that encoding would not give. Shapes are not on the wire but
 * worked out anew by graph_add. The hash is BLAKE2b-256 with personalisation "rondo/graph" over the encoding without notes.
 */
#ifndef RONDO_GRAPH_WIRE_H
#define RONDO_GRAPH_WIRE_H

#include "native/base/buffer.h"
#include "native/graph/graph.h"

struct graph_hash {
    uint8_t bytes[32];
};

void graph_encode(const struct graph *g, bool notes, struct buffer *out);

/* A new graph from bytes that may be hostile; NULL with `err` (place "node 17"). `limits` NULL: the default. */
struct graph *graph_decode(const void *bytes, size_t size, const struct graph_limits *limits, struct error *err);

struct graph_hash graph_hash(const struct graph *g);

#endif
