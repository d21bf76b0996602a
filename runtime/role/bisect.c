#include "runtime/role/bisect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/scratch.h"
#include "runtime/role/replay.h"
#include "runtime/round/assignment.h"
#include "runtime/round/step_log.h"
#include "runtime/round/value.h"
#include "runtime/store/object.h"
#include "runtime/worker/dispute.h"

struct bisecting {
    const struct bisect_side *sides;
    unsigned threads;
    struct scratch folder;
    struct archive a[2];
    worker_progress *progress;
    void *context;
    json_t *result;
};

static bool open_side(struct bisecting *b, size_t i, struct error *err)
{
    char folder[4200];

    snprintf(folder, sizeof folder, "%s/%c", b->folder.path, i ? 'b' : 'a');
    if (!archive_open_in(&b->a[i], b->sides[i].home, folder, b->sides[i].run, err))
        return error_at(err, "%s", b->sides[i].home);
    b->a[i].program = b->sides[i].program;
    return true;
}

/* " path: X, Y" for each field of either in which they differ. */
static void add_differences(const json_t *x, const json_t *y, const char *path, struct buffer *out)
{
    const json_t *const sides[2] = { x, y };
    const char *name;
    json_t *value;
    char inside[200], text[80];

    if (json_is_object(x) && json_is_object(y)) {
        for (size_t i = 0; i < 2; i++)
            json_object_foreach((json_t *)(uintptr_t)sides[i], name, value)
            {
                if (i == 1 && json_object_get(x, name))
                    continue;
                snprintf(inside, sizeof inside, "%s%s%.60s", path, *path ? "." : "", name);
                add_differences(json_object_get(x, name), json_object_get(y, name), inside, out);
            }
        return;
    }
    if (json_equal(x, y))
        return;
    buffer_add_text(out, out->size ? "; " : "");
    buffer_add_text(out, path);
    for (size_t i = 0; i < 2; i++) {
        char *dump = sides[i] ? json_dumps(sides[i], JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

        snprintf(text, sizeof text, "%s %.70s", i ? "," : ":", dump ? dump : "absent");
        buffer_add_text(out, text);
        free(dump);
    }
}

/* All but what tells two runs of one sponsor apart. What else may differ without another step being taken still gives another run its id, from
 * which its seeds follow. */
static bool same_spec(const struct bisecting *b, struct error *err)
{
    static const char *const own[] = { "name", "nonce", "signer", "sponsor", "account", "committee", "payment" };
    struct buffer differences = { 0 };
    json_t *specs[2];

    for (size_t i = 0; i < 2; i++) {
        specs[i] = json_copy(b->a[i].course.spec.json);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            json_object_del(specs[i], own[k]);
    }
    add_differences(specs[0], specs[1], "", &differences);

    const bool same =
        !differences.size ||
        error_set(err, ERROR_MISMATCH, "seeds follow from the spec: give both homes one run file and one --ledger-seed",
                  "the specs differ: %s", buffer_text(&differences));

    buffer_free(&differences);
    json_decref(specs[0]);
    json_decref(specs[1]);
    return same;
}

static void found(struct bisecting *b, int64_t round, const char *what)
{
    json_object_set_new(b->result, "equal", json_false());
    json_object_set_new(b->result, "round", json_integer(round));
    json_object_set_new(b->result, "what", json_string(what));
}

/* --- one round of both runs -------------------------------------------------------------------------------------------- */

static const json_t *record_of_side(const struct bisecting *b, size_t i, int64_t round)
{
    return archive_record(&b->a[i], round);
}

/* Whether both give this trainer the same to do; else what differs is told. */
static bool same_work(struct bisecting *b, int64_t round, const char *did)
{
    static const char *const parts[] = { "seed", "outer", "plan", "shards" };
    json_t *work[2];
    const char *differs = NULL;

    for (size_t i = 0; i < 2; i++)
        work[i] = assignment_context_of(&b->a[i].course.rules, record_of_side(b, i, round - 1), record_of_side(b, i, round), did);
    for (size_t k = 0; !differs && k < sizeof parts / sizeof *parts; k++)
        if (!json_equal(json_object_get(work[0], parts[k]), json_object_get(work[1], parts[k])))
            differs = parts[k];
    json_decref(work[0]);
    json_decref(work[1]);
    if (differs)
        found(b, round, differs);
    return !differs;
}

static bool read_log(struct archive *a, const json_t *document, struct step_log *log, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = cid_parse(document_text(document, "step_log"), &id, err) && archive_gather(a, id, true, err) &&
              object_get(&a->auditor.blocks, id, LOG_MEDIA, step_log_size(STEP_LOG_STEPS), &bytes, err) &&
              step_log_decode(bytes.bytes, bytes.size, log, err);

    buffer_free(&bytes);
    return ok || error_at(err, "step log");
}

/* --- traces ---------------------------------------------------------------------------------------------------------------- */

struct parted {
    int64_t round, leaf;
    const json_t *listed[2]; /* borrowed from the records */
};

/* The trace that the trainer opened in a dispute about this leaf, if a record took one. New reference. */
static json_t *stored_trace(struct archive *a, const struct parted *p, size_t i)
{
    json_t *trace = NULL, *item;
    size_t at;

    for (int64_t round = p->round; !trace && archive_record(a, round); round++)
        json_array_foreach(json_object_get(archive_record(a, round), "items"), at, item)
        {
            struct buffer bytes = { 0 };
            struct document document = { 0 };
            struct error none = { 0 };
            struct hash id;

            if (!trace && value_is(item, "type", "opening") && cid_parse(value_text(item, "cid"), &id, &none) &&
                archive_document(a, id, &bytes, &none) &&
                document_read_as(DOCUMENT_OPENING, bytes.bytes, bytes.size, &document, &none) &&
                value_is(document.json, "contribution", value_text(p->listed[i], "cid")) &&
                value_is(document.json, "signer", value_text(p->listed[i], "did")) &&
                value_integer(document.json, "index") == p->leaf && cid_parse(value_text(document.json, "trace"), &id, &none) &&
                archive_gather(a, id, true, &none))
                trace = json_incref(json_object_get(document.json, "trace"));
            document_free(&document);
            buffer_free(&bytes);
        }
    return trace;
}

/* Whether a trace ends in the state and the loss of the run's own leaf. */
static bool is_of_run(struct bisecting *b, const struct parted *p, size_t i, json_t *trace)
{
    struct error none = { 0 };
    json_t *answer = replay_job(
        &b->a[i],
        json_pack("{s:s, s:s, s:I, s:O}", "job", "judge", "move", "opening", "index", (json_int_t)p->leaf, "trace", trace),
        p->round, p->listed[i], NULL, NULL, &none);
    bool ok = value_is(answer, "code", "ok");

    json_decref(answer);
    return ok;
}

/* The trace of the leaf in run i, its CID; and how it was had. NULL where nothing at hand gives it. New reference. */
static json_t *trace_of(struct bisecting *b, const struct parted *p, size_t i, const char **how, struct error *err)
{
    json_t *trace = stored_trace(&b->a[i], p, i), *made;

    *how = "stored";
    if (trace && is_of_run(b, p, i, trace))
        return trace;
    json_decref(trace);
    made = replay_job(&b->a[i], json_pack("{s:s, s:s, s:I}", "job", "move", "move", "opening", "index", (json_int_t)p->leaf),
                      p->round, p->listed[i], b->progress, b->context, err);
    trace = json_incref(json_object_get(made, "object"));
    json_decref(made);
    *how = "computed";
    if (trace && is_of_run(b, p, i, trace))
        return trace;
    json_decref(trace);
    *how = "its program computes another step";
    return NULL;
}

/* An opening of run b, into the store of run a. */
static bool hand_over(struct bisecting *b, const json_t *trace, struct error *err)
{
    struct buffer bytes = { 0 };
    struct hash id;
    bool ok = cid_parse(json_string_value(trace), &id, err) &&
              object_get(&b->a[1].auditor.blocks, id, OPENING_MEDIA, DISPUTE_OBJECT, &bytes, err) &&
              object_put(&b->a[0].auditor.blocks, OPENING_MEDIA, bytes.bytes, bytes.size, &id, err);

    buffer_free(&bytes);
    return ok;
}

/* Operator and tile of the first leaf that differs. */
static bool name_tile(struct bisecting *b, const struct parted *p, struct error *err)
{
    json_t *traces[2] = { NULL, NULL }, *answer = NULL;
    const char *how[2] = { "", "" };
    bool ok = true;

    json_object_set_new(b->result, "operator", json_null());
    for (size_t i = 0; ok && i < 2; i++) {
        ok = archive_worker(&b->a[i], b->threads, err);
        traces[i] = ok ? trace_of(b, p, i, &how[i], err) : NULL;
        ok = ok && (traces[i] || err->code == ERROR_NONE || err->code == ERROR_UNSUPPORTED);
        error_clear(err);
    }
    if (ok && traces[0] && traces[1] && (ok = hand_over(b, traces[1], err)))
        ok = (answer = replay_job(&b->a[0],
                                  json_pack("{s:s, s:I, s:O, s:O}", "job", "compare", "index", (json_int_t)p->leaf, "trace",
                                            traces[0], "other", traces[1]),
                                  p->round, p->listed[0], NULL, NULL, err)) != NULL;
    if (ok)
        json_object_set_new(b->result, "traces", json_pack("{s:s, s:s}", "a", how[0], "b", how[1]));
    if (answer)
        json_object_update(b->result, answer);
    json_decref(answer);
    json_decref(traces[0]);
    json_decref(traces[1]);
    return ok;
}

/* --- the walk -------------------------------------------------------------------------------------------------------------- */

static bool tell_leaf(struct bisecting *b, const struct parted *p, const struct step_log logs[2], struct error *err)
{
    const bool step = p->leaf >= 1 && p->leaf <= (int64_t)logs[0].steps && p->leaf <= (int64_t)logs[1].steps;

    found(b, p->round, step ? "step" : p->leaf == 0 ? "outer" : "payload");
    json_object_set(b->result, "did", json_object_get(p->listed[0], "did"));
    json_object_set_new(b->result, "leaf", json_integer(p->leaf));
    if (!step)
        return true;

    const struct step_leaf *x = &logs[0].leaves[p->leaf - 1], *y = &logs[1].leaves[p->leaf - 1];

    json_object_set_new(b->result, "where",
                        json_string(!hash_equal(x->batch, y->batch)                   ? "batch"
                                    : memcmp(&x->loss, &y->loss, sizeof x->loss) != 0 ? "loss"
                                                                                      : "state"));
    return !hash_equal(x->batch, y->batch) || name_tile(b, p, err);
}

/* What one trainer did in both runs. *equal false: a difference was found and told. */
static bool compare_trainer(struct bisecting *b, struct parted *p, bool *equal, struct error *err)
{
    struct step_log logs[2] = { 0 };
    json_t *documents[2] = { NULL, NULL };
    bool ok = true;

    *equal = same_work(b, p->round, value_text(p->listed[0], "did"));
    if (!*equal)
        return true;
    for (size_t i = 0; ok && i < 2; i++) {
        documents[i] = archive_contribution(&b->a[i], value_text(p->listed[i], "cid"), err);
        ok = documents[i] && read_log(&b->a[i], documents[i], &logs[i], err);
    }
    if (ok && (p->leaf = step_log_difference(&logs[0], &logs[1])) >= 0) {
        *equal = false;
        ok = tell_leaf(b, p, logs, err);
    }
    for (size_t i = 0; i < 2; i++) {
        json_decref(documents[i]);
        step_log_free(&logs[i]);
    }
    return ok || error_at(err, "round %lld", (long long)p->round);
}

/* [ did ] of the accepted. New reference. */
static json_t *accepted(const json_t *record)
{
    json_t *list = json_array(), *one;
    size_t i;

    json_array_foreach(json_object_get(record, "contributions"), i, one)
    {
        if (value_is(one, "code", "ok"))
            json_array_append(list, json_object_get(one, "did"));
    }
    return list;
}

static bool compare_round(struct bisecting *b, int64_t round, bool *equal, struct error *err)
{
    const json_t *x = record_of_side(b, 0, round), *y = record_of_side(b, 1, round);
    json_t *one, *of[2];
    size_t i;

    *equal = true;
    json_array_foreach(json_object_get(x, "contributions"), i, one)
    {
        const json_t *other = value_find(json_object_get(y, "contributions"), "did", value_text(one, "did"));
        struct parted p = { .round = round, .listed = { one, other } };

        if (!json_is_object(json_object_get(x, "plan")) || !json_is_object(json_object_get(y, "plan")) || !other)
            continue;
        if (!compare_trainer(b, &p, equal, err))
            return false;
        if (!*equal)
            return true;
    }
    of[0] = accepted(x);
    of[1] = accepted(y);
    *equal = json_equal(of[0], of[1]);
    json_decref(of[0]);
    json_decref(of[1]);
    if (!*equal)
        found(b, round, "accepted");
    else if (!(*equal = json_equal(json_object_get(x, "state"), json_object_get(y, "state"))))
        found(b, round, "state");
    return true;
}

json_t *bisect_run(const struct bisect_side sides[2], unsigned threads, worker_progress *progress, void *context,
                   struct error *err)
{
    struct bisecting b = { .sides = sides, .threads = threads, .progress = progress, .context = context };
    bool ok, equal = true;
    int64_t round = 1;

    if (!scratch_open(&b.folder, "bisect", err))
        return NULL;
    ok = open_side(&b, 0, err) && open_side(&b, 1, err) && same_spec(&b, err);
    if (ok)
        b.result = json_pack("{s:b, s:s, s:s}", "equal", 1, "run_a", b.a[0].course.run, "run_b", b.a[1].course.run);
    for (; ok && equal && archive_record(&b.a[0], round) && archive_record(&b.a[1], round); round++)
        ok = compare_round(&b, round, &equal, err);
    if (ok)
        json_object_set_new(b.result, "rounds", json_integer(round - 1));
    for (size_t i = 0; i < 2; i++)
        if (b.a[i].finals)
            archive_close(&b.a[i]);
    scratch_close(&b.folder);
    if (ok)
        return b.result;
    json_decref(b.result);
    return NULL;
}
