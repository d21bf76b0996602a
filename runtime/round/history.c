#include "runtime/round/history.h"

#include <string.h>

#include "runtime/round/certificate.h"
#include "runtime/round/fold.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

/* What the record itself says a request gave: its open entries hold the roots between the folded rounds. */
static json_t *claimed_fold(const json_t *record, const json_t *request)
{
    json_t *steps = json_array(), *round, *entries = json_object_get(record, "unsettled");
    size_t i, k;
    json_array_foreach(json_object_get(request, "rounds"), i, round)
    {
        int64_t number = value_integer(round, "round");
        const json_t *after = record;
        for (k = json_array_size(entries); k-- > 0;)
            if (value_integer(json_array_get(entries, k), "round") > number)
                after = json_array_get(entries, k);
        json_array_append_new(steps, json_pack("{sIsOsO}", "round", (json_int_t)number, "outer", json_object_get(after, "outer"),
                                               "state", json_object_get(after, "state")));
    }
    return json_pack("{sss{sOsosO}}", "code", "ok", "result", "aggregate", json_object_get(record, "aggregate"), "steps", steps,
                     "telemetry", json_object_get(record, "telemetry"));
}

static json_t *claimed(const json_t *record, const json_t *request)
{
    bool skipped = value_is(record, "kind", "skip");
    if (value_is(request, "kind", "plan"))
        return json_is_object(json_object_get(record, "plan"))
                   ? json_pack("{sss{sO}}", "code", "ok", "result", "plan", json_object_get(record, "plan"))
                   : json_pack("{sssn}", "code", "plan", "result");
    size_t last = json_array_size(json_object_get(request, "rounds"));
    bool own = last && value_integer(json_array_get(json_object_get(request, "rounds"), last - 1), "round") ==
                           value_integer(record, "round");
    if ((skipped && own) || (!own && value_integer(record, "correct")))
        return json_pack("{sssn}", "code", value_text(record, "reason"), "result");
    return claimed_fold(record, request);
}

/* The received documents that the record lists, and what they are called. */
static bool fetch_received(const json_t *record, const struct history_source *source, json_t *received, json_t *names,
                           struct error *err)
{
    json_t *name;
    size_t i;
    json_array_foreach(json_object_get(record, "received"), i, name)
    {
        const char *cid = json_string_value(name) ? json_string_value(name) : "";
        char found[CID_TEXT];
        json_t *document = source->document(source->context, cid);
        bool ok = value_is(document, "type", "received") && value_cid(json_object_get(document, "payload"), found);
        if (ok) {
            json_array_append(received, json_object_get(document, "payload"));
            json_array_append_new(names, json_string(found));
        }
        json_decref(document);
        if (!ok)
            return error_set(err, ERROR_MISSING, "fetch it from another node", "received document %s is missing or not valid",
                             cid);
    }
    return true;
}

static bool supply(const json_t *record, const json_t *needs, const struct history_source *source, json_t *documents,
                   json_t *results, struct error *err)
{
    json_t *request = json_object_get(needs, "request"), *name;
    size_t i;
    char hex[HASH_TEXT];
    if (request) {
        json_t *result = source->result ? source->result(source->context, request) : claimed(record, request);
        fold_hash(request, hex);
        if (!result)
            return error_set(err, ERROR_MISSING, NULL, "the %s of this round cannot be computed here",
                             value_text(request, "kind"));
        json_object_set_new(results, hex, result);
    }
    json_array_foreach(json_object_get(needs, "documents"), i, name)
    {
        json_t *document = source->document(source->context, json_string_value(name));
        if (!document)
            return error_set(err, ERROR_MISSING, "fetch it from another node", "document %s is missing or not valid",
                             json_string_value(name));
        json_object_set_new(documents, json_string_value(name), document);
    }
    return true;
}

/* The first member in which two records differ. */
static const char *difference(const json_t *made, const json_t *record)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)made, name, value)
    {
        if (!json_equal(value, json_object_get(record, name)))
            return name;
    }
    return "";
}

bool history_recompute(const struct rules *rules, const json_t *previous, const json_t *record,
                       const struct history_source *source, struct error *err)
{
    json_t *received = json_array(), *names = json_array(), *documents = json_object(), *results = json_object(), *out = NULL;
    struct record_memory memory = { 0 }; /* of this round alone: record_of is asked several times */
    char before[CID_TEXT] = "";
    bool ok = fetch_received(record, source, received, names, err);
    if (previous)
        value_cid(previous, before);
    enum record_outcome outcome = RECORD_NEEDS;
    while (ok && outcome == RECORD_NEEDS) {
        struct record_input input = { .rules = rules,
                                      .previous = previous,
                                      .block = json_object_get(record, "block"),
                                      .received = received,
                                      .before = *before ? before : NULL,
                                      .names = names,
                                      .memory = &memory,
                                      .forced = value_is(record, "reason", "forced"),
                                      .documents = documents,
                                      .results = results };
        outcome = record_of(&input, &out, err);
        ok = outcome != RECORD_WRONG;
        if (outcome == RECORD_NEEDS) {
            ok = supply(record, out, source, documents, results, err);
            json_decref(out);
            out = NULL;
        }
    }
    if (ok && !json_equal(out, record))
        ok = error_set(err, ERROR_MISMATCH, NULL, "the record is not what its documents give: %s differs",
                       difference(out, record));
    json_decref(out);
    json_decref(received);
    json_decref(documents);
    json_decref(results);
    json_decref(names);
    record_memory_clear(&memory);
    return ok;
}

bool history_check_round(const struct rules *rules, const json_t *previous, const json_t *final, const struct signing *signing,
                         const struct history_source *source, struct error *err)
{
    const json_t *record = json_object_get(final, "record"), *block = json_object_get(record, "block");
    int64_t round = value_integer(record, "round");
    bool ok = final_check(rules, previous, record, json_object_get(final, "certificate"), signing, err);
    if (ok && previous) {
        json_t *known = source->block(source->context, value_integer(block, "height"));
        ok = known && json_equal(json_object_get(known, "entropy"), json_object_get(block, "entropy")) &&
             json_equal(json_object_get(known, "hash"), json_object_get(block, "hash"));
        if (!ok)
            error_set(err, ERROR_MISMATCH, NULL, "block %lld is not the ledger's", (long long)value_integer(block, "height"));
        json_decref(known);
    }
    ok = ok && history_recompute(rules, previous, record, source, err);
    return ok || error_at(err, "round %lld", (long long)round);
}

bool history_check(const struct rules *rules, const json_t *finals, const struct signing *signing,
                   const struct history_source *source, int64_t *checked, struct error *err)
{
    const json_t *previous = NULL;
    size_t i;
    json_t *final;
    *checked = 0;
    json_array_foreach((json_t *)finals, i, final)
    {
        if (!history_check_round(rules, previous, final, signing, source, err))
            return false;
        previous = json_object_get(final, "record");
        ++*checked;
    }
    return true;
}
