#include <stdio.h>
#include <string.h>

#include "runtime/round/committee.h"
#include "runtime/round/replica.h"
#include "runtime/round/seed.h"
#include "runtime/round/trainer_state.h"

/* The open round's committee, once the seed's block is known. */
static bool find_committee(struct trainer *t)
{
    struct hash entropy;
    trainer_ask_block(t);
    if (!t->committee && t->block && hash_parse(value_text(t->block, "entropy"), &entropy)) {
        t->seed = seed_of(t->rules->run, (uint64_t)t->round, entropy.bytes, HASH_SIZE);
        t->committee = committee_draw(t->rules, t->previous, t->round, &t->seed);
    }
    return t->committee;
}

static bool sign_commitment(struct trainer *t)
{
    struct error err = { 0 };
    json_t *payload = replica_commitment(t->contribution);
    t->commitment = t->signing.sign(t->signing.context, "commitment", payload, &err);
    value_cid(payload, t->committed);
    json_decref(payload);
    if (t->commitment)
        return true;
    trainer_halt(t, "sign", err.message);
    return false;
}

static bool is_closed(const struct trainer *t)
{
    return t->committee && (int64_t)json_object_size(t->closed) >= committee_quorum(t->rules, t->committee).q;
}

bool trainer_may_show(struct trainer *t)
{
    if (t->rules->replicas < 2 || !find_committee(t) || is_closed(t))
        return t->rules->replicas < 2 || is_closed(t);
    if (!t->commitment && !sign_commitment(t))
        return false;
    if (t->phase != COMMITTING) {
        t->phase = COMMITTING;
        trainer_tell_state(t);
    }
    if (trainer_due(t, &t->committed_at)) {
        trainer_push(t, t->commitment, t->committed_to);
        trainer_act(t, ACTION_FETCH, json_pack("{sI}", "closed", (json_int_t)t->round));
    }
    return false;
}

void trainer_take_closed(struct trainer *t, json_t *envelope)
{
    char type[32], cid[CID_TEXT];
    if (!t->commitment || !t->committee)
        return;
    json_t *payload = t->signing.open(t->signing.context, envelope, type, cid, NULL);
    const char *did = value_text(payload, "signer");
    if (payload && !strcmp(type, "closed") && value_is(payload, "run", t->rules->run) &&
        value_integer(payload, "round") == t->round && value_lists(t->committee, did) &&
        value_lists(json_object_get(payload, "commitments"), t->committed))
        json_object_set(t->closed, did, envelope);
    json_decref(payload);
}

json_t *trainer_shown(const struct trainer *t)
{
    json_t *documents = json_pack("[O]", t->envelope), *envelope;
    const char *did;
    json_object_foreach(t->closed, did, envelope) json_array_append(documents, envelope);
    return documents;
}
