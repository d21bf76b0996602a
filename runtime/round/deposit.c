#include "runtime/round/deposit.h"

#include <string.h>

#include "runtime/round/payout.h"
#include "runtime/round/value.h"

enum { CHALLENGERS = 32 };

const char *deposit_due(const struct rules *rules, const char *did, const char *role)
{
    if (!strcmp(role, "trainer"))
        return rules->stake;
    return !strcmp(role, "auditor") && !value_lists(rules->allowed, did) ? rules->deposit : NULL;
}

struct hash deposit_run(const char *run, const char *did)
{
    struct hasher h;
    hash_start(&h, "rondo/deposit");
    hash_part(&h, run, strlen(run));
    hash_part(&h, did, strlen(did));
    return hash_end(&h);
}

static void give(json_t *paid, const char *did, const char *account, unsigned __int128 amount)
{
    char text[40];
    if (amount)
        json_array_append_new(paid, json_pack("{ssssssss}", "did", did, "role", "deposit", "account", account, "amount",
                                              payout_text(amount, text)));
}

static const char *sponsor_account(const struct rules *rules)
{
    return value_text(rules->spec, "account");
}

/* Half to the challengers of this conviction, if there are any, the rest to the sponsor. */
static json_t *of_convicted(const struct deposits_input *in, const char *did, unsigned __int128 amount)
{
    json_t *paid = json_array(), *who = json_array(), *one;
    size_t i, count;
    json_array_foreach((json_t *)in->upheld, i, one)
    {
        if (value_is(one, "did", did) && *value_text(one, "account") && !value_find(who, "did", value_text(one, "by")))
            json_array_append_new(who, json_pack("{ssss}", "did", value_text(one, "by"), "account", value_text(one, "account")));
    }
    value_sort(who, "did");
    while (json_array_size(who) > CHALLENGERS) /* a release names so many payees only */
        json_array_remove(who, CHALLENGERS);
    count = json_array_size(who);
    unsigned __int128 each = count ? amount / 2 / count : 0;
    json_array_foreach(who, i, one) give(paid, value_text(one, "did"), value_text(one, "account"), each);
    give(paid, value_text(in->rules->spec, "sponsor"), sponsor_account(in->rules), amount - each * count);
    json_decref(who);
    return paid;
}

/* Who gets a deposit now; NULL: it stays. New reference. */
static json_t *recipients(const struct deposits_input *in, const json_t *one, const char **cause)
{
    const char *did = value_text(one, "did");
    unsigned __int128 amount = payout_parse(value_text(one, "amount"));
    const json_t *rejected = value_find(in->rejected, "did", did);
    *cause = "convicted";
    if (value_find(in->convicted, "did", did))
        return of_convicted(in, did, amount);
    *cause = rejected ? "rejected" : "over";
    if (!rejected && !in->over)
        return NULL;
    json_t *paid = json_array();
    const char *to = rejected ? value_text(rejected, "account") : value_text(one, "account");
    give(paid, rejected ? value_text(rejected, "accused") : did, *to ? to : sponsor_account(in->rules), amount);
    return paid;
}

struct deposits deposits_after(const struct deposits_input *in)
{
    const json_t *before = json_object_get(in->previous, "deposits");
    struct deposits out = { .held = json_array(), .returned = json_array() };
    json_t *one;
    size_t i;
    json_array_foreach((json_t *)before, i, one)
    {
        const char *cause;
        json_t *paid = recipients(in, one, &cause);
        if (paid) {
            json_t *payout = payout_line(value_text(one, "did"), cause, value_text(one, "account"), paid);
            json_array_append_new(out.returned, payout);
        } else {
            json_array_append(out.held, one);
        }
    }
    json_array_foreach((json_t *)in->members, i, one)
    {
        const char *did = value_text(one, "did"), *amount = deposit_due(in->rules, did, value_text(one, "role"));
        if (amount && !in->over && !value_find(out.held, "did", did) && !value_find(out.returned, "did", did))
            json_array_append_new(out.held, json_pack("{sOsOss}", "did", json_object_get(one, "did"), "account",
                                                      json_object_get(one, "account"), "amount", amount));
    }
    value_sort(out.held, "did");
    return out;
}
