#include "runtime/round/assignment.h"

#include "runtime/round/amendment.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/deal.h"
#include "runtime/round/regions.h"
#include "runtime/round/replica.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

static uint32_t *list_new(size_t count)
{
    uint32_t *list = calloc(count + 1, sizeof *list);
    if (!list)
        abort();
    return list;
}

/* A stream's index for a DID: its hash, so that streams of different trainers differ. */
static uint64_t did_index(const char *did, uint64_t more)
{
    struct hasher h;
    hash_start(&h, "rondo/index");
    hash_text(&h, did);
    hash_u64(&h, more);
    struct hash hash = hash_end(&h);
    uint64_t index = 0;
    for (int b = 7; b >= 0; b--)
        index = index << 8 | hash.bytes[b];
    return index;
}

/* Shards in the order they are dealt: the unreturned of record r-1 shuffled, then the rest shuffled. */
static uint32_t *deal_order(const struct rules *rules, const json_t *previous, struct hash seed)
{
    size_t shards = (size_t)rules->shards, first = 0, last = shards;
    uint32_t *order = list_new(shards);
    uint32_t *unreturned = list_new(shards);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(previous, "unreturned"), i, item)
    {
        int64_t shard = json_integer_value(item);
        if (shard >= 0 && (size_t)shard < shards)
            unreturned[shard] = 1;
    }
    for (size_t s = 0; s < shards; s++)
        if (unreturned[s])
            order[first++] = (uint32_t)s;
    last = first;
    for (size_t s = 0; s < shards; s++)
        if (!unreturned[s])
            order[last++] = (uint32_t)s;
    struct stream stream;
    stream_start(&stream, seed, "shards", 0);
    stream_shuffle(&stream, order, first);
    stream_shuffle(&stream, order + first, shards - first);
    free(unreturned);
    return order;
}

/* Trainers of record r-1 without shards yet, ascending by DID. */
static json_t *empty_parts(const json_t *previous)
{
    json_t *parts = json_array(), *member;
    size_t i;
    json_array_foreach(json_object_get(previous, "members"), i, member)
    {
        if (value_is(member, "role", "trainer"))
            json_array_append_new(parts, json_pack("{sOs[]}", "did", json_object_get(member, "did"), "shards"));
    }
    value_sort(parts, "did");
    return parts;
}

/* What a member takes of a round: half of what it stated for each round that it was away, so that a boast does not hold shards up. */
static int64_t capacity_of(const struct rules *rules, const json_t *member)
{
    int64_t stated = value_integer(member, "batches"), absent = value_integer(member, "absent");
    if (!rules->batches || stated < 2)
        return 1;
    stated = stated < rules->batches ? stated : rules->batches;
    stated >>= absent < 30 ? absent : 30;
    return stated > 1 ? stated : 1;
}

static struct deal_taker *takers_of(const struct rules *rules, const json_t *previous, const json_t *parts, const uint32_t *turns)
{
    struct deal_taker *takers = calloc(json_array_size(parts) + 1, sizeof *takers);
    if (!takers)
        abort();
    for (size_t k = 0; k < json_array_size(parts); k++) {
        const char *did = value_text(json_array_get(parts, turns[k]), "did");
        const json_t *member = value_find(json_object_get(previous, "members"), "did", did);
        takers[k] = (struct deal_taker){ capacity_of(rules, member), regions_bit(rules->regions, value_text(member, "region")) };
    }
    return takers;
}

json_t *assignment_draw(const struct rules *rules, const json_t *previous, struct hash seed)
{
    json_t *parts = empty_parts(previous);
    size_t trainers = json_array_size(parts), shards = (size_t)rules->shards;
    if (!trainers)
        return parts;
    uint32_t *turns = list_new(trainers), *owner = list_new(shards);
    for (size_t k = 0; k < trainers; k++)
        turns[k] = (uint32_t)k;
    struct stream stream;
    stream_start(&stream, seed, "trainers", 0);
    stream_shuffle(&stream, turns, trainers);
    uint32_t *order = deal_order(rules, previous, seed);
    struct deal_taker *takers = takers_of(rules, previous, parts, turns);
    struct deal_shard *bound = regions_of_shards(rules->regions, order, shards);
    if (rules->replicas > 1)
        replica_deal(rules, previous, parts, turns, order);
    else
        deal_shards(takers, trainers, bound, shards, owner);
    for (size_t k = 0; rules->replicas <= 1 && k < shards; k++)
        if (owner[k] != DEAL_NOBODY)
            json_array_append_new(json_object_get(json_array_get(parts, turns[owner[k]]), "shards"), json_integer(order[k]));
    for (size_t k = 0; k < trainers; k++) {
        json_t *part = json_array_get(parts, turns[k]);
        size_t count = json_array_size(json_object_get(part, "shards"));
        json_object_set_new(part, "weight", json_integer(rules->batches && count ? takers[k].capacity : (json_int_t)count));
    }
    free(bound);
    free(takers);
    free(order);
    free(owner);
    free(turns);
    return parts;
}

/* Whose shards they are: a group's, or a trainer's own. */
static const char *taker_of(const json_t *part)
{
    return value_text(part, json_object_get(part, "group") ? "group" : "did");
}

void assignment_unreturned(const json_t *parts, const json_t *contributions, json_t *list)
{
    json_t *returned = json_object(), *item, *part, *shard;
    size_t i, k;
    json_array_foreach((json_t *)contributions, i, item)
    {
        if (value_is(item, "code", "ok"))
            json_object_set_new(returned, taker_of(item), json_true());
    }
    json_array_foreach((json_t *)parts, i, part)
    {
        if (!json_object_get(returned, taker_of(part)))
            json_array_foreach(json_object_get(part, "shards"), k, shard) json_array_append(list, shard);
        json_object_set_new(returned, taker_of(part), json_true()); /* of a group once */
    }
    json_decref(returned);
}

json_t *assignment_undealt(const struct rules *rules, const json_t *parts)
{
    json_t *undealt = json_array(), *part, *shard;
    uint32_t *dealt = list_new((size_t)rules->shards);
    size_t i, k;
    json_array_foreach((json_t *)parts, i, part)
    {
        json_array_foreach(json_object_get(part, "shards"), k, shard) dealt[json_integer_value(shard)] = 1;
    }
    for (k = 0; k < (size_t)rules->shards; k++)
        if (!dealt[k])
            json_array_append_new(undealt, json_integer((json_int_t)k));
    free(dealt);
    return undealt;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* `count` different numbers below `limit`, ascending: the start of a shuffle, done in place for lists of any length. */
static void draw_some(struct stream *stream, uint32_t *out, size_t count, uint64_t limit)
{
    for (size_t i = 0; i < count;) {
        uint32_t value = (uint32_t)stream_below(stream, limit);
        size_t k = 0;
        while (k < i && out[k] != value)
            k++;
        if (k == i)
            out[i++] = value;
    }
    qsort(out, count, sizeof *out, compare_u32);
}

static json_t *draw_list(struct stream *stream, size_t count, uint64_t limit)
{
    json_t *list = json_array();
    uint32_t *drawn = list_new(count);
    draw_some(stream, drawn, count, limit);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(drawn[i]));
    free(drawn);
    return list;
}

json_t *assignment_probes(struct hash seed, const char *did, int64_t steps)
{
    if (steps < 1)
        return json_array();
    size_t count = (size_t)(steps + 9) / 10;
    struct stream stream;
    stream_start(&stream, seed, "probes", did_index(did, 0));
    json_t *list = steps > 1 ? draw_list(&stream, count - 1, (uint64_t)steps - 1) : json_array();
    json_array_append_new(list, json_integer(steps - 1));
    return list;
}

json_t *assignment_positions(struct hash seed, const char *did, int64_t step, size_t count, uint64_t limit)
{
    if (limit > UINT32_MAX)
        limit = UINT32_MAX;
    if (count > limit)
        count = (size_t)limit;
    struct stream stream;
    stream_start(&stream, seed, "positions", did_index(did, (uint64_t)step));
    return draw_list(&stream, count, limit);
}

/* Body of an accepted payload -> how many have it. New reference. */
static json_t *count_bodies(const json_t *accepted)
{
    json_t *counts = json_object(), *one;
    size_t i;
    json_array_foreach((json_t *)accepted, i, one)
    {
        const char *body = value_text(one, "body");
        if (!replica_is_first(accepted, i)) /* equal bodies are what a group is for */
            continue;
        json_object_set_new(counts, body, json_integer((json_int_t)value_integer(counts, body) + 1));
    }
    return counts;
}

static bool is_copy(const json_t *counts, const json_t *one)
{
    const char *body = value_text(one, "body");
    return *body && value_integer(counts, body) > 1;
}

json_t *assignment_spots(const struct rules *rules, const json_t *previous, struct hash seed, const json_t *committee)
{
    json_t *contributions = json_object_get(previous, "contributions"), *accepted = json_array(), *spots = json_array();
    size_t i;
    json_t *item;
    bool used = !value_is(previous, "kind", "skip");
    json_array_foreach(contributions, i, item)
    {
        if ((used && value_is(item, "code", "ok")) || value_is(item, "code", "differs"))
            json_array_append(accepted, item);
    }
    size_t count = json_array_size(accepted), members = json_array_size(committee), drawn = 0;
    size_t wanted = (size_t)(((int64_t)replica_accepted(accepted) *
                                  amendment_spot_check(rules, previous, value_integer(previous, "round") + 1) +
                              RULES_UNIT - 1) /
                             RULES_UNIT);
    uint32_t *order = list_new(count);
    for (size_t k = 0; k < count; k++)
        order[k] = (uint32_t)k;
    struct stream stream;
    json_t *bodies = count_bodies(accepted);
    stream_start(&stream, seed, "spots", 0);
    stream_shuffle(&stream, order, count);
    for (size_t k = 0; k < count && members; k++) {
        item = json_array_get(accepted, order[k]);
        uint64_t member = stream_below(&stream, members);
        bool candidate = value_is(item, "code", "ok") && replica_is_first(accepted, order[k]);
        if ((candidate && (drawn++ < wanted || is_copy(bodies, item))) || replica_is_disputed(accepted, item))
            json_array_append_new(spots,
                                  json_pack("{sOsOsO}", "cid", json_object_get(item, "cid"), "did", json_object_get(item, "did"),
                                            "member", json_array_get(committee, (size_t)member)));
    }
    free(order);
    json_decref(bodies);
    json_decref(accepted);
    value_sort(spots, "cid");
    return spots;
}

json_t *assignment_context(const struct rules *rules, const json_t *previous, int64_t round, struct hash seed, const json_t *plan,
                           const char *did)
{
    json_t *parts = assignment_draw(rules, previous, seed);
    json_t *context = assignment_context_in(rules, previous, parts, round, seed, plan, did);
    json_decref(parts);
    return context;
}

json_t *assignment_context_in(const struct rules *rules, const json_t *previous, const json_t *parts, int64_t round,
                              struct hash seed, const json_t *plan, const char *did)
{
    json_t *context = NULL;
    json_t *part = value_find(parts, "did", did);
    int64_t weight = value_integer(part, "weight");
    char hex[HASH_TEXT];
    const json_t *member = value_find(json_object_get(previous, "members"), "did", did);
    const json_t *group = json_object_get(part, "group");
    const json_t *carry = value_is(plan, "inner", "keep") ? json_object_get(member, "carry") : NULL;
    if (weight)
        context =
            json_pack("{sssIsssssOsIsOsOsOso}", "run", rules->run, "round", (json_int_t)round, "did", did, "seed",
                      hash_hex(seed, hex), "shards", json_object_get(part, "shards"), "weight", (json_int_t)weight, "plan", plan,
                      "outer", json_object_get(previous, "outer"), "state", json_object_get(previous, "state"), "probes",
                      assignment_probes(seed, group ? json_string_value(group) : did, value_integer(plan, "steps")));
    if (context && rules->checkpoint_every > 1)
        json_object_set_new(context, "checkpoint_every", json_integer((json_int_t)rules->checkpoint_every));
    if (context && rules->batches)
        json_object_set_new(context, "batches", json_integer((json_int_t)weight));
    if (context && group)
        json_object_set(context, "group", (json_t *)group);
    if (context && carry)
        json_object_set(context, "carry", (json_t *)carry);
    return context;
}

json_t *assignment_context_of(const struct rules *rules, const json_t *before, const json_t *record, const char *did)
{
    struct hash seed;
    if (!before || !hash_parse(value_text(record, "seed"), &seed))
        return NULL;
    return assignment_context(rules, before, value_integer(record, "round"), seed, json_object_get(record, "plan"), did);
}
