#include "native/text/bpe.h"

#include <stdlib.h>

#include "native/text/utf8.h"

enum { SHORT = 48 }; /* symbols up to which the list is searched */

static const uint32_t NIL = UINT32_MAX;

void bpe_set_merge(struct bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t joined)
{
    pair_map_set(&bpe->merges, (uint64_t)left << 32 | right, (uint64_t)rank << 32 | joined);
}

void bpe_work_free(struct bpe_work *work)
{
    free(work->symbols);
    free(work->heap);
    *work = (struct bpe_work){ 0 };
}

static void *resized(void *old, size_t count, size_t size)
{
    void *grown = reallocarray(old, count, size);

    if (!grown)
        abort();
    return grown;
}

static uint32_t id_of_unit(const struct bpe *bpe, const uint8_t *at, const uint8_t *end, bool first, size_t *size)
{
    *size = 1;
    if ((!bpe->characters || *at < 0x80) && !bpe->placed)
        return bpe->byte_ids[*at];

    uint64_t unit = bpe->characters ? utf8_at((const char *)at, (const char *)end, size) : *at;
    uint64_t place = !first + 2 * (at + *size == end);
    uint64_t found = bpe->placed ? pair_map_get(&bpe->by_place, place << 32 | unit) : pair_map_get(&bpe->by_character, unit);

    return found == UINT64_MAX ? BPE_NONE : (uint32_t)found;
}

static bool has_fallback(const struct bpe *bpe, const uint8_t *at, size_t size)
{
    bool all = bpe->byte_fallback;

    for (size_t i = 0; i < size; i++)
        all = all && bpe->fallback_ids[at[i]] != BPE_NONE;
    return all;
}

/* One symbol a byte or character. Returns how many. */
static uint32_t symbols_start(const struct bpe *bpe, const uint8_t *piece, size_t size, uint32_t start, struct bpe_work *work)
{
    if (work->symbol_capacity < size) {
        work->symbol_capacity = size * 2;
        work->symbols = resized(work->symbols, work->symbol_capacity, sizeof *work->symbols);
    }

    struct bpe_symbol *s = work->symbols;
    uint32_t count = 0;
    bool after_unknown = false;

    for (size_t i = 0, length; i < size; i += length) {
        uint32_t id = id_of_unit(bpe, piece + i, piece + size, i == 0, &length), end = start + (uint32_t)(i + length);

        if (id == BPE_NONE && has_fallback(bpe, piece + i, length)) {
            for (size_t k = 0; k < length; k++, count++)
                s[count] =
                    (struct bpe_symbol){ bpe->fallback_ids[piece[i + k]], start + (uint32_t)(i + k) + 1, count - 1, count + 1 };
            after_unknown = false;
            continue;
        }

        bool unknown = id == BPE_NONE;

        if (unknown) {
            id = bpe->unknown;
            if (id == BPE_NONE && !bpe->keep_unknown)
                continue;
            if (id == BPE_NONE)
                id = BPE_BARRIER;
            else if (bpe->fuse_unknown && after_unknown) {
                s[count - 1].end = end;
                continue;
            }
        }
        after_unknown = unknown;
        s[count] = (struct bpe_symbol){ id, end, count - 1, count + 1 };
        count++;
    }
    if (count) {
        s[0].prev = NIL;
        s[count - 1].next = NIL;
    }
    return count;
}

/* rank << 32 | joined id of the symbol at `i` and its next one; UINT64_MAX if they do not join. */
static uint64_t join_at(const struct bpe *bpe, const struct bpe_symbol *s, uint32_t i)
{
    if (s[i].next == NIL)
        return UINT64_MAX;
    return pair_map_get(&bpe->merges, (uint64_t)s[i].id << 32 | s[s[i].next].id);
}

static void join(struct bpe_symbol *s, uint32_t i, uint32_t id)
{
    uint32_t gone = s[i].next;

    s[i].id = id;
    s[i].end = s[gone].end;
    s[i].next = s[gone].next;
    if (s[i].next != NIL)
        s[s[i].next].prev = i;
    s[gone].id = BPE_NONE; /* heap entries of it are stale */
}

static void merge_by_search(const struct bpe *bpe, struct bpe_symbol *s, uint32_t count)
{
    uint64_t joins[SHORT];

    for (uint32_t i = 0; i < count; i++)
        joins[i] = join_at(bpe, s, i);
    for (;;) {
        uint32_t best = NIL;

        for (uint32_t i = 0; i != NIL; i = s[i].next)
            if (joins[i] != UINT64_MAX && (best == NIL || joins[i] >> 32 < joins[best] >> 32))
                best = i;
        if (best == NIL)
            return;
        join(s, best, (uint32_t)joins[best]);
        joins[best] = join_at(bpe, s, best);
        if (s[best].prev != NIL)
            joins[s[best].prev] = join_at(bpe, s, s[best].prev);
    }
}

/* Heap entries are rank << 32 | place, so the order is by rank, then leftmost. */
static void heap_push(struct bpe_work *work, uint64_t entry)
{
    if (work->heap_count == work->heap_capacity) {
        work->heap_capacity = work->heap_capacity ? work->heap_capacity * 2 : 256;
        work->heap = resized(work->heap, work->heap_capacity, sizeof *work->heap);
    }

    size_t i = work->heap_count++;

    while (i && work->heap[(i - 1) / 2] > entry) {
        work->heap[i] = work->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    work->heap[i] = entry;
}

static uint64_t heap_pop(struct bpe_work *work)
{
    uint64_t top = work->heap[0], last = work->heap[--work->heap_count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= work->heap_count)
            break;
        if (child + 1 < work->heap_count && work->heap[child + 1] < work->heap[child])
            child++;
        if (last <= work->heap[child])
            break;
        work->heap[i] = work->heap[child];
        i = child;
    }
    work->heap[i] = last;
    return top;
}

static void push_join(const struct bpe *bpe, struct bpe_work *work, uint32_t i)
{
    uint64_t found = join_at(bpe, work->symbols, i);

    if (found != UINT64_MAX)
        heap_push(work, (found >> 32 << 32) | i);
}

static void merge_by_heap(const struct bpe *bpe, struct bpe_work *work, uint32_t count)
{
    struct bpe_symbol *s = work->symbols;

    work->heap_count = 0;
    for (uint32_t i = 0; i < count; i++)
        push_join(bpe, work, i);
    while (work->heap_count) {
        uint64_t entry = heap_pop(work);
        uint32_t i = (uint32_t)entry;

        if (s[i].id == BPE_NONE)
            continue;

        uint64_t now = join_at(bpe, s, i);

        if (now == UINT64_MAX || now >> 32 != entry >> 32)
            continue;
        join(s, i, (uint32_t)now);
        push_join(bpe, work, i);
        if (s[i].prev != NIL)
            push_join(bpe, work, s[i].prev);
    }
}

void bpe_encode(const struct bpe *bpe, const uint8_t *piece, size_t size, uint32_t start, struct bpe_work *work,
                struct tokens *out)
{
    uint32_t count = symbols_start(bpe, piece, size, start, work);

    if (!count)
        return;
    if (count <= SHORT)
        merge_by_search(bpe, work->symbols, count);
    else
        merge_by_heap(bpe, work, count);
    for (uint32_t i = 0; i != NIL; i = work->symbols[i].next)
        if (work->symbols[i].id != BPE_BARRIER)
            tokens_add(out, work->symbols[i].id, work->symbols[i].end);
}
