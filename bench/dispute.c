/* dispute: what a dispute over one lie costs, on this machine, in one process.
 *
 *     build/bench/dispute HOME [STEPS [LEAF]]          HOME: of a run that has trained a round (rondo local); nothing in it is changed
 *
 *     build/bench/dispute --sizes                      bytes of opening and step log for a model of a billion parameters; nothing is computed
 *
 * The first round's first trainer does STEPS (500) steps instead of the plan's. Of its opening of LEAF (the middle) one tile after another is
 * changed, as a liar's would be, evenly over the step; the pick is made against that and judged. Prints JSON: bytes of the three documents'
 * objects, and processor seconds of one step and of each thing a member of the committee does, and their sum over the step's. `first` is what
 * the first challenge about such a shape costs a judge that has never trained or replayed: rows become tokens, scripts are traced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "native/base/scratch.h"
#include "native/kernel/class.h"
#include "native/kernel/pool.h"
#include "runtime/role/archive.h"
#include "runtime/role/run_file.h"
#include "runtime/round/assignment.h"
#include "runtime/round/value.h"
#include "runtime/script/host.h"
#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/step.h"

static double cpu(void)
{
    struct timespec t;
    struct rusage scripts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    getrusage(RUSAGE_CHILDREN, &scripts);
    return (double)(t.tv_sec + scripts.ru_utime.tv_sec + scripts.ru_stime.tv_sec) + (double)t.tv_nsec * 1e-9 +
           (double)(scripts.ru_utime.tv_usec + scripts.ru_stime.tv_usec) * 1e-6;
}

static int fail(const struct error *err)
{
    char text[1024];

    fprintf(stderr, "dispute: %s\n", error_text(err, text, sizeof text));
    return 1;
}

/* The context of the trainer with these many steps, and its shards' CIDs in the archive's store. */
static json_t *work_of(struct archive *a, int64_t steps, json_t *shards, struct error *err)
{
    const json_t *record = archive_record(a, 1), *first = json_array_get(json_object_get(record, "contributions"), 0);
    json_t *context = assignment_context_of(&a->course.rules, archive_record(a, 0), record, value_text(first, "did")), *shard,
           *plan = json_deep_copy(json_object_get(context, "plan"));
    struct hash id;
    size_t i;

    json_object_set_new(plan, "steps", json_integer(steps));
    json_object_set_new(context, "plan", plan);
    json_array_foreach(json_object_get(context, "shards"), i, shard)
    {
        json_t *cid = json_array_get(a->course.shards, (size_t)json_integer_value(shard));

        if (!cid_parse(json_string_value(cid), &id, err) || !archive_gather(a, id, true, err))
            return NULL;
        json_array_append(shards, cid);
    }
    return cid_parse(value_text(context, "outer"), &id, err) && archive_gather(a, id, true, err) ? context : NULL;
}

enum { PICKS = 64, AGAIN = 5 };

struct costs {
    double first, step, open, challenge, opening;
    double judge[PICKS];
    size_t pick_bytes[PICKS], picks, opening_bytes;
};

static int by_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int by_bytes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* What a member does for a challenge: the first move, so the batch is not known yet. */
static bool judge_challenge(struct session *s, const struct dispute_case *c, double *cost, struct error *err)
{
    struct dispute_step d;
    double from;

    s->disputed.held = false;
    from = cpu();

    bool ok = dispute_step_new(&d, s, c, false, NULL, err) &&
              (dispute_batch_right(&d, c) || error_set(err, ERROR_FAULT, NULL, "another batch"));

    dispute_step_free(&d);
    *cost = cpu() - from;
    return ok;
}

static bool judge_opening(struct session *s, const struct dispute_case *c, const struct buffer *opening, double *cost,
                          struct error *err)
{
    struct dispute_verdict verdict;
    double from = cpu();
    bool ok = dispute_opening(s, c, opening->bytes, opening->size, &verdict, err) &&
              (strcmp(verdict.code, "ok") == 0 || error_set(err, ERROR_FAULT, NULL, "the opening is %s", verdict.why));

    *cost = cpu() - from;
    return ok;
}

static bool judge_pick(struct session *s, const struct dispute_case *c, const struct buffer *opening, const struct buffer *pick,
                       double *cost, struct error *err)
{
    struct dispute_verdict verdict;
    double from = cpu();
    bool ok = dispute_judge(s, c, opening->bytes, opening->size, pick->bytes, pick->size, &verdict, err) &&
              (strcmp(verdict.code, "upheld") == 0 || error_set(err, ERROR_FAULT, NULL, "not upheld: %s", verdict.why));

    *cost = cpu() - from;
    if (ok && getenv("DISPUTE_VERBOSE"))
        fprintf(stderr, "%-14s entry %5u  pick %8zu bytes  %.0f us\n", verdict.operator_name, verdict.entry, pick->size,
                *cost * 1e6);
    return ok;
}

/* The least of a few: what else runs on the machine only adds. */
static void take_least(double *least, double cost, int turn)
{
    *least = turn == 0 || cost < *least ? cost : *least;
}

/* A tile of each part of the step, judged. */
static bool sweep(struct dispute_step *d, struct session *judge, const struct dispute_case *c, struct buffer *opening,
                  struct costs *out, struct error *err)
{
    const uint64_t tiles = d->first[d->entry_count];
    uint32_t entry = 0;
    bool ok = true;

    for (uint64_t i = 0; ok && i < PICKS; i++) {
        const uint64_t tile = tiles * (2 * i + 1) / (2 * PICKS);
        struct buffer pick = { 0 };
        double cost;

        while (d->first[entry + 1] <= tile)
            entry++;
        opening->bytes[20 + 32 * tile] ^= 1;
        ok = dispute_write_pick(d, entry, tile - d->first[entry], &pick, err);
        for (int turn = 0; ok && turn < AGAIN; turn++) {
            ok = judge_pick(judge, c, opening, &pick, &cost, err);
            take_least(&out->judge[i], cost, turn);
        }
        out->pick_bytes[i] = pick.size;
        out->picks++;
        opening->bytes[20 + 32 * tile] ^= 1;
        buffer_free(&pick);
    }
    qsort(out->judge, out->picks, sizeof *out->judge, by_double);
    qsort(out->pick_bytes, out->picks, sizeof *out->pick_bytes, by_bytes);
    return ok;
}

/* The leaf that the opening ends in: another run of the step gives its state and loss. */
static bool fill_leaf(struct session *s, const struct dispute_case *c, struct step_log *log, struct error *err)
{
    struct dispute_step d;
    bool ok = dispute_step_new(&d, s, c, true, NULL, err);
    struct hash *tiles = ok ? dispute_tiles(&d, err) : NULL;

    if (tiles) {
        log->leaves[c->index - 1].state = training_root(&d.running.training);
        log->leaves[c->index - 1].loss = d.running.training.loss;
    }
    free(tiles);
    dispute_step_free(&d);
    return tiles != NULL;
}

/* The trainer's part with `s`, the judge's with a session that has done nothing so far. */
static bool run(struct session *s, struct session *judge, struct dispute_case *c, struct costs *out, struct error *err)
{
    struct buffer opening = { 0 };
    struct dispute_step d = { 0 };
    struct step_log log = { .steps = (uint32_t)c->index, .leaves = calloc((size_t)c->index + 1, sizeof *log.leaves) };
    struct dispute_case other = *c;
    double from, cost;
    bool ok;

    other.index = 2;
    ok = dispute_step_new(&d, s, &other, true, NULL, err); /* shapes are traced and planned */
    dispute_step_free(&d);
    ok = ok && dispute_step_new(&d, s, c, true, NULL, err);
    dispute_step_free(&d);
    from = cpu();
    ok = ok && dispute_step_new(&d, s, c, true, NULL, err);
    out->step = (cpu() - from) / (double)(c->index - 1);
    if (ok) {
        log.leaves[c->index - 2].state = training_root(&d.running.training);
        log.leaves[c->index - 1].batch = batch_root(&d.running.batch);
    }
    from = cpu();
    ok = ok && dispute_open(s, c, NULL, &opening, err);
    out->open = cpu() - from;
    out->opening_bytes = opening.size;
    c->log = &log;
    ok = ok && fill_leaf(s, c, &log, err) && judge_challenge(judge, c, &out->first, err);
    for (int turn = 0; ok && turn < AGAIN; turn++) {
        ok = judge_challenge(judge, c, &cost, err);
        take_least(&out->challenge, cost, turn);
        ok = ok && judge_opening(judge, c, &opening, &cost, err);
        take_least(&out->opening, cost, turn);
    }
    ok = ok && sweep(&d, judge, c, &opening, out, err);
    dispute_step_free(&d);
    step_log_free(&log);
    buffer_free(&opening);
    return ok;
}

/* Llama-3.2-1B: tiles of all values of one step of 2,048 tokens, by the shipped scripts. */
static bool print_size(int64_t rank, struct error *err)
{
    const struct script_limits patient = { .seconds = 60 };
    static const char *const names[] = { "llama", "chat_sft", "adamw" };
    json_t *config = json_pack("{s:[s], s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:b}", "architectures", "LlamaForCausalLM",
                               "vocab_size", 128256, "hidden_size", 2048, "intermediate_size", 8192, "num_hidden_layers", 16,
                               "num_attention_heads", 32, "num_key_value_heads", 8, "max_position_embeddings", 8192, "rope_theta",
                               500000.0, "rms_norm_eps", 0.00001, "tie_word_embeddings", 1),
           *metas;
    struct script_model_request model = {
        .config = config, .rows = 1, .time = 2048, .rank = rank, .scale = 2, .train_all = rank == 0, .training = true
    };
    struct script_objective_request objective = { .batch = 1, .time = 2048, .vocab = 128256, .embed = 2048 };
    struct script_set sets[3] = { 0 };
    struct script_trace traces[3] = { 0 };
    struct layout layout = { 0 };
    char folder[4096];
    uint64_t tiles = 0, values = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < 3; i++)
        ok = script_set_read(run_file_scripts(folder), names[i], NULL, &sets[i], err);
    ok = ok && script_trace_model(&sets[0].bundle, &model, &patient, &traces[0], err) &&
         script_trace_objective(&sets[1].bundle, &objective, &patient, &traces[1], err) &&
         layout_new(&layout, traces[0].meta, err);
    metas = ok ? layout_metas(&layout) : NULL;
    ok = ok && script_trace_optimiser(&sets[2].bundle, metas, false, &patient, &traces[2], err);

    struct graph *g =
        ok ? step_graph(
                 &(struct step_parts){
                     .model = &traces[0], .objective = &traces[1], .optimiser = &traces[2], .layout = &layout, .clip = 1 },
                 err)
           : NULL;
    struct place *places = g ? place_all(g) : NULL;

    for (uint32_t i = 0; g && i < g->node_count; i++)
        if (tile_computed(g, places, i)) {
            tiles += (g->nodes[i].values * type_bytes(g->nodes[i].type) + TILE_BYTES - 1) / TILE_BYTES;
            values++;
        }
    if (g)
        printf("{\"rank\":%lld,\"trained\":%llu,\"values\":%llu,\"tiles\":%llu,\"opening_bytes\":%llu,\"step_log_bytes_500\":%"
               "llu}\n",
               (long long)rank, (unsigned long long)layout.values, (unsigned long long)values, (unsigned long long)tiles,
               (unsigned long long)(20 + 32 * tiles), (unsigned long long)step_log_size(500));
    free(places);
    graph_free(g);
    for (size_t i = 0; i < 3; i++) {
        script_trace_free(&traces[i]);
        script_set_free(&sets[i]);
    }
    layout_free(&layout);
    json_decref(metas);
    json_decref(config);
    return g != NULL;
}

int main(int argc, char **argv)
{
    struct archive a = { 0 };
    struct scratch folder;
    struct error err = { 0 };
    struct costs costs = { 0 };
    int64_t steps = argc > 2 ? atoll(argv[2]) : 500, leaf = argc > 3 ? atoll(argv[3]) : steps / 2;
    json_t *shards = json_array(), *context = NULL;
    struct session *s = NULL, *judge = NULL;

    if (argc == 2 && strcmp(argv[1], "--script-child") == 0)
        return script_child_main();
    if (argc == 2 && strcmp(argv[1], "--sizes") == 0)
        return print_size(16, &err) && print_size(0, &err) ? 0 : fail(&err);
    if (argc < 2 || leaf < 2 || leaf > steps)
        return fprintf(stderr, "usage: dispute HOME [STEPS [LEAF]]\n"), 2;
    if (!kernel_start(&err) || !scratch_open(&folder, "dispute", &err))
        return fail(&err);
    struct pool *pool = pool_new(1);
    bool ok = archive_open_in(&a, argv[1], folder.path, NULL, &err) && archive_course(&a, &err) &&
              (context = work_of(&a, steps, shards, &err)) && (s = session_new(a.course.open, &a.auditor.blocks, pool, &err)) &&
              (judge = session_new(a.course.open, &a.auditor.blocks, pool, &err));

    if (ok) {
        struct dispute_case c = { .context = context, .shards = shards, .index = leaf };

        ok = run(s, judge, &c, &costs, &err);
    }
    if (ok) {
        const size_t n = costs.picks;
        const double before = costs.challenge + costs.opening;

        printf("{\"steps\":%lld,\"leaf\":%lld,\"step_log_bytes\":%llu,\"opening_bytes\":%zu,\"pick_bytes\":%zu,"
               "\"pick_bytes_most\":%zu,\"step\":%.6f,\"trace\":%.6f,\"first\":%.6f,\"judge_challenge\":%.6f,"
               "\"judge_opening\":%.6f,\"judge_pick\":%.6f,\"judge_pick_most\":%.6f,\"ratio\":%.5f,\"ratio_most\":%.5f}\n",
               (long long)steps, (long long)leaf, (unsigned long long)step_log_size(steps), costs.opening_bytes,
               costs.pick_bytes[n / 2], costs.pick_bytes[n - 1], costs.step, costs.open, costs.first, costs.challenge,
               costs.opening, costs.judge[n / 2], costs.judge[n - 1], (before + costs.judge[n / 2]) / costs.step,
               (before + costs.judge[n - 1]) / costs.step);
    }
    json_decref(context);
    json_decref(shards);
    session_free(judge);
    session_free(s);
    pool_free(pool);
    archive_close(&a);
    scratch_close(&folder);
    return ok ? 0 : fail(&err);
}
