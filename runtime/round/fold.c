#include "runtime/round/fold.h"

#include "runtime/round/amendment.h"
#include "runtime/round/value.h"

json_t *fold_plan_request(const struct rules *rules, const json_t *previous, int64_t round)
{
    json_t *last = json_object_get(previous, "telemetry");
    json_int_t peers = 0;
    size_t i;
    json_t *member;
    json_array_foreach(json_object_get(previous, "members"), i, member) peers += value_is(member, "role", "trainer");
    return json_pack("{sssssIsIsO}", "kind", "plan", "run", rules->run, "round", (json_int_t)round, "peers",
                     peers / (json_int_t)rules->replicas, "last", last);
}

const json_t *fold_plan_in(const struct rules *rules, const json_t *answer)
{
    const json_t *plan = json_object_get(json_object_get(answer, "result"), "plan");
    bool offered = rules->replicas < 2 || !value_is(plan, "inner", "keep");
    return value_is(answer, "code", "ok") && json_is_object(plan) && offered ? plan : NULL;
}

bool fold_is_removed(const json_t *convicted, const char *did, int64_t round)
{
    const json_t *entry = value_find(convicted, "did", did);
    return entry && value_integer(entry, "round") <= round;
}

/* The kept contributions of an entry as the request names them, one of a group; ascending by DID because the entry is. */
static json_t *kept(const json_t *entry, const json_t *convicted)
{
    json_t *list = json_array(), *groups = json_object();
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(entry, "contributions"), i, item)
    {
        const char *group = value_text(item, "group");
        if (json_object_get(item, "code") || json_object_get(groups, group))
            continue;
        if (!fold_is_removed(convicted, value_text(item, "did"), value_integer(entry, "round"))) {
            if (*group)
                json_object_set_new(groups, group, json_true());
            json_array_append_new(list, json_pack("{sOsOsO}", "cid", json_object_get(item, "cid"), "did",
                                                  json_object_get(item, "did"), "weight", json_object_get(item, "weight")));
        }
    }
    json_decref(groups);
    return list;
}

json_t *fold_request(const struct rules *rules, const json_t *previous, const json_t *entries, const json_t *convicted,
                     int64_t first, bool own)
{
    json_t *rounds = json_array(), *from = NULL, *entry;
    size_t i, last = json_array_size(entries) - 1;
    json_array_foreach((json_t *)entries, i, entry)
    {
        int64_t round = value_integer(entry, "round");
        if (round < first)
            continue;
        if (!from)
            from = json_object_get(entry, "outer");
        bool correction = first < value_integer(json_array_get(entries, last), "round") || !own;
        bool skipped =
            !value_is(entry, "kind", "train") || (i == last && !own) || (rules->rollback && correction && round > first);
        json_t *list = kept(entry, convicted);
        if (!skipped && json_array_size(list) >= (size_t)amendment_quorum(rules, previous, round))
            json_array_append_new(rounds, json_pack("{sIsOsO}", "round", (json_int_t)round, "plan",
                                                    json_object_get(entry, "plan"), "contributions", list));
        json_decref(list);
    }
    if (!json_array_size(rounds)) {
        json_decref(rounds);
        return NULL;
    }
    return json_pack("{sssssOso}", "kind", "fold", "run", rules->run, "from", from, "rounds", rounds);
}

static const json_t *step_of(const json_t *result, int64_t round)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(result, "steps"), i, step)
    {
        if (value_integer(step, "round") == round)
            return step;
    }
    return NULL;
}

static bool fits(const json_t *request, const json_t *result)
{
    json_t *rounds = json_object_get(request, "rounds"), *round;
    size_t i;
    if (!request)
        return true;
    if (json_array_size(rounds) != json_array_size(json_object_get(result, "steps")))
        return false;
    json_array_foreach(rounds, i, round)
    {
        const json_t *step = step_of(result, value_integer(round, "round"));
        if (!step || !json_is_string(json_object_get(step, "outer")) || !json_is_string(json_object_get(step, "state")))
            return false;
    }
    return true;
}

bool fold_apply(json_t *entries, int64_t first, const json_t *request, const json_t *result, json_t **outer, json_t **state)
{
    size_t i;
    json_t *entry;
    if (!fits(request, result))
        return false;
    *outer = *state = NULL;
    json_array_foreach(entries, i, entry)
    {
        int64_t round = value_integer(entry, "round");
        if (round < first)
            continue;
        if (*outer) {
            json_object_set(entry, "outer", *outer);
            json_object_set(entry, "state", *state);
        } else {
            *outer = json_object_get(entry, "outer");
            *state = json_object_get(entry, "state");
        }
        const json_t *step = step_of(result, round);
        if (step) {
            *outer = json_object_get(step, "outer");
            *state = json_object_get(step, "state");
        }
    }
    return true;
}

void fold_hash(const json_t *request, char hex[HASH_TEXT])
{
    value_hash(request, "rondo/request", hex);
}
