#include "runtime/crypto/release.h"

#include <string.h>

#include "native/base/buffer.h"
#include "runtime/crypto/keccak.h"

/* The ABI's words: 32 bytes, big-endian. */
static void add_number(struct buffer *b, unsigned __int128 value)
{
    uint8_t word[32] = { 0 };

    for (size_t i = 0; i < 16; i++)
        word[31 - i] = (uint8_t)(value >> (8 * i));
    buffer_add(b, word, sizeof word);
}

static void add_address(struct buffer *b, struct address address)
{
    uint8_t word[32] = { 0 };

    memcpy(word + 12, address.bytes, ADDRESS_SIZE);
    buffer_add(b, word, sizeof word);
}

static void add_hash(struct buffer *b, struct hash hash)
{
    buffer_add(b, hash.bytes, HASH_SIZE);
}

static struct hash finish(struct buffer *b)
{
    struct hash out = keccak256(b->bytes, b->size);

    buffer_free(b);
    return out;
}

static struct hash hash_of_text(const char *text)
{
    return keccak256(text, strlen(text));
}

struct hash release_payout_root(const struct address *payees, const unsigned __int128 *amounts, size_t count)
{
    struct buffer b = { 0 };

    add_number(&b, 64);
    add_number(&b, 64 + 32 * (count + 1));
    add_number(&b, count);
    for (size_t i = 0; i < count; i++)
        add_address(&b, payees[i]);
    add_number(&b, count);
    for (size_t i = 0; i < count; i++)
        add_number(&b, amounts[i]);
    return finish(&b);
}

static struct hash domain_separator(const struct release_domain *domain)
{
    struct buffer b = { 0 };

    add_hash(&b, hash_of_text("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"));
    add_hash(&b, hash_of_text("RoundEscrow"));
    add_hash(&b, hash_of_text("1"));
    add_number(&b, domain->chain);
    add_address(&b, domain->contract);
    return finish(&b);
}

struct hash release_digest(const struct release_domain *domain, const struct release *release)
{
    struct buffer fields = { 0 }, b = { 0 };

    add_hash(&fields,
             hash_of_text("RoundRelease(bytes32 escrowId,bytes32 recordHash,bytes32 payoutRoot,uint256 total,uint256 deadline)"));
    add_hash(&fields, release->escrow);
    add_hash(&fields, release->record);
    add_hash(&fields, release->payout_root);
    add_number(&fields, release->total);
    add_number(&fields, release->deadline);

    buffer_add(&b, "\x19\x01", 2);
    add_hash(&b, domain_separator(domain));
    add_hash(&b, finish(&fields));
    return finish(&b);
}

struct hash release_round_ref(struct hash run, uint64_t round)
{
    struct buffer b = { 0 };

    add_hash(&b, run);
    add_number(&b, round);
    return finish(&b);
}
