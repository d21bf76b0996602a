/* envelope.h - signed bytes: DSSE, version 1.
 *
 *     { "payload": base64, "payloadType": "application/vnd.rondo.<type>+json",
 *       "signatures": [ { "keyid": <signer>, "sig": base64 }, ... ] }
 *
 *     signed bytes, PAE = "DSSEv1" SP len(payloadType) SP payloadType SP len(payload) SP payload
 *
 * keyid is a DID (Ed25519, 64 bytes over the PAE) or eip155:<address> (r‖s‖v, 65 bytes, over keccak256(PAE)). The payload is
 * canonical JSON and holds `version` (1) and `signer`, the first keyid. The received bytes are verified and kept; nothing is
 * written anew to verify.
 */
#ifndef RONDO_DOC_ENVELOPE_H
#define RONDO_DOC_ENVELOPE_H

#include <jansson.h>

#include "native/base/buffer.h"
#include "runtime/crypto/account.h"
#include "runtime/crypto/hash.h"
#include "runtime/crypto/sign.h"
#include "runtime/doc/verified.h"

enum { ENVELOPE_SIGNATURES = 4, ENVELOPE_TYPE = 32, ENVELOPE_SIZE = (1 << 20) * 4 / 3 + 4096, KEYID_TEXT = 72 };

struct envelope_signer {
    enum { SIGNER_DID, SIGNER_ACCOUNT } kind;
    struct public_key did;
    struct address account;
};

/* A verified envelope. */
struct envelope {
    char type[ENVELOPE_TYPE]; /* "vote"                                             */
    struct buffer payload;    /* owned: the bytes that were signed                  */
    struct hash id;           /* hash_block(payload): the document's id             */
    json_t *json;             /* owned: the payload, parsed                         */
    struct envelope_signer signers[ENVELOPE_SIGNATURES];
    size_t signer_count;
    struct hash name; /* in the memory of verified documents, where one was given */
    bool known;       /* it stood there; then `payload` may be empty */
};

void envelope_free(struct envelope *e);

/* Makes an envelope around `payload` and appends its text. `payload` must hold version and signer; the signer is the DID of
 * `identity`, else the address of `account`. Either key may be NULL, not both; with both, the account signs second. */
bool envelope_make(const char *type, const json_t *payload, const struct secret_key *identity, const struct account_key *account,
                   struct buffer *out, struct error *err);

/* Reads and verifies. Every signature must be valid. Errors: syntax, limit, type, signature. */
bool envelope_read(const void *bytes, size_t size, struct envelope *out, struct error *err);
/* The same for an envelope that stands inside another JSON text (a vote in a certificate). */
bool envelope_read_json(const json_t *envelope, struct envelope *out, struct error *err);
/* The same; what `known` remembers is not verified again. The caller adds out->name when all else about it is good. */
bool envelope_read_known(const json_t *envelope, struct verified *known, struct envelope *out, struct error *err);

/* Sets version and signer of a payload: the DID of `identity`, else the address of `account`. */
void envelope_prepare(json_t *payload, const struct secret_key *identity, const struct account_key *account);

/* "eip155:0x..." or the DID. */
const char *keyid_text(const struct envelope_signer *signer, char text[KEYID_TEXT]);
bool keyid_parse(const char *text, struct envelope_signer *out, struct error *err);

#endif
