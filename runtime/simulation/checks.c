#include "runtime/simulation/simulation_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/committee.h"
#include "runtime/round/dispute.h"
#include "runtime/round/fold.h"
#include "runtime/round/history.h"
#include "runtime/round/replica.h"
#include "runtime/round/value.h"

const json_t *check_record(const struct sim *s, int64_t round)
{
    return round < 0 ? NULL : json_object_get(json_array_get(s->finals, (size_t)round), "record");
}

static bool is_honest(const struct sim *s, const char *did)
{
    int i = sim_find(s, did);
    return i >= 0 && s->nodes[i].lie == FAULT_KINDS;
}

/* A committee tolerates f of its members; beyond that nothing is promised of what is listed, nor that a round ends. */
static bool too_many_lie(const struct sim *s, const json_t *committee)
{
    int64_t liars = 0;
    for (size_t i = 0; i < json_array_size(committee); i++)
        liars += !is_honest(s, json_string_value(json_array_get(committee, i)));
    return liars && liars > committee_quorum(&s->rules, committee).f;
}

/* In the replicated tier what counts is what q members listed when they closed. Liars may have told each member something else: those that are
 * honest are enough where the commitment was in time for all. */
static bool was_committed(const struct sim *s, const json_t *contribution)
{
    char cid[CID_TEXT], key[96];
    int64_t listed = 0;
    if (!s->set->replicas)
        return true;
    replica_commitment_cid(contribution, cid);
    for (int i = 0; i < s->set->syncers; i++) {
        snprintf(key, sizeof key, "%s/%lld", s->nodes[i].did, (long long)value_integer(contribution, "round"));
        listed += value_lists(json_object_get(s->closed_of, key), cid);
    }
    return listed >= s->set->threshold;
}

/* ---- what leaves a machine -------------------------------------------------------------------------------------------- */

/* What a member lists is fixed when it first says so, and holds what it had taken in when its round closed. */
static void check_received(struct sim *s, struct node *from, json_t *payload)
{
    json_t *items = json_object_get(payload, "items"), *envelope;
    int64_t round = value_integer(payload, "round");
    const char *cid;
    char key[96];
    snprintf(key, sizeof key, "%s/%lld", from->did, (long long)round);
    const json_t *known = json_object_get(s->items_of, key);
    if (known && !json_equal(known, items))
        sim_fail(s, STATEMENT, "%s lists other items in another view of round %lld", from->did, (long long)round);
    if (known)
        return;
    json_object_set(s->items_of, key, items);
    if (round != from->closing_round || from->jumped == round || !from->closing)
        return;
    json_object_set(s->timely, key, from->closing);
    json_object_foreach(from->closing, cid, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        if (value_integer(said, "round") == round && is_honest(s, value_text(said, "signer")) && was_committed(s, said) &&
            !value_is(value_find(items, "cid", cid), "code", "ok"))
            sim_fail(s, CENSORED, "%s held the contribution of %s when it closed round %lld and does not list it", from->did,
                     value_text(said, "signer"), (long long)round);
    }
}

/* ---- views ------------------------------------------------------------------------------------------------------------ */

/* Of a view of a round: when the first honest member was in it, how many were, whether an honest one leads it. */
static json_t *view_of(struct sim *s, int64_t round, int64_t view)
{
    char key[48];
    snprintf(key, sizeof key, "%lld/%lld", (long long)round, (long long)view);
    json_t *of = json_object_get(s->views, key);
    if (!of)
        json_object_set_new(s->views, key, of = json_pack("{sIsisb}", "first", (json_int_t)s->now, "members", 0, "led", 0));
    return of;
}

void check_leads(struct sim *s, const struct node *n, const json_t *state)
{
    if (n->syncer && n->lie == FAULT_KINDS && json_is_true(json_object_get(state, "leads")) && value_integer(state, "view") >= 0)
        json_object_set_new(view_of(s, value_integer(state, "round"), value_integer(state, "view")), "led", json_true());
}

/* Whether nothing has gone wrong since, and nobody but silent members keeps anything from a leader. */
static bool is_quiet(const struct sim *s, int64_t since)
{
    bool late = s->set->faults >> FAULT_LATE & 1;
    if (since < s->set->faults_until + (late ? 20000 : 0) || since < s->partition_until)
        return false;
    for (int i = 0; i < s->set->syncers; i++) {
        const struct node *n = &s->nodes[i];
        if (since < n->full_until || (n->lie == FAULT_KINDS ? !n->alive : n->lie != LIE_SILENT))
            return false;
    }
    return true;
}

/* Whoever is first in a view has spent its time in the one before: a liar that speaks of views far ahead moves nobody. Members of round 0 that
 * lost a disk count as liars. */
static void check_step(struct sim *s, int64_t round, int64_t view)
{
    char key[48];
    snprintf(key, sizeof key, "%lld/%lld", (long long)round, (long long)view - 1);
    if (!round || !view || json_object_get(s->views, key) || round != (int64_t)json_array_size(s->finals))
        return;
    json_t *committee = committee_draw(&s->rules, check_record(s, round - 1), round, NULL);
    if (!too_many_lie(s, committee))
        sim_fail(s, ENDS, "view %lld of round %lld begins though nobody honest was in the one before", (long long)view,
                 (long long)round);
    json_decref(committee);
}

/* Once faults have stopped, a view that every honest member is in for half its time and whose leader is honest decides: nobody leaves it for the
 * next. The first is too short for what slow machines have to fetch. */
static void check_view(struct sim *s, int64_t round, int64_t view)
{
    json_t *entered = view_of(s, round, view), *left;
    int64_t honest = s->set->syncers - s->set->lying_syncers, half = view < 1 ? 0 : (VIEW_MS << (view < 7 ? view - 1 : 6)) / 2;
    json_object_set_new(entered, "members", json_integer(value_integer(entered, "members") + 1));
    if (value_integer(entered, "members") == 1)
        check_step(s, round, view);
    if (value_integer(entered, "members") == honest)
        json_object_set_new(entered, "all", json_integer(s->now));
    if (view < 2 || round < (int64_t)json_array_size(s->finals))
        return;
    left = view_of(s, round, view - 1);
    if (json_is_true(json_object_get(left, "led")) && value_integer(left, "members") == honest &&
        s->now >= value_integer(left, "all") + half && is_quiet(s, value_integer(left, "first")))
        sim_fail(s, ENDS, "view %lld of round %lld ends undecided though its leader is honest and all were there",
                 (long long)view - 1, (long long)round);
}

/* A statement that leaves its signer: what a crash kept from being sent was never said. */
void check_statement(struct sim *s, struct node *from, const json_t *envelope)
{
    json_t *payload = json_object_get(envelope, "payload");
    const char *type = value_text(envelope, "type"), *cid = value_text(envelope, "cid");
    char key[256];
    if (from->lie != FAULT_KINDS || !value_is(payload, "signer", from->did) || !strcmp(type, "challenge") ||
        !strcmp(type, "equivocation") || !strcmp(type, "enrolment") || !strcmp(type, "pick") || !strcmp(type, "opening"))
        return;
    if (from->lost_disk && !value_integer(payload, "round"))
        return; /* in round 0 an empty disk makes a new machine: docs/protocol.md */
    snprintf(key, sizeof key, "%s/%s/%lld/%lld/%s", from->did, type, (long long)value_integer(payload, "round"),
             (long long)value_integer(payload, "view"), value_text(payload, "phase"));
    const json_t *known = json_object_get(s->signed_by, key);
    if (known && strcmp(json_string_value(known), cid))
        sim_fail(s, STATEMENT, "%s signed two statements: %s", from->did, key);
    if (known)
        return;
    from->wiped = false;
    json_object_set_new(s->signed_by, key, json_string(cid));
    sim_tell(s, 1, from->did, "%s %s round %lld view %lld %.12s", type, value_text(payload, "phase"),
             (long long)value_integer(payload, "round"), (long long)value_integer(payload, "view"),
             value_text(payload, "record") + (strlen(value_text(payload, "record")) > 12 ? 50 : 0));
    if (!strcmp(type, "closed")) {
        snprintf(key, sizeof key, "%s/%lld", from->did, (long long)value_integer(payload, "round"));
        json_object_set(s->closed_of, key, json_object_get(payload, "commitments"));
    }
    if (strcmp(type, "received"))
        return;
    check_received(s, from, payload);
    check_view(s, value_integer(payload, "round"), value_integer(payload, "view"));
}

/* ---- a decided round --------------------------------------------------------------------------------------------------- */

static json_t *source_document(void *context, const char *cid)
{
    struct sim *s = context;
    return json_incref(json_object_get(s->documents, cid));
}

static json_t *source_block(void *context, int64_t height)
{
    return chain_block(context, height);
}

static json_t *source_result(void *context, const json_t *request)
{
    struct sim *s = context;
    char hex[HASH_TEXT];
    fold_hash(request, hex);
    json_t *known = json_object_get(s->results, hex);
    return json_pack("{ssso}", "code", "ok", "result", known ? json_incref(known) : sim_compute(s, request, false));
}

static bool recomputes(struct sim *s, const json_t *previous, const json_t *final, struct error *err)
{
    struct signing signing = { .context = s, .sign = sim_sign, .open = sim_open }; /* nothing is remembered here */
    struct history_source source = { s, source_document, source_block, source_result };
    return history_check_round(&s->rules, previous, final, &signing, &source, err);
}

/* Parts that were accepted: of a group one. */
static size_t accepted(const json_t *record)
{
    json_t *parts = json_object(), *item;
    size_t i;
    json_array_foreach(json_object_get(record, "contributions"), i, item)
    {
        if (value_is(item, "code", "ok"))
            json_object_set_new(parts, value_text(item, json_object_get(item, "group") ? "group" : "did"), json_true());
    }
    size_t count = json_object_size(parts);
    json_decref(parts);
    return count;
}

/* Two of a group, alike, and nobody who did not train among them. */
static void check_groups(struct sim *s, const json_t *record)
{
    json_t *list = json_object_get(record, "contributions"), *item, *other;
    long long round = (long long)value_integer(record, "round");
    size_t i, k;
    json_array_foreach(list, i, item)
    {
        size_t alike = 0, node = (size_t)sim_find(s, value_text(item, "did"));
        if (!s->set->replicas || !value_is(item, "code", "ok"))
            continue;
        json_array_foreach(list, k, other)
        {
            if (!value_is(other, "group", value_text(item, "group")) || !value_is(other, "code", "ok"))
                continue;
            alike++;
            if (!value_is(other, "body", value_text(item, "body")))
                sim_fail(s, MONEY, "round %lld accepts two results of one group", round);
        }
        if (alike < 2)
            sim_fail(s, MONEY, "round %lld accepts what %s alone gave", round, value_text(item, "did"));
        if (s->nodes[node].lie == LIE_COPY && !too_many_lie(s, json_object_get(record, "committee")))
            sim_fail(s, MONEY, "round %lld accepts what %s copied", round, value_text(item, "did"));
    }
}

/* Whether an honest member said so. */
static bool was_listed(const struct sim *s, const json_t *record, const char *cid, const char *code)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(record, "received"), i, name)
    {
        const json_t *said = json_object_get(json_object_get(s->documents, json_string_value(name)), "payload");
        if (is_honest(s, value_text(said, "signer")) &&
            value_is(value_find(json_object_get(said, "items"), "cid", cid), "code", code))
            return true;
    }
    return false;
}

/* The rules of kinds, on their own. */
static void check_kind(struct sim *s, const json_t *previous, const json_t *record)
{
    size_t i;
    json_t *item;
    int64_t round = value_integer(record, "round");
    const json_t *first =
        json_object_get(s->documents, json_string_value(json_array_get(json_object_get(record, "received"), 0)));
    int64_t view = value_integer(json_object_get(first, "payload"), "view"),
            n = (int64_t)json_array_size(json_object_get(record, "committee"));
    bool carried = !previous || json_equal(json_object_get(record, "outer"), json_object_get(previous, "outer"));
    bool corrects = !previous || value_integer(previous, "correct") ||
                    !json_equal(json_object_get(record, "convicted"), json_object_get(previous, "convicted"));
    json_array_foreach(json_object_get(record, "contributions"), i, item)
    {
        const json_t *next = json_array_get(json_object_get(record, "contributions"), i + 1); /* they ascend by DID */
        if (value_is(item, "code", "ok") && value_is(next, "code", "ok") && value_is(next, "did", value_text(item, "did")))
            sim_fail(s, MONEY, "round %lld accepts two contributions of %s", (long long)round, value_text(item, "did"));
        if (value_is(item, "code", "ok") && !was_listed(s, record, value_text(item, "cid"), "ok") &&
            !too_many_lie(s, json_object_get(record, "committee")))
            sim_fail(s, MONEY, "round %lld accepts a contribution of %s that no honest member found right", (long long)round,
                     value_text(item, "did"));
    }
    check_groups(s, record);
    if (value_is(record, "kind", "train") && (int64_t)accepted(record) < amendment_quorum(&s->rules, previous, round))
        sim_fail(s, STATE, "round %lld trains with fewer than the quorum", (long long)round);
    json_array_foreach(json_object_get(record, "members"), i, item)
    {
        if (s->set->deposits && value_is(item, "role", "trainer") &&
            !value_find(json_object_get(record, "deposits"), "did", value_text(item, "did")) &&
            !value_find(json_object_get(record, "returned"), "did", value_text(item, "did")))
            sim_fail(s, MONEY, "round %lld: %s is a member without a deposit", (long long)round, value_text(item, "did"));
    }
    if (value_is(record, "kind", "skip") && !carried && !corrects)
        sim_fail(s, STATE, "round %lld is skipped and its state is another", (long long)round);
    if (value_is(record, "reason", "forced") && view < n)
        sim_fail(s, STATE, "round %lld is skipped without need in view %lld", (long long)round, (long long)view);
    char key[CID_TEXT + 24];
    snprintf(key, sizeof key, "%s/%lld", value_text(json_array_get(s->finals, (size_t)round), "cid"), (long long)view);
    if (value_integer(s->prepared, key) >= value_integer(record, "next_height"))
        sim_fail(s, FORK, "round %lld: the block of the next seed was known when the record was voted for", (long long)round);
}

/* What all honest members whose documents the record lists had when they closed is accepted. */
static void check_timely(struct sim *s, const json_t *record)
{
    json_t *all = NULL, *name, *envelope;
    int64_t round = value_integer(record, "round");
    const char *cid;
    size_t i;
    json_array_foreach(json_object_get(record, "received"), i, name)
    {
        const json_t *document = json_object_get(s->documents, json_string_value(name));
        const char *did = value_text(json_object_get(document, "payload"), "signer");
        char key[96];
        void *next;
        snprintf(key, sizeof key, "%s/%lld", did, (long long)round);
        json_t *closing = json_object_get(s->timely, key);
        if (!is_honest(s, did))
            continue;
        if (!all)
            all = closing ? json_copy(closing) : json_object();
        json_object_foreach_safe(all, next, cid, envelope)
        {
            if (!json_object_get(closing, cid))
                json_object_del(all, cid);
        }
    }
    json_object_foreach(all, cid, envelope)
    {
        const json_t *said = json_object_get(envelope, "payload");
        const char *code = value_text(value_find(json_object_get(record, "contributions"), "cid", cid), "code");
        bool taken = !strcmp(code, "ok") || (s->set->replicas && (!strcmp(code, "differs") || !strcmp(code, "alone")));
        if (value_integer(said, "round") == round && is_honest(s, value_text(said, "signer")) && was_committed(s, said) && !taken)
            sim_fail(s, CENSORED, "round %lld leaves out the contribution of %s", (long long)round, value_text(said, "signer"));
    }
    json_decref(all);
}

static void count_record(struct sim *s, const json_t *record)
{
    struct simulation_result *result = s->result;
    result->rounds++;
    result->train += value_is(record, "kind", "train");
    result->skip += value_is(record, "kind", "skip");
    result->liar_convicted |= json_array_size(json_object_get(record, "convicted")) > 0;
    if (value_is(value_find(json_object_get(record, "contributions"), "did", s->nodes[s->count - 1].did), "code", "ok"))
        result->last_trainer_at = value_integer(record, "round");
    snprintf(result->state, sizeof result->state, "%s", value_text(record, "state"));
}

/* Whom t members found to lie is convicted by the record that says so. */
static void check_upheld(struct sim *s, const json_t *previous, const json_t *record)
{
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(record, "items"), i, item)
    {
        const json_t *envelope = json_object_get(s->documents, value_text(item, "cid")), *entry;
        const char *did = "";
        if (!value_is(item, "type", "challenge") || !value_is(item, "code", "upheld"))
            continue;
        entry = disputes_entry_of(previous, value_text(json_object_get(envelope, "payload"), "contribution"), &did);
        if (entry && !fold_is_removed(json_object_get(record, "convicted"), did, value_integer(entry, "round")))
            sim_fail(s, CONVICTED, "round %lld: %s was found to lie and is not convicted",
                     (long long)value_integer(record, "round"), did);
    }
}

static void check_first(struct sim *s, json_t *record, json_t *certificate)
{
    int64_t round = value_integer(record, "round");
    const json_t *previous = check_record(s, round - 1);
    struct error err = { 0 };
    char cid[CID_TEXT];
    size_t i;
    json_t *item;
    if (round != (int64_t)json_array_size(s->finals)) {
        sim_fail(s, FORK, "round %lld is decided before round %zu", (long long)round, json_array_size(s->finals));
        return;
    }
    value_cid(record, cid);
    json_array_append_new(s->finals, json_pack("{sOsOss}", "record", record, "certificate", certificate, "cid", cid));
    sim_tell(s, 1, "", "round %lld: %s %s", (long long)round, value_text(record, "kind"), value_text(record, "reason"));
    if (!recomputes(s, previous, json_array_get(s->finals, (size_t)round), &err))
        sim_fail(s, FORK, "%s: %s", err.place, err.message);
    check_kind(s, previous, record);
    check_timely(s, record);
    check_work(s, previous, record);
    check_upheld(s, previous, record);
    json_array_foreach(json_object_get(record, "convicted"), i, item)
    {
        if (is_honest(s, value_text(item, "did")))
            sim_fail(s, CONVICTED, "round %lld: %s is honest and convicted", (long long)round, value_text(item, "did"));
    }
    json_array_foreach(json_object_get(record, "items"), i, item)
    {
        if (value_is(item, "code", "rejected") && is_honest(s, value_text(item, "did")) &&
            !too_many_lie(s, json_object_get(record, "committee")))
            sim_fail(s, CONVICTED, "round %lld: %s is honest and loses what it says of others", (long long)round,
                     value_text(item, "did"));
    }
    json_array_foreach(json_object_get(record, "settled"), i, item) check_payout(s, record, item);
    count_record(s, record);
    s->deadline = s->now >= s->set->faults_until ? s->now + simulation_bound(s->set, 0) : 0;
}

void check_final(struct sim *s, int node, json_t *record, json_t *certificate)
{
    int64_t round = value_integer(record, "round");
    const json_t *known = check_record(s, round);
    if (!known)
        check_first(s, record, certificate);
    else if (!json_equal(record, known))
        sim_fail(s, FORK, "round %lld has two final records (%s)", (long long)round, s->nodes[node].did);
}

/* ---- time and restarts -------------------------------------------------------------------------------------------------- */

static void tell_nodes(const struct sim *s, char *text, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < s->count && used < room; i++) {
        const struct node *n = &s->nodes[i];
        used += (size_t)snprintf(text + used, room - used, " %s %s %lld/%lld", n->did + 8,
                                 n->member    ? member_phase(n->member)
                                 : n->trainer ? trainer_phase(n->trainer)
                                              : "down",
                                 (long long)sim_round(n), (long long)(n->member ? member_view(n->member) : -1));
    }
}

/* Who was not enrolled when round 0 was over has no seat, and a committee that is smaller than the panel tolerates fewer liars, three members
 * none: they decide when the next block of a seed comes, or that a round does not end. */
static bool is_overcome(const struct sim *s)
{
    const json_t *last = check_record(s, (int64_t)json_array_size(s->finals) - 1);
    if (!last)
        return false;
    json_t *open = committee_draw(&s->rules, last, value_integer(last, "round") + 1, NULL);
    bool overcome = too_many_lie(s, json_object_get(last, "committee")) || too_many_lie(s, open);
    json_decref(open);
    return overcome;
}

void check_deadline(struct sim *s)
{
    char text[400] = "";
    int64_t view = 0;
    if (s->now < s->set->faults_until)
        return;
    for (int i = 0; i < s->set->syncers && !s->deadline; i++) {
        const struct node *n = &s->nodes[i];
        if (n->lie == FAULT_KINDS && n->member && member_view(n->member) > view)
            view = member_view(n->member);
    }
    if (!s->deadline)
        s->deadline = s->now + simulation_bound(s->set, view);
    if (s->now <= s->deadline)
        return;
    if (is_overcome(s)) {
        s->result->overcome = true;
        sim_tell(s, 1, "", "round %zu does not end: its committee has more liars than it tolerates", json_array_size(s->finals));
        return;
    }
    tell_nodes(s, text, sizeof text);
    sim_fail(s, ENDS, "round %zu is not over:%s", json_array_size(s->finals), text);
}

/* What was said together was written together: all of one view, a commit vote with the lock it stands on. */
static bool is_whole(const json_t *durable)
{
    json_t *own = json_object_get(durable, "own"), *said;
    const char *name, *committed = value_text(json_object_get(own, "commit"), "record");
    json_object_foreach(own, name, said)
    {
        if (value_integer(said, "view") != value_integer(durable, "view"))
            return false;
    }
    return !*committed || value_is(json_object_get(durable, "lock"), "record", committed);
}

void check_restart(struct sim *s, int node)
{
    const struct node *n = &s->nodes[node];
    if (n->lie == FAULT_KINDS && !is_whole(json_object_get(n->disk, "round")))
        sim_fail(s, RESTART, "%s comes back with votes that do not belong together", n->did);
    const json_t *finals = n->member ? member_finals(n->member) : trainer_finals(n->trainer);
    size_t i;
    json_t *final;
    json_array_foreach((json_t *)finals, i, final)
    {
        const json_t *known = check_record(s, (int64_t)i);
        if (!known &&
            n->lie == FAULT_KINDS) /* it stopped between writing what was decided and telling it, and nobody else knew */
            check_first(s, json_object_get(final, "record"), json_object_get(final, "certificate"));
        if (known && n->lie == FAULT_KINDS && !json_equal(json_object_get(final, "record"), known))
            sim_fail(s, RESTART, "%s comes back with another record of round %zu", n->did, i);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------------------------- */

/* Whether what `did` gave to round `of` stands in the last state: convictions reach back over rounds open at the time. */
static bool stands(const struct sim *s, const json_t *last, const char *did, int64_t of)
{
    const json_t *entry = value_find(json_object_get(last, "convicted"), "did", did), *before;
    size_t i;
    json_t *open;
    if (!entry || value_integer(entry, "round") > of)
        return true;
    if (of >= value_integer(entry, "record"))
        return false;
    before = check_record(s, value_integer(entry, "record") - 1);
    json_array_foreach(json_object_get(before, "unsettled"), i, open)
    {
        if (value_integer(open, "round") == of)
            return false;
    }
    return true;
}

static json_t *kept_of(const struct sim *s, const json_t *record, const json_t *last)
{
    json_t *kept = json_array(), *item, *groups = json_object();
    size_t i;
    json_array_foreach(json_object_get(record, "contributions"), i, item)
    {
        if (json_object_get(groups, value_text(item, "group")))
            continue;
        if (value_is(item, "code", "ok") && json_object_get(item, "group") &&
            stands(s, last, value_text(item, "did"), value_integer(record, "round")))
            json_object_set_new(groups, value_text(item, "group"), json_true());
        if (value_is(item, "code", "ok") && stands(s, last, value_text(item, "did"), value_integer(record, "round")))
            json_array_append_new(kept, json_pack("{sOsOsO}", "cid", json_object_get(item, "cid"), "did",
                                                  json_object_get(item, "did"), "weight", json_object_get(item, "weight")));
    }
    json_decref(groups);
    return kept;
}

/* Folds again, plainly, what was kept. */
static void check_state(struct sim *s)
{
    size_t rounds = json_array_size(s->finals);
    const json_t *last = check_record(s, (int64_t)rounds - 1);
    json_t *outer = json_string("genesis-outer");
    for (size_t r = 1; r < rounds; r++) {
        const json_t *record = check_record(s, (int64_t)r);
        json_t *kept = kept_of(s, record, last);
        if (value_is(record, "kind", "train") &&
            (int64_t)json_array_size(kept) >= amendment_quorum(&s->rules, last, (int64_t)r)) {
            json_t *next = sim_fold_step(outer, json_object_get(record, "round"), kept);
            json_decref(outer);
            outer = next;
        }
        json_decref(kept);
    }
    if (strcmp(json_string_value(outer), value_text(last, "outer")))
        sim_fail(s, STATE, "the last state is not the fold of what was kept");
    json_decref(outer);
}

void check_end(struct sim *s)
{
    for (int i = 0; i < s->count; i++) {
        const struct node *n = &s->nodes[i];
        const json_t *finals = n->member ? member_finals(n->member) : n->trainer ? trainer_finals(n->trainer) : NULL;
        if (n->lie == FAULT_KINDS && json_array_size(finals) != json_array_size(s->finals))
            sim_fail(s, RESTART, "%s ends with %zu of %zu records", n->did, json_array_size(finals), json_array_size(s->finals));
    }
    if (!s->set->rollback)
        check_state(s);
    chain_end(s);
    /* A record that was changed afterwards does not pass. */
    int64_t at = sim_below(s, (int64_t)json_array_size(s->finals));
    json_t *changed = json_deep_copy(json_array_get(s->finals, (size_t)at));
    json_object_set_new(json_object_get(changed, "record"), "state", json_string("another"));
    if (recomputes(s, check_record(s, at - 1), changed, NULL))
        sim_fail(s, FORK, "a changed record of round %lld passes", (long long)at);
    json_decref(changed);
}
