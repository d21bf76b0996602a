#include "runtime/round/replica.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/round/value.h"

/* ---- groups ----------------------------------------------------------------------------------------------------------- */

/* Account -> the machines that work for it, as they are taken: in order of first appearance. New reference. */
static json_t *by_account(const json_t *members, const json_t *parts, const uint32_t *turns)
{
    json_t *accounts = json_object();
    for (size_t k = 0; k < json_array_size(parts); k++) {
        json_t *part = json_array_get(parts, turns[k]);
        const char *account = value_text(value_find(members, "did", value_text(part, "did")), "account");
        if (!json_object_get(accounts, account))
            json_object_set_new(accounts, account, json_array());
        json_array_append(json_object_get(accounts, account), part);
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

/* The machines of an account take neighbouring seats, at most one for each group, and groups take seats in turn: so none gets two of them. */
static json_t *seat(const json_t *accounts, size_t groups)
{
    json_t *seated = json_array(), *machines, *part;
    const char *account;
    size_t next = 0, i;
    for (size_t g = 0; g < groups; g++)
        json_array_append_new(seated, json_array());
    json_object_foreach((json_t *)accounts, account, machines)
    {
        json_array_foreach(machines, i, part)
        {
            if (i < groups)
                json_array_append(json_array_get(seated, next++ % groups), part);
        }
    }
    return seated;
}

void replica_deal(const struct rules *rules, const json_t *members, json_t *parts, const uint32_t *turns, const uint32_t *order)
{
    size_t groups = json_array_size(parts) / (size_t)rules->replicas, shards = (size_t)rules->shards, i;
    json_t *accounts = by_account(members, parts, turns), *seated, *part;
    groups = groups < shards ? groups : shards;
    while (groups && seats_of(accounts, groups) < groups * (size_t)rules->replicas)
        groups--;
    seated = seat(accounts, groups);
    for (size_t g = 0; g < groups; g++) {
        json_t *group = json_array_get(seated, g), *dealt = json_array();
        value_sort(group, "did");
        for (size_t k = g; k < shards; k += groups)
            json_array_append_new(dealt, json_integer(order[k]));
        json_array_foreach(group, i, part)
        {
            json_object_set(part, "shards", dealt);
            json_object_set(part, "group", json_object_get(json_array_get(group, 0), "did"));
        }
        json_decref(dealt);
    }
    json_decref(seated);
    json_decref(accounts);
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

/* Group -> { result: how many gave it, "": how many there are }. New reference. */
static json_t *count_results(const json_t *list, const json_t *documents)
{
    json_t *groups = json_object(), *line;
    char result[HASH_TEXT];
    size_t i;
    json_array_foreach((json_t *)list, i, line)
    {
        const char *group = value_text(line, "group");
        if (!*group || !value_is(line, "code", "ok"))
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

void replica_judge(json_t *list, const json_t *documents)
{
    json_t *groups = count_results(list, documents), *line;
    char result[HASH_TEXT];
    size_t i;
    json_array_foreach(list, i, line)
    {
        const json_t *of = json_object_get(groups, value_text(line, "group"));
        if (!of || !value_is(line, "code", "ok"))
            continue;
        int64_t alike = value_integer(of, result_of(documents, line, result)), all = value_integer(of, "");
        if (all < 2)
            json_object_set_new(line, "code", json_string("alone"));
        else if (alike < 2 || 2 * alike <= all)
            json_object_set_new(line, "code", json_string("differs"));
    }
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
