#include "runtime/worker/scoring.h"

#include <math.h>
#include <stdlib.h>

static bool keep(const json_t *values, size_t first, size_t count, struct scores *out, struct error *err)
{
    if (json_array_size(values) != count)
        return error_set(err, ERROR_FAULT, NULL, "the reward script's process gave another number of rewards");
    for (size_t i = 0; i < count; i++) {
        const json_t *x = json_array_get(values, i);
        double value = json_is_string(x) ? strtod(json_string_value(x), NULL) : (double)json_integer_value(x);

        out->valid[first + i] = json_is_string(x) || json_is_integer(x);
        out->reward[first + i] = out->valid[first + i] > 0 ? (float)value : 0;
        if (!isfinite(out->reward[first + i]))
            out->valid[first + i] = out->reward[first + i] = 0; /* beyond binary32 */
    }
    return true;
}

static bool score(struct session *s, const json_t *all, size_t first, size_t count, struct scores *out, struct error *err)
{
    struct error fault = { 0 };
    json_t *part = json_array(), *values;

    for (size_t i = first; i < first + count; i++)
        json_array_append(part, json_array_get(all, i));
    values = script_score(&s->scripts[SESSION_REWARD].bundle, part, &s->limits, &fault);
    json_decref(part);
    if (values) {
        bool ok = keep(values, first, count, out, err);

        json_decref(values);
        return ok;
    }
    if (error_is_local(fault.code)) { /* of this machine */
        *err = fault;
        return error_at(err, "reward");
    }
    if (count > 1)
        return score(s, all, first, count / 2, out, err) && score(s, all, first + count / 2, count - count / 2, out, err);
    out->valid[first] = out->reward[first] = 0;
    if (out->failed++ == 0)
        out->first = fault;
    return true;
}

bool scoring_run(struct session *s, const json_t *completions, struct scores *out, struct error *err)
{
    size_t count = json_array_size(completions);

    out->failed = 0;
    return count == 0 || score(s, completions, 0, count, out, err);
}
