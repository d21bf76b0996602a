#include "runtime/role/replay.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/crypto/root.h"
#include "runtime/role/verify.h"
#include "runtime/round/assignment.h"
#include "runtime/round/fold.h"
#include "runtime/round/value.h"

static bool gather_text(struct archive *a, const char *cid, const char *what, struct error *err)
{
    struct hash id;

    return (cid && cid_parse(cid, &id, err) && archive_gather(a, id, true, err)) || error_at(err, "%s", what);
}

static json_t *gather_shards(struct archive *a, const json_t *context, struct error *err)
{
    json_t *list = json_array(), *shard;
    size_t index;

    json_array_foreach(json_object_get(context, "shards"), index, shard)
    {
        json_t *cid = json_array_get(a->course.shards, (size_t)json_integer_value(shard));

        if (!gather_text(a, json_string_value(cid), "shard", err)) {
            json_decref(list);
            return NULL;
        }
        json_array_append(list, cid);
    }
    return list;
}

/* What the contribution begins with, of which only its trainer and those who had to replay it have the object. */
static bool gather_carry(struct archive *a, const json_t *context, const json_t *document, struct error *err)
{
    const char *object = document_text(json_object_get(context, "carry"), "object");

    return !object || hash_equal(document_hash(document, "carry_in"), root_empty()) ||
           gather_text(a, object, "carry (its trainer has it)", err);
}

json_t *replay_job(struct archive *a, json_t *job, int64_t round, const json_t *listed, worker_progress *progress,
                   void *context_of_progress, struct error *err)
{
    const json_t *previous = archive_record(a, round - 1), *record = archive_record(a, round);
    const char *cid = document_text(listed, "cid"), *did = document_text(listed, "did");
    json_t *document = archive_contribution(a, cid, err), *context = NULL, *shards = NULL, *answer = NULL;

    if (document)
        context = assignment_context(&a->course.rules, previous, round, document_hash(record, "seed"),
                                     json_object_get(record, "plan"), did);
    if (document && !context)
        error_set(err, ERROR_MISMATCH, NULL, "%s has no part in round %lld", did, (long long)round);
    if (context && gather_text(a, document_text(document, "step_log"), "step log", err) &&
        gather_text(a, document_text(document, "payload"), "payload", err) &&
        gather_text(a, document_text(context, "outer"), "start state", err) && gather_carry(a, context, document, err) &&
        (shards = gather_shards(a, context, err))) {
        json_object_set(job, "context", context);
        json_object_set(job, "document", document);
        json_object_set(job, "shards", shards);
        answer = archive_job(a, json_incref(job), progress, context_of_progress, err);
    }
    if (!answer)
        error_at(err, "round %lld: contribution of %s", (long long)round, did);
    json_decref(job);
    json_decref(document);
    json_decref(context);
    json_decref(shards);
    return answer;
}

static json_t *replay_one(struct archive *a, int64_t round, const json_t *listed, worker_progress *progress, void *context,
                          struct error *err)
{
    json_t *answer = replay_job(a, json_pack("{s:s}", "job", "replay"), round, listed, progress, context, err), *result;

    if (!answer)
        return NULL;

    int64_t leaf = document_integer(answer, "index");

    result = json_pack("{s:O, s:O, s:b}", "did", json_object_get(listed, "did"), "cid", json_object_get(listed, "cid"), "match",
                       leaf < 0 && json_is_true(json_object_get(answer, "probes")));
    if (leaf >= 0) {
        json_object_set_new(result, "leaf", json_integer(leaf));
        json_object_set(result, "where", json_object_get(answer, "where"));
        if (json_object_get(answer, "failure"))
            json_object_set(result, "failure", json_object_get(answer, "failure"));
    } else if (!json_is_true(json_object_get(answer, "probes"))) {
        json_object_set_new(result, "where", json_string("probes"));
    }
    json_decref(answer);
    return result;
}

/* The record computed again from what it names, as a member and an audit do it: with its corrections after a conviction. Null when the
 * record folds nothing. */
static json_t *replay_fold(struct archive *a, int64_t round, struct error *err)
{
    struct verifier v = { .a = a };
    const json_t *record = archive_record(a, round);
    bool match = verifier_record(&v, archive_record(a, round - 1), record, err);
    json_t *result = NULL, *rounds, *each, *steps, *last;
    size_t index;

    if (!match && (err->code != ERROR_MISMATCH || !v.fold)) {
        verifier_free(&v);
        return NULL;
    }
    error_clear(err);
    if (v.fold) {
        rounds = json_array();
        json_array_foreach(json_object_get(json_object_get(v.fold, "request"), "rounds"), index, each)
            json_array_append(rounds, json_object_get(each, "round"));
        steps = json_object_get(json_object_get(json_object_get(v.fold, "answer"), "result"), "steps");
        last = json_array_get(steps, json_array_size(steps) - 1);
        result = json_pack("{s:b, s:o, s:O?, s:O?}", "match", match, "rounds", rounds, "outer", json_object_get(last, "outer"),
                           "state", json_object_get(last, "state"));
    }
    verifier_free(&v);
    return result ? result : json_null();
}

/* Convicted for this round or one before it: the members took its part out, so it does not count. */
static bool is_removed(const struct archive *a, int64_t round, const json_t *listed)
{
    const json_t *last = archive_record(a, (int64_t)json_array_size(a->finals) - 1);

    return fold_is_removed(json_object_get(last, "convicted"), document_text(listed, "did"), round);
}

static json_t *settled_by(const json_t *record)
{
    json_t *list = json_array(), *each;
    size_t index;

    json_array_foreach(json_object_get(record, "settled"), index, each) json_array_append(list, json_object_get(each, "round"));
    return list;
}

json_t *replay_round(struct archive *a, int64_t round, const char *did, worker_progress *progress, void *context,
                     struct error *err)
{
    const json_t *record = archive_record(a, round);
    json_t *list = json_array(), *each, *fold = json_null();
    bool match = true, found = false, planned = json_is_object(json_object_get(record, "plan"));
    size_t index;

    if (!record || round < 1) {
        json_decref(list);
        error_set(err, ERROR_MISSING, json_array_size(a->finals) ? "rondo run show lists the rounds" : ARCHIVE_ELSEWHERE,
                  json_array_size(a->finals) ? "no record of round %lld"
                                             : "this home has no record of the run, round %lld or another",
                  (long long)round);
        return NULL;
    }
    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        json_t *one;

        if (!(did ? value_is(each, "did", did) : value_is(each, "code", "ok") && planned))
            continue;
        if (!planned) {
            json_decref(list);
            error_set(err, ERROR_REFUSED, "nothing of a skip is folded or paid",
                      "round %lld was skipped (%s): its record names no plan to recompute by", (long long)round,
                      document_text(record, "reason"));
            return NULL;
        }
        found = true;
        one = replay_one(a, round, each, progress, context, err);
        if (!one) {
            json_decref(list);
            return NULL;
        }
        if (is_removed(a, round, each))
            json_object_set_new(one, "removed", json_true());
        match = match && (json_is_true(json_object_get(one, "match")) || (!did && json_object_get(one, "removed")));
        json_array_append_new(list, one);
    }
    if (did && !found) {
        json_decref(list);
        error_set(err, ERROR_MISSING,
                  "a name is of a node in this home, elsewhere give its DID; rondo run show lists who takes part",
                  "round %lld lists no contribution of %s", (long long)round, did);
        return NULL;
    }
    if (!did) {
        fold = replay_fold(a, round, err);
        if (!fold) {
            json_decref(list);
            return NULL;
        }
        match = match && !json_is_false(json_object_get(fold, "match"));
    }
    return json_pack("{s:s, s:I, s:O, s:O, s:b, s:o, s:o, s:o}", "run", a->course.run, "round", (json_int_t)round, "kind",
                     json_object_get(record, "kind"), "reason", json_object_get(record, "reason"), "match", match,
                     "contributions", list, "fold", fold, "settled", settled_by(record));
}

json_t *replay_rollouts(struct archive *a, int64_t round, const char *did, int64_t batches, worker_progress *progress,
                        void *context, struct error *err)
{
    const json_t *record = archive_record(a, round);
    json_t *list = json_array(), *each;
    size_t index;

    json_array_foreach(json_object_get(record, "contributions"), index, each)
    {
        json_t *one;

        if (!(did ? value_is(each, "did", did) : value_is(each, "code", "ok")))
            continue;
        one = replay_job(a, json_pack("{s:s, s:I}", "job", "rollouts", "batches", (json_int_t)batches), round, each, progress,
                         context, err);
        if (!one) {
            json_decref(list);
            return NULL;
        }
        json_object_set(one, "did", json_object_get(each, "did"));
        json_array_append_new(list, one);
    }
    if (json_array_size(list) > 0)
        return json_pack("{s:s, s:I, s:o}", "run", a->course.run, "round", (json_int_t)round, "trainers", list);
    json_decref(list);
    error_set(err, ERROR_MISSING, "rondo run show lists the rounds", "round %lld has no contribution%s%s", (long long)round,
              did ? " of " : "", did ? did : "");
    return NULL;
}

/* Whether a received document of this record, by this member, lists the contribution as checked. */
static bool reported_equal(struct archive *a, const json_t *record, const char *member, const char *cid)
{
    json_t *list = json_object_get(record, "received"), *each, *name;
    size_t index, at;
    bool found = false;

    json_array_foreach(list, index, each)
    {
        struct buffer bytes = { 0 };
        struct document document = { 0 };
        struct error none = { 0 };
        struct hash id;

        if (cid_parse(json_string_value(each), &id, &none) && archive_document(a, id, &bytes, &none) &&
            document_read_as(DOCUMENT_RECEIVED, bytes.bytes, bytes.size, &document, &none) &&
            value_is(document.json, "signer", member))
            json_array_foreach(json_object_get(document.json, "checked"), at, name)
            {
                found = found || strcmp(json_string_value(name), cid) == 0;
            }
        document_free(&document);
        buffer_free(&bytes);
    }
    return found;
}

/* Whether one drawn contribution is what honest training gives: by the member's report, else by recomputing it. False with `err` when it
 * cannot be told. */
static bool spot_matches(struct archive *a, int64_t round, const json_t *spot, worker_progress *progress, void *context,
                         bool *equal, bool *reported, struct error *err)
{
    json_t *one;

    *reported = false;
    for (int64_t later = round; !*reported && archive_record(a, later) && later < round + 4; later++)
        *reported = reported_equal(a, archive_record(a, later), document_text(spot, "member"), document_text(spot, "cid"));
    *equal = *reported;
    if (*reported)
        return true;
    one = replay_one(a, round - 1, spot, progress, context, err);
    *equal = json_is_true(json_object_get(one, "match"));
    json_decref(one);
    return one != NULL;
}

json_t *replay_spot_checks(struct archive *a, worker_progress *progress, void *context, struct error *err)
{
    json_int_t drawn = 0, matched = 0, told = 0;
    bool ok = true;

    for (int64_t round = 2; ok && archive_record(a, round); round++) {
        const json_t *previous = archive_record(a, round - 1), *record = archive_record(a, round);
        json_t *spots, *spot;
        size_t index;

        if (!value_is(previous, "kind", "train") || !json_is_string(json_object_get(record, "seed")))
            continue;
        spots = assignment_spots(&a->course.rules, previous, document_hash(record, "seed"), json_object_get(record, "committee"));
        json_array_foreach(spots, index, spot)
        {
            bool equal = false, reported = false;

            ok = ok && spot_matches(a, round, spot, progress, context, &equal, &reported, err);
            drawn++;
            matched += equal;
            told += reported;
        }
        json_decref(spots);
    }
    return ok ? json_pack("{s:I, s:I, s:I}", "drawn", drawn, "matched", matched, "reported", told) : NULL;
}

bool replay_traffic(struct archive *a, int64_t parameters, int64_t *sent, int64_t *dense, struct error *err)
{
    int64_t receivers = (int64_t)a->course.spec.committee.panel_count;

    *sent = *dense = 0;
    for (int64_t round = 1; archive_record(a, round); round++) {
        const json_t *record = archive_record(a, round);
        json_t *each;
        size_t index;

        json_array_foreach(json_object_get(record, "contributions"), index, each)
        {
            json_t *document = archive_contribution(a, document_text(each, "cid"), err);

            if (!document)
                return false;
            *sent += document_integer(document, "payload_bytes") * receivers;
            *dense += 4 * parameters * document_integer(document, "steps") * receivers;
            json_decref(document);
        }
    }
    return true;
}
