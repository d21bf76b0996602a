#include <stdlib.h>
#include <string.h>

#include "runtime/worker/session.h"

static bool read_weight(struct session *s, const char *name, float *out, uint64_t values, struct error *err)
{
    const struct tensor *t = model_find(s->model, name);

    if (t && tensor_values(t) != values)
        return error_set(err, ERROR_SHAPE, "config.json and the weights do not belong together",
                         "%s has %llu values in the file, %llu in the model", name, (unsigned long long)tensor_values(t),
                         (unsigned long long)values);
    return model_read_tensor(s->model, name, out, err);
}

/* Place of a parameter in the model meta's params, and how many values it has; -1 with `err`. */
static long find_frozen(const struct session *s, const char *name, uint64_t *values, struct error *err)
{
    json_t *params = json_object_get(s->layout.meta, "params"), *param;
    size_t index;

    json_array_foreach(params, index, param)
    {
        unsigned rank;
        uint64_t dims[8];
        const char *own = json_string_value(json_object_get(param, "name"));

        if (own && strcmp(own, name) == 0)
            return axes_measure(json_string_value(json_object_get(param, "axes")), &rank, dims, values, err) ? (long)index : -1;
    }
    error_set(err, ERROR_MISSING, NULL, "the model has no parameter %s", name);
    return -1;
}

const float *session_weight(struct session *s, const char *name, uint64_t *values, struct error *err)
{
    long index = find_frozen(s, name, values, err);

    if (index < 0 || s->frozen[index])
        return index < 0 ? NULL : s->frozen[index];
    s->frozen[index] = malloc((size_t)*values * sizeof(float));
    if (!s->frozen[index]) {
        error_set(err, ERROR_MEMORY, NULL, "no memory for %s", name);
        return NULL;
    }
    if (!read_weight(s, name, s->frozen[index], *values, err)) {
        free(s->frozen[index]);
        s->frozen[index] = NULL;
    }
    return s->frozen[index];
}

enum tensor_type session_stored_type(const struct session *s, const char *name, uint64_t values)
{
    const struct tensor *t = model_find(s->model, name);

    return t && layout_find(&s->layout, name) < 0 && tensor_values(t) == values ? t->type : TENSOR_F32;
}

const void *session_stored_weight(struct session *s, const char *name, uint64_t *values, struct error *err)
{
    long index = find_frozen(s, name, values, err);
    enum tensor_type type;

    if (index < 0)
        return NULL;

    struct session_stored *stored = &s->stored[index];

    if (!stored->bytes && !model_read_stored(s->model, name, &stored->bytes, &stored->owned, &type, err))
        stored->bytes = NULL;
    return stored->bytes;
}
