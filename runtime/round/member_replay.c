#include <string.h>

#include "runtime/round/dispute.h"
#include "runtime/round/member_state.h"

enum { OF_PANEL, OF_OTHERS }; /* for whom it replays */

/* ---- what a replay decides ---------------------------------------------------------------------------------------------- */

static bool begins_with_carry(const struct member *m, const json_t *entry, const char *did)
{
    const json_t *before = member_record_of(m, value_integer(entry, "round") - 1);
    return value_is(json_object_get(entry, "plan"), "inner", "keep") &&
           json_object_get(value_find(json_object_get(before, "members"), "did", did), "carry");
}

bool member_by_replay(const struct member *m, const json_t *challenge)
{
    const char *accused = "";
    const json_t *entry = member_entry_of(m, value_text(challenge, "contribution"), &accused);
    int64_t index = value_integer(challenge, "index");
    if (!index)
        return !begins_with_carry(m, entry, accused);
    return index > value_integer(json_object_get(entry, "plan"), "steps") || m->rules->checkpoint_every > 1 ||
           json_object_get(m->rules->spec, "reward");
}

bool member_may_accuse(const struct member *m, const char *did)
{
    return (value_find(m->rules->panel, "did", did) || value_find(json_object_get(m->previous, "members"), "did", did)) &&
           !value_find(json_object_get(m->previous, "convicted"), "did", did);
}

/* ---- whose turn it is --------------------------------------------------------------------------------------------------- */

/* An account that has locked something for this key is its own; any other is only named. */
static const char *own_account(const struct member *m, const char *did)
{
    return value_text(value_find(json_object_get(m->previous, "deposits"), "did", did), "account");
}

static void note_false(struct member *m, const char *did)
{
    const char *account = own_account(m, did);
    if (json_object_get(m->false_claims, did))
        return;
    json_object_set_new(m->false_claims, did, json_true());
    if (*account)
        json_object_set_new(m->false_claims, account, json_integer((json_int_t)value_integer(m->false_claims, account) + 1));
}

const char *member_replay_code(struct member *m, const json_t *challenge)
{
    const json_t *payload = json_object_get(challenge, "payload");
    const json_t *index = json_object_get(m->replays, value_text(payload, "contribution"));
    const char *signer = value_text(payload, "signer");
    if (!index)
        return json_object_get(m->false_claims, signer) ? "" : NULL; /* one false challenge costs one replay, and no second */
    if (json_integer_value(index) == value_integer(payload, "index"))
        return "upheld";
    note_false(m, signer);
    return "rejected";
}

/* The panel, whose draws are for this, before those who have something to lose, and those before keys that anybody may have; of the last two each
 * after those whose account has accused falsely less often. */
static int64_t rank_of(const struct member *m, const char *did)
{
    const char *account = own_account(m, did);
    if (value_find(m->rules->panel, "did", did))
        return 0;
    if (*account)
        return 1 + value_integer(m->false_claims, account);
    return value_lists(m->rules->allowed, did) ? 1 : INT32_MAX;
}

static bool waits_for_turn(struct member *m, const json_t *document)
{
    const json_t *payload = json_object_get(document, "payload");
    const char *cid = value_text(payload, "contribution"), *accused = "";
    if (!value_is(document, "type", "challenge"))
        return false;
    const json_t *entry = member_entry_of(m, cid, &accused);
    return entry && member_by_replay(m, payload) && !member_move_code(m, document) && !member_asked(m, "replay", cid) &&
           !member_lacks_carry(m, cid, accused, value_integer(entry, "round"));
}

static bool is_judging(const struct member *m, int whose)
{
    return m->judging[whose].round == m->round && !json_object_get(m->replays, m->judging[whose].cid);
}

void member_take_turn(struct member *m, const json_t *documents)
{
    const json_t *first = NULL;
    const char *accused = "";
    json_t *document;
    size_t i;
    int64_t best = INT64_MAX;
    if (is_judging(m, OF_PANEL))
        return;
    json_array_foreach((json_t *)documents, i, document)
    {
        if (!waits_for_turn(m, document))
            continue;
        int64_t rank = rank_of(m, value_text(json_object_get(document, "payload"), "signer"));
        if (rank < best)
            best = rank, first = document;
    }
    const int whose = best ? OF_OTHERS : OF_PANEL;
    if (!first || is_judging(m, whose))
        return;
    const char *cid = value_text(json_object_get(first, "payload"), "contribution");
    const json_t *entry = member_entry_of(m, cid, &accused);
    member_ask_replay(m, cid, accused, value_integer(entry, "round"), whose == OF_PANEL);
    memcpy(m->judging[whose].cid, cid, strlen(cid) + 1);
    m->judging[whose].round = m->round;
}
