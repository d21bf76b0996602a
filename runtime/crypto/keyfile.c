#include "runtime/crypto/keyfile.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/hex.h"
#include "native/base/json.h"

enum {
    SECRET = SIGN_SEED + 32,
    SEALED = SECRET + crypto_secretbox_MACBYTES,
    SALT = crypto_pwhash_SALTBYTES,
    NONCE = crypto_secretbox_NONCEBYTES,
    FILE_SIZE = 4096,
};

/* A file from elsewhere must not make this machine work for hours. */
#define MOST_OPERATIONS 16
#define MOST_MEMORY     ((size_t)1 << 30)

const char keyfile_reminder[] =
    "Back up this file now, away from this machine: nobody can restore a lost key, and what it earned is lost with it. "
    "Never send it to anyone.";

void key_pair_new(struct key_pair *out)
{
    secret_key_new(&out->identity);
    account_key_new(&out->account);
}

void key_pair_wipe(struct key_pair *pair)
{
    sodium_memzero(pair, sizeof *pair);
}

static struct hash derived(const char *test_seed, const char *name, const char *purpose, uint32_t attempt)
{
    struct hasher h;

    hash_start(&h, "rondo/test-key");
    hash_text(&h, test_seed);
    hash_text(&h, name);
    hash_text(&h, purpose);
    hash_u32(&h, attempt);
    return hash_end(&h);
}

void key_pair_derive(const char *test_seed, const char *name, struct key_pair *out)
{
    secret_key_from_seed(derived(test_seed, name, "identity", 0).bytes, &out->identity);
    for (uint32_t attempt = 0; !account_key_from_bytes(derived(test_seed, name, "account", attempt).bytes, &out->account);)
        attempt++;
}

static void pack(const struct key_pair *pair, uint8_t secret[SECRET])
{
    memcpy(secret, pair->identity.bytes, SIGN_SEED);
    memcpy(secret + SIGN_SEED, pair->account.bytes, 32);
}

static bool unpack(const uint8_t secret[SECRET], struct key_pair *pair, struct error *err)
{
    secret_key_from_seed(secret, &pair->identity);
    if (!account_key_from_bytes(secret + SIGN_SEED, &pair->account))
        return error_set(err, ERROR_RANGE, "restore the file from its backup", "the account key is outside the group");
    return true;
}

static bool seal(const uint8_t secret[SECRET], const char *passphrase, struct buffer *text, struct error *err)
{
    uint8_t salt[SALT], nonce[NONCE], key[crypto_secretbox_KEYBYTES], sealed[SEALED];
    char salt_hex[2 * SALT + 1], nonce_hex[2 * NONCE + 1], sealed_hex[2 * SEALED + 1];
    unsigned long long operations = crypto_pwhash_OPSLIMIT_MODERATE;
    size_t memory = crypto_pwhash_MEMLIMIT_MODERATE;

    randombytes_buf(salt, sizeof salt);
    randombytes_buf(nonce, sizeof nonce);
    if (crypto_pwhash(key, sizeof key, passphrase, strlen(passphrase), salt, operations, memory, crypto_pwhash_ALG_ARGON2ID13) !=
        0)
        return error_set(err, ERROR_MEMORY, "free some memory", "argon2id needs %zu MiB", memory >> 20);
    crypto_secretbox_easy(sealed, secret, SECRET, nonce, key);
    sodium_memzero(key, sizeof key);
    buffer_printf(
        text,
        "{\"kdf\":\"argon2id\",\"kind\":\"rondo-key\",\"memory\":%zu,\"nonce\":\"%s\",\"operations\":%llu,\"salt\":\"%s\","
        "\"sealed\":\"%s\",\"version\":1}\n",
        memory, hex_encode(nonce, sizeof nonce, nonce_hex), operations, hex_encode(salt, sizeof salt, salt_hex),
        hex_encode(sealed, sizeof sealed, sealed_hex));
    return true;
}

/* Written beside, then linked: a link never replaces what stands there. */
static bool write_new(const char *path, const struct buffer *text, struct error *err)
{
    char beside[PATH_MAX];

    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return error_set(err, ERROR_LIMIT, NULL, "path is too long: %s", path);
    if (!file_write(beside, text->bytes, text->size, 0600, err))
        return false;

    bool linked = link(beside, path) == 0;
    int why = errno;

    unlink(beside);
    if (linked)
        return true;
    if (why == EEXIST)
        error_set(err, ERROR_CONFLICT, "name another file, or move this one away first", "a key is never overwritten");
    else
        error_set(err, ERROR_IO, NULL, "cannot write: %s", strerror(why));
    return error_at(err, "%s", path);
}

bool keyfile_write(const char *path, const struct key_pair *pair, const char *passphrase, struct error *err)
{
    uint8_t secret[SECRET];
    char seed_hex[2 * SIGN_SEED + 1], account_hex[65];
    struct buffer text = { 0 };
    bool ok = true;

    if (file_exists(path)) {
        error_set(err, ERROR_CONFLICT, "name another file, or move this one away first", "a key is never overwritten");
        return error_at(err, "%s", path);
    }
    pack(pair, secret);
    if (passphrase && *passphrase)
        ok = seal(secret, passphrase, &text, err);
    else
        buffer_printf(&text, "{\"account\":\"%s\",\"kind\":\"rondo-key\",\"seed\":\"%s\",\"version\":1}\n",
                      hex_encode(secret + SIGN_SEED, 32, account_hex), hex_encode(secret, SIGN_SEED, seed_hex));
    ok = ok && write_new(path, &text, err);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(seed_hex, sizeof seed_hex);
    sodium_memzero(account_hex, sizeof account_hex);
    if (text.bytes)
        sodium_memzero(text.bytes, text.size);
    buffer_free(&text);
    return ok;
}

static bool hex_field(const json_t *object, const char *name, uint8_t *bytes, size_t size, struct error *err)
{
    const json_t *text = json_object_get(object, name);

    if (!json_is_string(text) || !hex_decode(json_string_value(text), json_string_length(text), bytes, size))
        return error_set(err, ERROR_SYNTAX, "restore the file from its backup", "\"%s\" is not %zu bytes in hex", name, size);
    return true;
}

static bool unseal(const json_t *object, const char *passphrase, uint8_t secret[SECRET], struct error *err)
{
    uint8_t salt[SALT], nonce[NONCE], key[crypto_secretbox_KEYBYTES], sealed[SEALED];
    json_int_t operations = json_integer_value(json_object_get(object, "operations"));
    json_int_t memory = json_integer_value(json_object_get(object, "memory"));

    if (!passphrase || !*passphrase)
        return error_set(err, ERROR_REFUSED, "give the passphrase (--passphrase-file)", "the key is encrypted");
    if (!hex_field(object, "salt", salt, sizeof salt, err) || !hex_field(object, "nonce", nonce, sizeof nonce, err) ||
        !hex_field(object, "sealed", sealed, sizeof sealed, err))
        return false;
    if (operations < 1 || operations > MOST_OPERATIONS || memory < 8192 || (size_t)memory > MOST_MEMORY)
        return error_set(err, ERROR_RANGE, "restore the file from its backup", "argon2id's costs are out of range");
    if (crypto_pwhash(key, sizeof key, passphrase, strlen(passphrase), salt, (unsigned long long)operations, (size_t)memory,
                      crypto_pwhash_ALG_ARGON2ID13) != 0)
        return error_set(err, ERROR_MEMORY, "free some memory", "argon2id needs %lld MiB", (long long)memory >> 20);

    bool ok = crypto_secretbox_open_easy(secret, sealed, sizeof sealed, nonce, key) == 0;

    sodium_memzero(key, sizeof key);
    if (!ok)
        error_set(err, ERROR_SIGNATURE, NULL, "wrong passphrase, or the file was changed");
    return ok;
}

static bool parse(const struct buffer *text, const char *passphrase, struct key_pair *out, struct error *err)
{
    json_t *object = json_read((const char *)text->bytes, text->size, FILE_SIZE, err);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    uint8_t secret[SECRET];
    bool ok;

    if (!object)
        return false;
    if (!kind || strcmp(kind, "rondo-key") != 0 || json_integer_value(json_object_get(object, "version")) != 1)
        ok = error_set(err, ERROR_TYPE, NULL, "not a key file of version 1");
    else if (json_object_get(object, "sealed"))
        ok = unseal(object, passphrase, secret, err);
    else
        ok = hex_field(object, "seed", secret, SIGN_SEED, err) && hex_field(object, "account", secret + SIGN_SEED, 32, err);
    ok = ok && unpack(secret, out, err);
    sodium_memzero(secret, sizeof secret);
    json_decref(object);
    return ok;
}

bool keyfile_read(const char *path, const char *passphrase, struct key_pair *out, struct error *err)
{
    struct buffer text = { 0 };
    struct stat st;
    bool ok = false;

    if (stat(path, &st) == 0 && (st.st_mode & 077)) {
        char hint[PATH_MAX];

        snprintf(hint, sizeof hint, "chmod 600 %s", path);
        error_set(err, ERROR_REFUSED, hint, "others may read this key (mode %03o)", st.st_mode & 0777);
        return error_at(err, "%s", path);
    }
    if (access(path, F_OK) != 0 && errno != EACCES) {
        error_set(err, ERROR_MISSING, "rondo key new --name NAME makes one; or put the backup there", "there is no key");
        return error_at(err, "%s", path);
    }
    if (!file_read(path, FILE_SIZE, &text, err))
        return false;
    ok = parse(&text, passphrase, out, err) || error_at(err, "%s", path);
    sodium_memzero(text.bytes, text.size);
    buffer_free(&text);
    return ok;
}
