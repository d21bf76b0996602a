/* dataset.h - a sponsor's files to shards in the store.
 *
 *     files ── rows ── (choice of each corpus by its share) ── shard = hash(row) mod shards ──> objects ──> manifest
 *
 * A row's shard follows from its bytes alone: rows that are added later, and other files, move no other row. In a shard rows stand in the
 * order of corpora, files and lines.
 *
 * A draft's dataset names its files in one of two ways. `files` takes every row; `corpora` is then a declaration. Or every corpus has `files`
 * of its own, and the shares are kept: the largest mix in which no row is taken twice and each corpus has its share of the bytes of
 * rows. Where a corpus is larger than its share, its rows are ordered by hash("rondo/mix", seed, row) and the first that fit are taken: the
 * same files and `seed` (0 unless said) give the same mix, whatever the order of rows in the files.
 *
 * A corpus with `shards` = { first, last } has its rows in those alone, so that they can be kept in a region: shard = first + hash(row) mod
 * (last - first + 1).
 *
 * The manifest of a mix tells what each corpus gave:
 *     { "corpora": [ { "name", "licence", "share", "rows", "size", "of_rows", "of_size" } ], "seed", "rows", "shards": [...], "version": 1 }
 */
#ifndef RONDO_ROLE_DATASET_H
#define RONDO_ROLE_DATASET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "native/base/error.h"
#include "runtime/crypto/hash.h"
#include "runtime/store/block.h"

/* Puts shards and manifest into the store; of `dataset` (of a draft) the files and the seed go, `manifest` comes. Nothing happens to a dataset
 * without files. Errors have the field as place: "corpora[1].share". */
bool dataset_put(const struct block_store *blocks, json_t *dataset, struct error *err);

/* Where the place of `err` names a row by shard and line, "bafk...:4: messages[1].role", and a file of `dataset` (a draft's, before it was put) has
 * that row, the place becomes "data.jsonl:7: messages[1].role". */
void dataset_name_row(const struct block_store *blocks, const json_t *dataset, struct error *err);

/* A file as one shard: its CID, and how many rows it has. */
bool dataset_put_rows(const struct block_store *blocks, const char *path, struct hash *id, uint64_t *rows, struct error *err);

#endif
