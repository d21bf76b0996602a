#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "native/kernel/class.h"
#include "native/kernel/pool.h"
#include "runtime/script/resident.h"
#include "runtime/worker/answering.h"
#include "runtime/worker/confine.h"
#include "runtime/worker/dispute_fit.h"
#include "runtime/worker/drawn.h"
#include "runtime/worker/folding.h"
#include "runtime/worker/frame.h"
#include "runtime/worker/jobs.h"
#include "runtime/worker/sampling.h"

struct serving {
    struct block_store blocks;
    struct pool *pool;
    struct session *session;
    bool failed; /* to open it */
    int out;     /* answers go here; standard output is the log's from then on */
    json_int_t id;
};

static void report(void *context, json_t *value)
{
    struct serving *w = context;
    struct error err = { 0 };
    json_t *line = json_pack("{s:I, s:O}", "id", w->id, "progress", value);

    if (!frame_write(w->out, line, NULL, 0, &err))
        exit(0); /* the node is gone */
    json_decref(line);
}

static json_t *open_session(struct serving *w, json_t *job, struct error *err)
{
    session_free(w->session);
    w->session = session_new(job, &w->blocks, w->pool, err);
    w->failed = !w->session;
    if (w->failed)
        return NULL;
    resident_settle();

    const struct session_rollout *r = &w->session->rollout;
    json_t *rollout = r->samples ? json_pack("{s:I, s:I, s:I}", "samples", (json_int_t)r->samples, "updates",
                                             (json_int_t)r->updates, "max_tokens", (json_int_t)r->max_tokens)
                                 : json_null();

    return json_pack("{s:I, s:I, s:o}", "parameters", (json_int_t)w->session->layout.values, "tensors",
                     (json_int_t)w->session->layout.count, "rollout", rollout);
}

static json_t *perform(struct serving *w, json_t *job, struct error *err)
{
    const char *name = json_string_value(json_object_get(job, "job"));
    struct job_reporter to = { report, w, json_is_true(json_object_get(job, "every")) };
    struct session *s = w->session;

    if (!name) {
        error_set(err, ERROR_MISSING, NULL, "a job without a name");
        return NULL;
    }
    if (strcmp(name, "open") == 0)
        return open_session(w, job, err);
    if (!s) {
        error_set(err, ERROR_FAULT, NULL, "no run is open");
        return NULL;
    }
    if (strcmp(name, "genesis") == 0)
        return folding_genesis(s, err);
    if (strcmp(name, "plan") == 0)
        return job_plan(s, job, err);
    if (strcmp(name, "train") == 0)
        return job_train(s, job, &to, err);
    if (strcmp(name, "replay") == 0)
        return job_replay(s, job, &to, err);
    if (strcmp(name, "rollouts") == 0)
        return job_rollouts(s, job, err);
    if (strcmp(name, "judge") == 0)
        return job_judge(s, job, err);
    if (strcmp(name, "move") == 0)
        return job_move(s, job, &to, err);
    if (strcmp(name, "fit") == 0)
        return job_fit(s, job, err);
    if (strcmp(name, "compare") == 0)
        return job_compare(s, job, err);
    if (strcmp(name, "check") == 0)
        return job_check(s, job, err);
    if (strcmp(name, "fold") == 0)
        return folding_run(s, json_object_get(job, "request"), json_object_get(job, "payloads"), err);
    if (strcmp(name, "evaluate") == 0)
        return job_evaluate(s, job, &to, err);
    if (strcmp(name, "adapter") == 0)
        return job_adapter(s, job, err);
    if (strcmp(name, "sample") == 0)
        return job_sample(s, job, &to, err);
    if (strcmp(name, "answer") == 0)
        return job_answer(s, job, &to, err);
    if (strcmp(name, "choose") == 0)
        return job_choose(s, job, err);
    error_set(err, ERROR_FAULT, NULL, "no job %s", name);
    return NULL;
}

static bool answer(struct serving *w, json_t *result, const struct error *fault, struct error *err)
{
    json_t *line = result ? json_pack("{s:I, s:o}", "id", w->id, "result", result)
                          : json_pack("{s:I, s:{s:s, s:s, s:s, s:s}}", "id", w->id, "error", "code", error_name(fault->code),
                                      "place", fault->place, "message", fault->message, "hint", fault->hint);
    bool ok = frame_write(w->out, line, NULL, 0, err);

    json_decref(line);
    return ok;
}

int worker_main(int argc, char **argv)
{
    struct serving w = { 0 };
    struct error err = { 0 };
    char text[1024];
    json_t *job;
    struct buffer bytes = { 0 };

    close_range(STDERR_FILENO + 1, ~0U, 0); /* sockets and locks of the node are not the worker's */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the node decides when to end */
    signal(SIGPIPE, SIG_IGN);
    if (argc != 3 || setpriority(PRIO_PROCESS, 0, atoi(argv[2])) != 0) {
        fputs("rondo --worker BLOCKS THREADS NICE is started by a node\n", stderr);
        return 2;
    }
    if (confine_worker(&err)) {
        w.out = dup(STDOUT_FILENO);
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    if (err.code != ERROR_NONE || w.out < 0 || !kernel_start(&err) || !block_store_open(argv[0], &w.blocks, &err)) {
        fprintf(stderr, "rondo worker: %s\n", error_text(&err, text, sizeof text));
        return 4;
    }
    w.pool = pool_new((unsigned)atoi(argv[1]));
    while (frame_read(STDIN_FILENO, &job, &bytes, &err)) {
        struct error fault = { 0 };

        w.id = json_integer_value(json_object_get(job, "id"));
        json_t *result = perform(&w, job, &fault);

        json_decref(job);
        buffer_clear(&bytes);
        if (!answer(&w, result, &fault, &err) || w.failed)
            break; /* the next worker opens the run once more, before any other job */
    }
    session_free(w.session);
    pool_free(w.pool);
    buffer_free(&bytes);
    return err.code == ERROR_NONE ? 0 : 4;
}
