/* sender.h - who sends: how much a sender may still ask, and what it has sent that nobody honest sends.
 *
 *     address (IPv6: its /64) or key ──> tokens: refilled by the second      points: halved by the minute
 *
 *     a refusal that an honest program never earns adds points (malformed, forged, oversized); at SENDER_BAN the sender is banned, until
 *     half of them are forgotten. What has other causes (too late, not here, not enrolled yet) adds nothing, or next to nothing.
 *
 * A request that proves the key of a machine of the run (request_key.h) counts for that key and not for its address, so whoever shares an
 * address with a liar (a house, a proxy, loopback) is not held to what the liar did. The table has room for SENDER_LIMIT: a newcomer takes
 * the place of the one with the fewest points of eight. Time is handed in.
 */
#ifndef RONDO_NET_SENDER_H
#define RONDO_NET_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"
#include "runtime/crypto/sign.h"

enum { SENDER_LIMIT = 2048, SENDER_NAME = 17, SENDER_BAN = 1000, SENDER_MOST = 4000, SENDER_HALF_LIFE_MS = 60000 };

struct sender {
    uint8_t name[SENDER_NAME]; /* kind, then address or the beginning of a key */
    bool banned;
    uint32_t points; /* thousandths, at `scored` */
    uint64_t scored; /* ms */
    uint64_t filled; /* ms; 0: never */
    uint64_t tokens; /* thousandths of a request */
};

struct sender_table;

struct sender_table *sender_table_new(void);
void sender_table_free(struct sender_table *table);

/* Never NULL; borrowed until the next find. */
struct sender *sender_of_address(struct sender_table *table, const char *address, uint64_t now_ms);
struct sender *sender_of_key(struct sender_table *table, const struct public_key *key, uint64_t now_ms);

/* Takes a token; false when there is none. */
bool sender_allows(struct sender *sender, unsigned per_second, unsigned burst, uint64_t now_ms);

bool sender_banned(struct sender *sender, uint64_t now_ms);
void sender_blame(struct sender *sender, unsigned points, uint64_t now_ms);

/* What a refusal with this code costs. */
unsigned sender_cost(enum error_code code);

/* How many are banned now. */
unsigned sender_table_banned(struct sender_table *table, uint64_t now_ms);

#endif
