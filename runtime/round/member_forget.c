#include <string.h>

#include "runtime/round/dispute.h"
#include "runtime/round/member_state.h"

void member_forget_requests(struct member *m, int64_t round)
{
    const char *key;
    json_t *asked;
    void *next;
    m->answers++;
    json_object_foreach_safe(m->asked, next, key, asked)
    {
        if (!strncmp(key, "compute/", 8) && json_integer_value(asked) <= round)
            json_object_del(m->asked, key);
    }
}

/* Answers that came for nothing, or whose request was forgotten. */
static void keep_asked(const struct member *m, json_t *answers, const char *kind)
{
    const char *name;
    json_t *answer;
    void *next;
    json_object_foreach_safe(answers, next, name, answer)
    {
        if (!member_asked(m, kind, name))
            json_object_del(answers, name);
    }
}

/* What was asked before the oldest round that is not settled is about settled rounds: no dispute, spot check or correction comes back to them. */
static void forget_settled(struct member *m)
{
    const json_t *open = json_array_get(json_object_get(m->previous, "unsettled"), 0);
    const int64_t oldest = open ? value_integer(open, "round") : m->round - 1;
    const char *key;
    json_t *asked, *code;
    void *next;
    json_object_foreach_safe(m->asked, next, key, asked)
    {
        if (strncmp(key, "compute/", 8) && json_integer_value(asked) < oldest)
            json_object_del(m->asked, key);
    }
    keep_asked(m, m->results, "compute");
    keep_asked(m, m->replays, "replay");
    keep_asked(m, m->moves, "pick");
    json_object_foreach_safe(m->codes, next, key, code)
    {
        if (!json_object_get(m->documents, key))
            json_object_del(m->codes, key);
    }
}

/* A move of a dispute about what is settled, or never was listed: whoever says it to one member alone would have that hold it for ever. */
static bool is_about_nothing(const struct member *m, const json_t *document)
{
    const char *did;
    bool move =
        value_is(document, "type", "challenge") || value_is(document, "type", "opening") || value_is(document, "type", "pick");
    return move && !member_entry_of(m, value_text(json_object_get(document, "payload"), "contribution"), &did);
}

void member_forget(struct member *m)
{
    const int64_t verified = (int64_t)m->verified;
    const char *cid;
    json_t *held;
    void *next;
    json_object_foreach_safe(m->documents, next, cid, held)
    {
        const json_t *payload = json_object_get(held, "payload"), *listed = json_object_get(m->listed, cid);
        bool bound =
            value_is(held, "type", "contribution") || value_is(held, "type", "received") || value_is(held, "type", "commitment");
        bool old = bound && value_integer(payload, "round") < verified;
        old = old || (verified == m->round && is_about_nothing(m, held));
        if (old || (listed && json_integer_value(listed) < verified))
            json_object_del(m->documents, cid);
    }
    json_object_clear(m->by_signer);
    json_object_foreach(m->documents, cid, held) member_kept(m, held);
    json_object_clear(m->wanted); /* what is still missing is asked for again */
    forget_settled(m);
}
