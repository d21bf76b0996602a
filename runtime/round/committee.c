#include "runtime/round/committee.h"

#include <stdlib.h>

#include "runtime/round/amendment.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

struct quorum quorum_of(int64_t n, int64_t q)
{
    int64_t safe = 2 * q - n - 1, live = n - q;
    int64_t f = safe < live ? safe : live;
    return (struct quorum){ .n = n, .q = q, .f = f, .t = f + 1 };
}

static bool may_sit(const struct rules *rules, const json_t *previous, int64_t round, const char *did)
{
    if (!previous)
        return true;
    if (value_find(json_object_get(previous, "convicted"), "did", did))
        return false;
    return round > amendment_rounds(rules, previous) || value_find(json_object_get(previous, "members"), "did", did);
}

static int64_t weight_of(const struct rules *rules, uint32_t place)
{
    const json_t *weight = json_object_get(json_array_get(rules->panel, place), "weight");
    return json_is_integer(weight) ? json_integer_value(weight) : 1;
}

/* The first `seats` of the list become who was drawn, in order. */
static void draw_seats(const struct rules *rules, struct stream *stream, uint32_t *list, size_t count, size_t seats)
{
    for (size_t k = 0; k < seats; k++) {
        uint64_t sum = 0, drawn;
        size_t at = k;
        for (size_t i = k; i < count; i++)
            sum += (uint64_t)weight_of(rules, list[i]);
        for (drawn = stream_below(stream, sum); drawn >= (uint64_t)weight_of(rules, list[at]); at++)
            drawn -= (uint64_t)weight_of(rules, list[at]);
        uint32_t taken = list[at];
        list[at] = list[k];
        list[k] = taken;
    }
}

static bool is_weighted(const struct rules *rules)
{
    size_t i;
    json_t *seat;
    json_array_foreach(rules->panel, i, seat)
    {
        if (json_object_get(seat, "weight"))
            return true;
    }
    return false;
}

json_t *committee_draw(const struct rules *rules, const json_t *previous, int64_t round, const struct hash *seed)
{
    size_t size = json_array_size(rules->panel), count = 0;
    uint32_t *order = calloc(size + 1, sizeof *order);
    if (!order)
        abort();
    for (size_t i = 0; i < size; i++)
        if (may_sit(rules, previous, round, value_text(json_array_get(rules->panel, i), "did")))
            order[count++] = (uint32_t)i;
    if (seed) {
        struct stream stream;
        size_t seats = round > rules->rounds || count < (size_t)rules->size ? count : (size_t)rules->size;
        stream_start(&stream, *seed, "committee", 0);
        if (is_weighted(rules))
            draw_seats(rules, &stream, order, count, seats);
        else
            stream_shuffle(&stream, order, count);
        count = seats;
    }
    json_t *committee = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(committee, json_object_get(json_array_get(rules->panel, order[i]), "did"));
    free(order);
    return committee;
}

struct quorum committee_quorum(const struct rules *rules, const json_t *committee)
{
    int64_t n = (int64_t)json_array_size(committee);
    if (n == rules->size)
        return quorum_of(n, rules->threshold);
    return quorum_of(n, n ? n - (n - 1) / 3 : 1);
}

const char *committee_leader(const json_t *committee, int64_t view)
{
    size_t n = json_array_size(committee);
    return n ? json_string_value(json_array_get(committee, (size_t)view % n)) : "";
}
