#include "runtime/round/seed.h"

#include <assert.h>

struct hash seed_of(const char *run, uint64_t round, const void *entropy, size_t size)
{
    struct hasher h;
    hash_start(&h, "rondo/seed");
    hash_text(&h, run);
    hash_u64(&h, round);
    hash_part(&h, entropy, size);
    return hash_end(&h);
}

void stream_start(struct stream *stream, struct hash seed, const char *purpose, uint64_t index)
{
    *stream = (struct stream){ .seed = seed, .purpose = purpose, .index = index, .used = 4 };
}

static void stream_fill(struct stream *stream)
{
    struct hasher h;
    hash_start(&h, "rondo/stream");
    hash_fixed(&h, stream->seed.bytes, HASH_SIZE);
    hash_text(&h, stream->purpose);
    hash_u64(&h, stream->index);
    hash_u64(&h, stream->block++);
    struct hash block = hash_end(&h);
    for (int w = 0; w < 4; w++) {
        stream->words[w] = 0;
        for (int b = 7; b >= 0; b--)
            stream->words[w] = stream->words[w] << 8 | block.bytes[w * 8 + b];
    }
    stream->used = 0;
}

uint64_t stream_next(struct stream *stream)
{
    if (stream->used == 4)
        stream_fill(stream);
    return stream->words[stream->used++];
}

uint64_t stream_below(struct stream *stream, uint64_t n)
{
    assert(n > 0);
    uint64_t surplus = (UINT64_MAX % n + 1) % n; /* 2^64 mod n */
    uint64_t word;
    do
        word = stream_next(stream);
    while (word > UINT64_MAX - surplus);
    return word % n;
}

void stream_shuffle(struct stream *stream, uint32_t *list, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = stream_below(stream, i);
        uint32_t kept = list[i - 1];
        list[i - 1] = list[j];
        list[j] = kept;
    }
}
