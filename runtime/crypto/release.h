/* release.h - what a panel signs to release an escrow: EIP-712 typed data that a contract checks too.
 *
 *     domain  EIP712Domain(string name,string version,uint256 chainId,address verifyingContract), name "RoundEscrow", version "1"
 *     struct  RoundRelease(bytes32 escrowId,bytes32 recordHash,bytes32 payoutRoot,uint256 total,uint256 deadline)
 *     payout root = keccak256(abi.encode(address[] payees, uint256[] amounts))
 */
#ifndef RONDO_CRYPTO_RELEASE_H
#define RONDO_CRYPTO_RELEASE_H

#include "runtime/crypto/account.h"

struct release_domain {
    uint64_t chain;
    struct address contract;
};

struct release {
    struct hash escrow, record, payout_root;
    unsigned __int128 total;
    uint64_t deadline; /* seconds */
};

/* `record` is the BLAKE2b hash inside the record's CID. */
struct hash release_payout_root(const struct address *payees, const unsigned __int128 *amounts, size_t count);
struct hash release_digest(const struct release_domain *domain, const struct release *release);

/* keccak256(abi.encode(bytes32 run, uint256 round)): under it everyone finds a round's escrow. */
struct hash release_round_ref(struct hash run, uint64_t round);

#endif
