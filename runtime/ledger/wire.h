/* wire.h - what the ledger tells, as JSON and back (docs/ledger.md). Both sides of the wire stand here, so that they agree.
 *
 * Hashes are 64 hex digits, transaction ids CIDs, addresses "0x..." by EIP-55, amounts decimal text, heights and times integers.
 * Reading checks every field: missing, unknown, type, range, syntax, with the field as place. Only for this folder.
 */
#ifndef RONDO_LEDGER_WIRE_H
#define RONDO_LEDGER_WIRE_H

#include <jansson.h>

#include "runtime/ledger/ledger.h"

/* New references. */
json_t *wire_status(const struct ledger_status *status);
json_t *wire_block(const struct ledger_block *block);
json_t *wire_escrow(const struct ledger_escrow *escrow);
json_t *wire_account(const struct ledger_account *account);
json_t *wire_receipt(const struct ledger_receipt *receipt);
json_t *wire_events(const struct ledger_event *events, size_t count, uint64_t next);

bool wire_read_status(const json_t *json, struct ledger_status *status, struct error *err);
bool wire_read_block(const json_t *json, struct ledger_block *block, struct error *err);
bool wire_read_escrow(const json_t *json, struct ledger_escrow *escrow, struct error *err);
bool wire_read_account(const json_t *json, struct ledger_account *account, struct error *err);
bool wire_read_receipt(const json_t *json, struct ledger_receipt *receipt, struct error *err);
bool wire_read_events(const json_t *json, struct ledger_event events[LEDGER_EVENTS], size_t *count, uint64_t *next,
                      struct error *err);

/* The code with this stable name, else `otherwise`. */
enum error_code wire_code(const char *name, enum error_code otherwise);

/* Of schema-checked objects, these never fail there. */
struct hash wire_get_hash(const json_t *object, const char *name);
struct hash wire_get_cid(const json_t *object, const char *name);
struct address wire_get_address(const json_t *object, const char *name);

#endif
