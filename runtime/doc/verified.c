#include "runtime/doc/verified.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 8 };

struct verified_set {
    struct hash names[WAYS];
    uint8_t next; /* which gives way */
};

struct verified {
    uint8_t secret[32];
    size_t sets; /* a power of two */
    uint64_t hits, misses;
    struct verified_read read[VERIFIED_READ];
    size_t next_read; /* which gives way */
    struct verified_set set[];
};

struct verified *verified_new(size_t entries)
{
    size_t sets = 1;

    while (sets * WAYS < entries)
        sets *= 2;

    struct verified *v = calloc(1, sizeof *v + sets * sizeof *v->set);

    if (!v)
        abort();
    v->sets = sets;
    randombytes_buf(v->secret, sizeof v->secret);
    return v;
}

void verified_free(struct verified *v)
{
    for (size_t i = 0; v && i < VERIFIED_READ; i++)
        json_decref(v->read[i].payload);
    free(v);
}

void verified_name(const struct verified *v, struct hasher *out)
{
    hash_start(out, "rondo/verified");
    hash_fixed(out, v->secret, sizeof v->secret);
}

static struct verified_set *set_of(struct verified *v, struct hash name)
{
    uint64_t word;

    memcpy(&word, name.bytes, sizeof word);
    return &v->set[word & (v->sets - 1)];
}

static bool set_has(const struct verified_set *set, struct hash name)
{
    for (int i = 0; i < WAYS; i++)
        if (hash_equal(set->names[i], name))
            return true;
    return false;
}

bool verified_has(struct verified *v, struct hash name)
{
    bool there = set_has(set_of(v, name), name);

    v->hits += there;
    v->misses += !there;
    return there;
}

void verified_add(struct verified *v, struct hash name)
{
    struct verified_set *set = set_of(v, name);

    if (set_has(set, name))
        return;
    set->names[set->next] = name;
    set->next = (uint8_t)((set->next + 1) % WAYS);
}

const struct verified_read *verified_recall(struct verified *v, struct hash name)
{
    for (size_t i = 0; i < VERIFIED_READ; i++)
        if (v->read[i].payload && hash_equal(v->read[i].name, name)) {
            v->hits++;
            return &v->read[i];
        }
    return NULL;
}

void verified_keep(struct verified *v, const struct verified_read *read)
{
    struct verified_read *slot = &v->read[v->next_read];

    for (size_t i = 0; i < VERIFIED_READ; i++)
        if (v->read[i].payload && hash_equal(v->read[i].name, read->name))
            return;
    json_decref(slot->payload);
    *slot = *read;
    json_incref(slot->payload);
    v->next_read = (v->next_read + 1) % VERIFIED_READ;
}

static struct hash key_name(const struct verified *v, const struct public_key *key)
{
    struct hasher h;

    verified_name(v, &h);
    hash_text(&h, "key");
    hash_fixed(&h, key->bytes, sizeof key->bytes);
    return hash_end(&h);
}

bool verified_has_key(struct verified *v, const struct public_key *key)
{
    struct hash name = key_name(v, key);

    return set_has(set_of(v, name), name);
}

void verified_add_key(struct verified *v, const struct public_key *key)
{
    verified_add(v, key_name(v, key));
}

void verified_counts(const struct verified *v, uint64_t *hits, uint64_t *misses)
{
    *hits = v->hits;
    *misses = v->misses;
}
