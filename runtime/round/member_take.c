#include "runtime/round/member_state.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/membership.h"

/* ---- documents ------------------------------------------------------------------------------------------------------ */

static void statement_key(char key[192], const char *type, int64_t view, const char *phase, const char *did)
{
    snprintf(key, 192, "%s/%lld/%s/%s", type, (long long)view, phase, did);
}

const json_t *member_statement(const struct member *m, const char *type, int64_t view, const char *phase, const char *did)
{
    char key[192];
    statement_key(key, type, view, phase, did);
    return json_object_get(m->statements, key);
}

json_t *member_sign(struct member *m, const char *type, json_t *payload)
{
    struct error err = { 0 };
    json_object_set_new(payload, "version", json_integer(1));
    json_object_set_new(payload, "run", json_string(m->rules->run));
    json_object_set_new(payload, "signer", json_string(m->did));
    if (!json_object_get(payload, "round"))
        json_object_set_new(payload, "round", json_integer(m->round));
    json_t *envelope = m->signing.sign(m->signing.context, type, payload, &err);
    json_decref(payload);
    if (!envelope) {
        member_halt(m, "sign", err.message);
        return NULL;
    }
    member_take(m, envelope);
    return envelope;
}

static void report_equivocation(struct member *m, const char *did, json_t *first, json_t *second)
{
    json_t *held;
    char key[MEMBER_SIGNED];
    size_t i;
    if (!strcmp(did, m->did) || !value_integer(json_object_get(first, "payload"), "round") ||
        value_find(json_object_get(m->previous, "convicted"), "did", did))
        return;
    member_signed_key(key, "equivocation", m->did);
    json_array_foreach(json_object_get(m->by_signer, key), i, held)
    {
        const json_t *payload = json_object_get(held, "payload");
        if (value_is(payload, "did", did) && value_is(payload, "signer", m->did))
            return;
    }
    json_t *payload =
        json_pack("{sss[OO]}", "did", did, "statements", json_object_get(first, "envelope"), json_object_get(second, "envelope"));
    int64_t round = value_integer(json_object_get(first, "payload"), "round");
    json_object_set_new(payload, "round", json_integer(round));
    json_t *envelope = member_sign(m, "equivocation", payload);
    if (envelope && m->committee)
        member_send(m, json_deep_copy(m->committee), json_pack("{s[O]}", "documents", envelope));
    json_decref(envelope);
}

static int64_t held_of(const struct member *m, const char *type, const char *did, int64_t round, json_t **first)
{
    int64_t count = 0;
    json_t *held;
    char key[MEMBER_SIGNED];
    size_t i;
    member_signed_key(key, type, did);
    json_array_foreach(json_object_get(m->by_signer, key), i, held)
    {
        const json_t *payload = json_object_get(held, "payload");
        if (!value_is(held, "type", type) || !value_is(payload, "signer", did) ||
            (round >= 0 && value_integer(payload, "round") != round))
            continue;
        if (!count++ && first)
            *first = held;
    }
    return count;
}

/* In the run, or about to be: a trainer that the next record takes in may be heard of before that record is. */
static bool knows_signer(const struct member *m, const char *did)
{
    return value_find(json_object_get(m->previous, "members"), "did", did) || value_find(m->rules->panel, "did", did) ||
           held_of(m, "enrolment", did, -1, NULL);
}

static void keep(struct member *m, const json_t *document)
{
    m->news++;
    if (json_object_get(m->documents, value_text(document, "cid")))
        return;
    if (value_is(document, "type", "received"))
        member_make_room_said(m, json_object_get(document, "payload"));
    json_object_set(m->documents, value_text(document, "cid"), (json_t *)document);
    member_kept(m, document);
}

/* Who may speak of others' work: the panel, members, and whoever has left while its work, or what it said of others', may still be judged. Not
 * who merely asks to enrol: such a key costs nothing. */
static bool may_claim(const struct member *m, const char *did)
{
    return value_find(m->rules->panel, "did", did) || membership_concerns(m->previous, did);
}

/* Neither asks for more than its signer's right to say it. */
static bool is_claim(const char *type)
{
    return !strcmp(type, "challenge") || !strcmp(type, "opening") || !strcmp(type, "pick") || !strcmp(type, "equivocation");
}

/* Contributions and their commitments, enrolments, leaves, moves of disputes, equivocations: what a record may list. */
static void take_item(struct member *m, json_t *document)
{
    const char *type = value_text(document, "type"), *cid = value_text(document, "cid");
    const json_t *payload = json_object_get(document, "payload");
    const char *did = value_text(payload, "signer");
    int64_t round = value_integer(payload, "round");
    json_t *first = NULL;
    if (json_object_get(m->documents, cid) || json_object_get(m->listed, cid))
        return;
    if (!strcmp(type, "contribution") || !strcmp(type, "commitment")) {
        if (round < m->round || round > m->round + 1 || !knows_signer(m, did))
            return;
        int64_t held = held_of(m, type, did, round, &first);
        if (held < MEMBER_ALIKE)
            keep(m, document);
        if (held == 1)
            report_equivocation(m, did, first, document);
        return;
    }
    if (!strcmp(type, "amendment")) {
        if (!strcmp(amendment_code(m->rules, m->previous, payload), "ok") && held_of(m, type, did, -1, NULL) < MEMBER_ENROLS)
            keep(m, document);
        return;
    }
    bool enrols = !strcmp(type, "enrolment") || !strcmp(type, "leave");
    if (enrols && strcmp(membership_code(m->rules, m->previous, type, payload), "ok"))
        return; /* from anyone in the world: not worth memory */
    if (!enrols && (!may_claim(m, did) || !is_claim(type)))
        return;
    if (!strcmp(type, "equivocation") && !equivocation_check(m->rules, payload, &m->signing, NULL))
        return;
    if (held_of(m, type, did, -1, NULL) < (enrols ? MEMBER_ENROLS : MEMBER_CLAIMS) && member_has_room(m, document))
        keep(m, document);
}

/* This key said something in the open round that this folder does not know of: it was wiped or restored. */
static bool forgot_own(struct member *m, const char *did, int64_t view)
{
    return !strcmp(did, m->did) && m->phase != PHASE_DONE && view >= m->view;
}

static void abstain_from_here(struct member *m)
{
    m->abstain = m->round + 1;
    member_persist(m);
}

static void answer_behind(struct member *m, const char *did, int64_t round)
{
    json_t *finals = json_array();
    int64_t last = json_integer_value(json_object_get(m->answered, did));
    if (!strcmp(did, m->did) || (json_object_get(m->answered, did) && m->now < last + member_interval(m))) {
        json_decref(finals);
        return;
    }
    json_object_set_new(m->answered, did, json_integer(m->now));
    for (int64_t r = round < 0 ? 0 : round; r < m->round && r < round + 16; r++)
        json_array_append_new(finals, json_pack("{sOsO}", "record", member_record_of(m, r), "certificate",
                                                json_object_get(json_array_get(m->finals, (size_t)r), "certificate")));
    member_send(m, json_pack("[s]", did), json_pack("{so}", "finals", finals));
}

/* Received, proposal, vote, closed: one a signer, view and phase. */
static void take_statement(struct member *m, json_t *document)
{
    const json_t *payload = json_object_get(document, "payload");
    const char *type = value_text(document, "type"), *did = value_text(payload, "signer");
    int64_t round = value_integer(payload, "round"), view = value_integer(payload, "view");
    char key[192];
    if (!value_find(m->rules->panel, "did", did) || view < 0)
        return;
    if (round < m->round) {
        answer_behind(m, did, round);
        return;
    }
    m->behind |= round > m->round;
    statement_key(key, type, view, value_text(payload, "phase"), did);
    json_t *known = round == m->round ? json_object_get(m->statements, key) : NULL;
    if (known && value_is(known, "cid", value_text(document, "cid")))
        return; /* repeated */
    if (round > m->round || (!strcmp(type, "received") && !record_memory_sound(m->memory, value_text(document, "cid"), payload)))
        return;
    bool closes = !strcmp(type, "closed"); /* said before there are views */
    if (!closes)
        member_see(m, did, view);
    if (view > (m->view < 0 ? 0 : m->view) + MEMBER_VIEWS)
        return;
    if (known) {
        report_equivocation(m, did, known, document);
        return;
    }
    json_object_set(m->statements, key, document);
    m->prepare_votes += !strcmp(type, "vote") && value_is(payload, "phase", "prepare");
    m->commit_votes += !strcmp(type, "vote") && value_is(payload, "phase", "commit");
    m->news++;
    if (!strcmp(type, "received"))
        keep(m, document);
}

static bool is_statement(const char *type)
{
    return !strcmp(type, "received") || !strcmp(type, "proposal") || !strcmp(type, "vote") || !strcmp(type, "closed");
}

/* An envelope that was opened. */
static void take_opened(struct member *m, json_t *envelope, const char *type, const char *cid, json_t *payload)
{
    json_t *document =
        json_pack("{sssssOsOsI}", "type", type, "cid", cid, "payload", payload, "envelope", envelope, "at", (json_int_t)m->now);
    if (is_statement(type))
        take_statement(m, document);
    else
        take_item(m, document);
    if (json_object_get(m->wanted, cid) && !json_object_get(m->documents, cid) &&
        (strcmp(type, "received") ||
         (value_find(m->rules->panel, "did", value_text(payload, "signer")) && record_memory_sound(m->memory, cid, payload))))
        keep(m, document);
    json_decref(document);
}

void member_take(struct member *m, json_t *envelope)
{
    char type[32], cid[CID_TEXT];
    json_t *payload = m->signing.open(m->signing.context, envelope, type, cid, NULL);
    if (payload && value_is(payload, "run", m->rules->run))
        take_opened(m, envelope, type, cid, payload);
    json_decref(payload);
}

/* From outside: statements of this key are looked at before they are taken in. */
static void take_outside(struct member *m, json_t *envelope)
{
    char type[32], cid[CID_TEXT];
    json_t *payload = m->signing.open(m->signing.context, envelope, type, cid, NULL);
    int64_t view = value_integer(payload, "view");
    if (!payload || !value_is(payload, "run", m->rules->run) || (!is_statement(type) && json_object_get(m->documents, cid))) {
        json_decref(payload);
        return;
    }
    if (is_statement(type) && value_integer(payload, "round") == m->round && value_is(payload, "signer", m->did) &&
        !member_statement(m, type, view, value_text(payload, "phase"), m->did) && forgot_own(m, m->did, view) &&
        m->abstain < m->round)
        abstain_from_here(m);
    else
        take_opened(m, envelope, type, cid, payload);
    json_decref(payload);
}

/* Asks for documents that are not held, each at most once an interval. True when all are held. */
bool member_fetch(struct member *m, const json_t *cids)
{
    json_t *missing = json_array(), *name;
    bool held = true;
    size_t i;
    json_array_foreach((json_t *)cids, i, name)
    {
        const char *cid = json_string_value(name);
        json_t *last = json_object_get(m->wanted, cid);
        if (json_object_get(m->documents, cid))
            continue;
        held = false;
        if (!last || json_integer_value(last) + member_interval(m) <= m->now) {
            json_object_set_new(m->wanted, cid, json_integer(m->now));
            json_array_append(missing, name);
        }
        member_wake(m, json_integer_value(json_object_get(m->wanted, cid)) + member_interval(m));
    }
    if (json_array_size(missing))
        member_act(m, ACTION_FETCH, json_pack("{so}", "documents", missing));
    else
        json_decref(missing);
    return held;
}

/* ---- certificates and finals ---------------------------------------------------------------------------------------- */

static void take_certificate(struct member *m, json_t *certificate)
{
    char key[160];
    bool commit = value_is(certificate, "phase", "commit");
    snprintf(key, sizeof key, "%lld/%s", (long long)value_integer(certificate, "view"), value_text(certificate, "record"));
    const char *name = commit ? value_text(certificate, "record") : key;
    json_t *known = commit ? m->commits : m->prepares;
    if (!m->committee || json_object_get(known, name))
        return;
    if (certificate_check(m->rules, certificate, commit ? "commit" : "prepare", m->round, m->committee, &m->signing, NULL))
        json_object_set(known, name, certificate);
}

/* Only a record that someone of the panel speaks of may take up memory. */
static void take_record(struct member *m, json_t *record)
{
    char cid[CID_TEXT], namer[MEMBER_DID];
    if (value_integer(record, "round") != m->round || !value_is(record, "run", m->rules->run) ||
        !signing_name(&m->signing, record, m->rules->record_most, cid) || json_object_get(m->records, cid))
        return;
    snprintf(namer, sizeof namer, "%s", member_namer_of(m, cid, ""));
    if (!*namer && !member_is_certified(m, cid))
        return;
    if (*namer)
        member_make_room(m, namer);
    json_object_set_new(m->namers, cid, json_string(namer));
    json_object_set(m->records, cid, record);
    m->news++;
}

static void take_final(struct member *m, json_t *final)
{
    json_t *record = json_object_get(final, "record"), *certificate = json_object_get(final, "certificate");
    int64_t round = value_integer(record, "round");
    if (round == m->round && m->phase < PHASE_DONE &&
        final_check(m->rules, m->previous, record, certificate, &m->signing, NULL)) {
        member_finalise(m, record, certificate);
    } else if (round >= 0 && round < m->round && !json_equal(record, member_record_of(m, round))) {
        const json_t *before = round ? member_record_of(m, round - 1) : NULL;
        if (final_check(m->rules, before, record, certificate, &m->signing, NULL))
            member_halt(m, "conflict", "two certified records for one round");
    }
}

void member_take_message(struct member *m, json_t *message)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(message, "finals"), i, item) take_final(m, item);
    json_array_foreach(json_object_get(message, "certificates"), i, item) take_certificate(m, item);
    json_array_foreach(json_object_get(message, "documents"), i, item) take_outside(m, item);
    json_array_foreach(json_object_get(message, "records"), i, item) take_record(m, item);
}
