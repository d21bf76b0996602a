#include "runtime/crypto/keccak.h"

#include <string.h>

enum { RATE = 136 }; /* 1600 - 2 * 256 bits */

static const uint64_t round_constants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

/* rho's rotations along pi's walk over the lanes, which starts at lane 1. */
static const uint8_t rotations[24] = {
    1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44
};
static const uint8_t walk[24] = { 10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1 };

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void permute(uint64_t lane[25])
{
    for (size_t round = 0; round < 24; round++) {
        uint64_t column[5];

        for (size_t x = 0; x < 5; x++)
            column[x] = lane[x] ^ lane[x + 5] ^ lane[x + 10] ^ lane[x + 15] ^ lane[x + 20];
        for (size_t x = 0; x < 5; x++)
            for (size_t y = 0; y < 25; y += 5)
                lane[x + y] ^= column[(x + 4) % 5] ^ rotate(column[(x + 1) % 5], 1);

        uint64_t carried = lane[1];

        for (size_t i = 0; i < 24; i++) {
            uint64_t next = lane[walk[i]];

            lane[walk[i]] = rotate(carried, rotations[i]);
            carried = next;
        }
        for (size_t y = 0; y < 25; y += 5) {
            uint64_t row[5];

            memcpy(row, lane + y, sizeof row);
            for (size_t x = 0; x < 5; x++)
                lane[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
        }
        lane[0] ^= round_constants[round];
    }
}

static void absorb(uint64_t lane[25], const uint8_t block[RATE])
{
    for (size_t i = 0; i < RATE; i++)
        lane[i / 8] ^= (uint64_t)block[i] << (i % 8 * 8);
    permute(lane);
}

struct hash keccak256(const void *bytes, size_t size)
{
    uint64_t lane[25] = { 0 };
    uint8_t last[RATE] = { 0 };
    const uint8_t *from = bytes;
    struct hash out;

    for (; size >= RATE; from += RATE, size -= RATE)
        absorb(lane, from);
    if (size)
        memcpy(last, from, size);
    last[size] = 0x01;
    last[RATE - 1] |= 0x80;
    absorb(lane, last);
    for (size_t i = 0; i < HASH_SIZE; i++)
        out.bytes[i] = (uint8_t)(lane[i / 8] >> (i % 8 * 8));
    return out;
}
