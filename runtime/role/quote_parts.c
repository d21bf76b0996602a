#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/role/quote_internal.h"
#include "runtime/round/payout.h"
#include "runtime/script/host.h"
#include "runtime/worker/batch.h"

void quote_warn(struct quote *q, const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(q->warnings, json_string(text));
}

/* The chance that `drawn` of `all`, `bad` of whom lie, hold more than `most` of these: each draw equally likely, whatever the weights. */
static double draw_beyond(uint32_t all, uint32_t bad, uint32_t drawn, uint32_t most)
{
    double chance[SPEC_PANEL + 1] = { 1 }, beyond = 0; /* of so many liars among those drawn so far */

    for (uint32_t k = 0; k < drawn; k++)
        for (uint32_t i = k + 1; i-- > 0;) {
            double liar = i < bad ? (double)(bad - i) / (double)(all - k) : 0;

            chance[i + 1] += chance[i] * liar;
            chance[i] *= 1 - liar;
        }
    for (uint32_t i = most + 1; i <= drawn; i++)
        beyond += chance[i];
    return beyond;
}

json_t *quote_committee(struct quote *q)
{
    const struct run_spec *s = &q->a.course.spec;
    int64_t n = s->committee.size, threshold = s->committee.threshold;
    int64_t f = committee_faults(s->committee.size, s->committee.threshold);

    if (f == 0)
        quote_warn(q, "with %lld of %lld no member of the committee may lie or be bought", (long long)threshold, (long long)n);
    if (n < (int64_t)s->committee.panel_count)
        quote_warn(q,
                   "committees of %lld of %zu: were a third of the panel liars, a draw would hold more than %lld of them in %.1f "
                   "%% of rounds",
                   (long long)n, s->committee.panel_count, (long long)f,
                   100 * draw_beyond((uint32_t)s->committee.panel_count, (uint32_t)(s->committee.panel_count - 1) / 3,
                                     (uint32_t)n, (uint32_t)f));
    if (n - threshold == 0)
        quote_warn(q, "a single syncer that is away stops the run until it is back");
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "members", (json_int_t)n, "threshold", (json_int_t)threshold,
                     "liars_tolerated", (json_int_t)f, "counted_by", (json_int_t)f + 1, "forks_with_liars",
                     (json_int_t)(2 * threshold - n), "waits_with_members_down", (json_int_t)(n - threshold + 1), "releases_with",
                     (json_int_t)s->committee.release_threshold);
}

json_t *quote_money(struct quote *q)
{
    const struct run_spec *s = &q->a.course.spec;
    char each[AMOUNT_TEXT], trainers[40], syncers[40], all[40], left[40], least[40], most[40];
    unsigned __int128 t, y, total = s->payment.per_round * s->rounds;

    amount_text(s->payment.per_round, each);
    /* A trainer is paid by its shards, which are dealt in turn; where it may state what it takes, by that. */
    int64_t shards = (int64_t)s->dataset.shards, few = shards / q->trainers, many = (shards + q->trainers - 1) / q->trainers;
    int64_t of_few = shards, of_many = shards, top = s->limits.batches;

    if (top) {
        few = 1;
        of_few = 1 + (q->trainers - 1) * top;
        many = top;
        of_many = top + q->trainers - 1;
        if (top > 1)
            quote_warn(
                q,
                "a trainer may take up to %lld batches a step: steps were measured with one; time and memory of more, and of a "
                "syncer that replays them, are up to as many times as much",
                (long long)top);
    }

    t = payout_share(each, s->payment.trainers);
    y = payout_share(each, s->payment.syncers);
    if (s->payment.budget > total)
        quote_warn(q, "the budget is larger than its rounds: %s of it is never put into an escrow",
                   payout_text(s->payment.budget - total, left));
    if (t + y < s->payment.per_round)
        quote_warn(q, "the terms leave %s of each round to nobody; it comes back at expiry",
                   payout_text(s->payment.per_round - t - y, left));
    return json_pack("{s:s, s:s, s:s, s:s, s:[s, s], s:s, s:I}", "asset", s->payment.asset, "per_round", each,
                     "trainers_per_round", payout_text(t, trainers), "syncers_per_round", payout_text(y, syncers),
                     "each_trainer_per_round", payout_text(t * (unsigned __int128)few / (unsigned __int128)of_few, least),
                     payout_text(t * (unsigned __int128)many / (unsigned __int128)of_many, most), "in_all",
                     payout_text(total, all), "expiry_rounds", (json_int_t)s->payment.expiry_rounds);
}

json_t *quote_work(const struct quote *q)
{
    const struct run_spec *s = &q->a.course.spec;

    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rounds", (json_int_t)s->rounds, "trainers", (json_int_t)q->trainers,
        "replicas", (json_int_t)s->trust.replicas, "syncers", (json_int_t)q->syncers, "parameters", (json_int_t)q->parameters,
        "steps_per_trainer", (json_int_t)q->steps, "steps", (json_int_t)(q->steps * q->trainers), "tokens_at_most",
        (json_int_t)(q->steps * q->trainers * (int64_t)s->batch_tokens * (s->limits.batches ? s->limits.batches : 1)));
}

json_t *quote_rollouts(struct quote *q)
{
    const json_t *rollout = json_object_get(q->a.opened, "rollout");
    int64_t samples = document_integer(rollout, "samples"), most = document_integer(rollout, "max_tokens"), tokens, rows;
    int64_t context = document_integer(q->a.course.spec.json, "context");

    if (!json_is_object(rollout))
        return json_null();
    most = most < context ? most : context;
    tokens = (most + 1 + BATCH_BUCKET - 1) / BATCH_BUCKET * BATCH_BUCKET; /* behind the shortest prompt */
    rows = (int64_t)q->a.course.spec.batch_tokens / tokens / samples * samples;
    if (rows < samples) {
        quote_warn(
            q,
            "a group of %lld completions of up to %lld tokens is more than batch_tokens: each batch is one group of at least "
            "%lld tokens",
            (long long)samples, (long long)most, (long long)(samples * tokens));
        rows = samples;
    }
    return json_pack("{s:I, s:I, s:I, s:I}", "batches", (json_int_t)(q->batches * q->trainers), "samples", (json_int_t)samples,
                     "completions_at_most", (json_int_t)(q->batches * q->trainers * rows), "drawn_tokens_at_most",
                     (json_int_t)(q->batches * q->trainers * rows * most));
}

json_t *quote_bytes(const struct quote *q)
{
    const struct run_spec *s = &q->a.course.spec;
    int64_t round = q->trainers * q->syncers * (q->payload_bytes + q->log_bytes), rounds = (int64_t)s->rounds;
    double dense = 4.0 * (double)q->parameters * (double)q->steps * (double)q->trainers * (double)q->syncers;
    double sent = (double)q->trainers * (double)q->syncers * (double)q->payload_bytes * (double)rounds;

    return json_pack("{s:I, s:I, s:I, s:I, s:f}", "payload_at_most", (json_int_t)q->payload_bytes, "step_log_at_most",
                     (json_int_t)q->log_bytes, "per_round", (json_int_t)round, "in_all", (json_int_t)(round * rounds),
                     "times_less_than_dense", dense / sent);
}

/* Bytes of every block in the store so far: scripts, model, data, first state. */
static int64_t stored(const struct quote *q)
{
    DIR *folder = opendir(q->a.auditor.blocks.folder);
    int64_t sum = 0;

    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4400];
        struct stat st;

        snprintf(path, sizeof path, "%s/%s", q->a.auditor.blocks.folder, entry->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            sum += st.st_size;
    }
    if (folder)
        closedir(folder);
    return sum;
}

json_t *quote_disk(const struct quote *q)
{
    int64_t rounds = (int64_t)q->a.course.spec.rounds, base = stored(q), own = q->payload_bytes + q->log_bytes;
    /* model files stand twice: as blocks, and as the files that workers read */
    return json_pack("{s:I, s:I, s:I}", "sponsor", (json_int_t)base, "trainer",
                     (json_int_t)(2 * base + rounds * (q->outer_bytes + own)), "syncer",
                     (json_int_t)(2 * base + rounds * (q->outer_bytes + q->trainers * own)));
}

json_t *quote_memory(const struct quote *q)
{
    /* A syncer folds (every payload in memory, a few states) while it replays what a trainer did. */
    int64_t fold = 4 * q->parameters * (q->trainers + 6);
    /* Both trace a step when it is disputed: its maker for the opening, its challenger for the pick. */
    int64_t worker = q->memory > q->traced ? q->memory : q->traced;

    if (!q->memory)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I}", "trainer", (json_int_t)worker, "syncer", (json_int_t)(worker + fold), "training",
                     (json_int_t)q->memory, "dispute", (json_int_t)q->traced);
}

json_t *quote_time(struct quote *q)
{
    const struct run_spec *s = &q->a.course.spec;
    double rounds = (double)s->rounds, steps = (double)q->steps / rounds, low, high, least;
    double votes = ((double)s->committee.settle_ms + (double)s->seed_lead * (double)s->payment.block_ms) / 1000;

    if (q->second <= 0)
        return json_null();
    low = steps * q->second * 0.8;
    high = steps * q->second * 1.6 + q->first;
    least = (double)s->quorum.round_ms / 1000;
    if (high > least)
        quote_warn(q, "on a machine like this a round's training may take %.0f s, quorum.round_ms ends it after %.0f s", high,
                   least);
    return json_pack("{s:f, s:[f, f], s:[f, f]}", "seconds_per_step", q->second, "training_per_round", low, high, "in_all",
                     rounds * (low + votes), rounds * (high + votes + (double)s->committee.view_ms / 1000));
}

/* --- what scripts say of themselves --------------------------------------------------------------------------------------- */

/* The script of a CID as the worker has it, with every import it may ask for. */
static json_t *describe(const struct quote *q, const struct spec_script *script, struct error *err)
{
    const struct run_spec *s = &q->a.course.spec;
    json_t *texts = json_object_get(q->a.course.open, "scripts"), *text, *meta;
    struct script_file *files = calloc(s->import_count + 1, sizeof *files);
    char cid[CID_TEXT];

    text = json_object_get(texts, cid_text(script->cid, cid));
    files[0] =
        (struct script_file){ "aggregator", document_text(text, "source"), json_string_length(json_object_get(text, "source")) };
    for (size_t i = 0; i < s->import_count; i++) {
        text = json_object_get(texts, cid_text(s->imports[i].cid, cid));
        files[i + 1] = (struct script_file){ s->imports[i].name, document_text(text, "source"),
                                             json_string_length(json_object_get(text, "source")) };
    }
    meta = script_describe(&(struct script_bundle){ files, s->import_count + 1, script->options }, NULL, err);
    free(files);
    return meta;
}

/* What waits while a region has no trainer. */
static void tell_regions(struct quote *q)
{
    const json_t *regions = json_object_get(json_object_get(q->a.course.spec.json, "dataset"), "regions"), *region;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)regions, i, region)
    {
        if (json_object_get(region, "only"))
            quote_warn(q,
                       "shards may be kept in region %s: no round trains them while nobody who says to be there is enrolled, and "
                       "nothing proves where a machine is",
                       document_text(region, "name"));
    }
}

bool quote_claims(struct quote *q, struct error *err)
{
    const struct run_spec *s = &q->a.course.spec;
    bool any = false, replicated = s->trust.replicas > 1;

    for (size_t i = 0; i < s->aggregator_count; i++) {
        json_t *meta = describe(q, &s->aggregators[i], err);

        if (!meta)
            return error_at(err, "aggregators[%zu]", i);
        if (json_is_true(json_object_get(meta, "robust"))) {
            quote_warn(q, "aggregators[%zu] declares robust = true: a claim of its author, which nothing here proves", i);
            any = true;
        }
        json_decref(meta);
    }
    if (!any)
        quote_warn(q, "no aggregator declares robust = true: %s can move a round as far as %s until a replay finds it",
                   replicated ? "trainers of one part that agree to lie alike" : "one lying trainer",
                   replicated ? "they like" : "it likes");
    if (s->trust.spot_check == 0)
        quote_warn(q, "trust.spot_check is 0: no contribution%s is replayed unless somebody challenges it",
                   replicated ? " that others gave alike" : "");
    if (!replicated && (int64_t)s->quorum.trainers == q->trainers)
        quote_warn(q, "quorum.trainers is the number of trainers: one that is late makes the round a skip, which pays nobody");
    if (s->trust.replicas == 2 && (int64_t)s->quorum.trainers == q->trainers / 2)
        quote_warn(q,
                   "quorum.trainers is the number of parts: a part that is lost, as by one machine that is late, makes the round "
                   "a skip, which pays nobody");
    tell_regions(q);
    if ((int64_t)s->dataset.shards < q->trainers)
        quote_warn(q, "%u shards for %lld trainers: some have nothing to do", s->dataset.shards, (long long)q->trainers);
    return true;
}
