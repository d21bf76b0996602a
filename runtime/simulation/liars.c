#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/certificate.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

enum { MANY = 8, OLD = 64 };

json_t *liar_signs(struct sim *s, const char *type, json_t *payload)
{
    json_t *envelope = sim_sign(s, type, payload, NULL);
    json_decref(payload);
    return envelope;
}

static json_t *vote_of(struct sim *s, const char *did, int64_t round, int64_t view, const char *phase, const char *record)
{
    return liar_signs(s, "vote",
                      json_pack("{sisssIsIssssss}", "version", 1, "run", s->rules.run, "round", (json_int_t)round, "view",
                                (json_int_t)view, "phase", phase, "record", record, "signer", did));
}

json_t *liar_documents(json_t *documents)
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

/* What was found right is called wrong, what was refused is called right. */
static void other_code(struct sim *s, json_t *item)
{
    bool pick = value_is(json_object_get(s->documents, value_text(item, "cid")), "type", "pick");
    bool claim = pick || value_is(json_object_get(s->documents, value_text(item, "cid")), "type", "challenge");
    bool right = value_is(item, "code", "upheld") || value_is(item, "code", "ok");
    json_object_set_new(item, "code", json_string(right ? claim ? "rejected" : "truncated" : pick ? "upheld" : "ok"));
}

/* Of what somebody honest says of others, before most have heard of it. */
static void slander(struct sim *s, json_t *items)
{
    const char *cid;
    json_t *envelope;
    json_object_foreach(s->documents, cid, envelope)
    {
        int who = sim_find(s, value_text(json_object_get(envelope, "payload"), "signer"));
        if ((value_is(envelope, "type", "challenge") || value_is(envelope, "type", "pick")) && who >= 0 &&
            s->nodes[who].lie == FAULT_KINDS && !value_find(items, "cid", cid))
            json_array_append_new(items, json_pack("{sssssi}", "cid", cid, "code", "rejected", "ms", 0));
    }
    value_sort(items, "cid");
}

static json_t *other_received(struct sim *s, enum fault lie, const json_t *envelope)
{
    json_t *payload = json_deep_copy(json_object_get(envelope, "payload")), *items = json_object_get(payload, "items");
    uint64_t chance = sim_chance(s);
    if (lie == LIE_HEADS) {
        json_object_set_new(json_object_get(payload, "head"), "height",
                            json_integer((json_int_t)(chance & 1 ? chance >> 24 & 0xfff : 0)));
        return liar_signs(s, "received", payload);
    }
    if (lie == LIE_CENSOR) {
        remove_of(s, items, s->nodes[s->count - 1].did);
        return liar_signs(s, "received", payload);
    }
    if (chance & 1 && json_array_size(items))
        json_array_remove(items, (size_t)(chance >> 8) % json_array_size(items));
    for (size_t i = 0; chance & 2 && i < json_array_size(items); i++)
        if (sim_below(s, 2))
            other_code(s, json_array_get(items, i));
    if (chance & 4)
        json_object_set_new(payload, "lock", json_null());
    if (chance & 8)
        invent(items, chance);
    if (chance & 16)
        slander(s, items);
    return liar_signs(s, "received", payload);
}

/* ---- proposals that the rules would not make ------------------------------------------------------------------------- */

void liar_overhears(struct sim *s, const json_t *envelope)
{
    json_t *payload = json_object_get(envelope, "payload"), *of;
    char key[48];
    if (!s->set->lying_syncers || !value_is(envelope, "type", "received"))
        return;
    if (value_integer(payload, "round") > value_integer(s->overheard, "round")) {
        json_object_clear(s->overheard);
        json_object_set(s->overheard, "round", json_object_get(payload, "round"));
    }
    snprintf(key, sizeof key, "%lld/%lld", (long long)value_integer(payload, "round"), (long long)value_integer(payload, "view"));
    of = json_object_get(s->overheard, key);
    if (!of)
        json_object_set_new(s->overheard, key, of = json_object());
    json_object_set(of, value_text(payload, "signer"), payload);
}

/* What the first `count` of these documents give, whatever anyone is locked on; NULL: nothing. New reference. */
static json_t *record_from(struct sim *s, const json_t *record, const json_t *heard, size_t count, bool forced)
{
    json_t *received = json_array(), *results = json_object(), *payload, *out = NULL;
    const char *did;
    char hex[HASH_TEXT];
    json_object_foreach((json_t *)heard, did, payload)
    {
        if (json_array_size(received) < count)
            json_array_append(received, payload);
    }
    struct record_input input = { .rules = &s->rules,
                                  .previous = check_record(s, value_integer(record, "round") - 1),
                                  .block = json_object_get(record, "block"),
                                  .received = received,
                                  .forced = forced,
                                  .documents = s->documents,
                                  .results = results };
    bool made = false;
    for (int tries = 0; tries < 8 && !made; tries++) {
        json_t *request;
        enum record_outcome outcome = record_of(&input, &out, NULL);
        made = outcome == RECORD_MADE;
        if (made)
            break;
        request = outcome == RECORD_NEEDS ? json_object_get(out, "request") : NULL;
        if (request) {
            value_hash(request, "rondo/request", hex);
            json_object_set_new(results, hex, json_pack("{ssso}", "code", "ok", "result", sim_compute(s, request, false)));
        } else {
            tries = 8;
        }
        if (outcome == RECORD_NEEDS)
            json_decref(out);
        out = NULL;
    }
    json_decref(received);
    json_decref(results);
    return out;
}

static void scheme_key(char key[96], const char *did, const json_t *said)
{
    snprintf(key, 96, "%s/%lld/%lld", did, (long long)value_integer(said, "round"), (long long)value_integer(said, "view"));
}

/* A wrong state, one document fewer, a skip that nobody needs, or what this view's documents give though members are locked. */
static json_t *other_record(struct sim *s, const json_t *record, const json_t *heard, int kind)
{
    json_t *made = NULL;
    if (kind >= 2)
        made = record_from(s, record, heard, kind == 3 ? (size_t)s->set->threshold : json_object_size(heard), kind == 2);
    if (made)
        return made;
    made = json_deep_copy(record);
    if (kind == 1)
        json_array_remove(json_object_get(made, "received"), 0);
    else if (kind == 0)
        json_object_set_new(made, "state", json_string("another"));
    return made;
}

/* What this liar proposes in a view: a record to even, and perhaps another to odd numbers. Borrowed; NULL: what the rules say. */
static const json_t *scheme_of(struct sim *s, const struct node *n, const json_t *said, const json_t *record)
{
    char key[96], view[48];
    scheme_key(key, n->did, said);
    json_t *scheme = json_object_get(s->schemes, key);
    if (scheme || !record)
        return json_is_array(scheme) ? scheme : NULL;
    snprintf(view, sizeof view, "%lld/%lld", (long long)value_integer(said, "round"), (long long)value_integer(said, "view"));
    const json_t *heard = json_object_get(s->overheard, view);
    int kind = (int)sim_below(s, 8);
    if (kind < 7) {
        json_t *one = other_record(s, record, heard, kind);
        json_t *other = sim_below(s, 3) ? json_incref(one) : other_record(s, record, heard, 2 + (int)sim_below(s, 3));
        scheme = json_pack("[oo]", one, other);
    }
    json_object_set_new(s->schemes, key, scheme ? scheme : json_null());
    return scheme;
}

static void scheme_cid(const json_t *scheme, int to, char cid[CID_TEXT])
{
    value_cid(json_array_get(scheme, (size_t)(to & 1)), cid);
}

/* Puts the schemed record under the proposal, with a vote for it. */
static void other_proposal(struct sim *s, const struct node *n, int to, json_t *message, size_t at)
{
    json_t *documents = json_object_get(message, "documents"), *records = json_object_get(message, "records");
    const json_t *said = json_object_get(json_array_get(documents, at), "payload");
    const json_t *scheme = scheme_of(s, n, said, json_array_get(records, 0));
    char cid[CID_TEXT];
    if (!scheme)
        return;
    json_t *payload = json_deep_copy(said);
    scheme_cid(scheme, to, cid);
    json_object_set_new(payload, "record", json_string(cid));
    json_object_set_new(payload, "justification", json_null());
    json_array_append(records, json_array_get(scheme, (size_t)(to & 1)));
    json_array_append_new(documents,
                          vote_of(s, n->did, value_integer(said, "round"), value_integer(said, "view"), "prepare", cid));
    json_array_set_new(documents, at, liar_signs(s, "proposal", payload));
    sim_lie(s, LIE_PROPOSE);
}

/* Who schemes votes for its scheme. */
static json_t *other_vote(struct sim *s, const struct node *n, int to, const json_t *said)
{
    const json_t *scheme = scheme_of(s, n, said, NULL);
    char cid[CID_TEXT];
    if (!scheme)
        return NULL;
    scheme_cid(scheme, to, cid);
    return vote_of(s, n->did, value_integer(said, "round"), value_integer(said, "view"), value_text(said, "phase"), cid);
}

static void twist(struct sim *s, const struct node *n, int to, json_t *told, size_t i)
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
    } else if ((n->lie == LIE_ITEMS || n->lie == LIE_EQUIVOCATE) && !strcmp(type, "closed")) {
        made = liar_closed(s, said);
    } else if (n->lie == LIE_PROPOSE && !strcmp(type, "proposal")) {
        other_proposal(s, n, to, told, i);
    } else if (n->lie == LIE_PROPOSE && !strcmp(type, "vote")) {
        made = other_vote(s, n, to, said);
    } else if (n->lie == LIE_TWICE && !strcmp(type, "contribution") && to & 1) {
        json_t *payload = json_deep_copy(said);
        json_object_set_new(payload, "body", json_string("another"));
        made = liar_signs(s, "contribution", payload);
    }
    if (made) {
        sim_lie(s, n->lie);
        json_array_set_new(documents, i, made);
    }
}

json_t *liar_message(struct sim *s, const struct node *n, int to, json_t *message)
{
    static const uint64_t twisting = UINT64_C(1) << LIE_EQUIVOCATE | UINT64_C(1) << LIE_ITEMS | UINT64_C(1) << LIE_CENSOR |
                                     UINT64_C(1) << LIE_HEADS | UINT64_C(1) << LIE_PROPOSE;
    if (n->lie == LIE_SILENT) {
        sim_lie(s, LIE_SILENT);
        return NULL;
    }
    if (n->lie == LIE_MUTE && !sim_shows_nothing(s) &&
        value_is(json_array_get(json_object_get(message, "documents"), 0), "type", "opening")) {
        sim_lie(s, LIE_MUTE);
        return NULL;
    }
    if (n->lie == LIE_COPY && s->set->replicas) { /* its machine knows nothing of what it copies */
        const json_t *first = json_array_get(json_object_get(message, "documents"), 0);
        if (value_is(first, "type", "commitment") || value_is(first, "type", "contribution"))
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
            twist(s, n, to, told, i);
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
            documents, liar_signs(s, "received",
                                  json_pack("{sisssssIsIs{sisi}sis[]s[]sn}", "version", 1, "run", s->rules.run, "signer", n->did,
                                            "round", (json_int_t)sim_round(n), "view", (json_int_t)sim_below(s, 2000000), "head",
                                            "height", 1, "time", 1, "funded", 1, "items", "checked", "lock")));
    return liar_documents(documents);
}

/* Commits to its scheme as soon as anyone votes for it. */
static json_t *votes_for_scheme(struct sim *s, const struct node *n, const json_t *heard)
{
    json_t *documents = json_array(), *envelope;
    char cid[CID_TEXT];
    size_t i;
    json_array_foreach(json_object_get(heard, "documents"), i, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        const json_t *scheme = value_is(envelope, "type", "vote") ? scheme_of(s, n, said, NULL) : NULL;
        for (int to = 0; scheme && to < 2; to++) {
            scheme_cid(scheme, to, cid);
            if (value_is(said, "record", cid) && !json_array_size(documents))
                json_array_append_new(
                    documents, vote_of(s, n->did, value_integer(said, "round"), value_integer(said, "view"), "commit", cid));
        }
    }
    return liar_documents(documents);
}

/* Some accuse at once, some in the last record that may take it, some two after it, if the round is open then: it would stay so. */
static bool accuses_now(const struct sim *s, const struct node *n, int64_t round, int64_t heard)
{
    const int64_t last = round + s->rules.challenge_rounds, next = heard + 1;
    const int kind = (int)(n - s->nodes) % 3;
    if (s->set->besieged) /* when there is first something to hide */
        return heard == 2 || heard == 3;
    return kind == 0 ? round == heard : kind == 1 ? next == last : next > last + 1;
}

/* In a besieged run they share the work, and leave in peace who is to stay hidden behind it. */
static bool spares(const struct sim *s, const struct node *n, const char *did, size_t place)
{
    int node = sim_find(s, did);
    return s->set->besieged && (s->nodes[node].lie == LIE_BODY || (place + (size_t)(n - s->nodes)) % 2);
}

/* An accusation of every contribution of others in what the record just heard of holds open. */
static json_t *accuse(struct sim *s, const struct node *n, const json_t *heard)
{
    json_t *final, *entry, *item, *documents = json_array();
    size_t i, k, j;
    json_array_foreach(json_object_get(heard, "finals"), i, final)
    {
        const json_t *record = json_object_get(final, "record");
        json_array_foreach(json_object_get(record, "unsettled"), k, entry)
        {
            if (!accuses_now(s, n, value_integer(entry, "round"), value_integer(record, "round")))
                continue;
            json_array_foreach(json_object_get(entry, "contributions"), j, item)
            {
                if (!value_is(item, "did", n->did) && !spares(s, n, value_text(item, "did"), j))
                    json_array_append_new(documents,
                                          liar_signs(s, "challenge",
                                                     json_pack("{sisssssOsOsi}", "version", 1, "run", s->rules.run, "signer",
                                                               n->did, "round", json_object_get(entry, "round"), "contribution",
                                                               json_object_get(item, "cid"), "index", 3)));
            }
        }
    }
    return liar_documents(documents);
}

/* Two statements that an honest member may well make, one in each of two views. */
static bool may_both_be(const json_t *one, const json_t *other)
{
    const json_t *a = json_object_get(one, "payload"), *b = json_object_get(other, "payload");
    return (value_is(one, "type", "vote") || value_is(one, "type", "received")) &&
           value_is(other, "type", value_text(one, "type")) && value_is(a, "signer", value_text(b, "signer")) &&
           value_integer(a, "round") == value_integer(b, "round") && value_is(a, "phase", value_text(b, "phase")) &&
           value_integer(a, "view") != value_integer(b, "view");
}

/* They are shown as evidence against it. */
static json_t *frame(struct sim *s, const struct node *n)
{
    json_t *one, *other, *documents = json_array();
    size_t i, k;
    json_array_foreach(s->old, i, one) json_array_foreach(s->old, k, other)
    {
        const json_t *a = json_object_get(one, "payload");
        if (i < k && !json_array_size(documents) && may_both_be(one, other))
            json_array_append_new(documents, liar_signs(s, "equivocation",
                                                        json_pack("{sisssssssOs[OO]}", "version", 1, "run", s->rules.run,
                                                                  "signer", n->did, "did", value_text(a, "signer"), "round",
                                                                  json_object_get(a, "round"), "statements", one, other)));
    }
    return liar_documents(documents);
}

/* kind 3: the true votes of a view for something else; `view` is then theirs. */
static json_t *forged_votes(struct sim *s, const struct node *n, int64_t round, int64_t *view, const char *phase,
                            const char *record, int64_t q)
{
    json_t *votes = json_object(), *envelope;
    int kind = (int)sim_below(s, 4);
    char name[32];
    size_t i;
    for (int64_t k = 0; k < q && kind < 2; k++) { /* the own vote again and again; or votes of strangers */
        snprintf(name, sizeof name, "did:sim:x%03d", (int)k);
        json_object_set_new(votes, name, vote_of(s, kind ? name : n->did, round, *view, phase, record));
    }
    if (kind == 2) /* too few */
        json_object_set_new(votes, n->did, vote_of(s, n->did, round, *view, phase, record));
    json_array_foreach(s->old, i, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        if (kind != 3 || !value_is(envelope, "type", "vote") || value_integer(said, "round") != round ||
            !value_is(said, "phase", phase))
            continue;
        if (!json_object_size(votes))
            *view = value_integer(said, "view");
        if (value_integer(said, "view") == *view)
            json_object_set(votes, value_text(said, "signer"), envelope);
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
        int64_t of = view;
        json_t *votes = forged_votes(s, n, round, &of, phase, cid, q);
        made[i] = certificate_make(&s->rules, round, of, phase, cid, votes, q);
        json_decref(votes);
    }
    return json_pack("{s[oO]s[O]s[{soso}]s[oo]}", "certificates", made[0], made[1], "records", record, "finals", "record", record,
                     "certificate", made[1], "documents", vote_of(s, n->did, round, view, "prepare", cid),
                     liar_signs(s, "proposal",
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

/* In the replicated tier some of them claim an honest trainer's account, with what that signed for itself: seats of its would be theirs. */
static json_t *join_as_many(struct sim *s, const struct node *n)
{
    json_t *documents = json_array(), *payload;
    const struct node *victim = &s->nodes[s->count - 1];
    bool borrows = s->set->replicas && sim_below(s, 2) && victim->enrolment;
    char did[32];
    snprintf(did, sizeof did, "did:sim:x%03d", (int)sim_below(s, MANY));
    payload = json_pack("{sisssssssssi}", "version", 1, "run", s->rules.run, "signer", did, "role", "trainer", "account",
                        borrows ? victim->account : n->account, "round", 0);
    if (borrows)
        json_object_set(payload, "account_signature",
                        json_object_get(json_object_get(victim->enrolment, "payload"), "account_signature"));
    else
        sim_claim(s, n, payload);
    json_array_append_new(documents, liar_signs(s, "enrolment", payload));
    return liar_documents(documents);
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
    else if (n->lie == LIE_PROPOSE)
        extra = votes_for_scheme(s, n, heard);
    else if (n->lie == LIE_ACCUSE)
        extra = sim_below(s, 8) ? accuse(s, n, heard) : frame(s, n);
    else if (n->lie == LIE_COPY && s->set->replicas)
        extra = liar_copies(s, n);
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
    char cid[CID_TEXT];
    size_t i;
    sim_lie(s, LIE_RUBBISH);
    json_array_foreach(json_object_get(told, "finals"), i, final)
    {
        json_t *record = json_object_get(final, "record");
        json_object_set_new(record, "state", json_string("another"));
        if (value_cid(record, cid) && sim_below(s, 2)) /* with a certificate that claims to be for it */
            json_object_set_new(json_object_get(final, "certificate"), "record", json_string(cid));
    }
    for (i = json_array_size(documents); i-- > 0;)
        if (sim_below(s, 2))
            json_array_remove(documents, i);
    return told;
}
