/* did.h - names of machines: an Ed25519 key in text.
 *
 *     did:tenzro:machine:z6Mk...      'z' base58( ed 01 | 32 bytes of key )      the form in documents
 *     did:key:z6Mk...                 the same key; accepted wherever a person types one
 *
 * All texts have one length and base 58 digits ascend in ASCII, so ascending keys are ascending DIDs.
 */
#ifndef RONDO_DOC_DID_H
#define RONDO_DOC_DID_H

#include "native/base/error.h"
#include "runtime/crypto/sign.h"

enum { DID_TEXT = 68 }; /* "did:tenzro:machine:" 19, 'z' 1, 47 digits, zero */

const char *did_text(const struct public_key *key, char text[DID_TEXT]);

/* Either form. False (syntax) for anything else, or a key that public_key_valid refuses. */
bool did_parse(const char *text, struct public_key *out, struct error *err);

/* As did_parse, but only the form that documents hold: equal DIDs are equal texts. */
bool did_parse_strict(const char *text, struct public_key *out, struct error *err);

/* As did_parse_strict, for a text that was found sound before: the point is not examined again, which takes as long as a signature. */
bool did_parse_known(const char *text, struct public_key *out);

int did_compare(const struct public_key *a, const struct public_key *b);

#endif
