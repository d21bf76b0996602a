#include "runtime/round/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/doc/canonical.h"

const char *value_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

int64_t value_integer(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

bool value_is(const json_t *object, const char *name, const char *text)
{
    return !strcmp(value_text(object, name), text);
}

bool value_cid(const json_t *payload, char cid[CID_TEXT])
{
    struct buffer bytes = { 0 };
    bool ok = canonical_write(payload, &bytes, NULL);
    cid[0] = 0;
    if (ok)
        cid_text(hash_block(bytes.bytes, bytes.size), cid);
    buffer_free(&bytes);
    return ok;
}

bool value_hash(const json_t *value, const char *type, char hex[HASH_TEXT])
{
    struct buffer bytes = { 0 };
    bool ok = canonical_write(value, &bytes, NULL);
    hex[0] = 0;
    if (ok)
        hash_hex(hash_typed(type, bytes.bytes, bytes.size), hex);
    buffer_free(&bytes);
    return ok;
}

json_t *value_find(const json_t *array, const char *name, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        if (value_is(item, name, text))
            return item;
    }
    return NULL;
}

bool value_lists(const json_t *array, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)array, i, item)
    {
        const char *here = json_string_value(item);
        if (here && !strcmp(here, text))
            return true;
    }
    return false;
}

static const char *key_of(const json_t *item, const char *name)
{
    const char *text = name ? value_text(item, name) : json_string_value(item);
    return text ? text : "";
}

void value_sort(json_t *array, const char *name)
{
    for (size_t i = 1; i < json_array_size(array); i++) {
        json_t *item = json_incref(json_array_get(array, i));
        size_t at = i;
        while (at > 0 && strcmp(key_of(json_array_get(array, at - 1), name), key_of(item, name)) > 0)
            at--;
        if (at < i) {
            json_array_remove(array, i);
            json_array_insert(array, at, item);
        }
        json_decref(item);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int64_t value_smallest(int64_t *numbers, size_t count, size_t k)
{
    assert(k > 0 && k <= count);
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return numbers[k - 1];
}

int64_t value_largest(int64_t *numbers, size_t count, size_t k)
{
    assert(k > 0 && k <= count);
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return numbers[count - k];
}
