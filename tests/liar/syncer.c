/* What a lying member of the committee sends instead of its votes and proposals. */
#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/round/member.h"
#include "runtime/round/value.h"
#include "tests/liar/liar.h"

/* The payload of an envelope of this type, or NULL; new reference. */
static json_t *payload_of(const json_t *envelope, enum document_type type)
{
    char *text = json_dumps(envelope, JSON_COMPACT);
    struct document document = { 0 };
    struct error err = { 0 };
    json_t *payload = NULL;

    if (document_read_as(type, text, strlen(text), &document, &err))
        payload = json_deep_copy(document.json);
    document_free(&document);
    free(text);
    return payload;
}

/* The same of one that this node made. */
static json_t *own_payload(const json_t *envelope, enum document_type type)
{
    json_t *payload = payload_of(envelope, type);

    if (payload && value_is(payload, "signer", liar_node()->did))
        return payload;
    json_decref(payload);
    return NULL;
}

static json_t *sign(enum document_type type, json_t *payload)
{
    struct document document = { 0 };
    struct error err = { 0 };
    json_t *envelope;

    if (!document_make(type, payload, &liar_node()->keys.identity, NULL, &document, &err))
        abort();
    envelope = json_read((const char *)document.bytes.bytes, document.bytes.size, SIZE_MAX, &err);
    document_free(&document);
    return envelope;
}

/* Every own vote names a record that nobody made. */
static void change_votes(json_t *message)
{
    json_t *documents = json_object_get(message, "documents"), *envelope;
    size_t i;

    json_array_foreach(documents, i, envelope)
    {
        json_t *payload = own_payload(envelope, DOCUMENT_VOTE);
        struct hash none = hash_block("nothing", 7);
        char cid[CID_TEXT];

        if (payload) {
            json_object_set_new(payload, "record", json_string(cid_text(none, cid)));
            json_array_set_new(documents, i, sign(DOCUMENT_VOTE, payload));
        }
        json_decref(payload);
    }
}

/* The same message with another record proposed: its funding time is one second later. NULL when it proposes nothing. */
static json_t *second_proposal(json_t *message)
{
    json_t *other = json_deep_copy(message), *documents = json_object_get(other, "documents"), *envelope, *records, *record;
    bool proposes = false;
    size_t i, k;

    records = json_object_get(other, "records");
    json_array_foreach(documents, i, envelope)
    {
        json_t *payload = own_payload(envelope, DOCUMENT_PROPOSAL);

        json_array_foreach(records, k, record)
        {
            char cid[CID_TEXT];

            if (!payload || !value_cid(record, cid) || !value_is(payload, "record", cid))
                continue;
            json_object_set_new(record, "funded", json_integer(value_integer(record, "funded") + 1));
            value_cid(record, cid);
            json_object_set_new(payload, "record", json_string(cid));
            json_array_set_new(documents, i, sign(DOCUMENT_PROPOSAL, payload));
            proposes = true;
            break;
        }
        json_decref(payload);
    }
    if (proposes)
        return other;
    json_decref(other);
    return NULL;
}

/* Each message that proposes goes out twice: as it is, and with another record, to all but the first. */
static void propose_twice(struct actions *out)
{
    size_t count = out->count;

    for (size_t i = 0; i < count; i++) {
        json_t *body = out->list[i].body, *other;

        if (out->list[i].kind != ACTION_SEND || !(other = second_proposal(json_object_get(body, "message"))))
            continue;
        json_t *to = json_deep_copy(json_object_get(body, "to"));

        json_array_remove(to, 0);
        actions_add(out, ACTION_SEND, json_pack("{s:o, s:o}", "to", to, "message", other));
    }
}

/* Proposals of the first views of round 1 are not among what is heard and said: with two such members of four no view before the fifth decides. */
static void lose_early_proposals(json_t *message)
{
    json_t *documents = json_object_get(message, "documents"), *envelope;
    size_t i;

    for (i = json_array_size(documents); i-- > 0;) {
        envelope = json_array_get(documents, i);

        json_t *payload = payload_of(envelope, DOCUMENT_PROPOSAL);

        if (payload && value_integer(payload, "round") == 1 && value_integer(payload, "view") < 4)
            json_array_remove(documents, i);
        json_decref(payload);
    }
}

void __real_member_step(struct member *m, const struct event *event, struct actions *out);
void __wrap_member_step(struct member *m, const struct event *event, struct actions *out);

void __wrap_member_step(struct member *m, const struct event *event, struct actions *out)
{
    if (liar_tells("late") && event->kind == EVENT_MESSAGE)
        lose_early_proposals(event->body);
    __real_member_step(m, event, out);
    liar_die_at(out);
    for (size_t i = 0; i < out->count && liar_tells("late"); i++)
        if (out->list[i].kind == ACTION_SEND)
            lose_early_proposals(json_object_get(out->list[i].body, "message"));
    if (liar_tells("propose"))
        propose_twice(out);
    for (size_t i = 0; i < out->count && liar_tells("vote"); i++)
        if (out->list[i].kind == ACTION_SEND)
            change_votes(json_object_get(out->list[i].body, "message"));
}
