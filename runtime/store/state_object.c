#include "runtime/store/state_object.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/doc/canonical.h"
#include "runtime/doc/schema.h"

static const char magic[4] = "RNDS";

enum { HEAD = 16, ALIGNMENT = 64 };

static uint64_t aligned(uint64_t at)
{
    return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------- */

static json_t *describe(const struct named_tensor *tensor, uint64_t offset)
{
    json_t *shape = json_array();

    for (size_t i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->dims[i]));
    return json_pack("{s:s, s:I, s:o, s:s}", "name", tensor->name, "offset", (json_int_t)offset, "shape", shape, "type",
                     tensor_code_name(tensor->code));
}

static bool write_header(const struct named_tensor *tensors, size_t count, struct buffer *header, struct error *err)
{
    json_t *list = json_array(), *json;
    uint64_t offset = 0, elements, size;
    bool ok = true;

    for (size_t i = 0; ok && i < count; i++) {
        json_t *entry;

        if (i && strcmp(tensors[i - 1].name, tensors[i].name) >= 0)
            ok = error_set(err, ERROR_RANGE, "sort the tensors by name", "tensor \"%s\" does not follow \"%s\"", tensors[i].name,
                           tensors[i - 1].name);
        else if (!named_tensor_size(&tensors[i], &elements, &size) || strlen(tensors[i].name) >= STATE_NAME)
            ok = error_set(err, ERROR_LIMIT, NULL, "tensor \"%s\" is too large or its name too long", tensors[i].name);
        else if (!(entry = describe(&tensors[i], offset)))
            ok = error_set(err, ERROR_SYNTAX, NULL, "the name of tensor %zu is not UTF-8", i);
        else
            json_array_append_new(list, entry), offset = aligned(offset + size);
    }
    json = json_pack("{s:O, s:i}", "tensors", list, "version", 1);
    ok = ok && canonical_write(json, header, err);
    json_decref(json);
    json_decref(list);
    return ok;
}

static void add_zeros(struct buffer *out, uint64_t size)
{
    static const uint8_t zeros[ALIGNMENT];

    buffer_add(out, zeros, (size_t)size);
}

bool state_encode(const struct named_tensor *tensors, size_t count, struct buffer *out, struct error *err)
{
    struct buffer header = { 0 };
    bool ok = count <= STATE_TENSORS || error_set(err, ERROR_LIMIT, NULL, "%zu tensors, at most %d", count, STATE_TENSORS);

    ok = ok && write_header(tensors, count, &header, err);
    if (ok) {
        buffer_add(out, magic, sizeof magic);
        buffer_add_u32(out, 1);
        buffer_add_u64(out, header.size);
        buffer_add(out, header.bytes, header.size);
        add_zeros(out, aligned(HEAD + header.size) - HEAD - header.size);
        for (size_t i = 0; i < count; i++) {
            uint64_t elements, size;

            named_tensor_size(&tensors[i], &elements, &size);
            buffer_add(out, tensors[i].bytes, (size_t)size);
            if (i + 1 < count)
                add_zeros(out, aligned(size) - size);
        }
    }
    buffer_free(&header);
    return ok;
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

static const struct schema_field a_size = { .kind = SCHEMA_INTEGER };
static const struct schema_field tensor_fields[] = {
    FIELD("name", TEXT, .least = 1, .most = STATE_NAME - 1),
    FIELD("offset", INTEGER),
    FIELD("shape", LIST, .item = &a_size, .most = ROOT_RANK),
    FIELD("type", TEXT, .most = 8),
};
static const struct schema tensor_schema = SCHEMA(tensor_fields);
static const struct schema_field a_tensor = { .kind = SCHEMA_OBJECT, .of = &tensor_schema };
static const struct schema_field header_fields[] = {
    FIELD("tensors", LIST, .item = &a_tensor, .most = STATE_TENSORS),
    FIELD("version", INTEGER, .least = 1, .most = 1),
};
static const struct schema header_schema = SCHEMA(header_fields);

static bool read_tensor(const json_t *json, const uint8_t *data, uint64_t left, uint64_t *offset, struct named_tensor *out,
                        struct error *err)
{
    const json_t *shape = json_object_get(json, "shape");
    uint64_t elements, size;

    out->name = json_string_value(json_object_get(json, "name"));
    out->rank = json_array_size(shape);
    if (!tensor_code_parse(json_string_value(json_object_get(json, "type")), &out->code))
        return error_set(err, ERROR_UNKNOWN, NULL, "unknown type \"%s\"", json_string_value(json_object_get(json, "type")));
    for (size_t i = 0; i < out->rank; i++)
        out->dims[i] = (uint64_t)json_integer_value(json_array_get(shape, i));
    if (!named_tensor_size(out, &elements, &size))
        return error_set(err, ERROR_LIMIT, NULL, "the tensor is too large");
    if ((uint64_t)json_integer_value(json_object_get(json, "offset")) != *offset)
        return error_set(err, ERROR_RANGE, NULL, "the offset is not %llu, where the tensor before ends",
                         (unsigned long long)*offset);
    if (*offset > left || size > left - *offset)
        return error_set(err, ERROR_TRUNCATED, NULL, "the data ends before the tensor does");
    out->bytes = data + *offset;
    *offset += size;
    return true;
}

static bool zeros_between(const uint8_t *data, uint64_t from, uint64_t to, struct error *err)
{
    for (; from < to; from++)
        if (data[from])
            return error_set(err, ERROR_SYNTAX, NULL, "a byte between tensors is not zero");
    return true;
}

static bool read_tensors(const json_t *list, const uint8_t *data, uint64_t left, struct state_object *out, struct error *err)
{
    uint64_t end = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t offset = aligned(end);

        if (!read_tensor(json_array_get(list, i), data, left, &offset, &out->tensors[i], err))
            return error_at(err, "tensors[%zu]", i);
        if (i && strcmp(out->tensors[i - 1].name, out->tensors[i].name) >= 0) {
            error_set(err, ERROR_DUPLICATE, NULL, "names do not ascend");
            return error_at(err, "tensors[%zu]", i);
        }
        if (!zeros_between(data, end, aligned(end) < left ? aligned(end) : left, err))
            return false;
        end = offset;
    }
    return end == left ||
           error_set(err, ERROR_SYNTAX, NULL, "%llu bytes follow the last tensor", (unsigned long long)(left - end));
}

bool state_decode(const void *bytes, size_t size, struct state_object *out, struct error *err)
{
    struct reader r = reader_of(bytes, size);
    const uint8_t *start = reader_bytes(&r, sizeof magic);
    uint32_t version = reader_u32(&r);
    uint64_t header_size = reader_u64(&r);
    bool ok;

    *out = (struct state_object){ 0 };
    if (!r.ok || memcmp(start, magic, sizeof magic) != 0 || version != 1)
        return error_set(err, ERROR_TYPE, NULL, "not a state of version 1");
    if (header_size > CANONICAL_SIZE)
        return error_set(err, ERROR_LIMIT, NULL, "the header is larger than %d bytes", CANONICAL_SIZE);

    const uint8_t *header = reader_bytes(&r, (size_t)header_size);
    uint64_t data = aligned(HEAD + header_size);

    if (!header || data > size)
        return error_set(err, ERROR_TRUNCATED, NULL, "the state ends inside its header");
    if (!zeros_between(bytes, HEAD + header_size, data, err))
        return false;

    json_t *json = canonical_read(header, (size_t)header_size, err);

    ok = json && schema_check(&header_schema, json, err);
    if (ok) {
        const json_t *list = json_object_get(json, "tensors");

        out->count = json_array_size(list);
        out->tensors = calloc(out->count + 1, sizeof *out->tensors);
        out->header = json_incref(json);
        ok = out->tensors ? read_tensors(list, (const uint8_t *)bytes + data, size - data, out, err)
                          : error_set(err, ERROR_MEMORY, NULL, "no memory for %zu tensors", out->count);
    }
    json_decref(json);
    if (!ok)
        state_object_free(out);
    return ok || error_at(err, "state");
}

void state_object_free(struct state_object *state)
{
    free(state->tensors);
    json_decref(state->header);
    *state = (struct state_object){ 0 };
}

const struct named_tensor *state_find(const struct state_object *state, const char *name)
{
    for (size_t low = 0, high = state->count; low < high;) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, state->tensors[middle].name);

        if (order == 0)
            return &state->tensors[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
