#include "runtime/worker/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/base/buffer.h"
#include "runtime/worker/frame.h"

struct job {
    uint64_t id;
    struct buffer frame;
    worker_progress *progress;
    worker_done *done;
    void *context;
    bool preferred;
    struct job *next;
};

struct worker {
    uv_loop_t *loop;
    char *program, *blocks;
    unsigned threads;
    int nice;
    struct child *child; /* NULL between death and restart */
    uv_timer_t *restart;
    json_t *open;
    worker_done *open_done;
    void *open_context;
    struct job *running, *queue; /* running: the one the child works on */
    uint64_t last;
    unsigned deaths;
    bool opened;
};

/* The process and its pipes: they outlive the worker until libuv has closed them. */
struct child {
    uv_process_t process;
    uv_pipe_t in, out;
    struct buffer input;
    struct worker *worker; /* NULL once the worker let go of it */
    int open_handles;
};

struct writing {
    uv_write_t request;
    struct buffer bytes;
};

static void worker_start(struct worker *w);
static void worker_pump(struct worker *w);

static void child_closed(uv_handle_t *handle)
{
    struct child *c = handle->data;

    if (--c->open_handles == 0) {
        buffer_free(&c->input);
        free(c);
    }
}

static void child_close(struct child *c)
{
    uv_handle_t *handles[] = { (uv_handle_t *)&c->process, (uv_handle_t *)&c->in, (uv_handle_t *)&c->out };

    for (size_t i = 0; i < 3; i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], child_closed);
}

static void job_free(struct job *j)
{
    if (j)
        buffer_free(&j->frame);
    free(j);
}

static void job_end(struct job *j, const struct worker_answer *answer)
{
    if (j->done)
        j->done(j->context, answer);
    job_free(j);
}

static void restart_due(uv_timer_t *timer)
{
    struct worker *w = timer->data;

    if (!w->child)
        worker_start(w);
}

static void child_exited(uv_process_t *process, int64_t status, int signal)
{
    struct child *c = process->data;
    struct worker *w = c->worker;

    child_close(c);
    if (!w)
        return;
    w->child = NULL;

    struct job *died = w->running;

    w->running = NULL;
    uv_timer_start(w->restart, restart_due, 50u << (w->deaths < 7 ? w->deaths : 7), 0);
    w->deaths++;
    if (died) { /* last: what it calls may free the worker */
        struct error err = { 0 };

        error_set(&err, ERROR_FAULT, "see the node's log", "the worker ended in this job (status %lld, signal %d)",
                  (long long)status, signal);
        job_end(died, &(struct worker_answer){ .error = &err });
    }
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct child *c = handle->data;

    buffer_reserve(&c->input, suggested);
    *buf = uv_buf_init((char *)c->input.bytes + c->input.size, (unsigned)(c->input.capacity - c->input.size));
}

static void read_error(json_t *value, struct error *err)
{
    const char *code = json_string_value(json_object_get(value, "code"));
    enum error_code known = ERROR_FAULT;

    for (int i = 0; code && i < ERROR_CODES; i++)
        if (strcmp(error_name((enum error_code)i), code) == 0)
            known = (enum error_code)i;

    const char *message = json_string_value(json_object_get(value, "message")),
               *place = json_string_value(json_object_get(value, "place"));

    error_set(err, known, json_string_value(json_object_get(value, "hint")), "%s", message ? message : "no message");
    if (place && place[0])
        error_at(err, "%s", place);
}

static void worker_answered(struct worker *w, json_t *value, const struct buffer *bytes)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(value, "id"));
    json_t *progress = json_object_get(value, "progress"), *error = json_object_get(value, "error");
    struct job *j = w->running;

    if (!j || j->id != id)
        return;
    if (progress) {
        if (j->progress)
            j->progress(j->context, progress);
        return;
    }
    w->running = NULL;
    w->deaths = 0;

    struct error err = { 0 };
    struct worker_answer answer = { .result = json_object_get(value, "result"), .bytes = bytes->bytes, .size = bytes->size };

    if (error) {
        read_error(error, &err);
        answer.error = &err;
    }
    job_end(j, &answer);
}

static void child_said(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct child *c = stream->data;
    struct error err = { 0 };
    json_t *value;

    (void)buf;
    if (got < 0) {
        uv_process_kill(&c->process, SIGKILL);
        uv_read_stop(stream);
        return;
    }
    c->input.size += (size_t)got;
    for (;;) {
        struct buffer bytes = { 0 };

        if (!frame_take(&c->input, &value, &bytes, &err)) {
            buffer_free(&bytes);
            break;
        }
        if (c->worker)
            worker_answered(c->worker, value, &bytes);
        json_decref(value);
        buffer_free(&bytes);
        if (!c->worker)
            return;
    }
    if (err.code != ERROR_NONE)
        uv_process_kill(&c->process, SIGKILL);
    else if (c->worker)
        worker_pump(c->worker);
}

static void written(uv_write_t *request, int status)
{
    struct writing *w = (struct writing *)request;

    (void)status;
    buffer_free(&w->bytes);
    free(w);
}

static void worker_pump(struct worker *w)
{
    if (w->running || !w->queue || !w->child)
        return;

    struct job *j = w->queue;
    struct writing *out = calloc(1, sizeof *out);

    w->queue = j->next;
    j->next = NULL;
    w->running = j;
    buffer_add(&out->bytes, j->frame.bytes, j->frame.size);

    uv_buf_t buf = uv_buf_init((char *)out->bytes.bytes, (unsigned)out->bytes.size);

    if (uv_write(&out->request, (uv_stream_t *)&w->child->in, &buf, 1, written) != 0)
        written(&out->request, 0); /* the exit of the child follows and ends the job */
}

static struct job *job_new(struct worker *w, json_t *job, const void *bytes, size_t size)
{
    struct job *j = calloc(1, sizeof *j);

    j->id = ++w->last;
    json_object_set_new(job, "id", json_integer((json_int_t)j->id));
    frame_add(&j->frame, job, bytes, size);
    return j;
}

static void open_answered(void *context, const struct worker_answer *answer)
{
    struct worker *w = context;

    if (w->open_done && !w->opened) {
        w->opened = answer->error == NULL;
        w->open_done(w->open_context, answer);
    }
}

static void queue_open(struct worker *w)
{
    json_t *copy = json_copy(w->open);
    struct job *j = job_new(w, copy, NULL, 0);

    json_decref(copy);
    j->done = open_answered;
    j->context = w;
    j->preferred = true;
    j->next = w->queue;
    w->queue = j;
}

static void worker_start(struct worker *w)
{
    struct child *c = calloc(1, sizeof *c);
    char threads[16], niceness[16];

    snprintf(threads, sizeof threads, "%u", w->threads);
    snprintf(niceness, sizeof niceness, "%d", w->nice);

    char *args[] = { (char *)"rondo", (char *)"--worker", w->blocks, threads, niceness, NULL };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&c->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->out },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    uv_process_options_t options = {
        .exit_cb = child_exited, .file = w->program, .args = args, .stdio = stdio, .stdio_count = 3
    };

    uv_pipe_init(w->loop, &c->in, 0);
    uv_pipe_init(w->loop, &c->out, 0);
    c->process.data = c->in.data = c->out.data = c;
    c->open_handles = 3;
    c->worker = w;
    if (uv_spawn(w->loop, &c->process, &options) != 0) {
        child_close(c);
        uv_timer_start(w->restart, restart_due, 1000, 0);
        return;
    }
    w->child = c;
    uv_timer_stop(w->restart);
    uv_read_start((uv_stream_t *)&c->out, give_space, child_said);
    if (w->open)
        queue_open(w);
    worker_pump(w);
}

struct worker *worker_new(uv_loop_t *loop, const struct worker_options *options, struct error *err)
{
    struct worker *w = calloc(1, sizeof *w);

    signal(SIGPIPE, SIG_IGN); /* writing to a worker that died is no end of its node */
    w->loop = loop;
    w->program = strdup(options->program ? options->program : "/proc/self/exe");
    w->blocks = strdup(options->blocks);
    w->threads = options->threads;
    w->nice = options->nice;
    w->restart = calloc(1, sizeof *w->restart);
    uv_timer_init(loop, w->restart);
    w->restart->data = w;
    worker_start(w);
    if (!w->child) {
        error_set(err, ERROR_FAULT, NULL, "cannot start a worker process from %s", w->program);
        worker_free(w);
        return NULL;
    }
    return w;
}

static void timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    if (w->child) {
        w->child->worker = NULL; /* its exit closes it */
        uv_process_kill(&w->child->process, SIGKILL);
    }
    uv_close((uv_handle_t *)w->restart, timer_closed);
    job_free(w->running);
    for (struct job *j = w->queue, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    json_decref(w->open);
    free(w->program);
    free(w->blocks);
    free(w);
}

void worker_open(struct worker *w, json_t *job, worker_done *done, void *context)
{
    json_decref(w->open);
    w->open = job;
    w->open_done = done;
    w->open_context = context;
    w->opened = false;
    if (w->child) {
        queue_open(w);
        worker_pump(w);
    }
}

uint64_t worker_submit(struct worker *w, json_t *job, const void *bytes, size_t size, worker_progress *progress,
                       worker_done *done, void *context)
{
    struct job *j = job_new(w, job, bytes, size), **end = &w->queue;
    uint64_t id = j->id;

    json_decref(job);
    j->progress = progress;
    j->done = done;
    j->context = context;
    while (*end)
        end = &(*end)->next;
    *end = j;
    worker_pump(w);
    return id;
}

void worker_prefer(struct worker *w, uint64_t id)
{
    struct job **at = &w->queue, **before = &w->queue, *j;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    if (!(j = *at) || j->preferred)
        return;
    *at = j->next;
    while (*before && (*before)->preferred)
        before = &(*before)->next;
    j->preferred = true;
    j->next = *before;
    *before = j;
}

void worker_cancel(struct worker *w, uint64_t id)
{
    if (w->running && w->running->id == id) {
        job_free(w->running);
        w->running = NULL;
        if (w->child) { /* its exit closes it; another takes its place now */
            w->child->worker = NULL;
            uv_process_kill(&w->child->process, SIGKILL);
            worker_start(w);
        }
        return;
    }
    for (struct job **at = &w->queue; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            struct job *gone = *at;

            *at = gone->next;
            job_free(gone);
            return;
        }
}

size_t worker_waiting(const struct worker *w)
{
    size_t count = w->running != NULL;

    for (const struct job *j = w->queue; j; j = j->next)
        count++;
    return count;
}
