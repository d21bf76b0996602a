/* dispute: what a dispute over one lie costs, on this machine, in one process.
 *
 *     build/bench/dispute HOME [STEPS [LEAF]]          HOME: of a run that has trained a round (rondo local); nothing in it is changed
 *
 *     build/bench/dispute --sizes                      bytes of opening and step log for a model of a billion parameters; nothing is computed
 *
 * The first round's first trainer does STEPS (500) steps instead of the plan's. Its opening of LEAF (the middle) is changed in one tile, as a
 * liar's would be; the pick is made against that and judged. Prints JSON: bytes of the three documents' objects, and processor seconds of one
 * step and of each thing a member of the committee does. What is done once a shape, tracing and planning the step, is told apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native/base/scratch.h"
#include "native/kernel/class.h"
#include "native/kernel/pool.h"
#include "runtime/role/archive.h"
#include "runtime/role/sponsor.h"
#include "runtime/round/assignment.h"
#include "runtime/round/value.h"
#include "runtime/script/host.h"
#include "runtime/worker/dispute_internal.h"
#include "runtime/worker/step.h"

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
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

struct costs {
    double step, open, first, challenge, opening, pick, judge;
    size_t opening_bytes, pick_bytes;
};

/* The lie: the last tile of all but the results, whose operands lie among the step's own values. */
static bool run(struct session *s, struct dispute_case *c, struct costs *out, struct error *err)
{
    struct buffer opening = { 0 }, pick = { 0 };
    struct dispute_verdict verdict;
    struct dispute_step d;
    struct step_log log = { .steps = (uint32_t)c->index, .leaves = calloc((size_t)c->index + 1, sizeof *log.leaves) };
    double from = cpu();
    bool ok = dispute_step_new(&d, s, c, true, NULL, err);

    out->step = (cpu() - from) / (double)(c->index - 1);
    log.leaves[c->index - 2].state = ok ? training_root(&d.running.training) : (struct hash){ { 0 } };
    log.leaves[c->index - 1].batch = ok ? batch_root(&d.running.batch) : (struct hash){ { 0 } };
    dispute_step_free(&d);
    from = cpu();
    ok = ok && dispute_open(s, c, NULL, &opening, err);
    out->open = cpu() - from;
    c->log = &log;
    from = cpu();
    ok = ok && dispute_step_new(&d, s, c, false, NULL, err); /* what a challenge takes: the batch */
    if (ok && !dispute_batch_right(&d, c))
        ok = error_set(err, ERROR_FAULT, NULL, "another batch");
    dispute_step_free(&d);
    out->challenge = cpu() - from;
    from = cpu();
    ok = ok && dispute_opening(s, c, opening.bytes, opening.size, &verdict, err);
    out->opening = cpu() - from;
    if (ok)
        opening.bytes[20 + 32 * (opening.size / 64)] ^= 1;
    from = cpu();
    ok = ok && dispute_pick(s, c, opening.bytes, opening.size, NULL, &pick, &verdict, err);
    out->pick = cpu() - from;
    from = cpu();
    ok = ok && dispute_judge(s, c, opening.bytes, opening.size, pick.bytes, pick.size, &verdict, err);
    out->judge = cpu() - from;
    if (ok && strcmp(verdict.code, "upheld") != 0)
        ok = error_set(err, ERROR_FAULT, NULL, "not upheld: %s", verdict.why);
    out->opening_bytes = opening.size;
    out->pick_bytes = pick.size;
    if (ok)
        fprintf(stderr, "the lie is in %s, entry %u, tile %llu\n", verdict.operator_name, verdict.entry,
                (unsigned long long)verdict.tile);
    step_log_free(&log);
    buffer_free(&opening);
    buffer_free(&pick);
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
        ok = script_set_read(sponsor_scripts_folder(folder), names[i], NULL, &sets[i], err);
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
    struct session *s = NULL;

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
              (context = work_of(&a, steps, shards, &err)) && (s = session_new(a.course.open, &a.auditor.blocks, pool, &err));

    if (ok) {
        struct dispute_case c = { .context = context, .shards = shards, .index = leaf };

        ok = run(s, &c, &costs, &err);
    }
    if (ok)
        printf("{\"steps\":%lld,\"leaf\":%lld,\"step_log_bytes\":%llu,\"opening_bytes\":%zu,\"pick_bytes\":%zu,\"step\":%.6f,"
               "\"trace\":%.6f,"
               "\"judge_challenge\":%.6f,\"judge_opening\":%.6f,\"make_pick\":%.6f,\"judge_pick\":%.6f}\n",
               (long long)steps, (long long)leaf, (unsigned long long)step_log_size(steps), costs.opening_bytes, costs.pick_bytes,
               costs.step, costs.open, costs.challenge, costs.opening, costs.pick, costs.judge);
    json_decref(context);
    json_decref(shards);
    session_free(s);
    pool_free(pool);
    archive_close(&a);
    scratch_close(&folder);
    return ok ? 0 : fail(&err);
}
