#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/value.h"

/* ---- keys that cost nothing: nobody here forges; the tests of the document layer do ---------------------------------- */

json_t *sim_sign(void *context, const char *type, json_t *payload, struct error *err)
{
    struct sim *s = context;
    char cid[CID_TEXT];
    (void)err;
    value_cid(payload, cid);
    json_t *envelope = json_pack("{sssOss}", "type", type, "payload", payload, "cid", cid);
    if (strcmp(type, "vote") && strcmp(type, "proposal"))
        json_object_set(s->documents, cid, envelope);
    return envelope;
}

json_t *sim_open(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err)
{
    (void)context;
    (void)err;
    snprintf(type, 32, "%s", value_text(envelope, "type"));
    snprintf(cid, CID_TEXT, "%s", value_text(envelope, "cid"));
    return json_incref(json_object_get(envelope, "payload"));
}

bool sim_name(void *context, const json_t *record, char cid[CID_TEXT])
{
    struct sim *s = context;
    for (size_t i = 0; i < NAMES; i++)
        if (s->named[i].record == record && record) {
            memcpy(cid, s->named[i].cid, CID_TEXT);
            return true;
        }
    if (!value_cid(record, cid))
        return false;
    size_t at = s->named_count++ % NAMES;
    json_decref(s->named[at].record);
    s->named[at].record = json_incref((json_t *)record);
    memcpy(s->named[at].cid, cid, CID_TEXT);
    return true;
}

struct signing sim_signing(struct sim *s)
{
    return (struct signing){ .context = s, .sign = sim_sign, .open = sim_open, .name = s->count > LARGE ? sim_name : NULL };
}

/* ---- the worker: hashes instead of training ------------------------------------------------------------------------- */

static json_t *text_hash(const char *type, const json_t *value)
{
    char hex[HASH_TEXT];
    value_hash(value, type, hex);
    return json_string(hex);
}

/* Who does it: all of a group the same. Borrowed. */
static json_t *who_of(const json_t *context)
{
    json_t *group = json_object_get(context, "group");
    return group ? group : json_object_get(context, "did");
}

/* What training gives: by the state it starts from, the seed and who does it. */
static json_t *body_of(const json_t *context, const json_t *did)
{
    const json_t *carry = json_object_get(context, "carry");
    json_t *key =
        json_pack("{sOsOsO}", "seed", json_object_get(context, "seed"), "did", did, "state", json_object_get(context, "state"));
    if (carry)
        json_object_set(key, "carry", json_object_get(carry, "root"));
    json_t *body = text_hash("sim/body", key);
    json_decref(key);
    return body;
}

/* outer' = H(outer, round, contributions) */
json_t *sim_fold_step(const json_t *outer, const json_t *round, const json_t *contributions)
{
    json_t *key = json_pack("[OOO]", outer, round, contributions), *next = text_hash("sim/outer", key);
    json_decref(key);
    return next;
}

json_t *sim_compute(const struct sim *s, const json_t *request, bool wrong)
{
    if (value_is(request, "kind", "plan"))
        return json_pack("{s{sisOss*}}", "plan", "steps", 20, "round", json_object_get(request, "round"), "inner",
                         s->set->keeps ? "keep" : NULL);
    json_t *outer = json_incref(json_object_get(request, "from")), *steps = json_array(), *round;
    size_t i;
    json_array_foreach(json_object_get(request, "rounds"), i, round)
    {
        json_t *next = sim_fold_step(outer, json_object_get(round, "round"), json_object_get(round, "contributions"));
        json_decref(outer);
        outer = wrong ? text_hash("sim/wrong", next) : json_incref(next);
        json_decref(next);
        json_array_append_new(steps, json_pack("{sOsOso}", "round", json_object_get(round, "round"), "outer", outer, "state",
                                               text_hash("sim/state", outer)));
    }
    return json_pack("{sososo}", "aggregate", text_hash("sim/aggregate", outer), "steps", steps, "telemetry",
                     json_pack("{so}", "norm", outer));
}

/* The false body's: of a step that nobody can compute, not even its batch, so that who challenges it is right as it is. By the seed, so that
 * nothing else is drawn otherwise. */
static bool sim_makes_up(const struct sim *s)
{
    return s->set->seed % 4 == 3;
}

json_t *sim_training(struct sim *s, int node, const json_t *context)
{
    enum fault lie = s->nodes[node].lie;
    json_t *other = NULL;
    if (lie == LIE_COPY && !s->set->replicas) /* that of the trainer before it */
        other = json_string(s->nodes[node > s->set->syncers ? node - 1 : s->count - 1].did);
    json_t *body = body_of(context, other ? other : who_of(context));
    json_decref(other);
    int64_t round = value_integer(context, "round");
    if ((lie == LIE_BODY || lie == LIE_MUTE) && (s->set->besieged ? round == 2 : round >= 2)) {
        json_t *false_body = text_hash("sim/lie", body);
        json_decref(body);
        body = false_body;
    }
    if (lie == LIE_BODY || lie == LIE_COPY || lie == LIE_BROKEN || lie == LIE_WITHHOLD)
        sim_lie(s, lie);
    json_t *contribution = json_pack("{soss}", "body", body, "start", value_text(context, "state"));
    if (lie == LIE_BODY && sim_makes_up(s) && value_integer(context, "round") >= 2)
        json_object_set_new(contribution, "made_up", json_true());
    if (s->set->replicas) {
        json_object_set(contribution, "payload", json_object_get(context, "did"));
        json_object_set_new(contribution, "salt", text_hash("sim/salt", json_object_get(context, "did")));
    }
    if (s->set->keeps) {
        json_object_set_new(contribution, "carry_out", text_hash("sim/carry", body));
        json_object_set_new(contribution, "carry", text_hash("sim/object", body));
        if (json_object_get(context, "carry"))
            json_object_set(contribution, "carry_in", json_object_get(json_object_get(context, "carry"), "root"));
    }
    if (lie == LIE_BROKEN)
        json_object_set_new(contribution, "broken", json_true());
    if (lie == LIE_WITHHOLD)
        json_object_set_new(contribution, "withheld", json_true());
    return contribution;
}

const char *sim_check(const json_t *document, const json_t *context)
{
    if (json_object_get(document, "withheld"))
        return "missing";
    if (json_object_get(document, "broken"))
        return "truncated";
    const char *in = value_text(document, "carry_in");
    if (*in && !value_is(json_object_get(context, "carry"), "root", in))
        return "carry";
    return value_is(document, "start", value_text(context, "state")) ? "ok" : "start";
}

int64_t sim_replay(const struct sim *s, const json_t *body)
{
    const json_t *envelope = json_object_get(s->documents, value_text(body, "cid")), *context = json_object_get(body, "context");
    json_t *honest = body_of(context, who_of(context));
    bool equal = value_is(json_object_get(envelope, "payload"), "body", json_string_value(honest));
    json_decref(honest);
    return equal ? -1 : 3;
}

/* ---- disputes: the third leaf of a false contribution is wrong; a trace of it is a hash, the evidence another ----------- */

static bool is_honest(const struct sim *s, const json_t *body)
{
    const json_t *envelope = json_object_get(s->documents, value_text(body, "contribution"));
    const json_t *context = json_object_get(body, "context");
    json_t *honest = body_of(context, who_of(context));
    bool equal = value_is(json_object_get(envelope, "payload"), "body", json_string_value(honest));
    json_decref(honest);
    return equal;
}

static bool is_made_up(const struct sim *s, const json_t *body)
{
    const json_t *envelope = json_object_get(s->documents, value_text(body, "contribution"));
    return json_object_get(json_object_get(envelope, "payload"), "made_up") != NULL;
}

const char *sim_judge(const struct sim *s, const json_t *body)
{
    const json_t *carry = json_object_get(json_object_get(body, "context"), "carry");
    if (carry && !value_integer(body, "index") && !value_is(body, "move", "pick"))
        return value_is(body, "move", "challenge") || value_is(body, "trace", value_text(carry, "object")) ? "ok" : "upheld";
    if (value_is(body, "move", "challenge") && value_integer(body, "index") == 3 && is_made_up(s, body))
        return "upheld";
    if (!value_is(body, "move", "pick"))
        return "ok";
    return !is_honest(s, body) && value_integer(body, "index") == 3 ? "upheld" : "rejected";
}

json_t *sim_move(struct sim *s, int node, const json_t *body)
{
    if (value_is(body, "move", "pick") && is_honest(s, body))
        return json_null();
    if (value_is(body, "move", "opening") && s->nodes[node].lie == LIE_MUTE) {
        sim_lie(s, LIE_MUTE);
        return NULL;
    }
    return text_hash("sim/move", json_object_get(body, "key"));
}
