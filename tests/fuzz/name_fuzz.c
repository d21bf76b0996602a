/* Names, numbers and signatures of any text: what is read is written again as the same text, for there is one text for one value. */
#include <stdlib.h>
#include <string.h>

#include "native/base/base32.h"
#include "native/base/base58.h"
#include "native/base/decimal.h"
#include "native/base/hex.h"
#include "runtime/crypto/account.h"
#include "runtime/doc/cid.h"
#include "runtime/doc/did.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TEXT_LIMIT = 256 };

static void same(const char *a, const char *b)
{
    if (strcmp(a, b) != 0)
        abort();
}

static void read_names(const char *text)
{
    char again[DID_TEXT]; /* the longest of them but the hash */
    struct public_key key;
    struct hash hash;
    struct address address;
    unsigned __int128 amount;
    int64_t billionths;
    struct error err;

    if (did_parse_strict(text, &key, &err))
        same(did_text(&key, again), text);
    did_parse(text, &key, &err);
    if (cid_parse(text, &hash, &err))
        same(cid_text(hash, again), text);
    if (hash_parse(text, &hash)) {
        char hex[HASH_TEXT];

        same(hash_hex(hash, hex), text);
    }
    if (address_parse(text, &address)) {
        struct address read;

        if (!address_parse(address_text(address, again), &read) || !address_equal(read, address))
            abort();
    }
    if (amount_parse(text, &amount))
        same(amount_text(amount, again), text);
    decimal_parse(text, &billionths);
}

/* Digits of as many bytes as they can stand for. */
static void read_digits(const char *text, size_t length)
{
    uint8_t bytes[TEXT_LIMIT];
    char again[2 * TEXT_LIMIT + 2];

    if (base32_decode(text, length, bytes, length * 5 / 8))
        same(base32_encode(bytes, length * 5 / 8, again), text);
    if (hex_decode(text, length, bytes, length / 2))
        same(hex_encode(bytes, length / 2, again), text);
    for (size_t size = length * 2 / 3; size <= length && size <= BASE58_LIMIT; size++)
        if (base58_decode(text, length, bytes, size)) {
            if (!base58_encode(bytes, size, again, sizeof again))
                abort();
            same(again, text);
        }
}

/* What is no text may be a signature of either kind. */
static void read_signatures(const uint8_t *bytes, size_t size)
{
    struct public_key key;
    struct signature signature;
    struct account_signature account;
    struct address address;
    struct hash digest = { { 1 } };

    if (size >= sizeof key.bytes + sizeof signature.bytes) {
        memcpy(key.bytes, bytes, sizeof key.bytes);
        memcpy(signature.bytes, bytes + sizeof key.bytes, sizeof signature.bytes);
        public_key_valid(&key);
        sign_verify(&key, &signature, "rondo", 5);
    }
    if (size >= sizeof account.bytes) {
        memcpy(account.bytes, bytes, sizeof account.bytes);
        account_recover(&account, digest, &address);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char text[TEXT_LIMIT + 1];
    size_t length = size < TEXT_LIMIT ? size : TEXT_LIMIT;

    memcpy(text, bytes, length);
    text[length] = 0;
    length = strlen(text);
    read_names(text);
    read_digits(text, length);
    read_signatures(bytes, size);
    return 0;
}
