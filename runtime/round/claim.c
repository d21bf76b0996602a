#include "runtime/round/claim.h"

#include <string.h>

#include "native/base/hex.h"
#include "runtime/round/value.h"

static struct hash digest_of(const char *run, const char *did)
{
    struct hasher h;
    hash_start(&h, "rondo/account");
    hash_text(&h, run);
    hash_text(&h, did);
    return hash_end(&h);
}

const char *claim_sign(const struct account_key *account, const char *run, const char *did, char text[CLAIM_TEXT])
{
    const struct account_signature signature = account_sign(account, digest_of(run, did));
    return hex_encode(signature.bytes, sizeof signature.bytes, text);
}

bool claim_stands(const json_t *enrolment)
{
    const char *text = value_text(enrolment, "account_signature");
    struct account_signature signature;
    struct address account, signer;
    return hex_decode(text, strlen(text), signature.bytes, sizeof signature.bytes) &&
           address_parse(value_text(enrolment, "account"), &account) &&
           account_recover(&signature, digest_of(value_text(enrolment, "run"), value_text(enrolment, "signer")), &signer) &&
           address_equal(account, signer);
}
