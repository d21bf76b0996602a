#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/certificate.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

enum { MANY = 8, OLD = 64 };

/* A liar signs with its own key only, or with keys that nobody knows. */
static json_t *signed_as(struct sim *s, const char *type, json_t *payload)
{
    json_t *envelope = sim_sign(s, type, payload, NULL);
    json_decref(payload);
    return envelope;
}

static json_t *vote_of(struct sim *s, const char *did, int64_t round, int64_t view, const char *phase, const char *record)
{
    return signed_as(s, "vote",
                     json_pack("{sisssIsIssssss}", "version", 1, "run", s->rules.run, "round", (json_int_t)round, "view",
                               (json_int_t)view, "phase", phase, "record", record, "signer", did));
}

/* NULL when there is nothing in it. Takes the reference. */
static json_t *documents_message(json_t *documents)
{
    if (json_array_size(documents))
        return json_pack("{so}", "documents", documents);
    json_decref(documents);
    return NULL;
}

/* ---- statements that differ by reader -------------------------------------------------------------------------------- */

/* A document that nobody holds. */
static void invent(json_t *items, uint64_t chance)
{
    char cid[CID_TEXT];
    json_t *seed = json_integer((json_int_t)(chance >> 40));
    value_cid(seed, cid);
    json_decref(seed);
    if (!value_find(items, "cid", cid))
        json_array_append_new(items, json_pack("{sssssi}", "cid", cid, "code", "ok", "ms", 0));
    value_sort(items, "cid");
}

static void remove_of(struct sim *s, json_t *items, const char *did)
{
    for (size_t i = json_array_size(items); i-- > 0;) {
        const json_t *envelope = json_object_get(s->documents, value_text(json_array_get(items, i), "cid"));
        if (value_is(json_object_get(envelope, "payload"), "signer", did))
            json_array_remove(items, i);
    }
}

static json_t *other_received(struct sim *s, enum fault lie, const json_t *envelope)
{
    json_t *payload = json_deep_copy(json_object_get(envelope, "payload")), *items = json_object_get(payload, "items");
    uint64_t chance = sim_chance(s);
    if (lie == LIE_HEADS) {
        json_object_set_new(json_object_get(payload, "head"), "height",
                            json_integer((json_int_t)(chance & 1 ? chance >> 24 & 0xfff : 0)));
        return signed_as(s, "received", payload);
    }
    if (lie == LIE_CENSOR) {
        remove_of(s, items, s->nodes[s->count - 1].did);
        return signed_as(s, "received", payload);
    }
    if (chance & 1 && json_array_size(items))
        json_array_remove(items, (size_t)(chance >> 8) % json_array_size(items));
    if (chance & 2 && json_array_size(items))
        json_object_set_new(json_array_get(items, (size_t)(chance >> 16) % json_array_size(items)), "code",
                            json_string("truncated"));
    if (chance & 4)
        json_object_set_new(payload, "lock", json_null());
    if (chance & 8)
        invent(items, chance);
    return signed_as(s, "received", payload);
}

/* The skip that the same documents give when nobody asks how far the round is. */
static json_t *early_skip(struct sim *s, const json_t *record)
{
    json_t *received = json_array(), *name, *out = NULL;
    size_t i;
    json_array_foreach(json_object_get(record, "received"), i, name)
        json_array_append(received, json_object_get(json_object_get(s->documents, json_string_value(name)), "payload"));
    struct record_input input = { .rules = &s->rules,
                                  .previous = check_record(s, value_integer(record, "round") - 1),
                                  .block = json_object_get(record, "block"),
                                  .received = received,
                                  .forced = true,
                                  .documents = s->documents };
    if (input.previous && record_of(&input, &out, NULL) != RECORD_MADE) {
        json_decref(out);
        out = NULL;
    }
    json_decref(received);
    return out ? out : json_deep_copy(record);
}

/* Another record under the same proposal: a wrong state, one without a document, or a skip that nobody needs. */
static void other_proposal(struct sim *s, json_t *message, size_t at)
{
    json_t *documents = json_object_get(message, "documents"), *records = json_object_get(message, "records");
    json_t *payload = json_deep_copy(json_object_get(json_array_get(documents, at), "payload"));
    json_t *record = json_deep_copy(json_array_get(records, 0));
    char cid[CID_TEXT];
    if (record) {
        int kind = (int)sim_below(s, 3);
        if (kind == 0) {
            json_object_set_new(record, "state", json_string("another"));
        } else if (kind == 1) {
            json_array_remove(json_object_get(record, "received"), 0);
        } else {
            json_t *skip = early_skip(s, record);
            json_decref(record);
            record = skip;
        }
        value_cid(record, cid);
        json_object_set_new(payload, "record", json_string(cid));
        json_array_append(records, record);
    }
    json_decref(record);
    json_array_set_new(documents, at, signed_as(s, "proposal", payload));
}

static void twist(struct sim *s, const struct node *n, json_t *told, size_t i)
{
    json_t *documents = json_object_get(told, "documents"), *envelope = json_array_get(documents, i), *made = NULL;
    const json_t *said = json_object_get(envelope, "payload");
    const char *type = value_text(envelope, "type");
    bool chance = sim_below(s, 2);
    if (n->lie == LIE_EQUIVOCATE && !strcmp(type, "vote") && chance) {
        made = vote_of(s, n->did, value_integer(said, "round"), value_integer(said, "view"), value_text(said, "phase"),
                       "bafk2bzaanotherrecord");
    } else if ((n->lie == LIE_ITEMS || n->lie == LIE_CENSOR || n->lie == LIE_HEADS) && !strcmp(type, "received")) {
        made = other_received(s, n->lie, envelope);
    } else if (n->lie == LIE_PROPOSE && !strcmp(type, "proposal") && chance) {
        other_proposal(s, told, i);
        sim_lie(s, n->lie);
    } else if (n->lie == LIE_TWICE && !strcmp(type, "contribution") && chance) {
        json_t *payload = json_deep_copy(said);
        json_object_set_new(payload, "body", json_string("another"));
        made = signed_as(s, "contribution", payload);
    }
    if (made) {
        sim_lie(s, n->lie);
        json_array_set_new(documents, i, made);
    }
}

json_t *liar_message(struct sim *s, const struct node *n, json_t *message)
{
    static const uint64_t twisting = 1 << LIE_EQUIVOCATE | 1 << LIE_ITEMS | 1 << LIE_CENSOR | 1 << LIE_HEADS | 1 << LIE_PROPOSE;
    if (n->lie == LIE_SILENT) {
        sim_lie(s, LIE_SILENT);
        return NULL;
    }
    if (!(twisting >> n->lie & 1) && n->lie != LIE_TWICE)
        return json_incref(message);
    json_t *told = json_copy(message), *documents = json_copy(json_object_get(message, "documents")), *envelope;
    size_t i;
    if (json_is_array(json_object_get(message, "records")))
        json_object_set_new(told, "records", json_copy(json_object_get(message, "records")));
    if (!documents)
        return told;
    json_object_set_new(told, "documents", documents);
    json_array_foreach(documents, i, envelope)
    {
        if (value_is(json_object_get(envelope, "payload"), "signer", n->did))
            twist(s, n, told, i);
    }
    return told;
}

/* ---- what nobody asked for ------------------------------------------------------------------------------------------- */

/* Votes for every record that others propose or vote for: in their views, before their time, or after it. */
static json_t *votes_for_all(struct sim *s, const struct node *n, const json_t *heard)
{
    json_t *documents = json_array(), *envelope;
    size_t i;
    json_array_foreach(json_object_get(heard, "documents"), i, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        int64_t round = value_integer(said, "round"), view = value_integer(said, "view");
        const char *record = value_text(said, "record");
        if (!value_is(envelope, "type", "proposal") && !value_is(envelope, "type", "vote"))
            continue;
        if (n->lie == LIE_LATE && !view--)
            continue;
        json_array_append_new(documents, vote_of(s, n->did, round, view, "prepare", record));
        json_array_append_new(documents, vote_of(s, n->did, round, view, "commit", record));
        if (n->lie == LIE_EARLY) {
            json_array_append_new(documents, vote_of(s, n->did, round, view + 1, "prepare", record));
            json_array_append_new(documents, vote_of(s, n->did, round, view + 1, "commit", record));
        }
    }
    if (n->lie == LIE_EARLY && json_array_size(documents) && !sim_below(s, 8)) /* a view nobody is in */
        json_array_append_new(
            documents, signed_as(s, "received",
                                 json_pack("{sisssssIsIs{sisi}sis[]s[]sn}", "version", 1, "run", s->rules.run, "signer", n->did,
                                           "round", (json_int_t)sim_round(n), "view", (json_int_t)sim_below(s, 2000000), "head",
                                           "height", 1, "time", 1, "funded", 1, "items", "checked", "lock")));
    return documents_message(documents);
}

/* An accusation of every contribution of others in the record just heard of. */
static json_t *accuse(struct sim *s, const struct node *n, const json_t *heard)
{
    json_t *final, *item, *documents = json_array();
    size_t i, k;
    json_array_foreach(json_object_get(heard, "finals"), i, final)
    {
        const json_t *record = json_object_get(final, "record");
        json_array_foreach(json_object_get(record, "contributions"), k, item)
        {
            if (!value_is(item, "did", n->did))
                json_array_append_new(documents, signed_as(s, "challenge",
                                                           json_pack("{sisssssOsOsi}", "version", 1, "run", s->rules.run,
                                                                     "signer", n->did, "round", json_object_get(record, "round"),
                                                                     "contribution", json_object_get(item, "cid"), "index", 3)));
        }
    }
    return documents_message(documents);
}

/* Two votes of one signer that may well both exist, as evidence against it. */
static json_t *frame(struct sim *s, const struct node *n)
{
    json_t *one, *other, *documents = json_array();
    size_t i, k;
    json_array_foreach(s->old, i, one) json_array_foreach(s->old, k, other)
    {
        const json_t *a = json_object_get(one, "payload"), *b = json_object_get(other, "payload");
        if (i < k && value_is(one, "type", "vote") && value_is(other, "type", "vote") && !json_array_size(documents) &&
            value_is(a, "signer", value_text(b, "signer")) && value_integer(a, "round") == value_integer(b, "round") &&
            !json_equal(a, b))
            json_array_append_new(documents, signed_as(s, "equivocation",
                                                       json_pack("{sisssssssOs[OO]}", "version", 1, "run", s->rules.run, "signer",
                                                                 n->did, "did", value_text(a, "signer"), "round",
                                                                 json_object_get(a, "round"), "statements", one, other)));
    }
    return documents_message(documents);
}

static json_t *forged_votes(struct sim *s, const struct node *n, int64_t round, int64_t view, const char *phase,
                            const char *record, int64_t q)
{
    json_t *votes = json_object(), *envelope;
    int kind = (int)sim_below(s, 4);
    char name[32];
    size_t i;
    for (int64_t k = 0; k < q && kind < 2; k++) { /* the own vote again and again; or votes of strangers */
        snprintf(name, sizeof name, "did:sim:x%03d", (int)k);
        json_object_set_new(votes, name, vote_of(s, kind ? name : n->did, round, view, phase, record));
    }
    if (kind == 2) /* too few */
        json_object_set_new(votes, n->did, vote_of(s, n->did, round, view, phase, record));
    if (kind == 3) { /* votes for something else */
        json_array_foreach(s->old, i, envelope)
        {
            if (value_is(envelope, "type", "vote"))
                json_object_set(votes, value_text(json_object_get(envelope, "payload"), "signer"), envelope);
        }
    }
    return votes;
}

/* Certificates that are none, for a record that the liar made up from the one it heard of. */
static json_t *forge(struct sim *s, const struct node *n, const json_t *heard)
{
    const json_t *from = json_array_get(json_object_get(heard, "records"), 0);
    int64_t view = sim_below(s, 3), q = s->rules.threshold;
    char cid[CID_TEXT];
    if (!from)
        return NULL;
    json_t *record = json_deep_copy(from), *made[2];
    int64_t round = value_integer(record, "round");
    if (sim_below(s, 2))
        json_object_set_new(record, "state", json_string("another"));
    else
        json_object_set_new(record, "next_height", json_integer(value_integer(record, "next_height") + 1));
    value_cid(record, cid);
    for (int i = 0; i < 2; i++) {
        const char *phase = i ? "commit" : "prepare";
        json_t *votes = forged_votes(s, n, round, view, phase, cid, q);
        made[i] = certificate_make(&s->rules, round, view, phase, cid, votes, q);
        json_decref(votes);
    }
    return json_pack("{s[oO]s[O]s[{soso}]s[oo]}", "certificates", made[0], made[1], "records", record, "finals", "record", record,
                     "certificate", made[1], "documents", vote_of(s, n->did, round, view, "prepare", cid),
                     signed_as(s, "proposal",
                               json_pack("{sisssssIsIsssO}", "version", 1, "run", s->rules.run, "signer", n->did, "round",
                                         (json_int_t)round, "view", (json_int_t)view, "record", cid, "justification", made[0])));
}

static json_t *replay_old(struct sim *s)
{
    json_t *documents = json_array(), *finals = json_array();
    for (int k = 0; k < 4 && json_array_size(s->old); k++)
        json_array_append(documents, json_array_get(s->old, (size_t)sim_below(s, (int64_t)json_array_size(s->old))));
    if (json_array_size(s->finals))
        json_array_append(finals, json_array_get(s->finals, (size_t)sim_below(s, (int64_t)json_array_size(s->finals))));
    return json_pack("{soso}", "documents", documents, "finals", finals);
}

static json_t *join_as_many(struct sim *s, const struct node *n)
{
    json_t *documents = json_array();
    char did[32];
    snprintf(did, sizeof did, "did:sim:x%03d", (int)sim_below(s, MANY));
    json_array_append_new(documents, signed_as(s, "enrolment",
                                               json_pack("{sisssssssssi}", "version", 1, "run", s->rules.run, "signer", did,
                                                         "role", "trainer", "account", n->account, "round", 0)));
    return documents_message(documents);
}

static void remember(struct sim *s, const json_t *heard)
{
    json_t *envelope;
    size_t i;
    json_array_foreach(json_object_get(heard, "documents"), i, envelope)
    {
        if (json_array_size(s->old) < OLD)
            json_array_append(s->old, envelope);
        else if (!sim_below(s, 8))
            json_array_set(s->old, (size_t)sim_below(s, OLD), envelope);
    }
}

json_t *liar_extra(struct sim *s, const struct node *n, json_t *heard)
{
    json_t *extra = NULL;
    if (n->lie == LIE_REPLAY || n->lie == LIE_FORGE || n->lie == LIE_ACCUSE)
        remember(s, heard);
    if (n->lie == LIE_EQUIVOCATE || n->lie == LIE_EARLY || n->lie == LIE_LATE)
        extra = votes_for_all(s, n, heard);
    else if (n->lie == LIE_ACCUSE)
        extra = sim_below(s, 8) ? accuse(s, n, heard) : frame(s, n);
    else if (n->lie == LIE_FORGE)
        extra = forge(s, n, heard);
    else if (n->lie == LIE_REPLAY && !sim_below(s, 4))
        extra = replay_old(s);
    else if (n->lie == LIE_MANY && !sim_below(s, 4))
        extra = join_as_many(s, n);
    if (extra)
        sim_lie(s, n->lie);
    return extra;
}

json_t *liar_answer(struct sim *s, json_t *message)
{
    json_t *told = json_deep_copy(message), *final, *documents = json_object_get(told, "documents");
    size_t i;
    sim_lie(s, LIE_RUBBISH);
    json_array_foreach(json_object_get(told, "finals"), i, final)
        json_object_set_new(json_object_get(final, "record"), "state", json_string("another"));
    for (i = json_array_size(documents); i-- > 0;)
        if (sim_below(s, 2))
            json_array_remove(documents, i);
    return told;
}
