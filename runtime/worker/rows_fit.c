#include "runtime/worker/rows_fit.h"

/* Numbers as the model wants them: as many values, a label among its classes or as many targets. */
static bool fits_model(const struct session *s, const struct example *e, struct error *err)
{
    const json_t *axes = json_object_get(s->layout.meta, "axes");
    const json_int_t side = json_integer_value(json_object_get(model_config(s->model), "image_size")),
                     channels = json_integer_value(json_object_get(axes, "channel")),
                     classes = json_integer_value(json_object_get(axes, "class")),
                     horizon = json_integer_value(json_object_get(axes, "horizon"));

    if (s->rules.kind == BATCH_SERIES) {
        if ((json_int_t)e->count != s->rules.context)
            return error_set(err, ERROR_SHAPE, "every series is as long as the run's context", "%zu values, context %lld",
                             e->count, (long long)s->rules.context) ||
                   error_at(err, "series");
        return (json_int_t)e->target_count == horizon ||
               error_set(err, ERROR_SHAPE, NULL, "%zu values, the model's horizon is %lld", e->target_count,
                         (long long)horizon) ||
               error_at(err, "target");
    }
    if ((json_int_t)e->shape[0] != channels || (json_int_t)e->shape[1] != side || (json_int_t)e->shape[2] != side)
        return error_set(err, ERROR_SHAPE, NULL, "%u x %u x %u where the model reads %lld x %lld x %lld", e->shape[0],
                         e->shape[1], e->shape[2], (long long)channels, (long long)side, (long long)side) ||
               error_at(err, "image.shape");
    return (json_int_t)e->target[0] < classes ||
           error_set(err, ERROR_RANGE, NULL, "%g, the model has %lld classes", (double)e->target[0], (long long)classes) ||
           error_at(err, "label");
}

/* Each row is of the kind that the objective reads. */
static bool check_row(const struct session *s, const struct example *e, struct error *err)
{
    static const char *const names[] = { "tokens", "images", "series" };
    const enum batch_kind kind = !e->values ? BATCH_TOKENS : e->shape[0] ? BATCH_IMAGES : BATCH_SERIES;

    if (kind != s->rules.kind)
        return error_set(err, ERROR_UNSUPPORTED, "see \"Kinds of data\" in docs/data.md", "a row of %s, the objective reads %s",
                         names[kind], names[s->rules.kind]);
    if ((e->side != EXAMPLE_ALONE) != s->rules.pairs)
        return error_set(err, ERROR_UNSUPPORTED,
                         s->rules.pairs ? "give each row chosen and rejected, or take an objective on other data"
                                        : "take dpo or another objective on pairs",
                         s->rules.pairs ? "the objective reads pairs, the row is none"
                                        : "the row is a pair, the objective reads none");
    return kind == BATCH_TOKENS || fits_model(s, e, err);
}

bool rows_fit(const struct session *s, const struct session_shard *shard, struct error *err)
{
    for (size_t i = 0; i < shard->examples.count; i++)
        if (!check_row(s, &shard->examples.items[i], err))
            return error_at(err, "%s:%u", shard->rows.name, shard->examples.items[i].line);
    return true;
}
