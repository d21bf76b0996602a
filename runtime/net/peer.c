#include "runtime/net/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCORE_NEW      500
#define SCORE_BEST     1000
#define HALF_LIFE_MS   (10u * 60 * 1000)
#define RETRY_FIRST_MS 250
#define RETRY_MOST_MS  30000

struct peer_list {
    struct peer *peers; /* ascending by DID */
    size_t count;
};

struct peer_list *peer_list_new(void)
{
    struct peer_list *list = calloc(1, sizeof *list);

    if (!list)
        abort();
    return list;
}

void peer_list_free(struct peer_list *list)
{
    if (!list)
        return;
    free(list->peers);
    free(list);
}

/* The index of `did`, or where it belongs. */
static size_t place_of(const struct peer_list *list, const char *did, bool *found)
{
    size_t low = 0, high = list->count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(list->peers[middle].did, did);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool text_is_plain(const char *text, size_t limit)
{
    size_t size = strnlen(text, limit);

    if (size == 0 || size == limit)
        return false;
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

static bool endpoint_is_sound(const char *endpoint)
{
    return text_is_plain(endpoint, PEER_ENDPOINT) &&
           ((strncmp(endpoint, "http://", 7) == 0 && endpoint[7]) || (strncmp(endpoint, "https://", 8) == 0 && endpoint[8]));
}

static struct peer *insert(struct peer_list *list, size_t place, const char *did, uint64_t now_ms)
{
    struct peer *peer;

    list->peers = realloc(list->peers, (list->count + 1) * sizeof *list->peers);
    if (!list->peers)
        abort();
    peer = &list->peers[place];
    memmove(peer + 1, peer, (list->count - place) * sizeof *peer);
    *peer = (struct peer){ .score = SCORE_NEW, .scored_ms = now_ms };
    snprintf(peer->did, sizeof peer->did, "%s", did);
    list->count++;
    return peer;
}

bool peer_list_put(struct peer_list *list, const char *did, const char *endpoint, uint64_t now_ms, struct error *err)
{
    bool found;
    size_t place;

    if (!text_is_plain(did, PEER_DID) || strncmp(did, "did:", 4) != 0)
        return error_set(err, ERROR_SYNTAX, "it looks like did:tenzro:machine:z6Mk...", "not a DID: %.80s", did);
    if (!endpoint_is_sound(endpoint))
        return error_set(err, ERROR_SYNTAX, "it begins with http:// or https:// and has at most 255 characters, and a pin",
                         "not an endpoint: %.80s", endpoint);
    place = place_of(list, did, &found);
    if (!found && list->count == PEER_LIMIT)
        return error_set(err, ERROR_LIMIT, NULL, "more than %d peers", PEER_LIMIT);

    struct peer *peer = found ? &list->peers[place] : insert(list, place, did, now_ms);
    size_t size = strlen(endpoint);

    while (endpoint[size - 1] == '/')
        size--;
    if (strlen(peer->endpoint) == size && memcmp(peer->endpoint, endpoint, size) == 0)
        return true;
    snprintf(peer->endpoint, sizeof peer->endpoint, "%.*s", (int)size, endpoint);
    peer->failures = 0;
    peer->retry_ms = 0;
    return true;
}

void peer_list_remove(struct peer_list *list, const char *did)
{
    bool found;
    size_t place = place_of(list, did, &found);

    if (!found)
        return;
    list->count--;
    memmove(&list->peers[place], &list->peers[place + 1], (list->count - place) * sizeof *list->peers);
}

size_t peer_list_count(const struct peer_list *list)
{
    return list->count;
}

const struct peer *peer_list_at(const struct peer_list *list, size_t index)
{
    return &list->peers[index];
}

const struct peer *peer_list_find(const struct peer_list *list, const char *did)
{
    bool found;
    size_t place = place_of(list, did, &found);

    return found ? &list->peers[place] : NULL;
}

/* Exponential decay with whole numbers: halved for each half-life gone by, a straight line within one. */
static int score_at(const struct peer *peer, uint64_t now_ms)
{
    uint64_t passed = now_ms > peer->scored_ms ? now_ms - peer->scored_ms : 0;
    uint64_t halves = passed / HALF_LIFE_MS, rest = passed % HALF_LIFE_MS;
    int64_t away = peer->score - SCORE_NEW;

    if (halves > 10)
        return SCORE_NEW;
    for (; halves; halves--)
        away /= 2;
    away -= away * (int64_t)rest / (2 * (int64_t)HALF_LIFE_MS);
    return (int)(SCORE_NEW + away);
}

void peer_list_note(struct peer_list *list, const char *did, enum peer_outcome outcome, uint64_t now_ms)
{
    static const int change[] = { [PEER_GOOD] = 50, [PEER_SILENT] = -50, [PEER_BAD] = -400 };
    bool found;
    size_t place = place_of(list, did, &found);

    if (!found)
        return;

    struct peer *peer = &list->peers[place];
    int score = score_at(peer, now_ms) + change[outcome];

    peer->score = score < 0 ? 0 : score > SCORE_BEST ? SCORE_BEST : score;
    peer->scored_ms = now_ms;
    if (outcome == PEER_GOOD) {
        peer->failures = 0;
        peer->retry_ms = 0;
        return;
    }

    unsigned doublings = peer->failures < 7 ? peer->failures : 7;
    uint64_t wait = (uint64_t)RETRY_FIRST_MS << doublings;

    peer->failures++;
    peer->retry_ms = now_ms + (wait < RETRY_MOST_MS ? wait : RETRY_MOST_MS);
}

static bool listed(const char *did, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(did, list[i]) == 0)
            return true;
    return false;
}

const struct peer *peer_list_pick(struct peer_list *list, uint64_t now_ms, const char *const *except, size_t except_count)
{
    const struct peer *best = NULL;

    for (size_t i = 0; i < list->count; i++) {
        const struct peer *peer = &list->peers[i];

        if (peer->retry_ms > now_ms || listed(peer->did, except, except_count))
            continue;

        int score = score_at(peer, now_ms), top = best ? score_at(best, now_ms) : -1;

        if (score > top || (score == top && peer->scored_ms < best->scored_ms))
            best = peer;
    }
    return best;
}
