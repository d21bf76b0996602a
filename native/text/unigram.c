#include "native/text/unigram.h"

#include <stdlib.h>

#include "native/text/utf8.h"

static const uint32_t NOWHERE = UINT32_MAX;
static const double UNKNOWN_PENALTY = 10;

void unigram_free(struct unigram *u)
{
    free(u->scores);
    added_tokens_free(&u->trie);
}

void unigram_work_free(struct unigram_work *work)
{
    free(work->nodes);
    *work = (struct unigram_work){ 0 };
}

static void offer(struct unigram_node *node, double score, uint32_t start, uint32_t id)
{
    if (node->start == NOWHERE || score > node->score)
        *node = (struct unigram_node){ score, start, id };
}

static double sum(const struct unigram *u, double score, double here)
{
    return u->single ? (double)((float)score + (float)here) : score + here;
}

/* Best paths to the end of each token. false: an unknown character and no token for it. */
static bool walk(const struct unigram *u, const char *piece, size_t size, struct unigram_node *nodes)
{
    for (size_t at = 0, length; at < size; at += length) {
        double here = nodes[at].score;
        uint64_t node = 0;
        bool single = false;

        utf8_at(piece + at, piece + size, &length);
        for (size_t i = at; i < size; i++) {
            node = pair_map_get(&u->trie.edges, node << 8 | (uint8_t)piece[i]);
            if (node == UINT64_MAX)
                break;

            uint64_t id = pair_map_get(&u->trie.ids, node);

            if (id == UINT64_MAX)
                continue;
            offer(&nodes[i + 1], sum(u, u->scores[id], here), (uint32_t)at, (uint32_t)id);
            single = single || i + 1 == at + length;
        }
        if (!single) {
            if (u->unknown == UINT32_MAX)
                return false;
            offer(&nodes[at + length], sum(u, u->least - UNKNOWN_PENALTY, here), (uint32_t)at, u->unknown);
        }
    }
    return true;
}

static bool find(const struct unigram *u, const char *text, size_t size, uint32_t *id)
{
    uint64_t node = 0;

    for (size_t i = 0; i < size && node != UINT64_MAX; i++)
        node = pair_map_get(&u->trie.edges, node << 8 | (uint8_t)text[i]);

    uint64_t found = node == UINT64_MAX ? node : pair_map_get(&u->trie.ids, node);

    *id = (uint32_t)found;
    return found != UINT64_MAX;
}

/* A run of unknown characters: one token, or its bytes' ones. */
static void add_unknown(const struct unigram *u, const char *text, size_t size, uint32_t end, struct tokens *out)
{
    bool bytes = u->byte_fallback;
    uint32_t id;

    for (size_t i = 0; bytes && i < size; i++)
        bytes = u->fallback_ids[(uint8_t)text[i]] != UINT32_MAX;
    if (find(u, text, size, &id)) {
        tokens_add(out, id, end);
    } else if (!bytes) {
        tokens_add(out, u->unknown, end);
    } else {
        for (size_t i = 0; i < size; i++)
            tokens_add(out, u->fallback_ids[(uint8_t)text[i]], end);
    }
}

bool unigram_encode(const struct unigram *u, const char *piece, size_t size, uint32_t start, struct unigram_work *work,
                    struct tokens *out)
{
    if (work->capacity < size + 1) {
        work->capacity = (size + 1) * 2;
        free(work->nodes);
        work->nodes = calloc(work->capacity, sizeof *work->nodes);
        if (!work->nodes)
            abort();
    }

    struct unigram_node *nodes = work->nodes;

    for (size_t i = 0; i <= size; i++)
        nodes[i] = (struct unigram_node){ 0, NOWHERE, 0 };
    if (!walk(u, piece, size, nodes))
        return false;

    /* Back along the best path, turning each node's start into the end of the token that starts there. */
    uint32_t next = NOWHERE;

    for (uint32_t at = (uint32_t)size; at != 0;) {
        uint32_t from = nodes[at].start, id = nodes[at].id;

        nodes[at].start = next;
        nodes[at].id = id;
        next = at;
        at = from;
    }
    for (uint32_t from = 0, at = next; at != NOWHERE;) {
        uint32_t after = nodes[at].start;

        if (nodes[at].id != u->unknown) {
            tokens_add(out, nodes[at].id, start + at);
            from = at;
        } else if (after == NOWHERE || nodes[after].id != u->unknown) {
            add_unknown(u, piece + from, at - from, start + at, out);
            from = at;
        }
        at = after;
    }
    return true;
}
