#include "native/text/call_node.h"

#include <stdlib.h>
#include <string.h>

#include "native/text/call_scalar.h"

static size_t least_number(const struct call_node *n)
{
    size_t plus = call_digits_left(n, false, 0, 0), minus = call_digits_left(n, true, 0, 0);

    return minus != SIZE_MAX && minus + 1 < plus ? minus + 1 : plus;
}

static size_t least_object(const struct call_node *n)
{
    size_t size = 0;

    for (uint32_t i = 0; i < n->keys.count; i++)
        if (n->required >> i & 1)
            size += n->keys.list[i].size + 2 + n->values[i]->least;
    return size > 0 ? size + 1 : 2;
}

static size_t least_list(const struct call_node *n)
{
    return n->least_items ? n->least_items * (n->items->least + 1) + 1 : 2;
}

size_t call_node_least(const struct call_node *n)
{
    size_t number = n->kinds & (CALL_INTEGER | CALL_NUMBER) ? least_number(n) : 0, best = number ? number : SIZE_MAX;

    if (number == SIZE_MAX)
        return SIZE_MAX;
    for (uint32_t i = 0; i < n->texts.count; i++)
        best = n->texts.list[i].size < best ? n->texts.list[i].size : best;
    if (n->kinds & CALL_STRING && (size_t)n->least_chars + 2 < best)
        best = (size_t)n->least_chars + 2;
    if (n->kinds & CALL_OBJECT && least_object(n) < best)
        best = least_object(n);
    if (n->kinds & CALL_ARRAY && least_list(n) < best)
        best = least_list(n);
    return best;
}

/* Kinds by how they begin: the first byte of a value says which it is. */
static unsigned beginnings_of_kinds(const struct call_node *n)
{
    return n->kinds & CALL_INTEGER ? (n->kinds & ~(unsigned)CALL_INTEGER) | CALL_NUMBER : n->kinds;
}

static unsigned beginnings_of_texts(const struct call_node *n)
{
    unsigned begin = 0;

    for (uint32_t i = 0; i < n->texts.count; i++) {
        char c = n->texts.list[i].bytes[0];

        begin |= c == '"'                             ? CALL_STRING
                 : c == '{'                           ? CALL_OBJECT
                 : c == '['                           ? CALL_ARRAY
                 : c == '-' || (c >= '0' && c <= '9') ? CALL_NUMBER
                                                      : 0;
    }
    return begin;
}

static bool has_text(const struct call_texts *texts, const struct call_text *text)
{
    for (uint32_t i = 0; i < texts->count; i++)
        if (texts->list[i].size == text->size && memcmp(texts->list[i].bytes, text->bytes, text->size) == 0)
            return true;
    return false;
}

static bool alike(const struct call_node *a, const struct call_node *b)
{
    unsigned kinds = beginnings_of_kinds(a), others = beginnings_of_kinds(b);

    for (uint32_t i = 0; i < b->texts.count; i++)
        if (has_text(&a->texts, &b->texts.list[i]))
            return true;
    return kinds & (others | beginnings_of_texts(b)) || others & beginnings_of_texts(a) || (a->free && others & CALL_ARRAY) ||
           (b->free && kinds & CALL_ARRAY);
}

static bool texts_taken(struct call_texts *to, const struct call_texts *from, struct error *err)
{
    for (uint32_t i = 0; i < from->count; i++)
        if (!call_texts_add(to, strdup(from->list[i].bytes), from->list[i].size, err))
            return false;
    return true;
}

static bool object_taken(struct call_node *n, const struct call_node *one, struct error *err)
{
    n->free = one->free;
    n->required = one->required;
    n->values = calloc(one->keys.count + 1, sizeof *n->values);
    if (!n->values)
        abort();
    for (uint32_t i = 0; i < one->keys.count; i++)
        n->values[i] = one->values[i];
    return texts_taken(&n->keys, &one->keys, err);
}

bool call_node_take(struct call_node *n, const struct call_node *one, struct error *err)
{
    if (alike(n, one))
        return error_set(err, ERROR_UNSUPPORTED, "make one of them", "two alternatives that begin alike");
    n->kinds |= one->kinds;
    if (one->kinds & CALL_STRING) {
        n->least_chars = one->least_chars;
        n->most_chars = one->most_chars;
    }
    if (one->kinds & (CALL_INTEGER | CALL_NUMBER)) {
        n->low = one->low;
        n->high = one->high;
        n->bounded = one->bounded;
    }
    if (one->kinds & CALL_ARRAY || one->free)
        n->items = one->items;
    if (one->kinds & CALL_ARRAY) {
        n->least_items = one->least_items;
        n->most_items = one->most_items;
    }
    return texts_taken(&n->texts, &one->texts, err) && (!(one->kinds & CALL_OBJECT) || object_taken(n, one, err));
}
