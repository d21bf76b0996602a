#include "runtime/role/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/role/archive.h"
#include "runtime/role/dataset.h"
#include "runtime/role/run_file.h"
#include "runtime/role/sponsor.h"
#include "runtime/round/seed.h"
#include "runtime/round/value.h"

struct fit {
    const struct fit_options *options;
    struct archive a;                 /* its store, course and worker; no nodes */
    json_t *draft, *network, *state;  /* state: { hash, run, outer, state, first, rounds, carries? } */
    char did[FIT_TRAINERS][DID_TEXT]; /* `trainers`, ascending */
    size_t trainers, trainer;         /* `trainer`: the one that trains now */
    int64_t round;
    bool bar;
};

static void told(void *context, json_t *progress)
{
    struct fit *f = context;

    if (f->options->step) {
        json_object_set_new(progress, "round", json_integer((json_int_t)f->round));
        json_object_set_new(progress, "trainer", json_integer((json_int_t)f->trainer + 1));
        f->options->step(f->options->context, progress);
        return;
    }
    if (f->options->quiet || !isatty(STDERR_FILENO))
        return;
    if (json_object_get(progress, "steps"))
        fprintf(stderr, "\r\033[Kround %lld step %lld/%lld  loss %.4f  %.0f tokens/s", (long long)f->round,
                (long long)document_integer(progress, "step"), (long long)document_integer(progress, "steps"),
                json_number_value(json_object_get(progress, "loss")),
                json_number_value(json_object_get(progress, "tokens_per_second")));
    else
        fprintf(stderr, "\r\033[Kheld-out row %lld", (long long)document_integer(progress, "evaluated"));
    fflush(stderr);
    f->bar = true;
}

static void say_round(struct fit *f, const json_t *line)
{
    if (f->options->quiet || f->options->step)
        return;
    fprintf(stderr, "%sround %lld  loss %.4f  %lld tokens\n", f->bar ? "\r\033[K" : "",
            (long long)document_integer(line, "round"), json_real_value(json_object_get(line, "loss")),
            (long long)document_integer(line, "tokens"));
    f->bar = false;
}

/* A committee of one, which is never asked: the draft's own would name a panel. */
static void alone(struct fit *f, json_t *panel)
{
    json_t *committee = json_object_get(f->draft, "committee"), *quorum = json_object_get(f->draft, "quorum");

    json_object_set_new(committee, "size", json_integer(1));
    json_object_set_new(committee, "threshold", json_integer(1));
    json_object_set_new(committee, "release_threshold", json_integer(1));
    json_object_set(committee, "panel", panel);
    json_object_set_new(quorum, "trainers", json_integer((json_int_t)f->trainers));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The trainers' names, in the order in which a fold takes them. New reference. */
static json_t *name_trainers(struct fit *f)
{
    json_t *allowed = json_array();

    f->trainers = f->options->trainers ? f->options->trainers : 1;
    for (size_t i = 0; i < f->trainers; i++) {
        struct key_pair keys;
        char label[32];

        snprintf(label, sizeof label, i ? "trainer-%zu" : "trainer", i + 1);
        key_pair_derive(f->options->seed, label, &keys);

        struct public_key key = public_key_of(&keys.identity);

        did_text(&key, f->did[i]);
        key_pair_wipe(&keys);
    }
    qsort(f->did, f->trainers, sizeof f->did[0], by_text);
    for (size_t i = 0; i < f->trainers; i++)
        json_array_append_new(allowed, json_string(f->did[i]));
    return allowed;
}

static bool make_run(struct fit *f, struct error *err)
{
    char scripts[4096], cid[CID_TEXT], account[ADDRESS_TEXT];
    struct key_pair keys, other;
    struct document run = { 0 };
    json_t *panel, *allowed;
    char member[DID_TEXT];
    bool ok;

    key_pair_derive(f->options->seed, "trainer", &keys);
    key_pair_derive(f->options->seed, "member", &other);
    struct public_key absent = public_key_of(&other.identity);

    panel = json_pack("[{s:s, s:s}]", "did", did_text(&absent, member), "account",
                      address_text(account_address(&other.account), account));
    allowed = name_trainers(f);
    alone(f, panel);

    struct sponsor_setting setting = { .scripts = run_file_scripts(scripts),
                                       .blocks = &f->a.auditor.blocks,
                                       .keys = &keys,
                                       .panel = panel,
                                       .allowed = allowed,
                                       .nonce = "00000000000000000000000000000000",
                                       .chain = 31337,
                                       .contract = account_address(&keys.account) };

    ok = sponsor_make_run(&setting, f->draft, &run, err) &&
         course_of(&f->a.auditor, cid_text(run.id, cid), run.bytes.bytes, run.bytes.size, &f->a.course, err);
    document_free(&run);
    key_pair_wipe(&keys);
    key_pair_wipe(&other);
    json_decref(panel);
    json_decref(allowed);
    return ok || error_at(err, "%s", f->options->runfile);
}

static void state_path(const struct fit *f, char path[4200])
{
    snprintf(path, 4200, "%.4000s/fit.json", f->options->home);
}

static bool save(struct fit *f, struct error *err)
{
    char path[4200], *text = json_dumps(f->state, JSON_INDENT(1));
    bool ok;

    state_path(f, path);
    ok = file_write(path, text, strlen(text), 0644, err);
    free(text);
    return ok;
}

/* The state of an earlier call for the same run, or the run's first. */
static bool load(struct fit *f, struct error *err)
{
    char path[4200];
    const char *run;
    json_t *genesis;

    state_path(f, path);
    f->state = file_exists(path) ? json_read_file(path, 64 << 20, err) : NULL;
    if (!f->state && file_exists(path))
        return false;
    run = document_text(f->state, "run");
    if (run && strcmp(run, f->a.course.run) == 0 && json_is_array(json_object_get(f->state, "rounds")))
        return true;
    json_decref(f->state);
    f->state = NULL;
    genesis = archive_job(&f->a, json_pack("{s:s}", "job", "genesis"), NULL, NULL, err);
    if (!genesis)
        return false;
    f->state = json_pack("{s:s, s:O, s:O, s:O, s:[]}", "run", f->a.course.run, "outer", json_object_get(genesis, "outer"),
                         "first", json_object_get(genesis, "outer"), "state", json_object_get(genesis, "state"), "rounds");
    json_decref(genesis);
    return save(f, err);
}

static json_t *plan_of(struct fit *f, struct error *err)
{
    json_t *answer = archive_job(&f->a,
                                 json_pack("{s:s, s:{s:I, s:i, s:n}}", "job", "plan", "request", "round", (json_int_t)f->round,
                                           "peers", (int)f->trainers, "last"),
                                 NULL, NULL, err);
    json_t *plan = json_incref(json_object_get(answer, "plan"));

    json_decref(answer);
    return plan;
}

/* The assignment of trainer t: every shard, or every so manyth one. */
static json_t *context_of(struct fit *f, json_t *plan, size_t t, json_t *cids)
{
    struct hash seed = seed_of(f->a.course.run, (uint64_t)f->round, f->options->seed, strlen(f->options->seed));
    char hex[HASH_TEXT];
    json_t *shards = json_array();

    for (size_t i = t; i < json_array_size(f->a.course.shards); i += f->trainers) {
        json_array_append_new(shards, json_integer((json_int_t)i));
        json_array_append(cids, json_array_get(f->a.course.shards, i));
    }

    json_t *context =
        json_pack("{s:s, s:I, s:s, s:s, s:o, s:i, s:O, s:O, s:O, s:[]}", "run", f->a.course.run, "round", (json_int_t)f->round,
                  "did", f->did[t], "seed", hash_hex(seed, hex), "shards", shards, "weight", 1, "plan", plan, "outer",
                  json_object_get(f->state, "outer"), "state", json_object_get(f->state, "state"), "probes");
    json_t *carry = json_array_get(json_object_get(f->state, "carries"), t);

    if (json_is_object(carry) && value_is(plan, "inner", "keep"))
        json_object_set(context, "carry", carry);
    return context;
}

/* What each trainer goes on with in the next round, where it keeps anything. */
static void keep_carries(struct fit *f, const json_t *all)
{
    json_t *carries = json_array(), *each;
    bool any = false;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)all, i, each)
    {
        json_t *object = json_object_get(each, "carry");

        any = any || object;
        json_array_append_new(carries, object
                                           ? json_pack("{s:O, s:O}", "root", json_object_get(each, "carry_out"), "object", object)
                                           : json_null());
    }
    if (any)
        json_object_set(f->state, "carries", carries);
    else
        json_object_del(f->state, "carries");
    json_decref(carries);
}

/* What each trainer's contribution would say. New reference; NULL with `err`. */
static json_t *train_all(struct fit *f, json_t *plan, struct error *err)
{
    json_t *all = json_array();

    for (f->trainer = 0; f->trainer < f->trainers; f->trainer++) {
        json_t *cids = json_array(), *context = context_of(f, plan, f->trainer, cids);
        json_t *trained = archive_job(&f->a,
                                      json_pack("{s:s, s:b, s:o, s:o}", "job", "train", "every", f->options->step != NULL,
                                                "context", context, "shards", cids),
                                      told, f, err);

        if (!trained) {
            json_decref(all);
            return NULL;
        }
        json_array_append_new(all, trained);
    }
    return all;
}

static json_t *fold(struct fit *f, json_t *plan, json_t *all, struct error *err)
{
    json_t *contributions = json_array(), *payloads = json_object(), *each;
    size_t i;

    json_array_foreach(all, i, each)
    {
        json_t *payload = json_object_get(each, "payload");

        json_array_append_new(contributions, json_pack("{s:O, s:s, s:i}", "cid", payload, "did", f->did[i], "weight", 1));
        json_object_set(payloads, json_string_value(payload), payload);
    }
    return archive_job(&f->a,
                       json_pack("{s:s, s:{s:s, s:s, s:O, s:[{s:I, s:O, s:o}]}, s:o}", "job", "fold", "request", "kind", "fold",
                                 "run", f->a.course.run, "from", json_object_get(f->state, "outer"), "rounds", "round",
                                 (json_int_t)f->round, "plan", plan, "contributions", contributions, "payloads", payloads),
                       NULL, NULL, err);
}

/* The round as it is told: the mean loss, and the tokens of all. */
static json_t *line_of(const struct fit *f, json_t *all, const json_t *step)
{
    double loss = 0;
    json_int_t tokens = 0;
    json_t *each;
    size_t i;

    json_array_foreach(all, i, each)
    {
        loss += (double)document_float(json_object_get(each, "loss"));
        tokens += json_integer_value(json_object_get(each, "tokens"));
    }
    return json_pack("{s:I, s:f, s:I, s:O}", "round", (json_int_t)f->round, "loss", loss / (double)f->trainers, "tokens", tokens,
                     "state_root", json_object_get(step, "state"));
}

static bool one_round(struct fit *f, struct error *err)
{
    json_t *plan = plan_of(f, err), *all = plan ? train_all(f, plan, err) : NULL, *folded = all ? fold(f, plan, all, err) : NULL,
           *step, *line;

    if (folded) {
        step = json_array_get(json_object_get(folded, "steps"), 0);
        line = line_of(f, all, step);
        say_round(f, line);
        json_array_append_new(json_object_get(f->state, "rounds"), line);
        json_object_set(f->state, "outer", json_object_get(step, "outer"));
        json_object_set(f->state, "state", json_object_get(step, "state"));
        keep_carries(f, all);
    }
    bool ok = folded && save(f, err);

    json_decref(plan);
    json_decref(all);
    json_decref(folded);
    return ok || error_at(err, "round %lld", (long long)f->round);
}

static json_t *evaluate(struct fit *f, const char *outer, struct error *err)
{
    const json_t *eval = json_object_get(f->network, "eval");

    return document_text(eval, "data") ? archive_evaluate(&f->a, eval, outer, told, f, err) : json_null();
}

static json_t *finish(struct fit *f, struct error *err)
{
    char folder[4400];
    json_t *before = evaluate(f, document_text(f->state, "first"), err), *after = NULL, *adapter = NULL, *result = NULL;

    snprintf(folder, sizeof folder, "%.4000s/runs/%s/adapter", f->options->home, f->a.course.run);
    if (before && (after = evaluate(f, document_text(f->state, "outer"), err)) && file_make_folder(folder, err))
        adapter = archive_job(
            &f->a, json_pack("{s:s, s:O, s:s}", "job", "adapter", "outer", json_object_get(f->state, "outer"), "folder", folder),
            NULL, NULL, err);
    if (adapter)
        result = json_pack("{s:s, s:O, s:{s:O, s:O}, s:s}", "run", f->a.course.run, "rounds", json_object_get(f->state, "rounds"),
                           "eval", "before", before, "after", after, "adapter", folder);
    json_decref(before);
    json_decref(after);
    json_decref(adapter);
    return result;
}

json_t *fit_run(const struct fit_options *options, struct error *err)
{
    struct fit f = { .options = options };
    char scripts[4096];
    json_t *run = options->run ? json_incref(options->run) : run_file_read(options->runfile, run_file_scripts(scripts), err),
           *result = NULL, *dataset;
    int64_t last;
    bool ok = run && archive_new(&f.a, options->home, err);

    f.draft = json_object_get(run, "spec");
    dataset = json_deep_copy(json_object_get(f.draft, "dataset"));
    f.network = json_object_get(run, "network");
    ok = ok && (json_is_object(f.draft) || error_set(err, ERROR_MISSING, NULL, "%s returns no spec", options->runfile)) &&
         make_run(&f, err) && archive_worker(&f.a, options->threads, err) && load(&f, err);
    last = ok ? (int64_t)f.a.course.spec.rounds : 0;
    if (options->rounds && options->rounds < last)
        last = options->rounds;
    for (f.round = (int64_t)json_array_size(json_object_get(f.state, "rounds")) + 1; ok && f.round <= last; f.round++)
        ok = one_round(&f, err);
    if (ok)
        result = finish(&f, err);
    if (f.bar)
        fputs("\r\033[K", stderr);
    if (!result && run)
        dataset_name_row(&f.a.auditor.blocks, dataset, err);
    if (run)
        archive_close(&f.a);
    json_decref(dataset);
    json_decref(f.state);
    json_decref(run);
    return result;
}
