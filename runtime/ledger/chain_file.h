/* chain_file.h - blocks in one SQLite file; no rules, only bytes that are all there or not.
 *
 *     genesis (text, hash)       one row
 *     block   (height, time, previous, entropy, root, hash)
 *     entry   (height, position, bytes, code)         the transactions
 *
 * WAL, synchronous FULL: chain_file_append returns after the block is on disk. Only for this folder.
 */
#ifndef RONDO_LEDGER_CHAIN_FILE_H
#define RONDO_LEDGER_CHAIN_FILE_H

#include "native/base/buffer.h"
#include "runtime/ledger/ledger.h"

struct chain_entry {
    const uint8_t *bytes;
    size_t size;
    enum error_code code;
};

struct chain_block {
    struct ledger_block block;
    struct hash root;
    const struct chain_entry *entries;
    size_t entry_count;
};

struct chain_file;

/* Opens or makes the file, for one writer (conflict when another has it), or only to read (missing). */
struct chain_file *chain_file_open(const char *path, bool only_read, struct error *err);
void chain_file_close(struct chain_file *file);

/* The genesis text and its stored hash; *present false when the file is new. */
bool chain_file_genesis(struct chain_file *file, struct buffer *text, struct hash *hash, bool *present, struct error *err);
bool chain_file_begin(struct chain_file *file, const char *text, struct hash hash, struct error *err);

bool chain_file_append(struct chain_file *file, const struct chain_block *block, struct error *err);

/* The block alone, without its entries. Missing when there is none. */
bool chain_file_block(struct chain_file *file, uint64_t height, struct ledger_block *block, struct error *err);

/* Hands every block to `each` in the order of heights as they stand in one snapshot, then checks that no entries are left over. Stops
 * when `each` returns false. Malformed rows are `mismatch` with the block's place. */
bool chain_file_each(struct chain_file *file, bool (*each)(void *context, const struct chain_block *block, struct error *err),
                     void *context, struct error *err);

#endif
