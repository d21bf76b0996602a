/* keccak.h - Keccak-256 with the original padding (0x01), as Ethereum uses it. Not SHA3-256. */
#ifndef RONDO_CRYPTO_KECCAK_H
#define RONDO_CRYPTO_KECCAK_H

#include "runtime/crypto/hash.h"

struct hash keccak256(const void *bytes, size_t size);

#endif
