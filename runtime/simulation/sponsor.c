#include "runtime/simulation/simulation_parts.h"

#include "runtime/round/value.h"

enum { NUMBERS = 6, BLOCKS_BETWEEN = 20 };

static json_t *changes(struct sim *s)
{
    switch (sim_below(s, 8)) {
    case 0:
        return json_pack("{sb}", "end", 1);
    case 1:
    case 2:
        return json_pack("{sb}", "pause", 1);
    case 3:
    case 4:
        return json_pack("{sb}", "pause", 0);
    case 5:
        return json_pack("{ss}", "trust.spot_check", sim_below(s, 2) ? "1" : "0.5");
    case 6:
        return json_pack("{sisb}", "quorum.trainers", s->set->quorum + (int)sim_below(s, 2), "pause", 0);
    default:
        return json_pack("{sisi}", "quorum.trainers", s->set->quorum, "payment.per_round", 1); /* not marked: refused */
    }
}

void sponsor_amends(struct sim *s)
{
    if (!s->set->amends || sim_below(s, BLOCKS_BETWEEN))
        return;
    json_t *payload = json_pack("{sisssssIsIso}", "version", 1, "run", s->rules.run, "signer", "did:sim:sponsor", "number",
                                (json_int_t)(1 + sim_below(s, NUMBERS)), "from",
                                (json_int_t)((int64_t)json_array_size(s->finals) + 1 + sim_below(s, 4)), "changes", changes(s));
    json_t *envelope = sim_sign(s, "amendment", payload, NULL), *message = json_pack("{s[O]}", "documents", envelope);
    for (int i = 0; i < s->set->syncers; i++) {
        struct node *n = &s->nodes[i];
        if (!n->alive || !sim_below(s, 6))
            continue;
        json_object_set(n->documents, value_text(envelope, "cid"), envelope);
        sim_later(s, i, 1 + sim_below(s, 2000), EVENT_MESSAGE, json_incref(message));
    }
    json_decref(message);
    json_decref(envelope);
    json_decref(payload);
}
