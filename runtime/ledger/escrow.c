#include "runtime/ledger/escrow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct address address;
    struct ledger_account account;
};

struct escrow_book {
    struct release_domain domain;
    unsigned __int128 issued;
    struct entry *entries; /* ascending by address */
    size_t entry_count;
    struct ledger_escrow **escrows; /* ascending by id, each owned */
    size_t escrow_count;
    struct ledger_event *events;
    size_t event_count, event_capacity;
    struct hash root;
    bool root_known;
    bool wide;
};

struct escrow_book *escrow_book_new(const struct release_domain *domain)
{
    struct escrow_book *book = calloc(1, sizeof *book);

    if (!book)
        abort();
    book->domain = *domain;
    return book;
}

void escrow_book_widen(struct escrow_book *book)
{
    book->wide = true;
}

void escrow_book_free(struct escrow_book *book)
{
    if (!book)
        return;
    for (size_t i = 0; i < book->escrow_count; i++)
        free(book->escrows[i]);
    free(book->escrows);
    free(book->entries);
    free(book->events);
    free(book);
}

/* ---- finding ---- */

static size_t entry_place(const struct escrow_book *book, struct address address, bool *found)
{
    size_t low = 0, high = book->entry_count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = address_compare(book->entries[middle].address, address);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t escrow_place(const struct escrow_book *book, struct hash id, bool *found)
{
    size_t low = 0, high = book->escrow_count;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hash_compare(book->escrows[middle]->id, id);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The account to change, made when new; valid until the next call. */
static struct ledger_account *account_of(struct escrow_book *book, struct address address)
{
    bool found;
    size_t place = entry_place(book, address, &found);

    book->root_known = false;
    if (found)
        return &book->entries[place].account;
    book->entries = realloc(book->entries, (book->entry_count + 1) * sizeof *book->entries);
    if (!book->entries)
        abort();
    memmove(&book->entries[place + 1], &book->entries[place], (book->entry_count - place) * sizeof *book->entries);
    book->entries[place] = (struct entry){ .address = address };
    book->entry_count++;
    return &book->entries[place].account;
}

struct ledger_account escrow_book_account(const struct escrow_book *book, struct address address)
{
    bool found;
    size_t place = entry_place(book, address, &found);

    return found ? book->entries[place].account : (struct ledger_account){ 0 };
}

static struct ledger_escrow *find(const struct escrow_book *book, struct hash id)
{
    bool found;
    size_t place = escrow_place(book, id, &found);

    return found ? book->escrows[place] : NULL;
}

const struct ledger_escrow *escrow_book_find(const struct escrow_book *book, struct hash id)
{
    return find(book, id);
}

static void escrow_add(struct escrow_book *book, const struct ledger_escrow *escrow)
{
    bool found;
    size_t place = escrow_place(book, escrow->id, &found);
    struct ledger_escrow *copy = malloc(sizeof *copy);

    assert(!found);
    book->escrows = realloc(book->escrows, (book->escrow_count + 1) * sizeof *book->escrows);
    if (!copy || !book->escrows)
        abort();
    *copy = *escrow;
    memmove(&book->escrows[place + 1], &book->escrows[place], (book->escrow_count - place) * sizeof *book->escrows);
    book->escrows[place] = copy;
    book->escrow_count++;
    book->root_known = false;
}

/* ---- events ---- */

static void event_add(struct escrow_book *book, uint64_t height, struct ledger_event event)
{
    const struct ledger_event *last = book->event_count ? &book->events[book->event_count - 1] : NULL;

    if (book->event_count == book->event_capacity) {
        book->event_capacity = book->event_capacity ? book->event_capacity * 2 : 64;
        book->events = realloc(book->events, book->event_capacity * sizeof *book->events);
        if (!book->events)
            abort();
        last = book->event_count ? &book->events[book->event_count - 1] : NULL;
    }
    event.height = height;
    event.index = last && last->height == height ? last->index + 1 : 0;
    book->events[book->event_count++] = event;
}

static struct ledger_event event_of(const struct ledger_escrow *e, enum ledger_event_kind kind, struct address account,
                                    unsigned __int128 amount)
{
    return (struct ledger_event){
        .kind = kind, .round = e->round, .id = e->id, .ref = e->ref, .run = e->run, .account = account, .amount = amount
    };
}

size_t escrow_book_event_count(const struct escrow_book *book)
{
    return book->event_count;
}

const struct ledger_event *escrow_book_event(const struct escrow_book *book, size_t index)
{
    return &book->events[index];
}

/* ---- create ---- */

static bool panel_sound(const struct escrow_book *book, const struct transaction_create *c, struct error *err)
{
    const uint32_t most = book->wide ? LEDGER_ROOM : LEDGER_PANEL;

    if (c->panel_count < 1 || c->panel_count > most)
        return error_set(err, ERROR_RANGE, NULL, "a panel has 1 to %u members", most);
    if (address_is_zero(c->panel[0]))
        return error_set(err, ERROR_RANGE, NULL, "the zero address cannot be a panel member");
    for (uint32_t i = 1; i < c->panel_count; i++)
        if (address_compare(c->panel[i - 1], c->panel[i]) >= 0)
            return error_set(err, ERROR_RANGE, "sort them and give each once", "panel member %u is not above the one before", i);
    if (c->threshold < 1 || c->threshold > c->panel_count)
        return error_set(err, ERROR_RANGE, NULL, "threshold %u with a panel of %u", c->threshold, c->panel_count);
    return true;
}

static bool create(struct escrow_book *book, const struct transaction *t, uint64_t height, uint64_t now, struct error *err)
{
    const struct transaction_create *c = &t->create;
    struct hash ref = release_round_ref(c->run, c->round), id = ledger_escrow_id(&book->domain, t->from, ref);

    if (!panel_sound(book, c, err))
        return false;
    if (c->amount == 0)
        return error_set(err, ERROR_RANGE, NULL, "an escrow of nothing");
    if (c->expiry <= now || c->expiry - now > ESCROW_EXPIRY_MAX)
        return error_set(err, ERROR_RANGE, "it must lie ahead, at most 400 days", "expiry %llu at time %llu",
                         (unsigned long long)c->expiry, (unsigned long long)now);
    if (find(book, id))
        return error_set(err, ERROR_DUPLICATE, NULL, "this account has an escrow for this round already");
    if (escrow_book_account(book, t->from).balance < c->amount)
        return error_set(err, ERROR_REFUSED, "fund the account first", "the balance is below the amount");

    struct ledger_escrow e = { .id = id,
                               .ref = ref,
                               .run = c->run,
                               .round = c->round,
                               .sponsor = t->from,
                               .amount = c->amount,
                               .panel_count = c->panel_count,
                               .threshold = c->threshold,
                               .expiry = c->expiry,
                               .created = height,
                               .status = LEDGER_FUNDED };

    memcpy(e.panel, c->panel, c->panel_count * sizeof *c->panel);
    account_of(book, t->from)->balance -= c->amount;
    escrow_add(book, &e);
    event_add(book, height, event_of(&e, LEDGER_EVENT_CREATED, t->from, c->amount));
    return true;
}

/* ---- release ---- */

static const struct address *payees_of(const struct transaction_release *r)
{
    return r->many ? r->many->payees : r->payees;
}

static const unsigned __int128 *amounts_of(const struct transaction_release *r)
{
    return r->many ? r->many->amounts : r->amounts;
}

static bool payees_sound(const struct escrow_book *book, const struct ledger_escrow *e, const struct transaction_release *r,
                         unsigned __int128 *total, struct error *err)
{
    const struct address *payees = payees_of(r);

    *total = 0;
    for (uint32_t i = 0; i < r->payee_count; i++) {
        if (address_is_zero(payees[i]) || address_equal(payees[i], book->domain.contract))
            return error_set(err, ERROR_RANGE, NULL, "payee %u is the zero address or the ledger itself", i);
        for (uint32_t j = 0; j < i; j++)
            if (address_equal(payees[i], payees[j]))
                return error_set(err, ERROR_DUPLICATE, NULL, "payee %u is payee %u once more", i, j);
        if (__builtin_add_overflow(*total, amounts_of(r)[i], total) || *total > e->amount)
            return error_set(err, ERROR_RANGE, NULL, "the amounts add up to more than the escrow holds");
    }
    return true;
}

static bool on_panel(const struct ledger_escrow *e, struct address signer)
{
    for (uint32_t i = 0; i < e->panel_count; i++)
        if (address_equal(e->panel[i], signer))
            return true;
    return false;
}

/* Signers strictly ascending: no one counts twice. */
static bool signatures_suffice(const struct ledger_escrow *e, const struct transaction_release *r, struct hash digest,
                               struct error *err)
{
    const struct account_signature *signatures = r->many ? r->many->signatures : r->signatures;
    struct address last = { { 0 } }, signer;

    if (r->signature_count < e->threshold)
        return error_set(err, ERROR_SIGNATURE, NULL, "%u signatures, %u are needed", r->signature_count, e->threshold);
    for (uint32_t i = 0; i < r->signature_count; i++) {
        if (!account_recover(&signatures[i], digest, &signer))
            return error_set(err, ERROR_SIGNATURE, NULL, "signature %u is not valid", i);
        if (!on_panel(e, signer))
            return error_set(err, ERROR_SIGNATURE, NULL, "signature %u is not of a panel member over this release", i);
        if (address_compare(last, signer) >= 0)
            return error_set(err, ERROR_SIGNATURE, "sort them by address and give each once", "signature %u is out of order", i);
        last = signer;
    }
    return true;
}

static bool release_open(const struct ledger_escrow *e, const struct transaction_release *r, uint64_t now, struct error *err)
{
    if (e->status == LEDGER_REFUNDED)
        return error_set(err, ERROR_REFUSED, NULL, "the escrow was refunded");
    if (now >= e->expiry)
        return error_set(err, ERROR_REFUSED, NULL, "the escrow expired at %llu", (unsigned long long)e->expiry);
    if (now > r->deadline)
        return error_set(err, ERROR_REFUSED, NULL, "the deadline of the signatures passed at %llu",
                         (unsigned long long)r->deadline);
    return true;
}

static void pay(struct escrow_book *book, struct ledger_escrow *e, const struct transaction_release *r, unsigned __int128 total,
                struct hash payout, uint64_t height)
{
    struct ledger_event released = event_of(e, LEDGER_EVENT_RELEASED, e->sponsor, total);

    e->status = LEDGER_RELEASED;
    e->released = total;
    e->record = released.record = r->record;
    e->payout = released.payout = payout;
    event_add(book, height, released);
    for (uint32_t i = 0; i < r->payee_count; i++) {
        account_of(book, payees_of(r)[i])->credit += amounts_of(r)[i];
        event_add(book, height, event_of(e, LEDGER_EVENT_PAID, payees_of(r)[i], amounts_of(r)[i]));
    }
}

static bool release(struct escrow_book *book, const struct transaction *t, uint64_t height, uint64_t now, struct error *err)
{
    const struct transaction_release *r = &t->release;
    struct ledger_escrow *e = find(book, r->id);
    unsigned __int128 total;
    struct hash digest, payout;

    if (!e)
        return error_set(err, ERROR_MISSING, NULL, "there is no such escrow");
    if (r->many && !book->wide)
        return error_set(err, ERROR_LIMIT, NULL, "a release has at most %d payees", LEDGER_PAYEES);
    payout = release_payout_root(payees_of(r), amounts_of(r), r->payee_count);
    if (e->status == LEDGER_RELEASED) {
        if (hash_equal(e->record, r->record) && hash_equal(e->payout, payout))
            return true;
        return error_set(err, ERROR_CONFLICT, NULL, "the escrow was released for another record or payout");
    }
    if (!release_open(e, r, now, err) || !payees_sound(book, e, r, &total, err) ||
        !transaction_release_digest(&book->domain, r, &digest, err) || !signatures_suffice(e, r, digest, err))
        return false;
    pay(book, e, r, total, payout, height);
    return true;
}

/* ---- refund, withdraw ---- */

static bool refund(struct escrow_book *book, const struct transaction *t, uint64_t height, uint64_t now, struct error *err)
{
    struct ledger_escrow *e = find(book, t->refund);

    if (!e)
        return error_set(err, ERROR_MISSING, NULL, "there is no such escrow");
    if (now < e->expiry)
        return error_set(err, ERROR_REFUSED, "wait until then", "the escrow expires at %llu", (unsigned long long)e->expiry);
    if (e->refunded || e->released == e->amount)
        return error_set(err, ERROR_REFUSED, NULL, "nothing is left to refund");

    unsigned __int128 rest = e->amount - e->released;

    e->refunded = true;
    if (e->status == LEDGER_FUNDED)
        e->status = LEDGER_REFUNDED;
    account_of(book, e->sponsor)->credit += rest;
    event_add(book, height, event_of(e, LEDGER_EVENT_REFUNDED, e->sponsor, rest));
    return true;
}

static bool withdraw(struct escrow_book *book, const struct transaction *t, uint64_t height, struct error *err)
{
    struct ledger_account *account = account_of(book, t->from);
    unsigned __int128 amount = account->credit;

    if (amount == 0)
        return error_set(err, ERROR_REFUSED, NULL, "there is no credit to withdraw");
    account->credit = 0;
    account->balance += amount;
    event_add(book, height, (struct ledger_event){ .kind = LEDGER_EVENT_WITHDRAWN, .account = t->from, .amount = amount });
    return true;
}

/* ---- the whole ---- */

bool escrow_book_endow(struct escrow_book *book, struct address account, unsigned __int128 amount, struct error *err)
{
    if (__builtin_add_overflow(book->issued, amount, &book->issued)) {
        book->issued -= amount; /* undoes the wrapped sum */
        return error_set(err, ERROR_RANGE, NULL, "the allocations add up to more than 2^128");
    }
    account_of(book, account)->balance += amount;
    return true;
}

bool escrow_book_admits(const struct escrow_book *book, const struct transaction *t, uint64_t waiting, struct error *err)
{
    uint64_t next = escrow_book_account(book, t->from).nonce + waiting;

    if (t->nonce == next)
        return true;
    return error_set(err, ERROR_STALE, "ask for the account's nonce and sign again", "nonce %llu, the account's next is %llu",
                     (unsigned long long)t->nonce, (unsigned long long)next);
}

bool escrow_book_apply(struct escrow_book *book, const struct transaction *t, uint64_t height, uint64_t now, struct error *err)
{
    if (!escrow_book_admits(book, t, 0, err))
        return false;
    account_of(book, t->from)->nonce++;
    switch (t->method) {
    case TRANSACTION_CREATE:
        return create(book, t, height, now, err);
    case TRANSACTION_RELEASE:
        return release(book, t, height, now, err);
    case TRANSACTION_REFUND:
        return refund(book, t, height, now, err);
    default:
        return withdraw(book, t, height, err);
    }
}

bool escrow_book_conserves(const struct escrow_book *book)
{
    unsigned __int128 sum = 0;

    for (size_t i = 0; i < book->entry_count; i++)
        sum += book->entries[i].account.balance + book->entries[i].account.credit;
    for (size_t i = 0; i < book->escrow_count; i++)
        if (!book->escrows[i]->refunded)
            sum += book->escrows[i]->amount - book->escrows[i]->released;
    return sum == book->issued;
}

static void hash_amount(struct hasher *h, unsigned __int128 amount)
{
    hash_u64(h, (uint64_t)amount);
    hash_u64(h, (uint64_t)(amount >> 64));
}

static void hash_escrow(struct hasher *h, const struct ledger_escrow *e)
{
    hash_fixed(h, e->id.bytes, HASH_SIZE);
    hash_fixed(h, e->run.bytes, HASH_SIZE);
    hash_u64(h, e->round);
    hash_fixed(h, e->sponsor.bytes, ADDRESS_SIZE);
    hash_amount(h, e->amount);
    hash_amount(h, e->released);
    hash_u32(h, e->threshold);
    hash_u32(h, e->panel_count);
    hash_fixed(h, e->panel, e->panel_count * sizeof *e->panel);
    hash_u64(h, e->expiry);
    hash_u64(h, e->created);
    hash_u8(h, (uint8_t)e->status);
    hash_u8(h, e->refunded);
    hash_fixed(h, e->record.bytes, HASH_SIZE);
    hash_fixed(h, e->payout.bytes, HASH_SIZE);
}

struct hash escrow_book_root(struct escrow_book *book)
{
    struct hasher h;

    if (book->root_known)
        return book->root;
    hash_start(&h, "rondo/books");
    hash_u64(&h, book->entry_count);
    for (size_t i = 0; i < book->entry_count; i++) {
        const struct entry *e = &book->entries[i];

        hash_fixed(&h, e->address.bytes, ADDRESS_SIZE);
        hash_amount(&h, e->account.balance);
        hash_amount(&h, e->account.credit);
        hash_u64(&h, e->account.nonce);
    }
    hash_u64(&h, book->escrow_count);
    for (size_t i = 0; i < book->escrow_count; i++)
        hash_escrow(&h, book->escrows[i]);
    book->root = hash_end(&h);
    book->root_known = true;
    return book->root;
}
