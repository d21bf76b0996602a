/* verified.h - documents that were read here and found good, so that one which comes again costs a hash and no curve operation.
 *
 *     H(secret of this process, type, payload, signatures)  ->  one of 2^n sets of eight; the oldest of a set gives way
 *
 * Only what was good is remembered: an entry can be pushed out, never forged. The secret keeps others from aiming at one set. Memory is
 * bounded by `entries` · 32 bytes for ever, and the few that are kept as they were read. For one thread.
 */
#ifndef RONDO_DOC_VERIFIED_H
#define RONDO_DOC_VERIFIED_H

#include <jansson.h>

#include "runtime/crypto/hash.h"
#include "runtime/crypto/sign.h"

enum { VERIFIED_ENTRIES = 1 << 15, VERIFIED_READ = 32, VERIFIED_READ_MOST = 32 << 10 };

struct verified;

struct verified *verified_new(size_t entries); /* at least so many, rounded up to a power of two; at least 8 */
void verified_free(struct verified *v);

/* Begins the name of a document, under this process's secret; the parts are for the caller to add (hash_part, hash_text). */
void verified_name(const struct verified *v, struct hasher *out);

bool verified_has(struct verified *v, struct hash name);
void verified_add(struct verified *v, struct hash name);

/* The last VERIFIED_READ of them, of one signature and VERIFIED_READ_MOST bytes at most, as they were read: they are told again within a round, and
 * then cost no parsing either. `payload` is shared by all who read it: nobody changes it. */
struct verified_read {
    struct hash name, id;
    struct public_key signer;
    json_t *payload;
};

const struct verified_read *verified_recall(struct verified *v,
                                            struct hash name); /* NULL: to be read; borrowed until the next change */
void verified_keep(struct verified *v,
                   const struct verified_read *read); /* another reference of the payload; one that is kept stays */

/* The same of keys that are good ones (crypto/sign.h). */
bool verified_has_key(struct verified *v, const struct public_key *key);
void verified_add_key(struct verified *v, const struct public_key *key);

/* How often verified_has said yes and no of documents. */
void verified_counts(const struct verified *v, uint64_t *hits, uint64_t *misses);

#endif
