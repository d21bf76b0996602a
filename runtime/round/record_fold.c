#include "runtime/round/amendment.h"
#include "runtime/round/fold.h"
#include "runtime/round/record_making.h"
#include "runtime/round/replica.h"
#include "runtime/round/value.h"

/* This round's open entry: what a correction or a payout will need of it. */
static json_t *make_entry(struct making *m, const json_t *contributions, const json_t *plan)
{
    json_t *kept = json_array(), *syncers = json_array(), *item;
    size_t i;
    json_array_foreach((json_t *)contributions, i, item)
    {
        const json_t *member = value_find(json_object_get(m->in->previous, "members"), "did", value_text(item, "did"));
        bool differs = value_is(item, "code", "differs");
        if (differs || value_is(item, "code", "ok"))
            json_array_append_new(
                kept, json_pack("{sOsOsOsssO*sO*}", "did", json_object_get(item, "did"), "cid", json_object_get(item, "cid"),
                                "weight", json_object_get(item, "weight"), "account", value_text(member, "account"), "group",
                                json_object_get(item, "group"), "code", differs ? json_object_get(item, "code") : NULL));
    }
    json_array_foreach((json_t *)m->in->received, i, item)
    {
        const json_t *seat = value_find(m->rules->panel, "did", value_text(item, "signer"));
        json_array_append_new(
            syncers, json_pack("{sOss}", "did", json_object_get(item, "signer"), "account", value_text(seat, "account")));
    }
    value_sort(syncers, "did");
    return json_pack("{sIsssbsOsOsOsoso}", "round", (json_int_t)m->round, "kind", "train", "settled", 0, "outer",
                     json_object_get(m->in->previous, "outer"), "state", json_object_get(m->in->previous, "state"), "plan", plan,
                     "contributions", kept, "syncers", syncers);
}

/* The answer to a request: NULL while it is not known; then `needs` is set. */
static const json_t *answer(struct making *m, json_t *request)
{
    char hex[HASH_TEXT];
    fold_hash(request, hex);
    const json_t *found = json_object_get(m->in->results, hex);
    record_set_ask(m->known, hex, request, found);
    if (!found)
        m->needs = json_pack("{sOss}", "request", request, "hash", hex);
    return found;
}

bool record_find_plan(struct making *m, const json_t **plan)
{
    *plan = json_null();
    if (!amendment_trains(m->rules, m->in->previous, m->round) || m->in->forced)
        return true;
    json_t *request = fold_plan_request(m->rules, m->in->previous, m->round);
    const json_t *found = answer(m, request);
    json_decref(request);
    if (!found)
        return false;
    if (!fold_plan_in(m->rules, found))
        m->reason = "plan";
    else
        *plan = fold_plan_in(m->rules, found);
    return true;
}

enum folded { FOLD_AWAITED, FOLD_FAILED, FOLD_DONE };

/* One attempt: with this round's contributions (`own`) or the correction alone. */
static enum folded try_fold(struct making *m, bool own)
{
    int64_t first = m->correct ? m->correct : m->round;
    json_t *request = fold_request(m->rules, m->in->previous, m->entries, m->convicted, first, own), *outer = NULL, *state = NULL;
    const json_t *result = NULL;
    enum folded folded = FOLD_DONE;
    if (request) {
        const json_t *found = answer(m, request);
        result = json_object_get(found, "result");
        if (!found)
            folded = FOLD_AWAITED;
        else if (!value_is(found, "code", "ok"))
            folded = FOLD_FAILED, m->reason = own ? value_text(found, "code") : m->reason;
    }
    if (folded == FOLD_DONE && !fold_apply(m->entries, first, request, result, &outer, &state))
        folded = FOLD_FAILED, m->reason = own ? "result" : m->reason;
    if (folded == FOLD_DONE) {
        json_object_set(m->record, "outer", outer ? outer : json_object_get(m->record, "outer"));
        json_object_set(m->record, "state", state ? state : json_object_get(m->record, "state"));
        if (own) {
            json_t *aggregate = json_object_get(result, "aggregate"), *telemetry = json_object_get(result, "telemetry");
            json_object_set(m->record, "aggregate", json_is_string(aggregate) ? aggregate : json_null());
            json_object_set(m->record, "telemetry", json_is_object(telemetry) ? telemetry : json_null());
        }
        m->correct = 0;
    }
    json_decref(request);
    return folded;
}

bool record_decide(struct making *m, const json_t *contributions, const json_t *plan)
{
    bool paused = amendment_pauses(m->rules, m->in->previous, m->round);
    bool trains = paused || amendment_trains(m->rules, m->in->previous, m->round);
    json_t *entry = NULL;
    if (m->in->forced && m->round > 0) {
        m->reason = "forced";
    } else if (paused) {
        m->reason = "paused";
    } else if (trains && !*m->reason) {
        size_t accepted = replica_accepted(contributions);
        if (accepted < (size_t)amendment_quorum(m->rules, m->in->previous, m->round))
            m->reason = "quorum";
    }
    if (trains) {
        entry = make_entry(m, contributions, plan);
        json_array_append_new(m->entries, entry);
    }
    enum folded folded = FOLD_FAILED;
    if (trains && !*m->reason)
        folded = try_fold(m, true);
    if (folded == FOLD_FAILED && m->correct && !m->in->forced) {
        /* The entry of a close round is only a place for the fold to end in. */
        json_t *end = trains ? NULL : make_entry(m, contributions, json_null());
        if (end)
            json_array_append_new(m->entries, end);
        folded = try_fold(m, false);
        if (end)
            json_array_remove(m->entries, json_array_size(m->entries) - 1);
    }
    if (folded == FOLD_AWAITED)
        return false;
    if (entry && *m->reason) {
        json_object_set_new(entry, "kind", json_string("skip"));
        json_object_set_new(entry, "contributions",
                            json_is_object(plan) ? replica_unaccepted(json_object_get(entry, "contributions")) : json_array());
    }
    const char *kind = m->round == 0 ? "open" : *m->reason ? "skip" : trains ? "train" : "close";
    json_object_set_new(m->record, "kind", json_string(kind));
    json_object_set_new(m->record, "reason", json_string(m->reason));
    return true;
}
