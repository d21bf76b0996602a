#include "tests/simulation/adversary.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/value.h"

static json_t *signed_as(const char *type, json_t *payload)
{
    return json_pack("{ssso}", "type", type, "payload", payload);
}

/* ---- votes ---------------------------------------------------------------------------------------------------------- */

static json_t *other_vote(const json_t *envelope, const char *record, const char *phase)
{
    json_t *payload = json_deep_copy(json_object_get(envelope, "payload"));
    json_object_set_new(payload, "record", json_string(record));
    json_object_set_new(payload, "phase", json_string(phase));
    return signed_as("vote", payload);
}

/* Signs both phases for every record proposed or voted for by others, in their views. */
static json_t *votes_for_all(const char *did, const char *run, const json_t *heard)
{
    json_t *documents = json_array(), *envelope;
    size_t i;
    json_array_foreach(json_object_get(heard, "documents"), i, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        if (!value_is(envelope, "type", "proposal") && !value_is(envelope, "type", "vote"))
            continue;
        for (int commit = 0; commit < 2; commit++)
            json_array_append_new(
                documents,
                signed_as("vote", json_pack("{sisssOsOsssOss}", "version", 1, "run", run, "round", json_object_get(said, "round"),
                                            "view", json_object_get(said, "view"), "phase", commit ? "commit" : "prepare",
                                            "record", json_object_get(said, "record"), "signer", did)));
    }
    if (!json_array_size(documents)) {
        json_decref(documents);
        return NULL;
    }
    return json_pack("{so}", "documents", documents);
}

/* ---- documents ------------------------------------------------------------------------------------------------------ */

static json_t *other_received(const json_t *envelope, uint64_t chance)
{
    json_t *payload = json_deep_copy(json_object_get(envelope, "payload")), *items = json_object_get(payload, "items");
    if (chance & 1 && json_array_size(items))
        json_array_remove(items, (size_t)(chance >> 8) % json_array_size(items));
    if (chance & 2 && json_array_size(items))
        json_object_set_new(json_array_get(items, (size_t)(chance >> 16) % json_array_size(items)), "code",
                            json_string("truncated"));
    if (chance & 4)
        json_object_set_new(payload, "lock", json_null());
    if (chance & 8)
        json_object_set_new(json_object_get(payload, "head"), "height", json_integer((json_int_t)(chance >> 24 & 0xfff)));
    return signed_as("received", payload);
}

/* Another record under the same proposal: a wrong state, or one that leaves a document out. */
static void other_proposal(json_t *message, size_t at, uint64_t chance)
{
    json_t *documents = json_object_get(message, "documents"), *records = json_object_get(message, "records");
    json_t *payload = json_deep_copy(json_object_get(json_array_get(documents, at), "payload"));
    json_t *record = json_deep_copy(json_array_get(records, 0));
    char cid[CID_TEXT];
    if (record) {
        if (chance & 1)
            json_object_set_new(record, "state", json_string("another"));
        else
            json_array_remove(json_object_get(record, "received"), 0);
        value_cid(record, cid);
        json_object_set_new(payload, "record", json_string(cid));
        json_array_append(records, record);
    }
    json_decref(record);
    json_array_set_new(documents, at, signed_as("proposal", payload));
}

static json_t *twist(enum liar liar, const char *did, json_t *message, uint64_t chance)
{
    json_t *told = json_deep_copy(message), *documents = json_object_get(told, "documents"), *envelope;
    size_t i;
    json_array_foreach(documents, i, envelope)
    {
        if (!value_is(json_object_get(envelope, "payload"), "signer", did))
            continue;
        if (liar == LIAR_VOTES && value_is(envelope, "type", "vote") && chance & 1) {
            json_array_set_new(
                documents, i,
                other_vote(envelope, "bafk2bzaanotherrecord", value_text(json_object_get(envelope, "payload"), "phase")));
        } else if (liar == LIAR_DOCUMENTS && value_is(envelope, "type", "received")) {
            json_array_set_new(documents, i, other_received(envelope, chance));
        } else if (liar == LIAR_DOCUMENTS && value_is(envelope, "type", "proposal") && chance & 2) {
            other_proposal(told, i, chance >> 2);
        } else if (liar == LIAR_TWICE && value_is(envelope, "type", "contribution") && chance & 1) {
            json_t *payload = json_deep_copy(json_object_get(envelope, "payload"));
            json_object_set_new(payload, "body", json_string("another"));
            json_array_set_new(documents, i, signed_as("contribution", payload));
        }
    }
    return told;
}

json_t *adversary_message(enum liar liar, const char *did, const char *to, json_t *message, const json_t *records,
                          uint64_t chance)
{
    (void)to;
    (void)records;
    if (liar == LIAR_SILENT)
        return NULL;
    if (liar == LIAR_VOTES || liar == LIAR_DOCUMENTS || liar == LIAR_TWICE)
        return twist(liar, did, message, chance);
    return json_incref(message);
}

/* An accusation of every honest contribution of the record just heard of. */
static json_t *accuse(const char *did, const char *run, const json_t *heard)
{
    json_t *final, *item, *documents = json_array();
    size_t i, k;
    json_array_foreach(json_object_get(heard, "finals"), i, final)
    {
        const json_t *record = json_object_get(final, "record");
        json_array_foreach(json_object_get(record, "contributions"), k, item)
        {
            if (!value_is(item, "did", did))
                json_array_append_new(documents,
                                      signed_as("challenge", json_pack("{sissssOsOsi}", "version", 1, "run", run, "signer", did,
                                                                       "round", json_object_get(record, "round"), "contribution",
                                                                       json_object_get(item, "cid"), "index", 3)));
        }
    }
    if (!json_array_size(documents)) {
        json_decref(documents);
        return NULL;
    }
    return json_pack("{so}", "documents", documents);
}

json_t *adversary_extra(enum liar liar, const char *did, const char *run, const json_t *heard, const json_t *records)
{
    (void)records;
    if (liar == LIAR_VOTES)
        return votes_for_all(did, run, heard);
    return liar == LIAR_CHALLENGER ? accuse(did, run, heard) : NULL;
}
