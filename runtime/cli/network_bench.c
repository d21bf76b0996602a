#include "runtime/cli/network_bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native/base/file.h"
#include "native/base/json.h"
#include "runtime/cli/measure.h"
#include "runtime/role/bench.h"

extern char **environ;

/* One step on examples of a few tokens, an adapter of rank 1. A view is as long as votes may take on a busy machine, the lead of the seed's
 * block as long as a view; everything else follows what is there. */
static const char run_file[] =
    "return {\n"
    "  spec = {\n"
    "    name = 'network', modality = 'language', base_model = '%s', model = { script = 'llama' }, chat_template = 'model',\n"
    "    adapter = { kind = 'lora', rank = 1, alpha = 1, targets = 'all-linear' }, objective = { script = 'chat_sft' },\n"
    "    inner = { script = 'sgd' }, outer = { script = 'sgd' }, aggregators = { { script = 'mean' } },\n"
    "    schedule = { script = 'diloco', options = { inner_steps = 1, outer_lr = 1, bits = '8', ['rate.peak'] = 0.001 } },\n"
    "    rounds = %lld, batch_tokens = 64, context = 64,\n"
    "    dataset = { files = { '%s/rows.jsonl' }, shards = 4, corpora = { { name = 'rows', licence = 'CC0-1.0', share = '1' } } "
    "},\n"
    "    trust = { tier = 'known', admission = { mode = 'allow-list' }, replicas = 1, spot_check = 0, challenge_rounds = 2,\n"
    "              answer_rounds = 1, checkpoint_every = 1, correction = 'refold' },\n"
    "    kernel_class = 'portable-f32-1', seed_lead = %d,\n"
    "    quorum = { trainers = 3, round_ms = 60000, close_ms = 50, drop_after = 100,\n"
    "               grace = { factor = 3, min_ms = 1000, max_ms = 20000 } },\n"
    "    committee = { size = 4, threshold = 3, view_ms = %d, settle_ms = 20, release_threshold = 3 },\n"
    "    payment = { ledger = 'local', block_ms = 10, asset = 'TNZO', budget = '%lld', per_round = '1000',\n"
    "                terms = { trainers = 0.8, syncers = 0.2, basis = 'accepted' }, expiry_rounds = 100 },\n"
    "    limits = { script_memory = 268435456, script_seconds = 60, payload_bytes = 4194304, trainers = 60 },\n"
    "  },\n"
    "  network = { trainers = 4, syncers = 4 },\n"
    "}\n";

enum { VIEW_MS = 40, LEAD = 4, ROWS = 64 };

static bool write_run(struct network_bench *b, char path[128], struct error *err)
{
    char model[4200], full[4200], rows[160], *text = NULL, *lines = NULL;
    size_t size;
    FILE *out = open_memstream(&lines, &size);
    bool ok;

    for (int i = 0; i < ROWS; i++)
        fprintf(out, "{\"messages\":[{\"role\":\"user\",\"content\":\"say %d\"},{\"role\":\"assistant\",\"content\":\"%d\"}]}\n",
                i, i);
    fclose(out);
    snprintf(rows, sizeof rows, "%s/rows.jsonl", b->folder);
    snprintf(path, 128, "%s/network.lua", b->folder);
    ok = realpath(bench_pocket(model), full) ||
         error_set(err, ERROR_MISSING, "run it from the source tree, or install it", "the pocket model is not at %s", model);
    if (ok && asprintf(&text, run_file, full, (long long)b->rounds, b->folder, LEAD, VIEW_MS, (long long)b->rounds * 1000) < 0)
        abort();
    ok = ok && file_write(rows, lines, size, 0644, err) && file_write(path, text, strlen(text), 0644, err);
    free(text);
    free(lines);
    return ok;
}

bool network_bench_start(struct network_bench *b, int64_t rounds, struct error *err)
{
    char run[128], home[128], log[160];
    posix_spawn_file_actions_t actions;
    int failed;

    *b = (struct network_bench){ .pid = -1, .rounds = rounds, .events = json_array() };
    snprintf(b->folder, sizeof b->folder, "/tmp/rondo-network-XXXXXX");
    if (!mkdtemp(b->folder))
        return error_set(err, ERROR_IO, NULL, "cannot make a folder in /tmp");
    if (!write_run(b, run, err))
        return false;
    snprintf(b->home, sizeof b->home, "%s/home", b->folder);
    snprintf(home, sizeof home, "--home=%s", b->home);
    snprintf(log, sizeof log, "%s/log", b->folder);

    char *arguments[] = { (char *)"rondo", (char *)"local", run, home, (char *)"--json", NULL };

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    b->started = measure_now();
    failed = posix_spawn(&b->pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        b->pid = -1;
    return !failed || error_set(err, ERROR_FAULT, NULL, "cannot start rondo local: %s", strerror(failed));
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

void network_bench_stop(struct network_bench *b)
{
    if (b->pid > 0) {
        kill(b->pid, SIGTERM);
        waitpid(b->pid, NULL, 0);
    }
    json_decref(b->events);
    if (b->folder[0])
        nftw(b->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    *b = (struct network_bench){ .pid = -1 };
}

/* --- what it tells -------------------------------------------------------------------------------------------------------- */

static void find_metrics(struct network_bench *b)
{
    char runs[128];
    struct dirent *entry;
    DIR *folder;

    snprintf(runs, sizeof runs, "%s/runs", b->home);
    folder = opendir(runs);
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            snprintf(b->metrics, sizeof b->metrics, "%s/%s/metrics.jsonl", runs, entry->d_name);
    if (folder)
        closedir(folder);
}

static void read_metrics(struct network_bench *b)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    FILE *in;

    if (!b->metrics[0])
        find_metrics(b);
    in = b->metrics[0] ? fopen(b->metrics, "re") : NULL;
    if (!in)
        return;
    fseek(in, b->read_to, SEEK_SET);
    while ((size = getline(&line, &room, in)) > 0 && line[size - 1] == '\n') {
        json_t *event = json_read(line, (size_t)size, 1 << 20, NULL);

        if (event)
            json_array_append_new(b->events, event);
        b->read_to += size;
    }
    free(line);
    fclose(in);
}

/* --- its processes -------------------------------------------------------------------------------------------------------- */

static uint64_t number_of(pid_t pid, const char *file, const char *name)
{
    char path[64], line[256];
    unsigned long long kib, sum = 0;
    size_t size = strlen(name);
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, name, size) == 0 && sscanf(line + size, "%llu", &kib) == 1)
            sum += kib;
    if (in)
        fclose(in);
    return sum;
}

uint64_t network_bench_resident(pid_t pid)
{
    return number_of(pid, "status", "VmRSS:") << 10;
}

/* Every process that descends from the network's: `visit` gets its number. */
static void each_process(pid_t top, void (*visit)(void *context, pid_t pid), void *context)
{
    pid_t found[1024] = { top };
    size_t count = 1;

    for (size_t i = 0; i < count; i++) {
        char path[64];
        FILE *children;
        int pid;

        visit(context, found[i]);
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)found[i], (int)found[i]);
        children = fopen(path, "re");
        while (children && count < 1024 && fscanf(children, "%d", &pid) == 1)
            found[count++] = pid;
        if (children)
            fclose(children);
    }
}

struct sum {
    uint64_t resident, proportional;
    int processes;
};

static void add_process(void *context, pid_t pid)
{
    struct sum *sum = context;

    sum->resident += network_bench_resident(pid);
    sum->proportional += number_of(pid, "smaps_rollup", "Pss:") << 10;
    sum->processes++;
}

void network_bench_weigh(struct network_bench *b)
{
    struct sum sum = { 0 };

    if (b->pid > 0)
        each_process(b->pid, add_process, &sum);
    if (sum.proportional > b->proportional) {
        b->resident = sum.resident;
        b->proportional = sum.proportional;
        b->processes = sum.processes;
    }
}

bool network_bench_look(struct network_bench *b, struct error *err)
{
    int status;

    read_metrics(b);
    if (b->pid < 0 || waitpid(b->pid, &status, WNOHANG) != b->pid)
        return true;
    b->pid = -1;
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           error_set(err, ERROR_FAULT, NULL, "the network ended before its run was over");
}

/* --- what follows from it ------------------------------------------------------------------------------------------------- */

static bool is(const json_t *event, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(event, name));

    return text && strcmp(text, value) == 0;
}

static int64_t integer(const json_t *event, const char *name)
{
    return json_integer_value(json_object_get(event, name));
}

int64_t network_bench_final(const struct network_bench *b, int64_t round)
{
    json_t *event;
    size_t i;

    json_array_foreach(b->events, i, event)
    {
        if (is(event, "event", "final") && is(event, "role", "syncer") && integer(event, "round") == round)
            return integer(event, "ms");
    }
    return -1;
}

int64_t network_bench_training(const struct network_bench *b, int64_t round)
{
    json_t *begun = json_object(), *event;
    int64_t longest = 0;
    size_t i;

    json_array_foreach(b->events, i, event)
    {
        const char *node = json_string_value(json_object_get(event, "node"));

        if (!node || integer(event, "round") != round)
            continue;
        if (is(event, "event", "state") && is(event, "role", "trainer") && is(event, "phase", "training"))
            json_object_set(begun, node, json_object_get(event, "ms"));
        if (is(event, "event", "trained") && json_object_get(begun, node) &&
            integer(event, "ms") - integer(begun, node) > longest)
            longest = integer(event, "ms") - integer(begun, node);
    }
    json_decref(begun);
    return longest;
}

double network_bench_beyond(const struct network_bench *b, int64_t first, int64_t last)
{
    double values[4096];
    size_t count = 0;

    for (int64_t round = first; round <= last && count < 4096; round++) {
        int64_t before = network_bench_final(b, round - 1), at = network_bench_final(b, round);

        if (before >= 0 && at >= 0)
            values[count++] = (double)(at - before - network_bench_training(b, round));
    }
    return count ? measure_median(values, count) : -1;
}

int64_t network_bench_round(const struct network_bench *b)
{
    json_t *event;
    int64_t last = -1;
    size_t i;

    json_array_foreach(b->events, i, event)
    {
        if (is(event, "event", "final") && is(event, "role", "syncer") && integer(event, "round") > last)
            last = integer(event, "round");
    }
    return last;
}

const char *network_bench_endpoint(const struct network_bench *b, const char *node)
{
    json_t *event;
    size_t i;

    json_array_foreach(b->events, i, event)
    {
        if (is(event, "event", "ready") && is(event, "node", node))
            return json_string_value(json_object_get(event, "endpoint"));
    }
    return NULL;
}

struct search {
    char name[64];
    pid_t pid;
};

static void find_process(void *context, pid_t pid)
{
    struct search *s = context;
    char path[64], line[4096];
    size_t size;
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    in = fopen(path, "re");
    size = in ? fread(line, 1, sizeof line - 1, in) : 0;
    if (in)
        fclose(in);
    line[size] = 0;
    for (size_t at = 0; at < size; at += strlen(line + at) + 1)
        if (strcmp(line + at, s->name) == 0)
            s->pid = pid;
}

pid_t network_bench_process(const struct network_bench *b, const char *node)
{
    struct search s = { .pid = 0 };

    snprintf(s.name, sizeof s.name, "--name=%s", node);
    each_process(b->pid, find_process, &s);
    return s.pid;
}
