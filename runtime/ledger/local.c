#include "runtime/ledger/local.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/decimal.h"
#include "native/base/json.h"
#include "runtime/crypto/keccak.h"
#include "runtime/doc/canonical.h"
#include "runtime/doc/schema.h"
#include "runtime/ledger/chain_file.h"

#define SEED_SIZE      128
#define ID_SLOTS_FIRST 256

struct waiting {
    struct hash id;
    struct transaction transaction;
    struct buffer bytes;
};

struct ledger_local {
    struct chain_file *file;
    bool only_read;
    bool lost; /* the books are not those of the file, which cannot be read */
    uint64_t chain;
    uint32_t block_ms;
    bool test_entropy;
    struct hash test; /* every block's entropy then */
    struct hash genesis;
    struct ledger_allocation *allocations;
    size_t allocation_count;
    struct escrow_book *book;
    struct ledger_block head;
    struct ledger_receipt *receipts; /* in the order of the chain */
    size_t receipt_count, receipt_capacity;
    uint32_t *slots; /* open addressing by id: index of a receipt + 1, 0 empty */
    size_t slot_count;
    struct waiting *waiting;
    size_t waiting_count;
};

struct release_domain ledger_local_domain(uint64_t chain)
{
    struct release_domain domain = { .chain = chain };
    struct hash name = keccak256("rondo/ledger", 12);

    memcpy(domain.contract.bytes, name.bytes + 12, ADDRESS_SIZE);
    return domain;
}

/* ---- receipts ---- */

static size_t slot_of(const struct ledger_local *l, struct hash id)
{
    uint64_t start;
    size_t mask = l->slot_count - 1;

    memcpy(&start, id.bytes, sizeof start); /* ids are hashes: evenly spread already */
    for (size_t i = (size_t)start & mask;; i = (i + 1) & mask)
        if (!l->slots[i] || hash_equal(l->receipts[l->slots[i] - 1].id, id))
            return i;
}

static void slots_grow(struct ledger_local *l)
{
    free(l->slots);
    l->slot_count = l->slot_count ? l->slot_count * 2 : ID_SLOTS_FIRST;
    l->slots = calloc(l->slot_count, sizeof *l->slots);
    if (!l->slots)
        abort();
    for (size_t i = 0; i < l->receipt_count; i++)
        l->slots[slot_of(l, l->receipts[i].id)] = (uint32_t)i + 1;
}

static const struct ledger_receipt *receipt_find(const struct ledger_local *l, struct hash id)
{
    uint32_t slot = l->slot_count ? l->slots[slot_of(l, id)] : 0;

    return slot ? &l->receipts[slot - 1] : NULL;
}

static void receipt_add(struct ledger_local *l, struct hash id, uint64_t height, const struct error *outcome)
{
    struct ledger_receipt receipt = { .id = id, .height = height, .final = true, .code = outcome->code };

    snprintf(receipt.message, sizeof receipt.message, "%.159s", outcome->message);
    if (l->receipt_count == l->receipt_capacity) {
        l->receipt_capacity = l->receipt_capacity ? l->receipt_capacity * 2 : 64;
        l->receipts = realloc(l->receipts, l->receipt_capacity * sizeof *l->receipts);
        if (!l->receipts)
            abort();
    }
    l->receipts[l->receipt_count++] = receipt;
    if (l->receipt_count * 2 > l->slot_count)
        slots_grow(l);
    else
        l->slots[slot_of(l, id)] = (uint32_t)l->receipt_count;
}

/* ---- genesis ---- */

static const struct schema_field allocation_fields[] = {
    { .name = "account", .kind = SCHEMA_ADDRESS },
    { .name = "amount", .kind = SCHEMA_AMOUNT },
};
static const struct schema allocation_schema = SCHEMA(allocation_fields);
static const struct schema_field allocation_item = { .kind = SCHEMA_OBJECT, .of = &allocation_schema };
static const struct schema_field genesis_fields[] = {
    { "allocations", SCHEMA_LIST, .most = LEDGER_ALLOCATIONS, .item = &allocation_item },
    { "block_ms", SCHEMA_INTEGER, .least = 10, .most = 600000 },
    { "chain", SCHEMA_INTEGER, .least = 1, .most = CANONICAL_INTEGER },
    { "test_seed", SCHEMA_TEXT, .most = SEED_SIZE, .optional = true },
    { "version", SCHEMA_INTEGER, .least = 1, .most = 1 },
};
static const struct schema genesis_schema = SCHEMA(genesis_fields);

static bool genesis_write(const struct ledger_genesis *g, struct buffer *out, struct error *err)
{
    json_t *allocations = json_array();
    char account[ADDRESS_TEXT], amount[AMOUNT_TEXT];
    unsigned __int128 sum = 0;
    bool done = true;

    for (size_t i = 0; i < g->allocation_count; i++) {
        done = done && !__builtin_add_overflow(sum, g->allocations[i].amount, &sum);
        json_array_append_new(allocations, json_pack("{s:s, s:s}", "account", address_text(g->allocations[i].account, account),
                                                     "amount", amount_text(g->allocations[i].amount, amount)));
    }

    json_t *json = json_pack("{s:o, s:I, s:I, s:i}", "allocations", allocations, "block_ms", (json_int_t)g->block_ms, "chain",
                             (json_int_t)g->chain, "version", 1);

    if (g->test_seed)
        json_object_set_new(json, "test_seed", json_string(g->test_seed));
    done = (done || error_set(err, ERROR_RANGE, NULL, "the allocations add up to more than 2^128")) &&
           schema_check(&genesis_schema, json, err) && canonical_write(json, out, err);
    json_decref(json);
    return done || error_at(err, "genesis");
}

static bool genesis_read(struct ledger_local *l, const struct buffer *text, struct error *err)
{
    json_t *json = canonical_read(text->bytes, text->size, err), *item;
    size_t i;

    if (!json)
        return false;
    if (!schema_check(&genesis_schema, json, err)) {
        json_decref(json);
        return false;
    }

    const json_t *list = json_object_get(json, "allocations");
    const char *seed = json_string_value(json_object_get(json, "test_seed"));

    l->chain = (uint64_t)json_integer_value(json_object_get(json, "chain"));
    l->block_ms = (uint32_t)json_integer_value(json_object_get(json, "block_ms"));
    l->test_entropy = seed != NULL;
    if (seed) {
        struct hasher h;

        hash_start(&h, "rondo/entropy");
        hash_text(&h, seed);
        l->test = hash_end(&h);
    }
    l->allocation_count = json_array_size(list);
    l->allocations = calloc(l->allocation_count + 1, sizeof *l->allocations);
    if (!l->allocations)
        abort();
    json_array_foreach(list, i, item)
    {
        address_parse(json_string_value(json_object_get(item, "account")), &l->allocations[i].account);
        amount_parse(json_string_value(json_object_get(item, "amount")), &l->allocations[i].amount);
    }
    json_decref(json);
    return true;
}

static bool genesis_mismatch(struct error *err, const char *what)
{
    error_set(err, ERROR_MISMATCH, "use the options it was begun with, or another home", "%s", what);
    return error_at(err, "genesis");
}

/* Reads the genesis of the file, writes `wanted` into a new one, and compares. */
static bool genesis_settle(struct ledger_local *l, const struct ledger_genesis *wanted, struct error *err)
{
    struct buffer text = { 0 }, other = { 0 };
    struct hash stored;
    bool present,
        done = chain_file_genesis(l->file, &text, &stored, &present, err) && (!wanted || genesis_write(wanted, &other, err));

    if (done && !present && !wanted)
        done = error_set(err, ERROR_MISSING, NULL, "the file holds no ledger yet");
    else if (done && !present) {
        stored = hash_typed("rondo/ledger", other.bytes, other.size);
        done = chain_file_begin(l->file, buffer_text(&other), stored, err);
        buffer_add(&text, other.bytes, other.size);
    }
    if (done && !hash_equal(stored, hash_typed("rondo/ledger", text.bytes, text.size)))
        done = genesis_mismatch(err, "its text does not have its hash");
    if (done && wanted && (text.size != other.size || memcmp(text.bytes, other.bytes, text.size) != 0))
        done = genesis_mismatch(err, "this ledger was begun with another chain id, block time, seed or allocations");
    if (done && !genesis_read(l, &text, err))
        done = error_at(err, "genesis");
    l->genesis = stored;
    buffer_free(&text);
    buffer_free(&other);
    return done;
}

/* ---- blocks ---- */

static struct hash block_hash(const struct chain_block *b)
{
    struct hasher h;

    hash_start(&h, "rondo/ledger");
    hash_u64(&h, b->block.height);
    hash_u64(&h, b->block.time);
    hash_fixed(&h, b->block.previous.bytes, HASH_SIZE);
    hash_fixed(&h, b->block.entropy.bytes, HASH_SIZE);
    hash_fixed(&h, b->root.bytes, HASH_SIZE);
    hash_u64(&h, b->entry_count);
    for (size_t i = 0; i < b->entry_count; i++) {
        hash_part(&h, b->entries[i].bytes, b->entries[i].size);
        hash_text(&h, error_name(b->entries[i].code));
    }
    return hash_end(&h);
}

/* Applies one transaction of a block that is being made or read. False only when the books no longer add up. */
static bool entry_apply(struct ledger_local *l, const struct transaction *t, struct hash id, const struct ledger_block *block,
                        enum error_code *code, struct error *err)
{
    struct error outcome = { 0 };

    if (escrow_book_apply(l->book, t, block->height, block->time, &outcome))
        outcome.code = ERROR_NONE;
    *code = outcome.code;
    receipt_add(l, id, block->height, &outcome);
    return escrow_book_conserves(l->book) ||
           error_set(err, ERROR_FAULT, "do not use this ledger any longer", "the books do not add up");
}

static bool entry_verify(struct ledger_local *l, const struct chain_block *b, const struct chain_entry *entry, struct error *err)
{
    struct transaction t;
    struct hash id;
    enum error_code code;

    if (!transaction_read(entry->bytes, entry->size, &t, &id, err))
        return error_set(err, ERROR_MISMATCH, NULL, "a transaction is malformed or not signed by its account");
    if (t.chain != l->chain || receipt_find(l, id))
        return error_set(err, ERROR_MISMATCH, NULL, "a transaction of another chain, or one that is in a block already");
    if (!entry_apply(l, &t, id, &b->block, &code, err))
        return false;
    if (code != entry->code || code == ERROR_STALE)
        return error_set(err, ERROR_MISMATCH, NULL, "a transaction's code is %s, the file says %s", error_name(code),
                         error_name(entry->code));
    return true;
}

static bool block_verify(struct ledger_local *l, const struct chain_block *b, struct error *err)
{
    if (b->block.height != l->head.height + 1)
        return error_set(err, ERROR_MISMATCH, NULL, "block %llu is missing", (unsigned long long)l->head.height + 1);
    if (!hash_equal(b->block.previous, l->head.hash))
        return error_set(err, ERROR_MISMATCH, NULL, "it does not follow from the block before it");
    if (!hash_equal(b->block.hash, block_hash(b)))
        return error_set(err, ERROR_MISMATCH, NULL, "its contents do not have its hash");
    if (b->block.time < l->head.time || b->entry_count > LEDGER_BLOCK)
        return error_set(err, ERROR_MISMATCH, NULL, "its time runs backwards, or it holds too much");
    if (l->test_entropy && !hash_equal(b->block.entropy, l->test))
        return error_set(err, ERROR_MISMATCH, NULL, "its entropy is not that of the test seed");
    for (size_t i = 0; i < b->entry_count; i++)
        if (!entry_verify(l, b, &b->entries[i], err))
            return false;
    if (!hash_equal(b->root, escrow_book_root(l->book)))
        return error_set(err, ERROR_MISMATCH, NULL, "the books after it have another root");
    return true;
}

static bool on_block(void *context, const struct chain_block *b, struct error *err)
{
    struct ledger_local *l = context;

    if (!block_verify(l, b, err))
        return error_at(err, "block %llu", (unsigned long long)b->block.height);
    l->head = b->block;
    return true;
}

/* Books, receipts and head from the first block on. */
static bool rebuild(struct ledger_local *l, struct error *err)
{
    struct release_domain domain = ledger_local_domain(l->chain);

    escrow_book_free(l->book);
    free(l->slots);
    l->slots = NULL;
    l->receipt_count = l->slot_count = 0;
    l->book = escrow_book_new(&domain);
    l->head = (struct ledger_block){ .hash = l->genesis };
    for (size_t i = 0; i < l->allocation_count; i++)
        if (!escrow_book_endow(l->book, l->allocations[i].account, l->allocations[i].amount, err))
            return error_at(err, "genesis");
    return chain_file_each(l->file, on_block, l, err);
}

static struct ledger_local *open_file(const char *path, const struct ledger_genesis *genesis, bool only_read, struct error *err)
{
    struct ledger_local *l = calloc(1, sizeof *l);

    if (!l)
        abort();
    l->only_read = only_read;
    l->file = chain_file_open(path, only_read, err);
    if (!l->file) {
        free(l);
        return NULL;
    }
    if (genesis_settle(l, genesis, err) && rebuild(l, err))
        return l;
    error_at(err, "%s", path);
    ledger_local_close(l);
    return NULL;
}

struct ledger_local *ledger_local_open(const char *path, const struct ledger_genesis *genesis, struct error *err)
{
    return open_file(path, genesis, false, err);
}

struct ledger_local *ledger_local_open_read(const char *path, struct error *err)
{
    return open_file(path, NULL, true, err);
}

void ledger_local_close(struct ledger_local *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->waiting_count; i++)
        buffer_free(&l->waiting[i].bytes);
    free(l->waiting);
    escrow_book_free(l->book);
    chain_file_close(l->file);
    free(l->allocations);
    free(l->receipts);
    free(l->slots);
    free(l);
}

bool ledger_local_check(const char *path, uint64_t *height, struct error *err)
{
    struct ledger_local *l = ledger_local_open_read(path, err);

    if (!l)
        return false;
    if (height)
        *height = l->head.height;
    ledger_local_close(l);
    return true;
}

/* ---- writing ---- */

static const struct waiting *waiting_find(const struct ledger_local *l, struct hash id)
{
    for (size_t i = 0; i < l->waiting_count; i++)
        if (hash_equal(l->waiting[i].id, id))
            return &l->waiting[i];
    return NULL;
}

static uint64_t waiting_of(const struct ledger_local *l, struct address account)
{
    uint64_t count = 0;

    for (size_t i = 0; i < l->waiting_count; i++)
        count += address_equal(l->waiting[i].transaction.from, account);
    return count;
}

bool ledger_local_add(struct ledger_local *l, const void *bytes, size_t size, struct hash *id, struct error *err)
{
    struct waiting w = { 0 };

    if (!transaction_read(bytes, size, &w.transaction, &w.id, err))
        return false;
    *id = w.id;
    if (!ledger_local_sound(l, err))
        return false;
    if (receipt_find(l, w.id) || waiting_find(l, w.id))
        return true;
    if (l->only_read)
        return error_set(err, ERROR_REFUSED, NULL, "this ledger is open for reading only");
    if (w.transaction.chain != l->chain)
        return error_set(err, ERROR_MISMATCH, "sign it for this chain", "the transaction is for chain %llu, this is %llu",
                         (unsigned long long)w.transaction.chain, (unsigned long long)l->chain);
    if (!escrow_book_admits(l->book, &w.transaction, waiting_of(l, w.transaction.from), err))
        return false;
    if (l->waiting_count == LEDGER_WAITING)
        return error_set(err, ERROR_LIMIT, "send it again in a moment", "too many transactions are waiting");
    l->waiting = realloc(l->waiting, (l->waiting_count + 1) * sizeof *l->waiting);
    if (!l->waiting)
        abort();
    buffer_add(&w.bytes, bytes, size);
    l->waiting[l->waiting_count++] = w;
    return true;
}

static void waiting_drop(struct ledger_local *l, size_t count)
{
    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        buffer_free(&l->waiting[i].bytes);
    l->waiting_count -= count;
    memmove(l->waiting, l->waiting + count, l->waiting_count * sizeof *l->waiting);
}

/* A block ends early rather than hold more events than one answer can tell. */
static bool block_full(const struct ledger_local *l, const struct chain_block *b, size_t events_before)
{
    return b->entry_count == LEDGER_BLOCK || escrow_book_event_count(l->book) - events_before > LEDGER_EVENTS - LEDGER_PAYEES - 1;
}

static bool block_build(struct ledger_local *l, struct chain_block *b, struct chain_entry *entries, struct error *err)
{
    size_t before = escrow_book_event_count(l->book);

    b->entries = entries;
    for (size_t i = 0; i < l->waiting_count && !block_full(l, b, before); i++) {
        const struct waiting *w = &l->waiting[i];

        entries[i] = (struct chain_entry){ .bytes = w->bytes.bytes, .size = w->bytes.size };
        if (!entry_apply(l, &w->transaction, w->id, &b->block, &entries[i].code, err))
            return false;
        assert(entries[i].code != ERROR_STALE); /* ledger_local_add keeps each account's nonces in order */
        b->entry_count++;
    }
    b->root = escrow_book_root(l->book);
    b->block.hash = block_hash(b);
    return true;
}

bool ledger_local_make_block(struct ledger_local *l, uint64_t now, struct error *err)
{
    struct chain_entry entries[LEDGER_BLOCK];
    struct chain_block b = { .block = { .height = l->head.height + 1,
                                        .time = now > l->head.time ? now : l->head.time,
                                        .previous = l->head.hash,
                                        .entropy = l->test } };
    struct error again;

    if (!ledger_local_sound(l, err))
        return false;
    if (l->only_read)
        return error_set(err, ERROR_REFUSED, NULL, "this ledger is open for reading only");
    if (!l->test_entropy)
        randombytes_buf(b.block.entropy.bytes, HASH_SIZE);
    if (block_build(l, &b, entries, err) && chain_file_append(l->file, &b, err)) {
        l->head = b.block;
        waiting_drop(l, b.entry_count);
        return true;
    }
    /* The books have gone ahead of the file: back to what it holds. */
    if (!b.entry_count || rebuild(l, &again))
        return false;
    l->lost = true;
    return error_set(err, ERROR_FAULT, "mend the disk and start the ledger again: every block that it told of is in its file",
                     "a block could not be written, and then the file could not be read: %s", again.message);
}

bool ledger_local_sound(const struct ledger_local *l, struct error *err)
{
    return !l->lost || error_set(err, ERROR_FAULT, "mend the disk and start the ledger again",
                                 "the ledger's file could not be read: its books are not those of the chain");
}

/* ---- reading ---- */

size_t ledger_local_waiting(const struct ledger_local *l)
{
    return l->waiting_count;
}

struct ledger_status ledger_local_status(const struct ledger_local *l)
{
    return (struct ledger_status){ .chain = l->chain,
                                   .contract = ledger_local_domain(l->chain).contract,
                                   .height = l->head.height,
                                   .time = l->head.time,
                                   .block_ms = l->block_ms,
                                   .test_entropy = l->test_entropy };
}

bool ledger_local_block(struct ledger_local *l, uint64_t height, struct ledger_block *block, struct error *err)
{
    if (height == LEDGER_FINAL || height == l->head.height) {
        *block = l->head;
        return true;
    }
    if (height > l->head.height)
        return error_set(err, ERROR_MISSING, "ask again later", "block %llu is not made yet", (unsigned long long)height);
    if (height == 0) {
        *block = (struct ledger_block){ .hash = l->genesis };
        return true;
    }
    return chain_file_block(l->file, height, block, err);
}

bool ledger_local_escrow(const struct ledger_local *l, struct address sponsor, struct hash ref, struct ledger_escrow *escrow)
{
    struct release_domain domain = ledger_local_domain(l->chain);
    const struct ledger_escrow *found = escrow_book_find(l->book, ledger_escrow_id(&domain, sponsor, ref));

    if (found)
        *escrow = *found;
    return found != NULL;
}

struct ledger_account ledger_local_account(const struct ledger_local *l, struct address address)
{
    struct ledger_account account = escrow_book_account(l->book, address);

    account.nonce += waiting_of(l, address);
    return account;
}

bool ledger_local_receipt(struct ledger_local *l, struct hash id, struct ledger_receipt *receipt)
{
    const struct ledger_receipt *found = receipt_find(l, id);

    *receipt = found ? *found : (struct ledger_receipt){ .id = id };
    return found || waiting_find(l, id);
}

/* The first event of a block at or above `height`. */
static size_t event_place(const struct ledger_local *l, uint64_t height)
{
    size_t low = 0, high = escrow_book_event_count(l->book);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (escrow_book_event(l->book, middle)->height < height)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block's events are never torn: when they do not all fit any more, `next` is that block. */
size_t ledger_local_events(const struct ledger_local *l, const struct hash *run, uint64_t from, uint64_t to,
                           struct ledger_event events[LEDGER_EVENTS], uint64_t *next)
{
    size_t count = 0, total = escrow_book_event_count(l->book);

    to = to < l->head.height ? to : l->head.height;
    *next = to + 1;
    for (size_t i = event_place(l, from); i < total; i++) {
        const struct ledger_event *e = escrow_book_event(l->book, i);

        if (e->height > to)
            break;
        if (run && !hash_equal(*run, e->run))
            continue;
        if (count == LEDGER_EVENTS) {
            while (count && events[count - 1].height == e->height)
                count--;
            *next = e->height;
            break;
        }
        events[count++] = *e;
    }
    return count;
}
