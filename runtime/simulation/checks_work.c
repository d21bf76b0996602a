#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/assignment.h"
#include "runtime/round/replica.h"
#include "runtime/round/value.h"

/* An assignment of the round after `previous`, from its members in another order. Each trainer of a round is held to the same. */
static json_t *draw_again(struct sim *s, const json_t *previous, const char *seed)
{
    struct hash hash;
    if (s->drawn.before == previous && !strcmp(s->drawn.seed, seed))
        return json_incref(s->drawn.parts);
    json_t *members = json_array(), *other = json_copy((json_t *)previous), *parts;
    for (size_t i = json_array_size(json_object_get(previous, "members")); i-- > 0;)
        json_array_append(members, json_array_get(json_object_get(previous, "members"), i));
    json_object_set_new(other, "members", members);
    hash_parse(seed, &hash);
    parts = assignment_draw(&s->rules, other, hash);
    json_decref(other);
    json_decref(s->drawn.parts);
    s->drawn.parts = json_incref(parts);
    s->drawn.before = previous;
    snprintf(s->drawn.seed, sizeof s->drawn.seed, "%s", seed);
    return parts;
}

void check_told(struct sim *s, int node, const json_t *context)
{
    const struct node *n = &s->nodes[node];
    const json_t *previous = check_record(s, value_integer(context, "round") - 1);
    if (!previous || n->lie != FAULT_KINDS)
        return;
    json_t *parts = draw_again(s, previous, value_text(context, "seed")), *part = value_find(parts, "did", n->did);
    if (!json_equal(json_object_get(part, "shards"), json_object_get(context, "shards")) ||
        value_integer(part, "weight") != value_integer(context, "weight"))
        sim_fail(s, ASSIGNED, "round %lld: %s is told to do what record and seed do not give",
                 (long long)value_integer(context, "round"), n->did);
    json_decref(parts);
}

/* Whether the spec lets a trainer of that region have the shard: told again as the spec of make_spec says it. */
static bool may_have(const struct sim *s, const char *region, int64_t shard)
{
    return !s->set->regions || shard > 1 || !strcmp(region, "eu");
}

static int64_t capacity_of(const struct sim *s, const json_t *member)
{
    int64_t batches = s->set->capacities ? value_integer(member, "batches") : 0;
    for (int64_t k = 0; k < value_integer(member, "absent"); k++)
        batches /= 2;
    return batches > 1 ? batches : 1;
}

/* Every shard that somebody may have is in one part; nobody has one that it may not; and in proportion where no shard is bound. */
static void check_parts(struct sim *s, const json_t *previous, const json_t *parts, int64_t round)
{
    json_t *members = json_object_get(previous, "members"), *member, *shard;
    int64_t sum = 0, shards = s->rules.shards;
    size_t i, k;
    json_array_foreach(members, i, member) sum += value_is(member, "role", "trainer") ? capacity_of(s, member) : 0;
    json_t *dealt = json_object();
    json_array_foreach(members, i, member)
    {
        json_t *part = value_find(parts, "did", value_text(member, "did"));
        int64_t count = (int64_t)json_array_size(json_object_get(part, "shards")), mine = capacity_of(s, member);
        json_array_foreach(json_object_get(part, "shards"), k, shard)
        {
            char key[24];
            snprintf(key, sizeof key, "%lld", (long long)json_integer_value(shard));
            if (json_object_get(dealt, key) || !may_have(s, value_text(member, "region"), json_integer_value(shard)))
                sim_fail(s, ASSIGNED, "round %lld: shard %s is not %s's", (long long)round, key, value_text(member, "did"));
            json_object_set_new(dealt, key, json_true());
        }
        if (part && !s->set->regions && (count < shards * mine / sum || count > (shards * mine + sum - 1) / sum))
            sim_fail(s, ASSIGNED, "round %lld: %s has %lld of %lld shards and takes %lld of %lld", (long long)round,
                     value_text(member, "did"), (long long)count, (long long)shards, (long long)mine, (long long)sum);
        if (part && value_integer(part, "weight") != (s->set->capacities && count ? mine : count))
            sim_fail(s, ASSIGNED, "round %lld: another weight than the work of %s", (long long)round, value_text(member, "did"));
    }
    for (int64_t at = 0; at < shards; at++) {
        char key[24];
        bool somebody = false;
        snprintf(key, sizeof key, "%lld", (long long)at);
        json_array_foreach(members, i, member) somebody |=
            value_is(member, "role", "trainer") && may_have(s, value_text(member, "region"), at);
        if (somebody != (json_object_get(dealt, key) != NULL))
            sim_fail(s, ASSIGNED, "round %lld: shard %s is dealt %s", (long long)round, key, somebody ? "to nobody" : "wrongly");
    }
    json_decref(dealt);
}

/* Where those whose trial is over are enough for the round's quorum, every group has as many of them as it needs. */
static void check_trusted(struct sim *s, const json_t *previous, const json_t *parts, int64_t round)
{
    json_t *members = json_object_get(previous, "members"), *member, *part, *accounts = json_object(), *groups = json_object(),
           *trusted;
    const char *group;
    size_t i;
    json_array_foreach(members, i, member)
    {
        if (value_is(member, "role", "trainer") && !value_integer(member, "trial"))
            json_object_set_new(accounts, value_text(member, "account"), json_true());
    }
    json_array_foreach((json_t *)parts, i, part)
    {
        group = value_text(part, "group");
        member = value_find(members, "did", value_text(part, "did"));
        if (*group)
            json_object_set_new(groups, group,
                                json_integer((json_int_t)value_integer(groups, group) + !value_integer(member, "trial")));
    }
    bool enough = (int64_t)json_object_size(accounts) >= s->set->replicas * amendment_quorum(&s->rules, previous, round);
    json_object_foreach(groups, group, trusted)
    {
        if (enough && json_integer_value(trusted) < s->set->replicas)
            sim_fail(s, ASSIGNED, "round %lld: the group of %s depends on who was away or has just come", (long long)round,
                     group);
    }
    json_decref(accounts);
    json_decref(groups);
}

/* Nobody works under the account of somebody honest. */
static void check_accounts(struct sim *s, const json_t *record)
{
    json_t *member;
    size_t i;
    json_array_foreach(json_object_get(record, "members"), i, member)
    {
        for (int k = s->set->syncers; k < s->count && value_is(member, "role", "trainer"); k++)
            if (s->nodes[k].lie == FAULT_KINDS && value_is(member, "account", s->nodes[k].account) &&
                !value_is(member, "did", s->nodes[k].did))
                sim_fail(s, ASSIGNED, "round %lld: %s takes part as a machine of %s", (long long)value_integer(record, "round"),
                         value_text(member, "did"), s->nodes[k].did);
    }
}

static bool was_right(const json_t *record, const char *did)
{
    json_t *line;
    size_t i;
    json_array_foreach(json_object_get(record, "contributions"), i, line)
    {
        if (value_is(line, "did", did) &&
            (value_is(line, "code", "ok") || value_is(line, "code", "alone") || value_is(line, "code", "differs")))
            return true;
    }
    return false;
}

/* Who had work and gave nothing that was found right was away, whatever it sent; in the replicated tier no group depends on it soon. */
static void check_absence(struct sim *s, const json_t *previous, const json_t *record, const json_t *parts)
{
    json_t *members = json_object_get(record, "members"), *before;
    size_t i;
    json_array_foreach(json_object_get(previous, "members"), i, before)
    {
        const char *did = value_text(before, "did");
        const json_t *now = value_find(members, "did", did);
        if (!value_is(before, "role", "trainer") || !value_is(now, "enrolment", value_text(before, "enrolment")))
            continue;
        bool worked = was_right(record, did), had = json_array_size(json_object_get(value_find(parts, "did", did), "shards"));
        int64_t absent = value_integer(before, "absent");
        if (had && json_is_object(json_object_get(record, "plan")))
            absent = worked ? 0 : absent + 1;
        if (value_integer(now, "absent") != absent)
            sim_fail(s, ASSIGNED, "round %lld: %s counts as away for %lld rounds, not %lld",
                     (long long)value_integer(record, "round"), did, (long long)value_integer(now, "absent"), (long long)absent);
        if (s->set->replicas && absent > value_integer(before, "absent") && value_integer(now, "trial") != REPLICA_TRIAL)
            sim_fail(s, ASSIGNED, "round %lld: groups may depend on %s, which was away",
                     (long long)value_integer(record, "round"), did);
    }
}

/* In the replicated tier no group depends soon on a machine of an account of which this record convicts one. */
static void check_fallen(struct sim *s, const json_t *previous, const json_t *record)
{
    json_t *one, *now;
    size_t i, k;
    json_array_foreach(json_object_get(record, "convicted"), i, one)
    {
        const json_t *before = value_find(json_object_get(previous, "members"), "did", value_text(one, "did"));
        json_array_foreach(json_object_get(record, "members"), k, now)
        {
            if (value_is(before, "role", "trainer") && value_is(now, "role", "trainer") &&
                value_is(now, "account", value_text(before, "account")) && value_integer(now, "trial") != REPLICA_TRIAL)
                sim_fail(s, ASSIGNED, "round %lld: groups may depend on %s, whose account lied",
                         (long long)value_integer(record, "round"), value_text(now, "did"));
        }
    }
}

/* In the replicated tier each shard is in the parts of one group, of two machines of different accounts at least. */
static void check_replicated(struct sim *s, const json_t *previous, const json_t *parts, int64_t round)
{
    json_t *members = json_object_get(previous, "members"), *part, *other;
    size_t i, k, dealt = 0, groups = 0;
    json_array_foreach((json_t *)parts, i, part)
    {
        const char *group = value_text(part, "group"), *did = value_text(part, "did");
        const json_t *member = value_find(members, "did", did), *first = value_find(parts, "did", group);
        int alike = 0;
        json_array_foreach((json_t *)parts, k, other)
        {
            bool same = *group && value_is(other, "group", group);
            alike += same;
            if (same && k != i &&
                value_is(value_find(members, "did", value_text(other, "did")), "account", value_text(member, "account")))
                sim_fail(s, ASSIGNED, "round %lld: two machines of %s share a part", (long long)round,
                         value_text(member, "account"));
        }
        if (*group ? alike < s->set->replicas || !json_equal(json_object_get(part, "shards"), json_object_get(first, "shards"))
                   : json_array_size(json_object_get(part, "shards")) > 0)
            sim_fail(s, ASSIGNED, "round %lld: %s has a part that no other has", (long long)round, did);
        groups += part == first;
        dealt += part == first ? json_array_size(json_object_get(part, "shards")) : 0;
    }
    if (dealt != (groups ? (size_t)s->rules.shards : 0))
        sim_fail(s, ASSIGNED, "round %lld: %zu shards are dealt to groups", (long long)round, dealt);
}

/* What was not returned, or could not be dealt, comes first in the next round. */
static void check_left(struct sim *s, const json_t *record, const json_t *parts)
{
    json_t *contributions = json_object_get(record, "contributions"), *unreturned = json_object_get(record, "unreturned"), *part,
           *shard, *item;
    size_t i, k, n, left = json_array_size(json_object_get(record, "undealt"));
    json_array_foreach((json_t *)parts, i, part)
    {
        bool ok = false;
        json_array_foreach(contributions, k, item)
        {
            bool own = value_is(item, "did", value_text(part, "did"));
            const char *group = value_text(part, "group");
            ok |= (own || (*group && value_is(item, "group", group))) && value_is(item, "code", "ok");
            if (own && value_integer(item, "weight") != value_integer(part, "weight"))
                sim_fail(s, ASSIGNED, "round %lld: the record has another weight of %s",
                         (long long)value_integer(record, "round"), value_text(part, "did"));
        }
        json_array_foreach(json_object_get(part, "shards"), k, shard)
        {
            bool listed = false;
            json_array_foreach(unreturned, n, item) listed |= json_equal(item, shard);
            left += !ok && (!json_object_get(part, "group") || value_is(part, "group", value_text(part, "did")));
            if (listed == ok)
                sim_fail(s, ASSIGNED, "round %lld: shard %lld is %s", (long long)value_integer(record, "round"),
                         (long long)json_integer_value(shard), ok ? "called unreturned" : "lost");
        }
    }
    if (left != json_array_size(unreturned))
        sim_fail(s, ASSIGNED, "round %lld: %zu shards are left, %zu are listed", (long long)value_integer(record, "round"), left,
                 json_array_size(unreturned));
}

void check_work(struct sim *s, const json_t *previous, const json_t *record)
{
    int64_t round = value_integer(record, "round");
    if (s->set->replicas)
        check_accounts(s, record), check_fallen(s, previous, record);
    if (!previous || !amendment_trains(&s->rules, previous, round))
        return;
    json_t *parts = draw_again(s, previous, value_text(record, "seed"));
    if (json_array_size(parts)) {
        if (s->set->replicas)
            check_replicated(s, previous, parts, round), check_trusted(s, previous, parts, round);
        else
            check_parts(s, previous, parts, round);
        check_left(s, record, parts);
        check_absence(s, previous, record, parts);
    }
    json_decref(parts);
}
