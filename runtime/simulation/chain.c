#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/hex.h"
#include "runtime/ledger/escrow.h"
#include "runtime/round/deposit.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

static const char RUN[] = "bafk2bzasimulationofarun";

enum { STAKE = 101 };

/* A transaction on its way: in nobody's block (0), or in the block at `height`; applied to the books when that block is final. */
struct moving {
    struct transaction t; /* the nonce is the sender's next when it is applied */
    int64_t height;
    bool done;
    struct transaction_many many; /* its lists are owned */
};

/* Signatures of one release digest of one round. */
struct release_pool {
    int64_t round;
    struct hash digest;
    struct release release;
    json_t *payout;
    struct signer {
        struct address address;
        struct account_signature signature;
    } * signers;
    size_t count;
    bool submitted, paid;
};

/* Blocks follow from height and branch; a reorganisation gives those that are not final other branches. */
struct chain {
    struct escrow_book *book;
    struct release_domain domain;
    struct hash run;
    struct address sponsor, sender;
    int64_t height, funded;
    uint32_t *branch;
    size_t capacity;
    struct moving **moving;
    size_t count;
    struct release_pool *pools;
    size_t pool_count;
    unsigned __int128 paid;
};

static uint64_t seconds(const struct sim *s)
{
    return 1000 + (uint64_t)(s->now / 1000);
}

static void key_of(const char *name, struct account_key *key, struct address *address)
{
    struct hash seed = hash_typed("sim/account", name, strlen(name));
    if (!account_key_from_bytes(seed.bytes, key))
        abort();
    *address = account_address(key);
}

static int by_address(const void *a, const void *b)
{
    return address_compare(*(const struct address *)a, *(const struct address *)b);
}

static struct moving *add_moving(struct chain *c, enum transaction_method method, struct address from)
{
    struct moving *m = calloc(1, sizeof *m);
    c->moving = realloc(c->moving, (c->count + 1) * sizeof *c->moving);
    if (!m || !c->moving)
        abort();
    m->t.chain = c->domain.chain;
    m->t.method = method;
    m->t.from = from;
    c->moving[c->count++] = m;
    return m;
}

static uint64_t expiry_of(const struct chain *c, int64_t round)
{
    (void)c;
    return 1000 + (uint64_t)((round + EXPIRY_ROUNDS) * ROUND_MS / 1000);
}

static struct hash escrow_of(const struct chain *c, int64_t round)
{
    return ledger_escrow_id(&c->domain, c->sponsor, release_round_ref(c->run, (uint64_t)round));
}

/* Of a trainer. */
static struct hash deposit_of(const struct chain *c, const struct node *n)
{
    return ledger_escrow_id(&c->domain, n->address, release_round_ref(deposit_run(RUN, n->did), 0));
}

const char *chain_sponsor(const struct chain *c, char account[ADDRESS_TEXT])
{
    memcpy(account, "0x", 2);
    hex_encode(c->sponsor.bytes, ADDRESS_SIZE, account + 2);
    return account;
}

bool chain_deposit(const struct sim *s, const char *did)
{
    int i = sim_find(s, did);
    const struct ledger_escrow *e = i < 0 ? NULL : escrow_book_find(s->chain->book, deposit_of(s->chain, &s->nodes[i]));
    return e && e->status == LEDGER_FUNDED;
}

static void fund(struct sim *s, struct chain *c)
{
    struct address panel[LEDGER_ROOM];
    size_t size = (size_t)s->set->syncers;
    for (size_t i = 0; i < size; i++)
        panel[i] = s->nodes[i].address;
    qsort(panel, size, sizeof *panel, by_address);
    for (int64_t r = 1; r <= s->set->rounds; r++) {
        struct moving *m = add_moving(c, TRANSACTION_CREATE, c->sponsor);
        m->t.create = (struct transaction_create){ .run = c->run,
                                                   .round = (uint64_t)r,
                                                   .amount = (unsigned __int128)s->pay,
                                                   .panel_count = (uint32_t)size,
                                                   .threshold = (uint32_t)s->set->threshold,
                                                   .expiry = expiry_of(c, r) };
        memcpy(m->t.create.panel, panel, size * sizeof *panel);
    }
    for (int i = s->set->syncers; s->set->deposits && i < s->count; i++) {
        struct moving *m = add_moving(c, TRANSACTION_CREATE, s->nodes[i].address);
        m->t.create = (struct transaction_create){ .run = deposit_run(RUN, s->nodes[i].did),
                                                   .amount = STAKE,
                                                   .panel_count = (uint32_t)size,
                                                   .threshold = (uint32_t)s->set->threshold,
                                                   .expiry = expiry_of(c, s->set->rounds) };
        memcpy(m->t.create.panel, panel, size * sizeof *panel);
        escrow_book_endow(c->book, s->nodes[i].address, STAKE, NULL);
    }
}

struct chain *sim_chain_new(struct sim *s)
{
    struct chain *c = calloc(1, sizeof *c);
    struct account_key unused;
    if (!c)
        abort();
    c->domain = (struct release_domain){ .chain = 31337, .contract = { { 9 } } };
    c->book = escrow_book_new(&c->domain);
    if (s->count > LEDGER_PAYEES || s->set->syncers > LEDGER_PANEL)
        escrow_book_widen(c->book);
    c->run = hash_typed("sim/run", "run", 3);
    c->funded = -1;
    key_of("sponsor", &unused, &c->sponsor);
    key_of("sender", &unused, &c->sender);
    for (int i = 0; i < s->count; i++) {
        struct node *n = &s->nodes[i];
        key_of(n->did, &n->key, &n->address);
        memcpy(n->account, "0x", 2);
        hex_encode(n->address.bytes, ADDRESS_SIZE, n->account + 2);
    }
    escrow_book_endow(c->book, c->sponsor, (unsigned __int128)(s->set->rounds * s->pay), NULL);
    fund(s, c);
    return c;
}

void sim_chain_free(struct chain *c)
{
    if (!c)
        return;
    escrow_book_free(c->book);
    for (size_t i = 0; i < c->count; i++) {
        free((void *)(uintptr_t)c->moving[i]->many.payees);
        free((void *)(uintptr_t)c->moving[i]->many.amounts);
        free((void *)(uintptr_t)c->moving[i]->many.signatures);
        free(c->moving[i]);
    }
    for (size_t i = 0; i < c->pool_count; i++) {
        json_decref(c->pools[i].payout);
        free(c->pools[i].signers);
    }
    free(c->pools);
    free(c->moving);
    free(c->branch);
    free(c);
}

int64_t chain_final(const struct chain *c)
{
    return c->height > FINALITY ? c->height - FINALITY : 0;
}

bool chain_funded(const struct chain *c, int64_t *time)
{
    *time = c->funded;
    return c->funded >= 0;
}

json_t *chain_block(const struct sim *s, int64_t height)
{
    const struct chain *c = s->chain;
    char hex[HASH_TEXT];
    struct hasher h;
    if (height < 1 || height > chain_final(c))
        return NULL;
    hash_start(&h, "sim/entropy");
    hash_u64(&h, s->set->seed);
    hash_u64(&h, (uint64_t)height);
    hash_u64(&h, c->branch[height]);
    hash_hex(hash_end(&h), hex);
    return json_pack("{sIssss}", "height", (json_int_t)height, "hash", hex, "entropy", hex);
}

/* ---- what a final block does ------------------------------------------------------------------------------------------ */

static struct release_pool *pool_of_release(struct chain *c, const struct transaction *t)
{
    for (size_t i = 0; i < c->pool_count; i++)
        if (t->method == TRANSACTION_RELEASE && hash_equal(c->pools[i].release.escrow, t->release.id) &&
            hash_equal(c->pools[i].release.record, t->release.record) && c->pools[i].submitted)
            return &c->pools[i];
    return NULL;
}

static void apply(struct sim *s, struct chain *c, struct moving *m)
{
    struct error err = { 0 };
    struct release_pool *pool = pool_of_release(c, &m->t);
    m->t.nonce = escrow_book_account(c->book, m->t.from).nonce;
    m->done = true;
    if (!escrow_book_apply(c->book, &m->t, (uint64_t)m->height, seconds(s), &err)) {
        sim_fail(s, MONEY, "the ledger refused %s: %s", transaction_method_name(m->t.method), err.message);
    } else if (pool && !pool->paid) {
        pool->paid = true;
        if (pool->round < DEPOSIT_FIRST)
            c->paid += pool->release.total;
        sim_tell(s, 1, "ledger", "round %lld released", (long long)pool->round);
    }
    if (!escrow_book_conserves(c->book))
        sim_fail(s, MONEY, "the ledger's money is not conserved");
}

static void apply_final(struct sim *s, struct chain *c)
{
    bool all = true;
    int64_t last = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct moving *m = c->moving[i];
        if (!m->done && m->height && m->height <= chain_final(c))
            apply(s, c, m);
        if (m->t.method == TRANSACTION_CREATE) {
            all = all && m->done;
            last = m->height > last ? m->height : last;
        }
    }
    if (!all || c->funded >= 0)
        return;
    c->funded = (int64_t)seconds(s);
    for (int i = 0; i < s->count; i++)
        if (s->nodes[i].alive)
            sim_later(s, i, 1 + sim_below(s, 100), EVENT_FUNDED, json_pack("{sI}", "time", (json_int_t)c->funded));
}

static void answer_waiting(struct sim *s)
{
    for (size_t i = json_array_size(s->waiting); i-- > 0;) {
        const json_t *one = json_array_get(s->waiting, i);
        int node = (int)value_integer(one, "node");
        int64_t height = value_integer(one, "height");
        if (height > chain_final(s->chain))
            continue;
        if (s->nodes[node].life == (int)value_integer(one, "life"))
            sim_later(s, node, 1 + sim_below(s, 150), EVENT_BLOCK, chain_block(s, height));
        json_array_remove(s->waiting, i);
    }
}

/* Deposits that enrolments of round 0 wait for. */
static void answer_unlocked(struct sim *s)
{
    for (size_t i = json_array_size(s->unlocked); i-- > 0;) {
        const json_t *one = json_array_get(s->unlocked, i), *body = json_object_get(one, "body");
        int node = (int)value_integer(one, "node");
        if (!chain_deposit(s, value_text(body, "did")))
            continue;
        if (s->nodes[node].life == (int)value_integer(one, "life"))
            sim_later(s, node, 1 + sim_below(s, 150), EVENT_CHECKED,
                      json_pack("{sOss}", "cid", json_object_get(body, "cid"), "code", "ok"));
        json_array_remove(s->unlocked, i);
    }
}

static void make_block(struct chain *c)
{
    c->height++;
    if ((size_t)c->height >= c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 256;
        c->branch = realloc(c->branch, c->capacity * sizeof *c->branch);
        if (!c->branch)
            abort();
    }
    c->branch[c->height] = 0;
    for (size_t i = 0; i < c->count; i++)
        if (!c->moving[i]->height)
            c->moving[i]->height = c->height;
}

void chain_tick(struct sim *s)
{
    struct chain *c = s->chain;
    make_block(c);
    apply_final(s, c);
    answer_waiting(s);
    answer_unlocked(s);
    for (int i = 0; i < s->set->syncers; i++) {
        if (s->nodes[i].alive)
            sim_later(s, i, 1 + sim_below(s, 100), EVENT_HEAD,
                      json_pack("{sIsI}", "height", (json_int_t)chain_final(c), "time", (json_int_t)(s->now / 1000)));
    }
}

void chain_reorg(struct sim *s)
{
    struct chain *c = s->chain;
    int64_t depth = 1 + sim_below(s, FINALITY);
    for (int64_t h = c->height; h > c->height - depth && h > 0; h--)
        c->branch[h]++;
    for (size_t i = 0; i < c->count; i++) /* back among those that wait, but for some that the new branch has too */
        if (!c->moving[i]->done && c->moving[i]->height > c->height - depth && sim_below(s, 4))
            c->moving[i]->height = 0;
}

/* ---- releases ----------------------------------------------------------------------------------------------------------- */

static struct release_pool *pool_of(struct chain *c, int64_t round, const struct release *release, struct hash digest,
                                    json_t *payout)
{
    for (size_t i = 0; i < c->pool_count; i++)
        if (hash_equal(c->pools[i].digest, digest))
            return &c->pools[i];
    c->pools = realloc(c->pools, (c->pool_count + 1) * sizeof *c->pools);
    if (!c->pools)
        abort();
    struct release_pool *pool = &c->pools[c->pool_count++];
    *pool = (struct release_pool){ .round = round, .digest = digest, .release = *release, .payout = json_incref(payout) };
    return pool;
}

static int by_signer(const void *a, const void *b)
{
    const struct signer *left = a, *right = b;
    return address_compare(left->address, right->address);
}

/* Room for the lists of a release to everybody. */
static void widen(const struct sim *s, struct moving *m, struct address **payees, unsigned __int128 **amounts,
                  struct account_signature **signatures)
{
    *payees = calloc((size_t)s->count, sizeof **payees);
    *amounts = calloc((size_t)s->count, sizeof **amounts);
    *signatures = calloc((size_t)s->count, sizeof **signatures);
    if (!*payees || !*amounts || !*signatures)
        abort();
    m->many = (struct transaction_many){ *payees, *amounts, *signatures };
    m->t.release.many = &m->many;
}

static void submit(struct sim *s, struct chain *c, struct release_pool *pool)
{
    struct moving *m = add_moving(c, TRANSACTION_RELEASE, c->sender);
    struct transaction_release *r = &m->t.release;
    json_t *payee;
    size_t i;
    *r = (struct transaction_release){ .id = pool->release.escrow,
                                       .record = pool->release.record,
                                       .deadline = pool->release.deadline };
    struct address *payees = r->payees;
    unsigned __int128 *amounts = r->amounts;
    struct account_signature *signatures = r->signatures;
    if (json_array_size(json_object_get(pool->payout, "payees")) > LEDGER_PAYEES || s->set->threshold > LEDGER_PANEL)
        widen(s, m, &payees, &amounts, &signatures);
    json_array_foreach(json_object_get(pool->payout, "payees"), i, payee)
    {
        address_parse(value_text(payee, "account"), &payees[i]);
        amounts[r->payee_count++] = payout_parse(value_text(payee, "amount"));
    }
    qsort(pool->signers, pool->count, sizeof *pool->signers, by_signer);
    for (i = 0; i < (size_t)s->set->threshold; i++)
        signatures[r->signature_count++] = pool->signers[i].signature;
    pool->submitted = true;
}

static json_t *paying_itself(const struct sim *s, const struct node *n, const json_t *payout)
{
    json_t *other = json_deep_copy(payout);
    unsigned __int128 amount = (unsigned __int128)s->pay;
    char root[HASH_TEXT + 2] = "0x", text[40];
    hash_hex(release_payout_root(&n->address, &amount, 1), root + 2);
    json_object_set_new(other, "payees", json_pack("[{ssss}]", "account", n->account, "amount", payout_text(amount, text)));
    json_object_set_new(other, "total", json_string(text));
    json_object_set_new(other, "root", json_string(root));
    return other;
}

void chain_release(struct sim *s, int i, const json_t *body)
{
    struct chain *c = s->chain;
    struct node *n = &s->nodes[i];
    int64_t round = value_integer(body, "round");
    const json_t *deposit = json_object_get(body, "deposit");
    int owner = sim_find(s, value_text(deposit, "did"));
    struct release release = { .escrow = deposit ? deposit_of(c, &s->nodes[owner < 0 ? 0 : owner]) : escrow_of(c, round),
                               .deadline = expiry_of(c, deposit ? s->set->rounds : round) };
    json_t *payout = json_object_get(body, "payout");
    if (deposit && (owner < 0 || strcmp(value_text(deposit, "account"), s->nodes[owner].account)))
        sim_fail(s, MONEY, "the deposit of a stranger is released: %s", value_text(deposit, "did"));
    if (!json_array_size(json_object_get(payout, "payees")))
        return; /* nobody earned anything: the escrow goes back at expiry */
    payout = n->lie == LIE_ROOTS ? paying_itself(s, n, payout) : json_incref(payout);
    release.total = payout_parse(value_text(payout, "total"));
    if (!cid_parse(value_text(body, "record"), &release.record, NULL) ||
        !hash_parse(value_text(payout, "root") + 2, &release.payout_root))
        sim_fail(s, MONEY, "round %lld: a release without a record or a root", (long long)round);
    struct hash digest = release_digest(&c->domain, &release);
    struct release_pool *pool = pool_of(c, round, &release, digest, payout);
    json_decref(payout);
    for (size_t k = 0; k < pool->count; k++)
        if (address_equal(pool->signers[k].address, n->address))
            return; /* again after a restart */
    pool->signers = realloc(pool->signers, (pool->count + 1) * sizeof *pool->signers);
    if (!pool->signers)
        abort();
    pool->signers[pool->count++] = (struct signer){ n->address, account_sign(&n->key, digest) };
    if (pool->count >= (size_t)s->set->threshold && !pool->submitted)
        submit(s, c, pool);
}

/* ---- the end ------------------------------------------------------------------------------------------------------------ */

/* Every round that a record settles and that pays anybody is paid. */
bool chain_quiet(const struct sim *s)
{
    const struct chain *c = s->chain;
    size_t r, k;
    json_t *each, *payout;
    json_array_foreach(s->finals, r, each)
    {
        json_array_foreach(json_object_get(json_object_get(each, "record"), "settled"), k, payout)
        {
            bool paid = !json_array_size(json_object_get(payout, "payees"));
            for (size_t i = 0; i < c->pool_count; i++)
                paid |= c->pools[i].paid && c->pools[i].round == value_integer(payout, "round");
            if (!paid)
                return false;
        }
        json_array_foreach(json_object_get(json_object_get(each, "record"), "returned"), k, payout)
        {
            bool paid = false;
            for (size_t i = 0; i < c->pool_count; i++)
                paid |= c->pools[i].paid && c->pools[i].round == deposit_number((int64_t)r, k);
            if (!paid)
                return false;
        }
    }
    return true;
}

/* Whether some record gave the trainer's deposit to somebody. */
static bool is_returned(const struct sim *s, const struct node *n)
{
    size_t r;
    json_t *each;
    json_array_foreach(s->finals, r, each)
    {
        if (value_find(json_object_get(json_object_get(each, "record"), "returned"), "did", n->did))
            return true;
    }
    return false;
}

static bool refund_deposit(struct chain *c, const struct node *n, uint64_t now)
{
    struct transaction t = { .chain = c->domain.chain, .method = TRANSACTION_REFUND, .from = c->sender };
    t.refund = deposit_of(c, n);
    t.nonce = escrow_book_account(c->book, c->sender).nonce;
    return escrow_book_apply(c->book, &t, (uint64_t)c->height, now, NULL);
}

/* What the records pay, of rounds and of deposits: one line a payee, by account. */
struct lines {
    struct line {
        const char *account; /* borrowed from the records */
        unsigned __int128 amount;
    } * list;
    size_t count, capacity;
};

static int by_account(const void *a, const void *b)
{
    return strcasecmp(((const struct line *)a)->account, ((const struct line *)b)->account);
}

static void add_payees(struct lines *lines, const json_t *payout)
{
    json_t *payees = json_object_get(payout, "payees"), *payee;
    size_t i;
    if (lines->count + json_array_size(payees) > lines->capacity) {
        lines->capacity = 2 * (lines->count + json_array_size(payees));
        lines->list = realloc(lines->list, lines->capacity * sizeof *lines->list);
        if (!lines->list)
            abort();
    }
    json_array_foreach(payees, i, payee) lines->list[lines->count++] =
        (struct line){ value_text(payee, "account"), payout_parse(value_text(payee, "amount")) };
}

static struct lines paid_by_records(const struct sim *s)
{
    static const char *const names[] = { "settled", "returned" };
    struct lines lines = { 0 };
    size_t r, k;
    json_t *each, *payout;
    json_array_foreach(s->finals, r, each) for (size_t l = 0; l < 2; l++)
        json_array_foreach(json_object_get(json_object_get(each, "record"), names[l]), k, payout) add_payees(&lines, payout);
    if (lines.count)
        qsort(lines.list, lines.count, sizeof *lines.list, by_account);
    return lines;
}

static unsigned __int128 owed_to(const struct lines *lines, const char *account)
{
    unsigned __int128 owed = 0;
    size_t low = 0, high = lines->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcasecmp(lines->list[middle].account, account) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < lines->count && !strcasecmp(lines->list[low].account, account); low++)
        owed += lines->list[low].amount;
    return owed;
}

static bool refund(struct chain *c, int64_t round, uint64_t now)
{
    struct transaction t = { .chain = c->domain.chain, .method = TRANSACTION_REFUND, .from = c->sponsor };
    t.refund = escrow_of(c, round);
    t.nonce = escrow_book_account(c->book, c->sponsor).nonce;
    return escrow_book_apply(c->book, &t, (uint64_t)c->height, now, NULL);
}

/* What the ledger owes an account is what the records' payouts say. */
static void check_credit(struct sim *s, struct chain *c, const struct node *n, const struct lines *lines)
{
    const char *account = n->account;
    const bool locks = s->set->deposits && !n->syncer;
    unsigned __int128 owed = owed_to(lines, account) + (locks && !is_returned(s, n) ? STAKE : 0);
    struct ledger_account held = escrow_book_account(c->book, n->address);
    if (held.credit + held.balance != owed)
        sim_fail(s, MONEY, "%s holds %lld, the records say %lld", account, (long long)(held.credit + held.balance),
                 (long long)owed);
}

void chain_end(struct sim *s)
{
    struct chain *c = s->chain;
    for (int64_t r = 1; r <= s->set->rounds; r++) {
        if (refund(c, r, expiry_of(c, r) - 1))
            sim_fail(s, MONEY, "round %lld: refunded before its expiry", (long long)r);
        refund(c, r, expiry_of(c, r));
    }
    for (int i = s->set->syncers; s->set->deposits && i < s->count; i++) {
        const bool returned = is_returned(s, &s->nodes[i]);
        if (refund_deposit(c, &s->nodes[i], expiry_of(c, s->set->rounds) - 1))
            sim_fail(s, MONEY, "%s: its deposit went back before the run's end", s->nodes[i].did);
        if (refund_deposit(c, &s->nodes[i], expiry_of(c, s->set->rounds)) == returned)
            sim_fail(s, MONEY, "%s: its deposit was %s", s->nodes[i].did, returned ? "given twice" : "lost");
    }
    struct lines lines = paid_by_records(s);
    for (int i = 0; i < s->count; i++)
        check_credit(s, c, &s->nodes[i], &lines);
    char account[ADDRESS_TEXT];
    chain_sponsor(c, account);
    if (escrow_book_account(c->book, c->sponsor).credit + c->paid !=
        (unsigned __int128)(s->set->rounds * s->pay) + owed_to(&lines, account))
        sim_fail(s, MONEY, "what was paid and what went back is not the budget");
    free(lines.list);
    if (!escrow_book_conserves(c->book))
        sim_fail(s, MONEY, "the ledger's money is not conserved");
}
