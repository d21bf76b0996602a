#include "runtime/role/verify.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/round/assignment.h"
#include "runtime/round/value.h"
#include "runtime/worker/failure.h"

/* --- what history_check asks for -------------------------------------------------------------------------------------- */

static json_t *give_document(void *context, const char *cid)
{
    struct verifier *v = context;
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    struct hash id;
    json_t *given = NULL;

    error_clear(&v->fault);
    if (cid_parse(cid, &id, &v->fault) && archive_document(v->a, id, &bytes, &v->fault) &&
        document_read(bytes.bytes, bytes.size, &document, &v->fault)) {
        given = json_pack("{s:s, s:O}", "type", document_type_name(document.type), "payload", document.json);
        v->documents++;
    }
    document_free(&document);
    buffer_free(&bytes);
    return given;
}

static json_t *give_block(void *context, int64_t height)
{
    struct verifier *v = context;
    struct ledger_block block;
    char hash[HASH_TEXT], entropy[HASH_TEXT];

    error_clear(&v->fault);
    if (height < 0 || !books_block(v->books, (uint64_t)height, &block, &v->fault)) {
        if (v->fault.code == ERROR_MISSING) /* the record says that it was final */
            v->fault.code = ERROR_MISMATCH;
        return NULL;
    }
    v->blocks++;
    return json_pack("{s:I, s:s, s:s}", "height", (json_int_t)height, "hash", hash_hex(block.hash, hash), "entropy",
                     hash_hex(block.entropy, entropy));
}

/* The payload object of every contribution that a fold request names; CID of the contribution -> CID of the payload. */
static json_t *payloads_of(struct verifier *v, const json_t *request)
{
    json_t *payloads = json_object(), *round, *each;
    size_t i, k;
    bool ok = true;

    json_array_foreach(json_object_get(request, "rounds"), i, round)
    {
        json_array_foreach(json_object_get(round, "contributions"), k, each)
        {
            const char *cid = document_text(each, "cid");
            json_t *document = ok ? archive_contribution(v->a, cid, &v->fault) : NULL;
            struct hash id;

            ok = document && cid_parse(document_text(document, "payload"), &id, &v->fault) &&
                 archive_gather(v->a, id, true, &v->fault);
            if (ok)
                json_object_set(payloads, cid, json_object_get(document, "payload"));
            json_decref(document);
        }
    }
    if (ok)
        return payloads;
    json_decref(payloads);
    return NULL;
}

static json_t *fold_job(struct verifier *v, const json_t *request)
{
    struct hash from;
    json_t *payloads, *job;

    if (!cid_parse(document_text(request, "from"), &from, &v->fault) || !archive_gather(v->a, from, true, &v->fault))
        return NULL;
    payloads = payloads_of(v, request);
    job = payloads ? json_pack("{s:s, s:O, s:O}", "job", "fold", "request", request, "payloads", payloads) : NULL;
    json_decref(payloads);
    return job;
}

static json_t *give_result(void *context, const json_t *request)
{
    struct verifier *v = context;
    bool plan = value_is(request, "kind", "plan");
    json_t *job = NULL, *result, *given;
    struct error err = { 0 };

    error_clear(&v->fault);
    job = plan ? json_pack("{s:s, s:O}", "job", "plan", "request", request) : fold_job(v, request);
    if (!job)
        return NULL;
    if (plan)
        v->plans++;
    else
        v->folds++;
    result = archive_job(v->a, job, NULL, NULL, &err);
    if (!result && failure_is_here(&err)) { /* it says nothing of the record */
        v->fault = err;
        return NULL;
    }
    if (result)
        given = json_pack("{s:s, s:O}", "code", "ok", "result", result);
    else
        given = json_pack("{s:s, s:n}", "code", error_name(err.code), "result");
    if (!plan) {
        json_decref(v->fold);
        v->fold = json_pack("{s:O, s:O}", "request", request, "answer", given);
    }
    json_decref(result);
    return given;
}

/* --- one round ---------------------------------------------------------------------------------------------------------- */

static json_t *open_envelope(void *context, const json_t *envelope, char type[32], char cid[CID_TEXT], struct error *err)
{
    struct document document = { 0 };
    json_t *payload = NULL;

    (void)context;
    if (document_read_json(envelope, &document, err)) {
        strcpy(type, document_type_name(document.type));
        cid_text(document.id, cid);
        payload = json_incref(document.json);
    }
    document_free(&document);
    return payload;
}

bool verifier_start(struct verifier *v, struct error *err)
{
    json_t *genesis = archive_job(v->a, json_pack("{s:s}", "job", "genesis"), NULL, NULL, err);

    if (!genesis)
        return error_at(err, "start state");
    rules_set_genesis(&v->a->course.rules, document_text(genesis, "outer"), document_text(genesis, "state"));
    json_decref(genesis);
    return true;
}

static struct history_source source_of(struct verifier *v)
{
    return (struct history_source){
        .context = v, .document = give_document, .block = give_block, .result = v->quick ? NULL : give_result
    };
}

/* What the history could not have, and why. What is here and of another kind than it should be is not missing. */
static bool tell_fault(const struct verifier *v, const json_t *record, struct error *err)
{
    char text[400];

    if (v->fault.code == ERROR_NONE) {
        if (err->code == ERROR_MISSING)
            err->code = ERROR_MISMATCH;
        return false;
    }
    if (v->fault.code == ERROR_MISSING) {
        error_set(err, ERROR_MISSING, NULL, "%s", v->fault.message);
        if (v->fault.place[0])
            error_at(err, "%s", v->fault.place);
    } else {
        snprintf(text, sizeof text, "%.150s%s%.240s", v->fault.place, v->fault.place[0] ? ": " : "", v->fault.message);
        error_set(err, v->fault.code, NULL, "%s", text);
    }
    return error_at(err, "round %lld", (long long)value_integer(record, "round"));
}

bool verifier_round(struct verifier *v, const json_t *previous, const json_t *final, struct error *err)
{
    struct signing signing = { .context = v, .open = open_envelope };
    struct history_source source = source_of(v);

    error_clear(&v->fault);
    return history_check_round(&v->a->course.rules, previous, final, &signing, &source, err) ||
           tell_fault(v, json_object_get(final, "record"), err);
}

bool verifier_record(struct verifier *v, const json_t *previous, const json_t *record, struct error *err)
{
    struct history_source source = source_of(v);

    error_clear(&v->fault);
    return history_recompute(&v->a->course.rules, previous, record, &source, err) || tell_fault(v, record, err);
}

void verifier_free(struct verifier *v)
{
    json_decref(v->fold);
    v->fold = NULL;
}

json_t *verifier_context(struct archive *a, int64_t round, const char *did)
{
    const json_t *previous = archive_record(a, round - 1), *record = archive_record(a, round);

    return previous && record ? assignment_context(&a->course.rules, previous, round, document_hash(record, "seed"),
                                                   json_object_get(record, "plan"), did)
                              : NULL;
}
