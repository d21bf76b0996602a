#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/eval_calls.h"
#include "runtime/cli/eval_choices.h"
#include "runtime/role/archive.h"
#include "runtime/role/dataset.h"
#include "runtime/role/run_file.h"

static void told(void *context, json_t *progress)
{
    const struct invocation *in = context;

    if (in->quiet || !isatty(STDERR_FILENO) || !json_object_get(progress, "evaluated"))
        return;
    fprintf(stderr, "\r\033[Kheld-out row %lld", (long long)json_integer_value(json_object_get(progress, "evaluated")));
    fflush(stderr);
}

/* What is measured: the data of --data, else of the run file. */
struct measure {
    json_t *run; /* of the run file, or NULL */
    const char *data;
    int64_t rows; /* at most; 0: all */
};

static bool choose_data(const struct invocation *in, struct measure *m, struct error *err)
{
    char scripts[4096];
    json_t *eval = NULL;

    if (in->arguments > 0) {
        m->run = run_file_read(in->argument[0], run_file_scripts(scripts), err);
        if (!m->run)
            return false;
        eval = json_object_get(json_object_get(m->run, "network"), "eval");
    }
    m->data = option_text(in, "data", document_text(eval, "data"));
    m->rows = option_flag(in, "data") || !eval ? 0 : document_integer(eval, "rows");
    if (!m->data)
        return error_set(err, ERROR_USAGE, "--data FILE, or a run file whose network.eval names it", "no held-out data is named");
    return option_integer(in, "rows", 1, INT64_MAX, &m->rows, err);
}

static json_t *evaluate(struct invocation *in, struct archive *a, const struct measure *m, const char *outer, struct error *err)
{
    struct hash state, rows_id;
    uint64_t rows;
    char cid[CID_TEXT];

    if (!outer) {
        error_set(err, ERROR_MISSING, NULL, "the record names no state");
        return NULL;
    }
    if (!cid_parse(outer, &state, err) || (!block_has(&a->auditor.blocks, state) && !archive_gather(a, state, true, err)) ||
        !dataset_put_rows(&a->auditor.blocks, m->data, &rows_id, &rows, err))
        return NULL;
    return archive_job(a,
                       json_pack("{s:s, s:s, s:[s], s:I}", "job", "evaluate", "outer", outer, "shards", cid_text(rows_id, cid),
                                 "rows", (json_int_t)m->rows),
                       told, in, err);
}

/* { run, round, before?, after }: the last record's state; records after the last round only settle. */
static json_t *measure_run(struct invocation *in, struct archive *a, const struct measure *m, struct error *err)
{
    size_t last = json_array_size(a->finals);
    int64_t round = (int64_t)last - 1 < (int64_t)a->course.spec.rounds ? (int64_t)last - 1 : (int64_t)a->course.spec.rounds;
    json_t *genesis = NULL, *before = NULL, *after = NULL, *result = NULL;

    if (last == 0) {
        error_set(err, ERROR_MISSING, "let it run first", "run %s has no decided round", a->course.run);
        return NULL;
    }
    if (!archive_worker(a, in->threads, err) ||
        !(genesis = archive_job(a, json_pack("{s:s}", "job", "genesis"), NULL, NULL, err)))
        return NULL;
    if (!option_flag(in, "before") || (before = evaluate(in, a, m, document_text(genesis, "outer"), err)))
        after = evaluate(in, a, m, document_text(archive_record(a, (int64_t)last - 1), "outer"), err);
    if (after)
        result = json_pack("{s:s, s:I, s:s, s:O*, s:O}", "run", a->course.run, "round", (json_int_t)round, "data", m->data,
                           "before", before, "after", after);
    json_decref(genesis);
    json_decref(before);
    json_decref(after);
    return result;
}

static json_t *measure_home(struct invocation *in, const struct measure *m, struct error *err)
{
    struct archive a = { 0 };
    json_t *result = NULL;

    if (archive_open(&a, in->home, option_text(in, "run", NULL), err))
        result = measure_run(in, &a, m, err);
    archive_close(&a);
    return result;
}

/* { data, loss, ... } of a model that is in no run. */
static json_t *measure_model(struct invocation *in, const struct measure *m, struct error *err)
{
    struct speaker speaker = { 0 };
    struct hash rows_id;
    uint64_t rows;
    char cid[CID_TEXT];
    json_t *result = NULL;

    if (speaker_open(&speaker, in, err) && dataset_put_rows(&speaker.archive.auditor.blocks, m->data, &rows_id, &rows, err))
        result = speaker_job(
            &speaker,
            json_pack("{s:s, s:[s], s:I}", "job", "evaluate", "shards", cid_text(rows_id, cid), "rows", (json_int_t)m->rows),
            told, in, err);
    if (result)
        json_object_set_new(result, "data", json_string(m->data));
    speaker_close(&speaker);
    return result;
}

static void print_row(const char *title, const json_t *eval)
{
    const json_t *accuracy = json_object_get(eval, "tool_call_accuracy");
    char text[32] = "none";

    if (!eval)
        return;
    if (json_is_number(accuracy))
        snprintf(text, sizeof text, "%.3f", json_number_value(accuracy));
    printf("%-8s %10.4f %20s %8lld %8lld\n", title, json_number_value(json_object_get(eval, "loss")), text,
           (long long)json_integer_value(json_object_get(eval, "calls")),
           (long long)json_integer_value(json_object_get(eval, "rows")));
}

static bool constrained_to_tools(const struct invocation *in, struct error *err)
{
    json_t *job = json_object();
    bool ok = speaker_constrain(in, job, err);

    json_decref(job);
    return ok;
}

static int speak_main(struct invocation *in, const struct measure *m, struct error *err)
{
    struct speaker speaker = { 0 };
    json_t *result = NULL, *count;
    const char *why;
    bool choices = option_flag(in, "choices");
    struct eval_calls calls = { .data = m->data,
                                .most = m->rows,
                                .batch = 16,
                                .max_tokens = 512,
                                .each = option_flag(in, "each"),
                                .constrain = option_text(in, "constrain", NULL) };
    struct rusage used;

    if (constrained_to_tools(in, err) && option_integer(in, "batch", 1, 4096, &calls.batch, err) &&
        option_integer(in, "max-tokens", 1, 1 << 20, &calls.max_tokens, err) && speaker_open(&speaker, in, err))
        result = choices ? eval_choices(in, &speaker, m->data, m->rows, err) : eval_calls(in, &speaker, &calls, err);
    speaker_close(&speaker);
    if (result && getrusage(RUSAGE_CHILDREN, &used) == 0) /* of the worker, which has ended */
        json_object_set_new(result, "peak_bytes", json_integer((json_int_t)used.ru_maxrss * 1024));
    command_clear_progress(in);
    json_decref(m->run);
    if (!result)
        return command_fail(in, err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    if (choices)
        printf("%.3f by byte, ", json_number_value(json_object_get(result, "accuracy_by_byte")));
    printf("%.3f of %lld %s are right\n", json_number_value(json_object_get(result, "accuracy")),
           (long long)json_integer_value(json_object_get(result, "cases")), choices ? "choices" : "tool calls");
    if (!choices)
        printf("  %lld tokens after prompts of %lld in %.1f s: %.1f tokens/s; %.0f MB at most\n",
               (long long)json_integer_value(json_object_get(result, "tokens")),
               (long long)json_integer_value(json_object_get(result, "prompt_tokens")),
               json_number_value(json_object_get(result, "seconds")),
               json_number_value(json_object_get(result, "tokens_per_second")),
               json_number_value(json_object_get(result, "peak_bytes")) / 1e6);
    json_object_foreach(json_object_get(result, "why"), why, count)
    {
        printf("  %-12s %lld\n", why, (long long)json_integer_value(count));
    }
    json_decref(result);
    return EXIT_OK;
}

/* Options that only --generate reads. */
static bool generate_options(const struct invocation *in, struct error *err)
{
    static const char *const names[] = { "each", "batch", "max-tokens", "constrain" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_flag(in, names[i]))
            return error_set(err, ERROR_USAGE, "give --generate, too", "--%s is read where a model writes", names[i]);
    return true;
}

static int eval_main(struct invocation *in)
{
    struct error err = { 0 };
    struct measure m = { 0 };
    json_t *result = NULL;
    bool speaks = option_flag(in, "generate") || option_flag(in, "choices");
    bool alone = option_flag(in, "model") || option_flag(in, "adapter") || option_flag(in, "template");

    if (option_flag(in, "generate") && option_flag(in, "choices")) {
        error_set(&err, ERROR_USAGE, NULL, "--generate and --choices exclude each other");
    } else if (speaks && option_flag(in, "before")) {
        error_set(&err, ERROR_USAGE, NULL, "--generate and --choices measure one state: leave --before out");
    } else if (alone && option_flag(in, "before")) {
        error_set(&err, ERROR_USAGE, NULL, "a model in no run has one state: leave --before out");
    } else if (speaks) {
        if (choose_data(in, &m, &err))
            return speak_main(in, &m, &err);
    } else if (generate_options(in, &err) && choose_data(in, &m, &err)) {
        result = alone ? measure_model(in, &m, &err) : measure_home(in, &m, &err);
    }
    command_clear_progress(in);
    json_decref(m.run);
    if (!result)
        return command_fail(in, &err);
    if (in->json) {
        command_print_json(result);
        return EXIT_OK;
    }
    printf("%-8s %10s %20s %8s %8s\n", "", "loss", "tool-call accuracy", "calls", "rows");
    print_row("before", json_object_get(result, "before"));
    print_row("after", json_object_get(result, "after"));
    print_row("model", alone ? result : NULL);
    json_decref(result);
    return EXIT_OK;
}

static const struct option options[] = {
    SPEAKER_SOURCE,
    { "data", "FILE", "held-out JSONL file (default: network.eval of RUNFILE)" },
    { "rows", "N", "at most so many rows" },
    { "generate", NULL, "let the model write each call, and judge it by the Berkeley leaderboard's rules" },
    { "choices", NULL, "rows {prompt | messages, choices, answer}: which choice the model finds most likely" },
    { "batch", "N", "of --generate: sequences at once (default 16); the answers are the same" },
    { "max-tokens", "N", "of --generate: end an answer after so many tokens (default 512)" },
    { "constrain", "tools[-or-text]",
      "of --generate: write calls right by the schemas of the row's tools, or text where it says so" },
    { "each", NULL, "of --generate: print what was written for each row, too (with --json)" },
    { "before", NULL, "measure the state before the first round, too" },
    { NULL, NULL, NULL },
};

const struct command command_eval = {
    "eval",
    "[RUNFILE]",
    "held-out loss and tool-call accuracy of a run's last state, or of a model",
    "rondo eval scripts/runs/quickstart.lua --home build/q --before\nrondo eval --home build/q --data held_out.jsonl --json\n"
    "rondo eval --model model.gguf --adapter build/q/runs/RUN/adapter --data held_out.jsonl\n"
    "rondo eval --generate --model model.gguf --data held_out.jsonl --rows 100",
    "Needs nothing running: state and model are read from the nodes in HOME; with --model it is that model, with its adapter. A "
    "held-out tool call counts as right when each of "
    "its\n"
    "tokens is the most likely one given those before it, which is what greedy generation would print. With --generate a model "
    "(or a "
    "run's state) really writes, greedily, and a call is right if name, types and values are among those of the row's "
    "`accepted`, "
    "[{NAME: {ARGUMENT: [values]}}], or of its last turn.",
    options,
    eval_main,
};
