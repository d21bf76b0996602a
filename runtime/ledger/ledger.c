#include "runtime/ledger/ledger.h"

#include <string.h>

#include "runtime/crypto/keccak.h"

void ledger_status(struct ledger *ledger, struct ledger_then then)
{
    ledger->methods->status(ledger, then);
}

void ledger_next(struct ledger *ledger, uint64_t above, struct ledger_then then)
{
    ledger->methods->next(ledger, above, then);
}

void ledger_block(struct ledger *ledger, uint64_t height, struct ledger_then then)
{
    ledger->methods->block(ledger, height, false, then);
}

void ledger_await_block(struct ledger *ledger, uint64_t height, struct ledger_then then)
{
    ledger->methods->block(ledger, height, true, then);
}

void ledger_escrow(struct ledger *ledger, struct address sponsor, struct hash ref, struct ledger_then then)
{
    ledger->methods->escrow(ledger, sponsor, ref, then);
}

void ledger_account(struct ledger *ledger, struct address address, struct ledger_then then)
{
    ledger->methods->account(ledger, address, then);
}

void ledger_events(struct ledger *ledger, const struct hash *run, uint64_t from, uint64_t to, struct ledger_then then)
{
    ledger->methods->events(ledger, run, from, to, then);
}

void ledger_submit(struct ledger *ledger, const void *bytes, size_t size, struct ledger_then then)
{
    ledger->methods->submit(ledger, bytes, size, then);
}

void ledger_receipt(struct ledger *ledger, struct hash id, struct ledger_then then)
{
    ledger->methods->receipt(ledger, id, then);
}

void ledger_free(struct ledger *ledger)
{
    if (ledger)
        ledger->methods->free(ledger);
}

/* ABI words are 32 bytes, numbers big-endian and addresses at the right. */
static void word_number(uint8_t word[32], uint64_t value)
{
    memset(word, 0, 32);
    for (int i = 0; i < 8; i++)
        word[31 - i] = (uint8_t)(value >> (8 * i));
}

static void word_address(uint8_t word[32], struct address address)
{
    memset(word, 0, 12);
    memcpy(word + 12, address.bytes, ADDRESS_SIZE);
}

struct hash ledger_escrow_id(const struct release_domain *domain, struct address sponsor, struct hash ref)
{
    uint8_t words[5][32] = { { 0 } };

    word_number(words[0], domain->chain);
    word_address(words[1], domain->contract);
    word_address(words[2], sponsor);
    memcpy(words[3], ref.bytes, 32);
    return keccak256(words, sizeof words);
}

struct release_domain ledger_domain(const struct ledger_status *status)
{
    return (struct release_domain){ .chain = status->chain, .contract = status->contract };
}

const char *ledger_event_name(enum ledger_event_kind kind)
{
    static const char *const names[] = {
        [LEDGER_EVENT_CREATED] = "created",   [LEDGER_EVENT_RELEASED] = "released",   [LEDGER_EVENT_PAID] = "paid",
        [LEDGER_EVENT_REFUNDED] = "refunded", [LEDGER_EVENT_WITHDRAWN] = "withdrawn",
    };

    return names[kind];
}
