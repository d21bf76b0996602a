#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/dispute.h"
#include "runtime/round/fold.h"
#include "runtime/round/payout.h"
#include "runtime/round/value.h"

static bool is_paid(const json_t *payout, const char *did, const char *role)
{
    size_t i;
    json_t *to;
    json_array_foreach(json_object_get(payout, "paid"), i, to)
    {
        if (value_is(to, "did", did) && value_is(to, "role", role))
            return true;
    }
    return false;
}

static void check_trainers(struct sim *s, const json_t *record, const json_t *of, const json_t *payout, size_t *count)
{
    int64_t round = value_integer(payout, "round");
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(of, "contributions"), i, line)
    {
        const char *did = value_text(line, "did");
        bool kept = value_is(of, "kind", "train") && value_is(line, "code", "ok") &&
                    !fold_is_removed(json_object_get(record, "convicted"), did, round);
        *count += kept;
        if (kept && s->set->besieged && round == 2 && sim_find(s, did) >= 0 && s->nodes[sim_find(s, did)].lie == LIE_BODY)
            sim_fail(s, MONEY, "round %lld: %s is paid for work that is wrong", (long long)round, did);
        if (is_paid(payout, did, "trainer") != kept)
            sim_fail(s, MONEY, "round %lld: %s is %s", (long long)round, did,
                     kept ? "accepted and not paid" : "paid and not accepted");
    }
}

static void check_syncers(struct sim *s, const json_t *record, const json_t *of, const json_t *payout)
{
    int64_t round = value_integer(payout, "round");
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(of, "received"), i, name)
    {
        const json_t *document = json_object_get(s->documents, json_string_value(name));
        const char *did = value_text(json_object_get(document, "payload"), "signer");
        bool earns = value_is(of, "kind", "train") && !fold_is_removed(json_object_get(record, "convicted"), did, round);
        if (is_paid(payout, did, "syncer") != earns)
            sim_fail(s, MONEY, "round %lld: syncer %s is %s", (long long)round, did, earns ? "not paid" : "paid");
    }
}

/* No earlier than its window allows, no later than the last dispute about it can last. */
static void check_window(struct sim *s, const json_t *record, int64_t round)
{
    int64_t at = value_integer(record, "round"), window = round + s->rules.challenge_rounds, counted = 0;
    if (at < window)
        sim_fail(s, MONEY, "round %lld is settled by round %lld, before its window is over", (long long)round, (long long)at);
    for (int64_t r = window + 1; r <= at; r++) {
        const json_t *one = r == at ? record : check_record(s, r);
        counted += value_is(one, "kind", "train") || value_is(one, "kind", "close");
    }
    if (counted > disputes_most(&s->rules, s->set->keeps))
        sim_fail(s, MONEY, "round %lld is settled by round %lld, %lld counted records after its window", (long long)round,
                 (long long)at, (long long)counted);
}

void check_payout(struct sim *s, const json_t *record, const json_t *payout)
{
    int64_t round = value_integer(payout, "round"), at = value_integer(record, "round");
    const json_t *of = check_record(s, round);
    unsigned __int128 trainers = 0, syncers = 0;
    size_t i, kept = 0, paid = 0;
    json_t *line;
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)round);
    if (json_object_get(s->settled, key))
        sim_fail(s, MONEY, "round %s is settled twice", key);
    json_object_set_new(s->settled, key, json_integer(at));
    check_window(s, record, round);
    check_trainers(s, record, of, payout, &kept);
    check_syncers(s, record, of, payout);
    json_array_foreach(json_object_get(payout, "paid"), i, line)
    {
        bool trainer = value_is(line, "role", "trainer");
        paid += trainer;
        *(trainer ? &trainers : &syncers) += payout_parse(value_text(line, "amount"));
    }
    const unsigned __int128 pay = (unsigned __int128)s->pay;
    if (paid != kept || (paid && trainers != pay / 10 * 8) || syncers > pay / 10 * 2)
        sim_fail(s, MONEY, "round %s: %zu paid of %zu accepted, pools of %d and %d", key, paid, kept, (int)trainers,
                 (int)syncers);
}
