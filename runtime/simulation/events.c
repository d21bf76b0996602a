#include "runtime/simulation/simulation_parts.h"

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

uint64_t sim_drawn(const struct sim *s, uint64_t what)
{
    struct sim dice = { .random = s->set->seed * UINT64_C(0x2545f4914f6cdd1d) + what };
    return sim_chance(&dice);
}

int64_t sim_below(struct sim *s, int64_t n)
{
    return (int64_t)(sim_chance(s) % (uint64_t)n);
}

/* A syncer whose disk holds nothing when round 0 is over abstains like one that lost its disk: with as many liars as a committee can
 * spare there is no room for that, and nothing goes wrong before every honest one has written. */
static bool has_begun(const struct sim *s)
{
    if (s->set->lying_syncers < s->set->syncers - s->set->threshold)
        return true;
    for (int i = 0; i < s->set->syncers; i++)
        if (s->nodes[i].lie == FAULT_KINDS && !json_object_size(s->nodes[i].disk) && !s->nodes[i].life)
            return false;
    return true;
}

bool sim_may(const struct sim *s, enum fault fault)
{
    return s->now < s->set->faults_until && s->set->faults >> fault & 1 && has_begun(s);
}

bool sim_fault(struct sim *s, enum fault fault, int node)
{
    if (!sim_may(s, fault) || sim_below(s, 1000) >= s->set->rate[fault])
        return false;
    uint64_t number = s->result->injected++;
    if (number < s->set->keep_first || number >= s->set->keep_end)
        return false;
    s->result->faults[fault]++;
    sim_tell(s, 1, node < 0 ? "" : s->nodes[node].did, "fault %llu: %s", (unsigned long long)number, fault_name(fault));
    return true;
}

void sim_lie(struct sim *s, enum fault lie)
{
    s->result->faults[lie]++;
}

void sim_tell(struct sim *s, int level, const char *who, const char *format, ...)
{
    va_list list;
    if (s->set->trace < level)
        return;
    printf("%8lld %-8s ", (long long)s->now, strncmp(who, "did:sim:", 8) ? who : who + 8);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
}

void sim_fail(struct sim *s, enum invariant broken, const char *format, ...)
{
    va_list list;
    if (s->result->broken)
        return;
    s->result->broken = broken;
    va_start(list, format);
    vsnprintf(s->result->failure, sizeof s->result->failure, format, list);
    va_end(list);
    sim_tell(s, 1, "", "%s: %s", invariant_name(broken), s->result->failure);
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
        if (!s->heap)
            abort();
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

void sim_later(struct sim *s, int node, int64_t ms, enum event_kind kind, json_t *body)
{
    sim_push(s,
             (struct queued){
                 .at = s->now + ms, .what = WHAT_EVENT, .node = node, .life = s->nodes[node].life, .kind = kind, .body = body });
}

/* A DID ends in the node's number. */
int sim_find(const struct sim *s, const char *did)
{
    size_t size = strlen(did);
    if (size < 10)
        return -1;
    int i = atoi(did + 9);
    return i >= 0 && i < s->count && !strcmp(s->nodes[i].did, did) ? i : -1;
}
