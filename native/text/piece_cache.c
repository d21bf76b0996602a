#include "native/text/piece_cache.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 16, MOST = 4, SMALL_TEXT = 4096, FEWEST = 1024, LARGEST = 1 << 16 };

struct piece_entry {
    uint64_t bytes[2]; /* the piece, zeros after it */
    uint32_t ids[MOST];
    uint8_t ends[MOST];
    uint8_t size, count; /* size 0: empty */
};

void piece_cache_start(struct piece_cache *c, size_t text_size)
{
    size_t places = FEWEST;

    if (text_size < SMALL_TEXT)
        return;
    while (places < LARGEST && places < text_size / 8)
        places *= 2;
    c->entries = calloc(places, sizeof *c->entries); /* without memory it stays off */
    c->mask = places - 1;
}

void piece_cache_free(struct piece_cache *c)
{
    free(c->entries);
    c->entries = NULL;
}

static struct piece_entry *place_of(const struct piece_cache *c, const char *piece, size_t size, uint64_t bytes[2])
{
    bytes[0] = bytes[1] = 0;
    memcpy(bytes, piece, size);

    uint64_t h = (bytes[0] ^ size) * 0x9e3779b97f4a7c15u;

    h = ((h ^ h >> 32) + bytes[1]) * 0xff51afd7ed558ccdu;
    return &c->entries[(h >> 32) & c->mask];
}

bool piece_cache_get(const struct piece_cache *c, const char *piece, size_t size, uint32_t start, struct tokens *out)
{
    uint64_t bytes[2];

    if (!c->entries || size > LONGEST || size == 0)
        return false;

    const struct piece_entry *entry = place_of(c, piece, size, bytes);

    if (entry->size != size || entry->bytes[0] != bytes[0] || entry->bytes[1] != bytes[1])
        return false;
    for (size_t i = 0; i < entry->count; i++)
        tokens_add(out, entry->ids[i], start + entry->ends[i]);
    return true;
}

void piece_cache_put(struct piece_cache *c, const char *piece, size_t size, uint32_t start, const struct tokens *tokens,
                     size_t first)
{
    size_t count = tokens->count - first;
    uint64_t bytes[2];

    if (!c->entries || size > LONGEST || size == 0 || count > MOST)
        return;

    struct piece_entry *entry = place_of(c, piece, size, bytes);

    memcpy(entry->bytes, bytes, sizeof bytes);
    entry->size = (uint8_t)size;
    entry->count = (uint8_t)count;
    for (size_t i = 0; i < count; i++) {
        entry->ids[i] = tokens->ids[first + i];
        entry->ends[i] = (uint8_t)(tokens->ends[first + i] - start);
    }
}
