#include "runtime/round/deal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *list_new(size_t count, size_t size)
{
    void *list = calloc(count + 1, size);
    if (!list)
        abort();
    return list;
}

/* ---- shares ---------------------------------------------------------------------------------------------------------------- */

struct rest {
    int64_t left;
    size_t index;
};

static int compare_rests(const void *a, const void *b)
{
    const struct rest *x = a, *y = b;
    if (x->left != y->left)
        return x->left > y->left ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void deal_shares(int64_t whole, const int64_t *weights, size_t count, int64_t *shares)
{
    struct rest *rests = list_new(count, sizeof *rests);
    int64_t sum = 0, left = whole;
    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    for (size_t i = 0; i < count; i++) {
        shares[i] = whole * weights[i] / sum;
        left -= shares[i];
        rests[i] = (struct rest){ whole * weights[i] % sum, i };
    }
    qsort(rests, count, sizeof *rests, compare_rests);
    for (int64_t k = 0; k < left; k++)
        shares[rests[k].index]++;
    free(rests);
}

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

struct dealing {
    const struct deal_taker *takers;
    size_t count;
    int64_t *load, *share;        /* dealt so far; of all shards, if none were bound */
    int64_t *weight, *aim, *more; /* of the class at hand: `more` is what each taker gets of it */
    uint32_t turn;                /* who is asked next */
};

/* Adds to `more` what `whole` shards are for the takers that `takes`: as near to equal loads as can be, nobody below what it has. */
static void fill(struct dealing *d, int64_t whole, const bool *takes)
{
    int64_t sum = whole;
    for (size_t i = 0; i < d->count; i++) {
        d->weight[i] = takes[i] ? d->takers[i].capacity : 0;
        sum += takes[i] ? d->load[i] + d->more[i] : 0;
    }
    for (bool again = whole > 0; again;) {
        again = false;
        deal_shares(sum, d->weight, d->count, d->aim);
        for (size_t i = 0; i < d->count; i++)
            if (d->weight[i] && d->aim[i] < d->load[i] + d->more[i]) {
                sum -= d->load[i] + d->more[i]; /* it has its share already */
                d->weight[i] = 0;
                again = true;
            }
    }
    for (size_t i = 0; whole > 0 && i < d->count; i++)
        if (d->weight[i])
            d->more[i] = d->aim[i] - d->load[i];
}

/* Says how many of `whole` shards of one kind each taker gets. False: nobody may have them. */
static bool share_out(struct dealing *d, struct deal_shard kind, int64_t whole)
{
    bool *may = list_new(d->count, sizeof *may), *first = list_new(d->count, sizeof *first), any = false;
    int64_t room = 0;
    for (size_t i = 0; i < d->count; i++) {
        may[i] = !kind.only || (kind.only & d->takers[i].region);
        first[i] = may[i] && (kind.prefer & d->takers[i].region) && d->load[i] < d->share[i];
        room += first[i] ? d->share[i] - d->load[i] : 0;
        any |= may[i];
        d->more[i] = 0;
    }
    room = room < whole ? room : whole;
    if (any) {
        fill(d, room, first);
        fill(d, whole - room, may);
    }
    free(may);
    free(first);
    return any;
}

/* Shards of one kind stand together, the kind with the fewest takers first; free ones last. */
struct place {
    struct deal_shard kind;
    uint32_t takers, at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (!x->kind.only != !y->kind.only)
        return x->kind.only ? -1 : 1;
    if (x->takers != y->takers)
        return x->takers < y->takers ? -1 : 1;
    if (x->kind.only != y->kind.only)
        return x->kind.only < y->kind.only ? -1 : 1;
    if (x->kind.prefer != y->kind.prefer)
        return x->kind.prefer > y->kind.prefer ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool same_kind(struct deal_shard a, struct deal_shard b)
{
    return a.only == b.only && a.prefer == b.prefer;
}

static struct place *places_new(const struct dealing *d, const struct deal_shard *shards, size_t count, int64_t *takeable)
{
    struct place *places = list_new(count, sizeof *places);
    *takeable = 0;
    for (size_t k = 0; k < count; k++) {
        if (k && same_kind(shards[k], shards[k - 1])) {
            places[k] = places[k - 1];
        } else {
            places[k].kind = shards[k];
            for (size_t i = 0; i < d->count; i++)
                places[k].takers += !shards[k].only || (shards[k].only & d->takers[i].region);
        }
        places[k].at = (uint32_t)k;
        *takeable += places[k].takers > 0;
    }
    qsort(places, count, sizeof *places, compare_places);
    return places;
}

/* Shards of one kind go in turn to those that get some. */
static void hand_out(struct dealing *d, const struct place *places, size_t count, uint32_t *owner)
{
    for (size_t k = 0; k < count; k++) {
        while (!d->more[d->turn])
            d->turn = (uint32_t)((d->turn + 1) % d->count);
        owner[places[k].at] = d->turn;
        d->more[d->turn]--;
        d->load[d->turn]++;
        d->turn = (uint32_t)((d->turn + 1) % d->count);
    }
}

void deal_shards(const struct deal_taker *takers, size_t taker_count, const struct deal_shard *shards, size_t shard_count,
                 uint32_t *owner)
{
    struct dealing d = { .takers = takers, .count = taker_count };
    int64_t **const lists[] = { &d.load, &d.share, &d.weight, &d.aim, &d.more };
    int64_t takeable;
    for (size_t k = 0; k < shard_count; k++)
        owner[k] = DEAL_NOBODY;
    if (!taker_count)
        return;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = list_new(taker_count, sizeof **lists[i]);
    struct place *places = places_new(&d, shards, shard_count, &takeable);
    for (size_t i = 0; i < taker_count; i++)
        d.weight[i] = takers[i].capacity;
    deal_shares(takeable, d.weight, taker_count, d.share);
    for (size_t from = 0, to; from < shard_count; from = to) {
        for (to = from + 1; to < shard_count && same_kind(places[to].kind, places[from].kind);)
            to++;
        if (share_out(&d, places[from].kind, (int64_t)(to - from)))
            hand_out(&d, places + from, to - from, owner);
    }
    free(places);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(*lists[i]);
}
