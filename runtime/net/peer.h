/* peer.h - who can be asked: DID -> endpoint, with a score that forgets.
 *
 *     did                       endpoint                 score    retry at
 *     did:tenzro:machine:z6M..  http://127.0.0.1:7001      850    -
 *     did:tenzro:machine:z6N..  https://node.example       120    81,300 ms (3 failures in a row)
 *
 * A good answer raises the score, a bad one (lies, wrong bytes) lowers it much, no answer lowers it little and delays the next
 * try: 250 ms · 2^(failures - 1), at most 30 s. Scores decay towards the middle with a half-life of ten minutes, so that nobody is shut
 * out for ever. Time is handed in (uv_now); nothing here reads a clock. The list is in DID order.
 */
#ifndef RONDO_NET_PEER_H
#define RONDO_NET_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/base/error.h"

#define PEER_LIMIT    1024
#define PEER_DID      128 /* bytes with the end */
#define PEER_ENDPOINT 336 /* bytes with the end: a URL of 256 and a pin (tls.h) */

enum peer_outcome { PEER_GOOD, PEER_SILENT, PEER_BAD };

struct peer {
    char did[PEER_DID];
    char endpoint[PEER_ENDPOINT]; /* URL without a slash at its end; with its pin, where it has one */
    int score;                    /* 0 worst .. 1000 best, new peers 500 */
    unsigned failures;            /* in a row */
    uint64_t scored_ms;           /* when the score was last brought up to date */
    uint64_t retry_ms;            /* not before */
};

struct peer_list;

struct peer_list *peer_list_new(void);
void peer_list_free(struct peer_list *list);

/* Adds a peer, or moves it to another endpoint (its back-off starts anew). Errors: syntax (DID or endpoint), limit. */
bool peer_list_put(struct peer_list *list, const char *did, const char *endpoint, uint64_t now_ms, struct error *err);
void peer_list_remove(struct peer_list *list, const char *did);

size_t peer_list_count(const struct peer_list *list);
const struct peer *peer_list_at(const struct peer_list *list, size_t index);      /* borrowed until the next put or remove */
const struct peer *peer_list_find(const struct peer_list *list, const char *did); /* NULL when unknown */

void peer_list_note(struct peer_list *list, const char *did, enum peer_outcome outcome, uint64_t now_ms);

/* The best peer that may be tried now, the least recently noted among equals; `except` DIDs are passed over. NULL: none now. */
const struct peer *peer_list_pick(struct peer_list *list, uint64_t now_ms, const char *const *except, size_t except_count);

#endif
