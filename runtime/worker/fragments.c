#include "runtime/worker/fragments.h"

#include "runtime/worker/plan.h"

enum { FRAGMENTS = 65536 };

static bool take(struct session *s, const json_t *made, struct error *err)
{
    const json_t *of = json_object_get(made, "fragment"), *count = json_object_get(made, "fragments");

    if (!count)
        return true;
    if (!json_is_integer(count) || json_integer_value(count) < 1 || json_integer_value(count) > FRAGMENTS)
        return error_set(err, ERROR_RANGE, NULL, "fragments are a whole number from 1 to %d", FRAGMENTS);
    s->fragments = (uint32_t)json_integer_value(count);
    for (size_t i = 0; i < s->layout.count; i++) {
        const json_t *at = json_object_get(of, s->layout.parameters[i].name);

        if (!json_is_integer(at) || json_integer_value(at) < 0 || json_integer_value(at) >= s->fragments)
            return error_set(err, ERROR_SCRIPT, NULL, "fragment(%s) is none of %u", s->layout.parameters[i].name, s->fragments);
        s->layout.parameters[i].fragment = (uint32_t)json_integer_value(at);
    }
    return true;
}

bool fragments_load(struct session *s, struct error *err)
{
    if (s->fragments_known)
        return true;
    json_t *context = json_pack("{s:i, s:O, s:i, s:O, s:b}", "round", 1, "rounds", json_object_get(s->spec, "rounds"), "peers", 1,
                                "layers", json_object_get(s->layout.meta, "layers"), "last", 0),
           *metas = layout_metas(&s->layout),
           *made = script_plan(&s->scripts[SESSION_SCHEDULE].bundle, context, NULL, metas, &s->limits, err);

    s->fragments_known = made && take(s, made, err);
    json_decref(made);
    json_decref(metas);
    json_decref(context);
    return s->fragments_known || error_at(err, "schedule");
}

bool fragments_of(struct session *s, const json_t *plan, uint32_t *fragment, struct error *err)
{
    double number = plan_number(plan, "fragment", -1);
    uint64_t values;
    size_t tensors;

    *fragment = FRAGMENT_ALL;
    if (!json_object_get(plan, "fragment"))
        return true;
    if (!fragments_load(s, err))
        return false;
    if (!(number >= 0 && number < s->fragments))
        return error_set(err, ERROR_RANGE, "schedule { fragments = n, fragment = function(param) ... }",
                         "fragment %g of a schedule with %u", number, s->fragments);
    *fragment = (uint32_t)number;
    fragment_measure(&s->layout, *fragment, &values, &tensors);
    return tensors > 0 ||
           error_set(err, ERROR_RANGE, "fewer fragments, or another fragment(param)",
                     "no trained tensor is in fragment %u of %u: its round would send nothing", *fragment, s->fragments);
}

bool fragment_has(uint32_t fragment, const struct layout_parameter *p)
{
    return fragment == FRAGMENT_ALL || p->fragment == fragment;
}

void fragment_measure(const struct layout *l, uint32_t fragment, uint64_t *values, size_t *tensors)
{
    *values = *tensors = 0;
    for (size_t i = 0; i < l->count; i++)
        if (fragment_has(fragment, &l->parameters[i])) {
            *values += l->parameters[i].values;
            ++*tensors;
        }
}
