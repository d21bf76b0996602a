#include "runtime/worker/carry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/tensor/tensor.h"
#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/store/state_object.h"

#define CARRY_LIMIT (UINT64_C(16) << 30)

const json_t *carry_of(const json_t *context, const json_t *document)
{
    const json_t *carry = json_object_get(context, "carry");

    if (document && hash_equal(document_hash(document, "carry_in"), root_empty()))
        return NULL;
    return json_is_object(carry) ? carry : NULL;
}

/* The rest's tensors, if there is one, then the slots; `names` owns what the rest's are called. */
struct carried {
    struct named_tensor *list;
    char **names;
    size_t count, rests;
};

static void carried_free(struct carried *c)
{
    for (size_t i = 0; i < c->rests; i++)
        free(c->names[i]);
    free(c->names);
    free(c->list);
}

static struct carried carried_of(const struct layout *l, const struct states *states, const float *rest)
{
    struct carried c = { .rests = rest ? l->count : 0 };

    c.list = calloc(c.rests + states->count + 1, sizeof *c.list);
    c.names = calloc(c.rests + 1, sizeof *c.names);
    if (rest)
        layout_tensors(l, rest, c.list);
    for (size_t i = 0; i < c.rests; i++) {
        size_t size = strlen(c.list[i].name) + 3;

        c.names[i] = malloc(size);
        snprintf(c.names[i], size, "r.%s", c.list[i].name);
        c.list[i].name = c.names[i];
    }
    c.count = c.rests;
    for (size_t i = 0; i < states->count; i++) {
        const struct state_slot *slot = &states->slots[i];
        struct named_tensor *t = &c.list[c.count++];

        *t = (struct named_tensor){ .name = slot->name, .code = slot->code, .rank = slot->rank, .bytes = slot->data };
        memcpy(t->dims, slot->dims, sizeof slot->dims);
    }
    return c;
}

bool carry_encode(const struct session *s, const struct states *states, const float *rest, struct buffer *out, struct hash *root,
                  struct error *err)
{
    struct carried c = carried_of(&s->layout, states, rest);
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

static bool take_all(struct session *s, const struct state_object *object, struct states *states, float *rest, struct error *err)
{
    const bool rested = object->count == states->count + s->layout.count;
    float *unread = rested && !rest ? layout_values(&s->layout, err) : NULL;
    struct carried want = carried_of(&s->layout, states, !rested ? NULL : rest ? rest : unread);
    bool ok = object->count == want.count && (!rested || rest || unread);

    if (!ok)
        error_set(err, ERROR_SHAPE, NULL, "%zu tensors, of this run there are %zu or %zu", object->count, states->count,
                  states->count + s->layout.count);
    for (size_t i = 0; ok && i < want.count; i++)
        ok = take(&object->tensors[i], &want.list[i], err);
    carried_free(&want);
    free(unread);
    return ok;
}

bool carry_read(struct session *s, const json_t *carry, struct states *states, float *rest, struct error *err)
{
    struct state_object object = { 0 };
    struct buffer bytes = { 0 };
    struct hash id, root;
    bool ok = cid_parse(document_text(carry, "object"), &id, err) &&
              object_get(&s->blocks, id, STATE_MEDIA, CARRY_LIMIT, &bytes, err) &&
              state_decode(bytes.bytes, bytes.size, &object, err) && root_of_state(object.tensors, object.count, &root, err);

    if (ok && !hash_equal(root, document_hash(carry, "root")))
        ok = error_set(err, ERROR_MISMATCH, NULL, "its root is not what the trainer committed to");
    ok = ok && take_all(s, &object, states, rest, err);
    state_object_free(&object);
    buffer_free(&bytes);
    return ok || error_at(err, "carry");
}

const char *carry_judge(struct session *s, const json_t *carry, struct error *err)
{
    float *values = layout_values(&s->layout, err);
    struct states states = { 0 };
    bool made = values && states_new(&states, s, &s->inner, values, err), ok = made && carry_read(s, carry, &states, NULL, err);

    states_free(&states);
    free(values);
    if (ok)
        return "ok";
    if (!made || err->code == ERROR_MISSING || error_status(err->code) == 4)
        return NULL;
    error_clear(err);
    return "upheld";
}
