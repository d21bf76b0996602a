#include "runtime/round/grace.h"

#include <stdlib.h>

#include "runtime/round/value.h"

enum { GRACE_ROUNDS = 3 };

json_t *grace_arrivals(const json_t *previous, const json_t *accepted)
{
    json_t *before = json_object_get(previous, "arrivals"), *arrivals = before ? json_deep_copy(before) : json_array(), *item;
    json_t *now = json_array();
    size_t i;
    json_array_foreach((json_t *)accepted, i, item)
    {
        if (value_is(item, "code", "ok"))
            json_array_append(now, json_object_get(item, "arrival"));
    }
    if (accepted)
        json_array_append(arrivals, now);
    json_decref(now);
    if (json_array_size(arrivals) > GRACE_ROUNDS)
        json_array_remove(arrivals, 0);
    return arrivals;
}

int64_t grace_of(const struct rules *rules, const json_t *arrivals)
{
    size_t count = 0, i, k;
    json_t *list, *ms;
    json_array_foreach((json_t *)arrivals, i, list) count += json_array_size(list);
    if (!count)
        return rules->grace_max_ms;
    int64_t *all = calloc(count, sizeof *all);
    if (!all)
        abort();
    count = 0;
    json_array_foreach((json_t *)arrivals, i, list) json_array_foreach(list, k, ms) all[count++] = json_integer_value(ms);
    int64_t median = value_smallest(all, count, (count + 1) / 2);
    for (i = 0; i < count; i++)
        all[i] = all[i] < median ? median - all[i] : all[i] - median;
    int64_t spread = value_smallest(all, count, (count + 1) / 2);
    free(all);
    __int128 grace = median + (__int128)spread * rules->grace_factor / RULES_UNIT;
    if (grace < rules->grace_min_ms)
        return rules->grace_min_ms;
    return grace > rules->grace_max_ms ? rules->grace_max_ms : (int64_t)grace;
}
