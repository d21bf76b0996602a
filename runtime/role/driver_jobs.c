#include <stdlib.h>
#include <string.h>

#include "native/base/json.h"
#include "runtime/crypto/root.h"
#include "runtime/doc/documents.h"
#include "runtime/role/driver_internal.h"
#include "runtime/role/fetch.h"
#include "runtime/role/metrics.h"
#include "runtime/round/step_log.h"
#include "runtime/worker/failure.h"

/* A fault of this machine is told as an alert when it has come ALERT_AT times; a verdict that is still not there after TRIES_MOST, about a
 * quarter of an hour of pauses, is left to others. */
enum { CHECK_MS = 30000, DATA_MS = 600000, PUSH_MOST_MS = 250, RETRY_MS = 500, ALERT_AT = 3, TRIES_MOST = 64 };

static void timer_closed(uv_handle_t *handle)
{
    free(handle);
}

static void job_drop(struct driver_job *j)
{
    for (struct driver_job **at = &j->driver->jobs; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            break;
        }
    json_decref(j->body);
    free(j);
}

/* The answer the machine gets: the action's own fields and what is given. */
static void job_answer(struct driver_job *j, enum event_kind kind, json_t *body)
{
    struct driver *d = j->driver;

    job_drop(j);
    driver_feed(d, kind, body);
}

static void job_begin(struct driver_job *j);

static void job_again(uv_timer_t *timer)
{
    struct driver_job *j = timer->data;

    uv_close((uv_handle_t *)timer, timer_closed);
    j->pause = NULL;
    job_begin(j);
}

/* Whether others can do without it: a replay or a verdict. What this machine owes itself is tried for as long as it is asked for. */
static bool is_left_to_others(enum action_kind kind)
{
    return kind == ACTION_REPLAY || kind == ACTION_JUDGE;
}

static void tell_abstains(struct driver_job *j, const struct error *err, bool for_good)
{
    char text[1024];

    metrics_count(j->driver->node, METRIC_ABSTENTIONS, action_name(j->kind), error_name(err->code));
    node_tell(j->driver->node, "abstains",
              json_pack("{s:s, s:I, s:s, s:s, s:I, s:b}", "job", action_name(j->kind), "round", (json_int_t)j->round, "code",
                        error_name(err->code), "error", error_text(err, text, sizeof text), "tries", (json_int_t)j->failures,
                        "for_good", for_good));
}

/* The fault is this machine's: a worker that died, no memory, no space, a spoiled block, blocks that no peer gave. It says nothing about a
 * contribution or a record, so the machine is not told; the job is done again after a pause. */
static void job_retry(struct driver_job *j, const struct error *err)
{
    j->failures++;
    j->damaged = j->damaged || err->code == ERROR_DAMAGED;
    if (j->failures == TRIES_MOST && is_left_to_others(j->kind)) {
        tell_abstains(j, err, true);
        job_drop(j);
        return;
    }
    if (j->failures == ALERT_AT)
        tell_abstains(j, err, false);
    j->pause = calloc(1, sizeof *j->pause);
    uv_timer_init(&j->driver->node->loop, j->pause);
    j->pause->data = j;
    uv_timer_start(j->pause, job_again, RETRY_MS << (j->failures <= 5 ? j->failures - 1 : 5), 0);
}

/* `asked`: others were, for its blocks. What none of them gave is an answer to a check and of a verdict; what was here is this machine's to find. */
static void job_failed(struct driver_job *j, const struct error *err, bool asked)
{
    char text[1024];
    const char *code = error_name(err->code);
    const bool awaited = err->code == ERROR_MISSING && asked && (j->kind == ACTION_CHECK || j->kind == ACTION_JUDGE);

    if (err->code == ERROR_MISSING && !asked && j->kind == ACTION_REPLAY && j->failures == 0) {
        job_retry(j, err); /* who took no part in the round asks for its contribution in the same breath */
        return;
    }
    metrics_count(j->driver->node, METRIC_JOB_FAILURES, action_name(j->kind), code);
    node_tell(j->driver->node, "job_failed",
              json_pack("{s:s, s:s, s:I}", "job", action_name(j->kind), "error", error_text(err, text, sizeof text), "round",
                        (json_int_t)j->round));
    if (failure_is_here(err) && !awaited) {
        job_retry(j, err);
        return;
    }
    switch (j->kind) {
    case ACTION_CHECK:
    case ACTION_JUDGE:
        job_answer(j, EVENT_CHECKED, json_pack("{s:O, s:s}", "cid", json_object_get(j->body, "cid"), "code", code));
        break;
    case ACTION_COMPUTE:
        job_answer(j, EVENT_COMPUTED,
                   json_pack("{s:O, s:s, s:n}", "hash", json_object_get(j->body, "hash"), "code", code, "result"));
        break;
    default: /* a trainer that cannot train takes no part in this round; a replay that cannot be done proves nothing */
        job_drop(j);
    }
}

/* In the replicated tier nobody can tell from a commitment what it is to: the salt follows from the key alone, so that training again after a
 * crash signs the same bytes. */
static void salt_contribution(const struct driver_job *j, json_t *contribution)
{
    const struct driver *d = j->driver;
    struct signature signature;
    char text[160], hex[HASH_TEXT];

    if (d->course->rules.replicas < 2)
        return;
    snprintf(text, sizeof text, "rondo salt\n%s\n%lld\n", d->course->run, (long long)j->round);
    signature = sign_message(&d->node->keys.identity, text, strlen(text));
    json_object_set_new(contribution, "salt",
                        json_string(hash_hex(hash_typed("rondo/salt", signature.bytes, sizeof signature.bytes), hex)));
}

static void job_done(void *context, const struct worker_answer *answer)
{
    struct driver_job *j = context;

    j->worker = NULL;
    if (answer->error) {
        job_failed(j, answer->error, false);
        return;
    }
    switch (j->kind) {
    case ACTION_CHECK:
    case ACTION_JUDGE:
        job_answer(
            j, EVENT_CHECKED,
            json_pack("{s:O, s:O}", "cid", json_object_get(j->body, "cid"), "code", json_object_get(answer->result, "code")));
        break;
    case ACTION_REPLAY:
        job_answer(
            j, EVENT_REPLAYED,
            json_pack("{s:O, s:O}", "cid", json_object_get(j->body, "cid"), "index", json_object_get(answer->result, "index")));
        break;
    case ACTION_MOVE:
        node_tell(j->driver->node, "dispute",
                  json_pack("{s:I, s:O, s:O, s:O}", "round", j->round, "move", json_object_get(j->body, "move"), "leaf",
                            json_object_get(j->body, "index"), "made", answer->result));
        job_answer(
            j, EVENT_MOVED,
            json_pack("{s:O, s:O}", "key", json_object_get(j->body, "key"), "object", json_object_get(answer->result, "object")));
        break;
    case ACTION_COMPUTE:
        job_answer(
            j, EVENT_COMPUTED,
            json_pack("{s:O, s:s, s:O}", "hash", json_object_get(j->body, "hash"), "code", "ok", "result", answer->result));
        break;
    default:
        node_tell(j->driver->node, "trained",
                  json_pack("{s:I, s:O, s:O, s:f, s:O}", "round", j->round, "steps", json_object_get(answer->result, "steps"),
                            "tokens", json_object_get(answer->result, "tokens"), "mean_step_loss",
                            (double)document_float(json_object_get(answer->result, "loss")), "payload_bytes",
                            json_object_get(answer->result, "payload_bytes")));
        salt_contribution(j, answer->result);
        job_answer(j, EVENT_TRAINED, json_pack("{s:I, s:O}", "round", j->round, "contribution", answer->result));
    }
}

static void job_progress(void *context, json_t *progress)
{
    struct driver_job *j = context;
    json_t *told = json_pack("{s:I, s:s}", "round", j->round, "job", action_name(j->kind));

    json_object_update(told, progress);
    node_tell(j->driver->node, "progress", told);
}

/* --- what a job needs -------------------------------------------------------------------------------------------------- */

struct needs {
    struct fetch_want *list;
    size_t count;
};

/* An object of at most `limit` bytes; what a stranger's document names is not fetched, and fills no disk, beyond that. */
static bool need_within(struct needs *n, const char *cid, uint64_t limit, struct error *err)
{
    struct hash id;

    if (!cid || !cid_parse(cid, &id, err))
        return cid ? false : error_set(err, ERROR_MISSING, NULL, "a content id is absent");
    n->list = realloc(n->list, (n->count + 1) * sizeof *n->list);
    n->list[n->count++] = (struct fetch_want){ .id = id, .object = true, .limit = limit };
    return true;
}

static bool need(struct needs *n, const char *cid, struct error *err)
{
    return need_within(n, cid, 0, err);
}

static bool need_context(struct driver *d, struct needs *n, json_t *context, json_t *shards, struct error *err)
{
    json_t *list = json_object_get(context, "shards"), *shard;
    size_t index;

    json_array_foreach(list, index, shard)
    {
        json_t *cid = json_array_get(d->course->shards, (size_t)json_integer_value(shard));

        if (!need(n, json_string_value(cid), err))
            return error_at(err, "shard %lld", (long long)json_integer_value(shard));
        json_array_append(shards, cid);
    }
    return need(n, document_text(context, "outer"), err) || error_at(err, "outer");
}

/* The contribution of that CID. One that is not here, or that the disk has spoiled, is asked for. */
static bool read_contribution(struct driver *d, const char *cid, struct document *out, struct error *err)
{
    struct buffer bytes = { 0 };
    struct error fault = { 0 };
    struct hash id;
    bool ok = cid && cid_parse(cid, &id, &fault) && journal_get_document(d->node->journal, id, &bytes, &fault) &&
              document_read_as_known(DOCUMENT_CONTRIBUTION, bytes.bytes, bytes.size, d->node->known, out, &fault);

    buffer_free(&bytes);
    if (ok)
        return true;
    *err = fault;
    if (fault.code == ERROR_DAMAGED)
        journal_forget_document(d->node->journal, id, &fault);
    if (failure_is_here(err)) {
        json_t *again = json_pack("{s:[s]}", "documents", cid);

        driver_fetch(d, again);
        json_decref(again);
    }
    return error_at(err, "contribution %s", cid ? cid : "");
}

/* Payload CIDs of the contributions a fold names. */
static bool need_payloads(struct driver *d, struct needs *n, json_t *request, json_t *payloads, struct error *err)
{
    json_t *rounds = json_object_get(request, "rounds"), *round, *each;
    size_t i, j;

    json_array_foreach(rounds, i, round)
    {
        json_array_foreach(json_object_get(round, "contributions"), j, each)
        {
            struct document document = { 0 };
            const char *cid = document_text(each, "cid");
            bool ok = read_contribution(d, cid, &document, err) && need(n, document_text(document.json, "payload"), err);

            if (ok)
                json_object_set(payloads, cid, json_object_get(document.json, "payload"));
            document_free(&document);
            if (!ok)
                return false;
        }
    }
    return need(n, document_text(request, "from"), err) || error_at(err, "from");
}

/* The contribution that a replay or a dispute is about; the machine knows it by its CID, this node keeps the document. */
static json_t *contribution_of(struct driver_job *j, const char *name, struct error *err)
{
    struct document document = { 0 };
    json_t *json = read_contribution(j->driver, document_text(j->body, name), &document, err) ? json_incref(document.json) : NULL;

    document_free(&document);
    return json;
}

/* The carry that a contribution begins with; nothing where it begins with none. */
static bool need_carry(const struct driver *d, struct needs *n, const json_t *context, const json_t *document, struct error *err)
{
    const char *object = document_text(json_object_get(context, "carry"), "object");

    if (!object || hash_equal(document_hash(document, "carry_in"), root_empty()))
        return true;
    return need_within(n, object, course_carry_limit(d->course), err) || error_at(err, "carry");
}

/* Whether the verdict about this move rests on the carry itself: a tile of the first step. */
static bool judges_by_carry(const struct driver_job *j)
{
    return strcmp(document_text(j->body, "move"), "pick") == 0 && document_integer(j->body, "index") == 1;
}

/* A move of a dispute, to be judged or to be made. What only others say is fetched within limits. */
static json_t *dispute_make(struct driver_job *j, struct needs *n, struct error *err)
{
    const bool judges = j->kind == ACTION_JUDGE;
    const char *const objects[] = { "trace", "evidence" };
    json_t *shards = json_array(), *document = contribution_of(j, "contribution", err), *job = NULL;
    bool ok =
        document && need_context(j->driver, n, json_object_get(j->body, "context"), shards, err) &&
        (!judges || need_within(n, document_text(document, "step_log"), step_log_size(document_integer(document, "steps")), err));

    if (ok && (judges ? judges_by_carry(j) : true))
        ok = need_carry(j->driver, n, json_object_get(j->body, "context"), document, err);
    for (size_t i = 0; ok && i < 2; i++)
        if (document_text(j->body, objects[i]))
            ok = need_within(n, document_text(j->body, objects[i]),
                             document_integer(j->body, "index") ? COURSE_DISPUTE_LIMIT : course_carry_limit(j->driver->course),
                             err);
    if (ok)
        job = json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:O?, s:O?}", "job", judges ? "judge" : "move", "move",
                        json_object_get(j->body, "move"), "context", json_object_get(j->body, "context"), "shards", shards,
                        "document", document, "index", json_object_get(j->body, "index"), "trace",
                        json_object_get(j->body, "trace"), "evidence", json_object_get(j->body, "evidence"));
    json_decref(shards);
    json_decref(document);
    return job;
}

/* A machine that lost what it kept from its last round begins without, as the protocol allows, and says so. */
static void begin_with_carry(struct driver *d, json_t *context)
{
    const char *object = document_text(json_object_get(context, "carry"), "object");
    struct fetch_want want = { .object = true };

    if (!object || (cid_parse(object, &want.id, NULL) && fetch_complete(d->node, &want, 1, course_carry_limit(d->course))))
        return;
    node_tell(d->node, "carry_lost", json_pack("{s:O, s:s}", "round", json_object_get(context, "round"), "object", object));
    json_object_del(context, "carry");
}

/* The worker's job and the objects it reads. */
static json_t *job_make(struct driver_job *j, struct needs *n, struct error *err)
{
    struct driver *d = j->driver;
    json_t *context = json_object_get(j->body, "context"), *request = json_object_get(j->body, "request"), *extra;
    json_t *document = json_object_get(j->body, "document"), *job = NULL, *replayed;

    switch (j->kind) {
    case ACTION_CHECK:
        if (need_within(n, document_text(document, "payload"), (uint64_t)d->course->spec.limits.payload_bytes, err) &&
            need_within(n, document_text(document, "step_log"),
                        step_log_size(document_integer(json_object_get(context, "plan"), "steps")), err))
            job = json_pack("{s:s, s:O, s:O}", "job", "check", "document", document, "context", context);
        break;
    case ACTION_REPLAY:
        extra = json_array();
        replayed = contribution_of(j, "cid", err);
        if (replayed && need_context(d, n, context, extra, err) && need(n, document_text(replayed, "step_log"), err) &&
            need_carry(d, n, context, replayed, err))
            job = json_pack("{s:s, s:O, s:O, s:O}", "job", "replay", "document", replayed, "context", context, "shards", extra);
        json_decref(extra);
        json_decref(replayed);
        break;
    case ACTION_JUDGE:
    case ACTION_MOVE:
        return dispute_make(j, n, err);
    case ACTION_TRAIN:
        extra = json_array();
        begin_with_carry(d, context);
        if (need_context(d, n, context, extra, err) && need_carry(d, n, context, NULL, err))
            job = json_pack("{s:s, s:O, s:O}", "job", "train", "context", context, "shards", extra);
        json_decref(extra);
        break;
    default:
        extra = json_object();
        if (strcmp(document_text(request, "kind"), "fold") != 0)
            job = json_pack("{s:s, s:O}", "job", "plan", "request", request);
        else if (need_payloads(d, n, request, extra, err))
            job = json_pack("{s:s, s:O, s:O}", "job", "fold", "request", request, "payloads", extra);
        json_decref(extra);
    }
    return job;
}

/* What takes long and holds up no vote: done niced, by members. */
static bool is_patient(enum action_kind kind)
{
    return kind == ACTION_REPLAY || kind == ACTION_JUDGE || kind == ACTION_MOVE;
}

static void job_go(struct driver_job *j, json_t *job)
{
    j->worker = is_patient(j->kind) ? driver_replay_worker(j->driver) : j->driver->main;
    j->id = worker_submit(j->worker, json_incref(job), NULL, 0, job_progress, job_done, j);
    if (json_object_get(j->body, "first"))
        worker_prefer(j->worker, j->id);
}

static void job_fetched(void *context, const struct error *fault)
{
    struct driver_job *j = context;

    j->fetch = NULL;
    if (fault)
        job_failed(j, fault, true);
    else
        job_begin(j);
}

/* The round that asked for it; a check, a replay or a move is of the round that its context is of. */
static int64_t job_round(const json_t *body)
{
    const json_t *round = json_object_get(body, "round");

    return json_integer_value(round ? round : json_object_get(json_object_get(body, "context"), "round"));
}

/* What a stranger's document names is pushed behind it: half a view is given to that, before others are asked. */
static void await_blocks(struct driver_job *j, const struct needs *n)
{
    const bool pushed = j->kind == ACTION_CHECK || j->kind == ACTION_JUDGE;
    const int64_t half = j->driver->course->spec.committee.view_ms / 2;

    j->fetch = fetch_start(j->driver->node, n->list, n->count, COURSE_OBJECT_LIMIT, pushed ? CHECK_MS : DATA_MS, job_fetched, j);
    if (pushed)
        fetch_expect(j->fetch, half < PUSH_MOST_MS ? (unsigned)half : PUSH_MOST_MS);
}

/* job_make, once what the disk has spoiled of its objects is gone, so that it is fetched again. */
static json_t *job_mend(struct driver_job *j, struct needs *n, struct error *err)
{
    json_t *job = job_make(j, n, err);

    if (!job || !j->damaged)
        return job;
    json_decref(job);
    if (!fetch_mend(j->driver->node, n->list, n->count, COURSE_OBJECT_LIMIT, err))
        return NULL;
    j->damaged = false;
    n->count = 0;
    return job_make(j, n, err);
}

/* Fetches what is missing, then hands the job to its worker. */
static void job_begin(struct driver_job *j)
{
    struct driver *d = j->driver;
    struct needs n = { 0 };
    struct error err = { 0 };
    json_t *job = job_mend(j, &n, &err);

    if (!job)
        job_failed(j, &err, false);
    else if (n.count == 0 || fetch_complete(d->node, n.list, n.count, COURSE_OBJECT_LIMIT))
        job_go(j, job);
    else
        await_blocks(j, &n);
    json_decref(job);
    free(n.list);
}

void driver_job_start(struct driver *d, enum action_kind kind, const json_t *body)
{
    struct driver_job *j = calloc(1, sizeof *j);

    *j = (struct driver_job){ .kind = kind, .body = json_incref((json_t *)(uintptr_t)body), .driver = d, .next = d->jobs };
    j->round = job_round(body);
    metrics_count(d->node, METRIC_JOBS, action_name(kind), NULL);
    d->jobs = j;
    job_begin(j);
}

static void job_cancel(struct driver_job *j)
{
    fetch_cancel(j->fetch);
    if (j->pause)
        uv_close((uv_handle_t *)j->pause, timer_closed);
    if (j->worker)
        worker_cancel(j->worker, j->id);
    job_drop(j);
}

void driver_jobs_cancel(struct driver *d, int64_t round)
{
    for (struct driver_job *j = d->jobs, *next; j; j = next) {
        next = j->next;
        if (j->round <= round && !is_patient(j->kind))
            job_cancel(j);
    }
}

void driver_jobs_free(struct driver *d)
{
    while (d->jobs)
        job_cancel(d->jobs);
}
