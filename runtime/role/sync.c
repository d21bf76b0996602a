#include "runtime/role/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/role/course_join.h"
#include "runtime/role/fetch.h"
#include "runtime/role/verify.h"
#include "runtime/round/record.h"
#include "runtime/round/value.h"

enum { ANSWER_LIMIT = 16 << 20, CALL_MS = 20000, GATHER_MS = 300000 };

struct syncing {
    const struct sync_options *options;
    struct archive a; /* no nodes; the auditor's folder is the node's */
    struct archive_source source;
    struct books *books;
    struct verifier verifier;
};

static void tell(struct syncing *s, const char *what, int64_t done)
{
    if (s->options->told)
        s->options->told(s->options->context, what, done);
}

/* --- asking peers ------------------------------------------------------------------------------------------------------- */

/* What a peer answered: taken (true), or wrong with `err`. */
typedef bool take_answer(struct syncing *s, const struct buffer *bytes, void *context, struct error *err);

static bool ask_one(struct syncing *s, const char *endpoint, const char *path, take_answer *take, void *context,
                    struct error *err)
{
    char *url = http_url_join(endpoint, path);
    struct http_call call = { .method = "GET", .url = url, .limit = ANSWER_LIMIT, .total_ms = CALL_MS };
    struct http_answer answer = { 0 };
    bool ok =
        http_fetch(&call, s->options->plain, &answer, err) && http_answer_ok(&answer, err) && take(s, &answer.body, context, err);

    buffer_free(&answer.body);
    if (!ok)
        error_at(err, "%s", endpoint);
    free(url);
    return ok;
}

/* The peer given, then every machine that is enrolled. False with what the first of them said. */
static bool ask_all(struct syncing *s, const char *path, take_answer *take, void *context, struct error *err)
{
    struct peer_list *peers = s->a.auditor.peers;
    struct error other = { 0 };

    if (ask_one(s, s->options->peer, path, take, context, err))
        return true;
    for (size_t i = 0; i < peer_list_count(peers); i++) {
        char endpoint[PEER_ENDPOINT];

        snprintf(endpoint, sizeof endpoint, "%s", peer_list_at(peers, i)->endpoint);
        error_clear(&other);
        if (strcmp(endpoint, s->options->peer) != 0 && ask_one(s, endpoint, path, take, context, &other)) {
            error_clear(err);
            return true;
        }
    }
    return false;
}

struct wanted {
    struct hash id;
    struct buffer *bytes;
};

static bool take_document(struct syncing *s, const struct buffer *bytes, void *context, struct error *err)
{
    struct wanted *w = context;
    struct document document = { 0 };
    bool ok = document_read(bytes->bytes, bytes->size, &document, err) &&
              (hash_equal(document.id, w->id) || error_set(err, ERROR_MISMATCH, NULL, "it gave another document")) &&
              journal_put_document(s->a.auditor.journal, &document, err);

    if (ok)
        buffer_add(w->bytes, bytes->bytes, bytes->size);
    document_free(&document);
    return ok;
}

static bool give_document(void *context, struct hash id, struct buffer *bytes, struct error *err)
{
    struct syncing *s = context;
    struct wanted wanted = { id, bytes };
    struct error none = { 0 };
    char path[160], cid[CID_TEXT];

    if (journal_get_document(s->a.auditor.journal, id, bytes, &none))
        return true; /* else it is absent or spoiled: a good copy takes its place */
    snprintf(path, sizeof path, "/v1/documents/%s", cid_text(id, cid));
    return ask_all(s, path, take_document, &wanted, err) || error_at(err, "document %s", cid);
}

struct gathering {
    struct syncing *s;
    struct error *err;
    bool done, ok;
};

static void gathered(void *context, const struct error *fault)
{
    struct gathering *g = context;

    g->done = true;
    g->ok = !fault;
    if (fault)
        *g->err = *fault;
    uv_stop(&g->s->a.auditor.loop);
}

static bool give_object(void *context, struct hash id, bool object, struct error *err)
{
    struct syncing *s = context;
    struct gathering g = { .s = s, .err = err };
    struct fetch_want want = { .id = id, .object = object };

    fetch_start(&s->a.auditor, &want, 1, COURSE_OBJECT_LIMIT, GATHER_MS, gathered, &g);
    while (!g.done)
        uv_run(&s->a.auditor.loop, UV_RUN_DEFAULT);
    return g.ok;
}

/* --- rounds ------------------------------------------------------------------------------------------------------------- */

static bool put_verified(struct syncing *s, uint32_t rounds, struct error *err)
{
    char key[128], text[16];

    snprintf(key, sizeof key, "verified/%s", s->a.course.run);
    snprintf(text, sizeof text, "%u", rounds);
    return journal_put_note(s->a.auditor.journal, key, text, strlen(text), err);
}

/* Rounds of this folder that were recomputed in it before. */
static uint32_t get_verified(struct syncing *s)
{
    char key[128];
    struct buffer text = { 0 };
    struct error none = { 0 };
    uint32_t rounds = 0;

    snprintf(key, sizeof key, "verified/%s", s->a.course.run);
    if (journal_get_note(s->a.auditor.journal, key, &text, &none))
        rounds = (uint32_t)strtoul(buffer_text(&text), NULL, 10);
    buffer_free(&text);
    return rounds;
}

static json_t *kept_document(struct syncing *s, enum document_type type, struct hash id)
{
    struct buffer bytes = { 0 };
    struct document document = { 0 };
    struct error none = { 0 };
    json_t *json = NULL;

    if (journal_get_document(s->a.auditor.journal, id, &bytes, &none) &&
        document_read_as(type, bytes.bytes, bytes.size, &document, &none))
        json = json_incref(document.json);
    document_free(&document);
    buffer_free(&bytes);
    return json;
}

/* A decided round of this folder, or NULL. */
static json_t *kept_final(struct syncing *s, uint32_t round)
{
    struct hash r, c;
    struct error none = { 0 };
    json_t *record, *certificate;

    if (!journal_final(s->a.auditor.journal, s->a.course.id, round, &r, &c, &none))
        return NULL;
    record = kept_document(s, DOCUMENT_RECORD, r);
    certificate = record ? kept_document(s, DOCUMENT_CERTIFICATE, c) : NULL;
    if (certificate)
        return json_pack("{s:o, s:o}", "record", record, "certificate", certificate);
    json_decref(record);
    return NULL;
}

static bool keep_final(struct syncing *s, uint32_t round, const json_t *final, struct error *err)
{
    struct document record = { 0 }, certificate = { 0 };
    struct journal *j = s->a.auditor.journal;
    bool ok = document_make(DOCUMENT_RECORD, json_object_get(final, "record"), NULL, NULL, &record, err) &&
              document_make(DOCUMENT_CERTIFICATE, json_object_get(final, "certificate"), NULL, NULL, &certificate, err) &&
              journal_put_document(j, &record, err) && journal_put_document(j, &certificate, err) &&
              journal_finish_round(j, s->a.course.id, round, record.id, certificate.id, err) && put_verified(s, round + 1, err);

    document_free(&record);
    document_free(&certificate);
    return ok;
}

/* A peer's round is taken only when it holds: the next peer may have the true one. */
static bool take_final(struct syncing *s, const struct buffer *bytes, void *context, struct error *err)
{
    uint32_t round = *(uint32_t *)context;
    json_t *final = json_read((const char *)bytes->bytes, bytes->size, ANSWER_LIMIT, err);
    bool ok = final != NULL;

    if (ok && value_integer(json_object_get(final, "record"), "round") != (int64_t)round)
        ok = error_set(err, ERROR_MISMATCH, NULL, "it gave another round");
    ok = ok && verifier_round(&s->verifier, archive_record(&s->a, (int64_t)round - 1), final, err) &&
         keep_final(s, round, final, err);
    if (ok)
        json_array_append(s->a.finals, final);
    json_decref(final);
    return ok;
}

static bool walk(struct syncing *s, struct error *err)
{
    uint32_t round = 0, verified = get_verified(s);
    json_t *final;
    char path[160];

    for (; round < verified && (final = kept_final(s, round)); round++)
        json_array_append_new(s->a.finals, final);
    for (;; round++) {
        struct error fault = { 0 };
        const json_t *last = archive_record(&s->a, (int64_t)round - 1);

        tell(s, "round", round);
        if (last && record_is_last(&s->a.course.rules, last))
            return true;
        snprintf(path, sizeof path, "/v1/runs/%s/rounds/%u", s->a.course.run, round);
        if (ask_all(s, path, take_final, &round, &fault))
            continue;
        if (fault.code == ERROR_MISSING && round > 0) /* nobody has decided it yet */
            return true;
        *err = fault;
        return error_at(err, "round %u", round);
    }
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

static bool open_folder(struct syncing *s, struct error *err)
{
    const struct sync_options *o = s->options;
    struct node *node = &s->a.auditor;
    char folder[4300];

    snprintf(folder, sizeof folder, "%.4000s/nodes/%.200s", o->home, o->name);
    if (!archive_new_in(&s->a, o->home, folder, err))
        return false;
    s->source = (struct archive_source){ .context = s, .document = give_document, .gather = give_object };
    s->a.elsewhere = &s->source;
    node->options = (struct node_options){ .peer = o->peer, .plain = o->plain };
    node->journal = journal_open(folder, err);
    node->client = node->journal ? http_client_new(&node->loop, &(struct http_client_options){ .plain = o->plain }, err) : NULL;
    return node->client != NULL;
}

static bool open_run(struct syncing *s, struct error *err)
{
    const struct sync_options *o = s->options;
    struct hash id;

    if (!cid_parse(o->run, &id, err))
        return error_at(err, "RUN");
    if (!course_join(&s->a.auditor, o->run, err)) {
        if (!journal_has_document(s->a.auditor.journal, id))
            return false;
        error_clear(err); /* this peer is away; others are known from before */
    }
    s->books = books_of_url(o->ledger, o->plain, err);
    if (!s->books || !course_load(&s->a.auditor, o->run, &s->a.course, err))
        return false;
    s->verifier = (struct verifier){ .a = &s->a, .books = s->books };
    tell(s, "model and data", 0);
    return archive_worker(&s->a, o->threads, err) && verifier_start(&s->verifier, err);
}

/* The state that the last record names lies in the store: folds made it, or it is fetched. */
static json_t *result_of(struct syncing *s, struct error *err)
{
    size_t rounds = json_array_size(s->a.finals);
    const json_t *last = archive_record(&s->a, (int64_t)rounds - 1);
    struct hash outer;

    if (!cid_parse(value_text(last, "outer"), &outer, err) || !archive_gather(&s->a, outer, true, err))
        return NULL;
    return json_pack("{s:s, s:I, s:b, s:O, s:O, s:{s:I, s:I, s:I, s:I, s:I}}", "run", s->a.course.run, "rounds",
                     (json_int_t)rounds - 1, "finished", record_is_last(&s->a.course.rules, last), "state_root",
                     json_object_get(last, "state"), "outer", json_object_get(last, "outer"), "verified", "rounds",
                     (json_int_t)rounds, "documents", (json_int_t)s->verifier.documents, "blocks", (json_int_t)s->verifier.blocks,
                     "plans", (json_int_t)s->verifier.plans, "folds", (json_int_t)s->verifier.folds);
}

static bool write_adapter(struct syncing *s, json_t *result, struct error *err)
{
    const char *folder = s->options->adapter;
    json_t *written = NULL;

    if (!folder)
        return true;
    if (file_make_folder(folder, err))
        written = archive_job(
            &s->a, json_pack("{s:s, s:O, s:s}", "job", "adapter", "outer", json_object_get(result, "outer"), "folder", folder),
            NULL, NULL, err);
    if (!written)
        return error_at(err, "adapter");
    json_decref(written);
    json_object_set_new(result, "adapter", json_string(folder));
    return true;
}

/* No node will sync this folder's files beside its loop: the journal lets go of them here, or keeps them until the next time. */
static void files_settled(struct journal *journal, const char *folder)
{
    struct error none = { 0 };
    int64_t mark;

    if (journal && journal_unsynced(journal) && journal_mark(journal, &mark, &none) && journal_sync_folder(folder, &none))
        journal_synced(journal, mark, &none);
}

json_t *sync_run(const struct sync_options *options, struct error *err)
{
    struct syncing s = { .options = options };
    json_t *result = NULL;

    if (open_folder(&s, err) && open_run(&s, err) && walk(&s, err))
        result = result_of(&s, err);
    if (result && !write_adapter(&s, result, err)) {
        json_decref(result);
        result = NULL;
    }
    verifier_free(&s.verifier);
    books_free(s.books);
    http_client_free(s.a.auditor.client);
    if (s.a.finals) {
        struct journal *journal = s.a.auditor.journal;

        files_settled(journal, s.a.auditor.folder);
        archive_close(&s.a);
        journal_close(journal);
    }
    return result;
}
