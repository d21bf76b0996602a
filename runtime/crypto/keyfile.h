/* keyfile.h - where a node's two secrets lie: one small JSON file, readable by its owner only.
 *
 *     { "account": "<32 bytes hex>", "kind": "rondo-key", "seed": "<32 bytes hex>", "version": 1 }            plain
 *     { "kind": "rondo-key", "kdf": "argon2id", "memory": N, "nonce": hex, "operations": N, "salt": hex,
 *       "sealed": hex, "version": 1 }                                             with a passphrase (XSalsa20-Poly1305)
 *
 * A file that others may read is refused, with the chmod that repairs it. Nothing is ever overwritten. Nothing here is sent
 * anywhere.
 */
#ifndef RONDO_CRYPTO_KEYFILE_H
#define RONDO_CRYPTO_KEYFILE_H

#include "runtime/crypto/account.h"
#include "runtime/crypto/sign.h"

struct key_pair {
    struct secret_key identity;
    struct account_key account;
};

/* What to tell a person who has just made a key. */
extern const char keyfile_reminder[];

void key_pair_new(struct key_pair *out);
void key_pair_wipe(struct key_pair *pair);

/* Keys of a local network that must come out the same each time: from a test seed and the node's name, e.g. "syncer-1".
 * Whoever knows the seed has the keys. */
void key_pair_derive(const char *test_seed, const char *name, struct key_pair *out);

/* Writes a new file, 0600. `passphrase` NULL or "": not encrypted. Errors: conflict when the file exists, io. */
bool keyfile_write(const char *path, const struct key_pair *pair, const char *passphrase, struct error *err);

/* Errors: missing, refused (loose permissions, or a passphrase is needed), signature (wrong passphrase), syntax. */
bool keyfile_read(const char *path, const char *passphrase, struct key_pair *out, struct error *err);

#endif
