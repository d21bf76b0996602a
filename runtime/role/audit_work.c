/* Payload and step log of every accepted contribution of a round that trained, and a replay of some. A skip folds and pays nothing; a
 * forced one has no plan to check against. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/role/audit_internal.h"
#include "runtime/role/replay.h"
#include "runtime/round/fold.h"
#include "runtime/round/value.h"

static bool gather(struct archive *a, const char *cid, const char *what, struct error *err)
{
    struct hash id;

    return (cid && cid_parse(cid, &id, err) && archive_gather(a, id, true, err)) || error_at(err, "%s", what);
}

/* What a member's CHECK says, said again: "ok" or a code. New reference; NULL with `err`. */
static json_t *check(struct audit *u, int64_t round, const json_t *listed, struct error *err)
{
    json_t *document = archive_contribution(&u->a, document_text(listed, "cid"), err), *answer = NULL,
           *context = document ? verifier_context(&u->a, round, document_text(listed, "did")) : NULL;

    if (document && !context)
        error_set(err, ERROR_MISMATCH, NULL, "%s has no part in this round", document_text(listed, "did"));
    if (context && gather(&u->a, document_text(document, "payload"), "payload", err) &&
        gather(&u->a, document_text(document, "step_log"), "step log", err))
        answer = archive_job(&u->a, json_pack("{s:s, s:O, s:O}", "job", "check", "document", document, "context", context), NULL,
                             NULL, err);
    json_decref(document);
    json_decref(context);
    return answer;
}

static bool check_one(struct audit *u, int64_t round, const json_t *listed, struct error *err)
{
    struct error fault = { 0 };
    json_t *answer = check(u, round, listed, &fault);
    bool good = answer && value_is(answer, "code", "ok");

    audit_count(u->checked, "contributions", 1);
    if (answer && !good)
        error_set(&fault, ERROR_MISMATCH, NULL, "an accepted contribution breaks a rule: %s", value_text(answer, "code"));
    json_decref(answer);
    if (good)
        return true;
    error_at(&fault, "round %lld: contribution %s", (long long)round, document_text(listed, "cid"));
    if (audit_find(u->findings, &fault))
        return true;
    *err = fault;
    return false;
}

static bool replay_one(struct audit *u, int64_t round, const json_t *listed, struct error *err)
{
    const char *did = document_text(listed, "did");
    const json_t *last = archive_record(&u->a, (int64_t)json_array_size(u->a.finals) - 1);
    struct error fault = { 0 };
    json_t *result = replay_round(&u->a, round, did, NULL, NULL, &fault);
    json_t *one = json_array_get(json_object_get(result, "contributions"), 0);
    bool match = json_is_true(json_object_get(result, "match"));

    audit_count(u->checked, "replayed", 1);
    if (result && !match)
        error_set(&fault, ERROR_MISMATCH, NULL, "replayed, it differs first at leaf %lld (%s)",
                  (long long)document_integer(one, "leaf"), value_text(one, "where"));
    json_decref(result);
    if (match || (result && fold_is_removed(json_object_get(last, "convicted"), did, round))) /* convicted for just that */
        return true;
    error_at(&fault, "round %lld: contribution of %s", (long long)round, did);
    if (audit_find(u->findings, &fault))
        return true;
    *err = fault;
    return false;
}

struct accepted {
    int64_t round;
    const json_t *listed;
};

static struct accepted *accepted_of(struct audit *u, size_t *count)
{
    struct accepted *list = NULL;

    *count = 0;
    for (int64_t round = 1; archive_record(&u->a, round); round++) {
        json_t *each;
        size_t index;

        if (!value_is(archive_record(&u->a, round), "kind", "train"))
            continue;
        json_array_foreach(json_object_get(archive_record(&u->a, round), "contributions"), index, each)
        {
            if (!value_is(each, "code", "ok"))
                continue;
            list = realloc(list, (*count + 1) * sizeof *list);
            list[(*count)++] = (struct accepted){ round, each };
        }
    }
    return list;
}

bool audit_work(struct audit *u, struct error *err)
{
    size_t count, replays;
    struct accepted *list = accepted_of(u, &count);
    bool ok = true;

    for (size_t i = 0; ok && i < count; i++) {
        audit_tell(u, "contributions", (int64_t)i, (int64_t)count);
        ok = check_one(u, list[i].round, list[i].listed, err);
    }
    /* Which are replayed nobody could know before. */
    for (size_t i = count; i-- > 1;) {
        size_t k = randombytes_uniform((uint32_t)(i + 1));
        struct accepted kept = list[i];

        list[i] = list[k];
        list[k] = kept;
    }
    replays = (size_t)(((unsigned __int128)count * (unsigned __int128)u->options->recompute + 999999999) / 1000000000);
    for (size_t i = 0; ok && i < replays && i < count; i++) {
        audit_tell(u, "replays", (int64_t)i, (int64_t)replays);
        ok = replay_one(u, list[i].round, list[i].listed, err);
    }
    free(list);
    return ok;
}
