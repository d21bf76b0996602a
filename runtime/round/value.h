/* value.h - reading JSON payloads without a test at every step: what is absent reads as "", 0 or NULL.
 *
 * Shape is checked once, where a document comes in (received.h, record.h); behind that line these never surprise.
 */
#ifndef RONDO_ROUND_VALUE_H
#define RONDO_ROUND_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/crypto/hash.h"
#include "runtime/doc/cid.h"

const char *value_text(const json_t *object, const char *name); /* borrowed; "" when absent or not text */
int64_t value_integer(const json_t *object, const char *name);  /* 0 when absent or not an integer */
bool value_is(const json_t *object, const char *name, const char *text);

/* Nothing in this folder has a longer text: records (rules.h) and what is asked of a worker about several of them. What comes from outside was
 * bounded where it was read. */
enum { VALUE_MOST = 16 << 20 };

/* Content id of a payload: CID of its canonical bytes. "" and false for a value that has no canonical form. */
bool value_cid(const json_t *payload, char cid[CID_TEXT]);
bool value_cid_most(const json_t *payload, size_t most, char cid[CID_TEXT]); /* false, too, where they are more than `most` */

/* BLAKE2b under `type` over the canonical bytes, as hexadecimal text. */
bool value_hash(const json_t *value, const char *type, char hex[HASH_TEXT]);

/* The element of an array of objects whose member `name` is `text`; borrowed, NULL. */
json_t *value_find(const json_t *array, const char *name, const char *text);
bool value_lists(const json_t *array, const char *text); /* an array of texts holds this one */

/* Sorts an array of objects by a text member, ascending bytewise; of texts when `name` is NULL. Stable. */
void value_sort(json_t *array, const char *name);

/* The k-th (from 1) largest or smallest of `count` numbers; the list is reordered. */
int64_t value_largest(int64_t *numbers, size_t count, size_t k);
int64_t value_smallest(int64_t *numbers, size_t count, size_t k);

#endif
