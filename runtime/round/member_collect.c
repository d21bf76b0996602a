#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/assignment.h"
#include "runtime/round/deposit.h"
#include "runtime/round/fold.h"
#include "runtime/round/hardware.h"
#include "runtime/round/member_state.h"
#include "runtime/round/membership.h"

static bool is_train_round(const struct member *m)
{
    return amendment_trains(m->rules, m->previous, m->round);
}

/* The plan of the open round: NULL until its answer is known; null when there is none. */
static const json_t *plan_of(struct member *m)
{
    const json_t *found = *m->plan ? json_object_get(m->results, m->plan) : NULL;
    if (!found) {
        json_t *request = fold_plan_request(m->rules, m->previous, m->round);
        fold_hash(request, m->plan);
        if (member_ask(m, "compute", m->plan))
            member_act(m, ACTION_COMPUTE,
                       json_pack("{sssOsI}", "hash", m->plan, "request", request, "round", (json_int_t)m->round));
        json_decref(request);
    }
    if (!found)
        return NULL;
    const json_t *plan = fold_plan_in(m->rules, found);
    return plan ? plan : json_null();
}

void member_ask_replay(struct member *m, const char *cid, const char *did, int64_t round, bool first)
{
    if (member_asked(m, "replay", cid))
        return;
    json_t *document = json_object_get(json_object_get(m->documents, cid), "payload");
    json_t *context = member_context_of(m, round, did);
    if (!context || !member_ask(m, "replay", cid)) {
        json_decref(context);
        return;
    }
    member_act(
        m, ACTION_REPLAY,
        json_pack("{sssO?soso*}", "cid", cid, "document", document, "context", context, "first", first ? json_true() : NULL));
}

static const char *contribution_code(struct member *m, const json_t *document)
{
    const json_t *payload = json_object_get(document, "payload"), *part = NULL;
    const char *cid = value_text(document, "cid"), *did = value_text(payload, "signer");
    const json_t *code = json_object_get(m->codes, cid), *plan;
    if (code) /* it was asked for, so all the rest is in order */
        return json_string_value(code);
    if (!(plan = plan_of(m)))
        return NULL;
    part = value_find(m->parts, "did", did);
    if (!json_array_size(json_object_get(part, "shards")))
        return "unassigned";
    if (json_is_null(plan))
        return "plan";
    const char *committed = member_commitment_code(m, document);
    if (!committed || strcmp(committed, "ok"))
        return committed;
    if (member_ask(m, "check", cid))
        member_act(m, ACTION_CHECK,
                   json_pack("{sssOsosI}", "cid", cid, "document", payload, "context",
                             assignment_context_in(m->rules, m->previous, m->parts, m->round, m->seed, plan, did), "limit_ms",
                             (json_int_t)(2 * m->rules->view_ms)));
    return NULL;
}

/* An enrolment that may be taken is, while its deposit stands. Asked once a round; what was said before holds until the answer. */
static const char *enrolment_code(struct member *m, const json_t *document)
{
    const json_t *payload = json_object_get(document, "payload");
    const char *cid = value_text(document, "cid"), *did = value_text(payload, "signer"), *role = value_text(payload, "role");
    const char *code = membership_code(m->rules, m->previous, "enrolment", payload), *amount = deposit_due(m->rules, did, role);
    char name[CID_TEXT + 24];
    if (strcmp(code, "ok") || !amount || value_find(json_object_get(m->previous, "deposits"), "did", did))
        return code;
    snprintf(name, sizeof name, "%s/%lld", cid, (long long)m->round);
    if (member_ask(m, "deposit", name))
        member_act(m, ACTION_DEPOSIT,
                   json_pack("{sssssssOsssI}", "cid", cid, "did", did, "role", role, "account",
                             json_object_get(payload, "account"), "amount", amount, "round", (json_int_t)m->round));
    code = json_string_value(json_object_get(m->codes, cid));
    return !code || !strcmp(code, "ok") ? code : "";
}

/* The code under which a document would be listed; NULL while it is not known; "" when it is no item of this round. */
static const char *item_code(struct member *m, const json_t *document)
{
    const char *type = value_text(document, "type");
    const json_t *payload = json_object_get(document, "payload");
    if (json_object_get(m->listed, value_text(document, "cid")) || !strcmp(type, "received") || !strcmp(type, "commitment"))
        return "";
    if (!strcmp(type, "contribution"))
        return is_train_round(m) && value_integer(payload, "round") == m->round ? contribution_code(m, document) : "";
    if (!strcmp(type, "challenge") || !strcmp(type, "opening") || !strcmp(type, "pick"))
        return m->previous ? member_move_code(m, document) : "";
    if (!strcmp(type, "equivocation"))
        return "ok";
    if (!strcmp(type, "amendment"))
        return amendment_code(m->rules, m->previous, payload);
    return strcmp(type, "enrolment") ? membership_code(m->rules, m->previous, type, payload) : enrolment_code(m, document);
}

/* What stands in an object, in its order. New reference. */
static json_t *values_of(json_t *object)
{
    json_t *list = json_array(), *value;
    const char *name;
    json_object_foreach(object, name, value) json_array_append(list, value);
    return list;
}

static bool is_move(const json_t *document)
{
    return value_is(document, "type", "challenge") || value_is(document, "type", "opening") || value_is(document, "type", "pick");
}

/* What there is to ask about a document is asked once it can be; what a move needs, others may still bring. A code that is not empty stands for
 * the round. */
bool member_rule_requests(struct member *m)
{
    json_t *document;
    size_t i;
    if (!m->seated || m->items || m->phase == PHASE_AWAIT || m->phase >= PHASE_VOTING)
        return false;
    bool known = !is_train_round(m) || plan_of(m);
    if (!m->unasked)
        m->unasked = values_of(m->documents);
    json_t *left = json_array();
    json_array_foreach(m->unasked, i, document)
    {
        const char *code = item_code(m, document);
        bool waits = !known || (!code && member_replicates(m) && !member_asked(m, "check", value_text(document, "cid")));
        bool undecided = is_move(document) && (!code || !*code);
        if (undecided || (waits && value_is(document, "type", "contribution")))
            json_array_append(left, document);
    }
    json_decref(m->unasked);
    m->unasked = left;
    member_take_turn(m, left);
    return false;
}

/* ---- spot checks of the round before -------------------------------------------------------------------------------- */

void member_challenge(struct member *m, const char *cid, int64_t round, int64_t index)
{
    json_t *payload = json_pack("{sssI}", "contribution", cid, "index", (json_int_t)index);
    json_object_set_new(payload, "round", json_integer((json_int_t)round));
    json_t *envelope = member_sign(m, "challenge", payload);
    if (envelope)
        member_send(m, json_deep_copy(m->committee), json_pack("{s[o]}", "documents", envelope));
}

/* What the seed gives this member to replay joins what it still owes of rounds before, as long as that may be challenged: a replay may take longer
 * than a round. */
static void draw_spots(struct member *m)
{
    json_t *all, *spot;
    size_t i;
    m->spots_of = m->round;
    for (i = json_array_size(m->spots); i-- > 0;)
        if (value_integer(json_array_get(m->spots, i), "round") + m->rules->challenge_rounds < m->round)
            json_array_remove(m->spots, i);
    if (!m->seated ||
        (!value_is(m->previous, "kind", "train") && !(m->rules->replicas > 1 && value_is(m->previous, "kind", "skip"))))
        return;
    all = assignment_spots(m->rules, m->previous, m->seed, m->committee);
    json_array_foreach(all, i, spot)
    {
        json_object_set_new(spot, "round", json_integer((json_int_t)m->round - 1));
        if (value_is(spot, "member", m->did))
            json_array_append(m->spots, spot);
    }
    json_decref(all);
}

/* A contribution, and those that are accepted because they say the same. */
static void challenge_alike(struct member *m, const char *cid, int64_t round, int64_t index)
{
    json_t *lines = json_object_get(member_record_of(m, round), "contributions"), *line;
    const json_t *wrong = value_find(lines, "cid", cid);
    size_t i;
    member_challenge(m, cid, round, index);
    json_array_foreach(lines, i, line)
    {
        if (line != wrong && json_object_get(line, "group") && value_is(line, "group", value_text(wrong, "group")) &&
            value_is(line, "code", "ok") && value_is(wrong, "code", "ok") && member_ask(m, "challenge", value_text(line, "cid")))
            member_challenge(m, value_text(line, "cid"), round, index);
    }
}

static bool is_new(const struct member *m, const json_t *spot)
{
    return value_integer(spot, "round") == m->round - 1;
}

bool member_rule_spots(struct member *m)
{
    size_t i;
    json_t *spot;
    if (!m->committee || m->round < 2 || m->phase >= PHASE_DONE)
        return false;
    if (m->spots_of != m->round)
        draw_spots(m);
    json_array_foreach(m->spots, i, spot)
    {
        const char *cid = value_text(spot, "cid");
        const json_t *index = json_object_get(m->replays, cid);
        int64_t round = value_integer(spot, "round");
        if (!index) {
            member_ask_replay(m, cid, value_text(spot, "did"), round, false);
            if (is_new(m, spot) && m->phase == PHASE_COLLECTING && member_lacks_carry(m, cid, value_text(spot, "did"), round) &&
                member_ask(m, "demand", cid)) {
                member_challenge(m, cid, round, 0);
                return true;
            }
        } else if (json_integer_value(index) < 0 && m->seated && !m->items) {
            if (!value_lists(m->checked, cid))
                json_array_append_new(m->checked, json_string(cid));
            json_array_remove(m->spots, i--);
        } else if (json_integer_value(index) >= 0 && member_ask(m, "challenge", cid)) {
            challenge_alike(m, cid, round, json_integer_value(index));
            return true;
        }
    }
    return false;
}

/* Those of the round before; in a round without training, which is short, also those that are owed. */
static bool spots_pending(const struct member *m)
{
    size_t i;
    json_t *spot;
    json_array_foreach(m->spots, i, spot)
    {
        const char *cid = value_text(spot, "cid");
        if ((is_new(m, spot) || !is_train_round(m)) && !json_object_get(m->replays, cid) &&
            !member_lacks_carry(m, cid, value_text(spot, "did"), value_integer(spot, "round")))
            return true;
    }
    return false;
}

/* ---- when a round closes -------------------------------------------------------------------------------------------- */

/* One machine counts once, whatever it calls itself: of `of`, DID -> root. */
static void count_machine(json_t *of, const json_t *enrolment)
{
    char root[HASH_TEXT];
    const char *did;
    json_t *other;
    hardware_root(enrolment, root);
    json_object_foreach(of, did, other)
    {
        if (*root && !strcmp(json_string_value(other), root) && strcmp(did, value_text(enrolment, "signer")))
            return;
    }
    json_object_set_new(of, value_text(enrolment, "signer"), json_string(root));
}

/* Takes those enrolments into account that may be taken by now. */
static void count_enrolments(struct member *m)
{
    json_t *left = json_array(), *document;
    size_t i;
    if (!m->uncounted)
        m->uncounted = values_of(m->documents);
    json_array_foreach(m->uncounted, i, document)
    {
        const json_t *payload = json_object_get(document, "payload");
        const char *role = value_text(payload, "role"), *code;
        json_t *of = json_object_get(m->enrolled, role);
        if (!value_is(document, "type", "enrolment"))
            continue;
        code = enrolment_code(m, document);
        if (!code || strcmp(code, "ok")) {
            json_array_append(left, document);
            continue;
        }
        if (!of)
            json_object_set_new(m->enrolled, role, of = json_object());
        count_machine(of, payload);
    }
    json_decref(m->uncounted);
    m->uncounted = left;
}

/* Machines whose enrolments of this role may be taken. */
static size_t count_enrolled(const struct member *m, const char *role)
{
    return json_object_size(json_object_get(m->enrolled, role));
}

static bool is_of_round(const struct member *m, const json_t *document)
{
    return value_is(document, "type", "contribution") && value_integer(json_object_get(document, "payload"), "round") == m->round;
}

static void count_contribution(struct member *m, const json_t *document)
{
    const char *did = value_text(json_object_get(document, "payload"), "signer");
    if (!is_of_round(m, document))
        return;
    m->good += value_is(m->codes, value_text(document, "cid"), "ok");
    if (value_find(m->parts, "did", did))
        json_object_set_new(m->contributors, did, json_true());
}

static void count_contributions(struct member *m)
{
    const char *cid;
    json_t *document;
    if (m->contributors)
        return;
    m->good = 0;
    m->contributors = json_object();
    json_object_foreach(m->documents, cid, document) count_contribution(m, document);
}

void member_signed_key(char key[MEMBER_SIGNED], const char *type, const char *did)
{
    snprintf(key, MEMBER_SIGNED, "%s/%s", type, did);
}

void member_kept(struct member *m, const json_t *document)
{
    char key[MEMBER_SIGNED];
    member_signed_key(key, value_text(document, "type"), value_text(json_object_get(document, "payload"), "signer"));
    json_t *list = json_object_get(m->by_signer, key);
    if (!list)
        json_object_set_new(m->by_signer, key, list = json_array());
    json_array_append(list, (json_t *)document);
    if (m->unasked)
        json_array_append(m->unasked, (json_t *)document);
    if (m->unanswered)
        json_array_append(m->unanswered, (json_t *)document);
    if (m->uncounted)
        json_array_append(m->uncounted, (json_t *)document);
    if (m->contributors)
        count_contribution(m, document);
}

void member_coded(struct member *m, const char *cid, json_t *code)
{
    const json_t *document = json_object_get(m->documents, cid);
    bool counts = m->contributors && is_of_round(m, document), before = value_is(m->codes, cid, "ok");
    json_object_set(m->codes, cid, code);
    if (counts)
        m->good = m->good - before + value_is(m->codes, cid, "ok");
}

static bool passed(struct member *m, int64_t at)
{
    member_wake(m, at);
    return m->now >= at;
}

static bool may_close(struct member *m)
{
    const struct rules *rules = m->rules;
    if (m->round == 0) {
        size_t wanted = rules->allowed ? json_array_size(rules->allowed) : (size_t)(rules->trainers_quorum * rules->replicas);
        if (!m->funded)
            return false;
        count_enrolments(m);
        size_t held = count_enrolled(m, "trainer") + (rules->allowed ? count_enrolled(m, "auditor") : 0);
        return (held >= wanted && count_enrolled(m, "syncer") >= json_array_size(rules->panel)) ||
               passed(m, m->started + rules->round_ms);
    }
    if (amendment_pauses(rules, m->previous, m->round)) /* as long as any, so that no escrow expires sooner than it would have */
        return passed(m, m->started + rules->round_ms);
    if (!is_train_round(m)) /* a round without training is short, but whoever has a move to make needs the time of one */
        return passed(m, m->started + rules->close_ms) && (!member_awaits_moves(m) || passed(m, m->started + rules->round_ms));
    if (member_replicates(m))
        return member_has_shown(m);
    int64_t grace = value_integer(m->previous, "grace_ms");
    count_contributions(m);
    return json_object_size(m->contributors) >= m->assigned ||
           (m->good >= (size_t)amendment_quorum(rules, m->previous, m->round) && passed(m, m->started + grace)) ||
           passed(m, m->started + rules->round_ms);
}

/* t members have closed: whoever is slower does not wait much longer. */
static bool others_closed(struct member *m)
{
    if ((int64_t)json_object_size(m->seen) < m->quorum.t)
        return false;
    if (!m->first_closed)
        m->first_closed = m->now;
    return (m->round > 0 || m->funded) && passed(m, m->first_closed + m->rules->grace_min_ms);
}

bool member_rule_close(struct member *m)
{
    if (m->phase != PHASE_TRAINING || !m->seated || !(may_close(m) || others_closed(m)))
        return false;
    m->phase = PHASE_COLLECTING;
    m->closed = m->now;
    member_tell_state(m);
    return true;
}

/* ---- items ---------------------------------------------------------------------------------------------------------- */

/* Something is still to be answered that may be waited for: checks a few views long, replays and verdicts as long as a round. */
static bool must_wait(struct member *m)
{
    bool checks_over = passed(m, m->closed + 3 * m->rules->view_ms), replays_over = passed(m, m->started + m->rules->round_ms);
    if ((spots_pending(m) || member_defends(m)) && !replays_over)
        return true;
    if (!m->unanswered)
        m->unanswered = values_of(m->documents);
    for (size_t i = 0; i < json_array_size(m->unanswered);) {
        const json_t *document = json_array_get(m->unanswered, i);
        const char *code = item_code(m, document);
        bool move = is_move(document);
        if (!code && !(move ? replays_over : checks_over))
            return true;
        if (code && !move)
            json_array_remove(m->unanswered, i);
        else
            i++;
    }
    return false;
}

/* Contributions, and what the panel says: first where there is more than others take (received_check). The rest comes again. */
static bool goes_first(const struct member *m, const json_t *document)
{
    return value_is(document, "type", "contribution") ||
           value_find(m->rules->panel, "did", value_text(json_object_get(document, "payload"), "signer"));
}

static void list_item(struct member *m, const char *cid, const json_t *document)
{
    const char *code = item_code(m, document);
    bool contribution = value_is(document, "type", "contribution");
    int64_t ms =
        (contribution && member_replicates(m) ? member_committed_at(m, document) : value_integer(document, "at")) - m->started;
    if (code ? !*code : !contribution)
        return;
    json_array_append_new(m->items, json_pack("{sssssI}", "cid", cid, "code", code ? code : "missing", "ms",
                                              (json_int_t)(ms < 0 || !contribution ? 0 : ms)));
}

bool member_rule_freeze(struct member *m)
{
    const char *cid;
    json_t *document;
    if (m->phase != PHASE_COLLECTING || must_wait(m))
        return false;
    m->items = json_array();
    for (int first = 1; first >= 0; first--) {
        json_object_foreach(m->documents, cid, document)
        {
            if (goes_first(m, document) == first && json_array_size(m->items) < RECEIVED_ITEMS)
                list_item(m, cid, document);
        }
    }
    value_sort(m->items, "cid");
    value_sort(m->checked, NULL);
    m->phase = PHASE_VOTING;
    return true;
}
