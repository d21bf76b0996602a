#include "runtime/worker/carry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/tensor/tensor.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"
#include "runtime/worker/failure.h"
#include "runtime/worker/fragments.h"

#define CARRY_LIMIT (UINT64_C(16) << 30)

const json_t *carry_of(const json_t *context, const json_t *document)
{
    const json_t *carry = json_object_get(context, "carry");

    if (document && hash_equal(document_hash(document, "carry_in"), root_empty()))
        return NULL;
    return json_is_object(carry) ? carry : NULL;
}

/* The tensors of moved and rest, where there are such, then the slots; `names` owns what the former are called. */
struct carried {
    struct named_tensor *list;
    char **names;
    size_t count, named;
};

static void carried_free(struct carried *c)
{
    for (size_t i = 0; i < c->named; i++)
        free(c->names[i]);
    free(c->names);
    free(c->list);
}

/* One tensor a parameter, KIND.PARAMETER. */
static void add_named(struct carried *c, const struct layout *l, char kind, const float *values)
{
    if (!values)
        return;
    layout_tensors(l, values, c->list + c->count);
    for (size_t i = 0; i < l->count; i++) {
        struct named_tensor *t = &c->list[c->count++];
        size_t size = strlen(t->name) + 3;
        char *name = malloc(size);

        snprintf(name, size, "%c.%s", kind, t->name);
        t->name = c->names[c->named++] = name;
    }
}

static struct carried carried_of(const struct layout *l, const struct states *states, const float *rest, const float *moved)
{
    struct carried c = { 0 };

    c.list = calloc(2 * l->count + states->count + 1, sizeof *c.list);
    c.names = calloc(2 * l->count + 1, sizeof *c.names);
    add_named(&c, l, 'l', moved);
    add_named(&c, l, 'r', rest);
    for (size_t i = 0; i < states->count; i++) {
        const struct state_slot *slot = &states->slots[i];
        struct named_tensor *t = &c.list[c.count++];

        *t = (struct named_tensor){ .name = slot->name, .code = slot->code, .rank = slot->rank, .bytes = slot->data };
        memcpy(t->dims, slot->dims, sizeof slot->dims);
    }
    return c;
}

bool carry_encode(const struct session *s, const struct states *states, const float *rest, const float *moved, struct buffer *out,
                  struct hash *root, struct error *err)
{
    struct carried c = carried_of(&s->layout, states, rest, moved);
    bool ok = root_of_state(c.list, c.count, root, err) && (c.count == 0 || state_encode(c.list, c.count, out, err));

    carried_free(&c);
    return ok || error_at(err, "carry");
}

/* One tensor of the object into the memory that stands for it here. */
static bool take(const struct named_tensor *have, const struct named_tensor *want, struct error *err)
{
    uint64_t values, bytes, at;

    if (strcmp(have->name, want->name) != 0 || have->code != want->code || have->rank != want->rank ||
        memcmp(have->dims, want->dims, have->rank * sizeof *have->dims) != 0 || !named_tensor_size(have, &values, &bytes))
        return error_set(err, ERROR_SHAPE, NULL, "tensor %s is not %s of this run", have->name, want->name);
    if (have->code == CODE_F32 && !tensor_finite_f32(have->bytes, values, &at))
        return error_set(err, ERROR_NON_FINITE, NULL, "tensor %s is not finite at %llu", have->name, (unsigned long long)at);
    memcpy((void *)(uintptr_t)want->bytes, have->bytes, (size_t)bytes);
    return true;
}

static bool take_all(struct session *s, const struct state_object *object, struct states *states, float *rest, float *moved,
                     struct error *err)
{
    const size_t least = states->count + (s->fragments ? s->layout.count : 0);
    const bool rested = object->count == least + s->layout.count;
    float *unread = rested && !rest ? layout_values(&s->layout, err) : NULL,
          *unused = s->fragments && !moved ? layout_values(&s->layout, err) : NULL;
    struct carried want = carried_of(&s->layout, states,
                                     !rested ? NULL
                                     : rest  ? rest
                                             : unread,
                                     !s->fragments ? NULL
                                     : moved       ? moved
                                                   : unused);
    bool ok = object->count == want.count && (!rested || rest || unread) && (!s->fragments || moved || unused);

    if (!ok)
        error_set(err, ERROR_SHAPE, NULL, "%zu tensors, of this run there are %zu or %zu", object->count, least,
                  least + s->layout.count);
    for (size_t i = 0; ok && i < want.count; i++)
        ok = take(&object->tensors[i], &want.list[i], err);
    carried_free(&want);
    free(unread);
    free(unused);
    return ok;
}

bool carry_read(struct session *s, const json_t *carry, struct states *states, float *rest, float *moved, struct error *err)
{
    struct state_object object = { 0 };
    struct buffer bytes = { 0 };
    struct hash id, root;
    bool ok = fragments_load(s, err) && cid_parse(document_text(carry, "object"), &id, err) &&
              object_get(&s->blocks, id, STATE_MEDIA, CARRY_LIMIT, &bytes, err) &&
              state_decode(bytes.bytes, bytes.size, &object, err) && root_of_state(object.tensors, object.count, &root, err);

    if (ok && !hash_equal(root, document_hash(carry, "root")))
        ok = error_set(err, ERROR_MISMATCH, NULL, "its root is not what the trainer committed to");
    ok = ok && take_all(s, &object, states, rest, moved, err);
    state_object_free(&object);
    buffer_free(&bytes);
    return ok || error_at(err, "carry");
}

const char *carry_judge(struct session *s, const json_t *carry, struct error *err)
{
    float *values = layout_values(&s->layout, err);
    struct states states = { 0 };
    bool made = values && states_new(&states, s, &s->inner, values, err) && fragments_load(s, err),
         ok = made && carry_read(s, carry, &states, NULL, NULL, err);

    states_free(&states);
    free(values);
    if (ok)
        return "ok";
    if (!made || failure_is_here(err))
        return NULL;
    error_clear(err);
    return "upheld";
}
