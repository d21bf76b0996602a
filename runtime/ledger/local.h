/* local.h - the embedded ledger: a chain of blocks in one SQLite file, and the books that follow from it.
 *
 *     genesis (chain, block time, test seed, allocations) <- block 1 <- block 2 <- ...
 *     block = height, time, previous hash, entropy, root of the books, [transaction bytes, code]
 *     hash  = H("rondo/ledger", all of these, length-prefixed)
 *
 * The file holds genesis, blocks and transactions; accounts and escrows are never stored but derived by applying the blocks from the
 * first, so there is nothing that could disagree. A block is one SQLite transaction, synchronous, in WAL mode: after a crash at any
 * moment the file holds a whole number of blocks. There is one writer and no fork, so a block is final once it is written.
 *
 * Entropy is 32 random bytes a block, or with a test seed S always H("rondo/entropy", S), so that a run does not depend on the
 * heights it meets: then the status says so.
 */
#ifndef RONDO_LEDGER_LOCAL_H
#define RONDO_LEDGER_LOCAL_H

#include "native/base/buffer.h"
#include "runtime/ledger/escrow.h"
#include "runtime/ledger/ledger.h"

#define LEDGER_WAITING     1024 /* transactions in memory, not yet in a block */
#define LEDGER_BLOCK       256  /* transactions in a block; fewer when their events pass LEDGER_EVENTS */
#define LEDGER_ALLOCATIONS 4096

struct ledger_allocation {
    struct address account;
    unsigned __int128 amount;
};

struct ledger_genesis {
    uint64_t chain; /* 1 .. 2^53-1 */
    uint32_t block_ms;
    const char *test_seed; /* NULL: real entropy; at most 128 bytes */
    const struct ledger_allocation *allocations;
    size_t allocation_count;
};

struct ledger_local;

/* Opens the file, or begins a new chain in it with `genesis`. An existing chain must have been begun with the same genesis
 * (mismatch; NULL takes whatever it has); it is verified block by block while it is applied. One opener at a time (conflict).
 * Errors: io, mismatch (names the block), missing (no file and no genesis). */
struct ledger_local *ledger_local_open(const char *path, const struct ledger_genesis *genesis, struct error *err);
void ledger_local_close(struct ledger_local *ledger);

/* Puts a transaction among those waiting and writes its id. One that is waiting or in a block already is fine.
 * It is not durable before it is in a block: the sender keeps its bytes. Errors: transaction_read's, mismatch (chain), stale
 * (nonce), limit. */
bool ledger_local_add(struct ledger_local *ledger, const void *bytes, size_t size, struct hash *id, struct error *err);

/* Makes and commits one block at `now` (Unix seconds; never before the last block's) from what waits, empty or not. After an error
 * (io: disk full) the chain and the waiting transactions are as before, and the call may be repeated. But `fault`: what was there before
 * could not be read again, and the ledger is no longer sound. */
bool ledger_local_make_block(struct ledger_local *ledger, uint64_t now, struct error *err);

/* False with `err` (fault): the books are lost, and nothing may be read from them. add and make_block are refused, too. */
bool ledger_local_sound(const struct ledger_local *ledger, struct error *err);

size_t ledger_local_waiting(const struct ledger_local *ledger);

/* What is final. */
struct ledger_status ledger_local_status(const struct ledger_local *ledger);
bool ledger_local_block(struct ledger_local *ledger, uint64_t height, struct ledger_block *block,
                        struct error *err); /* missing: not made yet */
bool ledger_local_escrow(const struct ledger_local *ledger, struct address sponsor, struct hash ref,
                         struct ledger_escrow *escrow);
struct ledger_account ledger_local_account(const struct ledger_local *ledger, struct address address);
bool ledger_local_receipt(struct ledger_local *ledger, struct hash id, struct ledger_receipt *receipt);

/* Up to LEDGER_EVENTS events of blocks from..to into `events`; *next as in struct ledger_answer. `run` NULL: all. */
size_t ledger_local_events(const struct ledger_local *ledger, const struct hash *run, uint64_t from, uint64_t to,
                           struct ledger_event events[LEDGER_EVENTS], uint64_t *next);

/* The same reads from a file that another process may be writing, or nobody: nothing is locked or changed, add and make_block
 * are refused. Everything is checked while it is read: hashes, links, times, signatures, codes, roots, conservation. NULL with `err`:
 * mismatch (place "block 12" or "genesis"), io, missing. */
struct ledger_local *ledger_local_open_read(const char *path, struct error *err);

/* ledger_local_open_read and close: is the file sound? `height` (may be NULL) gets the number of blocks. */
bool ledger_local_check(const char *path, uint64_t *height, struct error *err);

/* The EIP-712 domain of every embedded ledger of this chain id: its contract is the last 20 bytes of keccak256("rondo/ledger"). */
struct release_domain ledger_local_domain(uint64_t chain);

#endif
