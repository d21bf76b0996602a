#include "runtime/round/certificate.h"

#include <stdio.h>
#include <string.h>

#include "runtime/round/seed.h"
#include "runtime/round/value.h"

json_t *certificate_make(const struct rules *rules, int64_t round, int64_t view, const char *phase, const char *record,
                         const json_t *votes, int64_t q)
{
    json_t *names = json_array(), *list = json_array(), *envelope, *name;
    const char *did;
    size_t i;
    json_object_foreach((json_t *)votes, did, envelope) json_array_append_new(names, json_string(did));
    value_sort(names, NULL);
    json_array_foreach(names, i, name)
    {
        if ((int64_t)i < q)
            json_array_append(list, json_object_get(votes, json_string_value(name)));
    }
    json_decref(names);
    return json_pack("{sssisssIsIssssso}", "type", "certificate", "version", 1, "run", rules->run, "round", (json_int_t)round,
                     "view", (json_int_t)view, "phase", phase, "record", record, "votes", list);
}

static bool vote_fits(const json_t *certificate, const json_t *vote)
{
    return value_is(vote, "run", value_text(certificate, "run")) &&
           value_integer(vote, "round") == value_integer(certificate, "round") &&
           value_integer(vote, "view") == value_integer(certificate, "view") &&
           value_is(vote, "phase", value_text(certificate, "phase")) &&
           value_is(vote, "record", value_text(certificate, "record"));
}

static bool votes_check(const json_t *certificate, const json_t *committee, const struct signing *signing, struct error *err)
{
    json_t *votes = json_object_get(certificate, "votes"), *envelope;
    char before[96] = "";
    size_t i;
    json_array_foreach(votes, i, envelope)
    {
        char type[32], cid[CID_TEXT];
        json_t *vote = signing->open(signing->context, envelope, type, cid, err);
        if (!vote)
            return error_at(err, "certificate: vote %zu", i);
        const char *did = value_text(vote, "signer");
        bool ok = !strcmp(type, "vote") && vote_fits(certificate, vote) && strcmp(before, did) < 0 && value_lists(committee, did);
        snprintf(before, sizeof before, "%s", did);
        json_decref(vote);
        if (!ok)
            return error_set(err, ERROR_REFUSED, NULL, "certificate: vote %zu is not one of this committee for this record", i);
    }
    return true;
}

bool certificate_check(const struct rules *rules, const json_t *certificate, const char *phase, int64_t round,
                       const json_t *committee, const struct signing *signing, struct error *err)
{
    struct quorum quorum = committee_quorum(rules, committee);
    struct hash hash;
    if (!value_is(certificate, "run", rules->run) || value_integer(certificate, "round") != round ||
        !value_is(certificate, "phase", phase) || value_integer(certificate, "view") < 0 ||
        !cid_parse(value_text(certificate, "record"), &hash, NULL))
        return error_set(err, ERROR_REFUSED, NULL, "certificate: not a %s certificate of this round", phase);
    if ((int64_t)json_array_size(json_object_get(certificate, "votes")) != quorum.q)
        return error_set(err, ERROR_REFUSED, NULL, "certificate: it does not hold exactly the threshold of votes");
    return votes_check(certificate, committee, signing, err);
}

bool final_check(const struct rules *rules, const json_t *previous, const json_t *record, const json_t *certificate,
                 const struct signing *signing, struct error *err)
{
    int64_t round = previous ? value_integer(previous, "round") + 1 : 0;
    char cid[CID_TEXT], before[CID_TEXT] = "", hex[HASH_TEXT];
    struct hash seed, entropy;
    const json_t *block = json_object_get(record, "block");
    if (!value_is(record, "run", rules->run) || value_integer(record, "round") != round)
        return error_set(err, ERROR_REFUSED, NULL, "record: not round %lld of this run", (long long)round);
    if (previous)
        signing_name(signing, previous, VALUE_MOST, before);
    if (!value_is(record, "previous", before))
        return error_set(err, ERROR_MISMATCH, NULL, "record %lld: it does not name the record before it", (long long)round);
    if (previous) {
        if (!hash_parse(value_text(block, "entropy"), &entropy) ||
            value_integer(block, "height") < value_integer(previous, "next_height"))
            return error_set(err, ERROR_MISMATCH, NULL, "record %lld: its block is not at or above the height fixed before",
                             (long long)round);
        seed = seed_of(rules->run, (uint64_t)round, entropy.bytes, HASH_SIZE);
        if (!value_is(record, "seed", hash_hex(seed, hex)))
            return error_set(err, ERROR_MISMATCH, NULL, "record %lld: its seed is not that of its block", (long long)round);
    }
    json_t *committee = committee_draw(rules, previous, round, previous ? &seed : NULL);
    bool ok = json_equal(committee, json_object_get(record, "committee"));
    if (!ok)
        error_set(err, ERROR_MISMATCH, NULL, "record %lld: its committee is not the one the seed draws", (long long)round);
    if (ok && (!signing_name(signing, record, VALUE_MOST, cid) || !value_is(certificate, "record", cid)))
        ok = error_set(err, ERROR_MISMATCH, NULL, "record %lld: its certificate is for another record", (long long)round);
    ok = ok && certificate_check(rules, certificate, "commit", round, committee, signing, err);
    json_decref(committee);
    return ok;
}

static bool same_place(const char *type, const json_t *a, const json_t *b)
{
    if (!strcmp(type, "contribution") || !strcmp(type, "commitment") || !strcmp(type, "closed"))
        return true;
    if (value_integer(a, "view") != value_integer(b, "view"))
        return false;
    return strcmp(type, "vote") || value_is(a, "phase", value_text(b, "phase"));
}

bool equivocation_check(const struct rules *rules, const json_t *payload, const struct signing *signing, struct error *err)
{
    json_t *statements = json_object_get(payload, "statements");
    char types[2][32] = { "", "" }, cid[CID_TEXT];
    json_t *said[2] = { NULL, NULL };
    bool ok = json_array_size(statements) == 2 && value_integer(payload, "round") > 0;
    for (int i = 0; i < 2 && ok; i++) {
        said[i] = signing->open(signing->context, json_array_get(statements, (size_t)i), types[i], cid, err);
        ok = said[i] && value_is(said[i], "signer", value_text(payload, "did")) && value_is(said[i], "run", rules->run) &&
             value_integer(said[i], "round") == value_integer(payload, "round");
    }
    ok = ok && !strcmp(types[0], types[1]) && !json_equal(said[0], said[1]) && same_place(types[0], said[0], said[1]) &&
         (!strcmp(types[0], "vote") || !strcmp(types[0], "proposal") || !strcmp(types[0], "received") ||
          !strcmp(types[0], "contribution") || !strcmp(types[0], "commitment") || !strcmp(types[0], "closed"));
    json_decref(said[0]);
    json_decref(said[1]);
    return ok || error_set(err, ERROR_REFUSED, NULL, "equivocation: the two statements do not contradict each other");
}
