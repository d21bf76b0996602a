#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/replica.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"
#include "runtime/simulation/simulation_parts.h"

/* By the round's assignment, once its block is known. */
static bool in_one_group(const struct sim *s, int64_t round, const char *one, const char *other)
{
    const json_t *before = check_record(s, round - 1);
    json_t *block = before ? chain_block(s, value_integer(before, "next_height")) : NULL, *parts;
    struct hash entropy;
    bool together = false;
    if (hash_parse(value_text(block, "entropy"), &entropy)) {
        parts = assignment_draw(&s->rules, before, seed_of(s->rules.run, (uint64_t)round, entropy.bytes, HASH_SIZE));
        const char *group = value_text(value_find(parts, "did", one), "group");
        together = *group && value_is(value_find(parts, "did", other), "group", group);
        json_decref(parts);
    }
    json_decref(block);
    return together;
}

/* Whoever copies has nothing of its own to copy: of two that copied each other one would get back what its own machine had made. */
static bool has_worked(const struct sim *s, const char *did)
{
    int node = sim_find(s, did);
    return node >= 0 && s->nodes[node].lie != LIE_COPY;
}

/* The newest envelope of this type that a partner of `but` signed for the round, who has worked for it. */
static json_t *partners(const struct sim *s, const char *type, int64_t round, const char *but)
{
    const char *cid;
    json_t *envelope, *found = NULL;
    json_object_foreach(s->documents, cid, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        if (value_is(envelope, "type", type) && value_integer(said, "round") == round && !value_is(said, "signer", but) &&
            has_worked(s, value_text(said, "signer")) && in_one_group(s, round, value_text(said, "signer"), but))
            found = envelope;
    }
    return found;
}

json_t *liar_closed(struct sim *s, const json_t *said)
{
    json_t *payload = json_deep_copy(said), *list = json_array(), *envelope;
    const char *cid;
    json_object_foreach(s->documents, cid, envelope)
    {
        if (value_is(envelope, "type", "commitment") &&
            json_equal(json_object_get(json_object_get(envelope, "payload"), "round"), json_object_get(said, "round")))
            json_array_append_new(list, json_string(cid));
    }
    value_sort(list, NULL);
    json_object_set_new(payload, "commitments", list);
    return liar_signs(s, "closed", payload);
}

json_t *liar_copies(struct sim *s, const struct node *n)
{
    int64_t round = sim_round(n);
    json_t *shown = partners(s, "contribution", round, n->did), *committed = partners(s, "commitment", round, n->did);
    json_t *documents = json_array(), *own = NULL, *commitment = NULL;
    bool early = s->set->seed % 32 == 9;
    if (shown) {
        own = json_deep_copy(json_object_get(shown, "payload"));
        json_object_set_new(own, "signer", json_string(n->did));
        json_object_set_new(own, "payload", json_string(n->did));
    }
    if (early && committed) {
        commitment = json_deep_copy(json_object_get(committed, "payload"));
        json_object_set_new(commitment, "signer", json_string(n->did));
    } else if (!early && own) {
        commitment = replica_commitment(own);
    }
    if (commitment)
        json_array_append_new(documents, liar_signs(s, "commitment", commitment));
    if (own)
        json_array_append_new(documents, liar_signs(s, "contribution", own));
    return liar_documents(documents);
}
