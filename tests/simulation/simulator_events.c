#include "tests/simulation/simulator_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t sim_chance(struct sim *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t sim_below(struct sim *s, int64_t n)
{
    return (int64_t)(sim_chance(s) % (uint64_t)n);
}

bool sim_faulty(struct sim *s, int per_mille)
{
    return s->now < s->set->faults_until && sim_below(s, 1000) < per_mille;
}

void sim_fail(struct sim *s, const char *format, ...)
{
    va_list list;
    if (*s->result->failure)
        return;
    va_start(list, format);
    vsnprintf(s->result->failure, sizeof s->result->failure, format, list);
    va_end(list);
}

static bool before(const struct queued *a, const struct queued *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_push(struct sim *s, struct queued q)
{
    q.order = s->order++;
    if (s->heap_size == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? 2 * s->heap_capacity : 256;
        s->heap = realloc(s->heap, s->heap_capacity * sizeof *s->heap);
        assert(s->heap);
    }
    size_t i = s->heap_size++;
    for (; i > 0 && before(&q, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = q;
}

struct queued sim_pop(struct sim *s)
{
    struct queued top = s->heap[0], last = s->heap[--s->heap_size];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->heap_size)
            break;
        if (child + 1 < s->heap_size && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

/* An answer to this incarnation of the node. */
void sim_later(struct sim *s, int node, int64_t ms, enum event_kind kind, json_t *body)
{
    sim_push(s,
             (struct queued){
                 .at = s->now + ms, .what = WHAT_EVENT, .node = node, .life = s->nodes[node].life, .kind = kind, .body = body });
}

int sim_find(const struct sim *s, const char *did)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->nodes[i].did, did))
            return i;
    return -1;
}
