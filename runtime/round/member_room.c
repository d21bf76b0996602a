#include <stdio.h>
#include <string.h>

#include "runtime/round/member_state.h"

/* ---- one document less -------------------------------------------------------------------------------------------------- */

static void take_out(json_t *list, const json_t *document)
{
    for (size_t i = json_array_size(list); i-- > 0;)
        if (json_array_get(list, i) == document)
            json_array_remove(list, i);
}

/* Wherever it is counted. */
static void let_go(struct member *m, json_t *document)
{
    const char *cid = value_text(document, "cid");
    char key[MEMBER_SIGNED];
    json_t *list;
    json_incref(document);
    member_signed_key(key, value_text(document, "type"), value_text(json_object_get(document, "payload"), "signer"));
    take_out(list = json_object_get(m->by_signer, key), document);
    if (!json_array_size(list))
        json_object_del(m->by_signer, key);
    take_out(m->unasked, document);
    take_out(m->unanswered, document);
    take_out(m->uncounted, document);
    if (value_is(document, "type", "contribution")) { /* counted again */
        json_decref(m->contributors);
        m->contributors = NULL;
    }
    json_object_del(m->documents, cid);
    json_decref(document);
}

static json_t *first_of(const struct member *m, const char *type, const char *did)
{
    char key[MEMBER_SIGNED];
    member_signed_key(key, type, did);
    return json_array_get(json_object_get(m->by_signer, key), 0);
}

/* ---- strangers ---------------------------------------------------------------------------------------------------------- */

/* Whoever asks to be in without being named by the spec or a record: such keys cost nothing. */
static bool is_stranger(const struct member *m, const json_t *document)
{
    const char *did = value_text(json_object_get(document, "payload"), "signer");
    return value_is(document, "type", "enrolment") && !json_object_get(m->listed, value_text(document, "cid")) &&
           !value_find(json_object_get(m->previous, "members"), "did", did) && !value_find(m->rules->panel, "did", did) &&
           !value_lists(m->rules->allowed, did);
}

/* This member has said that it has it: who folds its list asks it for the document. Items are in order of their CIDs. */
static bool is_said(const struct member *m, const char *cid)
{
    size_t low = 0, high = json_array_size(m->items);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(value_text(json_array_get(m->items, middle), "cid"), cid);
        if (!order)
            return true;
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return json_object_get(m->listed, cid);
}

static void let_go_of(struct member *m, const char *type, const char *did)
{
    char key[MEMBER_SIGNED];
    json_t *held, *all;
    size_t i;
    member_signed_key(key, type, did);
    all = json_copy(json_object_get(m->by_signer, key));
    json_array_foreach(all, i, held)
    {
        if (!is_said(m, value_text(held, "cid")))
            let_go(m, held);
    }
    json_decref(all);
}

/* With all that its signer said for the rounds in which it would be a member. What is asked about it is asked again when it says so again. */
static void give_way(struct member *m, json_t *enrolment)
{
    const char *cid = value_text(enrolment, "cid");
    char did[MEMBER_DID], name[CID_TEXT + 40];
    snprintf(did, sizeof did, "%s", value_text(json_object_get(enrolment, "payload"), "signer"));
    snprintf(name, sizeof name, "deposit/%s/%lld", cid, (long long)m->round);
    json_object_del(m->asked, name);
    json_object_del(m->codes, cid);
    let_go(m, enrolment);
    if (!first_of(m, "enrolment", did)) {
        let_go_of(m, "contribution", did);
        let_go_of(m, "commitment", did);
    }
}

bool member_has_room(struct member *m, const json_t *document)
{
    static const char kind[] = "enrolment/";
    const size_t most = m->rules->trainers_limit > MEMBER_STRANGERS ? (size_t)m->rules->trainers_limit : MEMBER_STRANGERS;
    json_t *of, *held, *idle = NULL, *unknown = NULL;
    const char *key;
    size_t i, count = 0;
    if (!is_stranger(m, document))
        return true;
    json_object_foreach(m->by_signer, key, of)
    {
        if (strncmp(key, kind, sizeof kind - 1))
            continue;
        json_array_foreach(of, i, held)
        {
            const char *cid = value_text(held, "cid");
            if (!is_stranger(m, held) || is_said(m, cid))
                continue;
            count++;
            if (!json_object_get(m->codes, cid))
                unknown = unknown ? unknown : held;
            else if (!value_is(m->codes, cid, "ok"))
                idle = idle ? idle : held;
        }
    }
    if (count < most)
        return true;
    if (idle || unknown)
        give_way(m, idle ? idle : unknown);
    return idle || unknown;
}

/* ---- records that the panel names ------------------------------------------------------------------------------------------ */

/* A certificate of q votes names this record: an honest member is among those who voted for it. */
bool member_is_certified(const struct member *m, const char *cid)
{
    const char *key;
    json_t *certificate;
    json_object_foreach(m->prepares, key, certificate)
    {
        if (value_is(certificate, "record", cid))
            return true;
    }
    return json_object_get(m->commits, cid);
}

/* A record that this member itself speaks of. */
static bool is_own(const struct member *m, const char *cid)
{
    const char *name;
    json_t *payload;
    json_object_foreach(m->own, name, payload)
    {
        if (value_is(payload, "record", cid))
            return true;
    }
    return value_is(m->lock, "record", cid);
}

static bool names(const json_t *payload, const char *cid)
{
    return value_is(payload, "record", cid) || value_is(json_object_get(payload, "lock"), "record", cid);
}

/* Who speaks of this record, `but` left out: "" when nobody does. Borrowed. */
const char *member_namer_of(const struct member *m, const char *cid, const char *but)
{
    const char *key;
    json_t *document;
    json_object_foreach(m->statements, key, document)
    {
        const json_t *payload = json_object_get(document, "payload");
        if (names(payload, cid) && !value_is(payload, "signer", but))
            return value_text(payload, "signer");
    }
    return "";
}

/* Room for one more record that `did` names: each who names has a share of the table, so that none can fill it for the others. Where the
 * share is used up, the first that it alone names goes. */
void member_make_room(struct member *m, const char *did)
{
    size_t share = MEMBER_RECORDS / (json_array_size(m->rules->panel) + 1), held = 0;
    const char *cid, *first = NULL;
    json_t *namer;
    json_object_foreach(m->namers, cid, namer)
    {
        if (strcmp(json_string_value(namer), did) || *member_namer_of(m, cid, did) || member_is_certified(m, cid) ||
            is_own(m, cid))
            continue;
        held++;
        first = first ? first : cid;
    }
    if (held < (share ? share : 1))
        return;
    json_object_del(m->records, first);
    json_object_del(m->verdicts, first);
    json_object_del(m->namers, first);
}

/* ---- what the panel says ------------------------------------------------------------------------------------------------ */

/* Listed by a record that q members voted for, or that this member speaks of and repeats. */
static bool is_needed(const struct member *m, const char *cid)
{
    const char *name;
    json_t *record;
    json_object_foreach(m->records, name, record)
    {
        if (value_lists(json_object_get(record, "received"), cid) && (member_is_certified(m, name) || is_own(m, name)))
            return true;
    }
    return false;
}

void member_make_room_said(struct member *m, const json_t *received)
{
    char key[MEMBER_SIGNED];
    json_t *held, *list;
    size_t i, count = 0;
    if (value_integer(received, "round") != m->round)
        return;
    member_signed_key(key, "received", value_text(received, "signer"));
    list = json_object_get(m->by_signer, key);
    json_array_foreach(list, i, held) count += value_integer(json_object_get(held, "payload"), "round") == m->round;
    if (count < MEMBER_SAID)
        return;
    json_array_foreach(list, i, held)
    {
        if (value_integer(json_object_get(held, "payload"), "round") == m->round && !is_needed(m, value_text(held, "cid"))) {
            let_go(m, held);
            return;
        }
    }
}
