#include "runtime/worker/values.h"

#include <stdlib.h>

#include "native/model/adapter.h"
#include "runtime/doc/documents.h"
#include "runtime/worker/folding.h"

static bool own_values(struct session *s, bool adapted, float *values, struct error *err)
{
    const struct layout *l = &s->layout;

    for (size_t i = 0; !adapted && i < l->count; i++)
        if (!model_find(s->model, l->parameters[i].name))
            return error_set(err, ERROR_MISSING, "take a model with all of its weights", "the model's files hold no tensor %s",
                             l->parameters[i].name);
    return session_genesis(s, values, err);
}

static bool adapter_values(const struct session *s, const char *adapter, float *values, struct error *err)
{
    struct tensor *tensors = folding_tensors(&s->layout, values);
    bool ok = adapter_read(adapter, tensors, s->layout.count, layout_head(&s->layout) != NULL, err);

    free(tensors);
    return ok;
}

float *values_read(struct session *s, const json_t *job, struct error *err)
{
    const char *outer = document_text(job, "outer"), *adapter = document_text(job, "adapter");
    float *values = layout_values(&s->layout, err);
    struct hash id;
    bool ok = values != NULL;

    if (ok && outer)
        ok = cid_parse(outer, &id, err) && folding_values(s, id, values, err);
    else if (ok)
        ok = own_values(s, adapter != NULL, values, err) && (!adapter || adapter_values(s, adapter, values, err));
    if (ok)
        return values;
    free(values);
    return NULL;
}
