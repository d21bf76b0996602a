#include <stdio.h>
#include <string.h>

#include "runtime/round/member_state.h"

/* ---- records from what is held -------------------------------------------------------------------------------------- */

enum record_outcome member_make_record(struct member *m, const json_t *previous, const json_t *block, const json_t *received,
                                       bool forced, json_t **record)
{
    json_t *payloads = json_array(), *names = json_array(), *document, *out;
    char before[CID_TEXT];
    size_t i;
    json_array_foreach((json_t *)received, i, document)
    {
        json_array_append(payloads, json_object_get(document, "payload"));
        json_array_append(names, json_object_get(document, "cid"));
    }
    bool named = previous && signing_name(&m->signing, previous, VALUE_MOST, before);
    struct record_input input = { .rules = m->rules,
                                  .previous = previous,
                                  .block = block,
                                  .received = payloads,
                                  .before = named ? before : NULL,
                                  .names = names,
                                  .sound = true,
                                  .memory = m->memory,
                                  .forced = forced,
                                  .documents = m->documents,
                                  .results = m->results };
    enum record_outcome outcome = record_of(&input, &out, NULL);
    json_decref(payloads);
    json_decref(names);
    *record = NULL;
    if (outcome == RECORD_MADE) {
        *record = out;
    } else if (outcome == RECORD_NEEDS) {
        json_t *request = json_object_get(out, "request");
        m->awaits = request;
        if (request) {
            json_t *hash = json_object_get(out, "hash");
            if (member_ask(m, "compute", json_string_value(hash)))
                member_act(m, ACTION_COMPUTE,
                           json_pack("{sOsOsI}", "hash", hash, "request", request, "round", (json_int_t)m->round));
        } else {
            member_fetch(m, json_object_get(out, "documents"));
        }
        json_decref(out);
    }
    return outcome;
}

json_t *member_received_of(struct member *m, const json_t *record)
{
    json_t *names = json_object_get(record, "received"), *list, *name;
    size_t i;
    if (!member_fetch(m, names))
        return NULL;
    list = json_array();
    json_array_foreach(names, i, name)
    {
        json_t *document = json_object_get(m->documents, json_string_value(name));
        if (value_is(document, "type", "received"))
            json_array_append(list, document);
    }
    return list;
}

/* The received(view) held, one a member of the committee. New reference. */
static json_t *received_in(struct member *m, int64_t view)
{
    json_t *did;
    size_t i;
    if (m->received && m->received_at.news == m->news && m->received_at.view == view)
        return json_incref(m->received);
    json_decref(m->received);
    m->received = json_array();
    m->received_at.news = m->news;
    m->received_at.view = view;
    json_array_foreach(m->committee, i, did)
    {
        const json_t *document = member_statement(m, "received", view, "", json_string_value(did));
        if (document)
            json_array_append(m->received, (json_t *)document);
    }
    return json_incref(m->received);
}

/* ---- views ---------------------------------------------------------------------------------------------------------- */

static bool in_voting(const struct member *m)
{
    return m->phase == PHASE_VOTING && m->seated;
}

static void enter(struct member *m, int64_t view)
{
    m->view = view;
    m->view_ends = m->settled_at = 0;
    json_decref(m->lead_set);
    m->lead_set = NULL;
    json_object_clear(m->own);
    json_t *payload = json_pack("{sIsOsIsOsOsO}", "view", (json_int_t)view, "head", m->head, "funded", (json_int_t)m->funded,
                                "items", m->items, "checked", m->checked, "lock", m->lock ? m->lock : json_null());
    json_object_set(m->own, "received", payload);
    member_persist(m);
    member_see(m, m->did, view);
    if (member_may_sign(m)) {
        json_t *envelope = member_sign(m, "received", json_copy(payload)); /* the lists stand from here on */
        if (envelope)
            member_send(m, json_deep_copy(m->committee), json_pack("{s[o]}", "documents", envelope));
    }
    json_decref(payload);
    m->repeated_at = m->now;
    member_tell_state(m);
}

bool member_rule_enter(struct member *m)
{
    if (!in_voting(m) || m->view >= 0 || !member_may_sign(m))
        return false;
    enter(m, 0);
    return true;
}

void member_see(struct member *m, const char *did, int64_t view)
{
    const json_t *before = json_object_get(m->seen, did);
    if (before && json_integer_value(before) >= view)
        return;
    json_object_set_new(m->seen, did, json_integer(view));
    m->seen_most = view > m->seen_most ? view : m->seen_most;
}

/* The k-th largest view seen from distinct members; -1 when fewer were seen. */
static int64_t view_seen(const struct member *m, int64_t k)
{
    int64_t views[1024];
    size_t count = 0, i;
    json_t *did;
    json_array_foreach(m->committee, i, did)
    {
        json_t *view = json_object_get(m->seen, json_string_value(did));
        if (view && count < 1024)
            views[count++] = json_integer_value(view);
    }
    return (int64_t)count < k || k < 1 ? -1 : value_largest(views, count, (size_t)k);
}

bool member_rule_jump(struct member *m)
{
    if (!in_voting(m) || m->view < 0 || m->seen_most <= m->view)
        return false;
    int64_t view = view_seen(m, m->quorum.t);
    if (view <= m->view)
        return false;
    enter(m, view);
    return true;
}

bool member_rule_timeout(struct member *m)
{
    if (!in_voting(m) || m->view < 0)
        return false;
    if (!m->view_ends && view_seen(m, m->quorum.q) >= m->view)
        m->view_ends = m->now + (m->rules->view_ms << (m->view < 6 ? m->view : 6));
    if (!m->view_ends)
        return false;
    if (m->now < m->view_ends) {
        member_wake(m, m->view_ends);
        return false;
    }
    enter(m, m->view + 1);
    return true;
}

/* ---- leader --------------------------------------------------------------------------------------------------------- */

static int64_t lock_view(const json_t *lock)
{
    return json_is_object(lock) ? value_integer(lock, "view") : -1;
}

static bool lock_valid(const struct member *m, const json_t *lock)
{
    return certificate_check(m->rules, lock, "prepare", m->round, m->committee, &m->signing, NULL);
}

/* The highest valid lock among the received documents and the own one, of a view before this; borrowed, NULL. */
static const json_t *highest_lock(const struct member *m, const json_t *received)
{
    const json_t *best = m->lock;
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)received, i, one)
    {
        const json_t *lock = json_object_get(json_object_get(one, "payload"), "lock");
        if (lock_view(lock) > lock_view(best) && lock_view(lock) < m->view && lock_valid(m, lock))
            best = lock;
    }
    return best;
}

/* All n are in, or q and settle_ms since the q-th. */
static bool set_settled(struct member *m, size_t held)
{
    if ((int64_t)held < m->quorum.q)
        return false;
    if (!m->settled_at)
        m->settled_at = m->now + m->rules->settle_ms;
    member_wake(m, m->settled_at);
    return (int64_t)held == m->quorum.n || m->now >= m->settled_at;
}

static void propose(struct member *m, json_t *record, const json_t *justification)
{
    char cid[CID_TEXT];
    value_cid(record, cid);
    json_object_set(m->records, cid, record);
    json_t *payload = json_pack("{sIsssO}", "view", (json_int_t)m->view, "record", cid, "justification",
                                justification ? justification : json_null());
    json_object_set(m->own, "proposal", payload);
    member_persist(m);
    json_decref(member_sign(m, "proposal", json_deep_copy(payload)));
    json_decref(payload);
    member_repeat(m);
}

/* After a restart not before the ledger has told. */
static bool knows_head(const struct member *m)
{
    return value_integer(m->head, "height") > 0;
}

/* The block of the next seed is still to come, as far as this member knows. */
static bool is_ahead(const struct member *m, const json_t *record)
{
    return knows_head(m) && value_integer(record, "next_height") > value_integer(m->head, "height");
}

bool member_rule_lead(struct member *m)
{
    if (!in_voting(m) || m->view < 0 || !member_may_sign(m) || json_object_get(m->own, "commit"))
        return false;
    json_t *received = m->lead_set ? json_incref(m->lead_set) : received_in(m, m->view), *record = NULL;
    bool leads = !strcmp(committee_leader(m->committee, m->view), m->did) && !json_object_get(m->own, "proposal");
    bool settled = m->lead_set || set_settled(m, json_array_size(received)), did = false;
    const json_t *lock = (int64_t)json_array_size(received) >= m->quorum.q ? highest_lock(m, received) : NULL;
    if (leads && settled && !m->lead_set)
        m->lead_set = json_incref(received);
    if (leads && settled && lock) {
        record = json_incref(json_object_get(m->records, value_text(lock, "record")));
    } else if (settled && !lock && !m->lock && knows_head(m)) {
        /* Whoever does not lead asks for the same fold meanwhile: it will need it to judge the proposal. */
        enum record_outcome outcome = RECORD_NEEDS;
        bool fresh = m->lead_at.answers != m->answers || m->lead_at.view != m->view || m->lead_at.leads != leads;
        if ((leads || !json_object_get(m->own, "prepare")) && fresh) {
            outcome = member_make_record(m, m->previous, m->block, received, m->view >= m->quorum.n, &record);
            m->lead_at.answers = outcome == RECORD_NEEDS && !m->awaits ? 0 : m->answers;
            m->lead_at.view = m->view;
            m->lead_at.leads = leads;
            if (record)
                signing_name(&m->signing, record, m->rules->record_most, m->made);
        }
        if (record && !is_ahead(m, record))
            json_decref(record), record = NULL;
    }
    if (leads && record) {
        propose(m, record, lock);
        did = true;
    }
    json_decref(record);
    json_decref(received);
    return did;
}

/* ---- votes ---------------------------------------------------------------------------------------------------------- */

/* Recomputed in full from what is held: "valid", "wrong", or "" while something is missing. */
static const char *judge(struct member *m, const char *cid, const json_t *record)
{
    const char *known = value_text(m->verdicts, cid);
    if (*known)
        return known;
    if ((uint64_t)value_integer(m->judged, cid) == m->answers)
        return "";
    if (!strcmp(m->made, cid)) {
        json_object_set_new(m->verdicts, cid, json_string("valid"));
        return value_text(m->verdicts, cid);
    }
    json_t *received = member_received_of(m, record), *made;
    if (!received)
        return "";
    enum record_outcome outcome =
        member_make_record(m, m->previous, m->block, received, value_is(record, "reason", "forced"), &made);
    json_decref(received);
    if (outcome == RECORD_NEEDS && m->awaits)
        json_object_set_new(m->judged, cid, json_integer((json_int_t)m->answers));
    if (outcome == RECORD_NEEDS)
        return "";
    bool valid = outcome == RECORD_MADE && json_equal(made, record);
    json_decref(made);
    json_object_set_new(m->verdicts, cid, json_string(valid ? "valid" : "wrong"));
    return value_text(m->verdicts, cid);
}

/* Conditions on a proposal without justification. */
static bool is_fresh(struct member *m, const json_t *record)
{
    json_t *received = member_received_of(m, record), *one;
    bool fresh = received && is_ahead(m, record) && (!value_is(record, "reason", "forced") || m->view >= m->quorum.n);
    size_t i;
    json_array_foreach(received, i, one) fresh = fresh && value_integer(json_object_get(one, "payload"), "view") == m->view;
    json_decref(received);
    return fresh;
}

static void vote(struct member *m, const char *phase, const char *record, json_t *lock)
{
    json_t *payload = json_pack("{sIssss}", "view", (json_int_t)m->view, "phase", phase, "record", record);
    if (lock) {
        json_decref(m->lock);
        m->lock = json_incref(lock);
    }
    json_object_set(m->own, phase, payload);
    member_persist(m);
    json_t *envelope = member_sign(m, "vote", json_deep_copy(payload));
    json_decref(payload);
    if (envelope)
        member_send(m, json_deep_copy(m->committee), json_pack("{s[o]}", "documents", envelope));
    m->repeated_at = m->now; /* twice in a view at most: what was said before is told again within three intervals of its begin */
}

bool member_rule_prepare(struct member *m)
{
    if (!in_voting(m) || m->view < 0 || !member_may_sign(m) || json_object_get(m->own, "prepare") ||
        json_object_get(m->own, "commit"))
        return false;
    const json_t *proposal = member_statement(m, "proposal", m->view, "", committee_leader(m->committee, m->view));
    const json_t *payload = json_object_get(proposal, "payload"), *justification = json_object_get(payload, "justification");
    const char *cid = value_text(payload, "record");
    const json_t *record = json_object_get(m->records, cid);
    bool justified = json_is_object(justification);
    if (!record)
        return false;
    if (justified &&
        (!value_is(justification, "record", cid) || lock_view(justification) >= m->view || !lock_valid(m, justification)))
        return false;
    if (m->lock && !value_is(m->lock, "record", cid) && lock_view(justification) < lock_view(m->lock))
        return false;
    if (strcmp(judge(m, cid, record), "valid") || (!justified && !is_fresh(m, record)))
        return false;
    char name[CID_TEXT];
    snprintf(name, sizeof name, "%s", cid);
    vote(m, "prepare", name, NULL);
    return true;
}

/* Votes of one phase and view for one record: did -> envelope. New reference. */
static json_t *votes_for(const struct member *m, int64_t view, const char *phase, const char *record)
{
    json_t *votes = json_object(), *did;
    size_t i;
    json_array_foreach(m->committee, i, did)
    {
        const json_t *document = member_statement(m, "vote", view, phase, json_string_value(did));
        if (document && value_is(json_object_get(document, "payload"), "record", record))
            json_object_set(votes, json_string_value(did), json_object_get(document, "envelope"));
    }
    return votes;
}

/* A certificate from the votes held, or one that was sent; new reference, NULL. */
static json_t *certificate_for(struct member *m, int64_t view, const char *phase, const char *record)
{
    json_t *votes = votes_for(m, view, phase, record), *certificate = NULL;
    char key[160];
    if ((int64_t)json_object_size(votes) >= m->quorum.q)
        certificate = certificate_make(m->rules, m->round, view, phase, record, votes, m->quorum.q);
    json_decref(votes);
    snprintf(key, sizeof key, "%lld/%s", (long long)view, record);
    return certificate || strcmp(phase, "prepare") ? certificate : json_incref(json_object_get(m->prepares, key));
}

bool member_rule_commit(struct member *m)
{
    const char *cid;
    json_t *record;
    if (!in_voting(m) || m->view < 0 || !member_may_sign(m) || json_object_get(m->own, "commit") ||
        (m->prepare_votes < m->quorum.q && !json_object_size(m->prepares)))
        return false;
    json_object_foreach(m->records, cid, record)
    {
        json_t *certificate = certificate_for(m, m->view, "prepare", cid);
        if (!certificate)
            continue;
        bool held = !strcmp(judge(m, cid, record), "valid");
        if (held) {
            char name[CID_TEXT];
            snprintf(name, sizeof name, "%s", cid);
            vote(m, "commit", name, certificate);
        }
        json_decref(certificate);
        if (held)
            return true;
    }
    return false;
}

/* q commit votes of any one view for a record that is held, or a commit certificate. */
bool member_rule_final(struct member *m)
{
    const char *cid, *key;
    json_t *record, *document;
    if (!m->committee || m->phase >= PHASE_DONE || (m->commit_votes < m->quorum.q && !json_object_size(m->commits)) ||
        (m->final_at.news == m->news && m->final_at.records == json_object_size(m->records) &&
         m->final_at.commits == json_object_size(m->commits)))
        return false;
    json_object_foreach(m->records, cid, record)
    {
        json_t *certificate = json_incref(json_object_get(m->commits, cid));
        int64_t tried = -1;
        json_object_foreach(m->statements, key, document)
        {
            const json_t *payload = json_object_get(document, "payload");
            int64_t view = value_integer(payload, "view");
            if (certificate || view == tried || !value_is(payload, "phase", "commit") || !value_is(payload, "record", cid))
                continue;
            certificate = certificate_for(m, view, "commit", cid);
            tried = view;
        }
        bool final = certificate && final_check(m->rules, m->previous, record, certificate, &m->signing, NULL);
        if (final) {
            json_t *kept = json_incref(record);
            member_finalise(m, kept, certificate);
            json_decref(kept);
        }
        json_decref(certificate);
        if (final)
            return true;
    }
    m->final_at.news = m->news;
    m->final_at.records = json_object_size(m->records);
    m->final_at.commits = json_object_size(m->commits);
    return false;
}

/* ---- repetition ----------------------------------------------------------------------------------------------------- */

static void add_record(const struct member *m, json_t *message, const char *cid)
{
    json_t *record = json_object_get(m->records, cid), *name;
    size_t i;
    if (!record || value_lists(json_object_get(message, "sent"), cid))
        return;
    json_array_append(json_object_get(message, "records"), record);
    json_array_append_new(json_object_get(message, "sent"), json_string(cid));
    json_array_foreach(json_object_get(record, "received"), i, name)
    {
        json_t *document = json_object_get(m->documents, json_string_value(name));
        if (document)
            json_array_append(json_object_get(message, "documents"), json_object_get(document, "envelope"));
    }
}

void member_repeat(struct member *m)
{
    static const char *const said[][3] = { { "received", "", "received" },
                                           { "proposal", "", "proposal" },
                                           { "vote", "prepare", "prepare" },
                                           { "vote", "commit", "commit" } };
    json_t *message = json_pack("{s[]s[]s[]s[]}", "documents", "records", "certificates", "sent");
    add_record(m, message, value_text(json_object_get(m->own, "proposal"), "record"));
    add_record(m, message, value_text(m->lock, "record"));
    if (m->lock)
        json_array_append(json_object_get(message, "certificates"), m->lock);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const json_t *document = member_statement(m, said[i][0], m->view, said[i][1], m->did);
        if (document && json_object_get(m->own, said[i][2]))
            json_array_append(json_object_get(message, "documents"), json_object_get(document, "envelope"));
    }
    json_object_del(message, "sent");
    m->repeated_at = m->now;
    member_send(m, json_deep_copy(m->committee), message);
}

/* Challenges, picks and equivocations of this member, and its enrolment, until a record lists them. */
static json_t *own_items(const struct member *m)
{
    json_t *list = json_array(), *document;
    const char *cid;
    json_object_foreach(m->documents, cid, document)
    {
        const json_t *payload = json_object_get(document, "payload");
        bool mine = value_is(payload, "signer", m->did) && !json_object_get(m->listed, cid);
        if (mine && (value_is(document, "type", "challenge") || value_is(document, "type", "pick") ||
                     value_is(document, "type", "equivocation")))
            json_array_append(list, json_object_get(document, "envelope"));
    }
    const json_t *closed = member_statement(m, "closed", 0, "", m->did);
    if (closed && member_may_sign(m))
        json_array_append(list, json_object_get(closed, "envelope"));
    bool in = value_find(json_object_get(m->previous, "members"), "did", m->did);
    json_t *enrolment = m->unproven ? m->unproven : in ? NULL : m->enrolment;
    if (enrolment && !value_find(json_object_get(m->previous, "convicted"), "did", m->did))
        json_array_append(list, enrolment);
    return list;
}

bool member_rule_repeat(struct member *m)
{
    if (!m->committee || m->phase >= PHASE_DONE)
        return false;
    if (m->now < m->repeated_at + member_interval(m) && m->repeated_at) {
        member_wake(m, m->repeated_at + member_interval(m));
        return false;
    }
    m->repeated_at = m->now ? m->now : 1;
    json_t *items = own_items(m);
    if (json_array_size(items))
        member_send(m, json_deep_copy(m->committee), json_pack("{sO}", "documents", items));
    json_decref(items);
    if (in_voting(m) && m->view >= 0 && member_may_sign(m))
        member_repeat(m);
    return true;
}
