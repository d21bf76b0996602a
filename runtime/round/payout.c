#include "runtime/round/payout.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/crypto/release.h"
#include "runtime/round/value.h"

unsigned __int128 payout_parse(const char *text)
{
    unsigned __int128 value = 0;
    for (; *text; text++)
        value = value * 10 + (unsigned)(*text - '0');
    return value;
}

const char *payout_text(unsigned __int128 amount, char text[40])
{
    char digits[40];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + (int)(amount % 10));
    while (amount /= 10);
    for (size_t i = 0; i < count; i++)
        text[i] = digits[count - 1 - i];
    text[count] = 0;
    return text;
}

unsigned __int128 payout_share(const char *amount, int64_t units)
{
    return payout_parse(amount) * (unsigned __int128)units / RULES_UNIT;
}

static bool is_removed(const json_t *convicted, const char *did, int64_t round)
{
    const json_t *entry = value_find(convicted, "did", did);
    return entry && value_integer(entry, "round") <= round;
}

/* Splits `pool` over the earners ({ did, account, weight }, ascending DID) and appends what each gets to `paid`. */
static void split(json_t *paid, const json_t *earners, const char *role, unsigned __int128 pool)
{
    unsigned __int128 weights = 0, given = 0;
    size_t i, count = json_array_size(earners);
    json_t *earner;
    json_array_foreach((json_t *)earners, i, earner) weights += (unsigned __int128)value_integer(earner, "weight");
    json_array_foreach((json_t *)earners, i, earner) given += pool * (unsigned __int128)value_integer(earner, "weight") / weights;
    for (i = 0; i < count; i++) {
        earner = json_array_get(earners, i);
        unsigned __int128 amount = pool * (unsigned __int128)value_integer(earner, "weight") / weights + (i < pool - given);
        char text[40];
        json_array_append_new(paid, json_pack("{sOsssOss}", "did", json_object_get(earner, "did"), "role", role, "account",
                                              json_object_get(earner, "account"), "amount", payout_text(amount, text)));
    }
}

static json_t *earners_of(const json_t *list, const json_t *convicted, int64_t round, bool even)
{
    json_t *earners = json_array();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)list, i, item)
    {
        if (json_object_get(item, "code")) /* its group did not agree */
            continue;
        if (!is_removed(convicted, value_text(item, "did"), round))
            json_array_append_new(earners, json_pack("{sOsOsI}", "did", json_object_get(item, "did"), "account",
                                                     json_object_get(item, "account"), "weight",
                                                     even ? (json_int_t)1 : (json_int_t)value_integer(item, "weight")));
    }
    value_sort(earners, "did");
    return earners;
}

/* One line an account, ascending by the lower-case text of its address. */
static json_t *payees_of(const json_t *paid)
{
    json_t *payees = json_array(), *known = json_object(); /* account -> its line */
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)paid, i, line)
    {
        char account[64], text[40];
        const char *from = value_text(line, "account");
        size_t k = 0;
        for (; from[k] && k < sizeof account - 1; k++)
            account[k] = (char)(from[k] >= 'A' && from[k] <= 'F' ? from[k] + 32 : from[k]);
        account[k] = 0;
        unsigned __int128 amount = payout_parse(value_text(line, "amount"));
        json_t *payee = json_object_get(known, account);
        if (!amount)
            continue;
        if (payee) {
            json_object_set_new(payee, "amount",
                                json_string(payout_text(payout_parse(value_text(payee, "amount")) + amount, text)));
        } else {
            payee = json_pack("{ssss}", "account", account, "amount", payout_text(amount, text));
            json_object_set(known, account, payee);
            json_array_append_new(payees, payee);
        }
    }
    json_decref(known);
    value_sort(payees, "account");
    return payees;
}

static void set_root(json_t *payout, const json_t *payees)
{
    size_t count = json_array_size(payees), i;
    struct address *accounts = calloc(count + 1, sizeof *accounts);
    unsigned __int128 *amounts = calloc(count + 1, sizeof *amounts), total = 0;
    json_t *payee;
    char root[HASH_TEXT + 2] = "0x", text[40];
    if (!accounts || !amounts)
        abort();
    json_array_foreach((json_t *)payees, i, payee)
    {
        address_parse(value_text(payee, "account"), &accounts[i]);
        amounts[i] = payout_parse(value_text(payee, "amount"));
        total += amounts[i];
    }
    hash_hex(release_payout_root(accounts, amounts, count), root + 2);
    json_object_set_new(payout, "root", json_string(root));
    json_object_set_new(payout, "total", json_string(payout_text(total, text)));
    free(accounts);
    free(amounts);
}

json_t *payout_of(const struct rules *rules, const json_t *entry, const json_t *convicted)
{
    int64_t round = value_integer(entry, "round");
    json_t *paid = json_array();
    if (value_is(entry, "kind", "train")) {
        json_t *trainers = earners_of(json_object_get(entry, "contributions"), convicted, round, false);
        json_t *syncers = earners_of(json_object_get(entry, "syncers"), convicted, round, true);
        split(paid, trainers, "trainer", payout_share(rules->per_round, rules->share_trainers));
        split(paid, syncers, "syncer", payout_share(rules->per_round, rules->share_syncers));
        json_decref(trainers);
        json_decref(syncers);
        value_sort(paid, "did");
    }
    json_t *payees = payees_of(paid);
    json_t *payout = json_pack("{sIsoso}", "round", (json_int_t)round, "paid", paid, "payees", payees);
    set_root(payout, payees);
    return payout;
}

json_t *payout_line(const char *did, const char *cause, const char *account, json_t *paid)
{
    json_t *payees = payees_of(paid);
    json_t *payout = json_pack("{sssssssoso}", "did", did, "cause", cause, "account", account, "paid", paid, "payees", payees);
    set_root(payout, payees);
    return payout;
}
