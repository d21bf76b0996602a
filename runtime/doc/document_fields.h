/* document_fields.h - fields of a checked document, from JSON and into it. Reading never fails there: what is absent or null reads as zero or
 * NULL. */
#ifndef RONDO_DOC_DOCUMENT_FIELDS_H
#define RONDO_DOC_DOCUMENT_FIELDS_H

#include <jansson.h>

#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"

struct hash document_cid(const json_t *object, const char *name);  /* zero hash when null or absent */
struct hash document_hash(const json_t *object, const char *name); /* 64 hex digits; zero when null or absent */
int64_t document_integer(const json_t *object, const char *name);
const char *document_text(const json_t *object, const char *name); /* NULL when null or absent */
bool document_did(const json_t *object, const char *name, struct public_key *out);
json_t *document_json_cid(struct hash hash); /* new references */
json_t *document_json_hash(struct hash hash);
json_t *document_json_did(const struct public_key *key);
json_t *document_json_float(float value);
float document_float(const json_t *text);

#endif
