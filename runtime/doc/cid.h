/* cid.h - content ids: CIDv1, codec raw, multihash blake2b-256, base 32.
 *
 *     'b' base32( 01 55 a0e402 20 | 32 bytes of BLAKE2b-256 )            62 characters, "bafk2bza..."
 *
 * Inside the program a content id is its `struct hash`; the text stands in documents, file names and URLs.
 */
#ifndef RONDO_DOC_CID_H
#define RONDO_DOC_CID_H

#include "native/base/error.h"
#include "runtime/crypto/hash.h"

enum { CID_TEXT = 63 }; /* with the zero */

const char *cid_text(struct hash hash, char text[CID_TEXT]);

/* False (syntax) for any other codec, hash, base, case or length: one text for one block. */
bool cid_parse(const char *text, struct hash *out, struct error *err);

#endif
