/* session_genesis.c - the first values of a run (session.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/model/adapter_add.h"
#include "runtime/doc/documents.h"
#include "runtime/worker/folding.h"

static const json_t *meta_of(const struct session *s, const char *name)
{
    json_t *params = json_object_get(s->layout.meta, "params"), *param;
    size_t index;

    json_array_foreach(params, index, param)
    {
        if (strcmp(document_text(param, "name"), name) == 0)
            return param;
    }
    return NULL;
}

/* The norms of a weight's rows, one for each of its outputs. */
static bool row_norms(struct session *s, const struct layout_parameter *p, float *values, struct error *err)
{
    const char *name = document_text(json_object_get(p->meta, "init"), "row_norms");
    const json_t *meta = meta_of(s, name);
    uint64_t count;
    const float *weight = session_weight(s, name, &count, err);

    if (!weight)
        return false;

    const char *axes = document_text(meta, "axes"), *out = document_text(meta, "out");
    const bool rows = strncmp(axes, out, strlen(out)) == 0; /* else the file has the input's axes first */
    const uint64_t in = count / p->values;

    for (uint64_t o = 0; o < p->values; o++) {
        values[o] = adapter_row_norm(weight + (rows ? o * in : o), in, rows ? 1 : p->values);
        if (!(values[o] > 0))
            return error_set(err, ERROR_NON_FINITE, "leave the module out of the targets",
                             "row %llu of %s is zero: DoRA has no direction for it", (unsigned long long)o, name);
    }
    return true;
}

static bool same_kind(const struct adapter_kind *own, const struct adapter_kind *found, struct error *err)
{
    const double scale = adapter_scale(own), other = adapter_scale(found);
    char hint[80];

    if (found->rank != own->rank) {
        snprintf(hint, sizeof hint, "set adapter.rank = %u", found->rank);
        return error_set(err, ERROR_MISMATCH, hint, "the adapter's rank is %u, the run's %u", found->rank, own->rank);
    }
    if (fabs(other - scale) <= 1e-6 * scale)
        return true;
    snprintf(hint, sizeof hint, "set adapter.alpha = %g%s", found->alpha, found->root ? ", scaling = \"root\"" : "");
    return error_set(err, ERROR_MISMATCH, hint, "the adapter's product is scaled by %g, the run's by %g", other, scale);
}

/* Whether the adapter in the folder is what the spec says of the run's, module by module where either has patterns. */
static bool check_kind(const struct session *s, const struct adapter_kind *found, struct error *err)
{
    const struct adapter_kind *own = &s->adapter.kind;

    if (found->dora != own->dora)
        return error_set(err, ERROR_MISMATCH, found->dora ? "set adapter.kind = \"dora\"" : "set adapter.kind = \"lora\"",
                         "the adapter is %s DoRA, the run's %s", found->dora ? "a" : "no", own->dora ? "is" : "is none");
    if (!found->ranks && !found->alphas && !own->ranks && !own->alphas)
        return same_kind(own, found, err);
    for (size_t i = 0; i < s->layout.count; i++) {
        const char *name = s->layout.parameters[i].name;
        size_t module = 0;

        if (adapter_part_of(name, &module) != ADAPTER_A)
            continue;

        const struct adapter_kind a = adapter_kind_of(own, name, module), b = adapter_kind_of(found, name, module);

        if (!same_kind(&a, &b, err)) {
            snprintf(err->hint, sizeof err->hint, "leave rank, alpha and their patterns out: the adapter tells them");
            return error_at(err, "%.*s", (int)module, name);
        }
    }
    return true;
}

static bool check_start(const struct session *s, struct error *err)
{
    struct adapter_kind found;
    bool ok = adapter_read_kind(s->adapter.start, &found, err) && check_kind(s, &found, err);

    adapter_kind_free(&found);
    return ok;
}

static bool read_start(struct session *s, float *values, struct error *err)
{
    if (!check_start(s, err))
        return error_at(err, "adapter.start");

    struct tensor *tensors = folding_tensors(&s->layout, values);
    bool ok = adapter_read(s->adapter.start, tensors, s->layout.count, layout_head(&s->layout) != NULL, err) ||
              error_at(err, "adapter.start");

    free(tensors);
    return ok;
}

bool session_genesis(struct session *s, float *values, struct error *err)
{
    for (size_t i = 0; i < s->layout.count; i++) {
        const struct layout_parameter *p = &s->layout.parameters[i];
        float *to = values + p->offset;
        bool ok = model_find(s->model, p->name)                                    ? model_read_tensor(s->model, p->name, to, err)
                  : json_object_get(json_object_get(p->meta, "init"), "row_norms") ? row_norms(s, p, to, err)
                                                                                   : layout_draw(p->meta, s->run, to, err);

        if (!ok)
            return error_at(err, "%s", p->name);
    }
    return !s->adapter.start || read_start(s, values, err);
}
