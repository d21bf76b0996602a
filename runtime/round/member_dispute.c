#include <string.h>

#include "runtime/round/dispute.h"
#include "runtime/round/member_state.h"

/* Whether `did` (any, when empty) disputes this leaf: by a record, or by a challenge that is held. */
static bool is_disputed(const struct member *m, const json_t *payload, const char *did)
{
    const json_t *open = json_object_get(m->previous, "disputes"), *of;
    const char *cid;
    json_t *document, *one;
    size_t i;
    json_array_foreach((json_t *)open, i, one)
    {
        if (value_is(one, "contribution", value_text(payload, "contribution")) &&
            value_integer(one, "index") == value_integer(payload, "index") && (!*did || value_is(one, "challenger", did)))
            return true;
    }
    json_object_foreach(m->documents, cid, document)
    {
        of = json_object_get(document, "payload");
        if (value_is(document, "type", "challenge") && value_is(of, "contribution", value_text(payload, "contribution")) &&
            value_integer(of, "index") == value_integer(payload, "index") && (!*did || value_is(of, "signer", did)))
            return true;
    }
    return false;
}

/* An opening that names another object shows nothing; nor does one whose object could not be had until the round's end. */
bool member_lacks_carry(const struct member *m, const char *cid, const char *did, int64_t round)
{
    if (!value_is(json_object_get(member_record_of(m, round), "plan"), "inner", "keep"))
        return false;
    json_t *context = member_context_of(m, round, did), *carry = json_object_get(context, "carry"), *document;
    bool lacks = carry != NULL, late = m->now >= m->started + m->rules->round_ms;
    const char *key;
    json_object_foreach(m->documents, key, document)
    {
        const json_t *payload = json_object_get(document, "payload");
        if (!late && value_is(document, "type", "opening") && value_is(payload, "contribution", cid) &&
            value_is(payload, "signer", did) && value_integer(payload, "index") == 0 &&
            value_is(payload, "trace", value_text(carry, "object")))
            lacks = false;
    }
    json_decref(context);
    return lacks;
}

/* This member's own demands that were answered: what was shown is replayed, and what is wrong in it challenged, once. */
bool member_rule_shown(struct member *m)
{
    size_t i;
    json_t *one;
    if (!m->committee || m->phase >= PHASE_DONE) /* also where this round's draw left it out */
        return false;
    json_array_foreach(json_object_get(m->previous, "disputes"), i, one)
    {
        const char *cid = value_text(one, "contribution");
        const json_t *index = json_object_get(m->replays, cid);
        if (!value_is(one, "challenger", m->did) || value_integer(one, "index") || !json_is_string(json_object_get(one, "trace")))
            continue;
        if (!index) {
            member_ask_replay(m, cid, value_text(one, "did"), value_integer(one, "round"), false);
        } else if (json_integer_value(index) > 0 && member_ask(m, "challenge", cid)) {
            member_challenge(m, cid, value_integer(one, "round"), json_integer_value(index));
            return true;
        }
    }
    return false;
}

/* Whether this record decides about an accused whose opening none has listed: members that have replayed its work may still speak for it. An
 * opening that is held here need not be held by others, nor its blocks. */
static bool needs_defence(const struct member *m, const json_t *dispute)
{
    return json_is_null(json_object_get(dispute, "trace")) && value_integer(dispute, "index") &&
           value_integer(dispute, "left") == 0 &&
           !member_lacks_carry(m, value_text(dispute, "contribution"), value_text(dispute, "did"),
                               value_integer(dispute, "round"));
}

bool member_rule_defend(struct member *m)
{
    size_t i;
    json_t *one;
    if (!m->seated || m->items || m->phase == PHASE_AWAIT || m->phase >= PHASE_VOTING)
        return false;
    json_array_foreach(json_object_get(m->previous, "disputes"), i, one)
    {
        const char *cid = value_text(one, "contribution");
        const json_t *index = json_object_get(m->replays, cid);
        if (!needs_defence(m, one))
            continue;
        if (!index)
            member_ask_replay(m, cid, value_text(one, "did"), value_integer(one, "round"), true);
        else if (json_integer_value(index) < 0 && !value_lists(m->checked, cid))
            json_array_append_new(m->checked, json_string(cid));
    }
    return false;
}

bool member_defends(const struct member *m)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(m->previous, "disputes"), i, one)
    {
        if (!json_object_get(m->replays, value_text(one, "contribution")) && needs_defence(m, one))
            return true;
    }
    return false;
}

/* What could not be had says nothing of a move: it is listed nowhere and looked for once more in the next round. */
static bool ask_again(struct member *m, const char *cid)
{
    char key[CID_TEXT + 8];
    snprintf(key, sizeof key, "judge/%s", cid);
    if (!value_is(m->codes, cid, "missing") || value_integer(m->asked, key) >= m->round)
        return false;
    json_object_del(m->codes, cid);
    json_object_del(m->asked, key);
    return true;
}

static const char *judged_code(struct member *m, const json_t *document, const json_t *entry, const char *accused)
{
    const char *cid = value_text(document, "cid");
    const json_t *payload = json_object_get(document, "payload"), *code = json_object_get(m->codes, cid);
    if (code && !ask_again(m, cid))
        return value_is(m->codes, cid, "missing") ? "" : json_string_value(code);
    json_t *context = member_context_of(m, value_integer(entry, "round"), accused);
    if (context && member_ask(m, "judge", cid))
        member_act(m, ACTION_JUDGE,
                   json_pack("{sssOsOsOsO?sO?sO}", "cid", cid, "move", json_object_get(document, "type"), "contribution",
                             json_object_get(payload, "contribution"), "index", json_object_get(payload, "index"), "trace",
                             json_object_get(payload, "trace"), "evidence", json_object_get(payload, "evidence"), "context",
                             context));
    json_decref(context);
    return NULL;
}

const json_t *member_entry_of(const struct member *m, const char *cid, const char **did)
{
    const json_t *found = json_object_get(m->disputable, cid);
    if (found)
        *did = json_string_value(json_array_get(found, 1));
    return json_array_get(found, 0);
}

const char *member_move_code(struct member *m, const json_t *document)
{
    const char *type = value_text(document, "type"), *accused = "";
    const json_t *payload = json_object_get(document, "payload");
    const char *signer = value_text(payload, "signer"), *contribution = value_text(payload, "contribution");
    const json_t *entry = member_entry_of(m, contribution, &accused);
    if (!strcmp(type, "challenge") && value_lists(json_object_get(m->previous, "barred"), signer))
        return "barred"; /* it may still defend its work and end what it began */
    if (!entry)
        return !strcmp(type, "opening") && !value_integer(payload, "index") ? "" : "unknown"; /* a carry is shown unasked, too */
    if (!strcmp(type, "challenge") && disputes_late(m->rules, json_object_get(m->previous, "disputes"), m->round, entry, payload))
        return "late";
    if (!strcmp(type, "challenge") && !member_may_accuse(m, signer))
        return "unknown";
    if (!strcmp(type, "opening") && (strcmp(signer, accused) || !is_disputed(m, payload, "")))
        return "";
    if (!strcmp(type, "pick") && !is_disputed(m, payload, signer))
        return "";
    if (!strcmp(type, "challenge") && member_by_replay(m, payload))
        return member_replay_code(m, document);
    return judged_code(m, document, entry, accused);
}

bool member_awaits_moves(const struct member *m)
{
    size_t i;
    json_t *one, *document;
    json_array_foreach(json_object_get(m->previous, "disputes"), i, one)
    {
        bool opened = json_is_string(json_object_get(one, "trace")), held = opened && !value_integer(one, "index");
        const char *who = value_text(one, opened ? "challenger" : "did"), *cid;
        json_object_foreach(m->documents, cid, document)
        {
            const json_t *payload = json_object_get(document, "payload");
            held = held || (value_is(document, "type", opened ? "pick" : "opening") && value_is(payload, "signer", who) &&
                            value_is(payload, "contribution", value_text(one, "contribution")) &&
                            value_integer(payload, "index") == value_integer(one, "index"));
        }
        if (!held)
            return true;
    }
    return false;
}

/* This member's own challenges that have been answered: the first wrong tile is picked, once. */
bool member_rule_picks(struct member *m)
{
    size_t i;
    json_t *one;
    if (!m->committee || m->phase >= PHASE_DONE) /* also where this round's draw left it out: who says no more loses */
        return false;
    json_array_foreach(json_object_get(m->previous, "disputes"), i, one)
    {
        char key[DISPUTE_KEY];
        if (!value_is(one, "challenger", m->did) || !json_is_string(json_object_get(one, "trace")) ||
            !value_integer(one, "index"))
            continue;
        disputes_key(one, key);
        const json_t *evidence = json_object_get(m->moves, key);
        if (!evidence) {
            json_t *context = member_context_of(m, value_integer(one, "round"), value_text(one, "did"));
            if (context && member_ask(m, "pick", key))
                member_act(m, ACTION_MOVE,
                           json_pack("{sssssOsOsOsO}", "key", key, "move", "pick", "contribution",
                                     json_object_get(one, "contribution"), "index", json_object_get(one, "index"), "trace",
                                     json_object_get(one, "trace"), "context", context));
            json_decref(context);
        } else if (json_is_string(evidence) && member_ask(m, "picked", key)) {
            json_t *payload = json_pack("{sOsOsOsOsO}", "round", json_object_get(one, "round"), "contribution",
                                        json_object_get(one, "contribution"), "index", json_object_get(one, "index"), "trace",
                                        json_object_get(one, "trace"), "evidence", evidence);
            json_t *envelope = member_sign(m, "pick", payload);
            if (envelope)
                member_send(m, json_deep_copy(m->committee), json_pack("{s[o]}", "documents", envelope));
            return true;
        }
    }
    return false;
}
