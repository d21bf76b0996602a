#include "runtime/round/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/doc/canonical.h"

enum { FEW = 16 };

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

bool value_cid_most(const json_t *payload, size_t most, char cid[CID_TEXT])
{
    struct buffer bytes = { 0 };
    bool ok = canonical_write_most(payload, most, &bytes, NULL);
    cid[0] = 0;
    if (ok)
        cid_text(hash_block(bytes.bytes, bytes.size), cid);
    buffer_free(&bytes);
    return ok;
}

bool value_cid(const json_t *payload, char cid[CID_TEXT])
{
    return value_cid_most(payload, VALUE_MOST, cid);
}

bool value_hash(const json_t *value, const char *type, char hex[HASH_TEXT])
{
    struct buffer bytes = { 0 };
    bool ok = canonical_write_most(value, VALUE_MOST, &bytes, NULL);
    hex[0] = 0;
    if (ok)
        hash_hex(hash_typed(type, bytes.bytes, bytes.size), hex);
    buffer_free(&bytes);
    return ok;
}

static const char *key_of(const json_t *item, const char *name)
{
    const char *text = name ? value_text(item, name) : json_string_value(item);
    return text ? text : "";
}

/* Long lists are sorted as a rule: the first with this key is found by halves where they are. NULL tells nothing. */
static json_t *find_by_halves(const json_t *array, const char *name, const char *text)
{
    size_t low = 0, high = json_array_size(array);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(key_of(json_array_get(array, middle), name), text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    json_t *item = json_array_get(array, low);
    return item && !strcmp(key_of(item, name), text) ? item : NULL;
}

json_t *value_find(const json_t *array, const char *name, const char *text)
{
    json_t *item = json_array_size(array) > FEW && *text ? find_by_halves(array, name, text) : NULL;
    size_t i;
    if (item)
        return item;
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
    if (json_array_size(array) > FEW && *text && find_by_halves(array, NULL, text))
        return true;
    json_array_foreach((json_t *)array, i, item)
    {
        const char *here = json_string_value(item);
        if (here && !strcmp(here, text))
            return true;
    }
    return false;
}

struct keyed {
    const char *key;
    size_t place; /* before: what is equal keeps its order */
    json_t *item;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int by = strcmp(x->key, y->key);
    return by ? by : x->place < y->place ? -1 : x->place > y->place;
}

void value_sort(json_t *array, const char *name)
{
    size_t count = json_array_size(array);
    struct keyed *list = calloc(count + 1, sizeof *list);
    bool sorted = true;
    if (!list)
        abort();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(array, i);
        list[i] = (struct keyed){ .key = key_of(item, name), .place = i, .item = item };
        sorted = sorted && (!i || strcmp(list[i - 1].key, list[i].key) <= 0);
    }
    if (!sorted) {
        qsort(list, count, sizeof *list, by_key);
        for (size_t i = 0; i < count; i++)
            json_incref(list[i].item);
        for (size_t i = 0; i < count; i++)
            json_array_set_new(array, i, list[i].item);
    }
    free(list);
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
