#include "runtime/net/sender.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 8, KIND_ADDRESS = 1, KIND_KEY = 2 };

struct sender_table {
    struct sender senders[SENDER_LIMIT];
};

struct sender_table *sender_table_new(void)
{
    struct sender_table *table = calloc(1, sizeof *table);

    if (!table)
        abort();
    return table;
}

void sender_table_free(struct sender_table *table)
{
    free(table);
}

/* Halved for each half-life gone by, a straight line within one. */
static void forget(struct sender *s, uint64_t now_ms)
{
    uint64_t passed = now_ms > s->scored ? now_ms - s->scored : 0;
    uint64_t halves = passed / SENDER_HALF_LIFE_MS, rest = passed % SENDER_HALF_LIFE_MS;

    s->points = halves > 31 ? 0 : s->points >> halves;
    s->points -= (uint32_t)(s->points * rest / (2 * (uint64_t)SENDER_HALF_LIFE_MS));
    s->scored = now_ms;
    if (s->points < SENDER_BAN * 1000u / 2)
        s->banned = false;
}

static struct sender *find(struct sender_table *table, const uint8_t name[SENDER_NAME], uint64_t now_ms)
{
    uint32_t hash = 2166136261u;
    struct sender *set, *least = NULL;

    for (int i = 0; i < SENDER_NAME; i++)
        hash = (hash ^ name[i]) * 16777619u;
    set = &table->senders[(hash ^ hash >> 16) % (SENDER_LIMIT / WAYS) * WAYS];
    for (int i = 0; i < WAYS; i++) {
        if (memcmp(set[i].name, name, SENDER_NAME) == 0)
            return &set[i];
        if (set[i].points)
            forget(&set[i], now_ms > set[i].scored + 1000 ? now_ms : set[i].scored);
        if (!least || set[i].points < least->points || (set[i].points == least->points && set[i].filled < least->filled))
            least = &set[i];
    }
    *least = (struct sender){ .scored = now_ms };
    memcpy(least->name, name, SENDER_NAME);
    return least;
}

struct sender *sender_of_address(struct sender_table *table, const char *address, uint64_t now_ms)
{
    uint8_t name[SENDER_NAME] = { KIND_ADDRESS };

    if (inet_pton(AF_INET6, address, name + 1) == 1)
        memset(name + 9, 0, 8); /* one customer has a /64 */
    else
        inet_pton(AF_INET, address, name + 1);
    return find(table, name, now_ms);
}

struct sender *sender_of_key(struct sender_table *table, const struct public_key *key, uint64_t now_ms)
{
    uint8_t name[SENDER_NAME] = { KIND_KEY };

    memcpy(name + 1, key->bytes, SENDER_NAME - 1);
    return find(table, name, now_ms);
}

bool sender_allows(struct sender *s, unsigned per_second, unsigned burst, uint64_t now_ms)
{
    uint64_t full = (uint64_t)burst * 1000;

    if (s->filled == 0)
        s->tokens = full;
    else
        s->tokens += now_ms > s->filled ? (now_ms - s->filled) * per_second : 0;
    if (s->tokens > full)
        s->tokens = full;
    s->filled = now_ms ? now_ms : 1;
    if (s->tokens < 1000)
        return false;
    s->tokens -= 1000;
    return true;
}

bool sender_banned(struct sender *s, uint64_t now_ms)
{
    if (s->banned)
        forget(s, now_ms);
    return s->banned;
}

void sender_blame(struct sender *s, unsigned points, uint64_t now_ms)
{
    forget(s, now_ms);
    s->points += points * 1000;
    if (s->points > SENDER_MOST * 1000u)
        s->points = SENDER_MOST * 1000u;
    if (s->points >= SENDER_BAN * 1000u)
        s->banned = true;
}

unsigned sender_cost(enum error_code code)
{
    switch (code) {
    case ERROR_SYNTAX:
    case ERROR_TRUNCATED:
    case ERROR_TYPE:
    case ERROR_RANGE:
    case ERROR_DUPLICATE:
    case ERROR_MISMATCH:
    case ERROR_SIGNATURE:
        return 10;
    case ERROR_REFUSED: /* also who comes before its enrolment did */
    case ERROR_UNKNOWN:
        return 1;
    default:
        return 0;
    }
}

unsigned sender_table_banned(struct sender_table *table, uint64_t now_ms)
{
    unsigned count = 0;

    for (size_t i = 0; i < SENDER_LIMIT; i++)
        count += sender_banned(&table->senders[i], now_ms);
    return count;
}
