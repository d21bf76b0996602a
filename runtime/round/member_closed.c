#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/member_state.h"
#include "runtime/round/replica.h"

bool member_replicates(const struct member *m)
{
    return m->rules->replicas > 1 && amendment_trains(m->rules, m->previous, m->round);
}

/* ---- what is held ------------------------------------------------------------------------------------------------------ */

static bool is_of_round(const struct member *m, const json_t *document)
{
    return value_integer(json_object_get(document, "payload"), "round") == m->round;
}

/* Documents of this type that `did` sent for the open round: those at or after `*at`, one a call; NULL at the end. */
static const json_t *next_of(const struct member *m, const char *type, const char *did, size_t *at)
{
    char key[MEMBER_SIGNED];
    member_signed_key(key, type, did);
    const json_t *list = json_object_get(m->by_signer, key);
    while (*at < json_array_size(list)) {
        const json_t *document = json_array_get(list, (*at)++);
        if (is_of_round(m, document))
            return document;
    }
    return NULL;
}

static const json_t *closed_of(const struct member *m, const json_t *did)
{
    return json_object_get(member_statement(m, "closed", 0, "", json_string_value(did)), "payload");
}

json_t *member_closed(const struct member *m)
{
    json_t *list = json_array(), *did;
    size_t i;
    json_array_foreach(m->committee, i, did)
    {
        const json_t *document = member_statement(m, "closed", 0, "", json_string_value(did));
        if (document)
            json_array_append(list, json_object_get(document, "envelope"));
    }
    return list;
}

static int64_t count_closed(const struct member *m)
{
    int64_t count = 0;
    size_t i;
    json_t *did;
    json_array_foreach(m->committee, i, did) count += closed_of(m, did) != NULL;
    return count;
}

/* The commitment that belongs to a contribution that is held; "" for one without canonical form. */
static const char *commitment_of(struct member *m, const json_t *contribution)
{
    const char *cid = value_text(contribution, "cid");
    char made[CID_TEXT];
    if (!json_object_get(m->committed, cid)) {
        replica_commitment_cid(json_object_get(contribution, "payload"), made);
        json_object_set_new(m->committed, cid, json_string(made));
    }
    return value_text(m->committed, cid);
}

/* q members list it: 1. Fewer ever will: -1. Not known yet: 0. */
static int counts(const struct member *m, const char *commitment)
{
    int64_t listed = 0, heard = 0;
    size_t i;
    json_t *did;
    json_array_foreach(m->committee, i, did)
    {
        const json_t *closed = closed_of(m, did);
        heard += closed != NULL;
        listed += value_lists(json_object_get(closed, "commitments"), commitment);
    }
    if (listed >= m->quorum.q)
        return 1;
    return listed + m->quorum.n - heard < m->quorum.q ? -1 : 0;
}

const char *member_commitment_code(struct member *m, const json_t *contribution)
{
    int known = member_replicates(m) ? counts(m, commitment_of(m, contribution)) : 1;
    return known > 0 ? "ok" : known < 0 ? "uncommitted" : NULL;
}

int64_t member_committed_at(struct member *m, const json_t *contribution)
{
    const char *cid = commitment_of(m, contribution);
    const json_t *commitment = json_object_get(m->documents, cid);
    return value_integer(commitment ? commitment : contribution, "at");
}

/* ---- when it is enough ------------------------------------------------------------------------------------------------- */

static bool passed(struct member *m, int64_t at)
{
    member_wake(m, at);
    return m->now >= at;
}

static bool has_committed(struct member *m, const char *did)
{
    size_t at = 0;
    return next_of(m, "commitment", did, &at);
}

static bool has_shown(struct member *m, const char *did)
{
    const json_t *document;
    for (size_t at = 0; (document = next_of(m, "contribution", did, &at));)
        if (value_is(m->codes, value_text(document, "cid"), "ok"))
            return true;
    return false;
}

/* Groups of which two machines are there: what an agreement takes. */
static size_t count_groups(struct member *m, bool (*is_there)(struct member *, const char *))
{
    json_t *groups = json_object(), *part;
    size_t i, count = 0;
    json_array_foreach(m->parts, i, part)
    {
        const char *group = value_text(part, "group");
        if (!*group || !is_there(m, value_text(part, "did")))
            continue;
        int64_t machines = value_integer(groups, group) + 1;
        json_object_set_new(groups, group, json_integer(machines));
        count += machines == 2;
    }
    json_decref(groups);
    return count;
}

static size_t wanted_groups(const struct member *m)
{
    return (size_t)amendment_quorum(m->rules, m->previous, m->round);
}

static size_t count_committed(struct member *m)
{
    size_t i, count = 0;
    json_t *part;
    json_array_foreach(m->parts, i, part)
    {
        count += json_array_size(json_object_get(part, "shards")) && has_committed(m, value_text(part, "did"));
    }
    return count;
}

/* Half of the round is for commitments, the rest for what they are about: so it lasts no longer than any other. */
static bool may_shut(struct member *m)
{
    int64_t grace = value_integer(m->previous, "grace_ms");
    return count_committed(m) >= m->assigned ||
           (count_groups(m, has_committed) >= wanted_groups(m) && passed(m, m->started + grace)) ||
           passed(m, m->started + m->rules->round_ms / 2);
}

static bool others_shut(struct member *m)
{
    if (count_closed(m) < m->quorum.t)
        return false;
    if (!m->first_shut)
        m->first_shut = m->now;
    return passed(m, m->first_shut + m->rules->grace_min_ms);
}

/* cid -> how many members list it. One may list thousands that nobody made: each list is gone through once. New reference. */
static json_t *count_listed(const struct member *m)
{
    json_t *counts = json_object(), *did, *cid;
    size_t i, k;
    json_array_foreach(m->committee, i, did)
    {
        json_t *own = json_object();
        json_array_foreach(json_object_get(closed_of(m, did), "commitments"), k, cid)
            json_object_set(own, json_string_value(cid), cid);
        const char *text;
        json_object_foreach(own, text, cid)
            json_object_set_new(counts, text, json_integer((json_int_t)value_integer(counts, text) + 1));
        json_decref(own);
    }
    return counts;
}

/* Whether something that q members list, or may still list, has not been shown. */
static bool awaits_shown(struct member *m)
{
    const int64_t open = m->quorum.n - count_closed(m);
    json_t *counts, *part, *count;
    const json_t *document;
    const char *cid;
    size_t i;
    bool awaits = false;
    if (open > m->quorum.n - m->quorum.q)
        return true;
    counts = count_listed(m);
    json_array_foreach(m->parts, i, part)
    {
        for (size_t at = 0; (document = next_of(m, "contribution", value_text(part, "did"), &at));)
            json_object_del(counts, commitment_of(m, document));
    }
    json_object_foreach(counts, cid, count) awaits = awaits || json_integer_value(count) + open >= m->quorum.q;
    json_decref(counts);
    return awaits;
}

bool member_has_shown(struct member *m)
{
    int64_t grace = value_integer(m->previous, "grace_ms");
    return (m->shut && !awaits_shown(m)) ||
           (m->shut && count_groups(m, has_shown) >= wanted_groups(m) && passed(m, m->shut + grace)) ||
           passed(m, m->started + m->rules->round_ms);
}

/* ---- closing ----------------------------------------------------------------------------------------------------------- */

static json_t *held_commitments(struct member *m)
{
    json_t *list = json_array(), *part;
    const json_t *document;
    size_t i;
    json_array_foreach(m->parts, i, part)
    {
        for (size_t at = 0; json_array_size(json_object_get(part, "shards")) &&
                            (document = next_of(m, "commitment", value_text(part, "did"), &at));)
            json_array_append(list, json_object_get(document, "cid"));
    }
    value_sort(list, NULL);
    return list;
}

json_t *member_sign_closed(struct member *m)
{
    return member_sign(m, "closed", json_pack("{sO}", "commitments", m->closed_list));
}

/* What this member holds when it closes is fixed before anybody shows what is behind it. */
bool member_rule_shut(struct member *m)
{
    if (m->phase != PHASE_TRAINING || !m->seated || m->shut || !member_replicates(m) || !(may_shut(m) || others_shut(m)))
        return false;
    m->shut = m->now ? m->now : 1;
    if (!member_may_sign(m))
        return true;
    if (!m->closed_list) {
        m->closed_list = held_commitments(m);
        member_persist(m);
    }
    json_t *envelope = member_sign_closed(m);
    if (envelope)
        member_send(m, json_deep_copy(m->committee), json_pack("{s[o]}", "documents", envelope));
    return true;
}
