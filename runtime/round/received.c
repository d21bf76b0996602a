#include "runtime/round/received.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/value.h"

static bool is_positive(const char *code)
{
    return !strcmp(code, "ok") || !strcmp(code, "upheld");
}

static bool item_check(const json_t *item, const char *before, struct error *err)
{
    const char *cid = value_text(item, "cid"), *code = value_text(item, "code");
    struct hash hash;
    if (!cid_parse(cid, &hash, NULL) || !*code || strlen(code) > RECEIVED_CODE || !json_is_integer(json_object_get(item, "ms")))
        return error_set(err, ERROR_TYPE, NULL, "received: items: an item needs cid, code and ms");
    int64_t ms = value_integer(item, "ms");
    if (ms < 0 || ms > INT64_C(1) << 50)
        return error_set(err, ERROR_RANGE, NULL, "received: items: ms is out of range");
    if (strcmp(before, cid) >= 0)
        return error_set(err, ERROR_DUPLICATE, NULL, "received: items: not ascending by cid");
    return true;
}

bool received_check(const json_t *payload, struct error *err)
{
    const json_t *head = json_object_get(payload, "head"), *items = json_object_get(payload, "items");
    const json_t *checked = json_object_get(payload, "checked"), *lock = json_object_get(payload, "lock");
    const char *before = "";
    size_t i;
    json_t *item;
    if (!json_is_integer(json_object_get(payload, "view")) || value_integer(payload, "view") < 0)
        return error_set(err, ERROR_TYPE, NULL, "received: view is missing");
    if (!json_is_integer(json_object_get(head, "height")) || !json_is_integer(json_object_get(head, "time")) ||
        value_integer(head, "height") < 0 || value_integer(head, "height") > INT64_C(1) << 50 ||
        value_integer(head, "time") < 0 || !json_is_integer(json_object_get(payload, "funded")))
        return error_set(err, ERROR_TYPE, NULL, "received: head or funded is missing or out of range");
    if (!json_is_array(items) || !json_is_array(checked) || (!json_is_null(lock) && !json_is_object(lock)))
        return error_set(err, ERROR_TYPE, NULL, "received: items, checked or lock is missing");
    if (json_array_size(items) > RECEIVED_ITEMS || json_array_size(checked) > RECEIVED_ITEMS)
        return error_set(err, ERROR_LIMIT, NULL, "received: too many items");
    json_array_foreach((json_t *)items, i, item)
    {
        if (!item_check(item, before, err))
            return false;
        before = value_text(item, "cid");
    }
    return true;
}

/* What one member says of one item. */
struct entry {
    const char *cid, *code;
    int64_t ms;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int by = strcmp(x->cid, y->cid);
    if (!by)
        by = strcmp(x->code, y->code);
    return by ? by : x->ms < y->ms ? -1 : x->ms > y->ms;
}

/* What a member lists, ascending by cid, and how far it was read. */
struct list {
    const json_t *items;
    size_t at;
    struct entry next; /* cid NULL: nothing is left */
};

static void advance(struct list *list)
{
    json_t *item = json_array_get(list->items, list->at++), *value;
    const char *name;
    list->next = (struct entry){ .cid = item ? "" : NULL, .code = "" };
    json_object_foreach(item, name, value) /* one way through costs less than three look-ups, and there are many */
    {
        if (json_is_string(value) && !strcmp(name, "cid"))
            list->next.cid = json_string_value(value);
        else if (json_is_string(value) && !strcmp(name, "code"))
            list->next.code = json_string_value(value);
        else if (!strcmp(name, "ms"))
            list->next.ms = json_integer_value(value);
    }
}

/* The entries of all lists for the smallest cid that is left; none when all are read. */
static size_t next_group(struct list *lists, size_t count, struct entry *group)
{
    const char *least = NULL;
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        if (lists[i].next.cid && (!least || strcmp(lists[i].next.cid, least) < 0))
            least = lists[i].next.cid;
    for (size_t i = 0; least && i < count; i++)
        if (lists[i].next.cid && !strcmp(lists[i].next.cid, least)) {
            group[size++] = lists[i].next;
            advance(&lists[i]);
        }
    qsort(group, size, sizeof *group, compare_entries);
    return size;
}

/* Decides one item from its entries, which are grouped by code and ascending in ms inside a group. */
static void decide(json_t *items, const struct entry *entries, size_t count, size_t t)
{
    const struct entry *best = NULL;
    size_t best_size = 0;
    if (count < t)
        return;
    for (size_t i = 0, size; i < count; i += size) {
        size = 1;
        while (i + size < count && !strcmp(entries[i].code, entries[i + size].code))
            size++;
        if (is_positive(entries[i].code)) {
            if (size >= t) {
                best = &entries[i], best_size = size;
                break;
            }
        } else if (size > best_size) {
            best = &entries[i], best_size = size;
        }
    }
    /* Fewer than t say ok and the rest do not list it as refused: too little to say anything. */
    if (!best)
        return;
    int64_t ms = best[best_size < t ? best_size - 1 : t - 1].ms;
    json_array_append_new(
        items, json_pack("{sssssIsI}", "cid", best->cid, "code", best->code, "ms", (json_int_t)ms, "by", (json_int_t)best_size));
}

json_t *received_agreed(const json_t *items, const json_t *documents, int64_t t)
{
    json_t *agreed = json_array(), *item;
    size_t i;
    json_array_foreach((json_t *)items, i, item)
    {
        if (value_integer(item, "by") >= t ||
            value_is(json_object_get(documents, value_text(item, "cid")), "type", "contribution"))
            json_array_append(agreed, item);
    }
    return agreed;
}

/* Whoever names one twice counts once. */
static json_t *count_checked(const json_t *received)
{
    json_t *counts = json_object(), *document, *name;
    size_t i, k;
    json_array_foreach((json_t *)received, i, document)
    {
        json_t *seen = json_object();
        json_array_foreach(json_object_get(document, "checked"), k, name)
        {
            const char *cid = json_string_value(name);
            if (!cid || json_object_get(seen, cid))
                continue;
            json_object_set_new(seen, cid, json_true());
            json_object_set_new(counts, cid, json_integer((json_int_t)value_integer(counts, cid) + 1));
        }
        json_decref(seen);
    }
    return counts;
}

static json_t *tally_items(const json_t *received, size_t t)
{
    size_t members = json_array_size(received), size;
    struct list *lists = calloc(members + 1, sizeof *lists);
    struct entry *group = calloc(members + 1, sizeof *group);
    json_t *items = json_array();
    if (!lists || !group)
        abort();
    for (size_t i = 0; i < members; i++) {
        lists[i].items = json_object_get(json_array_get(received, i), "items");
        advance(&lists[i]);
    }
    while ((size = next_group(lists, members, group)))
        decide(items, group, size, t);
    free(group);
    free(lists);
    return items;
}

struct received_tally received_tally(const json_t *received, int64_t t)
{
    size_t members = json_array_size(received);
    assert(t > 0);
    struct received_tally tally = { .items = tally_items(received, (size_t)t), .checked = count_checked(received) };
    int64_t *heights = calloc(members * 2 + 2, sizeof *heights), *times = heights + members + 1;
    if (!heights)
        abort();
    for (size_t i = 0; i < members; i++) {
        const json_t *head = json_object_get(json_array_get(received, i), "head");
        heights[i] = value_integer(head, "height");
        times[i] = value_integer(head, "time");
    }
    if (members >= (size_t)t) {
        tally.height = value_largest(heights, members, (size_t)t);
        tally.time = value_largest(times, members, (size_t)t);
        tally.middle = value_largest(heights, members, members / 2 + 1);
    }
    free(heights);
    return tally;
}
