#include <stdio.h>
#include <string.h>

#include "runtime/round/deposit.h"
#include "runtime/round/member_state.h"

/* Recomputes the oldest decided round that this member has not recomputed yet: it followed a certificate for it. */
bool member_rule_verify(struct member *m)
{
    if (m->verified >= json_array_size(m->finals) || m->phase == PHASE_HALTED || m->verify_at == m->answers)
        return false;
    json_t *final = json_array_get(m->finals, m->verified), *record = json_object_get(final, "record"), *made;
    json_t *received = member_received_of(m, record);
    if (!received)
        return false;
    const json_t *previous = m->verified ? member_record_of(m, (int64_t)m->verified - 1) : NULL;
    enum record_outcome outcome =
        member_make_record(m, previous, json_object_get(record, "block"), received, value_is(record, "reason", "forced"), &made);
    json_decref(received);
    m->verify_at = outcome == RECORD_NEEDS && m->awaits ? m->answers : 0;
    if (outcome == RECORD_NEEDS)
        return false;
    bool equal = outcome == RECORD_MADE && json_equal(made, record);
    json_decref(made);
    if (!equal) {
        member_halt(m, "record_wrong",
                    "a certified record is not what its documents give: this member stops voting and releasing");
        return false;
    }
    char key[32];
    json_object_set_new(final, "verified", json_true());
    snprintf(key, sizeof key, "final/%zu", m->verified++);
    member_act(m, ACTION_PERSIST, json_pack("{ssso}", "key", key, "value", json_copy(final)));
    return true;
}

/* Releases the rounds that a recomputed record settles, in order. */
bool member_rule_release(struct member *m)
{
    if (m->released >= m->verified || !value_find(m->rules->panel, "did", m->did))
        return false;
    const json_t *record = member_record_of(m, (int64_t)m->released++);
    size_t i;
    json_t *payout;
    json_array_foreach(json_object_get(record, "settled"), i, payout)
    {
        char cid[CID_TEXT], key[32];
        int64_t round = value_integer(payout, "round");
        signing_name(&m->signing, member_record_of(m, round), VALUE_MOST, cid);
        snprintf(key, sizeof key, "released/%lld", (long long)round);
        member_act(m, ACTION_PERSIST, json_pack("{sssO}", "key", key, "value", payout));
        member_act(m, ACTION_RELEASE, json_pack("{sIsssO}", "round", (json_int_t)round, "record", cid, "payout", payout));
    }
    json_array_foreach(json_object_get(record, "returned"), i, payout)
    {
        char cid[CID_TEXT];
        signing_name(&m->signing, record, VALUE_MOST, cid);
        member_act(m, ACTION_RELEASE,
                   json_pack("{sIsssOs{sOsO}}", "round", (json_int_t)deposit_number(value_integer(record, "round"), i), "record",
                             cid, "payout", payout, "deposit", "did", json_object_get(payout, "did"), "account",
                             json_object_get(payout, "account")));
    }
    return true;
}
