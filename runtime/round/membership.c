#include "runtime/round/membership.h"

#include <string.h>

#include "runtime/crypto/account.h"
#include "runtime/round/amendment.h"
#include "runtime/round/claim.h"
#include "runtime/round/deposit.h"
#include "runtime/round/hardware.h"
#include "runtime/round/regions.h"
#include "runtime/round/replica.h"
#include "runtime/round/value.h"

static void remove_member(json_t *members, const char *did)
{
    for (size_t i = json_array_size(members); i-- > 0;)
        if (value_is(json_array_get(members, i), "did", did))
            json_array_remove(members, i);
}

/* DID -> code of what the record takes for its work: what its checks found right, also where its group did not agree. What was refused is none:
 * who shows rubbish would else keep its shards, and cost its group each round, for ever. New reference. */
static json_t *done_work(const json_t *contributions)
{
    json_t *done = json_object(), *line;
    size_t i;
    json_array_foreach((json_t *)contributions, i, line)
    {
        if (value_is(line, "code", "ok") || value_is(line, "code", "differs") || value_is(line, "code", "alone"))
            json_object_set(done, value_text(line, "did"), json_object_get(line, "code"));
    }
    return done;
}

/* Accounts of whom this record convicts: as members, or, where they have left, as what they did is paid to. */
static void add_convicted(const struct membership_change *c, json_t *accounts)
{
    json_t *one, *entry;
    size_t i, k;
    json_array_foreach((json_t *)c->convicted, i, one)
    {
        const char *did = value_text(one, "did");
        if (value_integer(one, "record") != c->round)
            continue;
        json_object_set_new(accounts, value_text(value_find(json_object_get(c->previous, "members"), "did", did), "account"),
                            json_true());
        json_array_foreach(json_object_get(c->previous, "unsettled"), k, entry) json_object_set_new(
            accounts, value_text(value_find(json_object_get(entry, "contributions"), "did", did), "account"), json_true());
    }
}

/* In the replicated tier who was away, or lied, has cost its partner the round: no group depends on a machine of its account until each has
 * given REPLICA_TRIAL results that were taken. `fell`: accounts. */
static void set_trials(const struct membership_change *c, json_t *members, const json_t *done, json_t *fell)
{
    json_t *member;
    size_t i;
    add_convicted(c, fell);
    json_array_foreach(members, i, member)
    {
        int64_t trial = value_integer(member, "trial") - value_is(done, value_text(member, "did"), "ok");
        if (c->rules->replicas < 2 || !value_is(member, "role", "trainer"))
            continue;
        if (json_object_get(fell, value_text(member, "account")))
            trial = REPLICA_TRIAL;
        if (trial > 0)
            json_object_set_new(member, "trial", json_integer(trial));
        else
            json_object_del(member, "trial");
    }
}

/* Only work ends an absence: who had no shard is neither here nor away. A round without a plan, or one that was skipped by force, tells
 * nothing of its trainers. */
static void count_absence(const struct membership_change *c, json_t *members)
{
    const bool tells = c->planned && amendment_trains(c->rules, c->previous, c->round);
    json_t *done = tells ? done_work(c->contributions) : json_object(), *fell = json_object();
    for (size_t i = tells ? json_array_size(members) : 0; i-- > 0;) {
        json_t *member = json_array_get(members, i);
        const char *did = value_text(member, "did");
        if (!value_is(member, "role", "trainer") || !json_array_size(json_object_get(value_find(c->parts, "did", did), "shards")))
            continue;
        int64_t absent = json_object_get(done, did) ? 0 : value_integer(member, "absent") + 1;
        json_object_set_new(member, "absent", json_integer(absent));
        if (absent)
            json_object_set_new(fell, value_text(member, "account"), json_true());
        if (absent >= c->rules->drop_after)
            json_array_remove(members, i);
    }
    set_trials(c, members, done, fell);
    json_decref(done);
    json_decref(fell);
}

/* What each accepted contribution ended with. */
static void take_carries(const struct membership_change *c, json_t *members)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)c->contributions, i, item)
    {
        const json_t *payload = json_object_get(json_object_get(c->documents, value_text(item, "cid")), "payload");
        json_t *member = value_find(members, "did", value_text(item, "did")), *object = json_object_get(payload, "carry");
        if (!c->train || !member || !value_is(item, "code", "ok"))
            continue;
        if (object)
            json_object_set_new(member, "carry",
                                json_pack("{sOsO}", "root", json_object_get(payload, "carry_out"), "object", object));
        else
            json_object_del(member, "carry");
    }
}

/* Whoever is in by now: DIDs and numbers by role, as enrolments are taken. */
struct admitted {
    json_t *members, *by_did, *of_role;
};

static void count_role(struct admitted *in, const char *role, json_int_t more)
{
    json_object_set_new(in->of_role, role, json_integer((json_int_t)value_integer(in->of_role, role) + more));
}

static void admit(struct admitted *in, json_t *member)
{
    if (!json_object_get(in->by_did, value_text(member, "did")))
        json_object_set(in->by_did, value_text(member, "did"), member);
    count_role(in, value_text(member, "role"), 1);
}

/* What a trainer takes of a round and where it stands, where the spec asks; a new enrolment says both anew. */
static void take_assignable(const struct rules *rules, const json_t *payload, json_t *known, json_t *made)
{
    json_t *batches = json_object_get(json_object_get(payload, "capacity"), "batches"),
           *region = json_object_get(payload, "region");
    if (known) {
        json_object_del(known, "batches");
        json_object_del(known, "region");
    }
    if (!value_is(payload, "role", "trainer"))
        return;
    if (rules->batches && batches)
        json_object_set(made, "batches", batches);
    if (rules->regions && region)
        json_object_set(made, "region", region);
}

/* Whom no group depends on yet: who comes when the run has begun, unless its account has a machine that is past that. */
static int64_t first_trial(const json_t *members, const char *account)
{
    int64_t trial = REPLICA_TRIAL;
    json_t *member;
    size_t i;
    json_array_foreach((json_t *)members, i, member)
    {
        if (value_is(member, "role", "trainer") && value_is(member, "account", account) && value_integer(member, "trial") < trial)
            trial = value_integer(member, "trial");
    }
    return trial;
}

static void take_enrolment(const struct rules *rules, bool begun, struct admitted *in, const json_t *item, const json_t *payload)
{
    const char *did = value_text(payload, "signer");
    bool trainer = value_is(payload, "role", "trainer");
    const json_t *seat = trainer ? NULL : value_find(rules->panel, "did", did);
    const char *account = value_text(seat ? seat : payload, "account");
    json_t *known = json_object_get(in->by_did, did);
    char root[HASH_TEXT];
    const bool held = hardware_held(in->members, hardware_root(payload, root), did); /* by one that this record takes, too */
    if (held && !seat)
        return;
    if (!seat && !known && value_integer(in->of_role, value_text(payload, "role")) >= rules->trainers_limit)
        return;
    json_t *made = json_pack("{sssOsssOsI}", "did", did, "role", json_object_get(payload, "role"), "account", account,
                             "enrolment", json_object_get(item, "cid"), "absent",
                             (json_int_t)value_integer(known, "absent")); /* only work ends an absence */
    take_assignable(rules, payload, known, made);
    if (known)
        json_object_del(known, "root");
    if (*root && !held)
        json_object_set_new(made, "root", json_string(root));
    if (known) {
        count_role(in, value_text(known, "role"), -1);
        json_object_update(known, made);
        count_role(in, value_text(known, "role"), 1);
    } else {
        int64_t trial = begun && trainer && rules->replicas > 1 ? first_trial(in->members, account) : 0;
        if (trial)
            json_object_set_new(made, "trial", json_integer(trial));
        json_array_append(in->members, made);
        admit(in, made);
    }
    json_decref(made);
}

/* Takes the items of one type. */
static void take_items(const struct membership_change *c, json_t *members, const char *type)
{
    struct admitted in = { .members = members, .by_did = json_object(), .of_role = json_object() };
    size_t i;
    json_t *item;
    json_array_foreach(members, i, item) admit(&in, item);
    json_array_foreach((json_t *)c->items, i, item)
    {
        const json_t *payload = json_object_get(json_object_get(c->documents, value_text(item, "cid")), "payload");
        if (!value_is(item, "type", type) || !value_is(item, "code", "ok") ||
            strcmp(membership_code(c->rules, c->previous, type, payload), "ok"))
            continue;
        if (!strcmp(type, "leave"))
            remove_member(members, value_text(payload, "signer"));
        else
            take_enrolment(c->rules, c->previous, &in, item, payload);
    }
    json_decref(in.by_did);
    json_decref(in.of_role);
}

bool membership_concerns(const json_t *record, const char *did)
{
    const json_t *disputes = json_object_get(record, "disputes");
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(record, "unsettled"), i, entry)
    {
        if (value_find(json_object_get(entry, "contributions"), "did", did))
            return true;
    }
    return value_find(json_object_get(record, "members"), "did", did) || value_find(disputes, "did", did) ||
           value_find(disputes, "challenger", did);
}

json_t *membership_after(const struct membership_change *c)
{
    json_t *before = json_object_get(c->previous, "members"), *members = before ? json_deep_copy(before) : json_array(), *one;
    size_t i;
    count_absence(c, members);
    take_carries(c, members);
    take_items(c, members, "leave");
    take_items(c, members, "enrolment");
    json_array_foreach((json_t *)c->convicted, i, one) remove_member(members, value_text(one, "did"));
    for (i = json_array_size(members); i-- > 0;) { /* a challenge for nothing has cost the deposit that the seat needs */
        one = json_array_get(members, i);
        if (value_lists(c->barred, value_text(one, "did")) &&
            deposit_due(c->rules, value_text(one, "did"), value_text(one, "role")))
            json_array_remove(members, i);
    }
    value_sort(members, "did");
    return members;
}

/* Of an enrolment, but for what it shows of its hardware. */
static const char *seat_code(const struct rules *rules, const json_t *previous, const json_t *known, const json_t *payload)
{
    const char *did = value_text(payload, "signer");
    struct address account;
    if (known && !value_is(known, "role", value_text(payload, "role")))
        return "role";
    if (value_is(payload, "role", "syncer"))
        return value_find(rules->panel, "did", did) ? "ok" : "panel";
    if (!value_is(payload, "role", "trainer") && !value_is(payload, "role", "auditor"))
        return "role";
    if (value_find(rules->panel, "did", did))
        return "panel";
    /* An auditor costs others an answer: without a deposit only those on the list may be one. */
    const bool listed = rules->allowed && value_lists(rules->allowed, did), auditor = value_is(payload, "role", "auditor");
    if (auditor ? !listed && !rules->deposit : rules->allowed && !listed)
        return "admission";
    if (!auditor && value_integer(json_object_get(payload, "capacity"), "batches") > (rules->batches ? rules->batches : 1))
        return "capacity";
    if (!auditor && *value_text(payload, "region") && !regions_bit(rules->regions, value_text(payload, "region")))
        return "region";
    if (deposit_due(rules, did, value_text(payload, "role"))) {
        const json_t *held = value_find(json_object_get(previous, "deposits"), "did", did);
        if (value_lists(json_object_get(previous, "barred"), did))
            return "barred";
        if (held && !value_is(held, "account", value_text(payload, "account")))
            return "account"; /* its deposit is the other account's */
    }
    if (!address_parse(value_text(payload, "account"), &account) || address_is_zero(account))
        return "account";
    return auditor || rules->replicas < 2 || claim_stands(payload) ? "ok" : "claim"; /* its groups are made by accounts */
}

const char *membership_code(const struct rules *rules, const json_t *previous, const char *type, const json_t *payload)
{
    const char *did = value_text(payload, "signer"), *code;
    const json_t *members = json_object_get(previous, "members");
    if (!value_is(payload, "run", rules->run))
        return "run";
    if (value_find(json_object_get(previous, "convicted"), "did", did))
        return "convicted";
    const json_t *known = value_find(members, "did", did);
    if (!strcmp(type, "leave"))
        return known ? "ok" : "not_enrolled";
    if (strcmp(type, "enrolment"))
        return "type";
    code = seat_code(rules, previous, known, payload);
    return strcmp(code, "ok") ? code : hardware_code(rules, members, payload);
}
