#include "runtime/round/amendment.h"

#include <string.h>

#include "native/base/decimal.h"
#include "runtime/round/value.h"

static bool fits(const struct rules *rules, const char *name, const json_t *value)
{
    int64_t share;
    if (!strcmp(name, "end"))
        return json_is_true(value);
    if (!strcmp(name, "pause"))
        return json_is_boolean(value);
    if (!strcmp(name, "quorum.trainers"))
        return json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= rules->trainers_limit &&
               json_integer_value(value) <= rules->shards;
    if (!strcmp(name, "trust.spot_check"))
        return json_is_string(value) && decimal_parse(json_string_value(value), &share) && share >= 0 && share <= DECIMAL_ONE;
    return false;
}

static json_t *of_number(const json_t *list, int64_t number)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        if (value_integer(one, "number") == number)
            return one;
    }
    return NULL;
}

const char *amendment_code(const struct rules *rules, const json_t *previous, const json_t *payload)
{
    const json_t *changes = json_object_get(payload, "changes"), *value;
    const char *name, *sponsor = json_string_value(json_object_get(rules->spec, "sponsor"));
    int64_t from = value_integer(payload, "from"), record = previous ? value_integer(previous, "round") + 1 : 0;
    if (!value_is(payload, "run", rules->run))
        return "run";
    if (!sponsor || !value_is(payload, "signer", sponsor))
        return "signer";
    if (!json_object_size(changes))
        return "amendable";
    json_object_foreach((json_t *)changes, name, value)
    {
        if (!value_lists(rules->amendable, name) || !fits(rules, name, value))
            return "amendable";
    }
    if (from < record + AMENDMENT_NOTICE || from > amendment_rounds(rules, previous))
        return "late";
    const json_t *known = of_number(json_object_get(previous, "amendments"), value_integer(payload, "number"));
    return known && (value_integer(known, "from") <= record || !json_object_size(json_object_get(known, "changes"))) ? "number"
                                                                                                                     : "ok";
}

/* Amendments stand by number in the end. */
static void sort(json_t *list)
{
    for (size_t i = 1; i < json_array_size(list); i++)
        for (size_t k = i; k > 0; k--) {
            json_t *a = json_array_get(list, k - 1), *b = json_array_get(list, k);
            if (value_integer(a, "number") <= value_integer(b, "number"))
                break;
            json_incref(a);
            json_incref(b);
            json_array_set_new(list, k - 1, b);
            json_array_set_new(list, k, a);
        }
}

json_t *amendments_after(const struct rules *rules, const json_t *previous, const json_t *items, const json_t *documents)
{
    const json_t *before = json_object_get(previous, "amendments");
    if (!rules->amendable)
        return NULL;
    json_t *list = before ? json_deep_copy(before) : json_array(), *item;
    int64_t record = previous ? value_integer(previous, "round") + 1 : 0;
    size_t i;
    json_array_foreach((json_t *)items, i, item)
    {
        const json_t *document = json_object_get(documents, value_text(item, "cid")),
                     *payload = json_object_get(document, "payload");
        if (!value_is(item, "type", "amendment") || !value_is(item, "code", "ok") ||
            strcmp(amendment_code(rules, previous, payload), "ok"))
            continue;
        json_t *known = of_number(list, value_integer(payload, "number"));
        if (known)
            json_object_set_new(known, "changes", json_object());
        else
            json_array_append_new(list, json_pack("{sOsOsIsO}", "number", json_object_get(payload, "number"), "from",
                                                  json_object_get(payload, "from"), "record", (json_int_t)record, "changes",
                                                  json_object_get(payload, "changes")));
    }
    sort(list);
    return list;
}

int64_t amendment_rounds(const struct rules *rules, const json_t *record)
{
    int64_t rounds = rules->rounds;
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(record, "amendments"), i, one)
    {
        if (json_object_get(json_object_get(one, "changes"), "end") && value_integer(one, "from") - 1 < rounds)
            rounds = value_integer(one, "from") - 1;
    }
    return rounds;
}

/* What the highest number in force in that round says of a field; NULL: nothing. */
static const json_t *in_force(const json_t *record, int64_t round, const char *name)
{
    const json_t *found = NULL;
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(record, "amendments"), i, one)
    {
        const json_t *value = json_object_get(json_object_get(one, "changes"), name);
        if (value && value_integer(one, "from") <= round)
            found = value;
    }
    return found;
}

bool amendment_pauses(const struct rules *rules, const json_t *record, int64_t round)
{
    return round >= 1 && round <= amendment_rounds(rules, record) && json_is_true(in_force(record, round, "pause"));
}

bool amendment_trains(const struct rules *rules, const json_t *record, int64_t round)
{
    return round >= 1 && round <= amendment_rounds(rules, record) && !json_is_true(in_force(record, round, "pause"));
}

int64_t amendment_quorum(const struct rules *rules, const json_t *record, int64_t round)
{
    const json_t *value = in_force(record, round, "quorum.trainers");
    return value ? (int64_t)json_integer_value(value) : rules->trainers_quorum;
}

int64_t amendment_spot_check(const struct rules *rules, const json_t *record, int64_t round)
{
    const json_t *value = in_force(record, round, "trust.spot_check");
    int64_t share = rules->spot_check;
    if (value)
        decimal_parse(json_string_value(value), &share);
    return share;
}
