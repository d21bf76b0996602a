#include "runtime/role/local.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "native/base/memory_limit.h"
#include "runtime/role/held_out.h"
#include "runtime/role/local_internal.h"
#include "runtime/role/quote.h"

enum { DEATHS_MOST = 8, SOON_MS = 5000, END_MS = 5000 };

/* --- processes ------------------------------------------------------------------------------------------------------------ */

static void process_start(struct local_process *p);
static void advance(struct local *l);

static void argument(struct local_process *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->arguments[p->argument_count++], sizeof p->arguments[0], format, args);
    va_end(args);
}

static void restart_due(uv_timer_t *timer)
{
    struct local_process *p = timer->data;

    if (!p->local->stopping)
        process_start(p);
}

static void process_closed(uv_handle_t *handle)
{
    struct local_process *p = handle->data;

    if (--p->handles > 0 || p->local->stopping)
        return;
    buffer_clear(&p->line);
    uv_timer_start(&p->restart, restart_due, 100u << (p->deaths < 6 ? p->deaths : 6), 0);
}

static void process_exited(uv_process_t *process, int64_t status, int signal)
{
    struct local_process *p = process->data;
    struct local *l = p->local;

    p->running = false;
    if (!l->stopping) {
        struct error err = { 0 };

        local_say(l, "%s ended (status %lld, signal %d); it is started again", p->name, (long long)status, signal);
        p->deaths = uv_now(&l->loop) - p->started_at < SOON_MS ? p->deaths + 1 : 0;
        if (p->deaths > DEATHS_MOST || status == 2 || status == 3) {
            error_set(&err, ERROR_FAULT, "its last lines on standard error tell why", "%s ended with status %lld", p->name,
                      (long long)status);
            local_fail(l, &err);
        }
    }
    uv_close((uv_handle_t *)&p->process, process_closed);
    uv_close((uv_handle_t *)&p->out, process_closed);
}

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct local_process *p = handle->data;

    buffer_reserve(&p->line, suggested);
    *buf = uv_buf_init((char *)p->line.bytes + p->line.size, (unsigned)(p->line.capacity - p->line.size));
}

static void take_lines(struct local_process *p)
{
    for (;;) {
        uint8_t *end = p->line.size ? memchr(p->line.bytes, '\n', p->line.size) : NULL;
        struct error none = { 0 };
        json_t *event;

        if (!end)
            return;
        event = json_read((const char *)p->line.bytes, (size_t)(end - p->line.bytes), 1 << 20, &none);
        p->line.size -= (size_t)(end + 1 - p->line.bytes);
        memmove(p->line.bytes, end + 1, p->line.size);
        if (event)
            local_heard(p, event);
        json_decref(event);
        advance(p->local);
    }
}

static void process_said(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct local_process *p = stream->data;

    (void)buf;
    if (got < 0) {
        uv_read_stop(stream);
        return;
    }
    p->line.size += (size_t)got;
    take_lines(p);
}

static void process_start(struct local_process *p)
{
    struct local *l = p->local;
    char *arguments[LOCAL_ARGUMENTS + 2] = { (char *)"rondo" };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_IGNORE },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->out },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    uv_process_options_t options = {
        .exit_cb = process_exited,
        .file = "/proc/self/exe",
        .args = arguments,
        .stdio = stdio,
        .stdio_count = 3,
        .flags = UV_PROCESS_DETACHED, /* Ctrl-C reaches this process alone, which then ends the others in order */
    };
    struct error err = { 0 };
    int status;

    for (size_t i = 0; i < p->argument_count; i++)
        arguments[1 + i] = p->arguments[i];
    uv_pipe_init(&l->loop, &p->out, 0);
    p->process.data = p->out.data = p;
    status = uv_spawn(&l->loop, &p->process, &options);
    if (status != 0) {
        error_set(&err, ERROR_FAULT, NULL, "cannot start %s: %s", p->name, uv_strerror(status));
        local_fail(l, &err);
        return;
    }
    p->handles = 2;
    p->running = true;
    p->started_at = uv_now(&l->loop);
    uv_read_start((uv_stream_t *)&p->out, give_space, process_said);
}

static struct local_process *add_process(struct local *l, const char *role, const char *name)
{
    struct local_process *p = &l->processes[l->count++];

    p->local = l;
    snprintf(p->name, sizeof p->name, "%s", name);
    uv_timer_init(&l->loop, &p->restart);
    p->restart.data = p;
    argument(p, "%s", role);
    return p;
}

/* --- the order of things --------------------------------------------------------------------------------------------------- */

/* What the spec lets each trainer lock; "": nothing. */
static const char *stake_of(struct local *l)
{
    const json_t *stake = json_object_get(json_object_get(l->draft, "trust"), "stake");

    if (json_is_integer(stake)) /* as a run file may have it */
        snprintf(l->stake, sizeof l->stake, "%lld", (long long)json_integer_value(stake));
    else
        snprintf(l->stake, sizeof l->stake, "%s", json_is_string(stake) ? json_string_value(stake) : "");
    return strcmp(l->stake, "0") == 0 ? "" : l->stake;
}

static void start_ledger(struct local *l)
{
    struct local_process *p = add_process(l, "ledger", "ledger");
    json_t *payment = json_object_get(l->draft, "payment"), *budget = json_object_get(payment, "budget");
    struct key_pair keys;
    struct error err = { 0 };
    char path[4400], account[ADDRESS_TEXT];

    snprintf(path, sizeof path, "%.4000s/nodes/sponsor/key.json", l->options.home);
    if (!keyfile_read(path, NULL, &keys, &err)) {
        local_fail(l, &err);
        return;
    }
    argument(p, "--json");
    argument(p, "--with-parent");
    argument(p, "--port=0");
    argument(p, "--home=%.200s", l->options.home);
    argument(p, "--block-ms=%lld", (long long)document_integer(payment, "block_ms"));
    if (json_is_string(budget))
        argument(p, "--allocate=%s=%s", address_text(account_address(&keys.account), account), json_string_value(budget));
    else
        argument(p, "--allocate=%s=%lld", address_text(account_address(&keys.account), account),
                 (long long)json_integer_value(budget));
    if (l->options.ledger_seed)
        argument(p, "--ledger-seed=%s", l->options.ledger_seed);
    key_pair_wipe(&keys);
    for (int64_t i = 1; *stake_of(l) && i <= l->trainers; i++) { /* each trainer has what it is to lock */
        snprintf(path, sizeof path, "%.4000s/nodes/trainer-%lld/key.json", l->options.home, (long long)i);
        if (!keyfile_read(path, NULL, &keys, &err)) {
            local_fail(l, &err);
            return;
        }
        argument(p, "--allocate=%s=%s", address_text(account_address(&keys.account), account), stake_of(l));
        key_pair_wipe(&keys);
    }
    process_start(p);
}

static struct local_process *add_node(struct local *l, const char *role, const char *name)
{
    struct local_process *p = add_process(l, role, name);

    argument(p, "%s", l->run);
    argument(p, "--json");
    argument(p, "--with-parent");
    argument(p, "--home=%.200s", l->options.home);
    argument(p, "--name=%s", name);
    argument(p, "--ledger=%s", l->ledger_url);
    return p;
}

/* Threads of one worker: the machine's cores shared out among the trainers, who do nearly all of the work. */
static unsigned worker_threads(const struct local *l)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned share = (unsigned)(cores / (long)l->trainers);

    return l->options.threads ? l->options.threads : share ? share : 1;
}

static void start_members(struct local *l, const char *peer)
{
    /* all of them compute: trainers, and syncers who decide rounds and repeat steps */
    const uint64_t memory = memory_allowance((unsigned)(l->trainers + l->syncers));
    const json_t *capacity = json_object_get(l->network, "capacity"), *regions = json_object_get(l->network, "regions");
    char name[32];

    for (int64_t i = 1; i <= l->syncers; i++) {
        snprintf(name, sizeof name, "syncer-%lld", (long long)i);
        struct local_process *p = add_node(l, "syncer", name);

        argument(p, "--peer=%s", peer);
        argument(p, "--threads=1");
        argument(p, "--memory=%" PRIu64, memory);
        process_start(p);
    }
    for (int64_t i = 1; i <= l->trainers; i++) {
        snprintf(name, sizeof name, "trainer-%lld", (long long)i);
        struct local_process *p = add_node(l, "trainer", name);

        if (*stake_of(l))
            argument(p, "--deposit");
        argument(p, "--peer=%s", peer);
        argument(p, "--threads=%u", worker_threads(l));
        if (json_integer_value(json_array_get(capacity, (size_t)i - 1)) > 0)
            argument(p, "--capacity=%lld", (long long)json_integer_value(json_array_get(capacity, (size_t)i - 1)));
        if (json_array_get(regions, (size_t)i - 1))
            argument(p, "--region=%.32s", json_string_value(json_array_get(regions, (size_t)i - 1)));
        argument(p, "--memory=%" PRIu64, memory);
        process_start(p);
    }
    l->began = uv_now(&l->loop);
}

static void open_metrics(struct local *l)
{
    char path[4400];
    struct error none = { 0 };

    snprintf(path, sizeof path, "%.4000s/runs/%s", l->options.home, l->run);
    if (!file_make_folder(path, &none))
        return;
    snprintf(path + strlen(path), sizeof path - strlen(path), "/metrics.jsonl");
    l->metrics = fopen(path, "ae");

    json_t *first = json_pack("{s:s, s:s, s:I}", "event", "started", "run", l->run, "time", (json_int_t)time(NULL));

    local_measure(l, "local", first);
    json_decref(first);
}

/* A process told that it serves: the next may start. */
static void process_ready(struct local_process *p)
{
    struct local *l = p->local;
    struct error err = { 0 };

    if (p->ready)
        return;
    p->ready = true;
    if (p == &l->processes[0]) {
        snprintf(l->ledger_url, sizeof l->ledger_url, "%s", p->endpoint);
        argument(p, "--port=%s", strrchr(p->endpoint, ':') + 1); /* the same again after a restart */
        if (!local_setup_run(l, &err)) {
            local_fail(l, &err);
            return;
        }
        local_say(l, "run %s", l->run);
        open_metrics(l);
        process_start(add_node(l, "sponsor", "sponsor"));
    } else if (p == &l->processes[1]) {
        start_members(l, p->endpoint);
    }
}

void local_fail(struct local *l, const struct error *err)
{
    if (l->fault.code == ERROR_NONE && !l->stopping)
        l->fault = *err;
    l->stopping = true;
    uv_stop(&l->loop);
}

/* --- the whole ------------------------------------------------------------------------------------------------------------- */

static void interrupted(uv_signal_t *handle, int number)
{
    struct local *l = handle->data;

    (void)number;
    if (l->stopping) { /* a second time: at once */
        for (size_t i = 0; i < l->count; i++)
            if (l->processes[i].running)
                uv_process_kill(&l->processes[i].process, SIGKILL);
        return;
    }
    local_clear(l);
    local_say(l, "ending; the same command goes on later");
    l->interrupted = l->stopping = true;
    uv_stop(&l->loop);
}

static bool everybody_done(const struct local *l)
{
    size_t members = 0;

    for (size_t i = 2; i < l->count; i++) {
        if (strncmp(l->processes[i].name, "syncer", 6) != 0)
            continue;
        if (!l->processes[i].done)
            return false;
        members++;
    }
    return members > 0;
}

/* What was waited for is there: who may start now is started, and a network that is done ends. */
static void advance(struct local *l)
{
    for (size_t i = 0; i < 2 && i < l->count; i++)
        if (l->processes[i].endpoint[0])
            process_ready(&l->processes[i]);
    if (!l->stopping && everybody_done(l)) {
        l->finished = l->stopping = true;
        uv_stop(&l->loop);
    }
}

static void ticked(uv_timer_t *timer)
{
    struct local *l = timer->data;

    if (!l->stopping)
        local_show(l);
}

static void kill_late(uv_timer_t *timer)
{
    struct local *l = timer->data;

    for (size_t i = 0; i < l->count; i++)
        if (l->processes[i].running)
            uv_process_kill(&l->processes[i].process, SIGKILL);
}

/* Nodes first, the ledger last; who does not end in time is killed. */
static void end_processes(struct local *l)
{
    uv_timer_stop(&l->tick);
    uv_timer_start(&l->tick, kill_late, END_MS, 0);
    for (size_t i = l->count; i-- > 0;) {
        uv_timer_stop(&l->processes[i].restart);
        uv_close((uv_handle_t *)&l->processes[i].restart, NULL);
        if (l->processes[i].running)
            uv_process_kill(&l->processes[i].process, SIGTERM);
    }
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < l->count; i++)
            any = any || l->processes[i].running;
        if (any)
            uv_run(&l->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&l->tick, NULL);
    uv_close((uv_handle_t *)&l->interrupt, NULL);
    uv_close((uv_handle_t *)&l->terminate, NULL);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    uv_loop_close(&l->loop);
    for (size_t i = 0; i < l->count; i++)
        buffer_free(&l->processes[i].line);
}

static void run_network(struct local *l)
{
    uv_loop_init(&l->loop);
    l->started = uv_now(&l->loop);
    uv_signal_init(&l->loop, &l->interrupt);
    uv_signal_init(&l->loop, &l->terminate);
    uv_timer_init(&l->loop, &l->tick);
    l->interrupt.data = l->terminate.data = l->tick.data = l;
    uv_signal_start(&l->interrupt, interrupted, SIGINT);
    uv_signal_start(&l->terminate, interrupted, SIGTERM);
    uv_timer_start(&l->tick, ticked, 100, 100);
    start_ledger(l);
    if (!l->stopping)
        uv_run(&l->loop, UV_RUN_DEFAULT);
    local_clear(l);
    end_processes(l);
}

/* Not only when hours of training are over. */
static bool look_at_eval(struct local *l, struct error *err)
{
    return held_out_check(l->draft, l->network, err) || error_at(err, "%s", l->options.runfile);
}

/* A new run is held to what `run check` holds it to: its plans are asked for before anything is started, not refused round after round. */
static bool look_at_plans(struct local *l, struct error *err)
{
    const struct quote_options options = {
        .runfile = l->options.runfile, .home = l->options.home, .strict = true, .threads = l->options.threads
    };
    json_t *state, *quote;

    if (!local_state(l, &state, err))
        return false;
    if (state) {
        json_decref(state);
        return true;
    }
    quote = quote_of(&options, err);
    json_decref(quote);
    return quote != NULL;
}

json_t *local_run(const struct local_options *options, struct error *err)
{
    struct local *l = calloc(1, sizeof *l);
    json_t *result = NULL;
    static char home[PATH_MAX];

    l->options = *options;
    l->last_round = -1;
    if (!file_make_folder(options->home, err) || !realpath(options->home, home)) {
        free(l);
        return NULL;
    }
    l->options.home = home;
    if (local_setup_home(l, err) && !(result = local_result_again(l, err)) && err->code == ERROR_NONE && look_at_eval(l, err) &&
        look_at_plans(l, err)) {
        run_network(l);
        if (l->finished)
            result = local_result(l, err);
        else if (l->fault.code != ERROR_NONE)
            *err = l->fault;
    }
    if (l->metrics)
        fclose(l->metrics);
    json_decref(l->draft);
    json_decref(l->base);
    json_decref(l->network);
    free(l);
    return result;
}
