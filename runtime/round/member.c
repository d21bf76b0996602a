#include "runtime/round/member_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/dispute.h"
#include "runtime/round/seed.h"

/* ---- small helps ---------------------------------------------------------------------------------------------------- */

void member_wake(struct member *m, int64_t at)
{
    if (at > m->now && at < m->wake)
        m->wake = at;
}

bool member_asked(const struct member *m, const char *kind, const char *name)
{
    char key[160];
    snprintf(key, sizeof key, "%s/%s", kind, name);
    return json_object_get(m->asked, key);
}

bool member_ask(struct member *m, const char *kind, const char *name)
{
    char key[160];
    snprintf(key, sizeof key, "%s/%s", kind, name);
    if (json_object_get(m->asked, key))
        return false;
    json_object_set_new(m->asked, key, json_integer(m->round));
    return true;
}

void member_act(struct member *m, enum action_kind kind, json_t *body)
{
    actions_add(m->out, kind, body);
}

void member_send(struct member *m, json_t *to, json_t *message)
{
    for (size_t i = json_array_size(to); i-- > 0;)
        if (!strcmp(json_string_value(json_array_get(to, i)), m->did))
            json_array_remove(to, i);
    member_act(m, ACTION_SEND, json_pack("{soso}", "to", to, "message", message));
}

void member_halt(struct member *m, const char *code, const char *message)
{
    m->phase = PHASE_HALTED;
    member_act(m, ACTION_HALT, json_pack("{ssss}", "code", code, "message", message));
}

int64_t member_interval(const struct member *m)
{
    int64_t quarter = m->rules->view_ms / 4;
    return quarter < 20 ? 20 : quarter > 5000 ? 5000 : quarter;
}

const json_t *member_record_of(const struct member *m, int64_t round)
{
    return json_object_get(json_array_get(m->finals, (size_t)round), "record");
}

const char *member_name_of(const struct member *m, int64_t round)
{
    return value_text(json_object_get(json_array_get(m->finals, (size_t)round), "certificate"), "record");
}

json_t *member_context_of(const struct member *m, int64_t round, const char *did)
{
    return record_memory_context(m->memory, m->rules, member_record_of(m, round - 1), member_record_of(m, round), did);
}

bool member_may_sign(const struct member *m)
{
    return m->seated && m->round > m->abstain && (m->round == 0 || !m->unproven);
}

static const char *phase_name(enum phase phase)
{
    static const char *const names[] = { "await_entropy", "training", "collecting", "voting", "done", "halted" };
    return names[phase];
}

void member_tell_state(struct member *m)
{
    bool leads = m->phase == PHASE_VOTING && !strcmp(committee_leader(m->committee, m->view), m->did);
    member_act(m, ACTION_STATE,
               json_pack("{sssIsIsb}", "phase", phase_name(m->phase), "round", (json_int_t)m->round, "view", (json_int_t)m->view,
                         "leads", leads));
}

/* ---- durable state -------------------------------------------------------------------------------------------------- */

/* The records and received documents that this member's votes and lock speak of: without them it could not repeat them. */
static void keep_record(const struct member *m, json_t *records, json_t *documents, const char *cid)
{
    json_t *record = json_object_get(m->records, cid), *name;
    size_t i;
    if (!record || json_object_get(records, cid))
        return;
    json_object_set(records, cid, record);
    json_array_foreach(json_object_get(record, "received"), i, name)
    {
        json_t *held = json_object_get(m->documents, json_string_value(name));
        if (held)
            json_object_set(documents, json_string_value(name), json_object_get(held, "envelope"));
    }
}

static json_t *durable_value(const struct member *m)
{
    json_t *records = json_object(), *documents = json_object();
    keep_record(m, records, documents, value_text(m->lock, "record"));
    keep_record(m, records, documents, value_text(json_object_get(m->own, "proposal"), "record"));
    keep_record(m, records, documents, value_text(json_object_get(m->own, "prepare"), "record"));
    /* The lists go on changing in the same step: what is written is what they hold now. */
    return json_pack("{sssIsIsIsOsOsososOsososO*}", "run", m->rules->run, "round", (json_int_t)m->round, "view",
                     (json_int_t)m->view, "abstain", (json_int_t)m->abstain, "unproven", m->unproven ? m->unproven : json_null(),
                     "items", m->items ? m->items : json_null(), "checked", json_copy(m->checked), "own", json_copy(m->own),
                     "lock", m->lock ? m->lock : json_null(), "records", records, "documents", documents, "closed",
                     m->closed_list);
}

void member_persist(struct member *m)
{
    member_act(m, ACTION_PERSIST, json_pack("{ssso}", "key", "round", "value", durable_value(m)));
}

/* ---- the open round ------------------------------------------------------------------------------------------------- */

static void replace(json_t **slot, json_t *value)
{
    json_decref(*slot);
    *slot = value;
}

/* A record that lists the folder's own enrolment was made after the folder: nothing signed before it was for a later round. */
static void prove(struct member *m)
{
    if (m->unproven && json_object_get(m->listed, m->proof))
        replace(&m->unproven, NULL);
}

static void doubt(struct member *m, json_t *enrolment)
{
    char type[32];
    if (!json_is_object(enrolment))
        return;
    replace(&m->unproven, json_incref(enrolment));
    json_decref(m->signing.open(m->signing.context, enrolment, type, m->proof, NULL));
    prove(m);
}

/* Before the enrolment is sent: who comes back without it would begin anew with another. */
static bool rule_note(struct member *m)
{
    bool first = m->unproven && !m->noted;
    if (first)
        member_persist(m);
    m->noted = true;
    return first;
}

static void open_round(struct member *m, int64_t round)
{
    m->round = round;
    m->previous = round ? member_record_of(m, round - 1) : NULL;
    m->phase = PHASE_AWAIT;
    m->view = -1;
    replace(&m->disputable, disputes_entries(m->previous));
    m->shut = m->first_shut = 0;
    replace(&m->closed_list, NULL);
    replace(&m->committed, json_object());
    m->started = m->closed = m->first_closed = m->view_ends = m->settled_at = 0;
    m->seated = m->behind = false;
    replace(&m->block, NULL);
    replace(&m->committee, NULL);
    replace(&m->parts, NULL);
    replace(&m->items, NULL);
    replace(&m->checked, json_array());
    replace(&m->statements, json_object());
    replace(&m->seen, json_object());
    m->seen_most = -1;
    replace(&m->records, json_object());
    replace(&m->verdicts, json_object());
    replace(&m->namers, json_object());
    replace(&m->judged, json_object());
    m->plan[0] = m->made[0] = 0;
    memset(&m->lead_at, 0, sizeof m->lead_at);
    memset(&m->final_at, 0, sizeof m->final_at);
    replace(&m->unasked, NULL);
    replace(&m->unanswered, NULL);
    replace(&m->contributors, NULL);
    replace(&m->uncounted, NULL);
    replace(&m->enrolled, json_object());
    m->assigned = m->good = 0;
    m->prepare_votes = m->commit_votes = 0;
    replace(&m->prepares, json_object());
    replace(&m->commits, json_object());
    replace(&m->own, json_object());
    replace(&m->lock, NULL);
    replace(&m->received, NULL);
    replace(&m->lead_set, NULL);
    if (m->previous && record_is_last(m->rules, m->previous))
        m->phase = PHASE_DONE;
}

static void mark_listed(struct member *m, const json_t *record)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(record, "items"), i, item)
        json_object_set(m->listed, value_text(item, "cid"), json_object_get(record, "round"));
}

static size_t place_in_panel(const struct member *m)
{
    size_t i;
    json_t *seat;
    json_array_foreach(m->rules->panel, i, seat)
    {
        if (value_is(seat, "did", m->did))
            break;
    }
    return i;
}

/* places[i]: of seat i in a circle that the round's seed draws, the same for all who know the record. */
static void draw_circle(const struct member *m, const json_t *record, uint32_t *places, size_t panel)
{
    struct stream stream;
    struct hash seed;

    if (!hash_parse(value_text(record, "seed"), &seed)) /* round 0 */
        seed = seed_of(m->rules->run, 0, NULL, 0);
    for (size_t i = 0; i < panel; i++)
        places[i] = (uint32_t)i;
    stream_start(&stream, seed, "tellers", 0);
    stream_shuffle(&stream, places, panel);
}

/* Everyone; but of a panel of more than MEMBER_TELLERS each tells its share, so that nobody is told by more than so many, and in each round by
 * others: liars that sit side by side keep nobody in the dark for long. Who hears nothing asks. */
json_t *member_readers(const struct member *m, const json_t *record)
{
    json_t *to = json_array(), *item;
    const size_t panel = json_array_size(m->rules->panel), seat = place_in_panel(m);
    uint32_t *places = calloc(panel + 1, sizeof *places);
    size_t i, own;

    if (!places)
        abort();
    draw_circle(m, record, places, panel);
    own = seat < panel ? places[seat] : 0;
    json_array_foreach(m->rules->panel, i, item)
    {
        if ((places[i] + panel - own) % panel < MEMBER_TELLERS)
            json_array_append(to, json_object_get(item, "did"));
    }
    json_array_foreach(json_object_get(record, "members"), i, item)
    {
        if (value_is(item, "role", "trainer") && (i + panel - own) % panel < MEMBER_TELLERS)
            json_array_append(to, json_object_get(item, "did"));
    }
    free(places);
    return to;
}

bool member_finalise(struct member *m, json_t *record, json_t *certificate)
{
    char cid[CID_TEXT], key[32];
    signing_name(&m->signing, record, VALUE_MOST, cid);
    bool verified = m->verified == (size_t)m->round && value_is(m->verdicts, cid, "valid");
    json_t *final = json_pack("{sOsOsb}", "record", record, "certificate", certificate, "verified", verified);
    json_array_append(m->finals, final);
    m->verified += verified;
    snprintf(key, sizeof key, "final/%lld", (long long)m->round);
    member_act(m, ACTION_PERSIST, json_pack("{ssso}", "key", key, "value", json_copy(final)));
    member_act(m, ACTION_FINAL,
               json_pack("{sIsOsO}", "round", (json_int_t)m->round, "record", record, "certificate", certificate));
    int64_t over = m->round - 2 < (int64_t)m->verified - 1 ? m->round - 2 : (int64_t)m->verified - 1;
    member_act(m, ACTION_CANCEL,
               json_pack("{sI}", "round", (json_int_t)over)); /* an unverified round's answers are still needed */
    member_forget_requests(m, over);
    mark_listed(m, record);
    prove(m);
    member_send(m, member_readers(m, record), json_pack("{s[{sOsO}]}", "finals", "record", record, "certificate", certificate));
    json_decref(final);
    open_round(m, m->round + 1);
    if (m->abstain >= m->round)
        member_persist(m); /* a restart in the next round must still know it */
    member_forget(m);
    if (m->phase == PHASE_DONE)
        member_act(m, ACTION_DONE, json_pack("{sI}", "round", (json_int_t)m->round - 1));
    member_tell_state(m);
    return true;
}

/* await_entropy -> training */
static bool rule_begin(struct member *m)
{
    struct hash entropy;
    if (m->phase != PHASE_AWAIT)
        return false;
    if (m->round > 0 && !m->block) {
        char name[32];
        snprintf(name, sizeof name, "%lld", (long long)m->round);
        if (member_ask(m, "block", name))
            member_act(m, ACTION_AWAIT_BLOCK, json_pack("{sI}", "height", (json_int_t)value_integer(m->previous, "next_height")));
        return false;
    }
    if (m->round > 0) {
        if (!hash_parse(value_text(m->block, "entropy"), &entropy))
            return false;
        m->seed = seed_of(m->rules->run, (uint64_t)m->round, entropy.bytes, HASH_SIZE);
    }
    m->committee = committee_draw(m->rules, m->previous, m->round, m->round ? &m->seed : NULL);
    m->quorum = committee_quorum(m->rules, m->committee);
    m->seated = value_lists(m->committee, m->did);
    m->parts = amendment_trains(m->rules, m->previous, m->round)
                   ? record_memory_parts(m->memory, m->rules, member_name_of(m, m->round - 1), m->previous, m->seed)
                   : json_array();
    json_t *part;
    size_t i;
    json_array_foreach(m->parts, i, part) m->assigned += json_array_size(json_object_get(part, "shards")) > 0;
    m->started = m->now;
    m->shut = m->closed_list ? m->now : 0; /* said before a restart */
    m->phase = m->view >= 0 ? PHASE_VOTING : PHASE_TRAINING;
    member_tell_state(m);
    return true;
}

static void take_event(struct member *m, const struct event *event)
{
    json_t *body = event->body;
    switch (event->kind) {
    case EVENT_MESSAGE:
        member_take_message(m, body);
        break;
    case EVENT_HEAD:
        if (value_integer(body, "height") >= value_integer(m->head, "height"))
            replace(&m->head, json_incref(body));
        break;
    case EVENT_BLOCK:
        if (m->phase == PHASE_AWAIT && m->previous && value_integer(body, "height") >= value_integer(m->previous, "next_height"))
            replace(&m->block, json_pack("{sOsOsO}", "height", json_object_get(body, "height"), "hash",
                                         json_object_get(body, "hash"), "entropy", json_object_get(body, "entropy")));
        break;
    case EVENT_FUNDED:
        m->funded = value_integer(body, "time");
        break;
    case EVENT_CHECKED:
        member_coded(m, value_text(body, "cid"), json_object_get(body, "code"));
        break;
    case EVENT_REPLAYED:
        json_object_set(m->replays, value_text(body, "cid"), json_object_get(body, "index"));
        break;
    case EVENT_MOVED:
        json_object_set(m->moves, value_text(body, "key"), json_object_get(body, "object"));
        break;
    case EVENT_COMPUTED:
        m->answers++;
        json_object_set_new(
            m->results, value_text(body, "hash"),
            json_pack("{sOsO?}", "code", json_object_get(body, "code"), "result", json_object_get(body, "result")));
        break;
    default:
        break;
    }
}

/* Someone is ahead, or nothing has been heard for long: ask for the round's final record. */
static bool rule_catch_up(struct member *m)
{
    int64_t wait = m->behind ? member_interval(m) : 4 * m->rules->view_ms;
    if (m->phase >= PHASE_DONE)
        return false;
    if (m->now < m->fetched_at + wait) {
        member_wake(m, m->fetched_at + wait);
        return false;
    }
    m->fetched_at = m->now;
    member_act(m, ACTION_FETCH, json_pack("{sI}", "round", (json_int_t)m->round));
    return true;
}

void member_step(struct member *m, const struct event *event, struct actions *out)
{
    static bool (*const rules[])(struct member *) = {
        rule_note,          rule_begin,          member_rule_final, member_rule_requests, member_rule_spots,  member_rule_picks,
        member_rule_shown,  member_rule_defend,  member_rule_shut,  member_rule_close,    member_rule_freeze, member_rule_enter,
        member_rule_jump,   member_rule_timeout, member_rule_lead,  member_rule_prepare,  member_rule_commit, member_rule_repeat,
        member_rule_verify, member_rule_release, rule_catch_up,
    };
    m->out = out;
    m->now = event->now;
    m->wake = INT64_MAX;
    if (m->phase == PHASE_HALTED)
        return;
    take_event(m, event);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && m->phase != PHASE_HALTED;)
        i = rules[i](m) ? 0 : i + 1;
    if (m->wake != INT64_MAX && (m->wake != m->timer || event->kind == EVENT_TIME)) {
        m->timer = m->wake;
        member_act(m, ACTION_TIMER, json_pack("{sI}", "at", (json_int_t)m->wake));
    }
    m->out = NULL;
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static bool restore_finals(struct member *m, json_t *finals, struct error *err)
{
    size_t i;
    json_t *final;
    json_array_foreach(finals, i, final)
    {
        const json_t *record = json_object_get(final, "record");
        if (value_integer(record, "round") != (int64_t)i || !value_is(record, "run", m->rules->run))
            return error_set(err, ERROR_CONFLICT, "use the folder of this run",
                             "member: the records of this folder are not those of the run");
        json_array_append(m->finals, final);
        m->verified += m->verified == i && json_is_true(json_object_get(final, "verified"));
        mark_listed(m, record);
    }
    return true;
}

/* What was said before the restart is signed again, which gives the same bytes, and repeated by the rules. */
static void restore_round(struct member *m, json_t *durable)
{
    static const char *const said[][2] = {
        { "received", "received" }, { "proposal", "proposal" }, { "prepare", "vote" }, { "commit", "vote" }
    };
    json_t *own = json_object_get(durable, "own"), *item;
    const char *name;
    m->abstain = value_integer(durable, "abstain");
    m->noted = true;
    doubt(m, json_object_get(durable, "unproven"));
    if (value_integer(durable, "round") != m->round)
        return;
    m->view = value_integer(durable, "view");
    replace(&m->own, json_deep_copy(own));
    replace(&m->checked, json_deep_copy(json_object_get(durable, "checked")));
    if (json_is_array(json_object_get(durable, "items")))
        replace(&m->items, json_deep_copy(json_object_get(durable, "items")));
    if (json_is_object(json_object_get(durable, "lock")))
        replace(&m->lock, json_incref(json_object_get(durable, "lock")));
    json_object_update(m->records, json_object_get(durable, "records"));
    json_object_foreach(json_object_get(durable, "documents"), name, item)
    {
        json_object_set_new(m->wanted, name, json_integer(0));
        member_take(m, item);
    }
    if (json_is_array(json_object_get(durable, "closed"))) {
        replace(&m->closed_list, json_deep_copy(json_object_get(durable, "closed")));
        json_decref(member_sign_closed(m));
    }
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if ((item = json_object_get(m->own, said[i][0])))
            json_decref(member_sign(m, said[i][1], json_deep_copy(item)));
}

struct member *member_new(const struct member_start *start, struct error *err)
{
    struct member *m = calloc(1, sizeof *m);
    struct actions unused = { 0 };
    json_t **const maps[] = { &m->documents, &m->by_signer,    &m->listed,  &m->wanted, &m->codes,   &m->moves,
                              &m->replays,   &m->false_claims, &m->results, &m->asked,  &m->answered };
    if (!m)
        abort();
    m->rules = start->rules;
    m->signing = start->signing;
    m->memory = start->memory ? start->memory : &m->own_memory;
    m->enrolment = json_incref(start->enrolment);
    m->abstain = -1;
    m->news = m->answers = 1;
    m->finals = json_array();
    m->spots = json_array();
    snprintf(m->did, sizeof m->did, "%s", start->did);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        *maps[i] = json_object();
    m->head = json_pack("{sisi}", "height", 0, "time", 0);
    bool ok = restore_finals(m, start->finals, err);
    if (ok && start->durable && !value_is(start->durable, "run", m->rules->run))
        ok = error_set(err, ERROR_CONFLICT, "use the folder of this run", "member: the durable state belongs to another run");
    if (!ok) {
        member_free(m);
        return NULL;
    }
    open_round(m, (int64_t)json_array_size(m->finals));
    m->out = &unused;
    if (start->durable)
        restore_round(m, start->durable);
    else if (start->fresh)
        doubt(m, start->enrolment);
    if (m->enrolment)
        member_take(m, m->enrolment);
    if (m->unproven)
        member_take(m, m->unproven);
    m->out = NULL;
    actions_free(&unused);
    return m;
}

void member_free(struct member *m)
{
    if (!m)
        return;
    json_t *const owned[] = { m->enrolment, m->finals,      m->documents,    m->listed,       m->wanted,    m->codes,
                              m->moves,     m->replays,     m->results,      m->asked,        m->answered,  m->head,
                              m->block,     m->committee,   m->parts,        m->items,        m->checked,   m->statements,
                              m->seen,      m->records,     m->verdicts,     m->namers,       m->judged,    m->prepares,
                              m->commits,   m->own,         m->lock,         m->lead_set,     m->spots,     m->by_signer,
                              m->unasked,   m->unanswered,  m->contributors, m->uncounted,    m->enrolled,  m->unproven,
                              m->received,  m->closed_list, m->committed,    m->false_claims, m->disputable };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        json_decref(owned[i]);
    record_memory_clear(&m->own_memory);
    free(m);
}

int64_t member_round(const struct member *m)
{
    return m->round;
}

const char *member_phase(const struct member *m)
{
    return phase_name(m->phase);
}

int64_t member_view(const struct member *m)
{
    return m->view;
}

const json_t *member_last(const struct member *m)
{
    return m->previous;
}

const json_t *member_finals(const struct member *m)
{
    return m->finals;
}

const json_t *member_document(const struct member *m, const char *cid)
{
    return json_object_get(json_object_get(m->documents, cid), "envelope");
}
