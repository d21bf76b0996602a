/* dispute_jobs.c - the moves of disputes as jobs: JSON in, objects in the store, JSON out. */
#include <string.h>

#include "runtime/doc/documents.h"
#include "runtime/store/object.h"
#include "runtime/worker/carry.h"
#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/failure.h"
#include "runtime/worker/jobs.h"
#include "runtime/worker/spoiled.h"

static bool read_object(struct session *s, const json_t *job, const char *name, const char *media, struct buffer *out,
                        struct error *err)
{
    struct hash id;

    return (cid_parse(document_text(job, name), &id, err) && object_get(&s->blocks, id, media, DISPUTE_OBJECT, out, err)) ||
           error_at(err, "%s", name);
}

/* A batch is nobody's word: what seed and shards give is known without an opening. Nor are the rates. Where they give none, nothing can have
 * been computed from them. */
static const char *judge_challenge(struct session *s, const struct dispute_case *c, struct error *err)
{
    struct dispute_step d;
    const bool made = dispute_step_new(&d, s, c, false, NULL, err) && running_rates(&d.running, err);
    const char *code = made ? (dispute_batch_right(&d, c) ? "ok" : "upheld") : failure_is_everywhere(err) ? "upheld" : NULL;

    dispute_step_free(&d);
    return code;
}

/* Leaf 0 of a contribution that may begin with a carry: whoever challenges it asks for the carry, the opening shows it. "none": the trainer took
 * none, which its asker could not know. */
static const char *judge_carry(struct session *s, const json_t *job, const char *move, const json_t *carry, struct error *err)
{
    if (!carry || (strcmp(move, "challenge") != 0 && strcmp(move, "opening") != 0))
        return "none";
    if (strcmp(move, "challenge") == 0)
        return "ok";

    json_t *shown = json_pack("{s:O, s:O}", "root", json_object_get(carry, "root"), "object", json_object_get(job, "trace"));
    const char *code = carry_judge(s, shown, err);

    json_decref(shown);
    return code;
}

static const char *judge(struct session *s, const json_t *job, const struct dispute_case *c, struct error *err)
{
    const json_t *carry = carry_of(c->context, json_object_get(job, "document"));
    const char *move = document_text(job, "move"), *code = NULL;
    const bool by_tiles = dispute_by_tiles(s, c->index, c->log->steps);
    struct buffer trace = { 0 }, evidence = { 0 };
    struct dispute_verdict verdict;

    if (c->index == 0 && json_object_get(c->context, "carry"))
        return judge_carry(s, job, move, carry, err);
    if (!by_tiles)
        return "unknown"; /* a replay decides: nobody asked for it */
    if (strcmp(move, "challenge") == 0)
        return judge_challenge(s, c, err);
    if (read_object(s, job, "trace", OPENING_MEDIA, &trace, err)) {
        if (strcmp(move, "opening") == 0)
            code = dispute_opening(s, c, trace.bytes, trace.size, &verdict, err) ? verdict.code : NULL;
        else if (read_object(s, job, "evidence", PICK_MEDIA, &evidence, err))
            code =
                dispute_judge(s, c, trace.bytes, trace.size, evidence.bytes, evidence.size, &verdict, err) ? verdict.code : NULL;
    }
    buffer_free(&trace);
    buffer_free(&evidence);
    return code;
}

json_t *job_judge(struct session *s, const json_t *job, struct error *err)
{
    struct step_log log = { 0 };
    struct dispute_case c = { .context = json_object_get(job, "context"),
                              .shards = json_object_get(job, "shards"),
                              .index = document_integer(job, "index"),
                              .log = &log };
    if (c.index == 1 && strcmp(document_text(job, "move"), "pick") == 0)
        c.carry = carry_of(c.context, json_object_get(job, "document"));

    const char *code = job_step_log(s, json_object_get(job, "document"), &log, err) ? judge(s, job, &c, err) : NULL;

    step_log_free(&log);
    if (code && strcmp(code, "upheld") == 0 && !spoiled_none(s, err))
        return NULL;
    return code ? json_pack("{s:s}", "code", code) : NULL;
}

json_t *job_move(struct session *s, const json_t *job, const struct job_reporter *to, struct error *err)
{
    const struct dispute_case c = { .context = json_object_get(job, "context"),
                                    .shards = json_object_get(job, "shards"),
                                    .carry = carry_of(json_object_get(job, "context"), json_object_get(job, "document")),
                                    .index = document_integer(job, "index") };
    const bool opens = strcmp(document_text(job, "move"), "opening") == 0;
    struct buffer trace = { 0 }, made = { 0 };
    struct dispute_verdict verdict = { 0 };
    struct hash id;
    json_t *result = NULL;
    bool ok = opens ? dispute_open(s, &c, to, &made, err)
                    : read_object(s, job, "trace", OPENING_MEDIA, &trace, err) &&
                          dispute_pick(s, &c, trace.bytes, trace.size, to, &made, &verdict, err) &&
                          (made.size == 0 || spoiled_none(s, err));

    if (ok && made.size == 0)
        result = json_pack("{s:n}", "object"); /* nothing differs */
    else if (ok && object_put(&s->blocks, opens ? OPENING_MEDIA : PICK_MEDIA, made.bytes, made.size, &id, err))
        result =
            json_pack("{s:o, s:I, s:s?, s:I, s:I}", "object", document_json_cid(id), "bytes", (json_int_t)made.size, "operator",
                      verdict.operator_name, "entry", (json_int_t)verdict.entry, "tile", (json_int_t)verdict.tile);
    buffer_free(&trace);
    buffer_free(&made);
    return result;
}

json_t *job_compare(struct session *s, const json_t *job, struct error *err)
{
    const struct dispute_case c = { .context = json_object_get(job, "context"),
                                    .shards = json_object_get(job, "shards"),
                                    .index = document_integer(job, "index") };
    struct buffer trace = { 0 }, other = { 0 };
    struct dispute_verdict verdict = { 0 };
    json_t *result = NULL;

    if (!dispute_by_tiles(s, c.index, c.index))
        result = json_pack("{s:n}", "operator"); /* such a step has no trace */
    else if (read_object(s, job, "trace", OPENING_MEDIA, &trace, err) &&
             read_object(s, job, "other", OPENING_MEDIA, &other, err) &&
             dispute_compare(s, &c, trace.bytes, trace.size, other.bytes, other.size, &verdict, err))
        result = json_pack("{s:s?, s:I, s:I}", "operator", verdict.operator_name, "entry", (json_int_t)verdict.entry, "tile",
                           (json_int_t)verdict.tile);
    buffer_free(&trace);
    buffer_free(&other);
    return result;
}
