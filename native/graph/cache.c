#include "native/graph/cache.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel/attention.h"

enum { PAGE = ATTENTION_BLOCK };

struct page {
    uint32_t owners;
    float values[];
};

struct cache {
    uint32_t layers;
    size_t *width; /* floats of a token's keys in each layer, of its values as many */
    size_t *at;    /* where a layer starts in a page */
    size_t floats; /* of a page */
    uint64_t pages;
};

struct cache_sequence {
    struct cache *cache;
    size_t length, count, room; /* tokens; pages; pages that the list has room for */
    struct page **pages;
    const float **k, **v; /* of the layer asked for last */
};

/* ---- what a graph keeps ---- */

static bool may_continue(const struct graph *g, const struct graph_node *n, uint32_t time, struct error *err)
{
    const struct graph_axis *axes = graph_axes(g, n);

    if (n->op == OPERATOR_ATTENTION && axes[0].name == time && graph_integers(g, n)[0] != 0)
        return true;
    if ((operator_table[n->op].flags & OPERATOR_SOURCE) && n->op != OPERATOR_IOTA)
        return true;
    for (uint32_t i = 0; i < n->axes_count; i++)
        if (axes[i].name == time)
            return error_set(err, ERROR_UNSUPPORTED, "sample without a cache",
                             "%s over %s: tokens depend on each other by more than causal attention", operator_table[n->op].name,
                             g->names[time]);
    return true;
}

/* Keys [row, time, ...]: what lies behind the first two axes is a token's. */
static bool layer_of(const struct graph *g, const struct graph_node *n, uint32_t time, size_t *width, struct error *err)
{
    const struct graph_node *k = &g->nodes[graph_inputs(g, n)[1]];

    if (k->rank < 3 || k->axis[1].name != time)
        return error_set(err, ERROR_UNSUPPORTED, "sample without a cache", "attention: keys are not [row %s ...]",
                         g->names[time]);
    *width = (size_t)(k->values / (k->axis[0].size * k->axis[1].size));
    return true;
}

struct cache *cache_new(const struct graph *g, const char *axis, struct error *err)
{
    struct cache *c = calloc(1, sizeof *c);
    uint32_t time = graph_name_find(g, axis);
    bool ok = time != GRAPH_NONE || error_set(err, ERROR_SHAPE, NULL, "the graph has no axis %s", axis);

    c->width = calloc(g->node_count + 1, sizeof *c->width);
    c->at = calloc(g->node_count + 1, sizeof *c->at);
    for (uint32_t i = 0; ok && i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];

        ok = may_continue(g, n, time, err);
        if (!ok || n->op != OPERATOR_ATTENTION)
            continue;
        ok = layer_of(g, n, time, &c->width[c->layers], err);
        c->at[c->layers] = c->floats;
        c->floats += 2 * PAGE * c->width[c->layers++];
    }
    if (ok)
        return c;
    cache_free(c);
    return NULL;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    free(c->width);
    free(c->at);
    free(c);
}

bool cache_fits(const struct cache *c, const struct graph *g, struct error *err)
{
    uint32_t layer = 0;

    for (uint32_t i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->nodes[i];
        size_t width;

        if (n->op != OPERATOR_ATTENTION)
            continue;
        if (!layer_of(g, n, graph_axes(g, n)[0].name, &width, err))
            return false;
        if (layer == c->layers || width != c->width[layer++])
            return error_set(err, ERROR_SHAPE, NULL, "the cache is of another model");
    }
    return layer == c->layers || error_set(err, ERROR_SHAPE, NULL, "the cache is of another model");
}

uint64_t cache_bytes(const struct cache *c)
{
    return c->pages * (sizeof(struct page) + c->floats * sizeof(float));
}

/* ---- sequences ---- */

static struct page *page_new(struct cache *c)
{
    struct page *p = malloc(sizeof *p + c->floats * sizeof *p->values);

    if (p) {
        p->owners = 1;
        c->pages++;
    }
    return p;
}

static void page_leave(struct cache *c, struct page *p)
{
    if (--p->owners > 0)
        return;
    free(p);
    c->pages--;
}

static void room_for(struct cache_sequence *s, size_t pages)
{
    if (pages <= s->room)
        return;
    s->room = pages > 2 * s->room ? pages : 2 * s->room;
    s->pages = realloc(s->pages, s->room * sizeof *s->pages);
    s->k = realloc(s->k, s->room * sizeof *s->k);
    s->v = realloc(s->v, s->room * sizeof *s->v);
    if (!s->pages || !s->k || !s->v)
        abort();
}

struct cache_sequence *cache_sequence_new(struct cache *cache)
{
    struct cache_sequence *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->cache = cache;
    return s;
}

void cache_sequence_free(struct cache_sequence *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        page_leave(s->cache, s->pages[i]);
    free(s->pages);
    free(s->k);
    free(s->v);
    free(s);
}

/* The last page is written on by its owner: a shared one is copied when its turn comes (cache_begin). */
struct cache_sequence *cache_sequence_copy(const struct cache_sequence *from, size_t length)
{
    struct cache_sequence *s = cache_sequence_new(from->cache);

    s->length = length < from->length ? length : from->length;
    room_for(s, (s->length + PAGE - 1) / PAGE);
    for (; s->count * PAGE < s->length; s->count++) {
        s->pages[s->count] = from->pages[s->count];
        s->pages[s->count]->owners++;
    }
    return s;
}

size_t cache_sequence_length(const struct cache_sequence *s)
{
    return s->length;
}

/* ---- a run ---- */

/* A page that others have, too, and that this sequence is about to write on becomes its own. */
static bool own_page(struct cache_sequence *s, size_t i)
{
    struct page *old = s->pages[i], *own;

    if (old->owners == 1)
        return true;
    own = page_new(s->cache);
    if (!own)
        return false;
    memcpy(own->values, old->values, s->cache->floats * sizeof *own->values);
    page_leave(s->cache, old);
    s->pages[i] = own;
    return true;
}

bool cache_begin(const struct cache_step *step, struct error *err)
{
    for (size_t r = 0; r < step->rows; r++) {
        struct cache_sequence *s = step->sequences[r];
        bool ok = true;

        if (step->counts[r] == 0)
            continue;
        room_for(s, (s->length + step->counts[r] + PAGE - 1) / PAGE);
        if (s->length % PAGE != 0)
            ok = own_page(s, s->length / PAGE);
        while (ok && s->count * PAGE < s->length + step->counts[r])
            ok = (s->pages[s->count] = page_new(s->cache)) && ++s->count;
        if (!ok)
            return error_set(err, ERROR_MEMORY, "fewer sequences at once, or shorter ones", "no memory for a cache of %llu bytes",
                             (unsigned long long)cache_bytes(s->cache));
    }
    return true;
}

void cache_add(struct cache_sequence *s, uint32_t layer, const float *k, const float *v, uint32_t count)
{
    size_t width = s->cache->width[layer];

    for (size_t done = 0; done < count;) {
        size_t token = (s->length + done) % PAGE, some = PAGE - token < count - done ? PAGE - token : count - done;
        float *to = s->pages[(s->length + done) / PAGE]->values + s->cache->at[layer] + token * width;

        memcpy(to, k + done * width, some * width * sizeof *to);
        memcpy(to + PAGE * width, v + done * width, some * width * sizeof *to);
        done += some;
    }
}

void cache_pages(struct cache_sequence *s, uint32_t layer, const float *const **k, const float *const **v)
{
    for (size_t i = 0; i < s->count; i++) {
        s->k[i] = s->pages[i]->values + s->cache->at[layer];
        s->v[i] = s->k[i] + PAGE * s->cache->width[layer];
    }
    *k = s->k;
    *v = s->v;
}

void cache_end(const struct cache_step *step)
{
    for (size_t r = 0; r < step->rows; r++)
        if (step->counts[r] > 0)
            step->sequences[r]->length += step->counts[r];
}
