/* document_types.h - every type of document, and the fields that each must hold.
 *
 *     identity, run              signed by a DID and by the account they name
 *     record, certificate        bare: signed by nobody, since the votes inside the certificate do it
 *     all others                 signed by one DID
 *
 * Layouts: docs/protocol.md, sections 2 and 12. That of `run` stands in run_spec_schema.h.
 */
#ifndef RONDO_DOC_DOCUMENT_TYPES_H
#define RONDO_DOC_DOCUMENT_TYPES_H

#include "runtime/doc/schema.h"

enum document_type {
    DOCUMENT_IDENTITY,
    DOCUMENT_RUN,
    DOCUMENT_ENROLMENT,
    DOCUMENT_LEAVE,
    DOCUMENT_CONTRIBUTION,
    DOCUMENT_RECEIVED,
    DOCUMENT_PROPOSAL,
    DOCUMENT_VOTE,
    DOCUMENT_CERTIFICATE,
    DOCUMENT_RECORD,
    DOCUMENT_CHALLENGE,
    DOCUMENT_EQUIVOCATION,
    DOCUMENT_OPENING,
    DOCUMENT_PICK,
    DOCUMENT_AMENDMENT,
    DOCUMENT_COMMITMENT,
    DOCUMENT_CLOSED,
    DOCUMENT_TYPES
};

/* Its name in `payloadType` (envelope.h), or in the field `type` where it is bare. */
const char *document_type_name(enum document_type type);
bool document_type_parse(const char *name, enum document_type *out);

/* The fields of its payload. What no table says (votes inside a certificate, say) documents.c checks. */
const struct schema *document_schema(enum document_type type);

/* Bare canonical JSON, not an envelope. */
bool document_type_is_bare(enum document_type type);
/* Signed second by the account in its field `account`. */
bool document_type_has_account(enum document_type type);

#endif
