#include "runtime/round/replica.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/round/amendment.h"
#include "runtime/round/value.h"

/* ---- groups ----------------------------------------------------------------------------------------------------------- */

/* A machine that may be seated: its part, with the account that it works for and its trial. */
static json_t *machines_of(const json_t *members, const json_t *parts, const uint32_t *turns)
{
    json_t *machines = json_array();
    for (size_t k = 0; k < json_array_size(parts); k++) {
        json_t *part = json_array_get(parts, turns[k]);
        const json_t *member = value_find(members, "did", value_text(part, "did"));
        json_array_append_new(machines, json_pack("{sOsssI}", "part", part, "account", value_text(member, "account"), "trial",
                                                  (json_int_t)value_integer(member, "trial")));
    }
    return machines;
}

/* Account -> those of its machines that have at most this trial before them, as they are taken: in order of first appearance. New reference. */
static json_t *by_account(const json_t *machines, int64_t trial)
{
    json_t *accounts = json_object(), *machine;
    size_t i;
    json_array_foreach((json_t *)machines, i, machine)
    {
        const char *account = value_text(machine, "account");
        if (value_integer(machine, "trial") > trial)
            continue;
        if (!json_object_get(accounts, account))
            json_object_set_new(accounts, account, json_array());
        json_array_append(json_object_get(accounts, account), machine);
    }
    return accounts;
}

/* Machines that `groups` groups can take, one of an account each. */
static size_t seats_of(const json_t *accounts, size_t groups)
{
    const char *account;
    json_t *machines;
    size_t seats = 0;
    json_object_foreach((json_t *)accounts, account, machines)
    {
        size_t count = json_array_size(machines);
        seats += count < groups ? count : groups;
    }
    return seats;
}

/* As many as these accounts can fill. */
static size_t groups_of(const struct rules *rules, const json_t *accounts)
{
    size_t groups = seats_of(accounts, SIZE_MAX) / (size_t)rules->replicas, shards = (size_t)rules->shards;
    groups = groups < shards ? groups : shards;
    while (groups && seats_of(accounts, groups) < groups * (size_t)rules->replicas)
        groups--;
    return groups;
}

/* The machines of an account take neighbouring seats, at most one for each group, and groups take seats in turn: so none gets two of them.
 * Returns how many seats are taken. */
static size_t seat(const json_t *accounts, json_t *seated)
{
    size_t groups = json_array_size(seated), next = 0, i;
    json_t *machines, *machine;
    const char *account;
    json_object_foreach((json_t *)accounts, account, machines)
    {
        json_array_foreach(machines, i, machine)
        {
            if (i < groups)
                json_array_append(json_array_get(seated, next++ % groups), machine);
        }
    }
    return next;
}

/* Those that no group depends on: each takes the next seat beside no machine of its account, if there is one. */
static void seat_beside(const json_t *machines, int64_t trial, json_t *seated, size_t next)
{
    size_t groups = json_array_size(seated), i;
    json_t *machine;
    json_array_foreach((json_t *)machines, i, machine)
    {
        for (size_t k = 0; value_integer(machine, "trial") > trial && k < groups; k++) {
            json_t *group = json_array_get(seated, (next + k) % groups);
            if (value_find(group, "account", value_text(machine, "account")))
                continue;
            json_array_append(group, machine);
            next += k + 1;
            break;
        }
    }
}

/* Gives each of a group its part. */
static void deal(const json_t *group, json_t *shards)
{
    json_t *dids = json_array(), *machine;
    size_t i;
    json_array_foreach((json_t *)group, i, machine)
        json_array_append(dids, json_object_get(json_object_get(machine, "part"), "did"));
    value_sort(dids, NULL);
    json_array_foreach((json_t *)group, i, machine)
    {
        json_object_set(json_object_get(machine, "part"), "shards", shards);
        json_object_set(json_object_get(machine, "part"), "group", json_array_get(dids, 0));
    }
    json_decref(dids);
}

void replica_deal(const struct rules *rules, const json_t *previous, json_t *parts, const uint32_t *turns, const uint32_t *order)
{
    const size_t wanted = (size_t)amendment_quorum(rules, previous, value_integer(previous, "round") + 1);
    json_t *machines = machines_of(json_object_get(previous, "members"), parts, turns), *seated = json_array();
    int64_t trial = 0;
    json_t *accounts = by_account(machines, trial);
    while (groups_of(rules, accounts) < wanted && trial < REPLICA_TRIAL) {
        json_decref(accounts);
        accounts = by_account(machines, ++trial);
    }
    size_t groups = groups_of(rules, accounts);
    for (size_t g = 0; g < groups; g++)
        json_array_append_new(seated, json_array());
    seat_beside(machines, trial, seated, seat(accounts, seated));
    for (size_t g = 0; g < groups; g++) {
        json_t *shards = json_array();
        for (size_t k = g; k < (size_t)rules->shards; k += groups)
            json_array_append_new(shards, json_integer(order[k]));
        deal(json_array_get(seated, g), shards);
        json_decref(shards);
    }
    json_decref(seated);
    json_decref(accounts);
    json_decref(machines);
}

/* ---- commitments ------------------------------------------------------------------------------------------------------- */

json_t *replica_commitment(const json_t *contribution)
{
    char digest[HASH_TEXT];
    value_hash(contribution, "rondo/commitment", digest);
    return json_pack("{sisOsOsOss}", "version", 1, "run", json_object_get(contribution, "run"), "round",
                     json_object_get(contribution, "round"), "signer", json_object_get(contribution, "signer"), "digest", digest);
}

bool replica_commitment_cid(const json_t *contribution, char cid[CID_TEXT])
{
    json_t *commitment = replica_commitment(contribution);
    bool ok = value_cid(commitment, cid);
    json_decref(commitment);
    return ok;
}

bool replica_result(const json_t *contribution, char hex[HASH_TEXT])
{
    static const char *const replayed[] = { "start", "end", "carry_in", "carry_out", "body", "steps", "loss", "step_log" };
    json_t *shared = json_object();
    for (size_t i = 0; i < sizeof replayed / sizeof *replayed; i++)
        json_object_set(shared, replayed[i], json_object_get(contribution, replayed[i]));
    bool ok = value_hash(shared, "rondo/result", hex);
    json_decref(shared);
    return ok;
}

/* ---- agreement --------------------------------------------------------------------------------------------------------- */

static const char *result_of(const json_t *documents, const json_t *line, char hex[HASH_TEXT])
{
    replica_result(json_object_get(json_object_get(documents, value_text(line, "cid")), "payload"), hex);
    return hex;
}

/* Group -> { result: how many gave it, "": how many there are }, of those that are not on trial where `trusted`. New reference. */
static json_t *count_results(const json_t *list, const json_t *documents, const json_t *members, bool trusted)
{
    json_t *groups = json_object(), *line;
    char result[HASH_TEXT];
    size_t i;
    json_array_foreach((json_t *)list, i, line)
    {
        const char *group = value_text(line, "group");
        if (!*group || !value_is(line, "code", "ok") ||
            (trusted && value_integer(value_find(members, "did", value_text(line, "did")), "trial")))
            continue;
        json_t *of = json_object_get(groups, group);
        if (!of)
            json_object_set_new(groups, group, of = json_object());
        result_of(documents, line, result);
        json_object_set_new(of, result, json_integer((json_int_t)value_integer(of, result) + 1));
        json_object_set_new(of, "", json_integer((json_int_t)value_integer(of, "") + 1));
    }
    return groups;
}

/* Two alike, and more than half. NULL: none; borrowed. */
static const char *agreed(const json_t *of)
{
    const char *result;
    json_t *alike;
    json_object_foreach((json_t *)of, result, alike)
    {
        if (*result && json_integer_value(alike) >= 2 && 2 * json_integer_value(alike) > value_integer(of, ""))
            return result;
    }
    return NULL;
}

void replica_judge(json_t *list, const json_t *documents, const json_t *members)
{
    json_t *trusted = count_results(list, documents, members, true), *groups = count_results(list, documents, members, false),
           *line;
    char result[HASH_TEXT];
    size_t i;
    json_array_foreach(list, i, line)
    {
        const char *group = value_text(line, "group"), *right = agreed(json_object_get(trusted, group));
        const json_t *of = json_object_get(groups, group);
        if (!of || !value_is(line, "code", "ok"))
            continue;
        right = right ? right : agreed(of);
        if (value_integer(of, "") < 2)
            json_object_set_new(line, "code", json_string("alone"));
        else if (!right || strcmp(right, result_of(documents, line, result)))
            json_object_set_new(line, "code", json_string("differs"));
    }
    json_decref(trusted);
    json_decref(groups);
}

bool replica_is_first(const json_t *list, size_t index)
{
    const json_t *line = json_array_get(list, index);
    const char *group = value_text(line, "group");
    for (size_t i = 0; *group && i < index; i++) {
        const json_t *before = json_array_get(list, i);
        if (value_is(before, "group", group) && value_is(before, "code", value_text(line, "code")))
            return false;
    }
    return true;
}

size_t replica_accepted(const json_t *list)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        count += value_is(json_array_get(list, i), "code", "ok") && replica_is_first(list, i);
    return count;
}

bool replica_is_disputed(const json_t *list, const json_t *line)
{
    const char *group = value_text(line, "group");
    size_t i;
    json_t *other;
    if (!*group)
        return false;
    json_array_foreach((json_t *)list, i, other)
    {
        if (value_is(other, "group", group) && value_is(other, "code", "differs"))
            return true;
    }
    return false;
}

json_t *replica_unaccepted(const json_t *lines)
{
    json_t *list = json_array(), *line;
    size_t i;
    json_array_foreach((json_t *)lines, i, line)
    {
        if (json_object_get(line, "code"))
            json_array_append(list, line);
    }
    return list;
}
