#include "runtime/role/intake.h"

#include <stdio.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/role/carried.h"
#include "runtime/role/driver.h"
#include "runtime/role/expected.h"
#include "runtime/role/metrics.h"
#include "runtime/round/dispute.h"
#include "runtime/round/step_log.h"

/* Of a round that is over, or soon is. */
static bool is_claim(enum document_type type)
{
    return type == DOCUMENT_CHALLENGE || type == DOCUMENT_OPENING || type == DOCUMENT_PICK || type == DOCUMENT_EQUIVOCATION ||
           type == DOCUMENT_LEAVE;
}

/* Who may say something here, and when. */
static bool admit_document(struct node *node, const struct document *d, struct error *err)
{
    const struct course *course = node->course;
    int64_t open = node->driver ? driver_round(node->driver) : 0;

    if (!hash_equal(d->run, course->id))
        return error_set(err, ERROR_MISMATCH, NULL, "a document of another run");
    if (d->type == DOCUMENT_ENROLMENT) {
        const char *code;

        if (course_admits(course, d, &code))
            return true;

        const bool made_up = !strcmp(code, "evidence"); /* a millisecond's work, and a node looks at its own before it sends it */

        return error_set(err, made_up ? ERROR_SIGNATURE : ERROR_REFUSED,
                         made_up || !strcmp(code, "unattested")
                             ? "rondo attest verify says what is wrong with evidence of hardware"
                             : "the spec's panel and allow-list say who takes part",
                         "enrolment refused: %s", code);
    }
    if (!d->has_signer || !course_knows(course, &d->signer))
        return error_set(err, ERROR_REFUSED, "enrol first", "the signer is not enrolled in this run");
    const bool works = d->type == DOCUMENT_CONTRIBUTION || d->type == DOCUMENT_COMMITMENT;

    if (works && !node->driver)
        return error_set(err, ERROR_REFUSED, "push to the members of the committee", "this node takes no contributions");
    if (is_claim(d->type) && d->has_round && d->round > open + 1)
        return error_set(err, ERROR_STALE, NULL, "round %u is not open here: round %lld is", d->round, (long long)open);
    if (is_claim(d->type) && d->has_round && d->type != DOCUMENT_LEAVE && d->type != DOCUMENT_EQUIVOCATION &&
        d->round + course->spec.payment.expiry_rounds + 4 < open)
        return error_set(err, ERROR_STALE, NULL, "round %u was settled long ago", d->round);
    if (works && (d->round < open || d->round > open + 1))
        return error_set(err, ERROR_STALE, NULL, "round %u is not open here: round %lld is", d->round, (long long)open);
    return true;
}

/* Objects are large, and whoever takes part could name any: only what a record asks for may be pushed. */
static void expect_move(struct node *node, const struct document *d, json_t *missing)
{
    const int64_t open = driver_round(node->driver);
    const bool opens = d->type == DOCUMENT_OPENING;
    const json_t *before = driver_final(node->driver, (int64_t)d->round - 1), *last = driver_final(node->driver, open - 1);

    if (disputes_ask(json_object_get(before, "record"), json_object_get(last, "record"), document_type_name(d->type), d->json))
        expected_object(node, document_cid(d->json, opens ? "trace" : "evidence"),
                        opens && document_integer(d->json, "index") == 0 ? course_carry_limit(node->course)
                                                                         : COURSE_DISPUTE_LIMIT,
                        open, true, missing);
}

/* What is beyond a signer's room goes to the machine, which has limits of its own, or nowhere, but not to the disk. */
static bool keep_document(struct node *node, struct document *d, const json_t *envelope, json_t *missing, struct error *err)
{
    const struct run_spec *spec = &node->course->spec;
    int64_t open = node->driver ? driver_round(node->driver) : 0;
    const bool member = course_names(node->course, &d->signer);

    switch (d->type) {
    case DOCUMENT_VOTE:
    case DOCUMENT_PROPOSAL:
    case DOCUMENT_CLOSED:
        return true;
    case DOCUMENT_RECEIVED:
        if (d->round + 1 < open || d->round > open + 1 || journal_has_document(node->journal, d->id) ||
            !course_has_room(node->course, d))
            return true; /* asked for when it is needed */
        break;
    case DOCUMENT_CONTRIBUTION:
        if (!course_has_room(node->course, d))
            return error_set(err, ERROR_LIMIT, NULL, "too many contributions of one trainer to one round");
        expected_object(node, document_cid(d->json, "payload"), (uint64_t)spec->limits.payload_bytes, d->round, member, missing);
        expected_object(node, document_cid(d->json, "step_log"), step_log_size(document_integer(d->json, "steps")), d->round,
                        member, missing);
        break;
    default:
        if (!course_has_room(node->course, d))
            return error_set(err, ERROR_LIMIT, NULL, "too many documents of this kind from one signer");
        if (node->driver && (d->type == DOCUMENT_OPENING || d->type == DOCUMENT_PICK))
            expect_move(node, d, missing);
    }
    return document_add_bytes(d, envelope, err) && (d->type != DOCUMENT_ENROLMENT || course_enrol(node->course, d, err)) &&
           journal_put_document(node->journal, d, err);
}

static bool take_document(struct node *node, const json_t *envelope, json_t *missing, struct error *err)
{
    struct document d = { 0 };
    bool ok = document_open(envelope, node->known, &d, err) && admit_document(node, &d, err) &&
              keep_document(node, &d, envelope, missing, err);

    if (ok)
        metrics_count(node, METRIC_DOCUMENTS, document_type_name(d.type), NULL);
    document_free(&d);
    return ok;
}

/* One of the blocks that came with the documents that name them. */
static bool take_carried(struct node *node, const json_t *carried, json_t *missing, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = carried_read(carried, &id, &bytes, err) && expected_take(node, id, bytes.bytes, bytes.size, missing, err);

    buffer_free(&bytes);
    return ok;
}

/* Takes what a message brings: its documents, then the blocks of them that it carries. `missing`: what is still to be pushed. */
static bool take_message(struct node *node, const json_t *message, json_t *missing, struct error *err)
{
    json_t *each;
    size_t index;

    if (!json_is_object(message))
        return error_set(err, ERROR_TYPE, NULL, "a message is a JSON object");
    json_array_foreach(json_object_get(message, "documents"), index, each)
    {
        if (!take_document(node, each, missing, err))
            return error_at(err, "documents[%zu]", index);
    }
    json_array_foreach(json_object_get(message, "blocks"), index, each)
    {
        if (!take_carried(node, each, missing, err))
            return error_at(err, "blocks[%zu]", index);
    }
    for (size_t i = json_array_size(missing); i-- > 0;) {
        struct hash id;

        if (cid_parse(json_string_value(json_array_get(missing, i)), &id, err) && block_has(&node->blocks, id))
            json_array_remove(missing, i);
    }
    return true;
}

/* Statements of members can be had from the others again: they survive a power cut with what this node says itself. */
static bool is_small_talk(const json_t *message)
{
    static const char *const types[] = { "received", "proposal", "vote" };
    json_t *each;
    size_t index;

    json_array_foreach(json_object_get(message, "documents"), index, each)
    {
        const char *type = document_text(each, "payloadType");
        bool small = false;

        for (size_t i = 0; type && i < sizeof types / sizeof *types; i++) {
            char full[64];

            snprintf(full, sizeof full, "application/vnd.rondo.%s+json", types[i]);
            small = small || strcmp(type, full) == 0;
        }
        if (!small)
            return false;
    }
    return !json_object_get(message, "blocks");
}

bool intake_message(struct node *node, const json_t *message, json_t *missing, struct error *err)
{
    bool small = is_small_talk(message), begun = small || journal_begin(node->journal, err), taken;
    struct error fault = { 0 };

    if (small)
        journal_begin_lazily(node->journal);
    taken = begun && take_message(node, message, missing, err);

    const bool kept = !begun || journal_end(node->journal, true, &fault);

    course_forget_displaced(node->course);
    if (kept)
        return taken;
    *err = fault; /* of this node's disk: more than what is wrong with the message */
    return false;
}
