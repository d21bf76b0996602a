/* documents.h - how a document of any type (document_types.h) is made and read; its fields are read with document_fields.h.
 *
 * Most are envelopes (envelope.h). `record` and `certificate` are bare canonical JSON with a field `type`, since no one key
 * signs them: the votes inside the certificate do. Layouts: docs/protocol.md, sections 2 and 12.
 *
 *     struct document d;
 *     if (document_read(bytes, size, &d, err)) {
 *         d.type == DOCUMENT_VOTE; json_string_value(json_object_get(d.json, "record")); d.signer ...
 *     }
 *     document_free(&d);
 *
 * A document that reads well has a valid signature and fits its schema. Whether its signer may say so, and whether now is the
 * round for it, is for the reader to decide.
 */
#ifndef RONDO_DOC_DOCUMENTS_H
#define RONDO_DOC_DOCUMENTS_H

#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"
#include "runtime/doc/document_fields.h"
#include "runtime/doc/document_types.h"
#include "runtime/doc/envelope.h"

/* Bytes of any document: those of a record of many machines. All others have CANONICAL_SIZE. */
enum { DOCUMENT_SIZE = 16 << 20 };

struct document {
    enum document_type type;
    struct buffer bytes; /* owned: as received or made; what is stored and sent     */
    json_t *json;        /* owned: the payload                                      */
    struct hash id;      /* of the payload                                          */
    bool has_signer;     /* false for record and certificate                        */
    struct public_key signer;
    struct hash run; /* of all but identity; of `run` itself: its id            */
    bool has_round;  /* enrolment, leave and all that belong to a round         */
    uint32_t round;
};

/* Reads bytes from outside: an envelope, or a bare record or certificate. Checks signatures, schema, and that signer and
 * second signature are who the type asks for (identity and run: the account too). The votes of a certificate are checked to
 * be valid votes for it by distinct signers; whether they are members and enough is for the reader. */
bool document_read(const void *bytes, size_t size, struct document *out, struct error *err);

/* The same for a document that stands inside another JSON text (an envelope in a message, a certificate as a lock). */
bool document_read_json(const json_t *value, struct document *out, struct error *err);

/* The same; what `known` (verified.h; may be NULL) remembers is neither verified nor checked again, and what is found good is remembered:
 * also the votes and statements inside. */
bool document_read_known(const json_t *value, struct verified *known, struct document *out, struct error *err);
/* The same without its bytes; document_add_bytes puts them in, from the same value. */
bool document_open(const json_t *value, struct verified *known, struct document *out, struct error *err);
bool document_add_bytes(struct document *document, const json_t *value, struct error *err);
bool document_read_bytes(const void *bytes, size_t size, struct verified *known, struct document *out, struct error *err);

/* As document_read, refusing every other type. */
bool document_read_as(enum document_type type, const void *bytes, size_t size, struct document *out, struct error *err);
bool document_read_as_known(enum document_type type, const void *bytes, size_t size, struct verified *known, struct document *out,
                            struct error *err);

/* Makes a document from its fields; version and signer (or type) are put in here. `fields` is not kept. `identity` is NULL for
 * record and certificate; `account` signs too for identity and run, and is NULL for all others. */
bool document_make(enum document_type type, const json_t *fields, const struct secret_key *identity,
                   const struct account_key *account, struct document *out, struct error *err);

/* The same; it is remembered in `known` (may be NULL), and so are the votes of a certificate. */
bool document_make_known(enum document_type type, const json_t *fields, const struct secret_key *identity,
                         const struct account_key *account, struct verified *known, struct document *out, struct error *err);

void document_free(struct document *d);

#endif
